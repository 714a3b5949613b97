// SPDX-License-Identifier: Apache-2.0
/*
 * test_poll_code - runs the generated code with every pair of registers, and with valid and
 * hostile requests in memory.
 */
#include "tests/unit/suite.h"

#include <sys/mman.h>

#include "editor/place/poll_code.h"

#define CODE_BYTES 4096
#define NUMBER	   0x123456789abcdef0ull
#define RSP	   4

struct machine {
	uint8_t *code; /* one page, then the polls and the page behind them */
	struct mp_polls *polls;
	uint8_t *at;
};

static void setup(struct machine *m)
{
	void *mem = mmap(NULL, CODE_BYTES + ME_POLLS_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t base;

	ck_assert(mem != MAP_FAILED);
	m->code = m->at = mem;
	m->polls = (struct mp_polls *)(m->code + CODE_BYTES);
	base = (uint64_t)m->polls->polls;
	memcpy(m->polls + 1, &base, sizeof(base));
}

static void put(struct machine *m, const void *bytes, size_t size)
{
	memcpy(m->at, bytes, size);
	m->at += size;
}

#define PUT(m, ...) put(m, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static uint64_t call(struct machine *m)
{
	uint64_t (*run)(void);

	memcpy(&run, &m->code, sizeof(run));
	return run();
}

/* Writes a function that reports NUMBER in @stub's register. */
static void write_note(struct machine *m, const struct me_stub *stub)
{
	uint32_t size = me_note_code_size(stub);
	uint64_t number = NUMBER;

	m->at = m->code;
	/* push the callee-saved registers */
	PUT(m, 0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57);
	PUT(m, 0x48 | stub->reg >> 3, 0xb8 | (stub->reg & 7)); /* mov $number, reg */
	put(m, &number, sizeof(number));
	memset(m->at, 0xcc, size + 16);
	ck_assert_int_eq(me_note_code_write(stub, (uint64_t)m->polls, (uint64_t)m->at, m->at), 0);
	ck_assert_int_eq(m->at[size], 0xcc);
	ck_assert_int_ne(m->at[size - 4] + m->at[size - 3], 2 * 0xcc);
	m->at += size;
	PUT(m, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3);
}

TEST(notes_with_every_register)
{
	struct machine m;

	setup(&m);
	for (uint8_t reg = 0; reg < 16; reg++) {
		for (uint8_t scratch = 0; scratch < 16; scratch++) {
			struct me_stub stub = {.does = ME_STUB_NOTES,
					       .counter = 70000,
					       .reg = reg,
					       .scratch = scratch};

			if (reg == scratch || reg == RSP || scratch == RSP)
				continue;
			memset(m.polls->polls, 0, sizeof(m.polls->polls));
			m.polls->left = 48;
			write_note(&m, &stub);
			call(&m);
			ck_assert_int_eq(m.polls->left, 32);
			ck_assert_uint_eq(m.polls->polls[3].number, NUMBER);
			ck_assert_uint_eq(m.polls->polls[3].block, 70001);
			ck_assert_uint_eq(m.polls->polls[2].block, 0);
			ck_assert_uint_eq(m.polls->polls[4].block, 0);
		}
	}
}

/* If needed, a register is kept in a vector register, and restored. */
TEST(gives_back_what_it_kept)
{
	const uint64_t kept = 0xfedcba9876543210ull;
	struct machine m;

	setup(&m);
	for (uint8_t vector = 8; vector < 16; vector++) {
		for (uint8_t scratch = 0; scratch < 16; scratch++) {
			struct me_stub stub = {.does = ME_STUB_NOTES,
					       .counter = 1,
					       .reg = scratch == 9 ? 10 : 9,
					       .scratch = scratch,
					       .vector = vector};
			uint32_t size = me_note_code_size(&stub);

			if (scratch == RSP)
				continue;
			memset(m.polls->polls, 0, sizeof(m.polls->polls));
			m.polls->left = 16;
			m.at = m.code;
			PUT(&m, 0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57);
			PUT(&m, 0x48 | scratch >> 3, 0xb8 | (scratch & 7)); /* mov $kept, scratch */
			put(&m, &kept, sizeof(kept));
			ck_assert_int_eq(me_note_code_write(&stub, (uint64_t)m.polls,
							    (uint64_t)m.at, m.at),
					 0);
			m.at += size;
			PUT(&m, 0x48 | (scratch & 8) >> 1, 0x89,
			    0xc0 | (scratch & 7) << 3); /* to rax */
			PUT(&m, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3);
			ck_assert_uint_eq(call(&m), kept);
			ck_assert_uint_eq(m.polls->polls[1].block, 2);
		}
	}
}

/* Whatever the file contains, only its polls are written. */
TEST(stays_within_the_polls)
{
	static const int32_t lefts[] = {
		16 * MP_POLLS_MAX, 16 * MP_POLLS_MAX + 16, INT32_MAX, 17, 0, -1, INT32_MIN};
	const struct me_stub stub = {.does = ME_STUB_NOTES, .counter = 1, .reg = 11, .scratch = 12};
	AUTO_FREE struct mp_polls *before = malloc(sizeof(*before));
	struct machine m;

	setup(&m);
	write_note(&m, &stub);
	for (size_t i = 0; i < sizeof(lefts) / sizeof(lefts[0]); i++) {
		uint32_t place = (uint32_t)lefts[i] / 16 % (MP_POLLS_MAX + 1);

		memset(m.polls, 0x5a, sizeof(*m.polls));
		m.polls->left = lefts[i];
		*before = *m.polls;
		call(&m);
		ck_assert_uint_eq((uint32_t)m.polls->left, (uint32_t)lefts[i] - 16);
		before->left = m.polls->left;
		before->polls[place].number = NUMBER;
		before->polls[place].block = 2;
		ck_assert(!memcmp(before, m.polls, sizeof(*before)));
	}
}

TEST(polls_where_something_is_left)
{
	static const struct {
		int32_t left;
		uint64_t noted;
	} cases[] = {{0, 0}, {-16, 0}, {INT32_MIN, 0}, {16, 1}, {INT32_MAX, 1}};
	struct machine m;
	uint8_t *notes;

	setup(&m);
	notes = m.code + 100;
	m.at = notes;
	PUT(&m, 0xb8, 1, 0, 0, 0, 0xc3);
	m.at = m.code;
	ck_assert_int_eq(
		me_poll_code_write((uint64_t)m.polls, (uint64_t)notes, (uint64_t)m.at, m.at), 0);
	m.at += ME_POLL_CODE_SIZE;
	PUT(&m, 0xb8, 0, 0, 0, 0, 0xc3);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		m.polls->left = cases[i].left;
		ck_assert_uint_eq(call(&m), cases[i].noted);
		ck_assert_int_eq(m.polls->left, cases[i].left);
	}
}

TEST(says_what_is_out_of_reach)
{
	const struct me_stub stub = {.does = ME_STUB_NOTES, .reg = 0, .scratch = 1};
	uint8_t code[64];

	ck_assert_int_eq(me_poll_code_write(1ull << 40, 4096, 4096, code), -ERANGE);
	ck_assert_int_eq(me_poll_code_write(4096, 1ull << 40, 4096, code), -ERANGE);
	ck_assert_int_eq(me_note_code_write(&stub, 1ull << 40, 4096, code), -ERANGE);
}
