// SPDX-License-Identifier: Apache-2.0
/* test_range_coder - bits and numbers come back as they were written, and likely ones take little room. */
#include "libprof/base/range_coder.h"

#include "tests/unit/suite.h"

#define NR 20000

static uint64_t state;
static struct mp_varint_writer out;
static struct mp_range_coder rc;
static struct mp_bit_model bits[8];
static struct mp_number_model numbers;

static uint64_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 11;
}

static void forget(void)
{
	state = 11;
	mp_bit_models_init(bits, 8);
	mp_bit_models_init((struct mp_bit_model *)&numbers,
			   sizeof(numbers) / sizeof(struct mp_bit_model));
}

static void setup(void)
{
	out = (struct mp_varint_writer){0};
	mp_range_write(&rc, &out);
	forget();
}

static void teardown(void)
{
	free(out.bytes);
}

/* Numbers of all lengths. */
static uint64_t draw_number(void)
{
	uint64_t v = draw() << 11;

	v ^= draw();
	return v >> draw() % 64;
}

/* Codes drawn bits and numbers. Without @give, what the coder is given is not what was drawn. */
static void code_all(bool give)
{
	for (int i = 0; i < NR; i++) {
		bool bit = draw() % 50 == 0;
		uint64_t v = draw_number(), some = draw() % 1000;

		ck_assert_int_eq(mp_range_bit(&rc, &bits[i % 8], give && bit), bit);
		ck_assert_uint_eq(mp_range_number(&rc, &numbers, give ? v : 77), v);
		ck_assert_uint_eq(mp_range_bits(&rc, 10, give ? some : 0), some);
	}
}

FIXTURE(setup, teardown);

TEST(bits_and_numbers_come_back)
{
	code_all(true);
	mp_range_finish(&rc);
	ck_assert(!out.failed);
	forget();
	mp_range_read(&rc, out.bytes, out.size);
	code_all(false);
	ck_assert(mp_range_finish(&rc));
}

TEST(the_ends_of_the_numbers_come_back)
{
	static const uint64_t ends[] = {0,	   1, 2, 3, 65535, 65536, INT64_MAX, UINT64_MAX - 1,
					UINT64_MAX};
	const size_t nr = sizeof(ends) / sizeof(ends[0]);

	for (size_t i = 0; i < nr; i++)
		mp_range_number(&rc, &numbers, ends[i]);
	mp_range_bits(&rc, 64, UINT64_MAX);
	mp_range_bits(&rc, 0, 1);
	mp_range_finish(&rc);
	forget();
	mp_range_read(&rc, out.bytes, out.size);
	for (size_t i = 0; i < nr; i++)
		ck_assert_uint_eq(mp_range_number(&rc, &numbers, 0), ends[i]);
	ck_assert_uint_eq(mp_range_bits(&rc, 64, 0), UINT64_MAX);
	ck_assert_uint_eq(mp_range_bits(&rc, 0, 0), 0);
	ck_assert(mp_range_finish(&rc));
}

TEST(unlikely_bits_take_room_and_likely_ones_little)
{
	for (int i = 0; i < NR; i++)
		mp_range_bit(&rc, &bits[0], draw() % 50 == 0);
	mp_range_finish(&rc);
	/* The entropy is 0.1414 bits each. */
	ck_assert_uint_gt(out.size, NR * 0.14 / 8);
	ck_assert_uint_lt(out.size, NR * 0.18 / 8);
}

/* A carry may go through any number of bytes that are 255. */
TEST(carries_reach_bytes_that_wait)
{
	for (int turn = 0; turn < 300; turn++) {
		uint64_t before = state;

		out.size = 0;
		mp_range_write(&rc, &out);
		for (int i = 0; i < 40; i++)
			mp_range_bits(&rc, 8, draw() % 64 ? 255 : draw());
		mp_range_finish(&rc);
		state = before;
		mp_range_read(&rc, out.bytes, out.size);
		for (int i = 0; i < 40; i++) {
			uint64_t want = draw() % 64 ? 255 : draw() & 255;

			ck_assert_uint_eq(mp_range_bits(&rc, 8, 0), want);
		}
		ck_assert(mp_range_finish(&rc));
	}
}

TEST(bytes_that_are_too_few_or_too_many_are_noticed)
{
	for (int i = 0; i < 100; i++)
		mp_range_number(&rc, &numbers, draw_number());
	mp_range_finish(&rc);
	for (size_t size = 0; size < out.size; size++) {
		forget();
		mp_range_read(&rc, out.bytes, size);
		for (int i = 0; i < 100; i++)
			mp_range_number(&rc, &numbers, 0);
		ck_assert(!mp_range_finish(&rc));
	}
	mp_varint_put_bytes(&out, "x", 1);
	forget();
	mp_range_read(&rc, out.bytes, out.size);
	for (int i = 0; i < 100; i++)
		mp_range_number(&rc, &numbers, 0);
	ck_assert(!mp_range_finish(&rc));
}
