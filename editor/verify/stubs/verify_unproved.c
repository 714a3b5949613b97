// SPDX-License-Identifier: Apache-2.0
/*
 * verify_unproved - registers that stubs set and that are not proved dead: which stubs, and the refusal of all of them
 * together.
 */
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/stubs/verify_free_registers.h"
#include "editor/verify/stubs/verify_unproved.h"

int vf_check_dead(const struct vf *vf, const struct mp_map_piece *p, unsigned int reg)
{
	int is_dead = vf_register_is_dead(vf, p->old_vaddr, reg);

	/* One thread alone checks a piece, so no lock is needed. */
	if (!is_dead)
		vf->marks->unproved[p - vf->map->pieces] |= (uint16_t)(1u << reg);
	return is_dead < 0 ? is_dead : 0;
}

void vf_note_unproved(const struct vf *vf, uint64_t old_vaddr, uint16_t registers)
{
	struct me_verify_report *r = &vf->result->report;
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, old_vaddr);
	uint64_t start = fde ? fde->start : old_vaddr;

	for (uint32_t i = 0; i < r->nr_unproved; i++)
		if (r->unproved[i].start == start) {
			r->unproved[i].registers |= registers;
			return;
		}
	if (r->nr_unproved < ME_MAX_UNPROVED)
		r->unproved[r->nr_unproved++] = (struct me_unproved){start, registers};
}

int vf_check_unproved(const struct vf *vf)
{
	const struct mp_map_piece *first = NULL;

	for (uint32_t i = 0; vf->marks->unproved && i < vf->map->nr_pieces; i++) {
		if (!vf->marks->unproved[i])
			continue;
		first = first ? first : &vf->map->pieces[i];
		vf_note_unproved(vf, vf->map->pieces[i].old_vaddr, vf->marks->unproved[i]);
	}
	return first ? vf_refuse(vf, first->new_vaddr,
				 "a stub sets a register that is read from %#llx on",
				 (unsigned long long)first->old_vaddr)
		     : 0;
}
