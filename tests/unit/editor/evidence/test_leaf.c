// SPDX-License-Identifier: Apache-2.0
/* test_leaf - which functions may stand in place of a call, and in which functions calls may be replaced. */
#include "editor/evidence/leaf.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/compile.h"
#include "tests/unit/suite.h"

#define FUNCTION(name, code)                                                                       \
	".globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n" code             \
	"\n.cfi_endproc\n.size " name ", .-" name "\n"

/* Each function named leaf_... may replace a call, each named other_... may not. */
static const char source[] = ".text\n" FUNCTION("leaf_plain", "lea (%rdi,%rsi), %eax; ret") FUNCTION(
	"leaf_nothing",
	"ret") FUNCTION("leaf_landing",
			"endbr64; ret") FUNCTION("leaf_rep",
						 "mov %edi, %eax; rep ret") FUNCTION("leaf_data",
										     "endbr64; mov data(%rip), %rax; add $1, data(%rip); ret")
	FUNCTION("leaf_vector", "movaps %xmm0, %xmm1; pxor %xmm0, %xmm0; cvtsi2sd %edi, %xmm0; ret") FUNCTION(
		"leaf_frame_pointer",
		"mov (%rbp), %rax; ret") FUNCTION("leaf_lock",
						  "lock xadd %eax, (%rdi); ret") FUNCTION("leaf_string",
											  "mov %rdx, %rcx; rep movsb; ret")
		FUNCTION("other_pop", "ret $8") FUNCTION("other_bnd", "bnd ret") FUNCTION(
			"other_argument",
			"mov 8(%rsp), %rax; ret") FUNCTION("other_return_address",
							   "mov (%rsp), %rax; ret") FUNCTION("other_red_zone",
											     "mov %rdi, -8(%rsp); ret")
			FUNCTION("other_stack_pointer", "mov %rsp, %rax; ret") FUNCTION("other_part", "movzbl %spl, %eax; ret") FUNCTION(
				"other_index",
				"lea (%rsp,%rdi), %rax; ret") FUNCTION("other_push",
								       "push %rbx; pop %rbx; ret") FUNCTION("other_flags", "pushf; pop %rax; ret")
				FUNCTION("other_leave", "leave; ret") FUNCTION("other_call", "call leaf_plain; ret") FUNCTION(
					"other_indirect",
					"call *%rdi; ret") FUNCTION("other_branch",
								    "test %edi, %edi; je 1f; inc %eax; 1: ret")
					FUNCTION("other_loop", "1: dec %edi; jne 1b; ret") FUNCTION(
						"other_tail",
						"jmp leaf_plain") FUNCTION("other_system_call",
									   "mov $56, %eax; syscall; ret") FUNCTION("other_trap",
														   "int3; ret")
						FUNCTION("other_clock", "rdtsc; ret") FUNCTION("other_control", "ldmxcsr (%rdi); xsave (%rsi); ret") FUNCTION(
							"other_shadow",
							"rdsspq %rax; ret") FUNCTION("other_transaction", "xend; ret")
							FUNCTION("other_self", "lea other_self(%rip), %rax; ret") FUNCTION(
								"other_middle",
								"lea 1f(%rip), %rax; 1: ret") FUNCTION("other_row",
												       ".cfi_adjust_cfa_offset 8; mov %edi, %eax; .cfi_adjust_cfa_offset -8; ret")
								FUNCTION("other_wrong_row", ".cfi_def_cfa %rdi, 8; mov %edi, %eax; ret") FUNCTION(
									"other_signal",
									".cfi_signal_frame; mov %edi, %eax; ret")
									FUNCTION("other_large", ".rept 14; movabs $0x1122334455667788, %rax; .endr; ret") FUNCTION(
										"caller_plain",
										"sub $24, %rsp; .cfi_adjust_cfa_offset 24; mov %rdi, 8(%rsp); call leaf_plain; "
										"add $24, %rsp; .cfi_adjust_cfa_offset -24; ret")
										FUNCTION(
											"caller_push",
											"push %rbx; .cfi_adjust_cfa_offset 8; call leaf_plain; pop %rbx; "
											".cfi_adjust_cfa_offset -8; ret")
											FUNCTION("keeper_reads", "call leaf_plain; mov -8(%rsp), %rax; ret") FUNCTION(
												"keeper_writes",
												"movb $1, -100(%rsp); call leaf_plain; ret")
												FUNCTION(
													"keeper_names",
													"lea -8(%rsp), %rdi; call leaf_plain; ret")
													FUNCTION(
														"keeper_index",
														"call leaf_plain; mov (%rsp,%rdi), %rax; ret") ".data\n"
																			       "data: .quad 0\n"
																			       ".globl main\n"
																			       ".text\n" FUNCTION(
																				       "main",
																				       "ret") ".section .note.GNU-stack, \"\", @progbits\n";

static struct mp_elf *open_program(char *path)
{
	char name[256];
	struct mp_elf *elf;
	struct mp_err err;
	const char *dir = getenv("TMPDIR");
	FILE *f;

	snprintf(name, sizeof(name), "%s/morph-leaf-%d.s", dir ? dir : "/tmp", (int)getpid());
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs(source, f);
	fclose(f);
	ck_assert_int_eq(compile_run("gcc", "-pie -w", name, path), 0);
	unlink(name);
	ck_assert_int_eq(mp_elf_open(path, MP_ELF_ALL, &elf, &err), 0);
	return elf;
}

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

START_TEST(leaf_knows_which_functions_may_replace_calls)
{
	const struct mp_cfg_options options = {0};
	uint32_t nr[4] = {0};
	char path[256];
	struct mp_elf *elf = open_program(path);
	struct mp_cfg *cfg;
	struct mp_err err;

	ck_assert_int_eq(mp_cfg_build(elf, &options, &cfg, &err), 0);
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const char *name = cfg->funcs[f].name;
		struct me_leaf leaf;

		if (starts_with(name, "leaf_")) {
			ck_assert_msg(me_leaf_find(cfg, f, &leaf), "%s", name);
			ck_assert_uint_eq(leaf.func, f);
			ck_assert_msg(leaf.size == 0 || !strstr(name, "nothing"), "%s", name);
			nr[0]++;
		} else if (starts_with(name, "other_")) {
			ck_assert_msg(!me_leaf_find(cfg, f, &leaf), "%s", name);
			nr[1]++;
		} else if (starts_with(name, "caller_")) {
			ck_assert_msg(me_leaf_caller(cfg, f), "%s", name);
			nr[2]++;
		} else if (starts_with(name, "keeper_")) {
			ck_assert_msg(!me_leaf_caller(cfg, f), "%s", name);
			nr[3]++;
		}
	}
	ck_assert_uint_eq(nr[0], 9);
	ck_assert_uint_eq(nr[1], 28);
	ck_assert_uint_eq(nr[2], 2);
	ck_assert_uint_eq(nr[3], 4);
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	unlink(path);
}
END_TEST

START_TEST(leaf_has_neither_landing_nor_return)
{
	const struct mp_cfg_options options = {0};
	char path[256];
	struct mp_elf *elf = open_program(path);
	struct mp_cfg *cfg;
	struct mp_err err;

	ck_assert_int_eq(mp_cfg_build(elf, &options, &cfg, &err), 0);
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		struct me_leaf leaf;

		if (!starts_with(func->name, "leaf_"))
			continue;
		ck_assert(me_leaf_find(cfg, f, &leaf));
		ck_assert_uint_eq(leaf.vaddr - func->vaddr,
				  strstr(func->name, "landing") || strstr(func->name, "data") ? 4
											      : 0);
		ck_assert_uint_eq(leaf.return_size, strstr(func->name, "rep") ? 2 : 1);
		ck_assert_uint_eq(leaf.vaddr + leaf.size + leaf.return_size - func->vaddr,
				  func->size);
	}
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	unlink(path);
}
END_TEST

static Suite *leaf_suite(void)
{
	Suite *suite = suite_create("leaf");
	TCase *tc = tcase_create("leaf");

	tcase_add_test(tc, leaf_knows_which_functions_may_replace_calls);
	tcase_add_test(tc, leaf_has_neither_landing_nor_return);
	suite_add_tcase(suite, tc);
	return suite;
}

MORPH_SUITE_MAIN(leaf_suite)
