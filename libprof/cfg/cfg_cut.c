// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_cut - cuts blocks of a finished CFG at further places. Only blocks, edges and the places of calls
 * change: the evidence about targets stays as it is. The editor cuts when the layout is decided; pictures
 * of outputs cut a view.
 */
#include <errno.h>
#include <string.h>

#include "libprof/base/search.h"
#include "libprof/cfg/cfg_private.h"
#include "libprof/base/assert.h"

/* Index of the first cut behind @vaddr. @near: probably this one. */
static uint32_t first_cut(const uint64_t *cuts, uint32_t nr, uint64_t vaddr, uint32_t near)
{
	if ((near == nr || cuts[near] > vaddr) && (!near || cuts[near - 1] <= vaddr))
		return near;
	return mp_search(i, 0, nr, cuts[i] <= vaddr);
}

static uint32_t count_insns(const struct mp_cfg *cfg, uint64_t vaddr, uint64_t size)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, vaddr, size);
	struct mp_insn insn;
	uint32_t nr = 0;

	for (uint64_t off = 0; bytes && off < size; off += insn.len, nr++)
		if (mp_insn_decode(bytes + off, size - off, vaddr + off, &insn))
			break;
	return nr;
}

/* Numbers the blocks anew. Return: the number of blocks. */
static uint32_t number(const struct mp_cfg *cfg, const uint64_t *cuts, uint32_t nr_cuts,
		       uint32_t *first)
{
	uint32_t nr = 0, cut = 0;

	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		cut = first_cut(cuts, nr_cuts, block->vaddr, cut);
		first[b] = nr++;
		for (; cut < nr_cuts && cuts[cut] - block->vaddr < block->size; cut++)
			nr++;
	}
	first[cfg->nr_blocks] = nr;
	return nr;
}

/* Cuts @part off the start of @rest, at @cut. Control then falls from @part into @rest. */
static void cut_off(const struct mp_cfg *cfg, struct mp_block *part, struct mp_block *rest,
		    uint64_t cut)
{
	*part = *rest;
	part->size = (uint32_t)(cut - part->vaddr);
	part->nr_insns = count_insns(cfg, part->vaddr, part->size);
	part->nr_edges = 1;
	part->term = MP_TERM_FALL;
	part->term_len = 0;
	part->distance = 0;
	rest->vaddr = cut;
	rest->size -= part->size;
	rest->nr_insns -= part->nr_insns;
	rest->flags &= MP_BLOCK_COLD_PART | MP_BLOCK_SURE | MP_BLOCK_STAYS;
	rest->flags |= MP_BLOCK_CUT;
}

/*
 * Cuts the blocks where they lie, the last one first: no part is written over a block that is still
 * to be cut. @cfg: with room for all parts, and for an edge between each two parts of a block behind
 * the present edges. @nr_blocks, @nr_edges: of those that are there.
 */
static void cut_blocks(struct mp_cfg *cfg, uint32_t nr_blocks, uint32_t nr_edges,
		       const uint64_t *cuts, uint32_t nr_cuts, const uint32_t *first)
{
	uint32_t cut = nr_cuts;

	for (uint32_t e = 0; e < nr_edges; e++) {
		cfg->edges[e].from = first[cfg->edges[e].from + 1] - 1;
		cfg->edges[e].to = first[cfg->edges[e].to];
	}
	/* Blocks before the first cut stay where they are. */
	for (uint32_t b = nr_blocks; b > 0 && first[b] != b;) {
		struct mp_block rest = cfg->blocks[--b];
		uint32_t n = first[b], edge = nr_edges + n - b;

		if (n + 1 < first[b + 1])
			cut = first_cut(cuts, nr_cuts, rest.vaddr, cut);
		for (uint32_t at = cut; n + 1 < first[b + 1]; n++, at++, edge++) {
			cut_off(cfg, &cfg->blocks[n], &rest, cuts[at]);
			cfg->blocks[n].first_edge = edge;
			cfg->edges[edge] =
				(struct mp_edge){.from = n, .to = n + 1, .kind = MP_EDGE_FALL};
		}
		cfg->blocks[n] = rest;
	}
}

/* Leads @call to the part that holds its instruction. */
static void move_call(const struct mp_block *blocks, const uint32_t *first, struct mp_call *call)
{
	uint32_t block = first[call->block], end = first[call->block + 1];
	/* The first piece begins where the block began. */
	uint64_t vaddr = blocks[block].vaddr + call->offset;

	while (block + 1 < end && blocks[block + 1].vaddr <= vaddr)
		block++;
	call->block = block;
	call->offset = vaddr - blocks[block].vaddr;
}

void mp_cfg_view_fini(struct mp_cfg_view *view)
{
	free(view->cfg.blocks);
	free(view->cfg.edges);
	free(view->cfg.calls);
	free(view->first);
	*view = (struct mp_cfg_view){0};
}

/* Cuts blocks, edges and calls. @cfg: its arrays have room for all parts of the blocks, and for the edges between them. */
static void cut_all(struct mp_cfg *cfg, const uint64_t *cuts, uint32_t nr_cuts,
		    const uint32_t *first)
{
	uint32_t nr_blocks = cfg->nr_blocks, nr_edges = cfg->nr_edges;

	cfg->nr_blocks = first[nr_blocks];
	cfg->nr_edges += cfg->nr_blocks - nr_blocks;
	cut_blocks(cfg, nr_blocks, nr_edges, cuts, nr_cuts, first);
	for (uint32_t c = 0; c < cfg->nr_calls; c++)
		move_call(cfg->blocks, first, &cfg->calls[c]);
}

/* A copy of @nr items of @size bytes at @from, with room for @room items. NULL: no memory. */
static void *copy_with_room(const void *from, uint32_t nr, uint32_t room, size_t size)
{
	void *copy = malloc(((size_t)room + 1) * size);

	return copy && nr ? memcpy(copy, from, nr * size) : copy;
}

int mp_cfg_view_cut(const struct mp_cfg *cfg, const uint64_t *cuts, uint32_t nr_cuts,
		    struct mp_cfg_view *out, struct mp_err *err)
{
	uint32_t *first = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*first)), nr = 0;
	struct mp_cfg *cut = &out->cfg;

	*out = (struct mp_cfg_view){*cfg, first};
	cut->blocks = NULL;
	cut->edges = NULL;
	cut->calls = NULL;
	if (first) {
		nr = number(cfg, cuts, nr_cuts, first);
		cut->blocks = copy_with_room(cfg->blocks, cfg->nr_blocks, nr, sizeof(*cut->blocks));
		cut->edges = copy_with_room(cfg->edges, cfg->nr_edges,
					    cfg->nr_edges + nr - cfg->nr_blocks,
					    sizeof(*cut->edges));
		cut->calls = copy_with_room(cfg->calls, cfg->nr_calls, cfg->nr_calls,
					    sizeof(*cut->calls));
	}
	if (!cut->blocks || !cut->edges || !cut->calls || nr > MP_MAX_BLOCKS) {
		mp_cfg_view_fini(out);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	cut_all(cut, cuts, nr_cuts, first);
	return 0;
}

/* Makes room for @nr blocks, and for an edge for each block that is new. Return: is there memory? */
static bool make_room(struct mp_cfg *cfg, uint32_t nr)
{
	size_t nr_edges = (size_t)cfg->nr_edges + nr - cfg->nr_blocks;
	struct mp_block *blocks = realloc(cfg->blocks, ((size_t)nr + 1) * sizeof(*blocks));
	struct mp_edge *edges;

	if (!blocks)
		return false;
	cfg->blocks = blocks;
	edges = realloc(cfg->edges, (nr_edges + 1) * sizeof(*edges));
	if (!edges)
		return false;
	cfg->edges = edges;
	return true;
}

/* Leads everything but edges and calls that names blocks to the new ones. */
static void renumber(struct mp_cfg *cfg, const uint32_t *first)
{
	struct mp_cfg_index *index = cfg->private_data;
	uint64_t nr_hints = ((uint64_t)index->nr_bytes >> MP_BLOCK_HINT_SHIFT) + 1;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		struct mp_func *func = &cfg->funcs[f];
		uint32_t end = first[func->first_block + func->nr_blocks];

		func->first_block = first[func->first_block];
		func->nr_blocks = end - func->first_block;
	}
	for (uint32_t p = 0; p < index->nr_parts; p++) {
		struct mp_part *part = &index->parts[p];
		uint32_t end = first[part->first_block + part->nr_blocks];

		part->first_block = first[part->first_block];
		part->nr_blocks = end - part->first_block;
	}
	for (uint32_t t = 0; t < cfg->nr_tables; t++)
		if (cfg->tables[t].block != MP_NONE)
			cfg->tables[t].block = first[cfg->tables[t].block + 1] - 1;
	/* A hint may be too low: lookups go on from there. */
	for (uint64_t h = 0; h < nr_hints; h++)
		index->block_hint[h] = first[index->block_hint[h]];
}

int mp_cfg_cut(struct mp_cfg *cfg, const uint64_t *cuts, uint32_t nr_cuts, uint32_t **first_of,
	       struct mp_err *err)
{
	uint32_t *first = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*first));
	uint32_t nr;

	mp_assert(mp_numbers_ascend(cuts, nr_cuts));
	nr = first ? number(cfg, cuts, nr_cuts, first) : 0;
	if (!first || nr > MP_MAX_BLOCKS || !make_room(cfg, nr)) {
		free(first);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	renumber(cfg, first);
	cut_all(cfg, cuts, nr_cuts, first);
	*first_of = first;
	return 0;
}
