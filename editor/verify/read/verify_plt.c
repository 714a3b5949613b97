// SPDX-License-Identifier: Apache-2.0
/*
 * verify_plt - proves that a call or jump of a copy goes through the slot of the PLT stub that the
 * original's call or jump leads to. Called by verify_pieces and verify_unwind.
 *
 * The rule: the original has a plain `call stub` or `jmp stub` of 5 bytes. At the stub, it has
 * `[endbr64] [bnd] jmp *slot(%rip)`, in code that neither the program nor the loader writes to.
 * The copy has `call *slot(%rip)` or `jmp *slot(%rip)` of 6 bytes, for the same slot. Both ways
 * load the same word at the same time and leave the same registers, flags and stack, except for
 * the return address, which is that of the copy as for any other call.
 */
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/read/verify_piece_index.h"
#include "editor/verify/read/verify_plt.h"
#include "libprof/base/search.h"

enum {
	DIRECT_SIZE = 5,
	FIELD_MAX = 8, /* the largest field that the loader relocates */
};

/* Does the loader relocate one of these bytes? */
static bool is_relocated(const struct vf *vf, uint64_t start, uint64_t end)
{
	uint32_t lo = mp_search(i, 0, vf->o->nr_dyn_relocs,
				vf->o->dyn_relocs[i].vaddr + FIELD_MAX <= start);

	return lo < vf->o->nr_dyn_relocs && vf->o->dyn_relocs[lo].vaddr < end;
}

/* Are bytes [@at, @at + @size) of the original @want? */
static bool has_bytes(const struct vf *vf, uint64_t at, const char *want, size_t size)
{
	const uint8_t *bytes = mp_elf_bytes(vf->o, at, size);

	return bytes && !memcmp(bytes, want, size);
}

uint64_t vf_stub_slot(const struct vf *vf, uint64_t stub)
{
	uint64_t at = stub, end;
	const uint8_t *field;

	if (has_bytes(vf, at, "\xf3\x0f\x1e\xfa", 4))
		at += 4;
	if (has_bytes(vf, at, "\xf2", 1))
		at++;
	if (!has_bytes(vf, at, "\xff\x25", 2))
		return 0;
	end = at + VF_SLOT_BRANCH;
	field = mp_elf_bytes(vf->o, at + 2, 4);
	/* These are bytes of one segment. */
	if (!vf_is_text(vf, stub) || !vf_is_text(vf, end - 1) || !mp_elf_is_readonly(vf->o, stub) ||
	    !mp_elf_is_readonly(vf->o, end - 1))
		return 0;
	return field && !is_relocated(vf, stub, end) ? vf_displacement_target(field, end) : 0;
}

bool vf_is_via_slot(const struct vf *vf, const struct mp_map_piece *p, uint64_t k)
{
	uint64_t from = p->old_vaddr + k, at = p->new_vaddr + k, to, slot;
	const uint8_t *old, *new;
	bool call;

	/* An output with stubs of its own keeps all calls, unless it only has a meter. */
	if ((vf->stubs.counters && !vf->stubs.meter_section) || vf->stubs.path_section ||
	    vf->stubs.audit_section || p->old_size != k + DIRECT_SIZE ||
	    p->new_size < k + VF_SLOT_BRANCH)
		return false;
	old = mp_elf_bytes(vf->o, from, DIRECT_SIZE);
	new = mp_elf_bytes(vf->n, at, VF_SLOT_BRANCH);
	if (!old || !new || (old[0] != 0xe8 && old[0] != 0xe9))
		return false;
	call = old[0] == 0xe8;
	if (new[0] != 0xff || new[1] != (call ? 0x15 : 0x25) ||
	    (!call && p->new_size != k + VF_SLOT_BRANCH))
		return false;
	to = vf_displacement_target(old + 1, from + DIRECT_SIZE);
	slot = to != from + DIRECT_SIZE ? vf_stub_slot(vf, to) : 0;
	return slot && slot == vf_displacement_target(new + 2, at + VF_SLOT_BRANCH);
}

uint8_t vf_calls_instead(const struct vf *vf, const struct mp_map_piece *p, uint64_t k,
			 uint64_t jump)
{
	uint64_t at = p->new_vaddr + k, left = p->old_vaddr + p->old_size - jump, to;
	const uint8_t *new = k < p->new_size ? mp_elf_bytes(vf->n, at, p->new_size - k) : NULL;
	const uint8_t *old = mp_elf_bytes(vf->o, jump, left);
	struct vf_insn insn;

	if (!new || !old || !vf_decode(old, left, jump, &insn))
		return 0;
	to = insn.target;
	if (vf_decode(new, p->new_size - k, at, &insn) && insn.kind == VF_CALL &&
	    insn.len == DIRECT_SIZE)
		return vf_same_place(vf, to, insn.target) ? DIRECT_SIZE : 0;
	if (p->new_size - k < VF_SLOT_BRANCH || new[0] != 0xff || new[1] != 0x15)
		return 0;
	at += VF_SLOT_BRANCH;
	return vf_stub_slot(vf, to) && vf_stub_slot(vf, to) == vf_displacement_target(new + 2, at)
		       ? VF_SLOT_BRANCH
		       : 0;
}

bool vf_is_slot_call(const struct vf *vf, const struct mp_map_piece *p, uint64_t k)
{
	const uint8_t *old = mp_elf_bytes(vf->o, p->old_vaddr + k, 1);

	return old && *old == 0xe8 && vf_is_via_slot(vf, p, k);
}
