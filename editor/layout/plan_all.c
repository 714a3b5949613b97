// SPDX-License-Identifier: Apache-2.0
/* plan_all - plans to move everything that may move. optimize calls it for --all and
 * --lab=stress-layout. */
#include "editor/layout/plan_all.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "editor/base/mix.h"
#include "editor/evidence/eligible.h"

static void shuffle(uint32_t *items, uint32_t nr, uint64_t *state)
{
	for (uint32_t i = nr; i > 1; i--) {
		uint32_t j = (uint32_t)(me_next_random(state) % i), t = items[i - 1];

		items[i - 1] = items[j];
		items[j] = t;
	}
}

static void reverse(uint32_t *items, uint32_t nr)
{
	for (uint32_t i = 0; i < nr / 2; i++) {
		uint32_t t = items[i];

		items[i] = items[nr - 1 - i];
		items[nr - 1 - i] = t;
	}
}

enum {
	LEFT = ME_NR_ZONES
}; /* zone of a block that is not copied */

/* A quarter of the functions stays whole; in the others, one block in twelve stays in old code. */
static void choose_zones(const struct mp_cfg *cfg, uint32_t func, bool stress, uint64_t *state,
			 uint8_t *zones)
{
	const struct mp_func *f = &cfg->funcs[func];
	bool split = stress && me_next_random(state) % 4 != 0;

	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		uint64_t dice = me_next_random(state) % 12;

		if (me_block_stays(&cfg->blocks[b]))
			zones[b] = LEFT;
		else if (!split || cfg->blocks[b].flags & MP_BLOCK_ENTRY || dice < 7)
			zones[b] = ME_ZONE_HOT;
		else
			zones[b] = dice < 11 ? ME_ZONE_WARM : LEFT;
	}
}

/* At random, add a clone of a block's successor, of that one's successor, and so on. */
static void add_clones(const struct mp_cfg *cfg, uint32_t block, enum me_zone zone,
		       const uint8_t *zones, uint64_t *state, struct me_plan *plan, uint32_t *room)
{
	while (*room && me_next_random(state) % 3 == 0) {
		const struct mp_block *from = &cfg->blocks[block];
		const struct mp_block *to;
		uint32_t e;

		if (from->term != MP_TERM_COND && from->term != MP_TERM_JUMP &&
		    from->term != MP_TERM_FALL)
			return;
		if (from->nr_edges == 0)
			return;
		e = from->first_edge + (uint32_t)(me_next_random(state) % from->nr_edges);
		block = cfg->edges[e].to;
		to = &cfg->blocks[block];
		if (to->flags & (MP_BLOCK_ENTRY | MP_BLOCK_LANDING_PAD) || zones[block] == LEFT)
			return;
		plan->blocks[plan->nr_blocks++] =
			(struct me_plan_block){.block = block, .zone = zone, .clone = true};
		(*room)--;
	}
}

static void add_function(const struct mp_cfg *cfg, uint32_t func, enum me_zone zone,
			 const uint8_t *zones, bool stress, uint64_t *state, uint32_t *scratch,
			 struct me_plan *plan)
{
	const struct mp_func *f = &cfg->funcs[func];
	uint32_t nr = 0, entry = MP_NONE, behind = MP_NONE, room = stress ? f->nr_blocks : 0;

	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		if (zones[b] != zone)
			continue;
		if (cfg->blocks[b].flags & MP_BLOCK_ENTRY && entry == MP_NONE)
			entry = b;
		else if (cfg->blocks[b].flags & MP_BLOCK_BEHIND_ENTRY && entry == b - 1 && !stress)
			behind = b;
		else
			scratch[nr++] = b;
	}
	if (stress && me_next_random(state) % 3 == 0)
		reverse(scratch, nr);
	else if (stress)
		shuffle(scratch, nr, state);
	if (entry != MP_NONE) {
		plan->blocks[plan->nr_blocks++] =
			(struct me_plan_block){.block = entry, .zone = zone, .align_log2 = 4};
		add_clones(cfg, entry, zone, zones, state, plan, &room);
	}
	if (behind != MP_NONE)
		plan->blocks[plan->nr_blocks++] =
			(struct me_plan_block){.block = behind, .zone = zone, .heat = 1};
	for (uint32_t i = 0; i < nr; i++) {
		plan->blocks[plan->nr_blocks++] = (struct me_plan_block){
			.block = scratch[i],
			.zone = zone,
			.align_log2 = stress && me_next_random(state) % 16 == 0 ? 4 : 0,
			.favour_fall = stress ? me_next_random(state) % 2 : 0,
			.run = stress && me_next_random(state) % 8 == 0
				       ? 1 + me_next_random(state) % 4
				       : 0,
			.heat = 1};
		add_clones(cfg, scratch[i], zone, zones, state, plan, &room);
	}
}

int me_plan_all(const struct mp_cfg *cfg, const uint8_t *eligible, const uint64_t *seed,
		struct me_plan *plan, struct mp_err *err)
{
	bool stress = seed != NULL;
	uint32_t *order = malloc((cfg->nr_funcs + 1) * sizeof(*order)), nr = 0;
	uint32_t *scratch = malloc((cfg->nr_blocks + 1) * sizeof(*scratch));
	uint8_t *zones = malloc(cfg->nr_blocks + 1);
	uint64_t state = stress ? *seed : 0;
	int rc = 0;

	*plan = (struct me_plan){.line_log2 = stress ? 5 + *seed % 2 : 0};
	/* A function has at most as many clones as blocks, in each zone. */
	plan->blocks =
		malloc(((ME_NR_ZONES + 1) * (size_t)cfg->nr_blocks + 1) * sizeof(*plan->blocks));
	if (!order || !scratch || !zones || !plan->blocks) {
		rc = mp_err_set(err, ENOMEM, "out of memory");
		me_plan_fini(plan);
		goto out;
	}
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		if (!eligible[f])
			continue;
		order[nr++] = f;
		choose_zones(cfg, f, stress, &state, zones);
	}
	if (stress)
		shuffle(order, nr, &state);
	for (enum me_zone zone = ME_ZONE_HOT; zone < ME_NR_ZONES; zone++) {
		for (uint32_t i = 0; i < nr; i++)
			add_function(cfg, order[i], zone, zones, stress, &state, scratch, plan);
	}
out:
	free(order);
	free(scratch);
	free(zones);
	return rc;
}
