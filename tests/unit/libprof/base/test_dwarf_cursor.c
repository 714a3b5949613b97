// SPDX-License-Identifier: Apache-2.0
/* test_dwarf_cursor - numbers, strings and pointers of DWARF, whole, cut and too long. */
#include "tests/unit/suite.h"

#include "libprof/base/dwarf_cursor.h"

TEST(cursor_reads_every_pointer_encoding)
{
	static const uint8_t bytes[] = {0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static const struct {
		uint8_t enc;
		uint64_t want;
	} cases[] = {
		{MP_EH_PE_ABSPTR, (uint64_t)-16},
		{MP_EH_PE_UDATA2, 0xfff0},
		{MP_EH_PE_SDATA2, (uint64_t)-16},
		{MP_EH_PE_UDATA4, 0xfffffff0},
		{MP_EH_PE_SDATA4, (uint64_t)-16},
		{MP_EH_PE_SDATA8, (uint64_t)-16},
		{MP_EH_PE_PCREL | MP_EH_PE_SDATA4, 0x1000 - 16},
		{MP_EH_PE_PCREL | MP_EH_PE_SDATA4 | MP_EH_PE_INDIRECT, 0x1000 - 16},
		{MP_EH_PE_DATAREL | MP_EH_PE_SDATA4, 0x50000 - 16},
		{MP_EH_PE_DATAREL | MP_EH_PE_UDATA2, 0x50000 + 0xfff0},
	};
	static const uint8_t zero[8];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mp_cursor cur = {.p = bytes, .end = bytes + 8, .vaddr = 0x1000};

		ck_assert_uint_eq(mp_cursor_pointer(&cur, cases[i].enc, 0x50000), cases[i].want);
		ck_assert(!cur.bad);
		/* 0 means "none" in every encoding. */
		cur = (struct mp_cursor){.p = zero, .end = zero + 8, .vaddr = 0x1000};
		ck_assert_uint_eq(mp_cursor_pointer(&cur, cases[i].enc, 0x50000), 0);
		/* Truncated. */
		cur = (struct mp_cursor){.p = bytes, .end = bytes + 1};
		mp_cursor_pointer(&cur, cases[i].enc, 0);
		ck_assert(cur.bad);
	}
}

static const struct {
	uint8_t bytes[12], size;
	bool good_unsigned;
	uint64_t want_unsigned;
	int64_t want_signed;
} numbers[] = {
	{{0x00}, 1, true, 0, 0},
	{{0x7f}, 1, true, 0x7f, -1},
	{{0x80, 0x7f}, 2, true, 0x3f80, -128},
	{{0xc0, 0x00}, 2, true, 0x40, 0x40},
	{{0x81, 0x80, 0x80, 0x80, 0x00}, 5, true, 1, 1}, /* padded */
	{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 10, true, UINT64_MAX, -1},
	{{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}, 10, false, 0, INT64_MIN},
};

TEST_EACH(cursor_reads_leb128, sizeof(numbers) / sizeof(numbers[0]))
{
	size_t size = numbers[_i].size;
	struct mp_cursor c = mp_cursor_over(numbers[_i].bytes, numbers[_i].bytes + size);

	ck_assert_uint_eq(mp_cursor_uleb(&c), numbers[_i].want_unsigned);
	ck_assert_int_eq(c.bad, !numbers[_i].good_unsigned);
	c = (struct mp_cursor){.p = numbers[_i].bytes, .end = numbers[_i].bytes + size, .vaddr = 7};
	ck_assert_int_eq(mp_cursor_sleb(&c), numbers[_i].want_signed);
	ck_assert(!c.bad && c.p == c.end);
	ck_assert_uint_eq(c.vaddr, 7 + size);
	for (size_t cut = 0; cut < size; cut++) {
		c = mp_cursor_over(numbers[_i].bytes, numbers[_i].bytes + cut);
		ck_assert(!mp_cursor_uleb(&c) && c.bad);
		c = mp_cursor_over(numbers[_i].bytes, numbers[_i].bytes + cut);
		ck_assert(!mp_cursor_sleb(&c) && c.bad);
	}
}

TEST(cursor_stops_at_nonsense)
{
	uint8_t endless[64];
	struct mp_cursor c = mp_cursor_over(endless, endless + sizeof(endless));

	memset(endless, 0x80, sizeof(endless));
	ck_assert(!mp_cursor_uleb(&c) && c.bad);
	c = mp_cursor_over(endless, endless + sizeof(endless));
	ck_assert(!mp_cursor_sleb(&c) && c.bad);
	/* What follows is not read any more. */
	ck_assert_uint_eq(mp_cursor_u8(&c), 0);
	c = mp_cursor_over(endless, endless + sizeof(endless));
	ck_assert_ptr_null(mp_cursor_string(&c));
	ck_assert(c.bad && mp_cursor_at(endless, 64, 65).bad && mp_cursor_at(NULL, 0, 0).bad);
	ck_assert(!mp_cursor_at(endless, 64, 64).bad);
	c = mp_cursor_at(endless, 64, 57);
	ck_assert(!mp_cursor_u64(&c) && c.bad);
}
