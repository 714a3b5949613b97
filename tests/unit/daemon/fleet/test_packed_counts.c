// SPDX-License-Identifier: Apache-2.0
/*
 * test_packed_counts - what is packed is unpacked again, to the last count; bytes that are no packed counts are
 * refused, and never read past their end.
 */
#include "daemon/fleet/packed_counts.h"

#include "tests/unit/suite.h"

static struct md_packer packer, unpacker;
static struct mp_ip_count ips[MP_CHUNK_SIZE];
static uint8_t plain[MP_CHUNK_SIZE * MP_CHUNK_ENTRY_MAX];

static void teardown(void)
{
	md_packer_fini(&packer);
	md_packer_fini(&unpacker);
}

/* Return: the size of the packed bytes; 0: they would hardly be fewer. */
static long pack(size_t nr)
{
	return md_counts_pack(&packer, plain, mp_chunk_encode(0, ips, nr, plain));
}

static void comes_back(size_t nr, long size)
{
	/* Exactly as many bytes as there are, so that a sanitiser sees a read past the end. */
	uint8_t *bytes = malloc((size_t)size);
	size_t nr_unpacked;

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, packer.bytes, (size_t)size);
	ck_assert(md_counts_are_packed(bytes, (size_t)size));
	ck_assert_int_eq(md_counts_unpack(&unpacker, 0x70000, bytes, (size_t)size, &nr_unpacked),
			 0);
	free(bytes);
	ck_assert_uint_eq(nr_unpacked, nr);
	for (size_t i = 0; i < nr; i++)
		if (unpacker.entries[i].vaddr != 0x70000 + ips[i].vaddr ||
		    unpacker.entries[i].count != ips[i].count)
			ck_abort_msg("entry %zu of %zu differs", i, nr);
}

/* Addresses and counts of many sizes, from a generator of its own. */
static size_t make(uint32_t seed, uint32_t gap, uint32_t most)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 1, at = 0;
	size_t nr = 0;

	for (;;) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		at += (state >> 33) % gap;
		if (at >= MP_CHUNK_SIZE)
			return nr;
		ips[nr].vaddr = at++;
		ips[nr++].count = 1 + ((uint64_t)1 << (state >> 40) % most) - ((state >> 50) & 1);
	}
}

FIXTURE(NULL, teardown);

TEST(counts_come_back)
{
	static const uint32_t gaps[] = {1, 9, 40, 300, 900, 5000};
	unsigned int nr_packed = 0;

	for (uint32_t seed = 0; seed < 40; seed++) {
		size_t nr = make(seed, gaps[seed % 6], 1 + seed * 7 % 45);
		long size = nr ? pack(nr) : 0;

		ck_assert_int_ge(size, 0);
		if (!size)
			continue;
		nr_packed++;
		comes_back(nr, size);
	}
	ck_assert_uint_gt(nr_packed, 10);
}

TEST(packed_counts_of_samples_are_smaller)
{
	size_t nr = make(7, 60, 3);
	long size = pack(nr);

	ck_assert_int_gt(size, 0);
	ck_assert_int_lt(size, (long)mp_chunk_encode(0, ips, nr, plain) * 9 / 10);
}

TEST(the_ends_of_a_chunk_and_the_largest_count_come_back)
{
	size_t nr = 40;
	long size;

	for (size_t i = 0; i < nr; i++)
		ips[i] = (struct mp_ip_count){64 * i, 3 + i % 5};
	ips[nr - 1].vaddr = MP_CHUNK_SIZE - 1;
	ips[0].count = ((uint64_t)1 << 46) - 1;
	size = pack(nr);
	ck_assert_int_gt(size, 0);
	comes_back(nr, size);
	ips[0].count++;
	ck_assert_int_eq(pack(nr), 0);
}

TEST(the_store_s_bytes_are_not_taken_for_packed_ones)
{
	for (uint32_t seed = 0; seed < 40; seed++) {
		size_t nr = make(seed, 1 + seed * seed, 1 + seed % 45);

		if (nr)
			ck_assert(!md_counts_are_packed(plain, mp_chunk_encode(0, ips, nr, plain)));
	}
	ck_assert(!md_counts_are_packed(plain, 0));
}

/* Whatever is unpacked is a sound chunk. */
static void is_sound(size_t nr)
{
	ck_assert_uint_ge(nr, 1);
	ck_assert_uint_le(nr, MP_CHUNK_SIZE);
	for (size_t i = 0; i < nr; i++) {
		const struct mp_ip_count *ip = &unpacker.entries[i];

		if (ip->vaddr >= MP_CHUNK_SIZE || (i && ip->vaddr <= ip[-1].vaddr) || !ip->count ||
		    ip->count >> 46)
			ck_abort_msg("entry %zu of %zu is not sound", i, nr);
	}
}

TEST(damaged_bytes_are_refused_or_sound)
{
	size_t nr = make(3, 900, 9), nr_unpacked, nr_refused = 0;
	long size = pack(nr);

	ck_assert_int_gt(size, 0);
	for (long cut = 0; cut < size; cut++) {
		AUTO_FREE uint8_t *bytes = malloc((size_t)cut + 1);

		memcpy(bytes, packer.bytes, (size_t)cut);
		if (cut)
			bytes[cut - 1] |= 128;
		/* The last byte that is left chooses other codes, by which the rest may be valid. */
		if (md_counts_unpack(&unpacker, 0, bytes, (size_t)cut, &nr_unpacked))
			nr_refused++;
		else
			is_sound(nr_unpacked);
	}
	for (long bit = 0; bit < 8 * size; bit++) {
		packer.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (md_counts_unpack(&unpacker, 0, packer.bytes, (size_t)size, &nr_unpacked))
			nr_refused++;
		else
			is_sound(nr_unpacked);
		packer.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	ck_assert_uint_gt(nr_refused, 0);
}

TEST(more_bytes_than_the_entries_need_are_refused)
{
	size_t nr = make(5, 40, 9), nr_unpacked;
	long size = pack(nr);
	AUTO_FREE uint8_t *bytes = calloc(1, (size_t)size + 1);

	ck_assert_int_gt(size, 0);
	memcpy(bytes, packer.bytes, (size_t)size - 1);
	bytes[size] = packer.bytes[size - 1];
	ck_assert_int_eq(md_counts_unpack(&unpacker, 0, bytes, (size_t)size + 1, &nr_unpacked),
			 -EBADMSG);
}

TEST(bytes_that_the_store_does_not_write_are_not_packed)
{
	size_t nr = make(7, 60, 3), size = mp_chunk_encode(0, ips, nr, plain);

	plain[size - 1] = 0x83;
	ck_assert_int_eq(md_counts_pack(&packer, plain, size), -EBADMSG);
	ck_assert_int_eq(md_counts_pack(&packer, plain, 0), 0);
}
