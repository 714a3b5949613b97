// SPDX-License-Identifier: Apache-2.0
/*
 * test_walk - walks over invented stacks: each function of an invented module has a rule of one
 * kind, and the test lays out the words that its frame would have.
 */

#include "libprof/unwind/rows_compile.h"
#include "libprof/unwind/walk.h"
#include "tests/support/frames.h"
#include "tests/unit/suite.h"

#define BIAS	 UINT64_C(0x7f0000000000) /* where the module is mapped */
#define STACK	 UINT64_C(0x7ffe00001000)
#define ALTSTACK UINT64_C(0x7ffe00000000) /* a lower one */
#define JIT	 UINT64_C(0x7e0000000000) /* code without rows, 0x1000 bytes */
#define UNREAD	 UINT64_C(0x7d0000000000) /* code of a file that cannot be read */
#define NR_WORDS 64

/* Functions of the module: each has 0x10 bytes. */
enum {
	LEAF = 0x1000,	 /* CFA = rsp + 8 */
	BY_RBP = 0x1010, /* CFA = rbp + 16, rbp saved at CFA - 16 */
	SAVES = 0x1020,	 /* CFA = rsp + 24, rbp saved at CFA - 16 */
	PLT = 0x1030,	 /* CFA = rsp + 8 up to offset 11, then rsp + 16 */
	SIGNAL = 0x1040, /* a signal frame */
	BOTTOM = 0x1050,
	BY_RBX = 0x1060, /* CFA = rbx + 16 */
	UNKNOWN = 0x1070,
	LOSES = 0x1080, /* CFA = rsp + 8; rbp is undefined */
	GAP = 0x1090,
};

static struct frames frames;
static struct mp_rows rows;
static void *bytes;
static uint64_t stack[NR_WORDS], altstack[NR_WORDS];
static struct mp_walk_start start;
static struct mp_walk_result result;
static uint64_t ips[8];

static enum mp_walk_code find(void *arg, uint64_t ip, const struct mp_rows **out, uint64_t *vaddr)
{
	(void)arg;
	if (ip >= JIT && ip < JIT + 0x1000)
		return MP_WALK_BARE;
	if (ip >= UNREAD && ip < UNREAD + 0x1000)
		return MP_WALK_UNREAD;
	if (ip < BIAS || ip >= BIAS + 0x2000)
		return MP_WALK_NOTHING;
	*out = &rows;
	*vaddr = ip - BIAS;
	return MP_WALK_ROWS;
}

static bool read_word(void *arg, uint64_t address, uint64_t *word)
{
	(void)arg;
	if (address % 8 == 0 && address >= STACK && address < STACK + sizeof(stack))
		*word = stack[(address - STACK) / 8];
	else if (address % 8 == 0 && address >= ALTSTACK && address < ALTSTACK + sizeof(altstack))
		*word = altstack[(address - ALTSTACK) / 8];
	else
		return false;
	return true;
}

static const struct mp_walk_ops ops = {.find = find, .read = read_word};

static void setup(void)
{
	struct mp_cursor cur;
	size_t size;

	memset(&frames, 0, sizeof(frames));
	memset(stack, 0, sizeof(stack));
	memset(altstack, 0, sizeof(altstack));
	memset(&start, 0, sizeof(start));
	frames_cie(&frames, false);
	FRAMES_FDE(&frames, LEAF, 0x10, 0);
	FRAMES_FDE(&frames, BY_RBP, 0x10, 0x0c, 6, 16, 0x86, 2);
	FRAMES_FDE(&frames, SAVES, 0x10, 0x0e, 24, 0x86, 2);
	FRAMES_FDE(&frames, PLT, 0x10, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33,
		   0x24, 0x22);
	FRAMES_FDE(&frames, BOTTOM, 0x10, 0x07, 16);
	FRAMES_FDE(&frames, BY_RBX, 0x10, 0x0c, 3, 16);
	FRAMES_FDE(&frames, UNKNOWN, 0x10, 0x0f, 2, 0x31, 0x22);
	FRAMES_FDE(&frames, LOSES, 0x10, 0x07, 6);
	frames_cie(&frames, true);
	/* CFA = *(rsp + 16), rbp at rsp + 8, rip at rsp + 24 */
	FRAMES_FDE(&frames, SIGNAL, 0x10, 0x0f, 3, 0x77, 16, 0x06, 0x10, 6, 2, 0x77, 8, 0x10, 16, 2,
		   0x77, 24);
	cur = frames_cursor(&frames);
	ck_assert_int_eq(mp_rows_compile(&cur, true, 0, NULL, &bytes, &size, NULL), 0);
	ck_assert_int_eq(mp_rows_open("made", bytes, size, &rows, NULL), 0);
	start.regs[MP_WALK_RSP] = STACK;
}

static void teardown(void)
{
	free(bytes);
}

static void walk(size_t max)
{
	mp_walk(&ops, &start, ips, max, &result);
}

static void expect(enum mp_walk_stop stop, size_t nr)
{
	ck_assert_str_eq(mp_walk_stop_name(result.stop), mp_walk_stop_name(stop));
	ck_assert_uint_eq(result.nr, nr);
}

FIXTURE(setup, teardown);

TEST(walk_goes_through_frames_of_each_kind_to_the_bottom)
{
	start.ip = BIAS + LEAF + 4;
	stack[0] = BIAS + SAVES + 4;
	stack[2] = STACK + 6 * 8; /* the rbp that SAVES saved */
	stack[3] = BIAS + BY_RBP + 4;
	stack[6] = 1; /* BY_RBP's caller has no use of rbp */
	stack[7] = BIAS + BOTTOM + 4;
	walk(8);
	expect(MP_WALK_BOTTOM, 3);
	ck_assert_uint_eq(ips[0], BIAS + SAVES + 4);
	ck_assert_uint_eq(ips[1], BIAS + BY_RBP + 4);
	ck_assert_uint_eq(ips[2], BIAS + BOTTOM + 4);
	ck_assert_uint_eq(result.nr_by_rbp, 0);
}

/* SAVES ends with a call that does not return: the return address is LEAF's or PLT's start. */
TEST(walk_takes_the_row_of_the_call_not_of_what_follows)
{
	start.ip = BIAS + LEAF;
	stack[0] = BIAS + PLT;
	stack[3] = BIAS + BOTTOM + 1;
	walk(8);
	expect(MP_WALK_BOTTOM, 2);
	ck_assert_uint_eq(ips[1], BIAS + BOTTOM + 1);
}

/* Above a signal frame, LEAF was about to run its first instruction. */
TEST(walk_takes_the_row_itself_above_a_signal_frame)
{
	start.ip = BIAS + LEAF;
	stack[0] = BIAS + SIGNAL + 1;
	stack[1 + 1] = 0;
	stack[1 + 2] = STACK + 8 * 8;
	stack[1 + 3] = BIAS + LEAF;
	stack[8] = BIAS + BOTTOM + 1;
	walk(8);
	expect(MP_WALK_BOTTOM, 3);
	ck_assert_uint_eq(ips[1], BIAS + LEAF);
}

TEST(walk_follows_one_change_of_stack_but_not_a_second)
{
	/* A handler on the higher stack interrupted code on the lower one, at its word 8. */
	start.ip = BIAS + LEAF;
	stack[0] = BIAS + SIGNAL + 1;
	stack[1 + 2] = ALTSTACK + 8 * 8;
	stack[1 + 3] = BIAS + LEAF;
	altstack[8] = BIAS + BOTTOM + 1;
	walk(8);
	expect(MP_WALK_BOTTOM, 3);
	/* That code is a handler, too, and its signal frame leads back to where it lies itself. */
	altstack[8] = BIAS + SIGNAL + 1;
	altstack[9 + 2] = ALTSTACK + 8 * 8;
	altstack[9 + 3] = BIAS + LEAF;
	walk(8);
	expect(MP_WALK_ORDER, 3);
}

TEST(walk_knows_both_halves_of_a_plt_entry)
{
	start.ip = BIAS + PLT + 6;
	stack[0] = BIAS + BOTTOM + 1;
	walk(8);
	expect(MP_WALK_BOTTOM, 1);
	start.ip = BIAS + PLT + 11;
	stack[0] = 5; /* the pushed number */
	stack[1] = BIAS + BOTTOM + 1;
	walk(8);
	expect(MP_WALK_BOTTOM, 1);
	ck_assert_uint_eq(ips[0], BIAS + BOTTOM + 1);
}

TEST(walk_uses_plausible_frame_pointers_of_code_without_rows)
{
	start.ip = JIT + 0x100;
	start.regs[MP_WALK_RBP] = STACK + 4 * 8;
	stack[4] = STACK + 10 * 8;
	stack[5] = JIT + 0x200;
	stack[10] = 0;
	stack[11] = BIAS + BOTTOM + 1;
	walk(8);
	expect(MP_WALK_BOTTOM, 2);
	ck_assert_uint_eq(result.nr_by_rbp, 2);
	/* a return address that is none */
	stack[11] = 0x1234;
	walk(8);
	expect(MP_WALK_NO_ROWS, 1);
}

/*
 * A function without rows that has not yet set rbp, or does not use it: rbp is that of its caller,
 * JIT + 0x200, whose own return address would be taken for the function's.
 */
TEST_EACH(walk_does_not_skip_the_caller_of_a_leaf_without_rows, 4)
{
	start.ip = JIT + 0x100;
	start.regs[MP_WALK_RBP] = STACK + 4 * 8;
	stack[_i] = JIT + 0x200;
	stack[4] = STACK + 10 * 8;
	stack[5] = BIAS + BOTTOM + 1;
	walk(8);
	expect(MP_WALK_NO_ROWS, 0);
	stack[_i] = 0x4242; /* a local variable */
	walk(8);
	expect(MP_WALK_BOTTOM, 1);
	/* Further words than the copy of the stack has, or than are looked at. */
	start.regs[MP_WALK_RSP] = STACK - 8;
	walk(8);
	expect(MP_WALK_COPY, 0);
	start.regs[MP_WALK_RSP] = STACK - 1024;
	walk(8);
	expect(MP_WALK_NO_ROWS, 0);
}

/* The same above a frame with rows: its caller is JIT code that has no frame pointer. */
TEST(walk_does_not_skip_callers_in_the_middle)
{
	start.ip = BIAS + LEAF;
	start.regs[MP_WALK_RBP] = STACK + 6 * 8;
	stack[0] = JIT + 0x100;
	stack[3] = JIT + 0x200; /* of JIT + 0x100, which has two words */
	stack[7] = BIAS + BOTTOM + 1;
	walk(8);
	expect(MP_WALK_NO_ROWS, 1);
	stack[3] = 0;
	walk(8);
	expect(MP_WALK_BOTTOM, 2);
}

TEST_EACH(walk_does_not_believe_other_values_of_rbp, 6)
{
	static const uint64_t garbage[] = {0, 42, STACK - 16, STACK + 33, STACK + (9 << 20), ~0ull};

	start.ip = JIT + 0x100;
	for (size_t i = 0; i < sizeof(stack) / sizeof(stack[0]); i++)
		stack[i] = BIAS + BOTTOM + 1;
	start.regs[MP_WALK_RBP] = garbage[_i];
	walk(8);
	expect(MP_WALK_NO_ROWS, 0);
}

TEST(walk_keeps_rbp_only_while_it_is_known)
{
	start.ip = BIAS + LOSES;
	start.regs[MP_WALK_RBP] = STACK + 4 * 8;
	stack[0] = BIAS + BY_RBP + 4;
	stack[5] = BIAS + BOTTOM + 1;
	walk(8);
	expect(MP_WALK_REGISTER, 1);
	start.ip = BIAS + LEAF;
	walk(8);
	expect(MP_WALK_BOTTOM, 2);
}

TEST(walk_uses_other_registers_only_in_the_innermost_frame)
{
	start.ip = BIAS + BY_RBX;
	start.regs[3] = STACK + 8;
	stack[2] = BIAS + BOTTOM + 1;
	walk(8);
	expect(MP_WALK_BOTTOM, 1);
	start.ip = BIAS + LEAF;
	stack[0] = BIAS + BY_RBX + 4;
	walk(8);
	expect(MP_WALK_REGISTER, 1);
}

TEST(walk_says_why_it_ends)
{
	start.ip = BIAS + LEAF;
	stack[0] = BIAS + GAP + 4;
	walk(8);
	expect(MP_WALK_NO_ROW, 1);
	ck_assert_uint_eq(result.row_stop, MP_ROW_STOP_NO_ROW);
	stack[0] = BIAS + UNKNOWN + 4;
	walk(8);
	expect(MP_WALK_RULE, 1);
	ck_assert_uint_eq(result.row_stop, MP_ROW_STOP_EXPRESSION);
	stack[0] = 0x4242; /* is not given out */
	walk(8);
	expect(MP_WALK_UNMAPPED, 0);
	stack[0] = BIAS + LEAF + 1;
	stack[1] = 0;
	walk(8);
	expect(MP_WALK_BOTTOM, 1);
	stack[0] = 0; /* perhaps on another stack */
	walk(8);
	expect(MP_WALK_UNMAPPED, 0);
	start.regs[MP_WALK_RSP] = STACK + sizeof(stack);
	walk(8);
	expect(MP_WALK_COPY, 0);
	start.regs[MP_WALK_RSP] = STACK;
	stack[0] = UNREAD + 8; /* is given out, but its caller is not to be found */
	walk(8);
	expect(MP_WALK_UNMAPPED, 1);
	start.ip = 0x4242;
	walk(8);
	expect(MP_WALK_UNMAPPED, 0);
}

TEST(walk_of_endless_recursion_ends_with_the_room)
{
	start.ip = BIAS + LEAF;
	for (size_t i = 0; i < sizeof(stack) / sizeof(stack[0]); i++)
		stack[i] = BIAS + LEAF + 1;
	walk(8);
	expect(MP_WALK_DEPTH, 8);
	walk(0);
	expect(MP_WALK_DEPTH, 0);
}
