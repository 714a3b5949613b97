// SPDX-License-Identifier: Apache-2.0
/*
 * save_places - says how often the registers that functions save would be saved if the saves stood at the
 * best places (shrink-wrapping). For scripts/bench/bench-small-rewrites.
 *
 *	save-places FILE EDGES
 *
 * EDGES: exact counts of FILE (tests/plugin/branches.c, edges=). Each block either has the register saved or
 * not; blocks that use the register have it saved. Each edge into such blocks costs a save, each edge out of
 * them a restore; edges cost as often as they ran. The cheapest choice is a minimum cut between the
 * blocks that use the register and what is outside of the function. The counts are those of the run itself,
 * so this is the most that can be saved without moving other instructions. Leaves out functions that are
 * not understood. Prints lines `NAME COUNT`, executions:
 *  now		pushes and pops: twice the pushes
 *  best	saves and restores at the best places
 *  kept	the same, if all data keeps its place in the stack: one instruction steps over the places of registers
 *		that are not saved at the entry, and none where the function lowers the stack pointer anyway
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/cfg/cfg.h"
#include "tests/support/counted_tool.h"
#include "tests/support/saved_registers.h"

#define UNLIMITED (1ull << 62)

/* Which registers a block uses, and which it pushes. */
struct uses {
	uint16_t used;	 /* other than by pushes and pops */
	uint16_t pushed; /* before it is used in this block */
	uint16_t behind; /* used on a way to the block's start */
	uint64_t push_count[NR_REGISTERS];
};

/* Arc 2k and arc 2k + 1 are the two directions of one edge. */
struct arc {
	uint32_t to, next;
	uint64_t room;
};

struct graph {
	struct arc *arcs;
	uint32_t nr_arcs, nr_alloc;
	uint32_t *first, *from, *queue; /* by node; @from: the arc by which a node was reached */
	uint32_t nr_nodes;
};

static void *need(void *memory)
{
	if (!memory) {
		fputs("save-places: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

/* ---- minimum cut ---- */

static void graph_init(struct graph *g, uint32_t nr_nodes)
{
	g->nr_nodes = nr_nodes;
	g->nr_arcs = 0;
	g->first = need(realloc(g->first, nr_nodes * sizeof(*g->first)));
	g->from = need(realloc(g->from, nr_nodes * sizeof(*g->from)));
	g->queue = need(realloc(g->queue, nr_nodes * sizeof(*g->queue)));
	for (uint32_t n = 0; n < nr_nodes; n++)
		g->first[n] = MP_NONE;
}

static void graph_add(struct graph *g, uint32_t a, uint32_t b, uint64_t count)
{
	if (!count || a == b)
		return;
	if (g->nr_arcs + 2 > g->nr_alloc) {
		g->nr_alloc = g->nr_alloc ? 2 * g->nr_alloc : 256;
		g->arcs = need(realloc(g->arcs, g->nr_alloc * sizeof(*g->arcs)));
	}
	g->arcs[g->nr_arcs] = (struct arc){b, g->first[a], count};
	g->first[a] = g->nr_arcs++;
	g->arcs[g->nr_arcs] = (struct arc){a, g->first[b], count};
	g->first[b] = g->nr_arcs++;
}

/* Finds the shortest way with room. Return: whether there is one. */
static bool graph_reach(struct graph *g, uint32_t source, uint32_t sink)
{
	uint32_t head = 0, tail = 0;

	for (uint32_t n = 0; n < g->nr_nodes; n++)
		g->from[n] = MP_NONE;
	g->queue[tail++] = source;
	while (head < tail && g->from[sink] == MP_NONE) {
		uint32_t node = g->queue[head++];

		for (uint32_t a = g->first[node]; a != MP_NONE; a = g->arcs[a].next) {
			uint32_t to = g->arcs[a].to;

			if (!g->arcs[a].room || to == source || g->from[to] != MP_NONE)
				continue;
			g->from[to] = a;
			g->queue[tail++] = to;
		}
	}
	return g->from[sink] != MP_NONE;
}

/* Return: the minimum cut. Changes the graph. */
static uint64_t graph_cut(struct graph *g, uint32_t source, uint32_t sink)
{
	uint64_t flow = 0;

	while (graph_reach(g, source, sink)) {
		uint64_t room = UNLIMITED;

		for (uint32_t n = sink; n != source; n = g->arcs[g->from[n] ^ 1].to)
			room = g->arcs[g->from[n]].room < room ? g->arcs[g->from[n]].room : room;
		for (uint32_t n = sink; n != source; n = g->arcs[g->from[n] ^ 1].to) {
			g->arcs[g->from[n]].room -= room;
			g->arcs[g->from[n] ^ 1].room += room;
		}
		flow += room;
	}
	return flow;
}

/* ---- one function ---- */

static uint64_t edge_count(const struct exact_counts *counts, uint64_t from, uint64_t to,
			   enum exact_kind kind)
{
	size_t low = 0, high = counts->nr_edges;

	while (low < high) {
		size_t mid = (low + high) / 2;
		const struct exact_edge *e = &counts->edges[mid];

		if (e->from < from || (e->from == from && e->to < to))
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < counts->nr_edges && counts->edges[low].from == from &&
	       counts->edges[low].to == to;
	     low++)
		if (counts->edges[low].kind == kind)
			return counts->edges[low].count;
	return 0;
}

static uint64_t count_of(const struct mp_cfg *cfg, const struct exact_counts *counts,
			 const struct mp_edge *edge)
{
	const struct mp_block *block = &cfg->blocks[edge->from];
	uint64_t last = block->vaddr + block->size - block->term_len;
	uint64_t to = cfg->blocks[edge->to].vaddr;

	switch (edge->kind) {
	case MP_EDGE_TAKEN: return edge_count(counts, last, to, EXACT_TAKEN);
	case MP_EDGE_JUMP: return exact_counts_at(counts, last);
	case MP_EDGE_TABLE: return edge_count(counts, last, to, EXACT_IJUMP);
	default:
		return block->term == MP_TERM_COND ? edge_count(counts, last, to, EXACT_FALL)
						   : exact_counts_at(counts, block->vaddr);
	}
}

static void read_block(const struct mp_cfg *cfg, const struct exact_counts *counts, uint32_t b,
		       struct uses *uses)
{
	const struct mp_block *block = &cfg->blocks[b];
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	struct saved_registers r;

	*uses = (struct uses){0};
	for (uint32_t off = 0; bytes && off < block->size; off += r.len) {
		unsigned int fresh;

		if (!saved_registers_decode(bytes + off, block->size - off, &r))
			return;
		fresh = r.mask & ~uses->used;
		if (r.use == REGISTER_USE)
			uses->used |= (uint16_t)r.mask;
		if (r.use != REGISTER_PUSH || !fresh)
			continue;
		uses->pushed |= (uint16_t)fresh;
		uses->push_count[__builtin_ctz(fresh)] +=
			exact_counts_at(counts, block->vaddr + off);
	}
}

/* A push of a register that was used before is no save. */
static void find_behind(const struct mp_cfg *cfg, const struct mp_func *f, struct uses *uses)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t b = 0; b < f->nr_blocks; b++) {
			const struct mp_block *block = &cfg->blocks[f->first_block + b];
			uint16_t out = uses[b].behind | uses[b].used;

			for (uint32_t e = 0; e < block->nr_edges; e++) {
				uint32_t to = cfg->edges[block->first_edge + e].to - f->first_block;

				changed |= (out & ~uses[to].behind) != 0;
				uses[to].behind |= out;
			}
		}
	}
}

static bool leaves(const struct mp_block *block)
{
	return block->term == MP_TERM_RET || block->term == MP_TERM_TAIL ||
	       block->term == MP_TERM_INDIRECT_TAIL;
}

/* Return: saves and restores of register @reg at the best places. */
static uint64_t best(const struct mp_cfg *cfg, const struct exact_counts *counts,
		     const struct mp_func *f, const struct uses *uses, int reg, struct graph *g)
{
	uint32_t outside = f->nr_blocks, users = f->nr_blocks + 1;
	uint32_t entry = mp_cfg_block_starting(cfg, f->vaddr) - f->first_block;
	uint64_t entered = exact_counts_at(counts, f->vaddr);

	graph_init(g, f->nr_blocks + 2);
	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[f->first_block + b];

		if (uses[b].used & 1u << reg)
			graph_add(g, users, b, UNLIMITED);
		if (leaves(block))
			graph_add(g, b, outside,
				  exact_counts_at(counts,
						  block->vaddr + block->size - block->term_len));
		for (uint32_t e = 0; e < block->nr_edges; e++) {
			const struct mp_edge *edge = &cfg->edges[block->first_edge + e];
			uint64_t count = count_of(cfg, counts, edge);

			graph_add(g, b, edge->to - f->first_block, count);
			if (edge->to - f->first_block == entry)
				entered -= count < entered ? count : entered;
		}
	}
	graph_add(g, outside, entry, entered);
	return graph_cut(g, outside, users);
}

struct totals {
	uint64_t now, best, kept;
};

/* Does the entry's block lower the stack pointer by a constant, behind its pushes? */
static bool lowers_stack(const struct mp_cfg *cfg, const struct mp_block *block)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	struct saved_registers r;

	for (uint32_t off = 0; bytes && off + 4 <= block->size; off += r.len) {
		if (bytes[off] == 0x48 && (bytes[off + 1] == 0x83 || bytes[off + 1] == 0x81) &&
		    bytes[off + 2] == 0xec)
			return true;
		if (!saved_registers_decode(bytes + off, block->size - off, &r))
			break;
	}
	return false;
}

/*
 * Instructions that step over the places of registers @later, which the entry's block does not save, in
 * one activation. Several places side by side take one instruction, at the entry and at the end.
 */
static uint64_t steps(const struct mp_cfg *cfg, const struct mp_block *block, unsigned int later)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	bool inside = false;
	struct saved_registers r;
	uint64_t nr = 0;

	for (uint32_t off = 0; bytes && off < block->size; off += r.len) {
		if (!saved_registers_decode(bytes + off, block->size - off, &r))
			break;
		if (r.use != REGISTER_PUSH || !r.mask)
			continue;
		nr += !inside && r.mask & later;
		inside = r.mask & later;
	}
	return 2 * (nr - (inside && lowers_stack(cfg, block)));
}

static void add_function(const struct mp_cfg *cfg, const struct exact_counts *counts,
			 const struct mp_func *f, struct graph *g, struct totals *t)
{
	uint64_t all_now = 0, kept = 0;
	unsigned int later = 0;
	struct uses *uses;
	uint32_t entry;

	if (f->problem || !f->nr_blocks || !exact_counts_at(counts, f->vaddr) ||
	    mp_cfg_block_starting(cfg, f->vaddr) == MP_NONE)
		return;
	entry = mp_cfg_block_starting(cfg, f->vaddr) - f->first_block;
	uses = need(calloc(f->nr_blocks, sizeof(*uses)));
	for (uint32_t b = 0; b < f->nr_blocks; b++)
		read_block(cfg, counts, f->first_block + b, &uses[b]);
	find_behind(cfg, f, uses);
	for (int reg = 0; reg < NR_REGISTERS; reg++) {
		uint64_t now = 0, then;

		for (uint32_t b = 0; b < f->nr_blocks; b++)
			if (!(uses[b].behind & 1u << reg))
				now += 2 * uses[b].push_count[reg];
		if (!now)
			continue;
		then = best(cfg, counts, f, uses, reg, g);
		t->now += now;
		t->best += then < now ? then : now;
		all_now += now;
		if (then < now && uses[entry].pushed & 1u << reg) {
			later |= 1u << reg;
			kept += then;
		} else {
			kept += now;
		}
	}
	kept += steps(cfg, &cfg->blocks[f->first_block + entry], later) *
		exact_counts_at(counts, f->vaddr);
	t->kept += kept < all_now ? kept : all_now;
	free(uses);
}

static int analyse(const struct mp_elf *elf, const struct exact_counts *counts, struct mp_err *err)
{
	const struct mp_cfg_options options = {0};
	struct graph g = {0};
	struct totals t = {0};
	struct mp_cfg *cfg = NULL;
	int rc = mp_cfg_build(elf, &options, &cfg, err);

	for (uint32_t f = 0; !rc && f < cfg->nr_funcs; f++)
		add_function(cfg, counts, &cfg->funcs[f], &g, &t);
	if (!rc)
		printf("now %" PRIu64 "\nbest %" PRIu64 "\nkept %" PRIu64 "\n", t.now, t.best,
		       t.kept);
	free(g.arcs);
	free(g.first);
	free(g.from);
	free(g.queue);
	mp_cfg_free(cfg);
	return rc;
}

int main(int argc, char **argv)
{
	return counted_tool(argc, argv, "save-places", MP_ELF_ALL, analyse);
}
