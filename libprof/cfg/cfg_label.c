// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_label - finds functions whose labels are values (GNU C's &&label), and decides
 * whether all labels are known.
 *
 * An indirect jump of such a function that no table resolves goes to one of these labels,
 * or leaves the function: GNU C defines no other target. Hand-written code keeps addresses
 * of its middle for other reasons: to compute targets, or as places of constants, faults or
 * returns. Such functions are not accepted here. Does not decide about copies. Called by
 * cfg.
 */
#include <errno.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/cfg/cfg_private.h"
#include "libprof/cfg/table_op.h"

/* Instructions that may be decoded for all operands of one function. */
#define BUDGET	  100000
#define MAX_STACK 64

struct labels {
	struct mp_cfg_build *b;
	unsigned int budget; /* instructions that may still be decoded */
	uint32_t func;
	bool jumps;  /* an indirect jump may go to a label */
	bool framed; /* such a jump has a frame: it is no tail call */
	uint32_t cap_refs;
};

static const struct mp_part *part_of(const struct labels *l, uint32_t range)
{
	return &l->b->index->parts[l->b->part_of_range[range]];
}

static bool has_frame(const struct labels *l, const struct mp_part *part, uint32_t jump)
{
	const struct mp_range *range = &l->b->cfg->ranges[part->range];

	return range->fde != MP_NONE &&
	       !mp_cfa_is_entry_row(l->b->index, &l->b->elf->fdes[range->fde],
				    mp_space_vaddr(l->b->index, jump));
}

/* True if tables of switches have all targets of @jump. */
static bool is_switch(const struct mp_cfg_build *b, uint32_t jump)
{
	uint32_t first = mp_table_first_use(b, jump), u;

	for (u = first; u < b->nr_uses && b->uses[u].jump == jump; u++) {
		const struct mp_table *table = &b->cfg->tables[b->uses[u].table];
		uint32_t base = mp_space_at(b->index, table->base);

		/* Differences from a label are labels, too. */
		if (table->labels || (table->kind == MP_TABLE_REL32 &&
				      (base == MP_NONE || mp_space_is_text(b->index, base))))
			return false;
	}
	return u > first && !mp_bit(b->may_miss_table, jump);
}

/* Return: false if arithmetic computes the target of a jump. */
static bool look_at_jumps(struct labels *l, const struct mp_part *part)
{
	for (uint32_t i = 0; i < part->nr_flows; i++) {
		const struct mp_flow *f = &l->b->flows[part->first_flow + i];

		if (f->kind != MP_INSN_IJUMP ||
		    (!mp_bit(l->b->computed, f->at) && is_switch(l->b, f->at)))
			continue;
		/*
		 * Jumps through a cell at a fixed address: the cell may hold a label, or a
		 * function's GOT entry.
		 */
		if (f->slot && !has_frame(l, part, f->at))
			continue;
		if (f->slot) {
			mp_bit_clear(l->b->tails, f->at);
			mp_bit_set(l->b->may_miss_table, f->at);
		}
		if (mp_bit(l->b->computed, f->at))
			return false;
		l->jumps = true;
		l->framed |= has_frame(l, part, f->at);
	}
	return true;
}

/* True if a call that returns ends at @at. */
static bool follows_call(const struct labels *l, const struct mp_part *part, uint32_t at)
{
	const struct mp_flow *call = mp_call_before(l->b, part, at);

	return call && !call->noreturn;
}

/*
 * A runtime may have a table of return addresses, which holds places behind calls (OCaml's has).
 * Code that such a table describes must stay, and its indirect jumps are tail calls.
 */
static bool look_at_places(const struct labels *l, const struct mp_part *part, bool first,
			   bool *any)
{
	const struct mp_cfg_build *b = l->b;
	uint32_t at = mp_bits_next(b->address_taken, part->at + first, part->end);

	for (; at < part->end; at = mp_bits_next(b->address_taken, at + 1, part->end)) {
		*any = true;
		if (!mp_bit(b->starts, at) || mp_bit(b->non_label_words, at) ||
		    (!l->framed && follows_call(l, part, at)))
			return false;
	}
	return true;
}

/*
 * Describes the operand that holds the label. Return: false unless the operand is used only
 * as an address.
 */
static bool reads_address(const struct mp_cfg_build *b, const struct mp_ref *ref,
			  struct mp_label_ref *out)
{
	const uint8_t *bytes = mp_space_bytes(b->index, ref->at, 1);
	const struct mp_span *span = mp_space_span(b->index, ref->at);
	uint64_t vaddr = mp_space_vaddr(b->index, ref->at);
	struct mp_insn insn;
	struct mp_op op;
	uint32_t imm = 0;

	if (!bytes || mp_insn_decode(bytes, span->size - (ref->at - span->at), vaddr, &insn) ||
	    mp_op_decode(b, ref->at, &op))
		return false;
	if (insn.imm_size == 4)
		memcpy(&imm, bytes + insn.imm_off, sizeof(imm));
	*out = (struct mp_label_ref){
		.insn_vaddr = vaddr,
		.target = mp_space_vaddr(b->index, ref->target),
		.field_off = insn.rip_relative ? insn.disp_off : insn.imm_off,
		.rip_relative = insn.rip_relative,
	};
	if (insn.rip_relative && insn.target == out->target)
		return op.kind == MP_OP_CONST && op.rip && insn.imm_size == 0;
	/* An immediate: the instruction moves, stores or compares it. */
	out->field_off = insn.imm_off;
	out->rip_relative = false;
	return insn.imm_size == 4 && imm == out->target;
}

/* A register that holds a label's address from @at on. */
struct holder {
	uint32_t at;
	uint8_t reg;
};

struct trail {
	struct holder stack[MAX_STACK];
	unsigned int depth;
	bool full;
	uint32_t seen[256]; /* visited pairs of instruction and register, by hash */
};

static void go_on(struct trail *t, uint32_t at, uint8_t reg)
{
	uint32_t key = at * 16 + reg + 1, *slot = &t->seen[(at * 31 + reg) % 256];

	if (at == MP_NONE || *slot == key)
		return;
	*slot = key;
	if (t->depth == MAX_STACK)
		t->full = true;
	else
		t->stack[t->depth++] = (struct holder){at, reg};
}

/*
 * Follows a register from @h.at until it is overwritten. Return: true if the code reads or
 * writes memory through it: the address is that of a constant between instructions, not of a label.
 */
static bool follow(struct labels *l, struct trail *t, struct holder h)
{
	const struct mp_cfg_build *b = l->b;
	uint32_t part = mp_part_at(b->index, h.at), at = h.at;

	while (part != MP_NONE && at < b->index->parts[part].end) {
		const struct mp_span *span = mp_space_span(b->index, at);
		const uint8_t *bytes = span->bytes + (at - span->at);
		struct mp_insn insn;
		struct mp_op op;

		if (!l->budget || mp_op_decode(b, at, &op) ||
		    mp_insn_decode(bytes, b->index->parts[part].end - at,
				   mp_space_vaddr(b->index, at), &insn)) {
			t->full = true;
			return false;
		}
		l->budget--;
		if (op.mem && op.kind != MP_OP_LEA && !op.nop &&
		    (op.base == h.reg || op.index == h.reg))
			return true;
		if (op.kind == MP_OP_COPY && op.src == h.reg && op.dst != h.reg && op.size == 8)
			go_on(t, at + op.len, op.dst);
		if (insn.kind == MP_INSN_COND || insn.kind == MP_INSN_JUMP)
			go_on(t, mp_space_at(b->index, insn.target), h.reg);
		if (!op.falls || op.writes >> h.reg & 1)
			return false;
		at += op.len;
	}
	return false;
}

static bool is_read_through(struct labels *l, uint32_t at)
{
	struct trail t = {.depth = 0};
	struct mp_op op;

	if (mp_op_decode(l->b, at, &op))
		return true;
	if (op.dst == MP_NO_REG)
		return false;
	go_on(&t, at + op.len, op.dst);
	while (t.depth && !t.full)
		if (follow(l, &t, t.stack[--t.depth]))
			return true;
	return t.full;
}

static int by_target(const void *a, const void *b)
{
	const struct mp_ref *x = a, *y = b;

	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static uint32_t first_ref(const struct mp_cfg_build *b, uint32_t target)
{
	return mp_search(i, 0, b->nr_text_refs, b->text_refs[i].target < target);
}

/*
 * Collects operands that name a place in @part. Operands of other functions count, too:
 * compilers make them where they know a table's entry. *@known: no operand's use reads
 * memory at the place.
 */
static int look_at_refs(struct labels *l, const struct mp_part *part, bool first, bool *known)
{
	struct mp_cfg_build *b = l->b;
	uint32_t i = first_ref(b, part->at + first);

	for (; *known && i < b->nr_text_refs && b->text_refs[i].target < part->end; i++) {
		const struct mp_ref *ref = &b->text_refs[i];
		uint32_t from = mp_part_at(b->index, ref->at);
		struct mp_label_ref out;

		if (!mp_bit(b->address_taken, ref->target))
			continue;
		*known = from != MP_NONE && reads_address(b, ref, &out) &&
			 !is_read_through(l, ref->at);
		if (!*known)
			break;
		if (mp_push(b->cfg->label_refs, b->cfg->nr_label_refs, l->cap_refs, out))
			return -ENOMEM;
	}
	return 0;
}

/*
 * True if control does not fall into @at from the instruction before, as for labels that
 * only jumps reach.
 */
static bool stands_alone(const struct labels *l, uint32_t at)
{
	const struct mp_cfg_build *b = l->b;
	const struct mp_part *part = &b->index->parts[mp_part_at(b->index, at)];

	for (uint32_t k = at; k-- > part->at && at - k <= 15;) {
		struct mp_op op;

		if (!mp_bit(b->starts, k))
			continue;
		if (mp_op_decode(b, k, &op) || !op.falls)
			return true;
		if (!op.nop)
			return false;
		at = k;
	}
	return false;
}

/* At most so many words of a possible table of differences are read. */
#define MAX_WORDS 8

/*
 * True if the words at @table may be differences from label @base to other labels of the
 * function. @known: every word must lead to a likely label; else only the first words, to
 * any instruction.
 */
static bool may_be_differences(const struct labels *l, uint32_t table, uint32_t base, bool known)
{
	const struct mp_cfg_build *b = l->b;
	uint32_t end = mp_bits_next(b->refs, table + 1, b->index->nr_bytes), nr = 0, zeros = 0;
	int32_t first = 0, word;
	bool differ = false;

	for (uint32_t at = table; nr < MAX_WORDS && at + 4 <= end; at += 4, nr++) {
		const uint8_t *bytes = mp_space_bytes(b->index, at, 4);
		uint32_t to, part;

		if (!bytes)
			break;
		memcpy(&word, bytes, sizeof(word));
		to = base + (uint32_t)word;
		part = mp_part_at(b->index, to);
		if (part == MP_NONE || b->index->parts[part].func != l->func ||
		    !mp_bit(b->starts, to) ||
		    (known && !mp_bit(b->index->targets, to) &&
		     !mp_bit(b->index->weak_targets, to) && !stands_alone(l, to))) {
			if (known)
				return false;
			break;
		}
		first = nr ? first : word;
		differ |= word != first;
		zeros += !word;
	}
	/* Data of other kinds has many zeros. */
	return nr >= (known ? 3 : 2) && differ && zeros * 2 <= nr;
}

/* The words at @table that lead into the function are labels, too. */
static void take_differences(const struct labels *l, uint32_t table, uint32_t base)
{
	struct mp_cfg_build *b = l->b;
	struct mp_table probe = {
		.vaddr = mp_space_vaddr(b->index, table),
		.base = mp_space_vaddr(b->index, base),
		.kind = MP_TABLE_REL32,
		.func = l->func,
	};
	bool stop;
	uint32_t run = mp_table_run(b, &probe, 0, &stop);

	for (uint32_t i = 0; i < run; i++) {
		uint32_t to = mp_table_entry(b, &probe, i);

		if (!mp_space_is_text(b->index, to) || !mp_bit(b->starts, to))
			continue;
		mp_bit_set(b->index->targets, to);
		mp_bit_set(b->address_taken, to);
	}
}

/*
 * Looks for data that may be a table of differences. A jump may add one to a label that
 * passed through memory. The test is weaker for data that the function itself refers to.
 */
static void find_differences(struct labels *l, uint32_t first_ref_index)
{
	struct mp_cfg_build *b = l->b;
	struct mp_func *func = &b->cfg->funcs[l->func];
	uint32_t last = MP_NONE;

	for (uint32_t i = first_ref_index; i < b->cfg->nr_label_refs; i++) {
		uint32_t base = mp_space_at(b->index, b->cfg->label_refs[i].target);

		if (base == last)
			continue;
		last = base;
		for (uint32_t r = func->first_range; r < func->first_range + func->nr_ranges; r++) {
			const struct mp_part *part = part_of(l, r);

			for (uint32_t k = mp_ref_first(b, part->at);
			     k < b->nr_refs && b->ref_list[k].at < part->end; k++) {
				if (!may_be_differences(l, b->ref_list[k].target, base, false))
					continue;
				func->flags |= MP_FUNC_LABEL_SUMS;
				take_differences(l, b->ref_list[k].target, base);
			}
		}
		for (uint32_t at = mp_bits_next(b->refs, 0, b->index->nr_bytes);
		     at < b->index->nr_bytes && !(func->flags & MP_FUNC_LABEL_SUMS);
		     at = mp_bits_next(b->refs, at + 1, b->index->nr_bytes))
			if (may_be_differences(l, at, base, true))
				func->flags |= MP_FUNC_LABEL_SUMS;
	}
}

/*
 * Does the function add something to a label, and no table of differences of 4 bytes explains what? *@any: it
 * adds something to one.
 */
static bool has_unknown_sum(const struct labels *l, bool *any)
{
	const struct mp_cfg_build *b = l->b;
	const struct mp_func *func = &b->cfg->funcs[l->func];

	for (uint32_t i = 0; i < b->nr_summed; i++) {
		uint32_t base = b->summed[i];
		bool known = false;

		if (b->index->parts[mp_part_at(b->index, base)].func != l->func)
			continue;
		*any = true;
		for (uint32_t r = func->first_range; r < func->first_range + func->nr_ranges; r++) {
			const struct mp_part *part = part_of(l, r);

			for (uint32_t k = mp_ref_first(b, part->at);
			     !known && k < b->nr_refs && b->ref_list[k].at < part->end; k++)
				known = may_be_differences(l, b->ref_list[k].target, base, false);
		}
		if (!known)
			return true;
	}
	return false;
}

/* True if a table holds differences from a label, which code adds to that label. */
static bool has_sum_table(const struct labels *l)
{
	const struct mp_cfg *cfg = l->b->cfg;

	for (uint32_t t = 0; t < cfg->nr_tables; t++) {
		uint32_t base = mp_space_at(l->b->index, cfg->tables[t].base);

		if (cfg->tables[t].func == l->func && cfg->tables[t].kind == MP_TABLE_REL32 &&
		    base != MP_NONE && mp_space_is_text(l->b->index, base))
			return true;
	}
	return false;
}

/*
 * The program may have kept entries of a label table, and a jump whose table may not list all its
 * targets has no edges. So mark the entries of these tables as reachable from anywhere.
 */
static void enter_by_tables(const struct labels *l)
{
	const struct mp_cfg_build *b = l->b;

	for (uint32_t u = 0; u < b->nr_uses; u++) {
		const struct mp_table *t = &b->cfg->tables[b->uses[u].table];

		if (t->func != l->func ||
		    (!t->labels && !mp_bit(b->may_miss_table, b->uses[u].jump)))
			continue;
		for (uint32_t i = 0; i < t->nr_entries; i++) {
			uint32_t to = mp_table_entry(b, t, i);

			if (to != MP_NONE && mp_space_is_text(b->index, to) &&
			    mp_bit(b->starts, to))
				mp_bit_set(b->entered, to);
		}
	}
}

static int look_at_func(struct labels *l, uint32_t index)
{
	struct mp_func *func = &l->b->cfg->funcs[index];
	uint32_t refs = l->b->cfg->nr_label_refs;
	bool known = true, any = false, sums = false;
	int ret = 0;

	l->func = index;
	l->jumps = l->framed = false;
	l->budget = BUDGET;
	for (uint32_t r = func->first_range; known && r < func->first_range + func->nr_ranges; r++)
		known = look_at_jumps(l, part_of(l, r));
	for (uint32_t r = func->first_range; known && r < func->first_range + func->nr_ranges; r++)
		known = look_at_places(l, part_of(l, r), r == func->first_range, &any);
	known = known && l->jumps && any && !has_unknown_sum(l, &sums);
	for (uint32_t r = func->first_range;
	     !ret && known && r < func->first_range + func->nr_ranges; r++)
		ret = look_at_refs(l, part_of(l, r), r == func->first_range, &known);
	if (!known) {
		l->b->cfg->nr_label_refs = refs;
		func->flags &= ~MP_FUNC_LABEL_SUMS;
		return ret;
	}
	func->flags |= MP_FUNC_LABELS;
	if (sums || has_sum_table(l))
		func->flags |= MP_FUNC_LABEL_SUMS;
	find_differences(l, refs);
	enter_by_tables(l);
	return ret;
}

static bool has_taken_middle(const struct labels *l, uint32_t index)
{
	const struct mp_func *func = &l->b->cfg->funcs[index];

	for (uint32_t r = func->first_range; r < func->first_range + func->nr_ranges; r++) {
		const struct mp_part *part = part_of(l, r);

		if (mp_bits_next(l->b->address_taken, part->at + (r == func->first_range),
				 part->end) < part->end)
			return true;
	}
	return false;
}

static int by_place(const void *a, const void *b)
{
	const struct mp_label_ref *x = a, *y = b;

	return x->insn_vaddr < y->insn_vaddr ? -1 : x->insn_vaddr > y->insn_vaddr;
}

int mp_cfg_find_labels(struct mp_cfg_build *b)
{
	struct labels l = {.b = b};
	int ret = 0;

	if (b->nr_text_refs)
		qsort(b->text_refs, b->nr_text_refs, sizeof(*b->text_refs), by_target);
	for (uint32_t f = 0; !ret && f < b->cfg->nr_funcs; f++)
		if (b->cfg->funcs[f].problem == MP_PROBLEM_NONE && has_taken_middle(&l, f))
			ret = look_at_func(&l, f);
	if (b->cfg->nr_label_refs)
		qsort(b->cfg->label_refs, b->cfg->nr_label_refs, sizeof(*b->cfg->label_refs),
		      by_place);
	return ret;
}
