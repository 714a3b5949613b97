// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_debug - .debug_info of outputs in which functions replace calls: verify proves the good ones, and refuses
 * changed entries, old and added ones.
 */
#include "tests/unit/suite.h"

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
TEST_EACH(verify_refuses_changed_bits_of_added_units, NR_BUILDS)
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
TEST_EACH(verify_refuses_changed_bits_of_old_units, NR_BUILDS)
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

/* Each range of bytes of the added unit that differs from the next one of its kind is exchanged with it. */
TEST_EACH(verify_refuses_exchanged_bytes_of_added_units, NR_BUILDS)
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

/* ---- code in two pieces, and with registers saved ------------------------------------------ */

static const char *const divided_builds[] = {
	"gcc -gdwarf-5 -O2 tests/data/leaf_values.c",
	"gcc -gdwarf-4 -O2 tests/data/leaf_values.c",
	"gcc -gdwarf-5 -O2 -fno-var-tracking tests/data/leaf_values.c",
	"gcc -gdwarf-4 -O2 -fno-var-tracking tests/data/leaf_values.c",
};

#define NR_DIVIDED_BUILDS ((int)(sizeof(divided_builds) / sizeof(divided_builds[0])))

static bool is_version_5(int variant)
{
	return strstr(divided_builds[variant], "gdwarf-5");
}

/* The added bytes of a section. */
struct added {
	uint8_t *bytes;
	uint64_t size;
};

static struct added added_bytes(struct pair *p, const char *name)
{
	const struct mp_section *was = mp_elf_section(p->original, name);
	const struct mp_section *now = mp_elf_section(p->good, name);
	uint64_t old = was ? was->size : 0;

	ck_assert_ptr_nonnull(now);
	ck_assert_uint_gt(now->size, old);
	return (struct added){p->bytes + now->off + old, now->size - old};
}

/* The piece with which the code in place of call @i begins; NULL: it is a part that lies apart. */
static const struct mp_map_piece *near_piece(const struct pair *p, uint32_t i)
{
	const struct mp_map_call *call = &p->map->calls[i];
	const struct mp_map_piece *piece = &p->map->pieces[call->first];

	return piece->old_vaddr - call->callee <= 4 ? piece : NULL;
}

static bool begins_code(const struct pair *p, uint64_t vaddr)
{
	for (uint32_t i = 0; i < p->map->nr_calls; i++) {
		const struct mp_map_piece *piece = near_piece(p, i);

		if (piece && piece->new_vaddr == vaddr)
			return true;
	}
	return false;
}

static uint64_t u64_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Adds 1 to the byte, whose highest bit says whether more follow. Return: is the change refused? */
static bool is_one_more_refused(struct pair *p, uint8_t *byte)
{
	bool refused;

	ck_assert_uint_ne(*byte & 0x7f, 0x7f);
	*byte += 1;
	refused = is_refused(p);
	*byte -= 1;
	return refused;
}

/*
 * Each range of a location that ends where code in place of a call begins gets one byte more. Then the location says that
 * a variable is in a register, or relative to one, that the code changes. Those of arguments may be right by chance: a
 * function may leave registers alone that calls need not keep.
 */
TEST_EACH(verify_refuses_locations_in_code_in_place_of_calls, NR_DIVIDED_BUILDS)
{
	uint32_t nr = 0, nr_refused = 0;
	struct added loc;
	struct pair p;

	pair_make(&p, divided_builds[_i], 7, PAIR_DIVIDED);
	loc = added_bytes(&p, is_version_5(_i) ? ".debug_loclists" : ".debug_loc");
	for (uint64_t off = 0; off + 20 < loc.size; off++) {
		uint8_t *b = loc.bytes + off, *last = NULL;
		uint64_t length;

		if (is_version_5(_i)) {
			/* DW_LLE_start_length, and a length of one byte or two */
			length = b[9] & 0x80 ? (b[9] & 0x7f) + 128u * b[10] : b[9];
			if (*b == 8 && begins_code(&p, u64_at(b + 1) + length))
				last = b + 9;
		} else if (begins_code(&p, u64_at(b + 8)) && u64_at(b) < u64_at(b + 8) &&
			   u64_at(b) >= p.map->pieces[0].new_vaddr) {
			last = b + 8;
		}
		if (!last || (*last & 0x7f) == 0x7f)
			continue;
		nr++;
		nr_refused += is_one_more_refused(&p, last);
	}
	ck_assert_msg(nr_refused >= 4 && nr_refused > nr / 2, "%s: %u of %u changes refused",
		      divided_builds[_i], nr_refused, nr);
	pair_free(&p);
}

/* The two ranges of an entry begin at other bytes, or end there. */
TEST_EACH(verify_refuses_ranges_of_divided_calls, NR_DIVIDED_BUILDS)
{
	uint32_t nr = 0;
	struct added ranges;
	struct pair p;

	pair_make(&p, divided_builds[_i], 7, PAIR_DIVIDED);
	ranges = added_bytes(&p, is_version_5(_i) ? ".debug_rnglists" : ".debug_ranges");
	for (uint64_t off = 0; off + (is_version_5(_i) ? 18 : 48) <= ranges.size; off++) {
		uint8_t *b = ranges.bytes + off;

		if (is_version_5(_i)) {
			/* DW_RLE_base_address, two DW_RLE_offset_pair of which the first begins with 0, an end */
			if (*b != 5 || b[9] != 4 || b[10] || !begins_code(&p, u64_at(b + 1)))
				continue;
			b += 11;
			/* Its end, the second one's start and end */
			for (int k = 0; k < 3; k++, b++) {
				if (k == 1)
					b++;
				if ((*b & 0x7f) != 0x7f)
					ck_assert(is_one_more_refused(&p, b));
				while (*b & 0x80)
					b++;
			}
		} else {
			if (!begins_code(&p, u64_at(b)) || u64_at(b + 16) <= u64_at(b + 8) ||
			    u64_at(b + 32))
				continue;
			for (int k = 0; k < 32; k += 8)
				if ((b[k] & 0x7f) != 0x7f)
					ck_assert(is_one_more_refused(&p, b + k));
		}
		nr++;
	}
	ck_assert_uint_ge(nr, 1);
	pair_free(&p);
}

/* One number of a unit changes, in its last entry: verify reads all others before. */
TEST_EACH(verify_refuses_debug_information_that_takes_too_long, 2)
{
	static const char *const of[] = {"LISTS", "ATTRS"};
	const struct mp_section *info;
	struct mp_err err = {""};
	char command[128];
	uint64_t last;
	struct pair p;

	snprintf(command, sizeof(command),
		 "gcc -gdwarf-4 -O2 -D%s tests/data/leaf.c tests/data/debug_many.S", of[_i]);
	pair_make(&p, command, 0, PAIR_INLINED);
	info = mp_elf_section(p.original, ".debug_info");
	ck_assert_ptr_nonnull(info);
	last = info->size;
	while (last && p.original->data[info->off + last] != 43)
		last--;
	ck_assert_uint_gt(last, 0);
	info = mp_elf_section(p.good, ".debug_info");
	p.bytes[info->off + last]++;
	ck_assert_int_eq(pair_verify(&p, p.size, &err), -EBADMSG);
	ck_assert_msg(strstr(err.msg, "takes too long"), "%s", err.msg);
	pair_free(&p);
}
