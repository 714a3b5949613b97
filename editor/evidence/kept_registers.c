// SPDX-License-Identifier: Apache-2.0
/*
 * kept_registers - do called functions give callee-saved registers back? Compilers' functions do;
 * hand-written ones may change a register that only their callers save.
 *
 * An instruction may change a register only where the unwind row says that it is saved. What a call leads to
 * is asked in turn for the registers that are not saved at the call. Each FDE is asked once.
 */
#include <stdlib.h>

#include "editor/base/grow.h"
#include "editor/evidence/saves_private.h"
#include "editor/unwind/unwind.h"
#include "libprof/insn/insn.h"

#define ALL ((1u << ME_NR_CALLEE_SAVED) - 1)

struct asked {
	uint32_t fde;
	uint8_t set; /* registers that the caller needs */
};

struct me_kept_registers {
	const struct mp_cfg *cfg;
	uint8_t *kept;	  /* per FDE: registers that its code, and what it calls, give back */
	uint8_t *changed; /* per FDE: those that some of this code changes */
	uint8_t *seen;	  /* per FDE: asked in this search */
	struct asked *list;
	uint32_t nr, cap;
};

struct me_kept_registers *me_kept_registers_new(const struct mp_cfg *cfg)
{
	struct me_kept_registers *k = calloc(1, sizeof(*k));
	size_t nr = (size_t)cfg->elf->nr_fdes + 1;

	if (!k)
		return NULL;
	k->cfg = cfg;
	k->kept = calloc(nr, 1);
	k->changed = calloc(nr, 1);
	k->seen = calloc(nr, 1);
	if (!k->kept || !k->changed || !k->seen) {
		me_kept_registers_free(k);
		return NULL;
	}
	return k;
}

void me_kept_registers_free(struct me_kept_registers *k)
{
	if (!k)
		return;
	free(k->kept);
	free(k->changed);
	free(k->seen);
	free(k->list);
	free(k);
}

/* Return: the index of the FDE that holds @vaddr; MP_NONE: none. */
static uint32_t fde_at(const struct mp_elf *elf, uint64_t vaddr)
{
	uint32_t lo = 0, hi = elf->nr_fdes;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (elf->fdes[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && vaddr - elf->fdes[lo - 1].start < elf->fdes[lo - 1].size ? lo - 1 : MP_NONE;
}

/* Does code that control arrives at only jump through memory, as a PLT stub does? */
static bool jumps_on(const struct mp_elf *elf, uint64_t vaddr)
{
	struct mp_insn insn = {0};

	do {
		const uint8_t *bytes = mp_elf_bytes(elf, vaddr += insn.len, 1);
		const struct mp_section *sec = bytes ? mp_elf_section_at(elf, vaddr) : NULL;
		uint64_t avail = sec ? sec->vaddr + sec->size - vaddr : 0;

		if (!avail || mp_insn_decode(bytes, avail, vaddr, &insn))
			return false;
	} while (insn.endbr64);
	return insn.kind == MP_INSN_IJUMP && insn.rip_relative;
}

/* Asks for @set behind control's way to @target. Return: the registers that are changed for sure, or may be. */
static uint8_t ask(struct me_kept_registers *k, uint64_t target, uint8_t set)
{
	const struct mp_elf *elf = k->cfg->elf;
	uint32_t fde = fde_at(elf, target);

	if (jumps_on(elf, target))
		return 0;
	if (fde == MP_NONE)
		return set;
	set &= (uint8_t) ~(k->kept[fde] | k->seen[fde]);
	if (!set)
		return 0;
	if (!me_grow(&k->list, &k->cap, k->nr + 1, sizeof(*k->list)))
		return set;
	k->seen[fde] |= set;
	k->list[k->nr++] = (struct asked){fde, set};
	return 0;
}

/* Return: those of @set that the code of one FDE changes. Asks for what it calls. */
static uint8_t read_fde(struct me_kept_registers *k, uint32_t index, uint8_t set)
{
	const struct mp_elf *elf = k->cfg->elf;
	const struct mp_fde *fde = &elf->fdes[index];
	const uint8_t *bytes = mp_elf_bytes(elf, fde->start, fde->size);
	struct me_stack_rows *rows = bytes ? me_stack_rows_of_fde(elf, fde) : NULL;
	uint8_t changed = rows ? 0 : set;
	struct me_save_decoded d;

	for (uint64_t off = 0; rows && off < fde->size; off += d.z.length) {
		uint64_t vaddr = fde->start + off;
		uint8_t open = 0, writes;
		struct mp_insn insn;

		if (!me_save_decode(bytes + off, fde->size - off, &d) ||
		    mp_insn_decode(bytes + off, fde->size - off, vaddr, &insn)) {
			changed = set;
			break;
		}
		writes = me_save_writes(&d);
		if (!writes && insn.kind != MP_INSN_CALL && insn.kind != MP_INSN_JUMP &&
		    insn.kind != MP_INSN_COND)
			continue;
		for (int i = 0; i < ME_NR_CALLEE_SAVED; i++)
			if (set >> i & 1 &&
			    me_stack_rows_saved(rows, vaddr, me_callee_saved[i].row) <= 0)
				open |= (uint8_t)(1u << i);
		changed |= writes & open;
		if (insn.kind != MP_INSN_OTHER && insn.disp_size && open &&
		    insn.target - fde->start >= fde->size)
			changed |= ask(k, insn.target, open);
	}
	me_stack_rows_free(rows);
	return changed;
}

uint8_t me_kept_registers_changed(struct me_kept_registers *k, uint64_t target)
{
	uint32_t root = fde_at(k->cfg->elf, target);
	uint8_t changed;

	if (root != MP_NONE && (k->kept[root] | k->changed[root]) == ALL)
		return k->changed[root];
	k->nr = 0;
	changed = ask(k, target, ALL);
	for (uint32_t i = 0; i < k->nr; i++)
		changed |= read_fde(k, k->list[i].fde, k->list[i].set);
	for (uint32_t i = 0; i < k->nr; i++) {
		k->kept[k->list[i].fde] |= k->list[i].set & (uint8_t)~changed;
		k->seen[k->list[i].fde] = 0;
	}
	if (root != MP_NONE)
		k->changed[root] |= changed & ALL & (uint8_t)~k->kept[root];
	return changed;
}
