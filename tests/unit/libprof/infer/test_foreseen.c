// SPDX-License-Identifier: Apache-2.0
/* test_foreseen - ways of branches that registers showed: what inference makes of them. */
#include <math.h>

#include "libprof/infer/counts.h"
#include "libprof/infer/foreseen.h"
#include "tests/support/compile.h"
#include "tests/support/toycfg.h"
#include "tests/unit/suite.h"

static struct toy toy;
/* Edges of the branch in block 0. */
static uint32_t fall, taken;

/* Block 0 branches to 2 or falls into 1; both lead to 3, which returns. */
static void program(void)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 0}, {MP_TERM_JUMP, 0}, {MP_TERM_FALL, 0}, {MP_TERM_RET, 0});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 0}, {0, 2, MP_EDGE_TAKEN, 0}, {1, 3, MP_EDGE_JUMP, 0},
		  {2, 3, MP_EDGE_FALL, 0});
	toy_finish(&toy);
	for (uint32_t e = 0; e < toy.cfg.nr_edges; e++) {
		fall = toy.edges[e].from == 0 && toy.edges[e].to == 1 ? e : fall;
		taken = toy.edges[e].from == 0 && toy.edges[e].to == 2 ? e : taken;
	}
}

static void infer(struct mp_profile *profile, struct mp_counts *counts)
{
	ck_assert_msg(!mp_counts_build(&toy.cfg, profile, NULL, counts, NULL, &err), "%s", err.msg);
	ck_assert(fabs(counts->edge[fall] + counts->edge[taken] - counts->block[0]) <= 1e-6);
}

TEST(foreseen_ways_decide_where_samples_mislead)
{
	/* Samples say that block 1 runs; the registers say that it is block 2. */
	uint64_t samples[] = {1000, 500, 10, 1000}, foreseen[TOY_MAX] = {0};
	struct mp_profile profile = {.block_samples = samples, .nr_blocks = 4, .nr_samples = 2510};
	struct mp_counts alone, both;

	program();
	infer(&profile, &alone);
	ck_assert(alone.edge[fall] > 5 * alone.edge[taken]);
	profile.edge_foreseen = foreseen;
	foreseen[taken] = 95;
	foreseen[fall] = 5;
	infer(&profile, &both);
	ck_assert(both.edge[taken] > both.edge[fall]);
	/* How often the branch runs is still what the samples say. */
	ck_assert(fabs(both.block[0] / alone.block[0] - 1) < 0.25);
	mp_counts_fini(&alone);
	mp_counts_fini(&both);
}

TEST(foreseen_ways_do_not_change_what_was_counted)
{
	uint64_t samples[] = {1000, 500, 500, 1000}, foreseen[TOY_MAX] = {0};
	struct mp_profile profile = {
		.block_samples = samples, .nr_blocks = 4, .nr_samples = 3000, .exact = true};
	struct mp_counts alone, both;

	program();
	for (uint32_t b = 0; b < 4; b++)
		samples[b] *= toy.blocks[b].nr_insns;
	infer(&profile, &alone);
	profile.edge_foreseen = foreseen;
	foreseen[taken] = 1000;
	infer(&profile, &both);
	ck_assert(both.edge[taken] == alone.edge[taken] && both.edge[fall] == alone.edge[fall]);
	mp_counts_fini(&alone);
	mp_counts_fini(&both);
}

/* Records count at the edges of the branch at their address; other addresses are left out. */
TEST(foreseen_records_find_their_branches)
{
	struct mp_way_count records[4096];
	struct mp_profile profile = {0};
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	uint32_t nr_found = 0;
	char path[256];

	ck_assert_int_eq(compile_run("gcc", "-w -O2 -fPIE -pie", "tests/data/switches.c", path), 0);
	ck_assert_msg(!mp_elf_open(path, MP_ELF_ALL, &elf, &err), "%s", err.msg);
	ck_assert_msg(!mp_cfg_build(elf, NULL, &cfg, &err), "%s", err.msg);
	unlink(path);
	for (size_t i = 0; i < 4096; i++)
		records[i] = (struct mp_way_count){0x1000 + i, 2 * i + 2, 2 * i + 1};
	ck_assert_int_eq(mp_foreseen_add(cfg, records, 4096, &profile, &err), 0);
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		uint64_t at = block->vaddr + block->size - block->term_len - 0x1000;
		bool branch = block->term == MP_TERM_COND && block->nr_edges == 2 && at < 4096;

		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			ck_assert_uint_eq(
				profile.edge_foreseen[e],
				branch ? 2 * at + 1 + (cfg->edges[e].kind == MP_EDGE_TAKEN) : 0);
		nr_found += branch;
	}
	ck_assert_uint_gt(nr_found, 5);
	free(profile.edge_foreseen);
	mp_cfg_free(cfg);
	mp_elf_close(elf);
}
