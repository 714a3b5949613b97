// SPDX-License-Identifier: Apache-2.0
/* plt_stub - reads bytes only; no section has to be named .plt. */
#include "editor/evidence/plt_stub.h"

#include <string.h>

#include "libprof/base/search.h"
#include "libprof/insn/insn.h"

/* endbr64, bnd, and a jump of 6 bytes */
#define STUB_MAX 11

enum {
	CALL = 0xe8,
	JUMP = 0xe9,
	FIELD = 8, /* the largest that the loader relocates */
};

/* Does the loader write to a field that covers one of these bytes? */
static bool is_relocated(const struct mp_elf *elf, uint64_t start, uint64_t end)
{
	uint32_t lo =
		mp_search(i, 0, elf->nr_dyn_relocs, elf->dyn_relocs[i].vaddr + FIELD <= start);

	return lo < elf->nr_dyn_relocs && elf->dyn_relocs[lo].vaddr < end;
}

uint64_t me_plt_stub_slot(const struct mp_elf *elf, uint64_t vaddr)
{
	uint64_t at = vaddr;
	struct mp_insn insn;
	const uint8_t *first = mp_elf_bytes(elf, vaddr, 1);

	/* Most calls lead to functions: decode nothing of these. */
	if (!first || (*first != 0xf3 && *first != 0xf2 && *first != 0xff))
		return 0;
	for (int i = 0; i < 2; i++, at += insn.len) {
		const uint8_t *bytes = NULL;
		uint64_t avail = vaddr + STUB_MAX - at;

		while (avail && !(bytes = mp_elf_bytes(elf, at, avail)))
			avail--;
		if (!bytes || mp_insn_decode(bytes, avail, at, &insn))
			return 0;
		if (insn.endbr64 && i == 0)
			continue;
		if (insn.kind != MP_INSN_IJUMP || !insn.rip_relative || insn.notrack ||
		    insn.len != ME_SLOT_BRANCH_SIZE + insn.bnd ||
		    memcmp(bytes + insn.bnd, "\xff\x25", 2) != 0)
			return 0;
		if (!mp_elf_is_code(elf, vaddr) || !mp_elf_is_readonly(elf, vaddr) ||
		    !mp_elf_is_readonly(elf, at + insn.len - 1) ||
		    is_relocated(elf, vaddr, at + insn.len))
			return 0;
		return insn.target;
	}
	return 0;
}

uint64_t me_plt_branch_slot(const struct mp_elf *elf, uint64_t vaddr, bool jump)
{
	const uint8_t *bytes = mp_elf_bytes(elf, vaddr, ME_PLT_BRANCH_SIZE);
	struct mp_insn insn;

	if (!bytes || bytes[0] != (jump ? JUMP : CALL) ||
	    mp_insn_decode(bytes, ME_PLT_BRANCH_SIZE, vaddr, &insn) ||
	    insn.target == vaddr + ME_PLT_BRANCH_SIZE)
		return 0;
	return me_plt_stub_slot(elf, insn.target);
}
