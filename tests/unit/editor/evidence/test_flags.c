// SPDX-License-Identifier: Apache-2.0
/* test_flags - where arithmetic flags are still read, and where they are passed across calls. */
#include "tests/unit/suite.h"

#include "editor/evidence/flags.h"
#include "tests/unit/edit_fixture.h"

/* An assembler function that looks like a compiler's. */
#define FUNCTION(name, body)                                                                       \
	"	.globl " name "\n	.type " name ", @function\n" name                          \
	":\n	.cfi_startproc\n" body "	.cfi_endproc\n	.size " name ", .-" name "\n"

static const char source[] = "	.text\n"
	/* blocks: cmp+jl | jg | xor+ret | 1: mov+ret | 2: inc+ret */
	FUNCTION("three_ways", "	cmp $5, %edi\n	jl 1f\n	jg 2f\n	xor %eax, %eax\n"
			       "	ret\n1:	mov $1, %eax\n	ret\n2:	inc %edi\n"
			       "	mov %edi, %eax\n	ret\n")
	/* blocks: test+je | shl %cl + jne | ret | 1: shl $1 + jne | ret */
	FUNCTION("shifts", "	test %edi, %edi\n	je 1f\n	shl %cl, %edi\n	jne 2f\n"
			   "	ret\n1:	shl $3, %edi\n	jne 2f\n2:	ret\n")
	/* blocks: add+jmp | 1: adc (the carry alone)+ret */
	FUNCTION("carry", "	add %edi, %esi\n	jmp 1f\n	nop\n1:	adc $0, %edx\n"
			  "	mov %edx, %eax\n	ret\n")
		FUNCTION("leaves", "	cmp $7, %edi\n	ret\n") FUNCTION(
			"takes_from_callee",
			"	call leaves\n	sete %al\n	movzbl %al, %eax\n"
			"	ret\n") FUNCTION("takes_from_caller",
						 "	sete %al\n	movzbl %al, %eax\n	ret\n")
			FUNCTION(
				"gives",
				"	mov %edi, %eax\n	cmp $3, %edi\n	jmp 1f\n	nop\n"
				"1:	call takes_from_caller\n	ret\n")
				FUNCTION(
					"plain",
					"	call three_ways\n	test %eax, %eax\n	sete %al\n	ret\n")
					FUNCTION(
						"main",
						"	call plain\n	call shifts\n	call carry\n"
						"	call takes_from_callee\n	call gives\n	xor %eax, %eax\n	ret\n") "	.section .note.GNU-stack, \"\", @progbits\n";

struct checked {
	struct fixture f;
	struct me_flags flags;
	uint8_t *wanted;
};

static void find(struct checked *c)
{
	fixture_build(&c->f, "assembler", "", source);
	c->wanted = calloc(c->f.cfg->nr_funcs + 1, 1);
	ck_assert_ptr_nonnull(c->wanted);
	for (uint32_t i = 0; i < c->f.cfg->nr_funcs; i++)
		c->wanted[i] = c->f.cfg->funcs[i].problem == MP_PROBLEM_NONE;
	ck_assert_msg(me_flags_find(c->f.cfg, c->wanted, false, &c->flags, &err) == 0, "%s",
		      err.msg);
}

static void done(struct checked *c)
{
	me_flags_fini(&c->flags);
	free(c->wanted);
	fixture_free(&c->f);
}

static bool live(const struct checked *c, const char *name, uint32_t nr)
{
	return c->flags.live[fixture_block(&c->f, name, nr)] != 0;
}

static bool shared(const struct checked *c, const char *name)
{
	return c->flags.shared[fixture_func(&c->f, name)];
}

TEST(flags_are_live_between_two_branches)
{
	struct checked c;

	find(&c);
	ck_assert(!live(&c, "three_ways", 0));
	ck_assert(live(&c, "three_ways", 1));
	ck_assert(!live(&c, "three_ways", 2));
	ck_assert(!live(&c, "three_ways", 3));
	ck_assert(!live(&c, "three_ways", 4));
	done(&c);
}

TEST(flags_survive_a_shift_that_may_be_by_nothing)
{
	struct checked c;

	find(&c);
	ck_assert(live(&c, "shifts", 1));
	ck_assert(!live(&c, "shifts", 3));
	done(&c);
}

TEST(flags_the_carry_does_not_count)
{
	struct checked c;

	find(&c);
	ck_assert(!live(&c, "carry", 0));
	ck_assert(!live(&c, "carry", 1));
	done(&c);
}

/*
 * With the carry flag included: an instruction that tests a bit writes the carry, and no other
 * flag reliably.
 */
TEST(flags_with_the_carry)
{
	struct checked c = {0};

	fixture_build(
		&c.f, "assembler", "",
		"	.text\n" FUNCTION("tests", "	bt $3, %edi\n	jc 1f\n	nop\n1:	ret\n") FUNCTION(
			"main",
			"	cmp $1, %edi\n	jmp 1f\n	nop\n"
			"1:	inc %eax\n	jmp 2f\n	nop\n"
			"2:	jc 3f\n	call tests\n	bt $1, %edi\n"
			"	jc 3f\n	nop\n3:	ret\n") "	.section .note.GNU-stack, \"\", @progbits\n");
	c.wanted = calloc(c.f.cfg->nr_funcs + 1, 1);
	ck_assert_ptr_nonnull(c.wanted);
	c.wanted[fixture_func(&c.f, "main")] = c.wanted[fixture_func(&c.f, "tests")] = 1;
	for (int carry = 0; carry < 2; carry++) {
		uint32_t last = c.f.cfg->funcs[fixture_func(&c.f, "main")].nr_blocks - 1;

		ck_assert_int_eq(me_flags_find(c.f.cfg, c.wanted, carry, &c.flags, &err), 0);
		ck_assert(!live(&c, "main", 0));
		ck_assert(!live(&c, "main", last));
		ck_assert_int_eq(live(&c, "main", 2), carry);
		ck_assert(!shared(&c, "tests"));
		me_flags_fini(&c.flags);
	}
	free(c.wanted);
	fixture_free(&c.f);
}

TEST(flags_that_calls_pass_are_found_on_both_sides)
{
	struct checked c;

	find(&c);
	ck_assert(shared(&c, "leaves"));
	ck_assert(shared(&c, "takes_from_caller"));
	ck_assert(live(&c, "takes_from_caller", 0));
	/* A caller of such a function must keep the flags for it. */
	ck_assert(live(&c, "gives", c.f.cfg->funcs[fixture_func(&c.f, "gives")].nr_blocks - 1));
	ck_assert(!shared(&c, "plain"));
	ck_assert(!shared(&c, "three_ways"));
	ck_assert(!shared(&c, "main"));
	done(&c);
}

TEST(flags_of_a_function_that_is_not_wanted_are_live)
{
	struct checked c;

	find(&c);
	c.wanted[fixture_func(&c.f, "three_ways")] = 0;
	me_flags_fini(&c.flags);
	ck_assert_int_eq(me_flags_find(c.f.cfg, c.wanted, false, &c.flags, &err), 0);
	ck_assert(live(&c, "three_ways", 0));
	done(&c);
}

TEST(flags_from_who_knows_where_are_refused)
{
	struct checked c = {0};

	fixture_build(
		&c.f, "assembler", "",
		"	.text\n" FUNCTION(
			"main",
			"	call *%rdi\n	sete %al\n"
			"	movzbl %al, %eax\n	ret\n") "	.section .note.GNU-stack, \"\", @progbits\n");
	c.wanted = calloc(c.f.cfg->nr_funcs + 1, 1);
	ck_assert_ptr_nonnull(c.wanted);
	c.wanted[fixture_func(&c.f, "main")] = 1;
	ck_assert_int_eq(me_flags_find(c.f.cfg, c.wanted, false, &c.flags, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "reads flags"));
	done(&c);
}
