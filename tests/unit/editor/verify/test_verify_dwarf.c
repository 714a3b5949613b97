// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_dwarf - verify's reader of DWARF and the makers' share no code. Of the same bytes they read the same forms,
 * numbers, lists and lines, as far as the makers accept them.
 */
#include "tests/unit/suite.h"

#include "editor/debug/read/debug_form.h"
#include "editor/debug/read/debug_header.h"
#include "editor/debug/read/debug_list.h"
#include "editor/verify/dwarf/verify_dwarf.h"

#define NR_TRIES 4000

/* Numbers that look random, the same ones in each run. */
static uint32_t random_number(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

static void fill(uint8_t *bytes, size_t size, uint32_t below)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(random_number() % (random_number() % 4 ? below : 256));
}

TEST(readers_skip_the_same_forms)
{
	uint8_t bytes[300];
	uint32_t nr = 0;

	fill(bytes, sizeof(bytes), 256);
	bytes[0] = 0x83;
	bytes[1] = 1;
	for (unsigned int version = 2; version <= 5; version++)
		for (unsigned int form = 0; form < 0x2000; form++) {
			struct mp_cursor a = mp_cursor_over(bytes, bytes + sizeof(bytes));
			struct vf_cursor b = vf_cursor_over(bytes, bytes + sizeof(bytes));

			me_form_skip(&a, form, version);
			vd_skip_form(&b, form, version);
			ck_assert_msg(a.bad == b.bad && (a.bad || a.p == b.p),
				      "form %#x, version %u", form, version);
			ck_assert_int_eq(me_form_is_address(form), vd_form_is_address(form));
			ck_assert_int_eq(me_form_is_reference(form), vd_form_is_reference(form));
			ck_assert_int_eq(me_form_is_expression(form), vd_form_is_expression(form));
			nr += !a.bad;
		}
	ck_assert_uint_ge(nr, 4 * 40);
}

TEST(readers_read_the_same_numbers)
{
	for (int i = 0; i < NR_TRIES; i++) {
		uint8_t bytes[12];
		size_t size = random_number() % sizeof(bytes);
		struct mp_cursor a = mp_cursor_over(bytes, bytes + size), c = a;
		struct vf_cursor b = vf_cursor_over(bytes, bytes + size), d = b, terse = b;

		for (size_t k = 0; k < size; k++)
			bytes[k] = (uint8_t)(random_number() | (random_number() % 8 ? 0x80 : 0));
		ck_assert_uint_eq(mp_cursor_uleb(&a), vf_cursor_uleb(&b));
		ck_assert(a.bad == b.bad && (a.bad || a.p == b.p));
		ck_assert_int_eq(mp_cursor_sleb(&c), vf_cursor_sleb(&d));
		ck_assert(c.bad == d.bad && (c.bad || c.p == d.p));
		/* An output's numbers are as short as they can be. */
		terse.terse = true;
		vf_cursor_uleb(&terse);
		ck_assert_int_eq(terse.bad, b.bad || (b.p - bytes > 1 && !b.p[-1]));
	}
}

static bool maker_indexed(const void *ctx, uint64_t index, struct me_addr *out)
{
	(void)ctx;
	out->off = 1000 * index;
	return index < 100;
}

static bool verify_indexed(const void *ctx, uint64_t index, struct vd_addr *out)
{
	(void)ctx;
	out->off = 1000 * index;
	return index < 100;
}

/* Reads both lists to their ends. Return: number of ranges. */
static uint32_t same_list(struct me_list_reader *a, struct vd_list *b)
{
	uint32_t nr = 0;

	for (;;) {
		struct me_list_entry e;
		struct vd_range r;
		int rc;

		do
			rc = me_list_next(a, &e);
		while (!rc && !e.last && !e.bounded && !e.expr);
		ck_assert_int_eq(vd_list_next(b, &r), !rc && !e.last);
		ck_assert_int_eq(b->c.bad, rc != 0);
		if (rc || e.last)
			return nr;
		ck_assert_int_eq(r.anywhere, !e.bounded);
		ck_assert(r.start.off == e.start.off && r.end.off == e.end.off);
		ck_assert(!b->locations ||
			  (r.expr.p == e.expr && r.expr.end == e.expr + e.expr_size));
		nr++;
	}
}

TEST_EACH(readers_read_the_same_lists, 4)
{
	unsigned int version = _i < 2 ? 4 : 5;
	bool locations = _i % 2;
	uint32_t nr = 0;

	for (int i = 0; i < NR_TRIES; i++) {
		uint8_t bytes[200];
		struct me_list_reader a = {.c = mp_cursor_over(bytes, bytes + sizeof(bytes)),
					   .from = {.indexed = maker_indexed},
					   .version = version,
					   .locations = locations,
					   .base = {0, 0x400000}};
		struct vd_work work = vd_work_for(0);
		struct vd_list b = {.work = &work,
				    .c = vf_cursor_over(bytes, bytes + sizeof(bytes)),
				    .from = {.indexed = verify_indexed},
				    .version = version,
				    .locations = locations,
				    .base = {0, 0x400000}};

		fill(bytes, sizeof(bytes), version >= 5 ? 9 : 2);
		if (random_number() % 4 == 0)
			memset(bytes + random_number() % 13 * 8, i % 2 ? 0xff : 0, 16);
		nr += same_list(&a, &b);
	}
	ck_assert_uint_ge(nr, NR_TRIES / 4);
}

TEST(readers_read_the_same_lines)
{
	static const uint8_t head[] = {196, 0,	0, 0, 4, 0, 18, 0, 0, 0, 1, 1, 1, 0xfb,
				       14,  13, 0, 1, 1, 1, 1,	0, 0, 0, 1, 0, 0, 1};
	uint32_t nr = 0;

	for (int i = 0; i < NR_TRIES; i++) {
		uint8_t bytes[200];
		struct me_line_header h;
		struct me_line_reader a;
		enum me_line_event event = ME_LINE_NOTHING;
		struct vd_work work = vd_work_for(0);
		struct vd_line b;

		fill(bytes, sizeof(bytes), 32);
		memcpy(bytes, head, sizeof(head));
		ck_assert_int_eq(me_line_header_read(bytes, sizeof(bytes), 0, &h), 0);
		ck_assert(vd_line_open(vf_cursor_at(bytes, sizeof(bytes), 0), &work, &b));
		ck_assert(b.code == h.code && b.c.end == h.end);
		a = me_line_open(&h);
		while (a.c.p < a.c.end && !me_line_step(&a, &event)) {
			enum vd_line_event same = vd_line_step(&b);

			ck_assert(!b.c.bad && b.c.p == a.c.p);
			ck_assert((int)same == (int)event);
			ck_assert(a.row.address == b.row.address && a.row.file == b.row.file &&
				  a.row.line == b.row.line && a.row.column == b.row.column &&
				  a.row.isa == b.row.isa && a.row.flags == b.row.flags &&
				  a.row.discriminator == b.row.discriminator);
			nr++;
			if (event == ME_LINE_ROW) {
				me_line_next_row(&a);
				vd_line_next_row(&b);
			} else if (event == ME_LINE_END) {
				me_line_reset(&a);
				vd_line_reset(&b);
			}
		}
	}
	ck_assert_uint_ge(nr, NR_TRIES);
}
