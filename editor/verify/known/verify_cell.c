// SPDX-License-Identifier: Apache-2.0
/*
 * verify_cell - what the loader puts into a cell of the original, and which code an operand leads to by it.
 */
#include "editor/verify/base/verify_context.h"
#include "editor/verify/known/verify_cell.h"

uint64_t vf_loaded(const struct vf *vf, uint64_t cell, const char **name)
{
	const struct mp_reloc *rel = mp_elf_dyn_reloc_at(vf->o, cell);

	switch (rel ? rel->type : R_X86_64_NONE) {
	case R_X86_64_RELATIVE: return (uint64_t)rel->addend;
	case R_X86_64_IRELATIVE: *name = "memcmp"; return 0;
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT: break;
	default: return 0;
	}
	if (rel->sym && rel->sym_shndx != SHN_UNDEF)
		return rel->sym_value + (uint64_t)rel->addend;
	if (rel->sym < vf->o->nr_symbols - vf->old.first_dynamic)
		*name = vf->o->symbols[vf->old.first_dynamic + rel->sym].name;
	return 0;
}

uint64_t vf_named_code(const struct vf *vf, const struct vf_ref *name)
{
	const char *ignored;
	uint64_t to = vf_is_text(vf, name->to) ? name->to : vf_loaded(vf, name->to, &ignored);

	return vf_is_text(vf, to) ? to : 0;
}
