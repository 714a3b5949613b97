// SPDX-License-Identifier: Apache-2.0
/*
 * test_table_form - tables in files without relocations: the instructions that read a table
 * decide whether its entries may lead to copies. verify checks the outputs by its own analysis
 * of these instructions.
 */

#include "editor/optimize/optimize.h"
#include "tests/unit/edit_fixture.h"
#include "tests/unit/suite.h"

#define FIXED "-s -no-pie -static -nostdlib -Wl,--eh-frame-hdr"
#define MOVES "-s -pie -nostdlib"

/* A function f around @jump, with an index in %rax below @bound, and four labels. */
#define FUNCTION(bound, jump, more)                                                                \
	".text\n.globl _start\n_start:\n	call f\n	hlt\n.type f, @function\nf:\n.cfi_startproc\n"   \
	"	push %rbx\n.cfi_adjust_cfa_offset 8\n"                                                   \
	"	mov %edi, %eax\n	cmp $" bound ", %eax\n	ja 9f\n" jump                      \
	"L0:	mov $10, %ebx\n	add %esi, %ebx\n	jmp 8f\n"                                            \
	"L1:	mov $11, %ebx\n	sub %esi, %ebx\n	jmp 8f\n"                                            \
	"L2:	mov $12, %ebx\n	xor %esi, %ebx\n	jmp 8f\n"                                            \
	"L3:	mov $13, %ebx\n	or %esi, %ebx\n"                                                      \
	"8:	mov %ebx, %eax\n"                                                                      \
	"9:	pop %rbx\n.cfi_adjust_cfa_offset -8\n	ret\n" more ".cfi_endproc\n.size f, .-f\n"

#define ADDRESSES ".section .rodata\n.balign 8\nT:	.quad L0, L1, L2, L3\n	.quad -1\n"
#define OFFSETS	  ".section .rodata\n.balign 4\nT:	.long L0-T, L1-T, L2-T, L3-T\n	.quad -1\n"

/* Return: number of table entries that lead to copies when all code is moved. */
static uint64_t entries_led(const char *flags, const char *source)
{
	struct me_optimize_options options = {.all = true};
	struct me_optimize_report report;
	struct fixture f;
	char out[300];
	uint64_t nr;
	int rc;

	fixture_compile(&f, "assembler", flags, source);
	snprintf(out, sizeof(out), "%s.out", f.path);
	options.input = f.path;
	options.output = out;
	rc = me_optimize(&options, &report, &err);
	/* A function that is not understood stays, with its tables. */
	ck_assert_msg(rc == 0 || rc == -ENODATA, "%s", err.msg);
	nr = report.emitted.patches.nr_table_entries;
	ck_assert_uint_eq(report.verified.nr_table_entries, nr);
	me_optimize_report_fini(&report);
	unlink(f.path);
	unlink(out);
	return nr;
}

TEST(form_jump_through_memory)
{
	static const char source[] = FUNCTION("3", "	jmp *T(,%rax,8)\n", "") ADDRESSES;

	ck_assert_uint_eq(entries_led(FIXED, source), 4);
}

TEST(form_jump_with_notrack_and_high_index)
{
	static const char source[] = FUNCTION("3",
					      "	mov %eax, %r12d\n"
					      "	notrack jmp *T(,%r12,8)\n",
					      "") ADDRESSES;

	ck_assert_uint_eq(entries_led(FIXED, source), 4);
}

TEST(form_load_and_jump)
{
	static const char source[] = FUNCTION("3",
					      "	mov T(,%rax,8), %r11\n"
					      "	jmp *%r11\n",
					      "") ADDRESSES;

	ck_assert_uint_eq(entries_led(FIXED, source), 4);
}

/* Other instructions, and a jump, may come between. */
TEST(form_load_and_jump_elsewhere)
{
	static const char source[] = FUNCTION("3",
					      "	mov T(,%rax,8), %r11\n"
					      "	mov %edi, %ebx\n"
					      "	jmp 7f\n"
					      "	ud2\n"
					      "7:	xor %eax, %eax\n"
					      "	jmp *%r11\n",
					      "") ADDRESSES;

	ck_assert_uint_eq(entries_led(FIXED, source), 4);
}

/* The address could be kept before the jump. */
TEST(form_load_with_something_before_the_jump)
{
	static const char source[] = FUNCTION("3",
					      "	mov T(,%rax,8), %r11\n"
					      "	mov %r11, (%rsi)\n"
					      "	jmp *%r11\n",
					      "") ADDRESSES;

	ck_assert_uint_eq(entries_led(FIXED, source), 0);
}

TEST(form_somebody_else_reads_the_table)
{
	static const char source[] = FUNCTION("3",
					      "	mov T(,%rsi,8), %rbx\n"
					      "	jmp *T(,%rax,8)\n",
					      "") ADDRESSES;

	ck_assert_uint_eq(entries_led(FIXED, source), 0);
}

TEST(form_somebody_names_the_middle)
{
	static const char source[] = FUNCTION("3",
					      "	mov T+16, %rbx\n"
					      "	jmp *T(,%rax,8)\n",
					      "") ADDRESSES;

	ck_assert_uint_eq(entries_led(FIXED, source), 0);
}

TEST(form_a_label_is_taken_by_an_operand)
{
	static const char source[] = FUNCTION("3",
					      "	mov $L2, %ebx\n"
					      "	jmp *T(,%rax,8)\n",
					      "") ADDRESSES;

	ck_assert_uint_eq(entries_led(FIXED, source), 0);
}

TEST(form_offsets)
{
	static const char source[] = FUNCTION("3",
					      "	lea T(%rip), %rdx\n"
					      "	movslq (%rdx,%rax,4), %rax\n"
					      "	add %rdx, %rax\n"
					      "	jmp *%rax\n",
					      "") OFFSETS;

	ck_assert_uint_eq(entries_led(MOVES, source), 4);
}

TEST(form_offsets_from_a_frame_register)
{
	static const char source[] = FUNCTION("3",
					      "	lea T(%rip), %r13\n"
					      "	movslq (%r13,%rax,4), %rax\n"
					      "	add %r13, %rax\n"
					      "	notrack jmp *%rax\n",
					      "") OFFSETS;

	ck_assert_uint_eq(entries_led(MOVES, source), 4);
}

/* Without a bound, the end of the offsets is not known. */
TEST(form_offsets_without_a_bound)
{
	static const char source[] = FUNCTION("3",
					      "	mov (%rsi), %eax\n"
					      "	lea T(%rip), %rdx\n"
					      "	movslq (%rdx,%rax,4), %rax\n"
					      "	add %rdx, %rax\n"
					      "	jmp *%rax\n",
					      "") OFFSETS;

	ck_assert_uint_eq(entries_led(MOVES, source), 0);
}

TEST(form_offsets_read_as_numbers_too)
{
	static const char source[] = FUNCTION("3",
					      "	lea T(%rip), %rdi\n"
					      "	mov (%rdi), %ebx\n"
					      "	lea T(%rip), %rdx\n"
					      "	movslq (%rdx,%rax,4), %rax\n"
					      "	add %rdx, %rax\n"
					      "	jmp *%rax\n",
					      "") OFFSETS;

	ck_assert_uint_eq(entries_led(MOVES, source), 0);
}
