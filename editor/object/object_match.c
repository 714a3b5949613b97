// SPDX-License-Identifier: Apache-2.0
/*
 * object_match - finds each function of the object in the profiled program, and takes the order
 * of its blocks from there. A function is the same if its name is, and its code apart from what the
 * linker fills in. A wrong match would cost speed, never correctness.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/object_private.h"
#include "libprof/base/search.h"

/* Bytes that the linker may change around a relocated field: also opcodes, where it may replace
 * an access through the GOT or to thread-local data by a shorter way. */
static void changed_bytes(uint32_t type, uint32_t *before, uint32_t *after)
{
	*before = 0;
	*after = 4;
	switch (type) {
	case R_X86_64_64: *after = 8; break;
	case R_X86_64_GOTPCREL:
	case R_X86_64_GOTPCRELX:
	case R_X86_64_REX_GOTPCRELX:
	case R_X86_64_GOTTPOFF:
	case R_X86_64_GOTPC32_TLSDESC: *before = 3; break;
	case R_X86_64_TLSGD: *before = 4, *after = 12; break;
	case R_X86_64_TLSLD: *before = 3, *after = 10; break;
	case R_X86_64_TLSDESC_CALL: *after = 2; break;
	}
}

/* The code with all bytes that the linker may change set to 0. */
static void mask(const struct me_object *o, const struct me_ofunc *func, uint8_t *code)
{
	const struct mp_relobj_section *s = &o->in->sections[o->codes[func->code].section];

	for (uint32_t r = mp_relobj_reloc_at(s, func->start);
	     r < s->nr_relocs && s->relocs[r].r_offset < func->end; r++) {
		uint32_t at = (uint32_t)s->relocs[r].r_offset - func->start, before, after;
		uint32_t size = func->end - func->start;

		changed_bytes(ELF64_R_TYPE(s->relocs[r].r_info), &before, &after);
		before = at < before ? at : before;
		after = size - at < after ? size - at : after;
		memset(code + at - before, 0, before + after);
	}
}

static bool same_code(const struct me_object *o, const struct me_ofunc *func,
		      const struct mp_cfg *cfg, const struct mp_func *other, uint8_t *a, uint8_t *b)
{
	const struct mp_relobj_section *s = &o->in->sections[o->codes[func->code].section];
	uint32_t size = func->end - func->start;
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, other->vaddr, size);

	if (!bytes || cfg->ranges[other->first_range].size < size)
		return false;
	memcpy(a, s->data + func->start, size);
	memcpy(b, bytes, size);
	mask(o, func, a);
	mask(o, func, b);
	return !memcmp(a, b, size);
}

static double heat_of(const struct me_object_plan *plan, uint32_t f)
{
	const struct mp_func *func = &plan->cfg->funcs[f];
	double heat = 0;

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		if (plan->counts && plan->counts->block)
			heat += plan->counts->block[b];
	return heat;
}

/* Return: the program's function, or ME_NONE. Of several that are the same: the hottest. */
static int find_match(const struct me_object *o, const struct me_object_plan *plan,
		      const struct me_ofunc *func, const char *name, uint32_t *found)
{
	size_t size = func->end - func->start;
	uint8_t *a = malloc(2 * size);
	double hottest = -1;
	uint32_t i, end;

	*found = ME_NONE;
	if (!a)
		return -ENOMEM;
	end = me_object_plan_named(plan, name, &i);
	for (; i < end; i++) {
		uint32_t f = plan->by_name[i];

		if (!same_code(o, func, plan->cfg, &plan->cfg->funcs[f], a, a + size) ||
		    heat_of(plan, f) <= hottest)
			continue;
		hottest = heat_of(plan, f);
		*found = f;
	}
	free(a);
	return 0;
}

/* ---- the order of blocks ----------------------------------------------------------------- */

/* The object's own blocks of one function. */
struct blocks {
	uint32_t *first; /* instruction; one more at the end */
	uint8_t *placed;
	uint32_t nr;
};

static bool ends_block(const struct me_oinsn *insn)
{
	switch (insn->kind) {
	case MP_INSN_COND:
	case MP_INSN_JUMP:
	case MP_INSN_IJUMP:
	case MP_INSN_RET:
	case MP_INSN_TRAP:
	case MP_INSN_LOOP: return true;
	default: return false;
	}
}

static int cut_blocks(const struct me_object *o, const struct me_ofunc *func, struct blocks *blocks)
{
	uint32_t end = func->first_insn + func->nr_insns;

	*blocks = (struct blocks){
		.first = calloc((size_t)func->nr_insns + 1, sizeof(*blocks->first)),
		.placed = calloc((size_t)func->nr_insns + 1, 1),
	};
	if (!blocks->first || !blocks->placed)
		return -ENOMEM;
	for (uint32_t i = func->first_insn; i < end; i++)
		if (i == func->first_insn || (o->insns[i].flags & ME_OINSN_TARGET) ||
		    ends_block(&o->insns[i - 1]))
			blocks->first[blocks->nr++] = i;
	blocks->first[blocks->nr] = end;
	return 0;
}

static int add_block(struct me_object *o, struct blocks *blocks, uint32_t b,
		     const struct me_plan_block *planned, struct mp_err *err)
{
	struct me_piece piece = {.first = blocks->first[b],
				 .nr = blocks->first[b + 1] - blocks->first[b]};

	if (planned) {
		piece.align_log2 = planned->align_log2;
		piece.align_offset = planned->align_offset;
		piece.clone = planned->clone;
	}
	blocks->placed[b] |= !piece.clone;
	return me_object_add_piece(o, &piece, err);
}

/* Adds what a block of the plan covers of the object's own blocks. */
static int add_planned(struct me_object *o, const struct me_ofunc *func, struct blocks *blocks,
		       const struct me_plan_block *planned, uint64_t start, uint64_t end,
		       struct mp_err *err)
{
	uint32_t b;
	bool first = true;
	int rc = 0;
	uint32_t low = mp_search(i, 0, blocks->nr, o->insns[blocks->first[i]].off < start);

	for (b = low; !rc && b < blocks->nr && o->insns[blocks->first[b]].off < end; b++) {
		bool exact = o->insns[blocks->first[b]].off == start &&
			     me_oinsn_end(&o->insns[blocks->first[b + 1] - 1]) == end;

		if (planned->clone ? !exact || func->whole : blocks->placed[b])
			continue;
		/* Landing pads are cold: the base of their addresses is the cold fragment. */
		if ((o->insns[blocks->first[b]].flags & ME_OINSN_PAD) &&
		    (planned->clone || planned->zone == ME_ZONE_HOT))
			continue;
		rc = add_block(o, blocks, b, first ? planned : NULL, err);
		first = false;
	}
	return rc;
}

static int add_zone(struct me_object *o, const struct me_ofunc *func, struct blocks *blocks,
		    const struct me_object_plan *plan, uint32_t f, enum me_zone zone,
		    struct mp_err *err)
{
	const struct mp_cfg *cfg = plan->cfg;
	uint64_t entry = cfg->funcs[f].vaddr, size = func->end - func->start;
	int rc = 0;

	for (uint32_t i = plan->first[f]; !rc && i < plan->first[f + 1]; i++) {
		const struct me_plan_block *planned = &plan->plan->blocks[plan->order[i]];
		const struct mp_block *block = &cfg->blocks[planned->block];

		if (planned->zone != zone || block->vaddr < entry || block->vaddr - entry >= size)
			continue;
		rc = add_planned(o, func, blocks, planned, block->vaddr - entry + func->start,
				 block->vaddr - entry + func->start + block->size, err);
	}
	return rc;
}

/* Padding behind a jump, to which nothing leads. */
static bool is_padding(const struct me_object *o, const struct blocks *blocks, uint32_t b)
{
	for (uint32_t i = blocks->first[b]; i < blocks->first[b + 1]; i++)
		if (!(o->insns[i].flags & ME_OINSN_NOP) || (o->insns[i].flags & ME_OINSN_TARGET))
			return false;
	return b > 0 && o->insns[blocks->first[b] - 1].kind != MP_INSN_COND &&
	       o->insns[blocks->first[b] - 1].kind != MP_INSN_LOOP;
}

/* Hot blocks in the plan's order, then a fragment of its own with all others. */
static int split(struct me_object *o, uint32_t f, const struct me_object_plan *plan,
		 uint32_t program_func, struct blocks *blocks, struct mp_err *err)
{
	struct me_ofunc *func = &o->funcs[f];
	uint32_t first = o->nr_pieces;
	int rc = add_block(o, blocks, 0, NULL, err); /* the entry */

	if (!rc)
		rc = add_zone(o, func, blocks, plan, program_func, ME_ZONE_HOT, err);
	if (!rc)
		rc = me_object_add_fragment(o, f, false, first, err);
	first = o->nr_pieces;
	if (!rc)
		rc = add_zone(o, func, blocks, plan, program_func, ME_ZONE_WARM, err);
	for (uint32_t b = 0; !rc && b < blocks->nr; b++)
		if (!blocks->placed[b] && !is_padding(o, blocks, b))
			rc = add_block(o, blocks, b, NULL, err);
	if (!rc && o->nr_pieces > first)
		rc = me_object_add_fragment(o, f, true, first, err);
	return rc;
}

static bool has_hot(const struct me_object_plan *plan, uint32_t f)
{
	for (uint32_t i = plan->first[f]; i < plan->first[f + 1]; i++)
		if (plan->plan->blocks[plan->order[i]].zone == ME_ZONE_HOT)
			return true;
	return false;
}

static int use_match(struct me_object *o, uint32_t f, const struct me_object_plan *plan,
		     uint32_t program_func, struct mp_err *err)
{
	struct me_ofunc *func = &o->funcs[f];
	struct blocks blocks = {0};
	int rc = 0;

	func->matched = true;
	func->program_func = program_func;
	func->heat = (uint64_t)heat_of(plan, program_func);
	o->report->nr_matched++;
	if (!has_hot(plan, program_func))
		return 0;
	func->hot = true;
	func->first_fragment = o->nr_fragments;
	if (func->whole) {
		const struct me_piece piece = {.first = func->first_insn, .nr = func->nr_insns};

		rc = me_object_add_piece(o, &piece, err);
		if (!rc)
			rc = me_object_add_fragment(o, f, false, o->nr_pieces - 1, err);
	} else {
		rc = cut_blocks(o, func, &blocks);
		rc = rc ? mp_err_code(err, -rc) : split(o, f, plan, program_func, &blocks, err);
		free(blocks.first);
		free(blocks.placed);
	}
	func->nr_fragments = o->nr_fragments - func->first_fragment;
	return rc;
}

int me_object_match(struct me_object *o, const struct me_object_plan *plan, struct mp_err *err)
{
	for (uint32_t i = 1; i < o->in->nr_symbols; i++) {
		const Elf64_Sym *symbol = &o->in->symbols[i];
		uint32_t insn, f, found;
		int rc;

		if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !mp_relobj_in_code(o->in, i))
			continue;
		insn = me_object_insn_at(o, o->code_of[symbol->st_shndx], symbol->st_value);
		f = insn == ME_NONE ? ME_NONE : o->insns[insn].func;
		if (f == ME_NONE || o->funcs[f].matched || o->funcs[f].start != symbol->st_value)
			continue;
		if (find_match(o, plan, &o->funcs[f], mp_relobj_symbol_name(o->in, i), &found))
			return mp_err_set(err, ENOMEM, "out of memory");
		if (found == ME_NONE)
			continue;
		if (o->codes[o->funcs[f].code].closed) {
			o->funcs[f].matched = true;
			o->funcs[f].program_func = found;
			o->report->nr_matched++;
			if (has_hot(plan, found) &&
			    me_object_leave(o->report, mp_relobj_symbol_name(o->in, i),
					    o->codes[o->funcs[f].code].closed, false))
				return mp_err_set(err, ENOMEM, "out of memory");
			continue;
		}
		rc = use_match(o, f, plan, found, err);
		if (!rc && o->funcs[f].hot && o->funcs[f].whole &&
		    me_object_leave(o->report, mp_relobj_symbol_name(o->in, i), o->funcs[f].whole,
				    true))
			rc = mp_err_set(err, ENOMEM, "out of memory");
		if (rc)
			return rc;
	}
	return 0;
}
