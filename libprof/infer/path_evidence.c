// SPDX-License-Identifier: Apache-2.0
/* path_evidence - adds up paths per edge. Called before counts are inferred. */
#include "libprof/infer/path_evidence.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* Return: the edge of @cfg, or MP_NONE. */
static uint32_t edge_find(const struct mp_cfg *cfg, uint32_t from, uint32_t to)
{
	const struct mp_block *block = &cfg->blocks[from];

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (cfg->edges[e].to == to)
			return e;
	return MP_NONE;
}

/* Counts one step of a path. Return: false if @cfg has no such step. */
static bool step_add(const struct mp_cfg *cfg, uint64_t from, uint64_t to, uint64_t count,
		     struct mp_path_evidence *out)
{
	uint32_t target = mp_cfg_block_starting(cfg, to), source, edge;

	if (!from) {
		if (target == MP_NONE)
			return false;
		out->outside[target] += count;
		out->nr_steps += count;
		return true;
	}
	source = mp_cfg_block_at(cfg, from);
	if (target == MP_NONE)
		return source != MP_NONE && source == mp_cfg_block_at(cfg, to) && from < to;
	edge = source == MP_NONE ? MP_NONE : edge_find(cfg, source, target);
	if (edge == MP_NONE)
		return false;
	out->edge[edge] += count;
	out->nr_steps += count;
	return true;
}

/*
 * A program reports paths at some of its blocks, of which one block of @cfg may hold
 * several. The first one with reports counts for the block.
 */
static void reported_add(const struct mp_cfg *cfg, uint64_t vaddr, uint64_t count, uint64_t *where,
			 struct mp_path_evidence *out)
{
	uint32_t block = mp_cfg_block_at(cfg, vaddr);

	if (block == MP_NONE || (where[block] && where[block] < vaddr))
		return;
	if (where[block] != vaddr)
		out->reported[block] = 0;
	where[block] = vaddr;
	out->reported[block] += count;
}

static void path_add(const struct mp_cfg *cfg, const struct mp_path_count *path, uint64_t *where,
		     struct mp_path_evidence *out)
{
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];
	uint32_t nr_complete,
		nr = mp_path_key_decode(path->key, path->key_size, vaddrs, &nr_complete);

	out->nr_paths += path->count;
	if (!nr) {
		out->nr_strange += path->count;
		return;
	}
	if (nr_complete != MP_PATH_SAMPLED)
		reported_add(cfg, vaddrs[nr - 1], path->count, where, out);
	/*
	 * Backwards from the sample: blocks before an impossible step say nothing about
	 * this cfg.
	 */
	for (uint32_t i = nr - 1; i && nr - 1 - i < nr_complete; i--)
		if (!step_add(cfg, vaddrs[i - 1], vaddrs[i], path->count, out)) {
			out->nr_strange += path->count;
			return;
		}
}

int mp_path_evidence_build(const struct mp_cfg *cfg, const struct mp_path_count *counts, size_t nr,
			   struct mp_path_evidence *out, struct mp_err *err)
{
	uint64_t *where = calloc((size_t)cfg->nr_blocks + 1, sizeof(*where));

	*out = (struct mp_path_evidence){
		.edge = calloc((size_t)cfg->nr_edges + 1, sizeof(*out->edge)),
		.outside = calloc((size_t)cfg->nr_blocks + 1, sizeof(*out->outside)),
		.reported = calloc((size_t)cfg->nr_blocks + 1, sizeof(*out->reported)),
	};
	if (!where || !out->edge || !out->outside || !out->reported) {
		free(where);
		mp_path_evidence_fini(out);
		return mp_err_set(err, ENOMEM, "paths: out of memory");
	}
	for (size_t i = 0; i < nr; i++)
		path_add(cfg, &counts[i], where, out);
	free(where);
	return 0;
}

void mp_path_evidence_fini(struct mp_path_evidence *evidence)
{
	free(evidence->edge);
	free(evidence->outside);
	free(evidence->reported);
	*evidence = (struct mp_path_evidence){0};
}
