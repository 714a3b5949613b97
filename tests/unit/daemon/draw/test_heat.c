// SPDX-License-Identifier: Apache-2.0
/*
 * test_heat - the flow through an optimised file, from its bytes and map only, equals that of
 * the plan; the original's equals the counts.
 */
#include <math.h>

#include "daemon/draw/heat.h"
#include "daemon/draw/heat_lines.h"
#include "editor/evidence/eligible.h"
#include "editor/emit/emit.h"
#include "editor/layout/layout.h"
#include "editor/layout/predict.h"
#include "tests/unit/suite.h"
#include "tests/unit/verify_pair.h"
#include "tests/support/toycfg.h"
#include "tests/support/rewrite.h"

static struct toy toy;
static struct md_heat heat;

/* 0: if (...) 1; 2: back to 0, or 3: return; also conditional tail calls. */
static void loop(void)
{
	uint32_t a, b, c, d;

	toy_start(&toy, "f");
	a = toy_block(&toy, MP_TERM_COND, 100);
	b = toy_block(&toy, MP_TERM_FALL, 70);
	c = toy_block(&toy, MP_TERM_COND, 100);
	d = toy_block(&toy, MP_TERM_TAIL, 10);
	mp_block_set_target(&toy.blocks[d], 0x5000);
	toy_edges(&toy, {a, b, MP_EDGE_FALL, 70}, {a, c, MP_EDGE_TAKEN, 30},
		  {b, c, MP_EDGE_FALL, 70}, {c, a, MP_EDGE_TAKEN, 90}, {c, d, MP_EDGE_FALL, 10});
	toy_finish(&toy);
}

static void tidy(void)
{
	md_heat_fini(&heat);
}

FIXTURE(NULL, tidy);

TEST(heat_before_is_what_the_counts_say)
{
	const struct md_heat_input in = {&toy.cfg, &toy.counts, NULL, 0};

	loop();
	ck_assert_int_eq(md_heat_before(&in, &heat), 0);
	ck_assert_uint_eq(heat.nr_places, 4);
	ck_assert(heat.insns == 4 * 280.0);
	ck_assert(heat.taken == 120);
	/* Two taken branches and the tail call. */
	ck_assert_uint_eq(heat.nr_jumps, 3);
	ck_assert_uint_eq(heat.jumps[0].from, 0x1000 + 14);
	ck_assert_uint_eq(heat.jumps[0].to, 0x1000 + 32);
	ck_assert_uint_eq(heat.jumps[2].to, 0x5000);
	ck_assert_int_eq(heat.jumps[2].kind, MD_HEAT_CALL);
}

TEST(heat_before_leaves_out_what_never_runs)
{
	const struct md_heat_input in = {&toy.cfg, &toy.counts, NULL, 0};

	loop();
	toy.block_counts[1] = 0;
	toy.edge_counts[0] = toy.edge_counts[2] = 0;
	ck_assert_int_eq(md_heat_before(&in, &heat), 0);
	ck_assert_uint_eq(heat.nr_places, 3);
}

/* ---- real files ---------------------------------------------------------------------------- */

struct real {
	char path[256];
	struct mp_elf *elf, *after;
	struct mp_cfg *cfg;
	struct mp_profile *profile;
	struct mp_counts counts;
	struct me_eligible eligible;
	uint8_t *movable;
	struct me_plan plan;
	uint8_t *bytes;
	struct mp_map *map;
};

/* Invents samples that are as uneven as real ones. */
static void invent_samples(struct real *r, uint32_t seed)
{
	for (uint32_t b = 0; b < r->cfg->nr_blocks; b++) {
		seed = seed * 1103515245 + 12345;
		if ((seed >> 16) % 3 == 0)
			continue;
		r->profile->block_samples[b] = (seed >> 20) % ((seed >> 8) % 7 ? 20 : 900);
		r->profile->nr_samples += r->profile->block_samples[b];
	}
}

static void real_write(struct real *r, struct mp_err *err)
{
	struct me_emitted emitted;

	ck_assert_msg(rewrite_emit(r->cfg, &r->plan, &emitted, err) == 0, "%s", err->msg);
	r->bytes = calloc(1, emitted.output.size_bytes);
	ck_assert_ptr_nonnull(r->bytes);
	for (uint32_t i = 0; i < emitted.output.nr_parts; i++)
		memcpy(r->bytes + emitted.output.parts[i].off, emitted.output.parts[i].bytes,
		       emitted.output.parts[i].size);
	ck_assert_msg(mp_elf_open_memory("after", r->bytes, emitted.output.size_bytes,
					 MP_ELF_SYMBOLS, &r->after, err) == 0,
		      "%s", err->msg);
	me_emitted_fini(&emitted);
	ck_assert_int_eq(mp_map_read(r->after, &r->map, err), 0);
}

static void real_build(struct real *r, const char *command, uint32_t seed,
		       struct me_layout_options options)
{
	const char *dir = getenv("TMPDIR");
	char line[1024];

	memset(r, 0, sizeof(*r));
	snprintf(r->path, sizeof(r->path), "%s/morph-heat-%d", dir ? dir : "/tmp", (int)getpid());
	snprintf(line, sizeof(line), "%s -Wl,--emit-relocs -o %s", command, r->path);
	ck_assert_msg(system(line) == 0, "%s", line);
	ck_assert_int_eq(mp_elf_open(r->path, MP_ELF_ALL, &r->elf, &err), 0);
	unlink(r->path);
	ck_assert_int_eq(mp_cfg_build(r->elf, NULL, &r->cfg, &err), 0);
	ck_assert_int_eq(mp_profile_build(r->cfg, NULL, 0, &r->profile, &err), 0);
	invent_samples(r, seed);
	ck_assert_int_eq(mp_counts_build(r->cfg, r->profile, NULL, &r->counts, NULL, &err), 0);
	ck_assert_int_eq(me_eligible_functions(r->cfg, 1, &r->eligible, &err), 0);
	r->movable = calloc(r->cfg->nr_funcs + 1, 1);
	for (uint32_t f = 0; f < r->cfg->nr_funcs; f++)
		r->movable[f] = r->eligible.verdict[f] == ME_ELIGIBLE;
	ck_assert_int_eq(me_layout_build(r->cfg, &r->counts, r->movable, &options, &r->plan, &err),
			 0);
	real_write(r, &err);
}

static void real_free(struct real *r)
{
	mp_map_free(r->map);
	mp_elf_close(r->after);
	free(r->bytes);
	me_plan_fini(&r->plan);
	free(r->movable);
	me_eligible_fini(&r->eligible);
	mp_counts_fini(&r->counts);
	mp_profile_free(r->profile);
	mp_cfg_free(r->cfg);
	mp_elf_close(r->elf);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * fmax(1, fabs(b));
}

/*
 * Compares taken branches with the plan's; functions of @r without a copy are unchanged.
 * Return: number of clones.
 */
static uint32_t check_against_plan(const struct real *r)
{
	const struct md_heat_input in = {r->cfg, &r->counts, NULL, 0};
	AUTO_FREE uint8_t *rest = calloc(r->cfg->nr_funcs + 1, 1);
	struct me_branches moved, stayed;
	struct me_prediction prediction;
	struct md_heat before, after;
	uint32_t nr_clones = 0;

	ck_assert_ptr_nonnull(rest);
	memset(rest, 1, r->cfg->nr_funcs);
	for (uint32_t i = 0; i < r->plan.nr_blocks; i++) {
		rest[r->cfg->blocks[r->plan.blocks[i].block].func] = 0;
		nr_clones += r->plan.blocks[i].clone;
	}
	ck_assert_int_eq(me_branches_count(r->cfg, &r->counts, &r->plan, NULL, &moved), 0);
	ck_assert_int_eq(me_branches_count(r->cfg, &r->counts, &r->plan, rest, &stayed), 0);
	ck_assert_int_eq(md_heat_before(&in, &before), 0);
	ck_assert_int_eq(md_heat_after(&in, r->map, r->after, &after), 0);
	ck_assert_uint_eq(after.nr_unplaced, 0);
	ck_assert_msg(near(before.taken, moved.taken_before + stayed.taken_before),
		      "before: %f, not %f", before.taken, moved.taken_before + stayed.taken_before);
	ck_assert_msg(near(after.taken, moved.taken_after + stayed.taken_after),
		      "after: %f, not %f", after.taken, moved.taken_after + stayed.taken_after);
	ck_assert(after.taken < before.taken);
	/* All copies together execute what the block did, except for dropped jumps. */
	ck_assert(after.insns <= before.insns * (1 + 1e-9) && after.insns > 0.9 * before.insns);
	/* The prediction of the report. */
	ck_assert_int_eq(me_layout_predict(r->cfg, &r->counts, &r->plan, NULL, &prediction, &err),
			 0);
	ck_assert_msg(fabs(after.expected_ratio - prediction.ratio) < 0.005, "%f, not %f",
		      after.expected_ratio, prediction.ratio);
	/* Never better than the counts say, and not worse than before. */
	ck_assert(after.expected_taken >= after.taken * (1 - 1e-9));
	ck_assert(after.expected_taken <= before.taken);
	md_heat_fini(&before);
	md_heat_fini(&after);
	return nr_clones;
}

static const struct me_layout_options usual = {.block_order = ME_ORDER_PH};

TEST_EACH(heat_after_follows_the_branches_of_the_copies, 2)
{
	uint32_t nr_clones = 0;

	for (uint32_t seed = 1; seed < 6; seed++) {
		AUTO(real_free) struct real r = {0};

		real_build(&r,
			   _i ? "gcc -O2 tests/data/switches.c" : "gcc -O2 tests/data/control.c",
			   seed, usual);
		nr_clones += check_against_plan(&r);
	}
	ck_assert_uint_gt(nr_clones, 0);
}

/*
 * The map of another file: the caller should refuse it, but nothing outside of the arrays may
 * be read.
 */
TEST(heat_after_counts_pieces_that_are_no_blocks)
{
	const struct md_heat_input in = {NULL, NULL, NULL, 0};
	struct md_heat_input own = in;
	struct mp_map_piece *piece;
	AUTO(real_free) struct real r = {0};

	real_build(&r, "gcc -O2 tests/data/control.c", 1, usual);
	own.cfg = r.cfg;
	own.counts = &r.counts;
	piece = &r.map->pieces[r.map->nr_pieces / 2];
	piece[0].old_vaddr += 1;
	piece[1].old_size += 1;
	piece[2].new_vaddr = UINT64_MAX - 2;
	piece[3].new_size = UINT32_MAX;
	piece[4].old_vaddr = UINT64_MAX;
	ck_assert_int_eq(md_heat_after(&own, r.map, r.after, &heat), 0);
	ck_assert_uint_eq(heat.nr_unplaced, 5);
}

TEST(heat_keeps_samples_that_no_block_holds)
{
	const struct mp_ip_count loose[] = {{1, 3}, {2, 4}};
	struct md_heat_input in = {NULL, NULL, loose, 2};
	struct md_heat_cells funcs;
	AUTO(md_heat_fini) struct md_heat without = {0};
	AUTO(real_free) struct real r = {0};

	real_build(&r, "gcc -O2 tests/data/control.c", 1, usual);
	in.cfg = r.cfg;
	in.counts = &r.counts;
	ck_assert_int_eq(md_heat_before(&in, &heat), 0);
	ck_assert_uint_eq(heat.places[1].vaddr, 2);
	ck_assert_int_eq(md_heat_cells_of_funcs(&heat, &funcs), 0);
	ck_assert(md_heat_cell_at(&funcs, MP_NONE) == 7);
	free(funcs.cells);
	in.nr_loose = 0;
	ck_assert_int_eq(md_heat_before(&in, &without), 0);
	ck_assert(near(heat.insns, without.insns + 7));
}

/* ---- outputs in which calls changed -------------------------------------------------------- */

/* An output with calls through slots and functions in place of calls, and invented counts of its original. */
struct called {
	struct pair pair;
	struct real real; /* only what invent_samples() and heat need */
};

static const char *const called_builds[] = {
	"gcc -O2 -fPIE -pie tests/data/leaf.c",
	"gcc -O2 -fno-pie -no-pie -fcf-protection tests/data/leaf.c",
	"gcc -O2 -fPIE -pie tests/data/leaf_stack.c",
	"gcc -O2 -fPIE -pie tests/data/leaf_cold.c",
};

static void called_build(struct called *c, int variant, uint32_t seed)
{
	struct real *r = &c->real;

	*r = (struct real){0};
	pair_make(&c->pair, called_builds[variant], seed, PAIR_INLINED);
	ck_assert_int_eq(mp_cfg_build(c->pair.original, NULL, &r->cfg, &err), 0);
	ck_assert_int_eq(mp_profile_build(r->cfg, NULL, 0, &r->profile, &err), 0);
	invent_samples(r, seed + 1);
	ck_assert_int_eq(mp_counts_build(r->cfg, r->profile, NULL, &r->counts, NULL, &err), 0);
}

static void called_free(struct called *c)
{
	mp_counts_fini(&c->real.counts);
	mp_profile_free(c->real.profile);
	mp_cfg_free(c->real.cfg);
	pair_free(&c->pair);
}

/* Instructions of one function, the places of its code in place of calls included. */
static double insns_of(const struct md_heat *of, uint32_t func)
{
	double sum = 0;

	for (size_t i = 0; i < of->nr_places; i++)
		if (of->places[i].func == func)
			sum += of->places[i].insns;
	return sum;
}

/* tests/e2e/stats/pictures.sh compares with what runs. */
TEST_EACH(heat_after_draws_outputs_in_which_calls_changed, 3)
{
	for (uint32_t seed = 0; seed < 4; seed++) {
		AUTO(called_free) struct called c = {0};
		struct md_heat_input in = {0};
		struct md_heat before;

		called_build(&c, _i, seed);
		in.cfg = c.real.cfg;
		in.counts = &c.real.counts;
		ck_assert_int_eq(md_heat_before(&in, &before), 0);
		ck_assert_int_eq(md_heat_after(&in, c.pair.map, c.pair.good, &heat), 0);
		ck_assert_uint_eq(heat.nr_unplaced, 0);
		ck_assert(heat.insns < before.insns && heat.insns > 0.8 * before.insns);
		/* No function has more to do, and none but the one that does nothing is lost. */
		for (uint32_t f = 0; f < in.cfg->nr_funcs; f++) {
			double was = insns_of(&before, f), is = insns_of(&heat, f);

			if (strcmp(in.cfg->funcs[f].name, "nothing"))
				ck_assert_msg(is <= was * (1 + 1e-9) && is >= 0.4 * was,
					      "%s: %f, was %f", in.cfg->funcs[f].name, is, was);
		}
		/* The original's CFG is still that of the original. */
		md_heat_fini(&before);
		ck_assert_int_eq(md_heat_after(&in, c.pair.map, c.pair.good, &before), 0);
		ck_assert(near(before.taken, heat.taken));
		md_heat_fini(&before);
		md_heat_fini(&heat);
	}
}

/* Each block runs equally often, so a stub with one call or more is passed by as often as it ran. */
TEST_EACH(heat_after_passes_by_stubs, 2)
{
	struct md_heat_input in = {0};
	uint32_t nr_passed = 0;
	AUTO(md_heat_fini) struct md_heat before = {0};
	AUTO(called_free) struct called c = {0};

	called_build(&c, _i, 0);
	in.cfg = c.real.cfg;
	in.counts = &c.real.counts;
	for (uint32_t b = 0; b < in.cfg->nr_blocks; b++)
		c.real.counts.block[b] = 10;
	ck_assert_int_eq(md_heat_before(&in, &before), 0);
	ck_assert_int_eq(md_heat_after(&in, c.pair.map, c.pair.good, &heat), 0);
	for (uint32_t f = 0; f < in.cfg->nr_funcs; f++)
		nr_passed += in.cfg->funcs[f].problem == MP_PROBLEM_SPECIAL &&
			     insns_of(&heat, f) < insns_of(&before, f);
	ck_assert_uint_gt(nr_passed, 0);
}

/* Maps that no editor writes: the figures do not matter, but nothing outside of the arrays may be read. */
TEST(heat_after_takes_any_map)
{
	uint32_t seed = 1;
	AUTO(called_free) struct called c = {0};
	struct md_heat_input in = {0};
	AUTO_FREE struct mp_map_piece *kept = NULL;
	size_t size;

	called_build(&c, 0, 0);
	in.cfg = c.real.cfg;
	in.counts = &c.real.counts;
	size = c.pair.map->nr_pieces * sizeof(*kept);
	kept = malloc(size);
	ck_assert_ptr_nonnull(kept);
	memcpy(kept, c.pair.map->pieces, size);
	for (int round = 0; round < 500; round++) {
		for (int change = 0; change < 6; change++) {
			struct mp_map_piece *piece, *other;

			seed = seed * 1103515245 + 12345;
			piece = &c.pair.map->pieces[(seed >> 8) % c.pair.map->nr_pieces];
			other = &c.pair.map->pieces[(seed >> 12) % c.pair.map->nr_pieces];
			switch ((seed >> 4) % 6) {
			case 0: piece->old_vaddr += (seed >> 20) % 9 - 4; break;
			case 1: piece->old_size = (seed >> 20) % 40; break;
			case 2: piece->new_size = piece->old_size - 5; break;
			case 3: piece->old_vaddr = other->old_vaddr; break;
			case 4: piece->new_vaddr = other->new_vaddr + other->new_size; break;
			default: piece->old_size = 0; break;
			}
		}
		ck_assert_int_eq(md_heat_after(&in, c.pair.map, c.pair.good, &heat), 0);
		md_heat_fini(&heat);
		memcpy(c.pair.map->pieces, kept, size);
	}
}
