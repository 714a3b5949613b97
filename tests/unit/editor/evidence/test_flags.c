// SPDX-License-Identifier: Apache-2.0
/* test_flags - where arithmetic flags are still read, and where they are passed across calls. */
#include "tests/unit/suite.h"

#include "editor/evidence/flags/flags.h"
#include "tests/unit/edit_fixture.h"

/* An assembler function that looks like a compiler's. */
#define FUNCTION(name, body)                                                                       \
	"	.globl " name "\n	.type " name ", @function\n" name                          \
	":\n	.cfi_startproc\n" body "	.cfi_endproc\n	.size " name ", .-" name "\n"

/* Labels without unwind information belong to no function. */
#define LABELS                                                                                     \
	"	.p2align 4\nreads_flags:	setl %al\n	ret\nsets_flags:	xor %eax, %eax\n	ret\n"

static const char source[] = "	.text\n"
	/* blocks: cmp+jl | jg | xor+ret | 1: mov+ret | 2: inc+ret */
	FUNCTION("three_ways", "	cmp $5, %edi\n	jl 1f\n	jg 2f\n	xor %eax, %eax\n"
			       "	ret\n1:	mov $1, %eax\n	ret\n2:	inc %edi\n"
			       "	mov %edi, %eax\n	ret\n")
	/* blocks: test+je | js | cmp+jl | 1: mov+jmp | 2: mov+call+ret */
	FUNCTION("leaves_to_labels",
		 "	test %edi, %edi\n	je 1f\n	js 2f\n	cmp $2, %edi\n"
		 "	jl sets_flags\n1:	mov %edi, %eax\n	jmp reads_flags\n"
		 "2:	mov %esi, %eax\n	call reads_flags\n	ret\n") LABELS
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

static void want_all(struct checked *c)
{
	c->wanted = calloc(c->f.cfg->nr_funcs + 1, 1);
	ck_assert_ptr_nonnull(c->wanted);
	for (uint32_t i = 0; i < c->f.cfg->nr_funcs; i++)
		c->wanted[i] = c->f.cfg->funcs[i].problem == MP_PROBLEM_NONE;
	ck_assert_msg(me_flags_find(c->f.cfg, c->wanted, false, &c->flags, &err) == 0, "%s",
		      err.msg);
}

static void find(struct checked *c)
{
	fixture_build(&c->f, "assembler", "", source);
	want_all(c);
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

TEST(flags_that_code_of_no_function_reads_are_live)
{
	struct checked c;

	find(&c);
	ck_assert(!live(&c, "leaves_to_labels", 0));
	ck_assert(live(&c, "leaves_to_labels", 1));
	ck_assert(!live(&c, "leaves_to_labels", 2));
	ck_assert(live(&c, "leaves_to_labels", 3));
	ck_assert(live(&c, "leaves_to_labels", 4));
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

/* What a function that a pointer leads to left may be read behind any call by pointer. */
TEST(flags_that_a_pointed_function_sets_are_found)
{
	struct checked c = {0};

	fixture_build(
		&c.f, "assembler", "",
		"	.text\n" FUNCTION("sets", "	cmp $1, %edi\n	ret\n")
			FUNCTION("not_pointed", "	cmp $1, %edi\n	ret\n") FUNCTION(
				"main",
				"	call not_pointed\n	lea sets(%rip), %rdi\n	call *%rdi\n	sete %al\n"
				"	movzbl %al, %eax\n	ret\n") "	.section .note.GNU-stack, \"\", @progbits\n");
	want_all(&c);
	ck_assert(shared(&c, "sets"));
	ck_assert(!shared(&c, "not_pointed"));
	done(&c);
}

/* Each pair: a caller that sets flags and a function that reads them, or the reverse; between them lies other code. */
static const char passed_on[] = "	.text\n"
	/* a call, two jumps, and the code that reads */
	FUNCTION("calls",
		 "	cmp $5, %edi\n	jg 1f\n	cmp $3, %edi\n1:	call jumps\n	ret\n")
		FUNCTION("jumps", "	mov $1, %eax\n	jmp jumps_again\n")
			FUNCTION("jumps_again", "	mov %edi, %edx\n	jmp reads\n")
				FUNCTION("reads",
					 "	mov %edx, %eax\n	jl 1f\n	ret\n1:	ret\n")
	/* a label that calls the code that reads */
	FUNCTION(
		"to_label",
		"	cmp $5, %edi\n	jg 1f\n	cmp $3, %edi\n1:	jmp label\n") "	.p2align 4\nlabel:	mov $1, %eax\n	call reads\n	ret\n	.p2align 4\n"
	/* the middle of another function */
	FUNCTION("to_middle", "	cmp $5, %edi\n	jg 1f\n	cmp $3, %edi\n1:	jmp middle\n")
		FUNCTION("has_middle", "	xor %eax, %eax\nmiddle:	setl %al\n	ret\n")
	/* by a pointer */
	FUNCTION("by_pointer",
		 "	lea pointed(%rip), %rdx\n	cmp $5, %edi\n	jg 1f\n	cmp $3, %edi\n"
		 "1:	call *%rdx\n	ret\n") FUNCTION("pointed", "	setl %al\n	ret\n")
	/* what a callee leaves as it was */
	FUNCTION(
		"through",
		"	cmp $5, %edi\n	jg 1f\n	cmp $3, %edi\n1:	call moves\n	setl %al\n	ret\n")
		FUNCTION("moves", "	mov $40, %eax\n	ret\n")
	/* returned by way of a label */
	FUNCTION("gets", "	call leads\n	setl %al\n	ret\n")
		FUNCTION("leads", "	mov %edi, %ecx\n	jmp between\n") "	.p2align 4\nbetween:	mov %ecx, %edx\n	jmp returns\n	.p2align 4\n" FUNCTION(
			"returns", "	cmp $9, %edx\n	ret\n")
	/* returned to code without unwind information, to a call before another one, and to a caller's caller */
	"	.p2align 4\nbare:	call for_bare\n	setl %al\n	ret\n	.p2align 4\n" FUNCTION(
		"for_bare", "	cmp $9, %edx\n	ret\n")
		FUNCTION(
			"gets_two",
			"	call first\n	setl %al\n	call second\n	setl %cl\n	ret\n")
			FUNCTION("first", "	cmp $9, %edx\n	ret\n")
				FUNCTION("second", "	cmp $7, %edx\n	ret\n") FUNCTION(
					"gets_far", "	call hands_on\n	setl %al\n	ret\n")
					FUNCTION("hands_on", "	call far\n	ret\n")
						FUNCTION("far", "	cmp $9, %edx\n	ret\n")
	/* nothing of all this */
	FUNCTION("main",
		 "	call calls\n	call to_label\n	call to_middle\n	call by_pointer\n"
		 "	call through\n	call gets\n	call gets_two\n	call gets_far\n"
		 "	jmp bare\n")
		FUNCTION(
			"plain",
			"	call main\n	call main\n	test %eax, %eax\n	sete %al\n	ret\n") "	.section .note.GNU-stack, \"\", @progbits\n";

TEST(flags_that_are_passed_on_are_live)
{
	static const char *const setters[] = {"calls", "to_label", "to_middle", "by_pointer",
					      "through"};
	struct checked c = {0};

	fixture_build(&c.f, "assembler", "", passed_on);
	want_all(&c);
	for (size_t i = 0; i < sizeof(setters) / sizeof(setters[0]); i++) {
		ck_assert_msg(!live(&c, setters[i], 0), "%s", setters[i]);
		ck_assert_msg(live(&c, setters[i], 2), "%s", setters[i]);
	}
	done(&c);
}

TEST(flags_that_are_returned_through_other_code_are_found)
{
	static const char *const setters[] = {"leads",	"returns",  "for_bare", "first",
					      "second", "hands_on", "far"};
	static const char *const others[] = {"main", "plain", "gets", "gets_two", "to_label"};
	struct checked c = {0};

	fixture_build(&c.f, "assembler", "", passed_on);
	want_all(&c);
	for (size_t i = 0; i < sizeof(setters) / sizeof(setters[0]); i++)
		ck_assert_msg(shared(&c, setters[i]), "%s", setters[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_msg(!shared(&c, others[i]), "%s", others[i]);
	done(&c);
}

/* A function that is not wanted reads them as well. */
TEST(flags_that_a_function_which_is_not_wanted_gets_are_found)
{
	struct checked c = {0};

	fixture_build(&c.f, "assembler", "", passed_on);
	want_all(&c);
	me_flags_fini(&c.flags);
	c.wanted[fixture_func(&c.f, "gets_far")] = 0;
	ck_assert_int_eq(me_flags_find(c.f.cfg, c.wanted, false, &c.flags, &err), 0);
	ck_assert(shared(&c, "far"));
	done(&c);
}

/* Cells that only the loader writes, as those of a GOT are. */
/* clang-format off */
static const char through_cells[] =
	"	.text\n"
	FUNCTION("leaves", "	cmp $7, %edi\n	ret\n")
	FUNCTION("takes", "	sete %al\n	movzbl %al, %eax\n	ret\n")
	FUNCTION("ends", "	cmp $7, %edi\n	ud2\n")
	FUNCTION("gives",
		 "	cmp $3, %edi\n	jmp 1f\n	nop\n1:	call *takes_cell(%rip)\n	ret\n")
	FUNCTION("main",
		 "	test %edi, %edi\n	jns 1f\n	call *ends_cell(%rip)\n"
		 "1:	je 2f\n	call gives\n2:	call *leaves_cell(%rip)\n	sete %al\n"
		 "	movzbl %al, %eax\n	ret\n")
	"	.section .data.rel.ro, \"aw\"\n"
	"leaves_cell:	.quad leaves\ntakes_cell:	.quad takes\nends_cell:	.quad ends\n"
	"	.section .note.GNU-stack, \"\", @progbits\n";
/* clang-format on */

TEST(flags_that_calls_through_cells_pass_are_found)
{
	struct checked c = {0};

	fixture_build(&c.f, "assembler", "-pie -Wl,-z,now", through_cells);
	c.wanted = malloc(c.f.cfg->nr_funcs + 1);
	ck_assert_ptr_nonnull(c.wanted);
	memset(c.wanted, 1, c.f.cfg->nr_funcs);
	ck_assert_msg(!me_flags_find(c.f.cfg, c.wanted, false, &c.flags, &err), "%s", err.msg);
	ck_assert(shared(&c, "leaves"));
	ck_assert(shared(&c, "takes"));
	ck_assert(live(&c, "gives", c.f.cfg->funcs[fixture_func(&c.f, "gives")].nr_blocks - 1));
	/* It does not return: the branch behind the call reads the flags of the one before. */
	ck_assert(!shared(&c, "ends"));
	done(&c);
}
