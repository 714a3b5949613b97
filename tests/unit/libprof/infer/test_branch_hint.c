// SPDX-License-Identifier: Apache-2.0
/*
 * test_branch_hint - the features that are found at a branch, and the kinds of waits of
 * instructions.
 */

#include "libprof/infer/branch_hint.h"
#include "libprof/infer/insn_latency.h"
#include "tests/unit/suite.h"
#include "tests/support/toycfg.h"

static struct toy toy;
static uint32_t nr_in[TOY_MAX + 1];
static uint16_t depth[TOY_MAX + 1];
static struct mp_func_shape shape = {.nr_in = nr_in, .depth = depth};

static uint32_t seen(uint32_t block)
{
	mp_func_shape_fill(&toy.cfg, &toy.funcs[0], &shape);
	return mp_branch_evidence_find(&toy.cfg, &shape, block).seen;
}

static bool sees(uint32_t block, enum mp_branch_evidence_kind kind)
{
	return seen(block) >> kind & 1;
}

TEST(hint_sees_an_if_without_else)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 1}, {MP_TERM_FALL, 1}, {MP_TERM_RET, 1});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 1}, {0, 2, MP_EDGE_TAKEN, 0}, {1, 2, MP_EDGE_FALL, 1});
	toy_finish(&toy);
	ck_assert(sees(0, MP_EVIDENCE_SKIP) && !sees(0, MP_EVIDENCE_ASIDE));
	ck_assert(sees(0, MP_EVIDENCE_RETURNS) && !sees(0, MP_EVIDENCE_FALL_RETURNS));
	ck_assert(sees(0, MP_EVIDENCE_SHARED) && !sees(0, MP_EVIDENCE_FALL_SHARED));
	ck_assert(!sees(0, MP_EVIDENCE_BACK) && !sees(0, MP_EVIDENCE_FAR));
}

TEST(hint_sees_what_lies_aside)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 1}, {MP_TERM_RET, 1}, {MP_TERM_JUMP, 1});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 1}, {0, 2, MP_EDGE_TAKEN, 0}, {2, 1, MP_EDGE_JUMP, 0});
	toy_call(&toy, 2, 0);
	toy_finish(&toy);
	mp_block_set_target(&toy.blocks[2], toy.blocks[1].vaddr);
	ck_assert(sees(0, MP_EVIDENCE_ASIDE) && !sees(0, MP_EVIDENCE_SKIP));
	ck_assert(sees(0, MP_EVIDENCE_CALLS) && !sees(0, MP_EVIDENCE_FALL_CALLS));
	ck_assert(sees(0, MP_EVIDENCE_LOOPS));
	toy.blocks[2].flags |= MP_BLOCK_COLD_PART;
	ck_assert(sees(0, MP_EVIDENCE_ENDS_COLD));
	/* The edges may be in either order. */
	toy.edges[0] = (struct mp_edge){0, 2, MP_EDGE_TAKEN};
	toy.edges[1] = (struct mp_edge){0, 1, MP_EDGE_FALL};
	ck_assert(sees(0, MP_EVIDENCE_ASIDE) && sees(0, MP_EVIDENCE_ENDS_COLD));
}

/* 0 enters; loop: 1 -> 2, or out to 3; 2 -> 1. */
TEST(hint_sees_loops)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 1}, {MP_TERM_COND, 9}, {MP_TERM_COND, 9},
		   {MP_TERM_TRAP, 1});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 1}, {0, 3, MP_EDGE_TAKEN, 0}, {1, 2, MP_EDGE_FALL, 8},
		  {1, 3, MP_EDGE_TAKEN, 1}, {2, 3, MP_EDGE_FALL, 1}, {2, 1, MP_EDGE_TAKEN, 8});
	toy_finish(&toy);
	ck_assert(sees(0, MP_EVIDENCE_FALL_ENTERS) && !sees(0, MP_EVIDENCE_ENTERS));
	ck_assert(sees(1, MP_EVIDENCE_LEAVES) && !sees(1, MP_EVIDENCE_FALL_LEAVES));
	ck_assert(sees(1, MP_EVIDENCE_ENDS_COLD) && !sees(1, MP_EVIDENCE_FALL_ENDS_COLD));
	ck_assert(sees(2, MP_EVIDENCE_BACK) && sees(2, MP_EVIDENCE_FALL_LEAVES));
	/* A way that never returns is unlikely, whatever its other features. */
	ck_assert(mp_branch_hint(mp_branch_evidence_find(&toy.cfg, &shape, 1)) < -1);
}

TEST(hint_knows_comparisons)
{
	static const struct {
		enum mp_compared is;
		uint8_t len, bytes[8];
	} cases[] = {
		{MP_COMPARED_NULL, 3, {0x48, 0x85, 0xc0}},	   /* test %rax, %rax */
		{MP_COMPARED_ZERO, 2, {0x85, 0xc0}},		   /* test %eax, %eax */
		{MP_COMPARED_BITS, 2, {0x85, 0xc8}},		   /* test %ecx, %eax */
		{MP_COMPARED_BITS, 4, {0xf6, 0x40, 0x0c, 0x01}},   /* testb $1, 12(%rax) */
		{MP_COMPARED_BITS, 2, {0xa8, 0x04}},		   /* test $4, %al */
		{MP_COMPARED_NUMBER, 3, {0x83, 0xf8, 0x05}},	   /* cmp $5, %eax */
		{MP_COMPARED_ZERO, 4, {0x83, 0x7d, 0xfc, 0x00}},   /* cmpl $0, -4(%rbp) */
		{MP_COMPARED_NULL, 4, {0x48, 0x83, 0x3f, 0x00}},   /* cmpq $0, (%rdi) */
		{MP_COMPARED_OTHER, 3, {0x48, 0x39, 0xd8}},	   /* cmp %rbx, %rax */
		{MP_COMPARED_NUMBER, 5, {0x3d, 0x00, 0x01, 0, 0}}, /* cmp $256, %eax */
		{MP_COMPARED_RESULT, 4, {0x48, 0x83, 0xe8, 0x01}}, /* sub $1, %rax */
		{MP_COMPARED_RESULT, 2, {0x21, 0xd8}},		   /* and %ebx, %eax */
		{MP_COMPARED_UNKNOWN, 3, {0x48, 0x89, 0xc3}},	   /* mov %rax, %rbx */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(mp_insn_compares(cases[i].bytes, cases[i].len) == cases[i].is,
			      "case %zu", i);
}

TEST(waits_are_told_by_opcode_and_operand)
{
	static const struct {
		enum mp_latency is;
		uint8_t bytes[10];
	} cases[] = {
		{MP_LATENCY_LOAD, {0x48, 0x8b, 0x07}},		     /* mov (%rdi), %rax */
		{MP_LATENCY_MOVE, {0x48, 0x8b, 0xc7}},		     /* mov %rdi, %rax */
		{MP_LATENCY_STORE, {0x48, 0x89, 0x07}},		     /* mov %rax, (%rdi) */
		{MP_LATENCY_LOAD, {0x0f, 0xb6, 0x07}},		     /* movzbl (%rdi), %eax */
		{MP_LATENCY_LOAD_USE, {0x48, 0x3b, 0x07}},	     /* cmp (%rdi), %rax */
		{MP_LATENCY_LOAD_USE, {0x39, 0x07}},		     /* cmp %eax, (%rdi) */
		{MP_LATENCY_MODIFY, {0x01, 0x07}},		     /* add %eax, (%rdi) */
		{MP_LATENCY_MODIFY, {0x83, 0x07, 0x01}},	     /* addl $1, (%rdi) */
		{MP_LATENCY_LOAD_USE, {0x83, 0x3f, 0x01}},	     /* cmpl $1, (%rdi) */
		{MP_LATENCY_PLAIN, {0x01, 0xc7}},		     /* add %eax, %edi */
		{MP_LATENCY_PLAIN, {0x48, 0x8d, 0x47, 0x08}},	     /* lea 8(%rdi), %rax */
		{MP_LATENCY_MOVE, {0x85, 0xc0}},		     /* test %eax, %eax */
		{MP_LATENCY_PUSH, {0x41, 0x57}},		     /* push %r15 */
		{MP_LATENCY_POP, {0x5d}},			     /* pop %rbp */
		{MP_LATENCY_CALL, {0xe8, 0, 0, 0, 0}},		     /* call */
		{MP_LATENCY_CALL, {0xff, 0xd0}},		     /* call *%rax */
		{MP_LATENCY_PUSH, {0xff, 0x37}},		     /* push (%rdi) */
		{MP_LATENCY_DIVIDE, {0xf7, 0xf1}},		     /* div %ecx */
		{MP_LATENCY_LOCKED, {0xf0, 0x48, 0x0f, 0xb1, 0x0f}}, /* lock cmpxchg */
		{MP_LATENCY_LOAD, {0xf3, 0x0f, 0x6f, 0x07}},	     /* movdqu (%rdi), %xmm0 */
		{MP_LATENCY_STORE, {0x0f, 0x11, 0x07}},		     /* movups %xmm0, (%rdi) */
		{MP_LATENCY_VECTOR, {0x66, 0x0f, 0xef, 0xc0}},	     /* pxor %xmm0, %xmm0 */
		{MP_LATENCY_BRANCH, {0x74, 0x10}},		     /* je */
		{MP_LATENCY_MOVE, {0x0f, 0x1f, 0x00}},		     /* nop */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mp_insn insn;

		ck_assert_int_eq(mp_insn_decode(cases[i].bytes, sizeof(cases[i].bytes), 0, &insn),
				 0);
		ck_assert_msg(mp_insn_latency(cases[i].bytes, &insn) == cases[i].is, "case %zu: %d",
			      i, mp_insn_latency(cases[i].bytes, &insn));
	}
}

TEST(waits_cost_something)
{
	for (int w = 0; w < MP_NR_LATENCIES; w++)
		ck_assert(mp_latency_cost((enum mp_latency)w) > 0);
	ck_assert(mp_latency_cost(MP_LATENCY_LOAD) > mp_latency_cost(MP_LATENCY_PLAIN));
}
