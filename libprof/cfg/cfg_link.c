// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_link - links the blocks of a function by edges, and records its calls of other functions.
 * Called by cfg_block.
 */
#include <errno.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/cfg/cfg_block_private.h"
#include "libprof/cfg/cfg_private.h"

/* Block of the function that starts at @at, or MP_NONE. */
static uint32_t block_at(const struct mp_block_maker *m, uint32_t at)
{
	uint32_t lo = mp_search(i, 0, m->func->nr_blocks, m->block_at[i] < at);

	if (lo < m->func->nr_blocks && m->block_at[lo] == at)
		return m->func->first_block + lo;
	return MP_NONE;
}

static int add_edge(struct mp_block_maker *m, uint32_t from, uint32_t to, enum mp_edge_kind kind)
{
	struct mp_cfg *cfg = m->b->cfg;

	if (cfg->blocks[from].nr_edges == MP_MAX_BLOCK_EDGES ||
	    mp_grow(cfg->edges, m->b->cap_edges, cfg->nr_edges + 1))
		return -ENOMEM;
	cfg->edges[cfg->nr_edges++] = (struct mp_edge){from, to, kind};
	cfg->blocks[from].nr_edges++;
	return 0;
}

static int add_call(struct mp_block_maker *m, uint32_t block, const struct mp_flow *f, bool tail)
{
	struct mp_cfg *cfg = m->b->cfg;
	uint32_t part = f->target == MP_NONE ? MP_NONE : mp_part_at(m->b->index, f->target);
	uint64_t vaddr = mp_space_vaddr(m->b->index, f->at), target = 0;
	struct mp_call *call;

	if (mp_grow(cfg->calls, m->b->cap_calls, cfg->nr_calls + 1))
		return -ENOMEM;
	call = &cfg->calls[cfg->nr_calls++];
	*call = (struct mp_call){
		.block = block,
		.callee = part == MP_NONE ? MP_NONE : m->b->index->parts[part].func,
		.offset = vaddr - cfg->blocks[block].vaddr,
		.tail = tail,
	};
	if (call->callee != MP_NONE && cfg->funcs[call->callee].problem == MP_PROBLEM_SPECIAL)
		call->callee = MP_NONE;
	if (f->target != MP_NONE) {
		target = mp_space_vaddr(m->b->index, f->target);
	} else {
		const uint8_t *bytes = mp_space_bytes(m->b->index, f->at, f->len);
		struct mp_insn insn;

		if (bytes && !mp_insn_decode(bytes, f->len, vaddr, &insn))
			target = insn.target;
	}
	call->distance = (int64_t)(target - vaddr);
	return 0;
}

static int link_direct(struct mp_block_maker *m, uint32_t block, const struct mp_flow *f)
{
	struct mp_cfg *cfg = m->b->cfg;
	uint32_t to = f->target == MP_NONE ? MP_NONE : block_at(m, f->target);
	bool jump = f->kind == MP_INSN_JUMP;
	int ret;

	if (to != MP_NONE) {
		mp_block_set_target(&cfg->blocks[block], cfg->blocks[to].vaddr);
		cfg->blocks[block].term = jump ? MP_TERM_JUMP : MP_TERM_COND;
		return add_edge(m, block, to, jump ? MP_EDGE_JUMP : MP_EDGE_TAKEN);
	}
	ret = add_call(m, block, f, true);
	if (ret)
		return ret;
	mp_block_set_target(&cfg->blocks[block],
			    mp_call_target(cfg, &cfg->calls[cfg->nr_calls - 1]));
	cfg->blocks[block].term = jump ? MP_TERM_TAIL : MP_TERM_COND;
	return 0;
}

static int link_tables(struct mp_block_maker *m, uint32_t block, uint32_t jump)
{
	struct mp_cfg_build *b = m->b;
	struct mp_cfg *cfg = b->cfg;
	uint32_t first_edge = cfg->nr_edges;
	int ret = 0;

	for (uint32_t u = mp_table_first_use(b, jump); u < b->nr_uses && b->uses[u].jump == jump;
	     u++) {
		struct mp_table *table = &cfg->tables[b->uses[u].table];

		if (cfg->blocks[block].table == MP_NONE)
			cfg->blocks[block].table = b->uses[u].table;
		if (table->block == MP_NONE)
			table->block = block;
		if (!mp_table_look(b, m->func_index, jump, table->nr_entries))
			break;
		for (uint32_t i = 0; i < table->nr_entries && !ret; i++) {
			uint32_t target = mp_table_entry(b, table, i), to;

			to = target == MP_NONE ? MP_NONE : block_at(m, target);
			if (to == MP_NONE || mp_bit(b->scratch, target))
				continue;
			mp_bit_set(b->scratch, target);
			ret = add_edge(m, block, to, MP_EDGE_TABLE);
		}
	}
	for (uint32_t e = first_edge; e < cfg->nr_edges; e++) {
		uint32_t at = m->block_at[cfg->edges[e].to - m->func->first_block];

		mp_bit_clear(b->scratch, at);
	}
	return ret;
}

static int link_indirect(struct mp_block_maker *m, uint32_t block, const struct mp_flow *f)
{
	struct mp_block *bl = &m->b->cfg->blocks[block];
	bool labels = m->func->flags & MP_FUNC_LABELS;

	if (labels && f->may_miss_table && !f->tail) {
		bl->term = MP_TERM_UNRESOLVED;
		m->b->cfg->nr_indirect_jumps[2]++;
		return 0;
	}
	if (f->tabled) {
		bl->term = MP_TERM_TABLE;
		bl->table = MP_NONE;
		m->b->cfg->nr_indirect_jumps[0]++;
		return link_tables(m, block, f->at);
	}
	if (f->tail) {
		bl->term = MP_TERM_INDIRECT_TAIL;
		m->b->cfg->nr_indirect_jumps[1]++;
		return 0;
	}
	bl->term = MP_TERM_UNRESOLVED;
	m->b->cfg->nr_indirect_jumps[2]++;
	mp_func_problem(m->func, MP_PROBLEM_UNRESOLVED_JUMP, mp_space_vaddr(m->b->index, f->at));
	return 0;
}

static int link_fall(struct mp_block_maker *m, uint32_t block, uint32_t end)
{
	uint32_t n = block + 1 - m->func->first_block;
	/* Nearly always the next block; but the parts of a function may lie in any order. */
	uint32_t next = n < m->func->nr_blocks && m->block_at[n] == end ? block + 1
									: block_at(m, end);
	struct mp_block *bl = &m->b->cfg->blocks[block];

	if (next != MP_NONE)
		return add_edge(m, block, next, MP_EDGE_FALL);
	if (!(bl->flags & MP_BLOCK_PADDING))
		mp_func_problem(m->func, MP_PROBLEM_FALLS_OUT, bl->vaddr);
	return 0;
}

static int link_block(struct mp_block_maker *m, uint32_t n)
{
	struct mp_cfg_build *b = m->b;
	uint32_t block = m->func->first_block + n;
	struct mp_block *bl = &b->cfg->blocks[block];
	const struct mp_flow *f = m->flow_of[n] == MP_NONE ? NULL : &b->flows[m->flow_of[n]];
	uint32_t end = m->block_at[n] + bl->size;
	int ret;

	bl->first_edge = b->cfg->nr_edges;
	if (!f)
		return link_fall(m, block, end);
	bl->term_len = f->len;
	switch (f->kind) {
	case MP_INSN_JUMP: return link_direct(m, block, f);
	case MP_INSN_COND:
	case MP_INSN_LOOP:
		ret = link_direct(m, block, f);
		return ret ? ret : link_fall(m, block, end);
	case MP_INSN_IJUMP: return link_indirect(m, block, f);
	case MP_INSN_RET: bl->term = MP_TERM_RET; return 0;
	case MP_INSN_TRAP: bl->term = MP_TERM_TRAP; return 0;
	default:
		bl->term = MP_TERM_NORETURN;
		bl->term_len = 0;
		return 0;
	}
}

static int link_calls(struct mp_block_maker *m, const struct mp_part *part)
{
	struct mp_cfg_build *b = m->b;
	uint32_t block = part->first_block;

	for (uint32_t i = 0; i < part->nr_flows; i++) {
		const struct mp_flow *f = &b->flows[part->first_flow + i];
		uint64_t vaddr;

		if (f->kind != MP_INSN_CALL)
			continue;
		vaddr = mp_space_vaddr(b->index, f->at);
		while (block + 1 < part->first_block + part->nr_blocks &&
		       b->cfg->blocks[block + 1].vaddr <= vaddr)
			block++;
		if (add_call(m, block, f, false))
			return -ENOMEM;
	}
	return 0;
}

static int compare_calls(const void *a, const void *b)
{
	const struct mp_call *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/*
 * Tail calls, which end blocks, were added before all other calls. Most functions have no tail
 * call, so test before sorting.
 */
static void sort_calls(struct mp_call *calls, uint32_t nr)
{
	for (uint32_t i = 1; i < nr; i++) {
		if (compare_calls(&calls[i - 1], &calls[i]) <= 0)
			continue;
		qsort(calls, nr, sizeof(*calls), compare_calls);
		return;
	}
}

int mp_cfg_link_blocks(struct mp_block_maker *m, const uint32_t *parts)
{
	struct mp_cfg *cfg = m->b->cfg;
	const struct mp_func *func = m->func;
	uint32_t first_call = cfg->nr_calls;
	int ret;

	for (uint32_t n = 0; n < func->nr_blocks; n++) {
		ret = link_block(m, n);
		if (ret)
			return ret;
	}
	for (uint32_t i = 0; i < func->nr_ranges; i++) {
		ret = link_calls(m, &m->b->index->parts[parts[i]]);
		if (ret)
			return ret;
	}
	if (cfg->nr_calls > first_call)
		sort_calls(&cfg->calls[first_call], cfg->nr_calls - first_call);
	return 0;
}
