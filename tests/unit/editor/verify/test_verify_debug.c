// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_debug - .debug_info of outputs in which functions replace calls: verify proves the good ones, and refuses
 * changed entries, old and added ones.
 */
#include "tests/unit/suite.h"

#include <errno.h>

#include "tests/unit/verify_pair.h"

static const char *const builds[] = {
	"gcc -gdwarf-5 -O2 tests/data/leaf.c",
	"gcc -gdwarf-4 -O2 tests/data/leaf.c",
	"g++ -gdwarf-5 -x c++ -O2 tests/data/leaf.c",
	"clang -w -gdwarf-5 -O2 tests/data/leaf.c",
	"clang++ -w -gdwarf-5 -x c++ -O2 tests/data/leaf.c",
};

#define NR_BUILDS ((int)(sizeof(builds) / sizeof(builds[0])))

struct info {
	const struct mp_section *was, *now;
	const uint8_t *old;
	uint8_t *bytes; /* of the changed output */
};

static bool has_clang(int variant)
{
	return strncmp(builds[variant], "clang", 5) || !system("clang --version >/dev/null 2>&1");
}

static struct info build(struct pair *p, int variant)
{
	struct info info;

	pair_make(p, builds[variant], 0, PAIR_INLINED);
	info.was = mp_elf_section(p->original, ".debug_info");
	info.now = mp_elf_section(p->good, ".debug_info");
	ck_assert_ptr_nonnull(info.was);
	ck_assert_ptr_nonnull(info.now);
	/* An added unit is there. */
	ck_assert_uint_gt(info.now->size, info.was->size + 100);
	info.old = p->original->data + info.was->off;
	info.bytes = p->bytes + info.now->off;
	return info;
}

static bool is_refused(struct pair *p)
{
	struct mp_err err;
	int rc = pair_verify(p, p->size, &err);

	ck_assert(rc == 0 || rc == -EBADMSG);
	return rc;
}

/*
 * Does the location at @off lead to its own views now? They follow it. Where they begin with a zero, this is an
 * empty list: a variable without a location, as verify allows.
 */
static bool is_lost(const struct info *info, uint64_t off)
{
	return off + 8 <= info->now->size && !memcmp(info->bytes + off, info->bytes + off + 4, 4);
}

/* Flips one bit of every byte, another one in each byte. */
START_TEST(verify_refuses_changed_bits_of_added_units)
{
	struct info info;
	struct pair p;
	uint32_t nr = 0;

	if (!has_clang(_i))
		MORPH_SKIP("no clang");
	info = build(&p, _i);
	for (uint64_t off = info.was->size; off < info.now->size; off++, nr++) {
		uint8_t bit = (uint8_t)(1 << off % 7);

		info.bytes[off] ^= bit;
		ck_assert_msg(is_refused(&p) || is_lost(&info, off),
			      "%s: bit %#x of .debug_info+%#llx: accepted", builds[_i], bit,
			      (unsigned long long)off);
		info.bytes[off] ^= bit;
	}
	ck_assert_uint_ge(nr, 100);
	pair_free(&p);
}
END_TEST

/* Is a byte near @off another one than in the original? */
static bool is_near_change(const struct info *info, const struct pair *p, uint64_t off)
{
	const uint8_t *good = p->good->data + info->now->off;

	for (uint64_t i = off < 3 ? 0 : off - 3; i <= off + 3 && i < info->was->size; i++)
		if (good[i] != info->old[i])
			return true;
	return false;
}

/* Only offsets of lists that are other ones than in the original may be others again. */
START_TEST(verify_refuses_changed_bits_of_old_units)
{
	uint32_t nr_refused = 0;
	struct info info;
	struct pair p;

	if (!has_clang(_i))
		MORPH_SKIP("no clang");
	info = build(&p, _i);
	for (uint64_t off = 0; off < info.was->size; off += 3) {
		uint8_t bit = (uint8_t)(1 << off % 7);
		bool refused;

		info.bytes[off] ^= bit;
		refused = is_refused(&p);
		info.bytes[off] ^= bit;
		nr_refused += refused;
		ck_assert_msg(refused || is_near_change(&info, &p, off),
			      "%s: bit %#x of .debug_info+%#llx: accepted", builds[_i], bit,
			      (unsigned long long)off);
	}
	ck_assert_uint_ge(nr_refused, 100);
	pair_free(&p);
}
END_TEST

/* Each range of bytes of the added unit that differs from the next one of its kind is exchanged with it. */
START_TEST(verify_refuses_exchanged_bytes_of_added_units)
{
	uint32_t nr = 0;
	struct info info;
	struct pair p;

	if (!has_clang(_i))
		MORPH_SKIP("no clang");
	info = build(&p, _i);
	for (uint64_t off = info.was->size; off + 16 < info.now->size; off += 5) {
		uint8_t was[16];

		memcpy(was, info.bytes + off, sizeof(was));
		memcpy(info.bytes + off, was + 8, 8);
		memcpy(info.bytes + off + 8, was, 8);
		if (memcmp(was, info.bytes + off, sizeof(was))) {
			ck_assert_msg(is_refused(&p),
				      "%s: exchanged at .debug_info+%#llx: accepted", builds[_i],
				      (unsigned long long)off);
			nr++;
		}
		memcpy(info.bytes + off, was, sizeof(was));
	}
	ck_assert_uint_ge(nr, 20);
	pair_free(&p);
}
END_TEST

static Suite *verify_debug_suite(void)
{
	Suite *suite = suite_create("verify_debug");
	TCase *tc = tcase_create("verify_debug");

	tcase_add_loop_test(tc, verify_refuses_changed_bits_of_added_units, 0, NR_BUILDS);
	tcase_add_loop_test(tc, verify_refuses_changed_bits_of_old_units, 0, NR_BUILDS);
	tcase_add_loop_test(tc, verify_refuses_exchanged_bytes_of_added_units, 0, NR_BUILDS);
	suite_add_tcase(suite, tc);
	return suite;
}

MORPH_SUITE_MAIN(verify_debug_suite)
