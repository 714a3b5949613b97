// SPDX-License-Identifier: Apache-2.0
/* test_profile - samples count in the blocks that hold them; none is lost or counted twice. */
#include "libprof/infer/profile.h"

#include "tests/unit/program.h"

static void setup(void)
{
	program_build("-w -O2 -fPIE -pie", "tests/data/switches.c");
}

FIXTURE(setup, program_free);

TEST(profile_gives_every_sample_to_the_block_that_holds_it)
{
	struct mp_ip_count counts[4096];
	struct mp_profile *profile;
	uint64_t total = 0, sum = 0;
	size_t nr = 0;
	uint64_t vaddr = 0x1000;

	for (; nr < 4096; nr++, vaddr++) {
		counts[nr] = (struct mp_ip_count){vaddr, vaddr % 5 + 1};
		total += counts[nr].count;
	}
	ck_assert_int_eq(mp_profile_build(cfg, counts, nr, &profile, &err), 0);
	ck_assert_uint_eq(profile->nr_samples + profile->nr_outside, total);
	ck_assert_uint_gt(profile->nr_samples, 0);
	ck_assert_uint_gt(profile->nr_outside, 0);
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		uint64_t expected = 0;

		for (size_t i = 0; i < nr; i++)
			if (mp_cfg_block_at(cfg, counts[i].vaddr) == b)
				expected += counts[i].count;
		ck_assert_uint_eq(profile->block_samples[b], expected);
		sum += expected;
	}
	ck_assert_uint_eq(sum, profile->nr_samples);
	mp_profile_free(profile);
}

TEST(profile_without_samples_is_empty)
{
	struct mp_profile *profile;

	ck_assert_int_eq(mp_profile_build(cfg, NULL, 0, &profile, &err), 0);
	ck_assert_uint_eq(profile->nr_samples, 0);
	ck_assert_uint_eq(profile->nr_outside, 0);
	ck_assert_uint_eq(profile->nr_blocks, cfg->nr_blocks);
	mp_profile_free(profile);
	mp_profile_free(NULL);
}

TEST(profile_knows_which_transfer_is_which)
{
	struct mp_edge_count edges[4096];
	uint64_t over = 0, leaving = 0, outside = 0, sum = 0, total = 0;
	struct mp_profile *profile;
	size_t nr = 0;

	/*
	 * Each block's own branch to its targets, and a transfer from the block's start to the
	 * entry of main.
	 */
	for (uint32_t b = 0; b < cfg->nr_blocks && nr + 4 < 4096; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		uint64_t end = block->vaddr + block->size - block->term_len;

		if (!block->term_len || !block->nr_insns || block->vaddr == end)
			continue;
		edges[nr++] = (struct mp_edge_count){block->vaddr, 1, 3, 0};
		leaving += 3;
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
			if (cfg->edges[e].kind != MP_EDGE_TAKEN &&
			    cfg->edges[e].kind != MP_EDGE_JUMP)
				continue;
			edges[nr++] = (struct mp_edge_count){
				end, cfg->blocks[cfg->edges[e].to].vaddr, 5, 1};
			over += 5;
		}
		if (block->term == MP_TERM_COND || block->term == MP_TERM_JUMP) {
			edges[nr++] = (struct mp_edge_count){end, UINT64_MAX, 7, 0};
			outside += 7;
		} else if (block->term == MP_TERM_RET) {
			edges[nr++] = (struct mp_edge_count){end, UINT64_MAX, 11, 0};
			leaving += 11;
		}
	}
	edges[nr++] = (struct mp_edge_count){UINT64_MAX - 1, 0, 13, 0};
	outside += 13;
	for (size_t i = 0; i < nr; i++)
		total += edges[i].count;
	ck_assert_uint_gt(over, 100);
	ck_assert_int_eq(mp_profile_build(cfg, NULL, 0, &profile, NULL), 0);
	ck_assert_int_eq(mp_profile_add_edges(profile, cfg, edges, nr, NULL), 0);
	ck_assert_uint_eq(profile->nr_transfers, over + leaving);
	ck_assert_uint_eq(profile->nr_transfers_outside, outside);
	ck_assert_uint_eq(profile->nr_transfers + profile->nr_transfers_outside, total);
	for (uint32_t e = 0; e < cfg->nr_edges; e++) {
		ck_assert(!profile->edge_transfers[e] || cfg->edges[e].kind != MP_EDGE_FALL);
		sum += profile->edge_transfers[e];
	}
	ck_assert_uint_eq(sum, over);
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		uint32_t leavers = profile->block_leavers[b];

		ck_assert_uint_le(leavers, 2);
		ck_assert_uint_eq(profile->block_leavings[b], leavers == 2		   ? 14
							      : profile->block_leavings[b] ? 3
											   : 0);
	}
	mp_profile_free(profile);
}

TEST(profile_weight_scales_by_length)
{
	ck_assert_double_eq(mp_profile_weight(30, 10), 3.0);
	ck_assert_double_eq(mp_profile_weight(30, 0), 0.0);
}
