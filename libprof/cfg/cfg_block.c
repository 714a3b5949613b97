// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_block - cuts functions into blocks, links them, and records calls between functions.
 * It runs after the passes that find targets, tables and calls that do not return. Called
 * by cfg.
 */
#include <errno.h>

#include "libprof/cfg/cfg_private.h"

/* Marks in b->entered every target that another function calls or jumps to, over the whole text. */
static void find_entered(struct mp_cfg_build *b)
{
	const struct mp_cfg_index *index = b->index;
	uint32_t p = 0;

	for (uint32_t i = 0; i < b->nr_flows; i++) {
		const struct mp_flow *f = &b->flows[i];
		const struct mp_part *part;
		uint32_t to;

		while (p < index->nr_parts && index->parts[p].end <= f->at)
			p++;
		part = p < index->nr_parts && index->parts[p].at <= f->at ? &index->parts[p] : NULL;
		if (f->target == MP_NONE || !mp_space_is_text(index, f->target))
			continue;
		if (part && f->kind != MP_INSN_CALL && f->target >= part->at &&
		    f->target < part->end)
			continue;
		to = mp_part_at(index, f->target);
		if (to == MP_NONE)
			continue;
		if (f->kind == MP_INSN_CALL || !part || index->parts[to].func != part->func)
			mp_bit_set(b->entered, f->target);
	}
}

struct maker {
	struct mp_cfg_build *b;
	struct mp_func *func;
	uint32_t func_index;
	uint32_t *block_at; /* start of each block of the function */
	uint32_t *flow_of;  /* terminating flow of each block, or MP_NONE */
	uint32_t cap_at, cap_flow;
};

static bool ends_block(const struct mp_flow *f)
{
	switch (f->kind) {
	case MP_INSN_COND:
	case MP_INSN_JUMP:
	case MP_INSN_IJUMP:
	case MP_INSN_RET:
	case MP_INSN_TRAP:
	case MP_INSN_LOOP: return true;
	case MP_INSN_CALL:
	case MP_INSN_ICALL: return f->noreturn;
	default: return false;
	}
}

static uint16_t block_flags(const struct mp_cfg_build *b, const struct maker *m, uint32_t at,
			    const struct mp_part *part)
{
	uint64_t vaddr = mp_space_vaddr(b->index, at);
	uint16_t flags = 0;

	if (vaddr == m->func->vaddr)
		flags |= MP_BLOCK_ENTRY;
	if (mp_bit(b->pads, at))
		flags |= MP_BLOCK_LANDING_PAD;
	if (mp_bit(b->table_targets, at))
		flags |= MP_BLOCK_TABLE_TARGET;
	if (mp_bit(b->address_taken, at))
		flags |= MP_BLOCK_ADDRESS_TAKEN;
	if (mp_bit(b->named, at))
		flags |= MP_BLOCK_NAMED;
	if (mp_bit(b->entered, at))
		flags |= MP_BLOCK_OTHER_ENTRY;
	if (b->cfg->ranges[part->range].cold)
		flags |= MP_BLOCK_COLD_PART;
	return flags;
}

static int add_block(struct maker *m, const struct mp_part *part, uint32_t at, uint32_t end,
		     uint32_t flow)
{
	struct mp_cfg_build *b = m->b;
	struct mp_cfg *cfg = b->cfg;
	uint32_t n = cfg->nr_blocks - m->func->first_block;
	struct mp_block *block;

	if (cfg->nr_blocks == MP_MAX_BLOCKS ||
	    mp_grow(&cfg->blocks, &b->cap_blocks, cfg->nr_blocks, sizeof(*cfg->blocks)) ||
	    mp_grow(&m->block_at, &m->cap_at, n, sizeof(*m->block_at)) ||
	    mp_grow(&m->flow_of, &m->cap_flow, n, sizeof(*m->flow_of)))
		return -ENOMEM;
	block = &cfg->blocks[cfg->nr_blocks++];
	*block = (struct mp_block){
		.vaddr = mp_space_vaddr(b->index, at),
		.size = end - at,
		.nr_insns = mp_bits_count(b->starts, at, end),
		.func = m->func_index,
		.term = MP_TERM_FALL,
		.flags = block_flags(b, m, at, part),
	};
	m->block_at[n] = at;
	m->flow_of[n] = flow;
	m->func->nr_blocks++;
	m->func->nr_insns += block->nr_insns;
	return 0;
}

/* Start of the last instruction before @at that lies in [from, at); @from if there is none. */
static uint32_t insn_before(const struct mp_cfg_build *b, uint32_t from, uint32_t at)
{
	uint32_t before = at;

	while (before > from && !mp_bit(b->starts, --before))
		;
	return before;
}

/*
 * With fine blocks: end of the first piece of block [at, end), which ends with the branch
 * @term or with none. @*flow: the first flow that may lie in the block; moves on.
 */
static uint32_t end_of_piece(const struct maker *m, const struct mp_part *part, uint32_t at,
			     uint32_t end, uint32_t term, uint32_t *flow)
{
	const struct mp_cfg_build *b = m->b;
	const struct mp_flow *branch;
	uint32_t tail;

	for (; *flow < part->first_flow + part->nr_flows; ++*flow) {
		const struct mp_flow *f = &b->flows[*flow];

		if (f->at >= end)
			break;
		if ((f->kind == MP_INSN_CALL || f->kind == MP_INSN_ICALL) && f->at >= at &&
		    f->at + f->len < end)
			return f->at + f->len;
	}
	branch = term == MP_NONE ? NULL : &b->flows[term];
	if (!branch || branch->target == MP_NONE || branch->target > branch->at)
		return end;
	tail = branch->kind == MP_INSN_COND   ? insn_before(b, at, branch->at)
	       : branch->kind == MP_INSN_JUMP ? branch->at
					      : at;
	return tail > at ? tail : end;
}

/* Does control leave the function by this branch for certain? */
static bool leaves(const struct maker *m, const struct mp_flow *f)
{
	const struct mp_cfg_build *b = m->b;
	uint32_t part;

	switch (f->kind) {
	case MP_INSN_RET: return true;
	case MP_INSN_IJUMP: return mp_bit(b->tails, f->at) && !mp_bit(b->tabled, f->at);
	case MP_INSN_JUMP:
		part = f->target == MP_NONE ? MP_NONE : mp_part_at(b->index, f->target);
		return part == MP_NONE || b->index->parts[part].func != m->func_index;
	default: return false;
	}
}

/* The first cut that the options ask for behind @at and before @end; @end if there is none. */
static uint32_t next_cut(const struct mp_cfg_build *b, uint32_t at, uint32_t end)
{
	const struct mp_cfg_options *o = b->options;
	uint64_t vaddr = mp_space_vaddr(b->index, at);
	uint32_t lo = 0, hi = o ? o->nr_cuts : 0, nr = hi;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (o->cuts[mid] <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < nr && o->cuts[lo] - vaddr < end - at; lo++)
		if (mp_bit(b->starts, at + (uint32_t)(o->cuts[lo] - vaddr)))
			return at + (uint32_t)(o->cuts[lo] - vaddr);
	return end;
}

static int cut_part(struct maker *m, struct mp_part *part)
{
	struct mp_cfg_build *b = m->b;
	bool exits = b->options && b->options->exits;
	bool fine = b->options && b->options->fine;
	uint32_t flow = part->first_flow, last = flow + part->nr_flows;
	uint32_t at = part->at, any_flow = flow;

	part->first_block = b->cfg->nr_blocks;
	while (at < part->end) {
		uint32_t end = mp_bits_next(b->index->targets, at + 1, part->end);
		uint32_t term = MP_NONE;

		/* Do not cut inside an instruction. */
		while (end < part->end && !mp_bit(b->starts, end))
			end = mp_bits_next(b->index->targets, end + 1, part->end);
		while (flow < last && (b->flows[flow].at < at || !ends_block(&b->flows[flow])))
			flow++;
		if (flow < last && b->flows[flow].at < end) {
			term = flow;
			end = b->flows[flow].at + b->flows[flow].len;
			if (end > part->end)
				end = part->end;
		}
		if (fine) {
			uint32_t piece = end_of_piece(m, part, at, end, term, &any_flow);

			term = piece < end ? MP_NONE : term;
			end = piece;
		}
		if (exits && term != MP_NONE && b->flows[term].at > at &&
		    leaves(m, &b->flows[term])) {
			end = b->flows[term].at;
			term = MP_NONE;
		}
		if (b->options && b->options->nr_cuts) {
			uint32_t cut = next_cut(b, at, end);

			term = cut < end ? MP_NONE : term;
			end = cut;
		}
		if (add_block(m, part, at, end, term))
			return -ENOMEM;
		at = end;
	}
	part->nr_blocks = b->cfg->nr_blocks - part->first_block;
	return 0;
}

/* Block of the function that starts at @at, or MP_NONE. */
static uint32_t block_at(const struct maker *m, uint32_t at)
{
	uint32_t lo = 0, hi = m->func->nr_blocks;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (m->block_at[mid] < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < m->func->nr_blocks && m->block_at[lo] == at)
		return m->func->first_block + lo;
	return MP_NONE;
}

static int add_edge(struct maker *m, uint32_t from, uint32_t to, enum mp_edge_kind kind)
{
	struct mp_cfg *cfg = m->b->cfg;

	if (mp_grow(&cfg->edges, &m->b->cap_edges, cfg->nr_edges, sizeof(*cfg->edges)))
		return -ENOMEM;
	cfg->edges[cfg->nr_edges++] = (struct mp_edge){from, to, kind};
	cfg->blocks[from].nr_edges++;
	return 0;
}

static int add_call(struct maker *m, uint32_t block, const struct mp_flow *f, bool tail)
{
	struct mp_cfg *cfg = m->b->cfg;
	uint32_t part = f->target == MP_NONE ? MP_NONE : mp_part_at(m->b->index, f->target);
	uint64_t vaddr = mp_space_vaddr(m->b->index, f->at);
	struct mp_call *call;

	if (mp_grow(&cfg->calls, &m->b->cap_calls, cfg->nr_calls, sizeof(*cfg->calls)))
		return -ENOMEM;
	call = &cfg->calls[cfg->nr_calls++];
	*call = (struct mp_call){
		.block = block,
		.callee = part == MP_NONE ? MP_NONE : m->b->index->parts[part].func,
		.insn_vaddr = vaddr,
		.tail = tail,
	};
	if (call->callee != MP_NONE && cfg->funcs[call->callee].problem == MP_PROBLEM_SPECIAL)
		call->callee = MP_NONE;
	if (f->target != MP_NONE) {
		call->target = mp_space_vaddr(m->b->index, f->target);
	} else {
		const uint8_t *bytes = mp_space_bytes(m->b->index, f->at, f->len);
		struct mp_insn insn;

		if (bytes && !mp_insn_decode(bytes, f->len, vaddr, &insn))
			call->target = insn.target;
	}
	return 0;
}

static int link_direct(struct maker *m, uint32_t block, const struct mp_flow *f)
{
	struct mp_cfg *cfg = m->b->cfg;
	uint32_t to = f->target == MP_NONE ? MP_NONE : block_at(m, f->target);
	bool jump = f->kind == MP_INSN_JUMP;
	int ret;

	if (to != MP_NONE) {
		cfg->blocks[block].term_target = cfg->blocks[to].vaddr;
		cfg->blocks[block].term = jump ? MP_TERM_JUMP : MP_TERM_COND;
		return add_edge(m, block, to, jump ? MP_EDGE_JUMP : MP_EDGE_TAKEN);
	}
	ret = add_call(m, block, f, true);
	if (ret)
		return ret;
	cfg->blocks[block].term_target = cfg->calls[cfg->nr_calls - 1].target;
	cfg->blocks[block].term = jump ? MP_TERM_TAIL : MP_TERM_COND;
	return 0;
}

static uint32_t first_use(const struct mp_cfg_build *b, uint32_t jump)
{
	uint32_t lo = 0, hi = b->nr_uses;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (b->uses[mid].jump < jump)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int link_tables(struct maker *m, uint32_t block, uint32_t jump)
{
	struct mp_cfg_build *b = m->b;
	struct mp_cfg *cfg = b->cfg;
	uint32_t first_edge = cfg->nr_edges;
	int ret = 0;

	for (uint32_t u = first_use(b, jump); u < b->nr_uses && b->uses[u].jump == jump; u++) {
		struct mp_table *table = &cfg->tables[b->uses[u].table];

		if (cfg->blocks[block].table == MP_NONE)
			cfg->blocks[block].table = b->uses[u].table;
		if (table->block == MP_NONE)
			table->block = block;
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

static int link_indirect(struct maker *m, uint32_t block, uint32_t jump)
{
	struct mp_block *bl = &m->b->cfg->blocks[block];
	bool labels = m->func->flags & MP_FUNC_LABELS;

	if (labels && mp_bit(m->b->may_miss_table, jump) && !mp_bit(m->b->tails, jump)) {
		bl->term = MP_TERM_UNRESOLVED;
		m->b->cfg->nr_indirect_jumps[2]++;
		return 0;
	}
	if (mp_bit(m->b->tabled, jump)) {
		bl->term = MP_TERM_TABLE;
		bl->table = MP_NONE;
		m->b->cfg->nr_indirect_jumps[0]++;
		return link_tables(m, block, jump);
	}
	if (mp_bit(m->b->tails, jump)) {
		bl->term = MP_TERM_INDIRECT_TAIL;
		m->b->cfg->nr_indirect_jumps[1]++;
		return 0;
	}
	bl->term = MP_TERM_UNRESOLVED;
	m->b->cfg->nr_indirect_jumps[2]++;
	mp_func_problem(m->func, MP_PROBLEM_UNRESOLVED_JUMP, mp_space_vaddr(m->b->index, jump));
	return 0;
}

/* True if the block holds only no-ops and traps. */
static bool is_padding(const struct mp_cfg_build *b, const struct mp_block *block, uint32_t at)
{
	uint32_t end = at + block->size;

	while (at < end) {
		const uint8_t *bytes = mp_space_bytes(b->index, at, 1);
		struct mp_insn insn;

		if (!bytes || mp_insn_decode(bytes, end - at, 0, &insn) ||
		    !(insn.nop || *bytes == 0xcc))
			return false;
		at += insn.len;
	}
	return true;
}

static int link_fall(struct maker *m, uint32_t block, uint32_t end)
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

static int link_block(struct maker *m, uint32_t n)
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
	case MP_INSN_IJUMP: return link_indirect(m, block, f->at);
	case MP_INSN_RET: bl->term = MP_TERM_RET; return 0;
	case MP_INSN_TRAP: bl->term = MP_TERM_TRAP; return 0;
	default:
		bl->term = MP_TERM_NORETURN;
		bl->term_len = 0;
		return 0;
	}
}

static int link_calls(struct maker *m, const struct mp_part *part)
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

/* Sets flags and problems that need the blocks. */
static void judge_blocks(struct maker *m)
{
	struct mp_cfg_build *b = m->b;
	uint32_t entry = mp_space_at(b->index, m->func->vaddr);

	for (uint32_t n = 0; n < m->func->nr_blocks; n++) {
		struct mp_block *bl = &b->cfg->blocks[m->func->first_block + n];
		uint32_t at = m->block_at[n];

		if ((bl->flags & MP_BLOCK_ADDRESS_TAKEN) && !(bl->flags & MP_BLOCK_ENTRY) &&
		    !(m->func->flags & MP_FUNC_LABELS))
			mp_func_problem(m->func, MP_PROBLEM_MID_ESCAPE, bl->vaddr);
		if (!mp_bit(b->index->targets, at) && n && m->flow_of[n - 1] != MP_NONE) {
			const struct mp_flow *f = &b->flows[m->flow_of[n - 1]];

			if (f->kind != MP_INSN_COND && f->kind != MP_INSN_LOOP &&
			    is_padding(b, bl, at))
				bl->flags |= MP_BLOCK_PADDING;
		}
	}
	if (mp_bit(b->address_taken, entry))
		m->func->flags |= MP_FUNC_ADDRESS_TAKEN;
	if (!b->elf->relinkable && mp_bit(b->index->weak_targets, entry))
		m->func->flags |= MP_FUNC_POINTED;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_calls(const void *a, const void *b)
{
	const struct mp_call *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->insn_vaddr < y->insn_vaddr ? -1 : x->insn_vaddr > y->insn_vaddr;
}

/*
 * Calls at the ends of blocks were added first. Most functions have none, so test before
 * sorting.
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

static int make_func(struct maker *m, uint32_t func_index, uint32_t *scratch)
{
	struct mp_cfg *cfg = m->b->cfg;
	struct mp_func *func = &cfg->funcs[func_index];
	uint32_t first_call = cfg->nr_calls;
	int ret;

	m->func = func;
	m->func_index = func_index;
	func->first_block = cfg->nr_blocks;
	for (uint32_t i = 0; i < func->nr_ranges; i++)
		scratch[i] = m->b->part_of_range[func->first_range + i];
	/* Blocks must ascend, whichever range holds the entry. */
	qsort(scratch, func->nr_ranges, sizeof(*scratch), compare_u32);
	for (uint32_t i = 0; i < func->nr_ranges; i++) {
		ret = cut_part(m, &m->b->index->parts[scratch[i]]);
		if (ret)
			return ret;
	}
	judge_blocks(m);
	for (uint32_t n = 0; n < func->nr_blocks; n++) {
		ret = link_block(m, n);
		if (ret)
			return ret;
	}
	for (uint32_t i = 0; i < func->nr_ranges; i++) {
		ret = link_calls(m, &m->b->index->parts[scratch[i]]);
		if (ret)
			return ret;
	}
	if (cfg->nr_calls > first_call)
		sort_calls(&cfg->calls[first_call], cfg->nr_calls - first_call);
	return 0;
}

/*
 * Reports targets inside instructions. Neither the source nor the target function is
 * understood then.
 */
static void find_off_grid(struct mp_cfg_build *b)
{
	const struct mp_cfg_index *index = b->index;

	for (uint32_t p = 0; p < index->nr_parts; p++) {
		const struct mp_part *part = &index->parts[p];
		struct mp_func *func = &b->cfg->funcs[part->func];
		uint32_t at = mp_bits_next(index->targets, part->at, part->end);

		for (; at < part->end; at = mp_bits_next(index->targets, at + 1, part->end))
			if (!mp_bit(b->starts, at))
				mp_func_problem(func, MP_PROBLEM_OFF_GRID,
						mp_space_vaddr(index, at));
		at = mp_bits_next(b->gap_targets, part->at, part->end);
		for (; at < part->end; at = mp_bits_next(b->gap_targets, at + 1, part->end))
			if (!mp_bit(b->starts, at))
				mp_func_problem(func, MP_PROBLEM_OFF_GRID,
						mp_space_vaddr(index, at));
		for (uint32_t i = 0; i < part->nr_flows; i++) {
			const struct mp_flow *f = &b->flows[part->first_flow + i];

			if (f->target != MP_NONE && mp_space_is_text(index, f->target) &&
			    !mp_bit(b->starts, f->target))
				mp_func_problem(func, MP_PROBLEM_OFF_GRID,
						mp_space_vaddr(index, f->at));
		}
	}
}

/* Makes the index that finds a block by its address without a search. */
static int make_hints(struct mp_cfg_build *b)
{
	struct mp_cfg_index *index = b->index;

	index->block_hint = calloc(((size_t)index->nr_bytes >> MP_BLOCK_HINT_SHIFT) + 1,
				   sizeof(*index->block_hint));
	if (!index->block_hint)
		return -ENOMEM;
	for (uint32_t p = 0; p < index->nr_parts; p++) {
		uint32_t at = index->parts[p].at, block = index->parts[p].first_block;

		for (uint32_t i = 0; i < index->parts[p].nr_blocks; i++, block++) {
			uint32_t end = at + b->cfg->blocks[block].size;
			uint32_t hint = at >> MP_BLOCK_HINT_SHIFT;

			for (; (uint64_t)hint << MP_BLOCK_HINT_SHIFT < end; hint++)
				if (hint << MP_BLOCK_HINT_SHIFT >= at)
					index->block_hint[hint] = block;
			at = end;
		}
	}
	return 0;
}

int mp_cfg_make_blocks(struct mp_cfg_build *b)
{
	struct mp_cfg *cfg = b->cfg;
	uint32_t *scratch = calloc((size_t)cfg->nr_ranges + 1, sizeof(*scratch));
	struct maker m = {.b = b};
	int ret = -ENOMEM;

	if (!scratch)
		goto out;
	find_entered(b);
	find_off_grid(b);
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		if (b->options && b->options->want &&
		    !b->options->want(b->options->ctx, &cfg->funcs[f]))
			continue;
		ret = make_func(&m, f, scratch);
		if (ret)
			goto out;
	}
	ret = make_hints(b);
out:
	free(scratch);
	free(m.block_at);
	free(m.flow_of);
	return ret;
}
