// SPDX-License-Identifier: Apache-2.0
/*
 * verify_refuse - the form of a refusal's message, and which function has to stay so that the refused difference is
 * gone. All parts of verify refuse by this file.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_refuse.h"

/* Runs once for each of the few refused functions, so a walk over all symbols is fast enough. */
static const struct mp_symbol *symbol_at(const struct mp_elf *elf, uint64_t vaddr)
{
	const struct mp_symbol *best = NULL;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];

		if (sym->type != STT_FUNC || sym->shndx == SHN_UNDEF || sym->vaddr > vaddr)
			continue;
		if (vaddr - sym->vaddr >= (sym->size ? sym->size : 1))
			continue;
		if (!best || sym->vaddr > best->vaddr)
			best = sym;
	}
	return best;
}

/*
 * Which function has to stay so that the difference at @vaddr is gone? An address in the new segment
 * belongs to a copy, one in data to a table that an operand names.
 * Return: an address in the original's function; 0: not known.
 */
static uint64_t blamed(const struct vf *vf, uint64_t vaddr)
{
	const struct mp_map_piece *p = vf->map ? vf->map->pieces : NULL;
	size_t ref;

	if (!vaddr || vf->program)
		return 0;
	if (vf_is_text(vf, vaddr))
		return vaddr;
	if (vf->now.segment && p && vaddr >= vf->now.segment->p_vaddr) {
		uint32_t i = vf_first_piece(vf, vaddr);

		if (i == vf->map->nr_pieces || p[i].new_vaddr > vaddr)
			i = i ? i - 1 : i;
		return i < vf->map->nr_pieces && vaddr >= p[i].new_vaddr &&
				       vaddr - p[i].new_vaddr <= p[i].new_size
			       ? p[i].old_vaddr
			       : 0;
	}
	/* The scan sorts the references. */
	ref = vf->now.eh.nr_fdes ? vf_first_ref(vf, vaddr + 1) : 0;
	return ref ? vf->old.refs.list[ref - 1].insn : 0;
}

/* Is the function at @vaddr of the original refused already? */
static bool is_refused(const struct vf *vf, uint64_t vaddr)
{
	const struct vf_fde *fde;
	uint64_t start;

	/* While the FDEs are read, no function is refused. */
	if (!vaddr || !vf->refusals->nr)
		return false;
	fde = vf_eh_find(&vf->old.eh, vaddr);
	start = fde ? fde->start : vaddr;
	for (uint32_t i = 0; i < vf->refusals->nr; i++)
		if (vf->refusals->list[i].what.vaddr == start)
			return true;
	return false;
}

int vf_refuse(const struct vf *vf, uint64_t vaddr, const char *fmt, ...)
{
	const struct mp_symbol *sym;
	char what[160];
	va_list ap;

	vf->refusals->blamed = blamed(vf, vaddr);
	if (is_refused(vf, vf->refusals->blamed))
		return -EBADMSG;
	sym = symbol_at(vf->o, vaddr);
	if (!sym)
		sym = symbol_at(vf->n, vaddr);
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (sym && sym->name)
		mp_err_set(vf->err, EBADMSG, "verify: at %#llx (%.48s+%#llx): %s",
			   (unsigned long long)vaddr, sym->name,
			   (unsigned long long)(vaddr - sym->vaddr), what);
	else
		mp_err_set(vf->err, EBADMSG, "verify: at %#llx: %s", (unsigned long long)vaddr,
			   what);
	return -EBADMSG;
}
