// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_codec - the encoding of a chunk of counts.
 */

#include "tests/unit/store_fixture.h"

/* ---- codec --------------------------------------------------------------------------------- */

FIXTURE(setup, teardown);

TEST(codec_gives_back_what_it_took)
{
	static struct mp_ip_count in[MP_CHUNK_SIZE], out[MP_CHUNK_SIZE];
	static uint8_t bytes[MP_CHUNK_SIZE * MP_CHUNK_ENTRY_MAX];
	const uint64_t bases[] = {0, 0x400000, 0xffffffff81000000, UINT64_MAX - MP_CHUNK_SIZE + 1};
	uint64_t seed = 42;

	for (int round = 0; round < 400; round++) {
		uint64_t base = bases[round % 4], off = 0;
		size_t nr = 0, nr_out = 0, size;

		while ((off += next_random(&seed) % (1 + (unsigned)round)) < MP_CHUNK_SIZE) {
			uint64_t kind = next_random(&seed) % 6;

			in[nr].vaddr = base + off++;
			in[nr++].count = kind < 4 ? kind + 1 : kind == 4 ? UINT64_MAX : 300;
		}
		size = mp_chunk_encode(base, in, nr, bytes);
		ck_assert_int_eq(mp_chunk_decode(base, bytes, size, out, &nr_out), 0);
		ck_assert_uint_eq(nr_out, nr);
		for (size_t i = 0; i < nr; i++) {
			ck_assert_uint_eq(out[i].vaddr, in[i].vaddr);
			ck_assert_uint_eq(out[i].count, in[i].count);
		}
	}
}

TEST(codec_refuses_what_it_never_wrote)
{
	static struct mp_ip_count out[MP_CHUNK_SIZE];
	static const struct {
		uint8_t bytes[12];
		size_t size;
	} bad[] = {
		{{0x83}, 1},		       /* token truncated */
		{{0x03}, 1},		       /* count missing */
		{{0x03, 0x00}, 2},	       /* a count of 0 */
		{{0x80, 0x80, 0x10}, 3},       /* offset 64 KiB in a chunk of 64 KiB */
		{{0xfc, 0xff, 0x0f, 0x00}, 4}, /* beyond the chunk's last byte */
		{{0x03, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 11},
		{{0x03, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x81, 0x00}, 12},
	};
	size_t nr;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(mp_chunk_decode(0, bad[i].bytes, bad[i].size, out, &nr), -EBADMSG);
}

TEST(codec_keeps_a_run_of_equal_counts_in_a_byte_each)
{
	struct mp_ip_count in[100];
	uint8_t bytes[100 * MP_CHUNK_ENTRY_MAX];

	for (int i = 0; i < 100; i++)
		in[i] = (struct mp_ip_count){(uint64_t)i * 4, 123456};
	/* Only the first entry has its count, in three bytes. */
	ck_assert_uint_eq(mp_chunk_encode(0, in, 100, bytes), 103);
}
