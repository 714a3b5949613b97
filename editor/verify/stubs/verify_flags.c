// SPDX-License-Identifier: Apache-2.0
/*
 * verify_flags - decides whether arithmetic flags that were set before an address may be read
 * behind it. Follows all paths forward until the flags are overwritten, also into called code, and behind returns to code
 * that reads flags: by the ABI there is none, but assembly may return flags. Called by verify, and by the checks of
 * stubs.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/stubs/verify_flags.h"
#include "libprof/base/grow.h"

/* Limits on paths, and on instructions on all of them. Beyond these the flags count as live. */
#define MAX_WAYS  64
#define MAX_STEPS 4096

/*
 * Limits on instructions for all stubs of one function, so that the work is linear in the sizes of both files. No function
 * in 44 instrumented outputs of eleven programs, git and perl among them, needs more than 256 and one for each byte.
 */
#define MORE_STEPS     256
#define STEPS_PER_BYTE 16

struct way {
	uint64_t at;
	uint32_t flags; /* flags not overwritten yet */
};

struct search {
	const struct vf *vf;
	struct way ways[MAX_WAYS];
	uint32_t nr, steps;
	uint32_t read;			/* flags that are read */
	uint64_t *all_steps, max_steps; /* of all stubs of the function; MAX_STEPS is of one */
	bool exhausted;			/* @all_steps reached @max_steps */
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
	return (f->modified | f->set_0 | f->set_1 | f->undefined) & VF_FLAGS;
}

/* Return: how many bytes of code follow from @at on: of its FDE, or of the code around it; 0: outside of all code. */
static uint64_t code_left(const struct vf *vf, uint64_t at)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, at);

	if (fde)
		return fde->start + fde->size - at;
	for (uint32_t i = 0; i < vf->old.nr_texts; i++)
		if (at - vf->old.texts[i].start < vf->old.texts[i].end - vf->old.texts[i].start)
			return vf->old.texts[i].end - at;
	return 0;
}

/* Continue at @at. No code of the file is there: nothing reads flags. */
static void go_on(struct search *s, uint64_t at, uint32_t flags)
{
	if (!code_left(s->vf, at))
		return;
	for (uint32_t i = 0; i < s->nr; i++)
		if (s->ways[i].at == at && (flags & ~s->ways[i].flags) == 0)
			return;
	if (s->nr == MAX_WAYS)
		s->read |= flags; /* too many paths */
	else
		s->ways[s->nr++] = (struct way){at, flags};
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

/* Flags that may be read behind a return at @vaddr. */
static uint32_t returned(const struct vf *vf, uint64_t vaddr)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, vaddr);

	if (!vf->stubs.returned)
		return 0;
	return fde ? vf->stubs.returned[fde - vf->old.eh.fdes] : vf->stubs.returned_outside;
}

/* Return: false: the search ends. */
static bool take_step(struct search *s)
{
	s->exhausted = __atomic_fetch_add(s->all_steps, 1, __ATOMIC_RELAXED) >= s->max_steps;
	return !s->exhausted && s->steps++ <= MAX_STEPS;
}

/* Follow one path to its end; branches add paths. What is not understood reads all. */
static void follow(struct search *s, ZydisDecoder *decoder, struct way way)
{
	while (way.flags) {
		uint64_t avail = code_left(s->vf, way.at);
		const uint8_t *bytes = avail ? mp_elf_bytes(s->vf->o, way.at, avail) : NULL;
		ZydisDecodedInstruction z;
		struct vf_insn insn;

		if (!take_step(s) || !bytes || !vf_decode(bytes, avail, way.at, &insn) ||
		    ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder, NULL, bytes, avail, &z))) {
			s->read |= way.flags;
			return;
		}
		if (z.cpu_flags)
			s->read |= z.cpu_flags->tested & way.flags;
		way.flags &= ~overwritten(&z);
		switch (insn.kind) {
		case VF_ODD:
			if (!may_branch(&z)) {
				s->read |= way.flags;
				return;
			}
			go_on(s, insn.target, way.flags);
			break;
		case VF_JCC: go_on(s, insn.target, way.flags); break;
		/* Behind a call that reads flags, those count that the callee returns with. */
		case VF_CALL:
		case VF_JMP: go_on(s, insn.target, way.flags); return;
		case VF_OTHER: break;
		case VF_STOP:
			if (z.mnemonic == ZYDIS_MNEMONIC_RET)
				s->read |= way.flags & returned(s->vf, way.at);
			return;
		/* Code behind pointers, and targets of a switch, read no flags. */
		default: return;
		}
		way.at += insn.len;
	}
}

/* Return: those of @flags, set before @vaddr, that may be read from there on. */
static uint32_t search_from(struct search *s, uint64_t vaddr, uint32_t flags)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	s->ways[s->nr++] = (struct way){vaddr, flags};
	for (uint32_t i = 0; i < s->nr && !s->exhausted; i++)
		follow(s, &decoder, s->ways[i]);
	return s->read;
}

/* Return: those of @flags, set before @vaddr of the original, that may be read from there on. *@steps grows by the work. */
static uint32_t flags_read(const struct vf *vf, uint64_t vaddr, uint32_t flags, uint64_t *steps)
{
	struct search s = {.vf = vf, .all_steps = steps, .max_steps = UINT64_MAX};

	return search_from(&s, vaddr, flags);
}

int vf_make_flag_steps(const struct vf *vf)
{
	if (!vf_has_stubs(vf))
		return 0;
	vf->marks->flag_steps =
		calloc((size_t)vf->old.eh.nr_fdes + 1, sizeof(*vf->marks->flag_steps));
	return vf->marks->flag_steps ? 0 : -ENOMEM;
}

/* Return: bytes of the function; of all code if there is no FDE: such code counts as one function. */
static uint64_t function_size(const struct vf *vf, const struct vf_fde *fde)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < vf->old.nr_texts; i++)
		size += vf->old.texts[i].end - vf->old.texts[i].start;
	return fde ? fde->size : size;
}

int vf_check_flags(const struct vf *vf, const struct mp_map_piece *p, bool carry)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, p->old_vaddr);
	size_t function = fde ? (size_t)(fde - vf->old.eh.fdes) : vf->old.eh.nr_fdes;
	struct search s = {
		.vf = vf,
		.all_steps = &vf->marks->flag_steps[function],
		.max_steps = MORE_STEPS + STEPS_PER_BYTE * function_size(vf, fde),
	};

	if (!search_from(&s, p->old_vaddr, carry ? VF_FLAGS : VF_FLAGS & ~ZYDIS_CPUFLAG_CF))
		return 0;
	if (s.exhausted)
		return vf_refuse(vf, p->new_vaddr,
				 "whether code behind the stubs of this function reads flags "
				 "takes more than %llu steps to find out",
				 (unsigned long long)s.max_steps);
	return vf_refuse(vf, p->new_vaddr, "a stub changes flags that are read from %#llx on",
			 (unsigned long long)p->old_vaddr);
}

/* ---- code whose callers read flags that it left ---------------------------------------------- */

/* Limits of a search in code without unwind information. */
#define MARK_WAYS  64
#define MARK_STEPS 4096

struct marker {
	struct vf *vf;
	uint32_t *todo; /* FDEs with new marks */
	uint32_t nr_todo, max_todo;
	uint64_t steps;
	int ret;
};

static void mark_fde(struct marker *f, const struct vf_fde *fde, uint32_t flags)
{
	uint32_t i = (uint32_t)(fde - f->vf->old.eh.fdes);

	if (f->ret || !(flags & ~f->vf->stubs.returned[i]))
		return;
	f->vf->stubs.returned[i] |= flags;
	f->ret = mp_push(f->todo, f->nr_todo, f->max_todo, i);
}

/* Code at @at leaves @flags for a caller. Code without unwind information is followed to functions. */
static void mark(struct marker *f, uint64_t at, uint32_t flags)
{
	uint64_t ways[MARK_WAYS] = {at};
	uint32_t nr = 1, steps = 0;

	for (uint32_t i = 0; i < nr; i++) {
		bool goes_on = true;

		for (at = ways[i]; goes_on && steps < MARK_STEPS; steps++) {
			const struct vf_fde *fde = vf_eh_find(&f->vf->old.eh, at);
			uint64_t avail = code_left(f->vf, at);
			const uint8_t *bytes = avail ? mp_elf_bytes(f->vf->o, at, avail) : NULL;
			struct vf_insn insn;
			bool known = false;

			if (fde) {
				mark_fde(f, fde, flags);
				break;
			}
			if (!bytes || !vf_decode(bytes, avail, at, &insn))
				break;
			f->vf->stubs.returned_outside |= flags;
			goes_on = insn.kind != VF_JMP && insn.kind != VF_STOP &&
				  insn.kind != VF_IJMP_REG && insn.kind != VF_IJMP_MEM;
			for (uint32_t k = 0; insn.rel_size && k < nr; k++)
				known |= ways[k] == insn.target;
			if (insn.rel_size && !known && nr < MARK_WAYS)
				ways[nr++] = insn.target;
			at += insn.len;
		}
	}
}

/* Flags that are read behind each direct call in [@at, @end), and those that jumps out of it leave for a caller. */
static void look(struct marker *f, uint64_t at, uint64_t end, uint32_t left)
{
	const struct vf *vf = f->vf;

	for (at = vf_bits_next(&vf->old.grid, at, end); at < end && !f->ret;
	     at = vf_bits_next(&vf->old.grid, at + 1, end)) {
		const uint8_t *bytes = mp_elf_bytes(vf->o, at, end - at);
		struct vf_insn insn;
		uint32_t flags = 0;

		if (!bytes || !vf_decode(bytes, end - at, at, &insn))
			continue;
		if (insn.kind == VF_CALL)
			flags = flags_read(vf, at + insn.len, VF_FLAGS, &f->steps);
		else if (insn.kind == VF_JMP || insn.kind == VF_JCC)
			flags = left;
		if (flags)
			mark(f, insn.target, flags);
		if (f->steps / STEPS_PER_BYTE > vf->old.text_end - vf->old.text_start + MARK_STEPS)
			f->ret = vf_refuse(vf, at,
					   "what code does with flags takes too long to find");
	}
}

int vf_read_returned_flags(struct vf *vf)
{
	struct marker f = {.vf = vf};

	if (!vf->stubs.counters)
		return 0;
	vf->stubs.returned = calloc((size_t)vf->old.eh.nr_fdes + 1, sizeof(*vf->stubs.returned));
	if (!vf->stubs.returned)
		return -ENOMEM;
	for (uint32_t i = 0; i < vf->old.nr_texts; i++)
		look(&f, vf->old.texts[i].start, vf->old.texts[i].end, 0);
	/* There are six flags, so that an FDE is here six times at most. */
	while (f.nr_todo && !f.ret) {
		uint32_t i = f.todo[--f.nr_todo];
		const struct vf_fde *fde = &vf->old.eh.fdes[i];

		look(&f, fde->start, fde->start + fde->size, vf->stubs.returned[i]);
	}
	free(f.todo);
	return f.ret;
}
