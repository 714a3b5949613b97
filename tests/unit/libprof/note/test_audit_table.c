// SPDX-License-Identifier: Apache-2.0
/*
 * test_audit_table - the table of audited functions: written and read back, and damaged or
 * hostile input refused.
 */
#include "libprof/note/audit_table.h"

#include <xxhash.h>

#include "libprof/base/varint.h"
#include "tests/support/tiny_elf.h"
#include "tests/unit/suite.h"

/* Two functions: one with a cold part and a timing point, one whose versions lie backwards. */
static const struct mp_audited_func funcs[] = {{0x401000, 0, 5, 0, 1}, {0x402000, 5, 4, 1, 0}};
static const struct mp_audited_range ranges[] = {
	{0x500000, 100, MP_AUDIT_B},	   {0x500100, 120, MP_AUDIT_A},
	{0x501000, 8, MP_AUDIT_B},	   {0x501100, 8, MP_AUDIT_UNTIMED_A},
	{0x501200, 8, MP_AUDIT_UNTIMED_B}, {0x500080, 16, MP_AUDIT_A},
	{0x500200, 20, MP_AUDIT_B},	   {0x500300, 4, MP_AUDIT_UNTIMED_A},
	{0x500400, 4, MP_AUDIT_UNTIMED_B},
};
static const struct mp_audited_point points[] = {{0x400ff0, 16}};

static const struct mp_audit_table sample = {
	.funcs = (struct mp_audited_func *)funcs,
	.nr_funcs = 2,
	.ranges = (struct mp_audited_range *)ranges,
	.nr_ranges = 9,
	.points = (struct mp_audited_point *)points,
	.nr_points = 1,
};

/* A copy that a test may change. */
struct spoilt {
	struct mp_audit_table table;
	struct mp_audited_func funcs[2];
	struct mp_audited_range ranges[9];
	struct mp_audited_point points[1];
};

static struct mp_audit_table *spoil(struct spoilt *s)
{
	s->table = sample;
	memcpy(s->funcs, funcs, sizeof(funcs));
	memcpy(s->ranges, ranges, sizeof(ranges));
	memcpy(s->points, points, sizeof(points));
	s->table.funcs = s->funcs;
	s->table.ranges = s->ranges;
	s->table.points = s->points;
	return &s->table;
}

static int read_section(const char *name, const void *data, size_t size,
			struct mp_audit_table **out, struct mp_err *err)
{
	struct tiny_section sec = {.name = name, .type = SHT_PROGBITS, .data = data, .size = size};
	struct mp_elf *elf = NULL;
	size_t elf_size;
	AUTO_FREE uint8_t *bytes = tiny_elf_build(&sec, 1, NULL, 0, &elf_size);
	int ret;

	ck_assert_int_eq(mp_elf_open_memory("tiny", bytes, elf_size, MP_ELF_ALL, &elf, err), 0);
	ret = mp_audit_table_read(elf, out, err);
	ck_assert(!ret == !!*out);
	mp_elf_close(elf);
	return ret;
}

static int read_table(const void *data, size_t size, struct mp_audit_table **out)
{
	return read_section(MP_AUDIT_TABLE_SECTION, data, size, out, &err);
}

static void assert_round_trip(const struct mp_audit_table *in)
{
	struct mp_audit_table *table = NULL;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_audit_table_encode(in, &bytes, &size, NULL), 0);
	ck_assert_int_eq(read_table(bytes, size, &table), 0);
	ck_assert_uint_eq(table->nr_funcs, in->nr_funcs);
	ck_assert_uint_eq(table->nr_ranges, in->nr_ranges);
	ck_assert_uint_eq(table->nr_points, in->nr_points);
	ck_assert_mem_eq(table->funcs, in->funcs, in->nr_funcs * sizeof(*in->funcs));
	for (uint32_t i = 0; i < in->nr_ranges; i++) {
		ck_assert_uint_eq(table->ranges[i].vaddr, in->ranges[i].vaddr);
		ck_assert_uint_eq(table->ranges[i].size, in->ranges[i].size);
		ck_assert_uint_eq(table->ranges[i].version, in->ranges[i].version);
	}
	for (uint32_t i = 0; i < in->nr_points; i++) {
		ck_assert_uint_eq(table->points[i].vaddr, in->points[i].vaddr);
		ck_assert_uint_eq(table->points[i].rounds, in->points[i].rounds);
	}
	ck_assert_uint_eq(table->hash, mp_audit_table_hash(bytes, size));
	mp_audit_table_free(table);
}

TEST(audit_table_survives_the_round_trip)
{
	assert_round_trip(&sample);
}

TEST(audit_table_takes_any_address)
{
	struct spoilt s;
	struct mp_audit_table *table = spoil(&s);

	s.funcs[0].vaddr = 0;
	s.funcs[1].vaddr = UINT64_MAX;
	s.ranges[4].vaddr = UINT64_MAX - 8;
	s.ranges[5].vaddr = 0;
	s.points[0] = (struct mp_audited_point){UINT64_MAX, UINT32_MAX};
	assert_round_trip(table);
}

#define REFUSED(change)                                                                            \
	do {                                                                                       \
		uint8_t *bytes;                                                                    \
		size_t size;                                                                       \
		table = spoil(&s);                                                                 \
		change;                                                                            \
		ck_assert_int_eq(mp_audit_table_encode(table, &bytes, &size, NULL), -EINVAL);      \
		ck_assert_ptr_null(bytes);                                                         \
	} while (0)

TEST(audit_table_refuses_to_write_what_does_not_fit_together)
{
	struct mp_audit_table *table;
	struct spoilt s;

	REFUSED(table->nr_funcs = 0);
	REFUSED(table->nr_funcs = 1);
	REFUSED(table->nr_funcs = MP_AUDIT_MAX_FUNCTIONS + 1);
	REFUSED(table->nr_ranges = 8);
	REFUSED(table->nr_points = 0);
	REFUSED(s.funcs[1].vaddr = s.funcs[0].vaddr);
	REFUSED(s.funcs[1].first_range = 2);
	REFUSED(s.funcs[0].nr_points = 0);
	REFUSED(s.funcs[1].nr_points = UINT32_MAX);
	REFUSED(s.ranges[0].size = 0);
	REFUSED(s.ranges[0].size = 0x101);
	REFUSED(s.ranges[0].size = 0x81);
	REFUSED(s.ranges[2].size = UINT64_MAX - 0x501000 + 1);
	REFUSED(s.ranges[2].version = MP_AUDIT_NR_CODES);
	REFUSED(s.ranges[5].version = MP_AUDIT_B);
	REFUSED(s.ranges[6].version = MP_AUDIT_A);
	REFUSED(s.ranges[3].version = MP_AUDIT_A);
	REFUSED(s.ranges[8].version = MP_AUDIT_UNTIMED_A);
	REFUSED(s.points[0].rounds = 0);
	/* Without a change it is valid. */
	assert_round_trip(spoil(&s));
}

TEST(audit_table_refuses_every_truncation_and_flipped_bit)
{
	struct mp_audit_table *table = NULL;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_audit_table_encode(&sample, &bytes, &size, NULL), 0);
	for (size_t cut = 1; cut <= size; cut++)
		ck_assert_int_eq(read_table(bytes, size - cut, &table), -EBADMSG);
	for (size_t bit = 0; bit < size * 8; bit++) {
		bytes[bit / 8] ^= 1 << bit % 8;
		ck_assert_int_eq(read_table(bytes, size, &table), -EBADMSG);
		bytes[bit / 8] ^= 1 << bit % 8;
	}
}

TEST(audit_table_refuses_hostile_numbers_behind_a_good_checksum)
{
	/*
	 * Version, functions, ranges, points; a function's address, ranges, points; its ranges:
	 * version, address, size; its point: address, rounds.
	 */
	static const uint64_t good[] = {2,	1,	    4,	1,	0x1000, 4, 1,
					0,	2 * 0x5000, 16, 1,	2 * 16, 8, 2,
					2 * 16, 8,	    3,	2 * 16, 8,	0, 4};
	static const uint64_t values[] = {
		0, 3, 7, 257, 1 << 26, UINT32_MAX, 1ull << 32, INT64_MAX, 1ull << 63, UINT64_MAX};
	/* Numbers of which the others leave only one valid value. */
	static const uint8_t fixed[] = {1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1,
					0, 0, 1, 0, 0, 1, 0, 0, 0, 0};
	const size_t nr = sizeof(good) / sizeof(good[0]);

	for (size_t i = 0; i <= nr; i++)
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			struct mp_varint_writer w = {0};
			struct mp_audit_table *table = NULL;
			bool same = i == nr || values[v] == good[i];
			uint64_t sum;
			int ret;

			for (size_t k = 0; k < nr; k++)
				mp_varint_put(&w, k == i ? values[v] : good[k]);
			sum = XXH3_64bits(w.bytes, w.size);
			mp_varint_put_bytes(&w, &sum, sizeof(sum));
			ret = read_table(w.bytes, w.size, &table);
			ck_assert(!ret || ret == -EBADMSG);
			if (same || fixed[i])
				ck_assert_msg(!ret == same, "%zu %zu", i, v);
			mp_audit_table_free(table);
			free(w.bytes);
		}
}

TEST(audit_table_of_another_file_is_missing)
{
	struct mp_audit_table *table = NULL;

	ck_assert_int_eq(read_section(".other", "x", 1, &table, &err), -ENOENT);
	ck_assert_str_ne(err.msg, "");
	mp_audit_table_free(NULL);
}
