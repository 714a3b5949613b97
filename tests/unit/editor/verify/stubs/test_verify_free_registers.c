// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_free_registers - which registers may be overwritten at a label in hand-written
 * functions.
 */
#include "tests/unit/suite.h"

#include "editor/optimize/optimize.h"
#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/code/verify_scan.h"
#include "editor/verify/read/verify_eh.h"
#include "editor/verify/stubs/verify_free_registers.h"
#include "editor/verify/stubs/verify_graph.h"
#include "tests/support/compile.h"
#include "tests/unit/edit_fixture.h"

#define FUNCTION(name, body)                                                                       \
	"	.globl " name "\n	.type " name ", @function\n" name                          \
	":\n	.cfi_startproc\n" body "	.cfi_endproc\n	.size " name ", .-" name "\n"

/* A label that is tested. */
#define AT(name) "	.globl at_" name "\nat_" name ":\n"

static const char source[] = "	.text\n" FUNCTION(
	"leaf", "	xor %r11d, %r11d\n" AT("overwritten") "	mov %edi, %r11d\n"
							      "	mov %r11d, %eax\n" AT(
								      "unused") "	ret\n")
	FUNCTION(
		"parts",
		"	xor %ecx, %ecx\n" AT(
			"byte_set") "	mov $1, %cl\n"
				    "	movzbl %cl, %eax\n	ret\n" AT("byte_kept") "	mov $1, %cl\n	mov %ecx, %eax\n	ret\n" AT("conditional") "	cmove %edi, %ecx\n	mov %ecx, %eax\n	ret\n" AT("no_bit") "	bsf %edi, %ecx\n	mov %ecx, %eax\n	ret\n" AT(
					    "zeroed") "	xor %ecx, %ecx\n	mov %ecx, %eax\n	ret\n" AT("all_ones") "	or $-1, %ecx\n	mov %ecx, %eax\n	ret\n" AT("exchanged") "	xchg %ecx, %edi\n	mov %edi, %eax\n	ret\n")
		FUNCTION(
			"implicit",
			"	xor %r11d, %r11d\n	xor %ecx, %ecx\n	xor %edx, %edx\n" AT("multiplied") "	mul %rdi\n	ret\n" AT("divided") "	div %rdi\n	ret\n" AT(
				"repeated") "	rep movsb\n	xor %eax, %eax\n	ret\n" AT("identified") "	cpuid\n	xor %eax, %eax\n	ret\n" AT("called_kernel") "	syscall\n	ret\n")
	/* Its caller uses a third result. */
	FUNCTION("three_results", "	test %edi, %edi\n	je 1f\n	mov $3, %esi\n" AT(
					  "third_result") "	ret\n1:	mov $4, %esi\n	ret\n")
		FUNCTION("takes_three",
			 "	call three_results\n	add %esi, %eax\n	ret\n")
	/* Its caller relies on a register that it does not change. */
	FUNCTION("changes_little", AT("relied_on") "	lea 1(%rdi), %eax\n	ret\n")
		FUNCTION("relies", "	mov %edi, %r11d\n	call changes_little\n"
				   "	add %r11d, %eax\n	ret\n")
	/* A result is passed on by a jump. */
	FUNCTION("jumps", "	jmp three_results\n")
	/* An argument that the ABI does not have. */
	FUNCTION("hidden", "	lea (%r11,%rdi), %rax\n	xor %r11d, %r11d\n	ret\n")
		FUNCTION("passes", "	mov $7, %r11d\n	xor %edi, %edi\n" AT(
					   "hidden_argument") "	call hidden\n	ret\n")
	/* Neither saved nor restored: a caller's frame has it. */
	FUNCTION("no_way_back", "	sub $8, %rsp\n	.cfi_adjust_cfa_offset 8\n" AT(
					"not_saved") "	call abort@plt\n")
		FUNCTION(
			"saves",
			"	push %rbx\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset rbx, -16\n"
			"	xor %edi, %edi\n" AT(
				"saved") "	call puts@plt\n	pop %rbx\n"
					 "	.cfi_adjust_cfa_offset -8\n	.cfi_restore rbx\n" AT(
						 "restored") "	ret\n")
	/* Saves registers that it need not save, for callers that rely on it. */
	FUNCTION("keeps_all", "	test %edi, %edi\n	je 1f\n	push %r11\n"
			      "	.cfi_adjust_cfa_offset 8\n	call puts@plt\n	pop %r11\n"
			      "	.cfi_adjust_cfa_offset -8\n	ret\n"
			      "1:\n" AT("kept") "	ret\n")
		FUNCTION(
			"asks_descriptor",
			"	xor %r11d, %r11d\n	mov %edi, %r11d\n	lea 8(%rsp), %rax\n" AT(
				"over_descriptor") "	call *(%rax)\n	add %r11d, %eax\n	ret\n")
			FUNCTION("returns_elsewhere",
				 "	xor %r11d, %r11d\n	push %rdi\n" AT(
					 "elsewhere") "	push %rsi\n	ret\n")
				FUNCTION(
					"main",
					"	ret\n") "	.section .note.GNU-stack, \"\", @progbits\n";

struct asked {
	const char *label;
	unsigned int reg;
	bool dead;
};

enum {
	RAX,
	RCX,
	RDX,
	RBX,
	RSP,
	RBP,
	RSI,
	RDI,
	R8,
	R9,
	R10,
	R11
};

static const struct asked asked[] = {
	{"overwritten", R11, true},
	{"overwritten", RDI, false},
	{"overwritten", RSP, false},
	{"overwritten", RBP, false},
	{"overwritten", RBX, false},
	{"unused", R11, true},
	{"unused", RAX, false},
	{"unused", R9, false},	 /* the function does not change it */
	{"byte_set", RCX, true}, /* the rest of it is never read */
	{"byte_kept", RCX, false},
	{"conditional", RCX, false},
	{"no_bit", RCX, false},
	{"zeroed", RCX, true},
	{"all_ones", RCX, true},
	{"exchanged", RCX, false},
	{"multiplied", RDX, true},
	{"multiplied", RAX, false},
	{"divided", RDX, false},
	{"repeated", RCX, false},
	{"repeated", RDI, false},
	{"identified", RCX, false},
	{"identified", RAX, false},
	{"called_kernel", RCX, true},
	{"called_kernel", R11, true},
	{"called_kernel", R10, false},
	{"third_result", RSI, false},
	{"relied_on", R11, false},
	{"hidden_argument", R11, false},
	{"not_saved", RBX, false},
	{"saved", RBX, true},
	{"restored", RBX, false},
	{"kept", R11, false},
	{"over_descriptor", R11, false},
	{"elsewhere", R11, false},
};

static uint64_t address_of(const struct mp_elf *elf, const char *label)
{
	char name[64];

	snprintf(name, sizeof(name), "at_%s", label);
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (elf->symbols[i].name && !strcmp(elf->symbols[i].name, name))
			return elf->symbols[i].vaddr;
	ck_abort_msg("no %s", name);
	return 0;
}

/* Does what me_verify() does before it checks registers. */
static void open_vf(struct vf *vf, struct fixture *f, struct mp_err *err)
{
	const struct mp_elf *elf = f->elf;

	*vf = (struct vf){.o = elf, .n = elf, .err = err, .nr_threads = 1};
	vf->result = calloc(1, sizeof(*vf->result));
	vf->marks = calloc(1, sizeof(*vf->marks));
	ck_assert(vf->result && vf->marks);
	vf->old.text_start = vf->old.image_start = UINT64_MAX;
	for (uint32_t i = 0; i < elf->nr_sections; i++) {
		const struct mp_section *sec = &elf->sections[i];
		uint64_t end = sec->vaddr + sec->size;

		if (!(sec->flags & SHF_ALLOC) || sec->type == SHT_NOBITS || !sec->size)
			continue;
		vf->old.image_start = sec->vaddr < vf->old.image_start ? sec->vaddr
								       : vf->old.image_start;
		vf->old.image_end = end > vf->old.image_end ? end : vf->old.image_end;
		if (!(sec->flags & SHF_EXECINSTR))
			continue;
		vf->old.text_start = sec->vaddr < vf->old.text_start ? sec->vaddr
								     : vf->old.text_start;
		vf->old.text_end = end > vf->old.text_end ? end : vf->old.text_end;
	}
	vf->old.texts[vf->old.nr_texts++] = (struct vf_range){vf->old.text_start, vf->old.text_end};
	ck_assert_msg(vf_eh_read(vf, vf->o, false, &vf->old.eh) == 0, "%s", err->msg);
	ck_assert_msg(vf_scan(vf) == 0, "%s", err->msg);
	ck_assert_int_eq(vf_graph_build(vf), 0);
}

static void close_vf(struct vf *vf)
{
	vf_graph_free(vf);
	vf_eh_fini(&vf->old.eh);
	vf_bits_fini(&vf->old.grid);
	vf_bits_fini(&vf->old.target);
	vf_bits_fini(&vf->old.maybe_address);
	vf_bits_fini(&vf->old.text_ref);
	vf_bits_fini(&vf->old.data_ref);
	vf_bits_fini(&vf->old.word_ref);
	vf_bits_fini(&vf->old.label_word);
	vf_bits_fini(&vf->marks->pointer_kept);
	vf_bits_fini(&vf->marks->pointer_moved);
	free(vf->old.cuts);
	free(vf->old.refs.list);
	free(vf->marks);
	free(vf->result);
}

TEST(registers_are_dead_where_nobody_asks_for_them)
{
	struct mp_err err = {""};
	unsigned int wrong = 0;
	struct fixture f;
	struct vf vf;

	fixture_build(&f, "assembler", "", source);
	open_vf(&vf, &f, &err);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		const struct asked *a = &asked[i];
		bool dead = vf_register_is_dead(&vf, address_of(f.elf, a->label), a->reg);

		if (dead == a->dead)
			continue;
		printf("at_%s: register %u is %s\n", a->label, a->reg, dead ? "dead" : "live");
		wrong++;
	}
	fflush(stdout);
	ck_assert_uint_eq(wrong, 0);
	close_vf(&vf);
	fixture_free(&f);
}

/* 10,000 jumps with 10,000 targets each: no stub is proved over so many ways. */
TEST(verify_refuses_too_many_targets)
{
	char in[256], out[300];
	struct me_optimize_options options = {.input = in,
					      .output = out,
					      .all = true,
					      .counting = {.paths = true, .path = "/nowhere"}};
	struct me_optimize_report report;

	ck_assert_int_eq(
		compile_run("gcc", "-w -no-pie -DMANY=10000", "tests/data/many_jumps.S", in), 0);
	snprintf(out, sizeof(out), "%s.out", in);
	ck_assert_int_ne(me_optimize(&options, &report, &err), 0);
	ck_assert_msg(strstr(err.msg, "too many targets"), "%s", err.msg);
	ck_assert_int_ne(access(out, F_OK), 0);
	me_optimize_report_fini(&report);
	unlink(in);
}
