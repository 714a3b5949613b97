// SPDX-License-Identifier: Apache-2.0
/*
 * table - finds the tables of all functions, and how long each is. It claims exactness
 * strictly: a table's uses must agree on its length. It also tells which other indirect jumps
 * are tail calls. Called by cfg.
 */
#include <errno.h>
#include <stdlib.h>

#include "libprof/base/search.h"
#include "libprof/cfg/table_jump.h"

/* Records the table's targets. They stay targets even if its length is not certain. */
static void settle(struct mp_cfg_build *b, uint32_t i)
{
	struct mp_table *table = &b->cfg->tables[i];
	const struct mp_table_length *length = &mp_table_lengths(b)[i];
	uint32_t size = table->kind == MP_TABLE_REL32 ? 4 : 8, run, n;
	bool stop;

	run = mp_table_run(b, table, length->bound, &stop);
	n = run;
	if (length->bound && !length->unbounded && length->bound <= run) {
		n = length->bound;
		table->exact = length->exact;
	}
	if (b->elf->relinkable && stop && n == run)
		table->exact = true;
	table->nr_entries = n;
	table->labels = !length->bound || (b->moves && table->kind == MP_TABLE_ABS64);
	for (uint32_t k = 0; k < run; k++) {
		uint32_t target = mp_table_entry(b, table, k);

		if (!mp_space_is_text(b->index, target))
			continue;
		mp_bit_set(b->index->targets, target);
		if (k >= n)
			continue;
		mp_bit_set(b->table_targets, target);
		mp_bit_set(b->in_table, mp_space_at(b->index, table->vaddr + (uint64_t)size * k));
	}
}

/* Entries may lead to ranges without an owner: these belong to this function. */
static int claim_orphans(struct mp_table_finder *f, uint32_t i, uint32_t part, bool *again)
{
	const struct mp_table *table = &f->b->cfg->tables[i];

	for (uint32_t k = 0; k < table->nr_entries; k++) {
		uint32_t target = mp_table_entry(f->b, table, k);

		if (mp_table_orphan(f->b, target) == MP_NONE ||
		    f->b->index->parts[mp_part_at(f->b->index, target)].func == f->slice.func)
			continue;
		if (mp_cfg_add_far_link(f->b, part, target))
			return -ENOMEM;
		*again = true;
	}
	return 0;
}

/* Makes each jump through a table a predecessor of the places that the table leads to. */
static int add_table_preds(struct mp_table_finder *f)
{
	struct mp_cfg_build *b = f->b;

	for (uint32_t u = f->first_use; u < b->nr_uses; u++) {
		const struct mp_table *table = &b->cfg->tables[b->uses[u].table];

		if (!mp_table_look(b, f->func, b->uses[u].jump, table->nr_entries))
			break;
		for (uint32_t k = 0; k < table->nr_entries; k++)
			if (mp_slice_add_pred(&f->slice, mp_table_entry(b, table, k),
					      b->uses[u].jump))
				return -ENOMEM;
	}
	return mp_slice_sort(&f->slice);
}

/*
 * A label from a table may be kept and jumped to later. In a function with a label table, a
 * jump through a pointer may be such a jump.
 */
static int use_labels(struct mp_table_finder *f)
{
	struct mp_cfg_build *b = f->b;
	const struct mp_func *fn = &b->cfg->funcs[f->func];

	for (uint32_t t = f->first_table; t < b->cfg->nr_tables; t++) {
		if (!b->cfg->tables[t].labels)
			continue;
		for (uint32_t r = 0; r < fn->nr_ranges; r++) {
			const struct mp_part *part =
				&b->index->parts[b->part_of_range[fn->first_range + r]];

			for (uint32_t i = 0; i < part->nr_flows; i++) {
				f->jump = b->flows[part->first_flow + i].at;
				if (!mp_bit(b->pointer_jumps, f->jump) ||
				    !mp_table_look(b, f->func, f->jump, 1))
					continue;
				if (mp_table_add_use(f, t))
					return -ENOMEM;
				mp_bit_set(b->tabled, f->jump);
			}
		}
	}
	return 0;
}

/* Examines jumps that are not explained yet, over all ways, also those through tables. */
static int find_pointer_jumps(struct mp_table_finder *f)
{
	struct mp_cfg_build *b = f->b;
	const struct mp_func *fn = &b->cfg->funcs[f->func];

	for (uint32_t r = 0; r < fn->nr_ranges; r++) {
		const struct mp_part *part =
			&b->index->parts[b->part_of_range[fn->first_range + r]];

		for (uint32_t i = 0; i < part->nr_flows; i++) {
			const struct mp_flow *flow = &b->flows[part->first_flow + i];
			bool outside;
			struct mp_op op;

			if (flow->kind != MP_INSN_IJUMP || mp_bit(b->tabled, flow->at) ||
			    mp_bit(b->pointer_jumps, flow->at) || mp_bit(b->tails, flow->at) ||
			    mp_op_decode(b, flow->at, &op) || op.kind != MP_OP_JUMP_REG)
				continue;
			if (mp_slice_from_outside(&f->slice, flow->at, op.src, &outside))
				return -ENOMEM;
			if (outside)
				mp_bit_set(b->pointer_jumps, flow->at);
		}
	}
	return 0;
}

static int find_in_func(struct mp_cfg_build *b, struct mp_table_finder *f, uint32_t func,
			bool *again)
{
	const struct mp_func *fn = &b->cfg->funcs[func];
	bool ready = false, left = false;

	f->first_table = b->cfg->nr_tables;
	f->first_use = b->nr_uses;
	f->func = func;
	/* First over direct branches only; then the remaining jumps, also over the tables found. */
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t r = 0; r < fn->nr_ranges; r++) {
			const struct mp_part *part =
				&b->index->parts[b->part_of_range[fn->first_range + r]];

			for (uint32_t i = 0; i < part->nr_flows; i++) {
				const struct mp_flow *flow = &b->flows[part->first_flow + i];

				if (flow->kind != MP_INSN_IJUMP || mp_bit(b->tabled, flow->at) ||
				    mp_bit(b->pointer_jumps, flow->at))
					continue;
				if (flow->slot) {
					mp_bit_set(b->tails, flow->at);
					continue;
				}
				if (!ready && mp_slice_init(&f->slice, b, func))
					return -ENOMEM;
				ready = true;
				mp_table_recognise(f, flow->at);
				if (f->error)
					return f->error;
				left |= !f->found && f->odd;
			}
		}
		for (uint32_t i = f->first_table; i < b->cfg->nr_tables; i++) {
			settle(b, i);
			if (claim_orphans(f, i, b->part_of_range[fn->first_range], again))
				return -ENOMEM;
		}
		if (!left || f->first_table == b->cfg->nr_tables)
			break;
		if (!pass && add_table_preds(f))
			return -ENOMEM;
	}
	if (left && ((b->nr_uses > f->first_use && add_table_preds(f)) || find_pointer_jumps(f)))
		return -ENOMEM;
	return use_labels(f);
}

static int compare_uses(const void *a, const void *b)
{
	const struct mp_table_use *x = a, *y = b;

	if (x->jump != y->jump)
		return x->jump < y->jump ? -1 : 1;
	return x->table < y->table ? -1 : x->table > y->table;
}

uint32_t mp_table_first_use(const struct mp_cfg_build *b, uint32_t jump)
{
	return mp_search(i, 0, b->nr_uses, b->uses[i].jump < jump);
}

static void clear(const struct mp_cfg_build *b, mp_bits bits)
{
	mp_bits_clear_all(bits, b->index->nr_bytes / 64 + 2);
}

int mp_cfg_find_tables(struct mp_cfg_build *b, bool *again)
{
	struct mp_table_finder f = {.b = b};
	int ret = 0;

	*again = false;
	mp_table_looks_begin(b);
	b->cfg->nr_tables = 0;
	b->nr_uses = 0;
	if (b->had_tables) {
		clear(b, b->table_targets);
		clear(b, b->in_table);
		clear(b, b->tabled);
		clear(b, b->tails);
		clear(b, b->pointer_jumps);
		clear(b, b->may_miss_table);
		clear(b, b->computed);
	}
	b->had_tables = true;
	for (uint32_t i = 0; i < b->cfg->nr_funcs && !ret; i++) {
		ret = find_in_func(b, &f, i, again);
		mp_space_note_read(b, (uint32_t)b->cfg->funcs[i].size);
	}
	mp_slice_fini(&f.slice);
	for (uint32_t i = 0; i < b->cfg->nr_tables; i++)
		mp_table_mark_beyond(b, &b->cfg->tables[i]);
	if (b->nr_uses)
		qsort(b->uses, b->nr_uses, sizeof(*b->uses), compare_uses);
	return ret;
}
