// SPDX-License-Identifier: Apache-2.0
/* test_free_registers - registers that hold nothing needed, by the ABI and by analysis of
 * the code. */
#include "tests/unit/suite.h"

#include "editor/evidence/free_registers.h"
#include "tests/unit/edit_fixture.h"

enum {
	RAX,
	RCX,
	RDX,
	RBX,
	RSI = 6,
	RDI,
	R8,
	R9,
	R10,
	R11,
	R12,
};

/* An assembler function that looks like a compiler's. */
#define FUNCTION(name, body)                                                                       \
	"	.globl " name "\n	.type " name ", @function\n" name                          \
	":\n	.cfi_startproc\n" body "	.cfi_endproc\n	.size " name ", .-" name "\n"

/* clang-format off */
static const char source[] = "	.text\n"
	/* 0: test+je | 1: mov+ret | 2: mov+ret */
	FUNCTION("leaf",
		 "	test %edi, %edi\n	je 1f\n	mov $2, %ecx\n	mov %ecx, %eax\n	ret\n"
		 "1:	mov $1, %eax\n	ret\n")
	/*
	 * Keeps a value in r9 over a call of a function that does not change it, as compilers
	 * do.
	 */
	FUNCTION("keeps",
		 "	mov $3, %r9d\n	call leaf\n	add %r9d, %eax\n	ret\n")
	/* 0: call | 1: test+je | 2: ret | 3: ret */
	FUNCTION("calls_anybody",
		 "	call *%rdi\n	test %eax, %eax\n	je 1f\n	ret\n1:	ret\n")
	/* r8 is a second result; the last block only reads it and returns. */
	FUNCTION("two_results",
		 "	mov $5, %eax\n	mov $6, %r8d\n	test %edi, %edi\n	je 1f\n"
		 "	mov %r8d, (%rsi)\n1:	nop\n	ret\n")
	FUNCTION("reads_both",
		 "	push %rbx\n	call two_results\n	add %r8d, %eax\n	pop %rbx\n	ret\n")
	/* 0: test+je | 1: mov | 2: nop+ret. r9 is changed, or keeps the caller's value. */
	FUNCTION("in_and_out",
		 "	test %edi, %edi\n	je 1f\n	mov $8, %r9d\n	mov %r9d, (%rsi)\n"
		 "1:	nop\n	ret\n")
	FUNCTION("adds_up",
		 "	push %rbx\n	mov $1, %r9d\n	call in_and_out\n	mov %r9d, %eax\n"
		 "	pop %rbx\n	ret\n")
	/* 0: test+je | 1: ret | 2: call that does not return */
	FUNCTION("may_throw",
		 "	test %edi, %edi\n	je 1f\n	ret\n1:	call abort\n")
	/* r11 is an argument. */
	FUNCTION("odd_argument", "	lea 1(%r11), %rax\n	mov $0, %r11d\n	ret\n")
	/* 0: mov, use, jmp | 1: nop+call | 2: ret */
	FUNCTION("passes",
		 "	mov $7, %r11d\n	add %r11, %rdi\n	jmp 1f\n	nop\n"
		 "1:	nop\n	call odd_argument\n	ret\n")
	/* 0: push+test+je | 1: call | 2: jmp | 3: mov rbx | 4: pop+ret */
	FUNCTION("saves",
		 "	push %rbx\n	.cfi_adjust_cfa_offset 8\n	test %edi, %edi\n	je 1f\n"
		 "	call *%rsi\n	jmp 2f\n1:	mov $1, %ebx\n2:	pop %rbx\n"
		 "	.cfi_adjust_cfa_offset -8\n	ret\n")
	/* The address of a thread-local variable: the call changes only rax. */
	FUNCTION("asks_for_tls",
		 "	mov $4, %ecx\n	jmp 1f\n	nop\n1:	nop\n	call *(%rax)\n"
		 "	add %ecx, %eax\n	ret\n")
	/* 0: jmp | 1: cmov | 2: ret */
	FUNCTION("may_overwrite",
		 "	mov $4, %ecx\n	call *%rsi\n	jmp 1f\n	nop\n"
		 "1:	test %eax, %eax\n	cmove %edi, %ecx\n	mov %ecx, %eax\n	ret\n")
	FUNCTION("overwrites_a_byte",
		 "	call *%rsi\n	jmp 1f\n	nop\n1:	movb $1, %r10b\n"
		 "	mov %r10, %rax\n	ret\n")
	FUNCTION("zeroes",
		 "	call *%rsi\n	jmp 1f\n	nop\n1:	xor %r10d, %r10d\n"
		 "	mov %r10, %rax\n	ret\n")
	FUNCTION("main",
		 "	call keeps\n	call calls_anybody\n	call reads_both\n	call passes\n"
		 "	call adds_up\n	call may_throw\n	call saves\n	call asks_for_tls\n	call may_overwrite\n"
		 "	call overwrites_a_byte\n	call zeroes\n	xor %eax, %eax\n	ret\n")
	"	.section .note.GNU-stack, \"\", @progbits\n";
/* clang-format on */

struct checked {
	struct fixture f;
	struct me_free_registers registers;
	uint8_t *wanted;
};

static void find(struct checked *c)
{
	struct mp_cfg_options options = {.fine = true};

	fixture_build(&c->f, "assembler", "", source);
	mp_cfg_free(c->f.cfg);
	ck_assert_int_eq(mp_cfg_build(c->f.elf, &options, &c->f.cfg, &err), 0);
	c->wanted = calloc(c->f.cfg->nr_funcs + 1, 1);
	ck_assert_ptr_nonnull(c->wanted);
	for (uint32_t i = 0; i < c->f.cfg->nr_funcs; i++)
		c->wanted[i] = c->f.cfg->funcs[i].problem == MP_PROBLEM_NONE;
	ck_assert_msg(me_free_registers_find(c->f.cfg, c->wanted, &c->registers, &err) == 0, "%s",
		      err.msg);
}

static void done(struct checked *c)
{
	me_free_registers_fini(&c->registers);
	free(c->wanted);
	fixture_free(&c->f);
}

static bool is_free(const struct checked *c, const char *name, uint32_t nr, int reg)
{
	return c->registers.free[fixture_block(&c->f, name, nr)] >> reg & 1;
}

TEST(registers_a_leaf_leaves_alone_what_its_callers_may_keep)
{
	struct checked c;

	find(&c);
	ck_assert(!is_free(&c, "leaf", 0, R9));
	ck_assert(!is_free(&c, "leaf", 0, R11));
	ck_assert(is_free(&c, "leaf", 0, RCX)); /* this block overwrites it */
	ck_assert(!is_free(&c, "leaf", 1, RCX));
	ck_assert(is_free(&c, "leaf", 2, RCX));
	done(&c);
}

TEST(registers_are_free_where_anybody_is_called)
{
	struct checked c;

	find(&c);
	ck_assert(is_free(&c, "calls_anybody", 1, R11));
	ck_assert(is_free(&c, "calls_anybody", 1, RCX));
	ck_assert(!is_free(&c, "calls_anybody", 0, RCX)); /* may be an argument */
	ck_assert(is_free(&c, "calls_anybody", 0, R11));
	ck_assert(!is_free(&c, "calls_anybody", 2, RAX));
	ck_assert(!is_free(&c, "calls_anybody", 2, RDX));
	ck_assert(!is_free(&c, "calls_anybody", 2, RBX));
	done(&c);
}

TEST(registers_that_callers_read_are_results)
{
	struct checked c;

	find(&c);
	ck_assert(!is_free(&c, "two_results", 2, R8));
	ck_assert(!is_free(&c, "reads_both", 0, R8)); /* no code shows that calls overwrite it */
	ck_assert(!is_free(&c, "in_and_out", 2, R9));
	done(&c);
}

TEST(registers_that_callees_read_are_arguments)
{
	struct checked c;

	find(&c);
	ck_assert(!is_free(&c, "passes", 1, R11));
	ck_assert(!is_free(&c, "odd_argument", 0, R11));
	done(&c);
}

TEST(registers_that_are_saved_are_free_in_between)
{
	struct checked c;

	find(&c);
	ck_assert(!is_free(&c, "saves", 0, RBX));
	ck_assert(is_free(&c, "saves", 1, RBX));
	ck_assert(is_free(&c, "saves", 2, RBX));
	ck_assert(!is_free(&c, "saves", 3, RBX));
	ck_assert(!is_free(&c, "saves", 4, RBX));
	ck_assert(!is_free(&c, "saves", 1, R12));
	done(&c);
}

TEST(registers_that_nobody_saved_are_the_caller_s)
{
	struct checked c;

	find(&c);
	ck_assert(!is_free(&c, "may_throw", 2, RBX));
	ck_assert(is_free(&c, "may_throw", 2, R11));
	done(&c);
}

TEST(registers_outlive_a_call_that_keeps_them)
{
	struct checked c;

	find(&c);
	ck_assert(!is_free(&c, "asks_for_tls", 1, RCX));
	done(&c);
}

TEST(registers_are_overwritten_as_a_whole_or_not)
{
	struct checked c;

	find(&c);
	ck_assert(!is_free(&c, "may_overwrite", 1, RCX));
	ck_assert(!is_free(&c, "overwrites_a_byte", 1, R10));
	ck_assert(is_free(&c, "zeroes", 1, R10));
	done(&c);
}
