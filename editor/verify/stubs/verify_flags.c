// SPDX-License-Identifier: Apache-2.0
/*
 * verify_flags - decides whether arithmetic flags that were set before an address may be read
 * behind it. Follows all paths forward until the flags are overwritten. Called by verify_count,
 * verify_polls and verify_threads.
 */
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/stubs/verify_flags.h"

#define STATUS                                                                                     \
	(ZYDIS_CPUFLAG_OF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_AF |               \
	 ZYDIS_CPUFLAG_PF)

/* Limits on paths, and on instructions on all of them. Beyond these the flags count as live. */
#define MAX_WAYS  64
#define MAX_STEPS 4096

struct way {
	uint64_t at;
	uint32_t flags; /* flags not overwritten yet */
};

struct search {
	const struct vf *vf;
	struct way ways[MAX_WAYS];
	uint32_t nr;
};

/* Flags that @z always overwrites. Shifts by 0 and repetitions of 0 do not. */
static uint32_t overwritten(const ZydisDecodedInstruction *z)
{
	const ZydisAccessedFlags *f = z->cpu_flags;
	uint8_t count_mask = z->operand_width == 64 ? 0x3f : 0x1f;

	if (!f ||
	    z->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		return 0;
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_LOGICAL_FP: break;
	case ZYDIS_CATEGORY_SHIFT:
		if (z->opcode != 0xd0 && z->opcode != 0xd1 &&
		    !(z->raw.imm[0].size && z->raw.imm[0].value.u & count_mask))
			return 0;
		break;
	default:
		switch (z->mnemonic) {
		case ZYDIS_MNEMONIC_BT:
		case ZYDIS_MNEMONIC_BTS:
		case ZYDIS_MNEMONIC_BTR:
		case ZYDIS_MNEMONIC_BTC:
		case ZYDIS_MNEMONIC_CLC:
		case ZYDIS_MNEMONIC_STC: return ZYDIS_CPUFLAG_CF; /* only this one for certain */
		case ZYDIS_MNEMONIC_BSF:
		case ZYDIS_MNEMONIC_BSR:
		case ZYDIS_MNEMONIC_TZCNT:
		case ZYDIS_MNEMONIC_LZCNT:
		case ZYDIS_MNEMONIC_POPCNT:
		case ZYDIS_MNEMONIC_XADD:
		case ZYDIS_MNEMONIC_CMPXCHG:
		case ZYDIS_MNEMONIC_COMISS:
		case ZYDIS_MNEMONIC_COMISD:
		case ZYDIS_MNEMONIC_UCOMISS:
		case ZYDIS_MNEMONIC_UCOMISD:
		case ZYDIS_MNEMONIC_VCOMISS:
		case ZYDIS_MNEMONIC_VCOMISD:
		case ZYDIS_MNEMONIC_VUCOMISS:
		case ZYDIS_MNEMONIC_VUCOMISD:
		case ZYDIS_MNEMONIC_FCOMI:
		case ZYDIS_MNEMONIC_FCOMIP:
		case ZYDIS_MNEMONIC_FUCOMI:
		case ZYDIS_MNEMONIC_FUCOMIP:
		case ZYDIS_MNEMONIC_PTEST:
		case ZYDIS_MNEMONIC_VPTEST:
		case ZYDIS_MNEMONIC_SAHF: break;
		default: return 0;
		}
	}
	return (f->modified | f->set_0 | f->set_1 | f->undefined) & (STATUS | ZYDIS_CPUFLAG_CF);
}

/* Continue at @at. Code without unwind information is the linker's stub that leads to another
 * function, which reads no flags. Return: false: too many paths. */
static bool go_on(struct search *s, uint64_t at, uint32_t flags)
{
	if (!vf_eh_find(&s->vf->old.eh, at))
		return true;
	for (uint32_t i = 0; i < s->nr; i++)
		if (s->ways[i].at == at && (flags & ~s->ways[i].flags) == 0)
			return true;
	if (s->nr == MAX_WAYS)
		return false;
	s->ways[s->nr++] = (struct way){at, flags};
	return true;
}

/* Is this VF_ODD a branch whose target is certain? After an abort, the flags are those at xbegin. */
static bool may_branch(const ZydisDecodedInstruction *z)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JRCXZ: return !(z->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE);
	default: return false;
	}
}

/* Follow one path to its end; branches add paths. */
static bool follow(struct search *s, ZydisDecoder *decoder, struct way way, uint32_t *steps)
{
	while (way.flags) {
		const struct vf_fde *fde = vf_eh_find(&s->vf->old.eh, way.at);
		uint64_t avail = fde ? fde->start + fde->size - way.at : 0;
		const uint8_t *bytes = avail ? mp_elf_bytes(s->vf->o, way.at, avail) : NULL;
		ZydisDecodedInstruction z;
		struct vf_insn insn;

		if (!bytes || (*steps)++ > MAX_STEPS || !vf_decode(bytes, avail, way.at, &insn) ||
		    ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder, NULL, bytes, avail, &z)))
			return false;
		if (z.cpu_flags && z.cpu_flags->tested & way.flags)
			return false;
		way.flags &= ~overwritten(&z);
		switch (insn.kind) {
		case VF_JCC:
		case VF_ODD:
			if (insn.kind == VF_ODD && !may_branch(&z))
				return false;
			if (!go_on(s, insn.target, way.flags))
				return false;
			break;
		case VF_JMP: return go_on(s, insn.target, way.flags);
		case VF_OTHER: break;
		/* Callees, callers and targets of a switch read no flags. */
		case VF_CALL:
		case VF_ICALL:
		case VF_STOP:
		case VF_IJMP_MEM:
		case VF_IJMP_REG: return true;
		default: return false;
		}
		way.at += insn.len;
	}
	return true;
}

bool vf_flags_are_dead(const struct vf *vf, uint64_t vaddr, bool carry)
{
	struct search s = {
		.vf = vf, .ways = {{vaddr, STATUS | (carry ? ZYDIS_CPUFLAG_CF : 0)}}, .nr = 1};
	ZydisDecoder decoder;
	uint32_t steps = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t i = 0; i < s.nr; i++)
		if (!follow(&s, &decoder, s.ways[i], &steps))
			return false;
	return true;
}
