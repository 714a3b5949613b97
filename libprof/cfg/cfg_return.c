// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_return - finds calls that return to another place than the next instruction.
 *
 * A callee may pop or change its return address: it reads constants behind the call, skips
 * an instruction, or returns in another mode. Arithmetic computes the place behind such a
 * call, so the caller is left alone. Compilers make no such functions, except for split
 * stacks, whose allocator returns one byte further. Called by cfg before blocks are made.
 */
#include <errno.h>

#include "libprof/cfg/cfg_private.h"

/* Instructions to read: such functions take their return address at once. */
#define MAX_LOOK 6

/* True for 58+r, 41 58+r, 8f /0: pops the word that rsp points to. */
static bool is_pop(const uint8_t *p, uint8_t len)
{
	if (len > 1 && (*p & 0xf0) == 0x40)
		p++;
	return (*p & 0xf8) == 0x58 || (*p == 0x8f && !(p[1] & 0x38));
}

/*
 * True if the instruction writes to [rsp]. Knows the usual instructions: arithmetic with a
 * register or an immediate, mov, xchg, inc.
 */
static bool writes_top(const uint8_t *p, uint8_t len)
{
	uint8_t opcode, reg;

	if (len > 3 && (*p & 0xf0) == 0x40)
		p++;
	opcode = p[0];
	if ((p[1] & 0xc7) != 0x04 || p[2] != 0x24)
		return false;
	reg = p[1] >> 3 & 7;
	if (opcode < 0x40)
		return (opcode & 7) < 2 && opcode >> 3 != 7;
	switch (opcode) {
	case 0x80:
	case 0x81:
	case 0x83: return reg != 7;
	case 0xff: return reg < 2;
	case 0x86:
	case 0x87:
	case 0x88:
	case 0x89:
	case 0xc6:
	case 0xc7: return true;
	default: return false;
	}
}

/* True if rsp changes, or may change: the return address is then no longer on top. */
static bool moves_stack(const struct mp_insn *insn, const uint8_t *p)
{
	uint8_t len = insn->len;

	if (insn->kind != MP_INSN_OTHER)
		return true;
	if (len > 1 && (*p & 0xf0) == 0x40)
		p++, len--;
	/* push; add, sub, and with rsp; lea to rsp; enter, leave */
	if ((*p & 0xf8) == 0x50 || *p == 0x68 || *p == 0x6a || *p == 0xc8 || *p == 0xc9)
		return true;
	if ((*p == 0x81 || *p == 0x83) && (p[1] & 0xc7) == 0xc4)
		return true;
	return *p == 0x8d && (p[1] & 0x38) == 0x20;
}

static bool changes_return(const struct mp_cfg_build *b, uint32_t at)
{
	for (int i = 0; i < MAX_LOOK; i++) {
		const uint8_t *bytes = mp_space_bytes(b->index, at, 15);
		struct mp_insn insn;

		if (!bytes || mp_insn_decode(bytes, 15, mp_space_vaddr(b->index, at), &insn))
			return false;
		if (is_pop(bytes, insn.len) || (insn.len > 2 && writes_top(bytes, insn.len)))
			return true;
		if (moves_stack(&insn, bytes))
			return false;
		at += insn.len;
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
