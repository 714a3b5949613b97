// SPDX-License-Identifier: Apache-2.0
/*
 * offset_base - finds the base of offsets in data by the code that names addresses near them.
 * Called by pointer. verify finds the same by its own means.
 */
#include "editor/evidence/offset_base.h"

#include <stdlib.h>

#include "libprof/base/search.h"

static int compare_named(const void *a, const void *b)
{
	const struct me_named *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* Collect all addresses that code names by relocations. An immediate may follow a displacement. */
static void collect_named(struct me_offsets *offsets)
{
	static const uint8_t ends[] = {4, 5, 6, 8};
	const struct mp_elf *elf = offsets->cfg->elf;

	offsets->named = malloc((4 * (size_t)elf->nr_relocs + 1) * sizeof(*offsets->named));
	for (uint32_t i = 0; offsets->named && i < elf->nr_relocs; i++) {
		const struct mp_reloc *r = &elf->relocs[i];
		uint64_t to = r->sym_value + r->addend;
		bool relative = r->type != R_X86_64_64 && r->type != R_X86_64_32 &&
				r->type != R_X86_64_32S;

		if (!mp_elf_is_code(elf, r->vaddr))
			continue;
		for (size_t k = 0; k < (relative ? sizeof(ends) : 1); k++)
			offsets->named[offsets->nr_named++] =
				(struct me_named){relative ? to + ends[k] : to, r->vaddr};
	}
	if (offsets->nr_named)
		qsort(offsets->named, offsets->nr_named, sizeof(*offsets->named), compare_named);
}

void me_offsets_fini(struct me_offsets *offsets)
{
	free(offsets->named);
	*offsets = (struct me_offsets){0};
}

static size_t named_lower_bound(const struct me_offsets *offsets, uint64_t vaddr)
{
	return mp_search(i, 0, offsets->nr_named, offsets->named[i].vaddr < vaddr);
}

static bool jumps_indirectly(const struct mp_cfg *cfg, uint32_t func)
{
	const struct mp_func *fn = &cfg->funcs[func];

	for (uint32_t b = fn->first_block; b < fn->first_block + fn->nr_blocks; b++)
		if (cfg->blocks[b].term == MP_TERM_UNRESOLVED ||
		    cfg->blocks[b].term == MP_TERM_TABLE)
			return true;
	return false;
}

/* Does only one function name @base, and does it jump indirectly? Then @base starts a switch's
 * table, though the jump was not understood. */
static bool is_switch_base(const struct me_offsets *offsets, uint64_t base)
{
	size_t i = named_lower_bound(offsets, base);
	uint32_t user = MP_NONE;

	for (; i < offsets->nr_named && offsets->named[i].vaddr == base; i++) {
		uint32_t func = mp_cfg_func_at(offsets->cfg, offsets->named[i].site);

		if (func == MP_NONE || (user != MP_NONE && func != user))
			return false;
		user = func;
	}
	return user != MP_NONE && jumps_indirectly(offsets->cfg, user);
}

uint64_t me_offset_base(struct me_offsets *offsets, uint64_t vaddr)
{
	size_t i;

	if (!offsets->named)
		collect_named(offsets);
	i = named_lower_bound(offsets, vaddr);
	if (i < offsets->nr_named && offsets->named[i].vaddr == vaddr)
		offsets->run_base = vaddr;
	else if (vaddr != offsets->run_next)
		offsets->run_base = 0;
	offsets->run_next = vaddr + 4;
	if (offsets->run_base && offsets->run_base != offsets->asked) {
		offsets->asked = offsets->run_base;
		offsets->is_switch = is_switch_base(offsets, offsets->run_base);
	}
	return offsets->run_base && offsets->is_switch ? offsets->run_base : 0;
}
