// SPDX-License-Identifier: Apache-2.0
/* test_copy - the bytes of moved code, decoded instruction by instruction. */
#include "tests/unit/suite.h"

#include "tests/unit/edit_fixture.h"

#define START ".globl start\nstart: .cfi_startproc\n hlt\n .cfi_endproc\n"
#define FUNC(name, body)                                                                           \
	".type " name ", @function\n" name ": .cfi_startproc\n" body " .cfi_endproc\n"             \
	".size " name ", .-" name "\n"
#define ASM "-nostdlib -Wl,-e,start"

static void write_copies(struct fixture *f)
{
	fixture_place(f);
	ck_assert_msg(fixture_copy(f, &err) == 0, "%s", err.msg);
}

FIXTURE(NULL, fixture_done);

TEST(copy_keeps_what_rip_relative_operands_name)
{
	struct mp_insn insn;
	uint64_t at, x;

	fixture_build(
		&f, "assembler", ASM,
		START FUNC(
			"f",
			" mov x(%rip), %eax\n movl $0x11223344, x+4(%rip)\n"
			" cmpb $7, x+1(%rip)\n movsd x+8(%rip), %xmm0\n ret\n") ".data\nx: .quad 0, 0\n");
	x = fixture_vaddr(&f, "x");
	fixture_plan_all(&f, "f");
	write_copies(&f);
	at = f.placement.base;
	insn = fixture_insn(&f, at);
	ck_assert_uint_eq(insn.target, x);
	insn = fixture_insn(&f, at += insn.len);
	ck_assert_uint_eq(insn.target, x + 4);
	ck_assert_uint_eq(insn.imm_size, 4);
	ck_assert_mem_eq(f.text + (at - f.placement.base) + insn.imm_off, "\x44\x33\x22\x11", 4);
	insn = fixture_insn(&f, at += insn.len);
	ck_assert_uint_eq(insn.target, x + 1);
	insn = fixture_insn(&f, at += insn.len);
	ck_assert_uint_eq(insn.target, x + 8);
	insn = fixture_insn(&f, at + insn.len);
	ck_assert_uint_eq(insn.kind, MP_INSN_RET);
}

TEST(copy_leads_calls_to_copies_and_others_to_old_code)
{
	struct mp_insn insn;
	uint64_t at;

	fixture_build(
		&f, "assembler", ASM,
		START FUNC("moved", " ret\n") FUNC("stays", " ret\n") FUNC(
			"f",
			" call moved\n call stays\n call *x(%rip)\n call *%rax\n ret\n") ".data\nx: .quad 0\n");
	fixture_plan_all(&f, "f");
	fixture_plan_all(&f, "moved");
	write_copies(&f);
	at = f.placement.base;
	insn = fixture_insn(&f, at);
	ck_assert_uint_eq(insn.kind, MP_INSN_CALL);
	ck_assert_uint_eq(insn.target, fixture_copy_of(&f, "moved", 0)->new_vaddr);
	insn = fixture_insn(&f, at += insn.len);
	ck_assert_uint_eq(insn.target, fixture_vaddr(&f, "stays"));
	insn = fixture_insn(&f, at += insn.len);
	ck_assert_uint_eq(insn.kind, MP_INSN_ICALL);
	ck_assert_uint_eq(insn.target, fixture_vaddr(&f, "x"));
	insn = fixture_insn(&f, at + insn.len);
	ck_assert_uint_eq(insn.kind, MP_INSN_ICALL);
	ck_assert_uint_eq(insn.len, 2);
}

/* All sixteen conditions, copied so that each is inverted or not, and short or long. */
TEST(copy_writes_every_condition_both_ways_and_in_both_lengths)
{
	static const char *const names[] = {"o", "no", "b", "ae", "e", "ne", "be", "a",
					    "s", "ns", "p", "np", "l", "ge", "le", "g"};

	for (int far = 0; far < 2; far++) {
		char source[4096];
		struct fixture f;
		size_t n;

		n = (size_t)sprintf(source, START ".type f, @function\nf: .cfi_startproc\n");
		for (int i = 0; i < 16; i++)
			n += (size_t)sprintf(source + n, " j%s 1f\n", names[i]);
		sprintf(source + n, " .fill %d, 1, 0x90\n1: ret\n .cfi_endproc\n.size f, .-f\n",
			far ? 200 : 20);
		fixture_build(&f, "assembler", ASM, source);
		ck_assert_uint_eq(f.cfg->funcs[fixture_func(&f, "f")].nr_blocks, 18);
		for (uint32_t i = 0; i < 18; i++)
			fixture_plan(&f, "f", 17 - i);
		for (uint32_t i = 0; i < 18; i++)
			f.plan.blocks[i].favour_fall = i & 1;
		write_copies(&f);
		for (uint32_t i = 0; i < 16; i++) {
			const struct me_copy *c = fixture_copy_of(&f, "f", i);
			struct mp_insn jcc = fixture_insn(&f, c->new_vaddr), jmp;
			uint64_t fall = fixture_copy_of(&f, "f", i + 1)->new_vaddr;
			uint64_t taken = fixture_copy_of(&f, "f", 17)->new_vaddr;
			/* Block i is number 17 - i of the plan. */
			bool invert = (17 - i) & 1;

			ck_assert_uint_eq(jcc.kind, MP_INSN_COND);
			ck_assert_uint_eq(jcc.cc, i ^ invert);
			ck_assert_uint_eq(jcc.target, invert ? fall : taken);
			jmp = fixture_insn(&f, c->new_vaddr + jcc.len);
			ck_assert_uint_eq(jmp.kind, MP_INSN_JUMP);
			ck_assert_uint_eq(jmp.target, invert ? taken : fall);
			ck_assert_uint_eq(c->new_size, jcc.len + jmp.len);
		}
		fixture_free(&f);
	}
}

TEST(copy_pads_with_traps_unless_control_runs_through)
{
	static const char source[] =
		START FUNC("f", " test %edi, %edi\n je 1f\n nop\n nop\n1: ret\n")
			FUNC("g", " ret\n");
	uint64_t gap, end;

	fixture_build(&f, "assembler", ASM, source);
	fixture_plan(&f, "f", 0);
	fixture_plan(&f, "f", 1)->align_log2 = 6;
	fixture_plan(&f, "f", 2);
	fixture_plan(&f, "g", 0)->align_log2 = 5;
	write_copies(&f);
	/* Between blocks 0 and 1 there are only no-ops. */
	gap = f.placement.copies[0].new_vaddr + f.placement.copies[0].new_size;
	end = f.placement.copies[1].new_vaddr;
	ck_assert_uint_eq(end - gap, 60);
	while (gap < end) {
		struct mp_insn insn = fixture_insn(&f, gap);

		ck_assert(insn.nop);
		gap += insn.len;
	}
	ck_assert_uint_eq(gap, end);
	/* Behind the return, no code may run. */
	gap = f.placement.copies[2].new_vaddr + f.placement.copies[2].new_size;
	ck_assert_uint_gt(f.placement.copies[3].new_vaddr, gap);
	for (; gap < f.placement.copies[3].new_vaddr; gap++)
		ck_assert_uint_eq(f.text[gap - f.placement.base], 0xcc);
}

TEST(copy_pads_by_every_length_of_nop)
{
	fixture_build(&f, "assembler", ASM,
		      START FUNC("f", " test %edi, %edi\n je 1f\n nop\n1: ret\n"));
	fixture_plan(&f, "f", 0);
	fixture_plan(&f, "f", 1)->align_log2 = 5;
	fixture_plan(&f, "f", 2);
	for (uint64_t shift = 0; shift < 32; shift++) {
		uint64_t at, end;

		fixture_place_at(&f, fixture_base(&f) + shift);
		ck_assert_int_eq(fixture_copy(&f, &err), 0);
		at = f.placement.copies[0].new_vaddr + f.placement.copies[0].new_size;
		end = f.placement.copies[1].new_vaddr;
		while (at < end) {
			struct mp_insn insn = fixture_insn(&f, at);

			ck_assert_msg(insn.nop, "shift %u", (unsigned int)shift);
			at += insn.len;
		}
		ck_assert_uint_eq(at, end);
	}
}

TEST(copy_refuses_a_segment_that_displacements_do_not_reach)
{
	fixture_build(&f, "assembler", ASM,
		      START FUNC("f", " mov x(%rip), %eax\n ret\n") ".data\nx: .quad 0\n");
	fixture_plan_all(&f, "f");
	fixture_place_at(&f, UINT64_C(1) << 32);
	ck_assert_int_eq(fixture_copy(&f, &err), -ERANGE);
	ck_assert_ptr_nonnull(strstr(err.msg, "cannot reach"));
}

TEST(copy_refuses_far_branches_to_old_code)
{
	fixture_build(&f, "assembler", ASM,
		      START FUNC("f", " test %edi, %edi\n je 1f\n nop\n1: ret\n"));
	fixture_plan(&f, "f", 0);
	fixture_place_at(&f, UINT64_C(1) << 32);
	ck_assert_int_eq(fixture_copy(&f, &err), -ERANGE);
}

TEST(copy_changes_operands_that_hold_a_moved_function)
{
	static const char source[] = START FUNC("g", " ret\n")
		FUNC("f", " lea g(%rip), %rax\n mov $g, %edi\n push $g\n pop %rcx\n ret\n");
	struct mp_insn insn;
	uint64_t at, copy;
	uint32_t value;

	fixture_build(&f, "assembler", ASM " -no-pie -static", source);
	fixture_plan_all(&f, "f");
	fixture_plan_all(&f, "g");
	fixture_redirect(&f);
	ck_assert_uint_eq(f.plan.redirects.functions[fixture_func(&f, "g")] != 0, 1);
	write_copies(&f);
	copy = fixture_copy_of(&f, "g", 0)->new_vaddr;
	at = f.placement.base;
	insn = fixture_insn(&f, at);
	ck_assert(insn.rip_relative);
	ck_assert_uint_eq(insn.target, copy);
	insn = fixture_insn(&f, at += insn.len);
	memcpy(&value, f.text + (at - f.placement.base) + insn.imm_off, 4);
	ck_assert_uint_eq(value, copy);
	insn = fixture_insn(&f, at + insn.len);
	memcpy(&value, f.text + (at + 5 - f.placement.base) + insn.imm_off, 4);
	ck_assert_uint_eq(value, copy);
}

TEST(copy_puts_rel32_only_where_it_fits)
{
	uint8_t field[4] = {1, 2, 3, 4};
	int32_t value;

	ck_assert(me_put_rel32(field, 0x1000, 0x1000 + INT64_C(0x7fffffff)));
	memcpy(&value, field, 4);
	ck_assert_int_eq(value, INT32_MAX);
	ck_assert(!me_put_rel32(field, 0x1000, 0x1000 + INT64_C(0x80000000)));
	memcpy(&value, field, 4);
	ck_assert_int_eq(value, INT32_MAX);
	ck_assert(me_put_rel32(field, UINT64_C(0x80000000), 0));
	memcpy(&value, field, 4);
	ck_assert_int_eq(value, INT32_MIN);
	ck_assert(!me_put_rel32(field, UINT64_C(0x80000001), 0));
}
