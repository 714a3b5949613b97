// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_block - cuts functions into blocks. It runs after the passes that find targets, tables and
 * calls that do not return. cfg_link links the blocks. Called by cfg.
 */
#include <errno.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/cfg/cfg_block_private.h"
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

static uint16_t block_flags(const struct mp_cfg_build *b, const struct mp_block_maker *m,
			    uint32_t at, const struct mp_part *part)
{
	uint64_t vaddr = mp_space_vaddr(b->index, at);
	uint16_t flags = mp_marks_at(&b->marks, at);

	if (vaddr == m->func->vaddr)
		flags |= MP_BLOCK_ENTRY;
	if (b->cfg->ranges[part->range].cold)
		flags |= MP_BLOCK_COLD_PART;
	return flags;
}

static int add_block(struct mp_block_maker *m, const struct mp_part *part, uint32_t at,
		     uint32_t end, uint32_t flow)
{
	struct mp_cfg_build *b = m->b;
	struct mp_cfg *cfg = b->cfg;
	uint32_t n = cfg->nr_blocks - m->func->first_block;
	struct mp_block *block;

	if (cfg->nr_blocks == MP_MAX_BLOCKS ||
	    mp_grow(cfg->blocks, b->cap_blocks, cfg->nr_blocks + 1) ||
	    mp_grow(m->block_at, m->cap_at, n + 1) || mp_grow(m->flow_of, m->cap_flow, n + 1))
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

/* The last place in (from, at] where a block from @from on may end. */
static uint32_t last_cut(const struct mp_cfg_build *b, uint32_t from, uint32_t at)
{
	uint32_t cut = mp_bit(b->starts, at) ? at : insn_before(b, from, at);

	return cut > from ? cut : at;
}

/*
 * With fine blocks: end of the first piece of block [at, end), which ends with the branch
 * @term or with none. @*flow: the first flow that may lie in the block; moves on.
 */
static uint32_t end_of_piece(const struct mp_block_maker *m, const struct mp_part *part,
			     uint32_t at, uint32_t end, uint32_t term, uint32_t *flow)
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
static bool leaves(const struct mp_block_maker *m, const struct mp_flow *f)
{
	const struct mp_cfg_build *b = m->b;
	uint32_t part;

	switch (f->kind) {
	case MP_INSN_RET: return true;
	case MP_INSN_IJUMP: return f->tail && !f->tabled;
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
	uint32_t nr = o ? o->nr_cuts : 0;
	uint32_t lo = mp_search(i, 0, nr, o->cuts[i] <= vaddr);

	for (; lo < nr && o->cuts[lo] - vaddr < end - at; lo++)
		if (mp_bit(b->starts, at + (uint32_t)(o->cuts[lo] - vaddr)))
			return at + (uint32_t)(o->cuts[lo] - vaddr);
	return end;
}

/* With entries as blocks: the end of the function's first instruction, if it is the one at @at; else @end. */
static uint32_t end_of_entry(const struct mp_block_maker *m, uint32_t at, uint32_t end)
{
	const struct mp_cfg_build *b = m->b;
	uint64_t vaddr = mp_space_vaddr(b->index, at);

	if (!b->options || !b->options->entries || vaddr != m->func->vaddr ||
	    mp_cfg_is_endbr64(b->cfg, vaddr))
		return end;
	return mp_bits_next(b->starts, at + 1, end);
}

/* Marks the block that was made last, if it lies behind the first instruction of the function. */
static void mark_behind_entry(const struct mp_block_maker *m, const struct mp_part *part)
{
	const struct mp_cfg *cfg = m->b->cfg;
	struct mp_block *last = &cfg->blocks[cfg->nr_blocks - 1];

	if (!m->b->options || !m->b->options->entries || cfg->nr_blocks - part->first_block < 2 ||
	    !(last[-1].flags & MP_BLOCK_ENTRY) || last[-1].nr_insns != 1 ||
	    m->flow_of[cfg->nr_blocks - m->func->first_block - 2] != MP_NONE ||
	    mp_cfg_is_endbr64(cfg, last[-1].vaddr))
		return;
	last->flags |= MP_BLOCK_BEHIND_ENTRY;
}

static int cut_part(struct mp_block_maker *m, struct mp_part *part)
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
		if (end_of_entry(m, at, end) < end) {
			end = end_of_entry(m, at, end);
			term = MP_NONE;
		}
		if (end - at > MP_MAX_BLOCK_SIZE) {
			term = MP_NONE;
			end = last_cut(b, at, at + MP_MAX_BLOCK_SIZE);
		}
		if (add_block(m, part, at, end, term))
			return -ENOMEM;
		mark_behind_entry(m, part);
		at = end;
	}
	part->nr_blocks = b->cfg->nr_blocks - part->first_block;
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

/* Sets flags and problems that need the blocks. */
static void judge_blocks(struct mp_block_maker *m)
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
	if (mp_marks_at(&b->marks, entry) & MP_BLOCK_ADDRESS_TAKEN)
		m->func->flags |= MP_FUNC_ADDRESS_TAKEN;
	if (!b->elf->relinkable && mp_bit(b->index->weak_targets, entry))
		m->func->flags |= MP_FUNC_POINTED;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int make_func(struct mp_block_maker *m, uint32_t func_index, uint32_t *scratch)
{
	struct mp_cfg *cfg = m->b->cfg;
	struct mp_func *func = &cfg->funcs[func_index];
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
	mp_space_note_read(m->b, (uint32_t)func->size);
	return mp_cfg_link_blocks(m, scratch);
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
	struct mp_block_maker m = {.b = b};
	int ret = -ENOMEM;

	if (!scratch)
		goto out;
	mp_table_looks_begin(b);
	find_entered(b);
	find_off_grid(b);
	free(b->gap_targets);
	b->gap_targets = NULL;
	ret = mp_marks_pack(b);
	if (ret)
		goto out;
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
