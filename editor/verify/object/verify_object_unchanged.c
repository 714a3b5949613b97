// SPDX-License-Identifier: Apache-2.0
/*
 * verify_object_unchanged - sections of code that are as they were: their bytes are the same, and all
 * fields that a linker fills in lead to the same things. Code without unwind information, data
 * among code, and sections that run by their names must be in such sections.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/object/verify_object_private.h"

static bool is_text(const char *name)
{
	return !strcmp(name, ".text") || !strncmp(name, ".text.", 6);
}

static bool same_fields(const struct mp_relobj_section *a, const struct mp_relobj_section *b)
{
	if (a->header.sh_size != b->header.sh_size || a->nr_relocs != b->nr_relocs ||
	    (a->data && memcmp(a->data, b->data, a->header.sh_size)))
		return false;
	for (uint32_t i = 0; i < a->nr_relocs; i++)
		if (a->relocs[i].r_offset != b->relocs[i].r_offset ||
		    ELF64_R_TYPE(a->relocs[i].r_info) != ELF64_R_TYPE(b->relocs[i].r_info))
			return false;
	return true;
}

static int compare_field(struct vo *vo, uint32_t section, const struct vo_insn *insn,
			 const Elf64_Rela *x, const Elf64_Rela *y)
{
	int64_t bias = (int64_t)(insn->at + insn->len - x->r_offset);
	struct vo_ref old = vo_ref_of(&vo->old, x, bias), new = vo_ref_of(&vo->new, y, bias);
	uint32_t type = ELF64_R_TYPE(x->r_info);
	bool known = vo_fills_field(insn, x, insn->at) ||
		     (type != R_X86_64_PC32 && type != R_X86_64_PLT32);

	if (vo_same_symbol(vo, x, y))
		return 0;
	if (!old.code || !new.code || !known)
		return vo_refuse(vo, &vo->old, section, x->r_offset,
				 "refers to something else in the new object");
	return vo_expect(vo, old.place, new.place, !vo_branches(insn));
}

static int compare_fields(struct vo *vo, uint32_t index)
{
	const struct mp_relobj_section *a = &vo->old.obj->sections[index];
	const struct mp_relobj_section *b = &vo->new.obj->sections[index];
	struct vo_insn insn = {0};
	uint32_t r = 0;
	int rc = 0;

	for (uint64_t off = 0; !rc && r < a->nr_relocs; off += insn.len) {
		if (!vo_decode(a->data + off, a->header.sh_size - off, off, &insn))
			return vo_refuse(vo, &vo->old, index, off, "is no instruction");
		for (; !rc && r < a->nr_relocs && a->relocs[r].r_offset < off + insn.len; r++)
			rc = compare_field(vo, index, &insn, &a->relocs[r], &b->relocs[r]);
	}
	return rc;
}

int vo_unchanged(struct vo *vo)
{
	const struct mp_relobj *old = vo->old.obj, *new = vo->new.obj;
	int rc = 0;

	vo->unchanged = calloc(old->nr_sections, sizeof(*vo->unchanged));
	if (!vo->unchanged)
		return -ENOMEM;
	for (uint32_t i = 1; !rc && i < new->nr_sections; i++) {
		const struct mp_relobj_section *a = &old->sections[i], *b = &new->sections[i];
		bool same;

		if (!mp_relobj_is_code(b))
			continue;
		same = i < old->nr_sections && !strcmp(a->name, b->name) && same_fields(a, b);
		/* Linkers put code of other names where it runs by its place alone, as in .init. */
		if (!is_text(b->name) || (i < old->nr_sections && !is_text(a->name))) {
			if (!same || a->header.sh_addralign != b->header.sh_addralign)
				return vo_refuse(vo, &vo->new, i, 0, "is another section");
		}
		if (i >= old->nr_sections)
			continue;
		vo->unchanged[i] = same;
		if (same)
			rc = compare_fields(vo, i);
	}
	return rc;
}
