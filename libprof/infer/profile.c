// SPDX-License-Identifier: Apache-2.0
/*
 * profile - adds sample counts to the blocks that hold them, in one walk over both. Called
 * by morph-optimize and morph-stats.
 */
#include "libprof/infer/profile.h"
#include "libprof/base/assert.h"

#include <errno.h>
#include <stdlib.h>

int mp_profile_build(const struct mp_cfg *cfg, const struct mp_ip_count *counts, size_t nr,
		     struct mp_profile **out, struct mp_err *err)
{
	uint32_t nr_parts = mp_cfg_nr_parts(cfg);
	struct mp_profile *profile = calloc(1, sizeof(*profile));
	size_t i = 0;

	mp_assert(mp_ascends(counts, nr, vaddr));
	*out = NULL;
	if (profile)
		profile->block_samples = calloc((size_t)cfg->nr_blocks + 1, sizeof(uint64_t));
	if (!profile || !profile->block_samples) {
		mp_profile_free(profile);
		return mp_err_set(err, ENOMEM, "profile: out of memory");
	}
	profile->nr_blocks = cfg->nr_blocks;
	for (uint32_t p = 0; p < nr_parts; p++) {
		uint32_t first, nr_blocks = mp_cfg_part_blocks(cfg, p, &first);

		for (uint32_t block = first; block < first + nr_blocks; block++) {
			uint64_t start = cfg->blocks[block].vaddr;

			for (; i < nr && counts[i].vaddr < start; i++)
				profile->nr_outside += counts[i].count;
			for (; i < nr && counts[i].vaddr - start < cfg->blocks[block].size; i++) {
				profile->block_samples[block] += counts[i].count;
				profile->nr_samples += counts[i].count;
			}
		}
	}
	for (; i < nr; i++)
		profile->nr_outside += counts[i].count;
	*out = profile;
	return 0;
}

/* The edge of @cfg for a transfer from the last instruction of @block to @to, or MP_NONE. */
static uint32_t edge_find(const struct mp_cfg *cfg, const struct mp_block *block, uint64_t to)
{
	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (cfg->edges[e].kind != MP_EDGE_FALL && cfg->blocks[cfg->edges[e].to].vaddr == to)
			return e;
	return MP_NONE;
}

/*
 * True if each transfer of this instruction is one run of @block. @at_end: it is the
 * block's last instruction.
 */
static bool leaving_is_a_run(const struct mp_block *block, bool at_end)
{
	if (!at_end)
		return true; /* a call */
	return block->term == MP_TERM_RET || block->term == MP_TERM_TAIL ||
	       block->term == MP_TERM_INDIRECT_TAIL;
}

int mp_profile_add_edges(struct mp_profile *profile, const struct mp_cfg *cfg,
			 const struct mp_edge_count *edges, size_t nr, struct mp_err *err)
{
	uint64_t last_leaver = UINT64_MAX;

	profile->edge_transfers = calloc((size_t)cfg->nr_edges + 1, sizeof(uint64_t));
	profile->block_leavings = calloc((size_t)cfg->nr_blocks + 1, sizeof(uint64_t));
	profile->block_leavers = calloc((size_t)cfg->nr_blocks + 1, sizeof(uint32_t));
	if (!profile->edge_transfers || !profile->block_leavings || !profile->block_leavers)
		return mp_err_set(err, ENOMEM, "profile: out of memory");
	for (size_t i = 0; i < nr; i++) {
		uint32_t b = mp_cfg_block_at(cfg, edges[i].from), e;
		const struct mp_block *block = b == MP_NONE ? NULL : &cfg->blocks[b];
		bool at_end = block && block->term_len &&
			      edges[i].from == block->vaddr + block->size - block->term_len;

		e = at_end ? edge_find(cfg, block, edges[i].to) : MP_NONE;
		if (e != MP_NONE) {
			profile->edge_transfers[e] += edges[i].count;
		} else if (block && leaving_is_a_run(block, at_end)) {
			profile->block_leavings[b] += edges[i].count;
			profile->block_leavers[b] += edges[i].from != last_leaver;
			last_leaver = edges[i].from;
		} else {
			profile->nr_transfers_outside += edges[i].count;
			continue;
		}
		profile->nr_transfers += edges[i].count;
	}
	return 0;
}

static bool block_is_seen(const struct mp_profile *profile, uint32_t block)
{
	return profile->block_samples[block] ||
	       (profile->block_leavings && profile->block_leavings[block]);
}

int mp_profile_set_unknown(struct mp_profile *profile, const struct mp_cfg *cfg,
			   const uint64_t *vaddrs, size_t nr, struct mp_err *err)
{
	profile->block_unknown = calloc((size_t)cfg->nr_blocks + 1, 1);
	if (!profile->block_unknown)
		return mp_err_set(err, ENOMEM, "profile: out of memory");
	for (size_t i = 0; i < nr; i++) {
		uint32_t b = mp_cfg_block_starting(cfg, vaddrs[i]);

		if (b != MP_NONE && !block_is_seen(profile, b))
			profile->block_unknown[b] = 1;
	}
	for (uint32_t e = 0; profile->edge_transfers && e < cfg->nr_edges; e++)
		if (profile->edge_transfers[e])
			profile->block_unknown[cfg->edges[e].from] =
				profile->block_unknown[cfg->edges[e].to] = 0;
	return 0;
}

void mp_profile_drop_edges(struct mp_profile *profile)
{
	free(profile->edge_transfers);
	free(profile->block_leavings);
	free(profile->block_leavers);
	profile->edge_transfers = profile->block_leavings = NULL;
	profile->block_leavers = NULL;
}

void mp_profile_free(struct mp_profile *profile)
{
	if (!profile)
		return;
	mp_profile_drop_edges(profile);
	free(profile->block_samples);
	free(profile->block_unknown);
	free(profile->edge_foreseen);
	free(profile);
}
