// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_return - finds calls that return to another place than the next instruction.
 *
 * A callee may pop or change its return address: it reads constants behind the call, skips
 * an instruction, or returns in another mode. Arithmetic computes the place behind such a
 * call, so the caller is left alone. A callee is read up to its first call, on all ways. Compilers make no such functions, except for split
 * stacks, whose allocator returns one byte further, and for C that writes above its frame's
 * address. Called by cfg before blocks are made.
 */
#include <errno.h>

#include "libprof/cfg/cfg_private.h"
#include "libprof/insn/decoder.h"

/* Instructions to read of a callee, on all ways together, and ways that are still to be followed. */
#define MAX_LOOK 64
#define MAX_WAYS 16
/* Before so many instructions from its start, a copy of the stack pointer counts: assembly saves it by one later on. */
#define MAX_COPY 12
/* Bytes to read from the middle of a function. */
#define MAX_INSIDE 256

/* The place of the return address: so far above the stack pointer, or above the frame's. */
struct word {
	ZydisRegister base;
	int64_t disp;
};

/* Does the instruction write to the word, or take its address? */
static bool writes(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o, struct word word)
{
	for (unsigned int i = 0; i < z->operand_count; i++)
		if (o[i].type == ZYDIS_OPERAND_TYPE_MEMORY && o[i].mem.base == word.base &&
		    o[i].visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
		    o[i].mem.index == ZYDIS_REGISTER_NONE && o[i].mem.disp.value == word.disp &&
		    ((o[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) ||
		     z->mnemonic == ZYDIS_MNEMONIC_LEA))
			return true;
	return false;
}

static bool writes_register(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o,
			    ZydisRegister reg)
{
	for (unsigned int i = 0; i < z->operand_count; i++)
		if (o[i].type == ZYDIS_OPERAND_TYPE_REGISTER && o[i].reg.value == reg &&
		    (o[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			return true;
	return false;
}

static bool decode(const struct mp_cfg_build *b, uint32_t at, ZydisDecodedInstruction *z,
		   ZydisDecodedOperand *o)
{
	const struct mp_span *span = mp_space_span(b->index, at);
	uint64_t left = span ? span->size - (at - span->at) : 0;
	uint32_t room = left < ZYDIS_MAX_INSTRUCTION_LENGTH ? (uint32_t)left
							    : ZYDIS_MAX_INSTRUCTION_LENGTH;
	const uint8_t *bytes = room ? mp_space_bytes(b->index, at, room) : NULL;

	return bytes && ZYAN_SUCCESS(ZydisDecoderDecodeFull(mp_decoder(), bytes, room, z, o));
}

/* Does the instruction copy the register, to another one but the stack pointer or to memory? */
static bool copies(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o,
		   ZydisRegister reg)
{
	return z->mnemonic == ZYDIS_MNEMONIC_MOV && o[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       o[1].reg.value == reg &&
	       !(o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && o[0].reg.value == ZYDIS_REGISTER_RSP);
}

/* May a mov of %rbp have the byte @p[0] for its opcode, behind its prefix, and @p[1] for its ModRM? */
static bool may_copy_frame(const uint8_t *p)
{
	return (p[-1] & 0xf8) == 0x48 &&
	       ((p[0] == 0x89 && (p[1] & 0x38) == 0x28) || (p[0] == 0x8b && (p[1] & 0xc7) == 0xc5));
}

/*
 * Somewhere behind @at, the function writes to 8(%rbp), above the frame pointer that it saved, or copies the frame
 * pointer: it may write there by the copy. @inside: it begins in the middle of another one.
 */
static bool writes_above_frame(const struct mp_cfg_build *b, uint32_t at, bool inside)
{
	uint32_t part = mp_part_at(b->index, at), size;
	ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	const uint8_t *bytes;

	if (part == MP_NONE)
		return false;
	size = b->index->parts[part].end - at;
	/* Many calls and jumps may lead into one function. */
	if (inside && size > MAX_INSIDE)
		size = MAX_INSIDE;
	bytes = mp_space_bytes(b->index, at, size);
	/* ModRM and displacement of the word, or a copy's opcode and ModRM; few functions have such bytes. */
	for (uint32_t i = 1; bytes && i + 1 < size; i++) {
		if (((bytes[i] & 0xc7) != 0x45 || bytes[i + 1] != 8) && !may_copy_frame(bytes + i))
			continue;
		for (uint32_t k = 1; k <= i && k < ZYDIS_MAX_INSTRUCTION_LENGTH; k++)
			if (mp_bit(b->starts, at + i - k)) {
				if (decode(b, at + i - k, &z, o) &&
				    (writes(&z, o, (struct word){ZYDIS_REGISTER_RBP, 8}) ||
				     copies(&z, o, ZYDIS_REGISTER_RBP)))
					return true;
				break;
			}
	}
	return false;
}

/* What is known of the registers before an instruction of the callee. */
struct way {
	uint32_t at;
	int64_t below[16]; /* how far the register's value lies below the place of the return address */
	uint16_t frame;	  /* registers for which this is known */
	uint16_t returns; /* registers that hold the return address, or what is computed from it */
};

struct callee {
	const struct mp_cfg_build *b;
	struct way ways[MAX_WAYS];
	uint32_t nr_ways;
	uint32_t seen[MAX_LOOK], nr_seen;
	bool inside;   /* it begins in the middle of a function */
	bool branched; /* control came here by a branch */
	bool changes;
};

#define RSP	 ((unsigned int)MP_INSN_SP)
#define BIT(reg) ((uint16_t)(1u << (reg)))

/* Number of the general register of 64 bits that @reg is a part of; 16: none. */
static unsigned int number_of(ZydisRegister reg)
{
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return wide >= ZYDIS_REGISTER_RAX && wide <= ZYDIS_REGISTER_R15
		       ? (unsigned int)(wide - ZYDIS_REGISTER_RAX)
		       : 16;
}

static bool has(uint16_t set, unsigned int reg)
{
	return reg < 16 && set >> reg & 1;
}

static void add_way(struct callee *c, const struct way *way, uint32_t at)
{
	if (at == MP_NONE || !mp_space_is_text(c->b->index, at) || c->nr_ways == MAX_WAYS)
		return;
	c->ways[c->nr_ways] = *way;
	c->ways[c->nr_ways++].at = at;
}

/* Is @o memory that overlaps the return address? *@from: where it begins, counted from there. */
static bool is_return_slot(const struct way *way, const ZydisDecodedOperand *o, int64_t *from)
{
	unsigned int base;

	if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.index != ZYDIS_REGISTER_NONE ||
	    o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
		return false;
	base = number_of(o->mem.base);
	if (!has(way->frame, base))
		return false;
	*from = o->mem.disp.value - way->below[base];
	return *from < 8 && *from + (o->size ? o->size / 8 : 1) > 0;
}

/* Does the instruction write to the return address, or read what stands behind the call? */
static bool touches_return(const struct way *way, const ZydisDecodedInstruction *z,
			   const ZydisDecodedOperand *o)
{
	int64_t from;

	for (unsigned int i = 0; i < z->operand_count; i++) {
		if (o[i].type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (is_return_slot(way, &o[i], &from) &&
		    (o[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			return true;
		if (o[i].mem.type == ZYDIS_MEMOP_TYPE_MEM && z->mnemonic != ZYDIS_MNEMONIC_NOP &&
		    (has(way->returns, number_of(o[i].mem.base)) ||
		     has(way->returns, number_of(o[i].mem.index))))
			return true;
	}
	return false;
}

/*
 * The instruction writes to register @to. Sets *@returns, and *@below as in struct way. Return: false: it is not known how
 * far the new value lies below the place of the return address.
 */
static bool moves_to(const struct way *way, const ZydisDecodedInstruction *z,
		     const ZydisDecodedOperand *o, unsigned int to, int64_t *below, bool *returns)
{
	const ZydisDecodedOperand *from = &o[1];
	bool number = z->operand_count > 1 && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	unsigned int reg;
	int64_t at;

	*returns = false;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		*returns = is_return_slot(way, from, &at) && !at;
		reg = from->type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(from->reg.value) : 16;
		break;
	case ZYDIS_MNEMONIC_LEA:
		*returns = has(way->returns, number_of(from->mem.base)) ||
			   has(way->returns, number_of(from->mem.index));
		reg = from->mem.index == ZYDIS_REGISTER_NONE ? number_of(from->mem.base) : 16;
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		*returns = !number && from->type == ZYDIS_OPERAND_TYPE_REGISTER &&
			   has(way->returns, number_of(from->reg.value));
		*returns |= has(way->returns, to);
		reg = number ? to : 16;
		break;
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC: *returns = has(way->returns, to); return false;
	default: return false;
	}
	*returns |= z->mnemonic == ZYDIS_MNEMONIC_MOV && has(way->returns, reg);
	if (!has(way->frame, reg) || o[0].size != 64)
		return false;
	*below = way->below[reg];
	if (z->mnemonic == ZYDIS_MNEMONIC_LEA)
		*below -= from->mem.disp.value;
	if (number)
		*below += z->mnemonic == ZYDIS_MNEMONIC_SUB ? from->imm.value.s
							    : -from->imm.value.s;
	return true;
}

/* Changes @way to what is known of the registers after the instruction. */
static void step(struct way *way, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o)
{
	const struct way before = *way;

	for (unsigned int i = 0; i < z->operand_count; i++) {
		unsigned int to = o[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
						  (o[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
					  ? number_of(o[i].reg.value)
					  : 16;
		bool returns = false, known = false;

		if (to == 16)
			continue;
		if (!i)
			known = moves_to(&before, z, o, to, &way->below[to], &returns);
		way->frame = (uint16_t)((way->frame & ~BIT(to)) | (known ? BIT(to) : 0));
		way->returns = (uint16_t)((way->returns & ~BIT(to)) | (returns ? BIT(to) : 0));
	}
	if ((z->mnemonic != ZYDIS_MNEMONIC_PUSH && z->mnemonic != ZYDIS_MNEMONIC_POP) ||
	    o[0].size != 64 ||
	    (z->mnemonic == ZYDIS_MNEMONIC_POP && o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	     number_of(o[0].reg.value) == RSP))
		return;
	way->frame |= BIT(RSP);
	way->below[RSP] = before.below[RSP] + (z->mnemonic == ZYDIS_MNEMONIC_PUSH ? 8 : -8);
}

/*
 * Takes the places to which a branch leads. Return: does control go to the next instruction, too? Behind calls nothing is
 * followed: it is not known whether they return.
 */
static bool leads_on(struct callee *c, const struct way *way, const struct mp_insn *insn)
{
	uint32_t to = insn->disp_size && !insn->rip_relative
			      ? mp_space_at(c->b->index, insn->target)
			      : MP_NONE;

	switch (insn->kind) {
	case MP_INSN_OTHER:
	case MP_INSN_SYSCALL: return true;
	case MP_INSN_COND:
	case MP_INSN_LOOP: add_way(c, way, to); return true;
	case MP_INSN_JUMP: add_way(c, way, to); return false;
	default: return false;
	}
}

static bool was_seen(struct callee *c, uint32_t at)
{
	for (uint32_t i = 0; i < c->nr_seen; i++)
		if (c->seen[i] == at)
			return true;
	return false;
}

/* Does the instruction copy the stack pointer, or compute an address, that is the place of the return address? */
static bool takes_place(const struct way *way, const ZydisDecodedInstruction *z,
			const ZydisDecodedOperand *o)
{
	int64_t from;

	return (!way->below[RSP] && copies(z, o, ZYDIS_REGISTER_RSP)) ||
	       (z->mnemonic == ZYDIS_MNEMONIC_LEA && is_return_slot(way, &o[1], &from) && !from);
}

/* The instruction at @way->at, which names a register that matters. */
static bool changes_here(struct callee *c, struct way *way, const struct mp_insn *insn)
{
	ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	bool framed;

	if (!decode(c->b, way->at, &z, o))
		return false;
	if (touches_return(way, &z, o) || (!way->below[RSP] && z.mnemonic == ZYDIS_MNEMONIC_POP) ||
	    (!c->branched && c->nr_seen <= MAX_COPY && takes_place(way, &z, o)))
		return true;
	/* A jump to the return address, or to a place behind. */
	if (insn->kind == MP_INSN_IJUMP && o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    has(way->returns, number_of(o[0].reg.value)))
		return true;
	framed = z.mnemonic == ZYDIS_MNEMONIC_MOV && way->below[RSP] == 8 &&
		 writes_register(&z, o, ZYDIS_REGISTER_RBP) &&
		 o[1].type == ZYDIS_OPERAND_TYPE_REGISTER && o[1].reg.value == ZYDIS_REGISTER_RSP;
	if (insn->kind == MP_INSN_OTHER)
		step(way, &z, o);
	return framed && writes_above_frame(c->b, way->at + z.length, c->inside || c->branched);
}

static void follow(struct callee *c, struct way way)
{
	while (!c->changes && c->nr_seen < MAX_LOOK && has(way.frame, RSP) &&
	       !was_seen(c, way.at)) {
		const struct mp_span *span = mp_space_span(c->b->index, way.at);
		const uint8_t *bytes = span ? span->bytes + (way.at - span->at) : NULL;
		struct mp_insn_operands names;
		struct mp_insn insn;

		if (!bytes || mp_insn_decode(bytes, span->size - (way.at - span->at),
					     mp_space_vaddr(c->b->index, way.at), &insn))
			return;
		c->seen[c->nr_seen++] = way.at;
		if (!mp_insn_operands(bytes, &insn, &names) ||
		    names.registers & (way.frame | way.returns))
			c->changes = changes_here(c, &way, &insn);
		if (!leads_on(c, &way, &insn))
			return;
		way.at += insn.len;
	}
}

/* Does the code at @at change its return address, or read what stands there, before it returns? */
static bool changes_return(const struct mp_cfg_build *b, uint32_t at)
{
	struct callee c = {.b = b, .inside = !mp_bit(b->entries, at)};

	add_way(&c, &(struct way){.frame = BIT(RSP)}, at);
	while (c.nr_ways && !c.changes) {
		follow(&c, c.ways[--c.nr_ways]);
		c.branched = true;
	}
	return c.changes;
}

/*
 * True for mov $imm, %r10d; mov $imm, %r11d (xor for 0); call; ret: the function asks for
 * more stack.
 */
static bool asks_for_stack(const struct mp_cfg_build *b, const struct mp_flow *call)
{
	static const uint8_t zero[] = {0x45, 0x31, 0xdb};
	const uint8_t *p = call->at < 12 ? NULL : mp_space_bytes(b->index, call->at - 12, 18);

	if (!p || call->len != 5 || p[17] != 0xc3)
		return false;
	if (p[6] == 0x41 && p[7] == 0xbb)
		return p[0] == 0x41 && p[1] == 0xba;
	return !memcmp(p + 9, zero, sizeof(zero)) && p[3] == 0x41 && p[4] == 0xba;
}

int mp_cfg_find_returns(struct mp_cfg_build *b)
{
	const struct mp_cfg_index *index = b->index;
	mp_bits known = b->scratch, changes = mp_space_bitmap(index);

	if (!changes)
		return -ENOMEM;
	for (uint32_t p = 0; p < index->nr_parts; p++) {
		const struct mp_part *part = &index->parts[p];

		for (uint32_t i = 0; i < part->nr_flows; i++) {
			const struct mp_flow *f = &b->flows[part->first_flow + i];

			/* A call of the next instruction only asks for its own address. */
			if (f->kind != MP_INSN_CALL || f->target == f->at + f->len)
				continue;
			if (f->target != MP_NONE && mp_space_is_text(index, f->target) &&
			    !mp_bit(known, f->target)) {
				mp_bit_set(known, f->target);
				if (changes_return(b, f->target))
					mp_bit_set(changes, f->target);
			}
			if ((f->target != MP_NONE && mp_bit(changes, f->target)) ||
			    asks_for_stack(b, f))
				mp_func_problem(&b->cfg->funcs[part->func],
						MP_PROBLEM_RETURNS_ELSEWHERE,
						mp_space_vaddr(index, f->at));
		}
		mp_space_note_read(b, part->end - part->at);
	}
	mp_bits_clear_all(known, index->nr_bytes / 64 + 1);
	free(changes);
	return 0;
}
