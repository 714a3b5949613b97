// SPDX-License-Identifier: Apache-2.0
/*
 * verify_returns - marks functions with a call of one that changes its return address.
 *
 * The callee reads constants behind the call, or skips an instruction there: the bytes behind the call must be the
 * original's. It changes its return address before it calls others, or by the frame pointer. Called by verify_scan.
 */
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/known/verify_returns.h"

/* Number of instructions that are read from a function's start. */
#define FIRST 12
/* Bytes to read of code without unwind information, or from the middle of a function. */
#define BARE 256

/* Does the instruction write to the 8 bytes at @disp from @base, or compute this address? */
static bool writes_at(const struct vf_full *f, ZydisRegister base, int64_t disp)
{
	for (uint8_t i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		/* The word to which push writes is hidden. */
		if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
		    op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.base != base ||
		    op->mem.index != ZYDIS_REGISTER_NONE || op->mem.disp.value != disp)
			continue;
		if ((op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) ||
		    f->z.mnemonic == ZYDIS_MNEMONIC_LEA)
			return true;
	}
	return false;
}

static bool sets(const struct vf_full *f, ZydisRegister reg)
{
	for (uint8_t i = 0; i < f->z.operand_count; i++)
		if (f->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER && f->op[i].reg.value == reg &&
		    (f->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			return true;
	return false;
}

/* mov @reg to memory or to another register than the stack pointer: the function may write by that, too */
static bool copies(const struct vf_full *f, ZydisRegister reg)
{
	return f->z.mnemonic == ZYDIS_MNEMONIC_MOV &&
	       f->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER && f->op[1].reg.value == reg &&
	       !sets(f, ZYDIS_REGISTER_RSP);
}

/* May the bytes from @p on, behind a REX prefix with W, be a copy of %rbp? */
static bool may_be_copy(const uint8_t *p)
{
	if (p[0] == 0x89)
		return (p[1] >> 3 & 7) == 5;
	return p[0] == 0x8b && p[1] >> 6 == 3 && (p[1] & 7) == 5;
}

/* From @at on, where %rbp is 8 bytes below the return address. */
static bool writes_above_frame(const struct vf *vf, const struct vf_fde *fde, uint64_t at)
{
	uint64_t end = fde->start + fde->size;
	const uint8_t *p = mp_elf_bytes(vf->o, at, end - at);
	struct vf_full f;

	for (uint64_t k = 1; p && k + 2 <= end - at; k++) {
		/* 8(%rbp), as instructions encode it */
		if (((p[k] & 0xc7) != 0x45 || p[k + 1] != 8) && !may_be_copy(p + k))
			continue;
		for (uint64_t from = at + k; from-- > at && at + k - from < 15;) {
			if (!vf_bits_get(&vf->old.grid, from))
				continue;
			if (vf_decode_full(vf, from, end, &f) &&
			    (writes_at(&f, ZYDIS_REGISTER_RBP, 8) ||
			     copies(&f, ZYDIS_REGISTER_RBP)))
				return true;
			break;
		}
	}
	return false;
}

/* The stack pointer's distance from the return address behind the instruction; -1: not known. */
static int64_t distance_behind(const struct vf_full *f, int64_t distance)
{
	bool number = f->z.operand_count > 1 && f->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	if (!sets(f, ZYDIS_REGISTER_RSP))
		return distance;
	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH: return f->op[0].size == 64 ? distance + 8 : -1;
	case ZYDIS_MNEMONIC_POP:
		return f->op[0].size == 64 && f->op[0].reg.value != ZYDIS_REGISTER_RSP
			       ? distance - 8
			       : -1;
	case ZYDIS_MNEMONIC_SUB: return number ? distance + f->op[1].imm.value.s : -1;
	case ZYDIS_MNEMONIC_ADD: return number ? distance - f->op[1].imm.value.s : -1;
	default: return -1;
	}
}

/* Nothing follows the instruction but by a branch or behind a call. */
static bool leaves(const struct vf_full *f)
{
	return f->z.meta.category == ZYDIS_CATEGORY_RET ||
	       f->z.meta.category == ZYDIS_CATEGORY_CALL ||
	       f->z.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
}

/* @framed: the function has unwind information, which tells where it ends. */
static bool changes_return(const struct vf *vf, const struct vf_fde *fde, bool framed)
{
	uint64_t at = fde->start, end = at + fde->size;
	int64_t distance = 0;

	for (int n = 0; n < FIRST; n++) {
		struct vf_full f;

		if (!vf_decode_full(vf, at, end, &f) || leaves(&f))
			return false;
		if (writes_at(&f, ZYDIS_REGISTER_RSP, distance) ||
		    (!distance && copies(&f, ZYDIS_REGISTER_RSP)) ||
		    (f.z.mnemonic == ZYDIS_MNEMONIC_POP && !distance))
			return true;
		at += f.z.length;
		distance = distance_behind(&f, distance);
		if (distance < 0)
			return false;
		if (framed && distance == 8 && f.z.mnemonic == ZYDIS_MNEMONIC_MOV &&
		    sets(&f, ZYDIS_REGISTER_RBP) && f.op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    f.op[1].reg.value == ZYDIS_REGISTER_RSP && writes_above_frame(vf, fde, at))
			return true;
	}
	return false;
}

/*
 * Marks functions with a direct call of one of @changing. A call of the next instruction only asks for its own address.
 * Looks for the opcode: to decode all code once more takes long.
 */
static void mark_callers(const struct vf *vf, struct vf_fde *fde, const struct vf_bits *changing)
{
	uint64_t end = fde->start + fde->size;
	const uint8_t *p = mp_elf_bytes(vf->o, fde->start, fde->size);
	int32_t distance;

	for (uint64_t k = 0; p && k + 5 <= fde->size; k++) {
		uint64_t next = fde->start + k + 5;
		struct vf_insn insn;

		if (p[k] != 0xe8)
			continue;
		memcpy(&distance, p + k + 1, sizeof(distance));
		if (!distance || !vf_bits_get(changing, next + (uint64_t)(int64_t)distance))
			continue;
		/* A call may have prefixes. */
		for (uint64_t at = fde->start + k; at + 4 > fde->start + k && at >= fde->start;
		     at--)
			if (vf_bits_get(&vf->old.grid, at) &&
			    vf_decode(p + (at - fde->start), end - at, at, &insn) &&
			    at + insn.len == next && insn.kind == VF_CALL)
				fde->flags |= VF_FDE_PLACE;
	}
}

/*
 * Sets bits in @changing for places inside of @fde, behind its start, that are called directly and change their return
 * address: of several functions in assembly, only the first one may have a name. Return: is there one?
 */
static bool find_inside(const struct vf *vf, const struct vf_fde *fde, struct vf_bits *asked,
			struct vf_bits *changing)
{
	const uint8_t *p = mp_elf_bytes(vf->o, fde->start, fde->size);
	bool any = false;

	for (uint64_t k = 0; p && k + 5 <= fde->size; k++) {
		uint64_t to = p[k] == 0xe8 ? vf_displacement_target(p + k + 1, fde->start + k + 5)
					   : 0;
		struct vf_fde *in = to && vf_bits_get(&vf->old.target, to) &&
						    vf_bits_get(&vf->old.grid, to) &&
						    to != fde->start + k + 5
					    ? vf_eh_find(&vf->old.eh, to)
					    : NULL;
		struct vf_fde inner = {.start = to};

		if (!in || in->start == to || vf_bits_get(asked, to))
			continue;
		vf_bits_set(asked, to);
		/* Many calls may lead into one FDE. */
		inner.size = in->start + in->size - to;
		inner.size = inner.size < BARE ? inner.size : BARE;
		if (!changes_return(vf, &inner, true))
			continue;
		vf_bits_set(changing, to);
		any = true;
	}
	return any;
}

int vf_find_returns(const struct vf *vf)
{
	const struct vf_eh *eh = &vf->old.eh;
	struct vf_bits changing = {0}, asked = {0};
	uint64_t end = vf->old.text_end;
	bool any = false;
	int ret = vf_bits_init(&changing, vf->old.text_start, end);

	if (!ret)
		ret = vf_bits_init(&asked, vf->old.text_start, end);
	if (ret) {
		vf_bits_fini(&changing);
		return ret;
	}
	for (uint32_t i = 0; i < eh->nr_fdes; i++) {
		if (!changes_return(vf, &eh->fdes[i], true))
			continue;
		vf_bits_set(&changing, eh->fdes[i].start);
		any = true;
	}
	for (uint32_t i = 0; i < eh->nr_fdes; i++)
		any |= find_inside(vf, &eh->fdes[i], &asked, &changing);
	/* Code without unwind information */
	for (uint64_t at = vf_bits_next(&vf->old.target, vf->old.text_start, end); at < end;
	     at = vf_bits_next(&vf->old.target, at + 1, end)) {
		struct vf_fde bare = {.start = at, .size = end - at < BARE ? end - at : BARE};

		if (vf_eh_find(eh, at) || !changes_return(vf, &bare, false))
			continue;
		vf_bits_set(&changing, at);
		any = true;
	}
	for (uint32_t i = 0; any && i < eh->nr_fdes; i++)
		mark_callers(vf, &eh->fdes[i], &changing);
	vf_bits_fini(&asked);
	vf_bits_fini(&changing);
	return 0;
}
