// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_return - finds calls that return to another place than the next instruction.
 *
 * A callee may pop or change its return address: it reads constants behind the call, skips
 * an instruction, or returns in another mode. Arithmetic computes the place behind such a
 * call, so the caller is left alone. Compilers make no such functions, except for split
 * stacks, whose allocator returns one byte further, and for C that writes above its frame's
 * address. Called by cfg before blocks are made.
 */
#include <errno.h>

#include "libprof/cfg/cfg_private.h"
#include "libprof/insn/decoder.h"

/* Instructions to read: such functions take their return address at once, or change it before they call others. */
#define MAX_LOOK 12
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

/* How much the stack pointer is lowered; *@known: false if it changes in another way. */
static int64_t lowers(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o, bool *known)
{
	bool constant = z->operand_count > 1 && o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	*known = true;
	if (!writes_register(z, o, ZYDIS_REGISTER_RSP))
		return 0;
	if (z->mnemonic == ZYDIS_MNEMONIC_PUSH && o[0].size == 64)
		return 8;
	if (z->mnemonic == ZYDIS_MNEMONIC_POP && o[0].size == 64 &&
	    !(o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && o[0].reg.value == ZYDIS_REGISTER_RSP))
		return -8;
	if (z->mnemonic == ZYDIS_MNEMONIC_SUB && constant)
		return o[1].imm.value.s;
	if (z->mnemonic == ZYDIS_MNEMONIC_ADD && constant)
		return -o[1].imm.value.s;
	*known = false;
	return 0;
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
	/* Many calls may lead into one function. */
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

/* Control does not simply go on behind the instruction. A condition may come before the function changes its return address. */
static bool ends(const ZydisDecodedInstruction *z)
{
	return z->meta.category == ZYDIS_CATEGORY_RET ||
	       (z->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE &&
		z->meta.category != ZYDIS_CATEGORY_COND_BR);
}

static bool changes_return(const struct mp_cfg_build *b, uint32_t at)
{
	bool inside = !mp_bit(b->entries, at);
	int64_t depth = 0;

	for (int i = 0; i < MAX_LOOK; i++) {
		ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction z;
		bool known;

		if (!decode(b, at, &z, o) || ends(&z))
			return false;
		if ((z.mnemonic == ZYDIS_MNEMONIC_POP && !depth) ||
		    writes(&z, o, (struct word){ZYDIS_REGISTER_RSP, depth}) ||
		    (!depth && copies(&z, o, ZYDIS_REGISTER_RSP)))
			return true;
		depth += lowers(&z, o, &known);
		at += z.length;
		if (!known)
			return false;
		if (z.mnemonic == ZYDIS_MNEMONIC_MOV && depth == 8 &&
		    writes_register(&z, o, ZYDIS_REGISTER_RBP) &&
		    o[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    o[1].reg.value == ZYDIS_REGISTER_RSP && writes_above_frame(b, at, inside))
			return true;
	}
	return false;
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
