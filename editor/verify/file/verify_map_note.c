// SPDX-License-Identifier: Apache-2.0
/*
 * verify_map_note - checks that the notes of the map have nothing else, and that the note of replaced calls is true:
 * collectors put frames into stacks by it. Called by verify.
 */
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/file/verify_map_note.h"
#include "editor/verify/read/verify_parts.h"
#include "libprof/note/map_calls.h"

static bool is_zero(const uint8_t *p, uint64_t len)
{
	while (len && !*p)
		p++, len--;
	return !len;
}

/* Return: the end of the note of this type at @at, with zeros up to its alignment; 0: it is none. */
static uint64_t end_of_note(const struct vf *vf, uint64_t at, uint32_t type)
{
	const uint8_t *p = vf->n->map_note + at;
	const uint64_t name = sizeof(Elf64_Nhdr),
		       desc = (name + sizeof(MP_MAP_NOTE_NAME) + 3) & ~3ULL;
	uint64_t room = vf->n->map_note_size - at, end, padded;
	Elf64_Nhdr nh;

	if (room < desc)
		return 0;
	memcpy(&nh, p, sizeof(nh));
	end = desc + nh.n_descsz;
	padded = (end + 3) & ~3ULL;
	if (nh.n_type != type || nh.n_namesz != sizeof(MP_MAP_NOTE_NAME) ||
	    memcmp(p + name, MP_MAP_NOTE_NAME, sizeof(MP_MAP_NOTE_NAME)) || padded > room ||
	    !is_zero(p + name + nh.n_namesz, desc - name - nh.n_namesz) ||
	    !is_zero(p + end, padded - end))
		return 0;
	return at + padded;
}

/* Outputs of earlier versions name no calls. If one is named, all are. */
static int check_calls(const struct vf *vf)
{
	const struct mp_map *map = vf->map;
	struct vf_inlined_code code;

	for (uint32_t i = 0; map->nr_calls && i < map->nr_pieces; i++) {
		const struct mp_map_call *call = mp_map_call_of_piece(map, i);
		const struct mp_map_piece *p = &map->pieces[i];
		uint32_t behind = vf->index.inlined[i].behind;

		if (!behind != !call)
			return vf_refuse(vf, p->new_vaddr,
					 call ? "the map says that a call was replaced here"
					      : "the map does not name the call that was replaced");
		if (!call)
			continue;
		if (i > call->first) {
			if (behind != vf->index.inlined[i - 1].behind)
				return vf_refuse(vf, p->new_vaddr,
						 "the map names one call for the code of two");
			continue;
		}
		if (!vf_inlined_code_at(vf, behind, &code) ||
		    call->back != code.call + VF_CALL_SIZE || call->callee != code.callee)
			return vf_refuse(
				vf, p->new_vaddr,
				"the map names a call of %#llx before %#llx instead of that at %#llx",
				(unsigned long long)call->callee, (unsigned long long)call->back,
				(unsigned long long)code.call);
	}
	return 0;
}

/* The checksums cover the contents; around them only note headers and zeros are allowed. */
int vf_check_map_note(const struct vf *vf)
{
	uint64_t end = end_of_note(vf, 0, MP_MAP_NOTE_TYPE);

	/* A second note without calls is not looked at by readers. */
	if (end && vf->map->nr_calls)
		end = end_of_note(vf, end, MP_MAP_CALLS_NOTE_TYPE);
	if (!end || end != vf->n->map_note_size)
		return vf_refuse(vf, vf->now.segment->p_vaddr,
				 "the map's note holds more than the map");
	vf_own(vf, mp_elf_section(vf->n, MP_MAP_SECTION)->off, end, ME_OWNER_MAP);
	return check_calls(vf);
}

struct vf_range vf_build_id(const struct mp_elf *elf)
{
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &elf->phdrs[i];
		uint64_t off = 0, align = ph->p_align == 8 ? 8 : 4;

		if (ph->p_type != PT_NOTE || ph->p_offset > elf->size ||
		    ph->p_filesz > elf->size - ph->p_offset)
			continue;
		while (ph->p_filesz - off >= sizeof(Elf64_Nhdr)) {
			uint64_t at = ph->p_offset + off, desc;
			Elf64_Nhdr nh;

			memcpy(&nh, elf->data + at, sizeof(nh));
			desc = (sizeof(nh) + nh.n_namesz + align - 1) & ~(align - 1);
			off += (desc + nh.n_descsz + align - 1) & ~(align - 1);
			if (off > ph->p_filesz)
				break;
			if (nh.n_type == NT_GNU_BUILD_ID && nh.n_namesz == 4 &&
			    nh.n_descsz <= MP_BUILD_ID_MAX &&
			    !memcmp(elf->data + at + sizeof(nh), "GNU", 4))
				return (struct vf_range){at + desc, at + desc + nh.n_descsz};
		}
	}
	return (struct vf_range){0, 0};
}
