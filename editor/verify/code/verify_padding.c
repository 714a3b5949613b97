// SPDX-License-Identifier: Apache-2.0
/*
 * verify_padding - decides whether the jump over a small function may reach into the padding behind
 * it. The bytes must be nobody's: control cannot run into them, nothing leads to them or names them,
 * and they are what compilers put between functions. verify_diff asks for each such patch.
 */
#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/code/verify_padding.h"

/* Compilers align functions to 16 bytes at least, and to lines of 64 bytes at most. */
#define VF_ALIGNMENT   16u
#define VF_PADDING_MAX 63u

/* A trap is no end here: a signal handler may go on behind it. */
static bool ends_for_good(const struct vf_insn *insn, const uint8_t *bytes)
{
	uint8_t op = bytes[bytes[0] == 0xf2 || bytes[0] == 0xf3 ? 1 : 0];

	return insn->kind == VF_JMP || insn->kind == VF_IJMP_REG || insn->kind == VF_IJMP_MEM ||
	       (insn->kind == VF_STOP && (op == 0xc3 || op == 0xc2));
}

/* Is the function one run of plain instructions, whose last one leaves it? */
static bool is_straight(const struct vf *vf, const struct vf_fde *fde)
{
	const uint8_t *bytes = mp_elf_bytes(vf->o, fde->start, fde->size);
	struct vf_insn insn;
	uint64_t at = 0;

	while (bytes && at < fde->size) {
		if (!vf_decode(bytes + at, fde->size - at, fde->start + at, &insn))
			return false;
		if (at + insn.len == fde->size)
			return ends_for_good(&insn, bytes + at);
		if (insn.kind != VF_OTHER || insn.rel_size || insn.int3)
			return false;
		at += insn.len;
	}
	return false;
}

/* Are all bytes in [@from, @end) no-ops and int3? */
static bool is_filled(const struct vf *vf, uint64_t from, uint64_t end)
{
	const uint8_t *bytes = mp_elf_bytes(vf->o, from, end - from);
	struct vf_insn insn;
	uint64_t at = from;

	while (bytes && at < end) {
		if (!vf_decode(bytes + (at - from), end - at, at, &insn) ||
		    !(insn.nop || insn.int3))
			return false;
		at += insn.len;
	}
	return bytes != NULL;
}

bool vf_patch_may_reach(const struct vf *vf, const struct vf_fde *fde, uint64_t at, uint64_t end)
{
	const struct mp_section *sec = mp_elf_section_at(vf->o, fde->start);
	uint64_t from = fde->start + fde->size, stop;
	uint32_t nr_relocs;

	if (fde + 1 == vf->old.eh.fdes + vf->old.eh.nr_fdes || !sec)
		return false;
	stop = fde[1].start;
	if (end <= from || stop < end || stop - from > VF_PADDING_MAX || stop % VF_ALIGNMENT ||
	    stop - sec->vaddr > sec->size || !is_straight(vf, fde) || !is_filled(vf, from, stop))
		return false;
	mp_elf_relocs_in(vf->o, from, stop, &nr_relocs);
	return !nr_relocs && vf_bits_next(&vf->old.target, at + 1, stop) >= stop &&
	       vf_bits_next(&vf->old.data_ref, from, stop) >= stop;
}
