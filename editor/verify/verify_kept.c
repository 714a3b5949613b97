// SPDX-License-Identifier: Apache-2.0
/*
 * verify_kept - proves that code which is called gives registers back that only its caller's caller expects. The
 * original saves such registers around the call; a copy may not.
 *
 * An instruction may change a register only where its unwind row says that the register is saved. Code that is
 * called, or jumped to, where a register is not saved is asked in turn. Calls through pointers and slots follow the
 * ABI, as verify.md assumes.
 */
#include <errno.h>

#include "editor/verify/verify_private.h"

/* Is @at a PLT stub, or other code that only jumps through memory? */
static bool jumps_on(const struct vf *vf, uint64_t at)
{
	static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *b = mp_elf_bytes(vf->o, at, sizeof(landing));

	if (b && !memcmp(b, landing, sizeof(landing)))
		at += sizeof(landing);
	b = mp_elf_bytes(vf->o, at, 7);
	return b &&
	       ((b[0] == 0xff && b[1] == 0x25) || (b[0] == 0xf2 && b[1] == 0xff && b[2] == 0x25));
}

void vf_ask_kept(const struct vf *vf, uint64_t target, uint8_t set)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old_eh, target);
	size_t i = fde ? (size_t)(fde - vf->old_eh.fdes) : vf->old_eh.nr_fdes;

	if (!jumps_on(vf, target))
		__atomic_fetch_or(&vf->marks->kept[i], set, __ATOMIC_RELAXED);
}

/* Those of @set that are not saved at @at. */
static uint8_t open_at(const struct vf_rows *rows, uint64_t at, uint8_t set)
{
	const struct vf_row *row = vf_rows_at(rows, at);

	for (int i = 0; row && i < VF_NR_SAVED; i++)
		if (row->reg[vf_saved_row(i)].kind == VF_RULE_OFFSET)
			set &= (uint8_t) ~(1u << i);
	return set;
}

static int check_fde(const struct vf *vf, const struct vf_fde *fde, uint8_t set)
{
	struct vf_rows rows = {0};
	uint64_t end = fde->start + fde->size;
	int ret = vf_rows_build(&vf->old_eh, fde, &rows);
	struct vf_full f;

	if (ret == -EBADMSG)
		ret = vf_refuse(vf, fde->start,
				"unwind information of a called function is unreadable");
	for (uint64_t at = fde->start; !ret && at < end; at += f.z.length) {
		struct vf_insn insn;
		uint8_t open;

		if (!vf_decode_full(vf, at, end, &f) ||
		    !vf_decode(mp_elf_bytes(vf->o, at, end - at), end - at, at, &insn)) {
			ret = vf_refuse(vf, at, "a called function is undecodable");
			break;
		}
		open = open_at(&rows, at, set);
		if (vf_saved_writes(&f) & open)
			ret = vf_refuse(
				vf, at,
				"changes a register that the caller of a copy has not saved");
		else if (open &&
			 (insn.kind == VF_CALL || insn.kind == VF_JMP || insn.kind == VF_JCC) &&
			 (insn.target < fde->start || insn.target >= end))
			vf_ask_kept(vf, insn.target, open);
	}
	free(rows.row);
	return ret;
}

int vf_check_kept(const struct vf *vf)
{
	uint32_t nr = vf->old_eh.nr_fdes;
	uint8_t *done = calloc((size_t)nr + 1, 1);
	bool more = true;
	int ret = done ? 0 : -ENOMEM;

	while (!ret && more) {
		more = false;
		for (uint32_t i = 0; !ret && i < nr; i++) {
			uint8_t set = vf->marks->kept[i] & (uint8_t)~done[i];

			if (!set)
				continue;
			done[i] |= set;
			more = true;
			ret = check_fde(vf, &vf->old_eh.fdes[i], set);
		}
		if (!ret && vf->marks->kept[nr])
			ret = vf_refuse(vf, 0,
					"a copy with unsaved registers calls code without an FDE");
	}
	free(done);
	return ret;
}
