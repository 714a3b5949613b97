// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_return - finds calls that return to another place than the next instruction.
 *
 * A callee may pop or change its return address: it reads constants behind the call, skips
 * an instruction, or returns in another mode. Arithmetic computes the place behind such a
 * call, so the caller is left alone. A callee's first instructions are read on all ways.
 * Compilers make no such functions, except for split stacks, whose allocator returns one byte
 * further, and for C that writes above its frame's address. Called by cfg before blocks are made.
 */
#include <errno.h>
#include <string.h>

#include "libprof/cfg/cfg_private.h"
#include "libprof/insn/decoder.h"

/* Instructions to read of a callee, on all ways together, and ways that are still to be followed. */
#define MAX_LOOK 128
#define MAX_WAYS 64
/* Before so many instructions from its start, a copy of the stack pointer counts: assembly saves it by one later on. */
#define MAX_COPY  12
#define SEEN_BITS 512
/* An instruction is read so often, if different things are known of the registers. */
#define MAX_TIMES 3
/* Bytes that an instruction writes at most. */
#define MAX_WIDTH 64
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
	uint16_t frame;	  /* registers for which @below is known */
	uint16_t returns; /* registers that hold the return address */
	int64_t below[16]; /* how far the register's value lies below the place of the return address */
};

struct callee {
	const struct mp_cfg_build *b;
	struct way ways[MAX_WAYS];
	uint32_t nr_ways;
	uint32_t seen_at[MAX_LOOK], nr_seen;
	uint16_t seen_with[MAX_LOOK]; /* index in @known */
	struct way known[MAX_LOOK];   /* what was known at instructions that were read */
	uint32_t nr_known;
	uint64_t seen_bits[SEEN_BITS / 64]; /* by the last bits of each place in @seen_at */
	bool inside;			    /* it begins in the middle of a function */
	bool branched;			    /* control came here by a branch */
	bool framed;			    /* it has made a frame */
	bool changes;
};

#define RSP	 ((unsigned int)MP_INSN_SP)
#define RBP	 5u
#define BIT(reg) ((uint16_t)(1u << (reg)))
/* Registers that a call may change, by the ABI. */
#define CALL_CHANGES ((uint16_t) ~(BIT(3) | BIT(RSP) | BIT(RBP) | 0xf000))

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
	if (at == MP_NONE || !mp_space_is_text(c->b->index, at))
		return;
	c->changes |= c->nr_ways == MAX_WAYS; /* what is not read may do so */
	if (c->changes)
		return;
	c->ways[c->nr_ways] = *way;
	c->ways[c->nr_ways++].at = at;
}

/* Is @o memory that overlaps the return address? *@from: where it begins, counted from there. */
static bool is_return_slot(const struct way *way, const ZydisDecodedOperand *o, int64_t *from)
{
	unsigned int base;

	if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.index != ZYDIS_REGISTER_NONE)
		return false;
	base = number_of(o->mem.base);
	/* push, pop, call: step() says where these write and read */
	if (!has(way->frame, base) ||
	    (base == RSP && o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN))
		return false;
	*from = o->mem.disp.value - way->below[base];
	return *from < 8 && *from + (o->size ? o->size / 8 : 1) > 0;
}

/* Is @o the return address, in a register or in its place? */
static bool is_return(const struct way *way, const ZydisDecodedOperand *o)
{
	int64_t from;

	if (o->type == ZYDIS_OPERAND_TYPE_REGISTER)
		return has(way->returns, number_of(o->reg.value));
	return is_return_slot(way, o, &from) && o->mem.type == ZYDIS_MEMOP_TYPE_MEM;
}

/*
 * Copies of the return address are kept outside of the stack and compared, no more: by a sum, by a choice or from the
 * stack, control may come to another place. gcc pushes a copy by another register than the stack pointer, where it
 * aligns the stack.
 */
static bool only_copies(const struct way *way, const ZydisDecodedInstruction *z,
			const ZydisDecodedOperand *o)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_NOP: return true;
	/* setjmp() of the C library hides the address that it keeps. */
	case ZYDIS_MNEMONIC_XOR:
		return o[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		       o[1].mem.segment == ZYDIS_REGISTER_FS;
	case ZYDIS_MNEMONIC_PUSH:
		return o[0].type == ZYDIS_OPERAND_TYPE_MEMORY && number_of(o[0].mem.base) != RSP;
	case ZYDIS_MNEMONIC_MOV:
		return o[0].type != ZYDIS_OPERAND_TYPE_MEMORY ||
		       !has(way->frame, number_of(o[0].mem.base));
	default: return false;
	}
}

/* Does the instruction write to the return address, compute with it, or read what stands behind the call? */
static bool touches_return(const struct way *way, const ZydisDecodedInstruction *z,
			   const ZydisDecodedOperand *o)
{
	int64_t from;

	for (unsigned int i = 0; i < z->operand_count; i++) {
		if ((o[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    is_return_slot(way, &o[i], &from))
			return true;
		if ((o[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ) && is_return(way, &o[i]) &&
		    !only_copies(way, z, o))
			return true;
		if (o[i].type == ZYDIS_OPERAND_TYPE_MEMORY && z->mnemonic != ZYDIS_MNEMONIC_NOP &&
		    (has(way->returns, number_of(o[i].mem.base)) ||
		     has(way->returns, number_of(o[i].mem.index))))
			return true;
	}
	return false;
}

/*
 * The instruction writes to register @to. Sets *@returns, and *@below as in struct way. Return: false: it is not known
 * how far the new value lies below the place of the return address.
 */
static bool moves_to(const struct way *way, const ZydisDecodedInstruction *z,
		     const ZydisDecodedOperand *o, unsigned int to, int64_t *below, bool *returns)
{
	const ZydisDecodedOperand *from = &o[1];
	bool number = z->operand_count > 1 && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	unsigned int reg;

	*returns = false;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		*returns = is_return(way, from);
		reg = from->type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(from->reg.value) : 16;
		break;
	case ZYDIS_MNEMONIC_LEA:
		reg = from->mem.index == ZYDIS_REGISTER_NONE ? number_of(from->mem.base) : 16;
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB: reg = number ? to : 16; break;
	default: return false;
	}
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

/* By how many bytes push and its kind lower the stack pointer. */
static int64_t lowers(const ZydisDecodedInstruction *z)
{
	int64_t width = z->operand_width / 8;

	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ: return width;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ: return -width;
	default: return 0;
	}
}

/* Changes @way to what is known of the registers after the instruction. */
static void step(struct way *way, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o)
{
	const struct way before = *way;
	bool named = false; /* pop %rsp */

	for (unsigned int i = 0; i < z->operand_count; i++) {
		unsigned int to = o[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
						  (o[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
					  ? number_of(o[i].reg.value)
					  : 16;
		bool returns = false, known = false;

		if (to == 16)
			continue;
		named |= to == RSP && o[i].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
		if (!i)
			known = moves_to(&before, z, o, to, &way->below[to], &returns);
		way->frame = (uint16_t)((way->frame & ~BIT(to)) | (known ? BIT(to) : 0));
		way->returns = (uint16_t)((way->returns & ~BIT(to)) | (returns ? BIT(to) : 0));
	}
	if (z->mnemonic == ZYDIS_MNEMONIC_LEAVE && has(before.frame, RBP)) {
		way->frame |= BIT(RSP);
		way->below[RSP] = before.below[RBP] - 8;
	} else if (lowers(z) && !named && has(before.frame, RSP)) {
		way->frame |= BIT(RSP);
		way->below[RSP] = before.below[RSP] + lowers(z);
	}
}

/* To where the loader leads calls and jumps through the word at @slot, if to code of this file; else MP_NONE. */
static uint32_t behind_slot(const struct mp_cfg_build *b, uint64_t slot)
{
	const struct mp_reloc *rel = mp_elf_dyn_reloc_at(b->elf, slot);
	const uint8_t *word = rel || b->moves ? NULL : mp_elf_bytes(b->elf, slot, 8);
	uint64_t to = 0;

	if (word)
		memcpy(&to, word, sizeof(to));
	else if (rel && rel->type == R_X86_64_RELATIVE)
		to = (uint64_t)rel->addend;
	else if (rel && rel->sym && rel->sym_shndx != SHN_UNDEF)
		to = rel->sym_value + (uint64_t)(rel->type == R_X86_64_64 ? rel->addend : 0);
	return to ? mp_space_at(b->index, to) : MP_NONE;
}

/* Takes the places to which a branch leads. Return: does control go to the next instruction, too? */
static bool leads_on(struct callee *c, struct way *way, const struct mp_insn *insn)
{
	uint32_t to = insn->disp_size && !insn->rip_relative
			      ? mp_space_at(c->b->index, insn->target)
			      : MP_NONE;

	switch (insn->kind) {
	case MP_INSN_OTHER:
	case MP_INSN_SYSCALL: return true;
	case MP_INSN_COND:
	case MP_INSN_LOOP: add_way(c, way, to); return true;
	case MP_INSN_IJUMP:
		if (insn->rip_relative)
			to = behind_slot(c->b, insn->target);
		add_way(c, way, to);
		return false;
	case MP_INSN_JUMP: add_way(c, way, to); return false;
	case MP_INSN_CALL:
	case MP_INSN_ICALL:
		/* A call of the next instruction pushes its address. */
		if (to == way->at + insn->len) {
			way->below[RSP] += 8;
			return true;
		}
		/* If it does not return, other code of the function follows. */
		way->frame &= (uint16_t)~CALL_CHANGES;
		way->returns &= (uint16_t)~CALL_CHANGES;
		return mp_part_at(c->b->index, way->at) != MP_NONE &&
		       mp_part_at(c->b->index, way->at) ==
			       mp_part_at(c->b->index, way->at + insn->len);
	default: return false;
	}
}

/*
 * Was as much known there before, when this instruction was read? Or was it read MAX_TIMES times already, as in a loop
 * over a variable in the stack?
 */
static bool was_seen(const struct callee *c, const struct way *way)
{
	unsigned int times = 0;

	if (!mp_bit(c->seen_bits, way->at % SEEN_BITS))
		return false;
	for (uint32_t i = 0; i < c->nr_seen; i++) {
		const struct way *old = &c->known[c->seen_with[i]];
		bool same = !(way->frame & ~old->frame) && !(way->returns & ~old->returns);

		if (c->seen_at[i] != way->at)
			continue;
		for (unsigned int reg = 0; same && reg < 16; reg++)
			same = !has(way->frame, reg) || way->below[reg] == old->below[reg];
		if (same || ++times == MAX_TIMES)
			return true;
	}
	return false;
}

/* Does the instruction copy the stack pointer, or compute an address, that is the place of the return address? */
static bool takes_place(const struct way *way, const ZydisDecodedInstruction *z,
			const ZydisDecodedOperand *o)
{
	int64_t from;

	return (has(way->frame, RSP) && !way->below[RSP] && copies(z, o, ZYDIS_REGISTER_RSP)) ||
	       (z->mnemonic == ZYDIS_MNEMONIC_LEA && is_return_slot(way, &o[1], &from) && !from);
}

/* The instruction at @way->at, which names a register that matters. */
static bool changes_here(struct callee *c, struct way *way, const struct mp_insn *insn)
{
	ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	struct way before = *way;
	bool framed;

	if (!decode(c->b, way->at, &z, o))
		return false;
	/* No compiler makes a frame so. */
	if (z.mnemonic == ZYDIS_MNEMONIC_ENTER)
		return true;
	/* The operand of pop is an address by the new stack pointer. */
	if (z.mnemonic == ZYDIS_MNEMONIC_POP && has(before.frame, RSP))
		before.below[RSP] += lowers(&z);
	if (touches_return(z.mnemonic == ZYDIS_MNEMONIC_POP ? &before : way, &z, o) ||
	    (!c->branched && c->nr_seen <= MAX_COPY && takes_place(way, &z, o)))
		return true;
	framed = z.mnemonic == ZYDIS_MNEMONIC_MOV && has(way->frame, RSP) && way->below[RSP] == 8 &&
		 writes_register(&z, o, ZYDIS_REGISTER_RBP) &&
		 o[1].type == ZYDIS_OPERAND_TYPE_REGISTER && o[1].reg.value == ZYDIS_REGISTER_RSP;
	if (insn->kind == MP_INSN_OTHER)
		step(way, &z, o);
	/* It takes the return address from the stack. */
	if (has(way->frame, RSP) && way->below[RSP] < 0)
		return true;
	/* writes_above_frame() reads on from the first such instruction, so it has read what follows this one. */
	if (!framed || (c->framed && !c->branched))
		return false;
	c->framed = true;
	return writes_above_frame(c->b, way->at + z.length, c->inside || c->branched);
}

/* The instruction has an operand in memory. Is its opcode of one byte, not lea, and names it no other stack pointer? */
static bool is_plain(const uint8_t *opcode)
{
	switch (*opcode) {
	case 0x0f:
	case 0x66:
	case 0x8d:
	case 0xf2:
	case 0xf3:
	case 0xff: return false;
	default: return (opcode[1] & 0x38) != MP_INSN_SP << 3;
	}
}

/* May changes_here() find anything in the instruction? Few do, so this is asked first. */
static bool matters(const struct way *way, const uint8_t *bytes, const struct mp_insn *insn)
{
	uint16_t known = way->frame | way->returns;
	struct mp_insn_operands names;
	const uint8_t *opcode;
	uint16_t others;

	switch (insn->kind) {
	case MP_INSN_COND:
	case MP_INSN_LOOP:
	case MP_INSN_JUMP:
	case MP_INSN_CALL:
	case MP_INSN_RET: return false;
	default: break;
	}
	if (!mp_insn_operands(bytes, insn, &names))
		return true;
	if (!(names.registers & known))
		return false;
	opcode = bytes + ((*bytes & 0xf0) == 0x40);
	others = names.registers & known & (uint16_t)~BIT(RSP);
	/* a variable in the stack */
	if (names.base == RSP && names.index == MP_INSN_NO_REG && !others && is_plain(opcode))
		return (uint64_t)(names.disp - way->below[RSP] + MAX_WIDTH) < MAX_WIDTH + 8;
	return true;
}

/* push of a register of which nothing is known; most functions begin so */
static bool pushes(struct way *way, const uint8_t *bytes, uint8_t len)
{
	unsigned int reg = (bytes[len - 1] & 7u) | (len == 2 ? 8 : 0);

	if (len > 2 || (bytes[len - 1] & 0xf8) != 0x50 || (len == 2 && *bytes != 0x41) ||
	    !has(way->frame, RSP) || has(way->frame | way->returns, reg))
		return false;
	way->below[RSP] += 8;
	return true;
}

static void follow(struct callee *c, struct way way)
{
	bool anew = true;

	while (!c->changes && c->nr_seen < MAX_LOOK && (way.frame | way.returns) &&
	       !was_seen(c, &way)) {
		const struct mp_span *span = mp_space_span(c->b->index, way.at);
		const uint8_t *bytes = span ? span->bytes + (way.at - span->at) : NULL;
		struct mp_insn insn;

		if (!bytes || mp_insn_decode(bytes, span->size - (way.at - span->at),
					     mp_space_vaddr(c->b->index, way.at), &insn))
			return;
		if (anew)
			c->known[c->nr_known++] = way;
		c->seen_at[c->nr_seen] = way.at;
		c->seen_with[c->nr_seen++] = (uint16_t)(c->nr_known - 1);
		mp_bit_set(c->seen_bits, way.at % SEEN_BITS);
		anew = pushes(&way, bytes, insn.len) || insn.kind == MP_INSN_CALL;
		if (!anew && matters(&way, bytes, &insn)) {
			c->changes = changes_here(c, &way, &insn);
			anew = true;
		}
		if (!leads_on(c, &way, &insn))
			return;
		way.at += insn.len;
	}
}

/* Does the code at @at change its return address, or read what stands there, before it returns? */
static bool changes_return(const struct mp_cfg_build *b, uint32_t at)
{
	struct callee c;

	c.b = b;
	c.nr_ways = c.nr_seen = c.nr_known = 0;
	memset(c.seen_bits, 0, sizeof(c.seen_bits));
	c.inside = !mp_bit(b->entries, at);
	c.branched = c.changes = c.framed = false;
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

/* To where a call leads, as far as this is known; MP_NONE: it is not, or it is a call of the next instruction. */
static uint32_t called_by(const struct mp_cfg_build *b, const struct mp_flow *f)
{
	const uint8_t *bytes;
	struct mp_insn insn;

	/* That only asks for its own address. */
	if (f->kind == MP_INSN_CALL)
		return f->target == f->at + f->len ? MP_NONE : f->target;
	if (f->kind != MP_INSN_ICALL || !f->slot)
		return MP_NONE;
	bytes = mp_space_bytes(b->index, f->at, f->len);
	if (!bytes || mp_insn_decode(bytes, f->len, mp_space_vaddr(b->index, f->at), &insn))
		return MP_NONE;
	return insn.rip_relative ? behind_slot(b, insn.target) : MP_NONE;
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
			uint32_t to = called_by(b, f);

			if (to != MP_NONE && mp_space_is_text(index, to) && !mp_bit(known, to)) {
				mp_bit_set(known, to);
				if (changes_return(b, to))
					mp_bit_set(changes, to);
			}
			if ((to != MP_NONE && mp_bit(changes, to)) ||
			    (f->kind == MP_INSN_CALL && asks_for_stack(b, f)))
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
