// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_label_use - finds functions that may compute with labels. Their labels keep their values: distances
 * between copies are larger than those between the labels, and a program may keep them in one byte or two.
 *
 * Registers are followed from each operand with a label's address, or with that of a table of labels, and so
 * are slots of the frame, by any order of instructions. A label may be jumped to, compared, moved to another
 * register or to memory. If anything else reads it, it counts as computed with. Called by cfg.
 */
#include <errno.h>
#include <stdlib.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/cfg/cfg_private.h"
#include "libprof/insn/decoder.h"

/* Words of a table that are looked at for the one which operands name. */
#define MAX_TABLE 4096
#define MAX_SLOTS 32
/* Steps per byte of a function. */
#define BUDGET 128
/* Instructions between one that ends a frame and the return. */
#define MAX_END 12
/* Instructions from one that makes an address in the frame to the call with it. */
#define MAX_ARGUMENTS 8
/* Registers that a call may change. */
#define CALLER_SAVED 0x0fc7
#define BIT_RSP	     (1u << 4)
#define BIT_RBP	     (1u << 5)
#define BIT_RSI	     (1u << 6)
#define BIT_RDI	     (1u << 7)

/* An operand at @at, in @part, holds a label or the address of a table of them. */
struct origin {
	uint32_t part, at;
	uint32_t of; /* the part with the label, or the first of the table's elements of starts */
	bool label;
};

/* Registers with a label, and those with the address of a table or of one of its words. */
struct regs {
	uint16_t labels, tables;
};

struct uses {
	struct mp_cfg_build *b;
	mp_bits words;	/* a word of data here holds an address in code */
	mp_bits led_to; /* a word of data holds this address */
	struct start {
		uint32_t at, part; /* a table, and where one of its labels lies */
		bool used;	   /* of a table's first: a function may compute with its labels */
	} * starts;
	uint32_t nr_starts, cap_starts;
	struct origin *origins;
	uint32_t nr_origins, cap_origins;
	/* of one part; an element per byte */
	const struct mp_part *part;
	struct slot {
		uint16_t base;
		int64_t disp;
		bool label, table;
	} slots[MAX_SLOTS];
	uint32_t nr_slots;
	struct regs *before;
	uint8_t *marks;
	uint32_t *todo, nr_todo;
	uint32_t *places, nr_places; /* to which an indirect jump or an exception may lead */
	uint64_t budget;
};

enum mark {
	WAITS = 1,  /* in @todo */
	JUMPED = 2, /* a branch of the part leads here */
	HAS_LABEL = 4,
	HAS_TABLE = 8,
	GETS_FRAME = 16, /* a call with an address in the frame as first argument */
};

/* An operand: what it holds, as 0 or 1. */
struct held {
	bool label, table;
	bool lost; /* a part of a label, or code that is read */
};

static uint16_t gpr(ZydisRegister reg)
{
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (wide < ZYDIS_REGISTER_RAX || wide > ZYDIS_REGISTER_R15)
		return 0;
	return (uint16_t)(1u << (wide - ZYDIS_REGISTER_RAX));
}

static uint16_t address_regs(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY ? gpr(o->mem.base) | gpr(o->mem.index) : 0;
}

/* Is it memory in the frame? */
static bool is_slot(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY && (gpr(o->mem.base) & (BIT_RSP | BIT_RBP));
}

/* An index may lead to any slot. */
static bool overlaps(const struct slot *s, const ZydisDecodedOperand *o)
{
	if (!is_slot(o) || gpr(o->mem.base) != s->base)
		return false;
	return gpr(o->mem.index) ||
	       (o->mem.disp.value - s->disp < 8 && s->disp - o->mem.disp.value < o->size / 8);
}

/* An address in the frame that is moved to a register may be used like that of a table: slots may hold labels. */
static bool points_to_slot(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o,
			   const struct slot *s)
{
	uint16_t base = 0;

	if (z->mnemonic == ZYDIS_MNEMONIC_LEA)
		base = gpr(o[1].mem.base);
	else if (z->mnemonic == ZYDIS_MNEMONIC_MOV && o[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
		base = gpr(o[1].reg.value);
	return s->label && base == s->base &&
	       !(o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		 gpr(o[0].reg.value) & (BIT_RSP | BIT_RBP));
}

static bool points_to_labels(const struct uses *u, const ZydisDecodedInstruction *z,
			     const ZydisDecodedOperand *o)
{
	for (uint32_t i = 0; i < u->nr_slots; i++)
		if (points_to_slot(z, o, &u->slots[i]))
			return true;
	return false;
}

static struct held look(const struct uses *u, const struct regs *r, const ZydisDecodedOperand *o,
			uint8_t marks)
{
	struct held h = {0};
	uint16_t by = address_regs(o);

	if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		h.label = marks & HAS_LABEL;
		h.table = marks & HAS_TABLE;
	} else if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		h.label = r->labels & gpr(o->reg.value);
		h.table = r->tables & gpr(o->reg.value);
		h.lost = h.label && o->size != 64;
	} else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		bool exact = o->size == 64;

		h.label = by & r->tables || marks & HAS_TABLE;
		for (uint32_t i = 0; i < u->nr_slots; i++) {
			if (!overlaps(&u->slots[i], o))
				continue;
			h.label |= u->slots[i].label;
			h.table |= u->slots[i].table;
			exact &= (u->slots[i].disp - o->mem.disp.value) % 8 == 0;
		}
		h.lost = by & r->labels || marks & HAS_LABEL || (h.label && !exact);
	}
	return h;
}

static void set(struct regs *r, uint16_t reg, struct held h)
{
	r->labels = (uint16_t)(h.label ? r->labels | reg : r->labels & ~reg);
	r->tables = (uint16_t)(h.table ? r->tables | reg : r->tables & ~reg);
}

static bool decode(const struct uses *u, uint32_t at, ZydisDecodedInstruction *z,
		   ZydisDecodedOperand *o)
{
	const struct mp_span *span = mp_space_span(u->b->index, at);

	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(mp_decoder(), span->bytes + (at - span->at),
						   u->part->end - at, z, o));
}

/*
 * Slots are known by their distance from the stack pointer. It may change before a call, for
 * arguments in the stack. Does the instruction @z before @at take that back, and no return follow?
 */
static bool frees_arguments(const struct uses *u, const ZydisDecodedInstruction *z,
			    const ZydisDecodedOperand *o, uint32_t at)
{
	ZydisDecodedOperand next_o[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction next;

	if (z->mnemonic != ZYDIS_MNEMONIC_POP &&
	    (z->mnemonic != ZYDIS_MNEMONIC_ADD || o[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	     gpr(o[0].reg.value) != BIT_RSP))
		return false;
	for (int n = 0; n < MAX_END && at < u->part->end; n++) {
		if (!decode(u, at, &next, next_o))
			return true;
		switch (next.meta.category) {
		case ZYDIS_CATEGORY_RET:
		case ZYDIS_CATEGORY_UNCOND_BR: return false;
		case ZYDIS_CATEGORY_CALL:
		case ZYDIS_CATEGORY_COND_BR: return true;
		default: at += next.length; break;
		}
	}
	return at < u->part->end;
}

static void wait(struct uses *u, uint32_t at)
{
	uint8_t *marks = &u->marks[at - u->part->at];

	if (!(*marks & WAITS))
		u->todo[u->nr_todo++] = at;
	*marks |= WAITS;
}

/* A slot may hold @h from now on: whatever reads it must be looked at again. */
static bool put_slot(struct uses *u, const ZydisDecodedOperand *o, struct held h)
{
	struct slot *s = u->slots, *end = u->slots + u->nr_slots;

	while (s < end && (s->base != gpr(o->mem.base) || s->disp != o->mem.disp.value))
		s++;
	if (s == end) {
		if (u->nr_slots == MAX_SLOTS)
			return false;
		u->nr_slots++;
		*s = (struct slot){gpr(o->mem.base), o->mem.disp.value, false, false};
	} else if ((s->label || !h.label) && (s->table || !h.table)) {
		return true;
	}
	s->label |= h.label;
	s->table |= h.table;
	for (uint32_t at = u->part->at; at < u->part->end; at++) {
		ZydisDecodedOperand any[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction z;

		if (!mp_bit(u->b->starts, at))
			continue;
		if (!decode(u, at, &z, any) ||
		    (s->base == BIT_RSP && frees_arguments(u, &z, any, at + z.length)))
			return false;
		if (points_to_slot(&z, any, s))
			wait(u, at);
		for (unsigned int i = 0; i < z.operand_count; i++)
			if (overlaps(s, &any[i]))
				wait(u, at);
	}
	return true;
}

/* Moves @h to @o. Return: false if it cannot be followed there. */
static bool put(struct uses *u, struct regs *r, const ZydisDecodedOperand *o, struct held h)
{
	if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && gpr(o->reg.value)) {
		set(r, gpr(o->reg.value), h);
		return !h.lost;
	}
	return !h.lost && ((!h.label && !h.table) || !is_slot(o) || o->size != 64 ||
			   (!gpr(o->mem.index) && put_slot(u, o, h)));
}

/* Any other instruction must read no label. From a table's address it computes one of an entry. */
static bool pass_over(const struct uses *u, struct regs *r, const ZydisDecodedInstruction *z,
		      const ZydisDecodedOperand *o, uint8_t marks)
{
	bool zeroes = (z->mnemonic == ZYDIS_MNEMONIC_XOR || z->mnemonic == ZYDIS_MNEMONIC_SUB) &&
		      o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		      o[1].type == ZYDIS_OPERAND_TYPE_REGISTER && o[0].reg.value == o[1].reg.value;
	struct held result = {0};

	for (unsigned int i = 0; i < z->operand_count && !zeroes; i++) {
		struct held h = look(u, r, &o[i], marks);

		if (address_regs(&o[i]) & r->labels)
			return false;
		if (!(o[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ))
			continue;
		if (h.label || h.lost)
			return false;
		result.table |= h.table;
	}
	for (unsigned int i = 0; i < z->operand_count; i++)
		if (o[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    o[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    gpr(o[i].reg.value) != BIT_RSP)
			set(r, gpr(o[i].reg.value), result);
	return true;
}

/* Return: false if the instruction may compute with a label. */
static bool execute(struct uses *u, struct regs *r, const ZydisDecodedInstruction *z,
		    const ZydisDecodedOperand *o, uint8_t marks)
{
	struct held a = {0}, c = {0};
	uint16_t by;

	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_NOP: return true;
	case ZYDIS_MNEMONIC_MOV:
		c = look(u, r, &o[1], marks);
		c.lost |= c.label && o[0].size != 64 && o[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE;
		c.table |= points_to_labels(u, z, o);
		return put(u, r, &o[0], c);
	case ZYDIS_MNEMONIC_LEA:
		by = address_regs(&o[1]);
		c.label = marks & HAS_LABEL;
		c.table = marks & HAS_TABLE || by & r->tables || points_to_labels(u, z, o);
		c.lost = by & r->labels || (c.label && o[0].size != 64);
		return put(u, r, &o[0], c);
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
		a = look(u, r, &o[0], o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? 0 : marks);
		c = look(u, r, &o[1], marks);
		return !a.lost && !c.lost;
	default:
		if (z->meta.category != ZYDIS_CATEGORY_CMOV)
			return pass_over(u, r, z, o, marks);
		a = look(u, r, &o[0], 0);
		c = look(u, r, &o[1], marks);
		return put(u, r, &o[0],
			   (struct held){a.label || c.label, a.table || c.table, a.lost || c.lost});
	}
}

static void arrive(struct uses *u, uint32_t at, struct regs r)
{
	struct regs *before = &u->before[at - u->part->at];

	u->budget -= u->budget != 0;
	if (!(r.labels & ~before->labels) && !(r.tables & ~before->tables))
		return;
	before->labels |= r.labels;
	before->tables |= r.tables;
	wait(u, at);
}

/* Finds the places that no branch leads to, or that are known by address. */
static void find_places(struct uses *u)
{
	const struct mp_cfg_build *b = u->b;
	const mp_bits targets = b->index->targets, weak = b->index->weak_targets;

	for (uint32_t at = u->part->at + 1; at < u->part->end; at++) {
		if (!mp_bit(b->starts, at))
			continue;
		if (mp_bit(b->address_taken, at) ||
		    ((mp_bit(targets, at) || mp_bit(weak, at) || mp_bit(b->pads, at)) &&
		     !(u->marks[at - u->part->at] & JUMPED)))
			u->places[u->nr_places++] = at;
	}
}

static void arrive_anywhere(struct uses *u, struct regs r)
{
	for (uint32_t i = 0; (r.labels || r.tables) && i < u->nr_places; i++)
		arrive(u, u->places[i], r);
}

/* Return: false if the instruction at @at, or what follows, may compute with a label. */
static bool go_on(struct uses *u, uint32_t at)
{
	const struct mp_span *span = mp_space_span(u->b->index, at);
	struct regs r = u->before[at - u->part->at];
	ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	uint64_t target = 0;
	uint32_t to, next;

	if (!decode(u, at, &z, o))
		return false;
	next = at + z.length;
	if (z.operand_count && o[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		target = span->vaddr + (next - span->at) + (uint64_t)o[0].imm.value.s;
	to = mp_space_at(u->b->index, target);
	switch (z.meta.category) {
	case ZYDIS_CATEGORY_RET: return true;
	case ZYDIS_CATEGORY_CALL:
		/* memcpy() would copy the table to the frame. */
		if (u->marks[at - u->part->at] & GETS_FRAME && r.tables & BIT_RSI)
			return false;
		r.labels &= (uint16_t)~CALLER_SAVED;
		r.tables &= (uint16_t)~CALLER_SAVED;
		arrive_anywhere(u, r);
		break;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (!target) {
			arrive_anywhere(u, r);
			return true;
		}
		next = to;
		break;
	case ZYDIS_CATEGORY_COND_BR:
		if (to == MP_NONE || to < u->part->at || to >= u->part->end)
			return false;
		arrive(u, to, r);
		break;
	default:
		if (z.mnemonic == ZYDIS_MNEMONIC_UD2 || z.mnemonic == ZYDIS_MNEMONIC_HLT)
			return true;
		if (!execute(u, &r, &z, o, u->marks[at - u->part->at]))
			return false;
		break;
	}
	if (!r.labels && !r.tables)
		return true;
	if (next == MP_NONE || next < u->part->at || next >= u->part->end)
		return false;
	arrive(u, next, r);
	return true;
}

/* Marks calls shortly behind an instruction that moves an address in the frame to rdi. */
static void find_frame_calls(struct uses *u)
{
	const struct slot by_rsp = {BIT_RSP, 0, true, false}, by_rbp = {BIT_RBP, 0, true, false};
	uint32_t until = 0;

	for (uint32_t at = u->part->at, nr = 0; at < u->part->end; at++) {
		ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction z;

		if (!mp_bit(u->b->starts, at))
			continue;
		nr++;
		if (!decode(u, at, &z, o)) {
			until = 0;
			continue;
		}
		if (z.meta.category == ZYDIS_CATEGORY_CALL) {
			u->marks[at - u->part->at] |= nr <= until ? GETS_FRAME : 0;
			until = 0;
		}
		for (unsigned int i = 0; i < z.operand_count; i++)
			if (o[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    o[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
			    gpr(o[i].reg.value) == BIT_RDI)
				until = points_to_slot(&z, o, &by_rsp) ||
							points_to_slot(&z, o, &by_rbp)
						? nr + MAX_ARGUMENTS
						: 0;
	}
}

/* The labels in the part keep their values. */
static void note_use(struct uses *u, uint32_t part)
{
	u->b->cfg->funcs[u->b->index->parts[part].func].flags |= MP_FUNC_LABEL_USES;
}

/* Follows @nr origins in one part. */
static int follow(struct uses *u, const struct origin *origins, uint32_t nr)
{
	const struct mp_part *part = &u->b->index->parts[origins->part];
	uint32_t size = part->end - part->at;
	struct mp_func *funcs = u->b->cfg->funcs;
	bool follows = true;

	u->part = part;
	u->nr_todo = u->nr_slots = 0;
	u->before = calloc(size, sizeof(*u->before));
	u->marks = calloc(size, 1);
	u->todo = calloc(size, sizeof(*u->todo));
	u->places = calloc(size, sizeof(*u->places));
	u->nr_places = 0;
	u->budget = (uint64_t)size * BUDGET;
	if (u->before && u->marks && u->todo && u->places) {
		for (uint32_t i = 0; i < part->nr_flows; i++) {
			uint32_t to = u->b->flows[part->first_flow + i].target;

			if (to != MP_NONE && to >= part->at && to < part->end)
				u->marks[to - part->at] |= JUMPED;
		}
		find_places(u);
		find_frame_calls(u);
		for (uint32_t i = 0; i < nr; i++) {
			wait(u, origins[i].at);
			u->marks[origins[i].at - part->at] |= origins[i].label ? HAS_LABEL
									       : HAS_TABLE;
		}
		while (follows && u->nr_todo) {
			uint32_t at = u->todo[--u->nr_todo];

			u->marks[at - part->at] &= (uint8_t)~WAITS;
			follows = go_on(u, at) && u->budget;
		}
	} else {
		size = 0;
	}
	free(u->before);
	free(u->marks);
	free(u->todo);
	free(u->places);
	for (uint32_t i = 0; !follows && i < nr; i++) {
		funcs[part->func].flags |= MP_FUNC_LABEL_USES;
		if (origins[i].label)
			note_use(u, origins[i].of);
		else
			u->starts[origins[i].of].used = true;
	}
	return size ? 0 : -ENOMEM;
}

/* The operand at @at has a label or the address of a table. @of: as in struct origin. */
static int add_origin(struct uses *u, uint32_t of, uint32_t at, bool label)
{
	uint32_t part = mp_part_at(u->b->index, at);

	if (part == MP_NONE) {
		if (label)
			note_use(u, of);
		else
			u->starts[of].used = true;
		return 0;
	}
	if (mp_grow(u->origins, u->cap_origins, u->nr_origins + 1))
		return -ENOMEM;
	u->origins[u->nr_origins++] = (struct origin){part, at, of, label};
	return 0;
}

/* The part that @at lies in, behind its start; MP_NONE: none. */
static uint32_t middle_of(const struct mp_cfg_build *b, uint32_t at)
{
	uint32_t part = at == MP_NONE ? MP_NONE : mp_part_at(b->index, at);

	return part == MP_NONE || b->index->parts[part].at == at ? MP_NONE : part;
}

/* Calls @fn for each word of data that a relocation fills with an address. */
static int each_word(struct uses *u, int (*fn)(struct uses *u, uint32_t where, uint32_t at))
{
	const struct mp_elf *elf = u->b->elf;
	uint32_t total = elf->nr_relocs + elf->nr_dyn_relocs;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < total; i++) {
		const struct mp_reloc *rel =
			i < elf->nr_relocs ? &elf->relocs[i] : &elf->dyn_relocs[i - elf->nr_relocs];
		uint32_t where = mp_space_at(u->b->index, rel->vaddr);
		uint32_t at = mp_space_at(u->b->index, rel->sym_value + (uint64_t)rel->addend);

		switch (rel->type) {
		case R_X86_64_64:
		case R_X86_64_32:
		case R_X86_64_32S:
		case R_X86_64_RELATIVE:
		case R_X86_64_IRELATIVE:
		case R_X86_64_GLOB_DAT:
		case R_X86_64_JUMP_SLOT:
			if (where != MP_NONE && at != MP_NONE &&
			    !mp_space_is_text(u->b->index, where))
				ret = fn(u, where, at);
			break;
		default: break;
		}
	}
	return ret;
}

static int note_word(struct uses *u, uint32_t where, uint32_t at)
{
	mp_bit_set(u->led_to, at);
	if (mp_space_is_text(u->b->index, at))
		mp_bit_set(u->words, where);
	return 0;
}

/* Finds the table that the label at @where belongs to. */
static int note_start(struct uses *u, uint32_t where, uint32_t at)
{
	uint32_t part = middle_of(u->b, at), n = 0;

	if (part == MP_NONE)
		return 0;
	while (!mp_bit(u->b->refs, where)) {
		if (++n == MAX_TABLE || where < 8 || mp_bit(u->led_to, where) ||
		    !mp_bit(u->words, where - 8)) {
			note_use(u, part);
			return 0;
		}
		where -= 8;
	}
	if (mp_grow(u->starts, u->cap_starts, u->nr_starts + 1))
		return -ENOMEM;
	u->starts[u->nr_starts++] = (struct start){where, part, false};
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct start *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->part < y->part ? -1 : x->part > y->part;
}

static int by_part(const void *a, const void *b)
{
	const struct origin *x = a, *y = b;

	return x->part < y->part ? -1 : x->part > y->part;
}

/* The first of starts that is not before @start. */
static uint32_t find_start(const struct uses *u, struct start start)
{
	return mp_search(i, 0, u->nr_starts, by_start(&u->starts[i], &start) < 0);
}

/* Operands that name a table; those of its functions may name the word before: indexes may begin with 1. */
static int note_tables(struct uses *u, const struct mp_ref *ref)
{
	struct start own = {ref->target + 8, mp_part_at(u->b->index, ref->at), false};
	uint32_t first = find_start(u, (struct start){ref->target, 0, false});
	uint32_t before = find_start(u, own);
	int ret = 0;

	if (first < u->nr_starts && u->starts[first].at == ref->target)
		ret = add_origin(u, first, ref->at, false);
	if (!ret && before < u->nr_starts && !by_start(&u->starts[before], &own))
		ret = add_origin(u, find_start(u, (struct start){own.at, 0, false}), ref->at,
				 false);
	return ret;
}

static int find_origins(struct uses *u)
{
	struct mp_cfg_build *b = u->b;
	int ret = each_word(u, note_word);

	if (!ret)
		ret = each_word(u, note_start);
	if (!ret && u->nr_starts)
		qsort(u->starts, u->nr_starts, sizeof(*u->starts), by_start);
	for (uint32_t i = 0; !ret && u->nr_starts && i < b->nr_refs; i++)
		ret = note_tables(u, &b->ref_list[i]);
	for (uint32_t i = 0; !ret && i < b->nr_code_refs; i++) {
		uint32_t part = middle_of(b, b->code_refs[i].target);

		if (part != MP_NONE)
			ret = add_origin(u, part, b->code_refs[i].at, true);
	}
	if (!ret && u->nr_origins)
		qsort(u->origins, u->nr_origins, sizeof(*u->origins), by_part);
	return ret;
}

/* A table's labels share what is done with one of them. */
static void note_starts(struct uses *u)
{
	bool used = false;

	for (uint32_t i = 0; i < u->nr_starts; i++) {
		if (!i || u->starts[i].at != u->starts[i - 1].at)
			used = u->starts[i].used;
		if (used)
			note_use(u, u->starts[i].part);
	}
}

int mp_cfg_find_label_uses(struct mp_cfg_build *b)
{
	struct uses u = {.b = b};
	uint32_t next;
	int ret = 0;

	/* No word is known to hold a label. */
	if (!b->moves && !b->elf->relinkable)
		return 0;
	u.words = mp_space_bitmap(b->index);
	u.led_to = mp_space_bitmap(b->index);
	ret = u.words && u.led_to ? find_origins(&u) : -ENOMEM;
	for (uint32_t i = 0; !ret && i < u.nr_origins; i = next) {
		for (next = i; next < u.nr_origins && u.origins[next].part == u.origins[i].part;
		     next++)
			;
		ret = follow(&u, &u.origins[i], next - i);
	}
	note_starts(&u);
	free(u.words);
	free(u.led_to);
	free(u.starts);
	free(u.origins);
	return ret;
}
