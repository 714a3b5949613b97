// SPDX-License-Identifier: Apache-2.0
/*
 * test_numbered_limit - the functions that run most are instrumented, as far as there is room.
 * Uses this test program's own code.
 */
#include "tests/unit/suite.h"

#include "editor/instrument/numbered_limit.h"
#include "libprof/elf/elf.h"

struct chosen {
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct mp_counts counts;
	uint8_t *movable;
	const char **detail;
	uint32_t nr_kept, nr_blocks;
};

static double runs_of(const struct chosen *c, uint32_t f)
{
	const struct mp_func *func = &c->cfg->funcs[f];
	double sum = 0;

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		sum += c->counts.block[b] * c->cfg->blocks[b].nr_insns;
	return sum;
}

/* Every second function may be moved, and there is room for @max pieces. */
static void choose(struct chosen *c, bool counted, uint64_t max)
{
	*c = (struct chosen){0};
	ck_assert_int_eq(mp_elf_open("/proc/self/exe", MP_ELF_ALL, &c->elf, &err), 0);
	ck_assert_int_eq(mp_cfg_build(c->elf, NULL, &c->cfg, &err), 0);
	c->movable = calloc(c->cfg->nr_funcs, 1);
	c->detail = calloc(c->cfg->nr_funcs, sizeof(*c->detail));
	c->counts.block = calloc(c->cfg->nr_blocks, sizeof(*c->counts.block));
	ck_assert(c->movable && c->detail && c->counts.block);
	for (uint32_t b = 0; b < c->cfg->nr_blocks; b++)
		c->counts.block[b] = b % 97 * (b % 13);
	for (uint32_t f = 0; f < c->cfg->nr_funcs; f += 2)
		c->movable[f] = 1;
	ck_assert_int_eq(me_numbered_limit_apply(c->cfg, counted ? &c->counts : NULL, max,
						 c->movable, c->detail),
			 0);
	for (uint32_t f = 0; f < c->cfg->nr_funcs; f++) {
		c->nr_kept += c->movable[f];
		c->nr_blocks += c->movable[f] ? c->cfg->funcs[f].nr_blocks : 0;
	}
}

static void done(struct chosen *c)
{
	free(c->counts.block);
	free(c->detail);
	free(c->movable);
	mp_cfg_free(c->cfg);
	mp_elf_close(c->elf);
}

TEST(all_stay_where_there_is_room)
{
	struct chosen c;

	choose(&c, true, UINT64_MAX);
	ck_assert_uint_eq(c.nr_kept, (c.cfg->nr_funcs + 1) / 2);
	for (uint32_t f = 0; f < c.cfg->nr_funcs; f++)
		ck_assert_ptr_null(c.detail[f]);
	done(&c);
}

TEST(what_runs_most_stays)
{
	const uint64_t max = 2000;
	struct chosen c;

	choose(&c, true, max);
	ck_assert_uint_gt(c.nr_kept, 0);
	ck_assert_uint_lt(c.nr_kept, c.cfg->nr_funcs / 2);
	ck_assert_uint_le(c.nr_blocks, max);
	/* A function that was left out would not have fitted beside those that run more. */
	for (uint32_t f = 0; f < c.cfg->nr_funcs; f += 2) {
		uint64_t pieces = 2 * (uint64_t)c.cfg->funcs[f].nr_blocks;

		ck_assert(!c.movable[f] == !!c.detail[f]);
		for (uint32_t k = 0; k < c.cfg->nr_funcs; k++)
			if (c.movable[k] && runs_of(&c, k) >= runs_of(&c, f))
				pieces += 2 * (uint64_t)c.cfg->funcs[k].nr_blocks;
		ck_assert(c.movable[f] || pieces > max);
	}
	done(&c);
}

TEST(the_first_stay_where_nothing_is_known)
{
	const uint64_t max = 2000;
	uint64_t pieces = 0;
	struct chosen c;

	choose(&c, false, max);
	for (uint32_t f = 0; f < c.cfg->nr_funcs; f += 2) {
		uint64_t more = 2 * (uint64_t)c.cfg->funcs[f].nr_blocks;

		ck_assert(c.movable[f] == (pieces + more <= max));
		pieces += c.movable[f] ? more : 0;
	}
	ck_assert_uint_lt(c.nr_kept, c.cfg->nr_funcs / 2);
	done(&c);
}
