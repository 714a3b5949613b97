// SPDX-License-Identifier: Apache-2.0
/*
 * table_jump - recognises the tables that one indirect jump uses: switches of GCC and Clang,
 * position independent or not, and label tables of computed gotos. It accepts tables
 * generously, since an edge too many is harmless. Called by table.
 */
#include "libprof/cfg/table_jump.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/base/grow.h"

#define MAX_DEPTH 5

int mp_table_add_use(struct mp_table_finder *f, uint32_t table)
{
	struct mp_cfg_build *b = f->b;

	for (uint32_t i = b->nr_uses; i-- > 0 && b->uses[i].jump == f->jump;)
		if (b->uses[i].table == table)
			return 0;
	return mp_push(b->uses, b->nr_uses, b->cap_uses, (struct mp_table_use){f->jump, table});
}

static void add_table(struct mp_table_finder *f, const struct mp_table *table,
		      struct mp_bound bound)
{
	struct mp_cfg_build *b = f->b;
	struct mp_cfg *cfg = b->cfg;
	struct mp_table_length *length;
	uint32_t i;

	for (i = f->first_table; i < cfg->nr_tables; i++)
		if (cfg->tables[i].vaddr == table->vaddr && cfg->tables[i].kind == table->kind &&
		    cfg->tables[i].base == table->base)
			break;
	if (i == cfg->nr_tables) {
		if (mp_grow(cfg->tables, b->cap_tables, cfg->nr_tables + 1) ||
		    mp_grow(b->table_lengths, b->cap_lengths, cfg->nr_tables + 1)) {
			f->error = -ENOMEM;
			return;
		}
		mp_table_lengths(b)[i] = (struct mp_table_length){.exact = true};
		cfg->tables[cfg->nr_tables++] = *table;
	}
	length = &mp_table_lengths(b)[i];
	if (!bound.nr)
		length->unbounded = true;
	if (bound.nr > length->bound)
		length->bound = bound.nr;
	length->exact &= bound.exact;
	f->found = true;
	if (mp_table_add_use(f, i))
		f->error = -ENOMEM;
}

/* Adds a table at @vaddr if its entries look like one. */
static bool consider(struct mp_table_finder *f, uint64_t vaddr, uint64_t base,
		     enum mp_table_kind kind, struct mp_bound bound)
{
	struct mp_table table = {
		.vaddr = vaddr,
		.base = kind == MP_TABLE_REL32 ? base : 0,
		.block = MP_NONE,
		.kind = (uint8_t)kind,
		.func = f->slice.func,
	};
	uint32_t run;
	bool stop;

	/* A table in writable memory may be changed to lead anywhere. */
	if (!mp_elf_is_readonly(f->b->elf, vaddr))
		return false;
	run = mp_table_run(f->b, &table, bound.soft ? 0 : bound.nr, &stop);
	if (bound.soft && bound.nr > run)
		bound.nr = 0;
	/*
	 * Fewer entries than the comparison allows. If kept relocations prove the end, the
	 * comparison is about something else; otherwise this is no such table.
	 */
	if (!run || (run < bound.nr && (!f->b->elf->relinkable || !stop)))
		return false;
	if (run == 1 && bound.nr != 1 && !f->b->elf->relinkable)
		return false;
	add_table(f, &table, bound);
	return true;
}

/* The base could not be followed: try every table that the function refers to. */
static void consider_all(struct mp_table_finder *f, enum mp_table_kind kind, uint8_t reg,
			 struct mp_bound bound)
{
	struct mp_cfg_build *b = f->b;
	const struct mp_func *func = &b->cfg->funcs[f->slice.func];
	bool found = false;

	for (int pass = 0; pass < 2 && !found; pass++) {
		for (uint32_t r = 0; r < func->nr_ranges; r++) {
			const struct mp_part *part =
				&b->index->parts[b->part_of_range[func->first_range + r]];
			uint32_t i = mp_ref_first(b, part->at);

			for (; i < b->nr_refs && b->ref_list[i].at < part->end && b->table_looks;
			     i++) {
				uint64_t vaddr = mp_space_vaddr(b->index, b->ref_list[i].target);
				struct mp_table probe = {.vaddr = vaddr,
							 .base = vaddr,
							 .kind = (uint8_t)kind,
							 .func = f->slice.func};
				struct mp_op op;
				bool stop;

				if (mp_table_run(b, &probe, 0, &stop) < 2)
					continue;
				/* First those that are loaded into this very register. */
				if (!pass && (mp_op_decode(b, b->ref_list[i].at, &op) ||
					      op.kind != MP_OP_CONST || op.dst != reg))
					continue;
				found |= consider(f, vaddr, vaddr, kind,
						  (struct mp_bound){bound.nr, false, bound.soft});
			}
		}
	}
	/* In a function with labels, the offset may count from a label instead. */
	f->computed |= kind == MP_TABLE_REL32;
}

/*
 * The offsets may be relative to a label that is kept in a register on unknown ways. Try
 * the labels that the function names; take the one from which most entries lead into the
 * function.
 */
static bool consider_labels(struct mp_table_finder *f, uint64_t vaddr, struct mp_bound bound)
{
	struct mp_cfg_build *b = f->b;
	const struct mp_func *func = &b->cfg->funcs[f->slice.func];
	uint32_t best = 1;
	uint64_t base = 0;

	for (uint32_t r = 0; r < func->nr_ranges; r++) {
		const struct mp_part *part =
			&b->index->parts[b->part_of_range[func->first_range + r]];
		uint32_t i = mp_text_ref_first(b, part->at);

		for (; i < b->nr_text_refs && b->text_refs[i].at < part->end && b->table_looks;
		     i++) {
			struct mp_table probe = {
				.vaddr = vaddr,
				.base = mp_space_vaddr(b->index, b->text_refs[i].target),
				.kind = MP_TABLE_REL32,
				.func = f->slice.func,
			};
			bool stop;
			uint32_t run = mp_table_run(b, &probe, 0, &stop);

			/* Which one of several labels it is, is not known. */
			f->computed |= run > 1 && base && probe.base != base;
			if (run <= best)
				continue;
			best = run;
			base = probe.base;
		}
	}
	return base && consider(f, vaddr, base, MP_TABLE_REL32, bound);
}

static bool try_base(struct mp_table_finder *f, const struct mp_op *load, uint8_t base,
		     uint8_t index, enum mp_table_kind kind, const struct mp_values *add)
{
	struct mp_values values;
	struct mp_bound bound;
	bool found = false;

	if (base == MP_NO_REG)
		return false;
	mp_slice_values(&f->slice, load->at, base, &values);
	if (!values.nr)
		return false;
	bound = mp_slice_bound(&f->slice, load->at, index);
	for (unsigned int i = 0; i < values.nr; i++) {
		uint64_t vaddr = values.value[i] + (uint64_t)load->disp;
		uint64_t from = add && add->nr == 1 ? add->value[0] : vaddr;

		found |= consider(f, vaddr, from, kind, bound);
		if (!found && kind == MP_TABLE_REL32 && add && !add->nr)
			found = consider_labels(f, vaddr, bound);
	}
	return found;
}

/* Does [base + index * size + disp] read a table? */
static bool try_load(struct mp_table_finder *f, const struct mp_op *load, enum mp_table_kind kind,
		     const struct mp_values *add)
{
	uint32_t size = kind == MP_TABLE_REL32 ? 4 : 8;
	uint8_t base = load->base, index = load->index;
	struct mp_bound bound;
	bool found = false;

	if (load->rip)
		return false;
	/* The displacement holds the table's address: only in an image with fixed addresses. */
	if (!f->b->moves && load->disp > 0 && (base == MP_NO_REG || index == MP_NO_REG)) {
		uint64_t vaddr = (uint64_t)load->disp;
		uint8_t reg = index == MP_NO_REG ? base : index;

		if (mp_space_at(f->b->index, vaddr) != MP_NONE) {
			bound = mp_slice_bound(&f->slice, load->at, reg);
			return consider(f, vaddr, add && add->nr == 1 ? add->value[0] : vaddr, kind,
					bound);
		}
	}
	if (index != MP_NO_REG && load->scale == size)
		found = try_base(f, load, base, index, kind, add);
	else if (index != MP_NO_REG && load->scale == 1)
		found = try_base(f, load, base, index, kind, add) ||
			try_base(f, load, index, base, kind, add);
	if (found || index == MP_NO_REG)
		return found;
	/*
	 * The base is hoisted, spilled or shared: try the other operand of the addition,
	 * then everything that the function refers to.
	 */
	bound = mp_slice_bound(&f->slice, load->at, index);
	for (unsigned int i = 0; add && i < add->nr; i++)
		found |= consider(f, add->value[i] + (uint64_t)load->disp, add->value[i], kind,
				  bound);
	if (!found && (load->scale == size || load->scale == 1)) {
		bool before = f->found;

		f->found = false;
		consider_all(f, kind, base, bound);
		found = f->found;
		f->found |= before;
	}
	return found;
}

/* A load from [reg], with reg = base + index * 8 computed before. */
static bool try_computed(struct mp_table_finder *f, const struct mp_op *load)
{
	struct mp_defs *defs;
	bool found = false;

	if (load->base == MP_NO_REG || load->index != MP_NO_REG || load->disp)
		return false;
	defs = malloc(sizeof(*defs));
	if (!defs) {
		f->error = -ENOMEM;
		return false;
	}
	mp_slice_defs(&f->slice, load->at, load->base, defs);
	for (unsigned int i = 0; i < defs->nr; i++) {
		struct mp_op op = defs->op[i];

		if (op.dst != load->base)
			continue;
		if (op.kind == MP_OP_LEA && op.index != MP_NO_REG) {
			found |= try_load(f, &op, MP_TABLE_ABS64, NULL);
		} else if (op.kind == MP_OP_ADD) {
			op.base = op.dst;
			op.index = op.src;
			op.scale = 1;
			op.disp = 0;
			found |= try_load(f, &op, MP_TABLE_ABS64, NULL);
		} else if (op.kind == MP_OP_ADD_IMM) {
			/* index * 8 + table, in two steps */
			op.base = op.dst;
			op.index = MP_NO_REG;
			op.disp = op.value;
			found |= try_load(f, &op, MP_TABLE_ABS64, NULL);
		}
	}
	free(defs);
	return found;
}

/* Finds the 4-byte load before @at that gives @reg its value. */
static bool rel32_load(struct mp_table_finder *f, uint32_t at, uint8_t reg, struct mp_op *load,
		       unsigned int depth)
{
	struct mp_defs *defs;
	bool found = false;

	if (reg == MP_NO_REG || depth > MAX_DEPTH)
		return false;
	defs = malloc(sizeof(*defs));
	if (!defs) {
		f->error = -ENOMEM;
		return false;
	}
	mp_slice_defs(&f->slice, at, reg, defs);
	for (unsigned int i = 0; i < defs->nr && !found; i++) {
		const struct mp_op *op = &defs->op[i];

		if (op->dst != reg)
			continue;
		if (op->kind == MP_OP_LOAD && op->size == 4 && op->mem) {
			*load = *op;
			found = true;
		} else if (op->kind == MP_OP_COPY) {
			found = rel32_load(f, op->at, op->src, load, depth + 1);
		}
	}
	free(defs);
	return found;
}

/* target = @one + @other, one of them read from a table of offsets. */
static bool try_sum(struct mp_table_finder *f, uint32_t at, uint8_t one, uint8_t other)
{
	struct mp_values values;
	struct mp_op load;

	if (!rel32_load(f, at, one, &load, 0))
		return false;
	mp_slice_values(&f->slice, at, other, &values);
	return try_load(f, &load, MP_TABLE_REL32, &values);
}

static bool is_entry(const struct mp_table_finder *f, uint64_t vaddr)
{
	uint32_t at = mp_space_at(f->b->index, vaddr);

	return at != MP_NONE && mp_bit(f->b->entries, at);
}

static void trace(struct mp_table_finder *f, uint32_t at, uint8_t reg, unsigned int depth);

static void trace_def(struct mp_table_finder *f, const struct mp_op *op, uint8_t reg,
		      unsigned int depth)
{
	switch (op->dst == reg ? op->kind : MP_OP_OTHER) {
	case MP_OP_LOAD:
		if (op->size != 8 || op->width != 8)
			f->odd = f->computed = true;
		else if (!try_load(f, op, MP_TABLE_ABS64, NULL))
			try_computed(f, op);
		break;
	case MP_OP_ADD:
		/* If no table explains the sum, it may be a label plus a difference of labels. */
		if (!try_sum(f, op->at, op->dst, op->src) && !try_sum(f, op->at, op->src, op->dst))
			f->odd = f->computed = true;
		break;
	case MP_OP_LEA:
		if (op->index == MP_NO_REG || op->base == MP_NO_REG || op->scale != 1 || op->disp)
			f->odd = f->computed = true;
		else if (!try_sum(f, op->at, op->base, op->index) &&
			 !try_sum(f, op->at, op->index, op->base))
			f->odd = f->computed = true;
		break;
	case MP_OP_CMOV:
		trace(f, op->at, op->dst, depth + 1);
		trace(f, op->at, op->src, depth + 1);
		break;
	case MP_OP_COPY: trace(f, op->at, op->src, depth + 1); break;
	case MP_OP_CONST:
		/* The code chooses between functions for a tail call. */
		if (!is_entry(f, (uint64_t)op->value))
			f->odd = true;
		break;
	default:
		/* The result of a call may be a function for a tail call. */
		if (op->kind != MP_OP_OTHER || reg != 0 ||
		    (op->writes & MP_CALLER_SAVED) != MP_CALLER_SAVED)
			f->odd = f->computed = true;
		break;
	}
}

static void trace(struct mp_table_finder *f, uint32_t at, uint8_t reg, unsigned int depth)
{
	struct mp_defs *defs;

	if (depth > MAX_DEPTH || reg == MP_NO_REG) {
		f->odd = true;
		return;
	}
	defs = malloc(sizeof(*defs));
	if (!defs) {
		f->error = -ENOMEM;
		return;
	}
	mp_slice_defs(&f->slice, at, reg, defs);
	if (defs->incomplete && !defs->argument)
		f->odd = true;
	for (unsigned int i = 0; i < defs->nr; i++)
		trace_def(f, &defs->op[i], reg, depth);
	free(defs);
}

/* Sets or clears: a jump is judged again after more tables are known. */
static void set_bit(mp_bits bits, uint32_t at, bool value)
{
	if (value)
		mp_bit_set(bits, at);
	else
		mp_bit_clear(bits, at);
}

void mp_table_recognise(struct mp_table_finder *f, uint32_t jump)
{
	struct mp_op op;

	f->jump = jump;
	f->found = f->odd = f->computed = false;
	if (mp_op_decode(f->b, jump, &op))
		return;
	if (op.kind == MP_OP_JUMP_MEM && f->b->table_looks) {
		if (!try_load(f, &op, MP_TABLE_ABS64, NULL))
			try_computed(f, &op);
	} else if (f->b->table_looks) {
		trace(f, jump, op.src, 0);
	}
	/* What was found may be a part of it. */
	f->odd |= !mp_table_look(f->b, f->func, jump, 0);
	if (f->found)
		mp_bit_set(f->b->tabled, jump);
	else if (!f->odd)
		mp_bit_set(f->b->pointer_jumps, jump);
	set_bit(f->b->may_miss_table, jump, !f->found || f->odd);
	set_bit(f->b->computed, jump, f->computed);
}
