// SPDX-License-Identifier: Apache-2.0
/* toycfg - builds control flow graphs; see toycfg.h. */
#include "tests/support/toycfg.h"

#include <assert.h>
#include <string.h>

void toy_init(struct toy *toy)
{
	memset(toy, 0, sizeof(*toy));
	toy->cfg.funcs = toy->funcs;
	toy->cfg.blocks = toy->blocks;
	toy->cfg.edges = toy->edges;
	toy->cfg.calls = toy->calls;
	toy->counts.block = toy->block_counts;
	toy->counts.edge = toy->edge_counts;
	toy->counts.samples = toy->samples;
	toy->counts.exact = true;
}

uint32_t toy_func(struct toy *toy, const char *name)
{
	uint32_t f = toy->cfg.nr_funcs++;

	assert(f < TOY_MAX);
	toy->funcs[f] = (struct mp_func){
		.name = name, .first_block = toy->cfg.nr_blocks, .vaddr = 0x1000 + 0x10000ull * f};
	toy->eligible[f] = 1;
	return f;
}

uint32_t toy_block(struct toy *toy, enum mp_term term, double count)
{
	uint32_t b = toy->cfg.nr_blocks++, f = toy->cfg.nr_funcs - 1;
	struct mp_func *func = &toy->funcs[f];

	assert(b < TOY_MAX);
	toy->blocks[b] = (struct mp_block){
		.vaddr = func->vaddr + 16ull * func->nr_blocks,
		.size = 16,
		.nr_insns = 4,
		.func = f,
		.term = term,
		.term_len = term == MP_TERM_FALL || term == MP_TERM_NORETURN ? 0 : 2,
		.flags = func->nr_blocks ? 0 : MP_BLOCK_ENTRY,
	};
	if (term == MP_TERM_TABLE)
		toy->blocks[b].table = MP_NONE;
	toy->block_counts[b] = count;
	func->nr_blocks++;
	func->size += 16;
	return b;
}

void toy_edge(struct toy *toy, uint32_t from, uint32_t to, enum mp_edge_kind kind, double count)
{
	uint32_t e = toy->cfg.nr_edges++;

	assert(e < 4 * TOY_MAX && (!e || toy->edges[e - 1].from <= from));
	toy->edges[e] = (struct mp_edge){from, to, kind};
	toy->edge_counts[e] = count;
	toy->blocks[from].nr_edges++;
}

void toy_start(struct toy *toy, const char *name)
{
	toy_init(toy);
	toy_func(toy, name);
}

void toy_add_blocks(struct toy *toy, const struct toy_block *blocks, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		toy_block(toy, blocks[i].term, blocks[i].count);
}

void toy_add_edges(struct toy *toy, const struct toy_edge *edges, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		toy_edge(toy, edges[i].from, edges[i].to, edges[i].kind, edges[i].count);
}

void toy_call(struct toy *toy, uint32_t block, uint32_t callee)
{
	uint32_t i = toy->cfg.nr_calls++;

	assert(i < TOY_MAX && (!i || toy->calls[i - 1].block <= block));
	toy->calls[i] = (struct mp_call){
		.block = block,
		.callee = callee,
		.distance = (int64_t)(0x1000 + 0x10000ull * callee - toy->blocks[block].vaddr)};
}

void toy_finish(struct toy *toy)
{
	uint32_t e = 0;

	for (uint32_t b = 0; b < toy->cfg.nr_blocks; b++) {
		toy->blocks[b].first_edge = e;
		e += toy->blocks[b].nr_edges;
	}
}
