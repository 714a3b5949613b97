// SPDX-License-Identifier: Apache-2.0
/*
 * test_source_counts - LLVM's discriminators, as its header DebugInfoMetadata.h describes them. Shell tests
 * (tests/e2e/stats/export-llvm-sample.sh, export-gcc-afdo.sh) check the rest with the compilers.
 */
#include "daemon/export/source_counts.h"
#include "tests/unit/suite.h"

/* One component: nothing in 1 bit, values below 32 in 7 bits, up to 4,095 in 14 bits. */
static unsigned int encode(uint32_t value, uint32_t *bits)
{
	if (!value) {
		*bits = 1;
		return 1;
	}
	if (value < 32) {
		*bits = value << 1;
		return 7;
	}
	*bits = (value & 0x1f) << 1 | 0x40 | (value >> 5) << 7;
	return 14;
}

static uint32_t discriminator(uint32_t base, uint32_t factor, uint32_t copy)
{
	const uint32_t values[] = {base, factor, copy};
	uint32_t left = base + factor + copy, out = 0, bits;
	unsigned int at = 0;

	/* What is empty up to the end takes no bits. */
	for (int i = 0; left; left -= values[i++]) {
		unsigned int nr = encode(values[i], &bits);

		out |= bits << at;
		at += nr;
	}
	return out;
}

TEST(discriminators_have_three_parts)
{
	static const uint32_t values[] = {0, 1, 2, 3, 31, 32, 33, 64, 511};
	const size_t nr = sizeof(values) / sizeof(values[0]);

	for (size_t b = 0; b < nr; b++)
		for (size_t f = 0; f < nr; f++)
			for (size_t c = 0; c < 4; c++) { /* more does not fit into 32 bits */
				struct md_discriminator got = md_discriminator_decode(
					discriminator(values[b], values[f], values[c]));

				ck_assert_uint_eq(got.base, values[b]);
				ck_assert_uint_eq(got.factor, values[f] ? values[f] : 1);
				ck_assert_uint_eq(got.copy, values[c]);
			}
}

/* Numbers that clang 14 wrote for a loop that it made wider and unrolled. */
TEST(discriminators_of_clang)
{
	static const struct {
		uint32_t discriminator, base, factor;
	} rows[] = {{0, 0, 1}, {2, 1, 1}, {6, 3, 1}, {33, 0, 8}, {518, 3, 2}, {1026, 1, 4}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct md_discriminator got = md_discriminator_decode(rows[i].discriminator);

		ck_assert_uint_eq(got.base, rows[i].base);
		ck_assert_uint_eq(got.factor, rows[i].factor);
		ck_assert_uint_eq(got.copy, 0);
	}
}
