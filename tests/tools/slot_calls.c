// SPDX-License-Identifier: Apache-2.0
/*
 * slot_calls - says how many calls and jumps through slots (of the GOT) arrive in the file itself. For
 * scripts/bench/bench-small-rewrites.
 *
 *	slot-calls FILE EDGES
 *
 * EDGES: exact counts of FILE (tests/plugin/branches.c, edges=). Prints lines `NAME COUNT`, executions:
 *  transfers		all
 *  elsewhere		through a slot, to another file
 *  fixed		to this file, and the loader has no choice: the symbol is the program's own, protected,
 *			or of a file that binds its own symbols (DT_SYMBOLIC), or the slot has no symbol
 *  interposable	to this file; another file may define the symbol as well
 *  resolver		to this file, as a function said that ran at the start (ifunc)
 *  no-slot		to this file through other memory by the program counter: a function pointer
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libprof/insn/insn.h"
#include "tests/support/counted_tool.h"

enum kind {
	KIND_NONE,
	KIND_ELSEWHERE,
	KIND_FIXED,
	KIND_INTERPOSABLE,
	KIND_RESOLVER,
	KIND_NO_SLOT,
	NR_KINDS
};

static const char *const names[NR_KINDS] = {
	NULL, "elsewhere", "fixed", "interposable", "resolver", "no-slot",
};

/* Do the file's own symbols come first for the loader? */
static bool binds_own(const struct mp_elf *elf)
{
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &elf->phdrs[i];
		const Elf64_Dyn *dyn = (const void *)(elf->data + ph->p_offset);

		/* A program is the first file in which the loader looks. */
		if (ph->p_type == PT_INTERP)
			return true;
		if (ph->p_type != PT_DYNAMIC)
			continue;
		for (uint64_t k = 0; k < ph->p_filesz / sizeof(*dyn); k++)
			if (dyn[k].d_tag == DT_SYMBOLIC ||
			    (dyn[k].d_tag == DT_FLAGS && dyn[k].d_un.d_val & DF_SYMBOLIC) ||
			    (dyn[k].d_tag == DT_FLAGS_1 && dyn[k].d_un.d_val & DF_1_PIE))
				return true;
	}
	return elf->ehdr.e_type == ET_EXEC;
}

static bool is_protected(const struct mp_elf *elf, uint32_t index)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (elf->symbols[i].dynamic && elf->symbols[i].index == index)
			return ELF64_ST_VISIBILITY(elf->symbols[i].other) != STV_DEFAULT;
	return false;
}

static enum kind kind_of(const struct mp_elf *elf, const struct exact_edge *edge, bool own)
{
	const struct mp_reloc *reloc;
	const uint8_t *bytes;
	struct mp_insn insn;
	size_t avail = 16;

	if (edge->from == EXACT_ELSEWHERE ||
	    (edge->kind != EXACT_IJUMP && edge->kind != EXACT_ICALL))
		return KIND_NONE;
	while (avail && !(bytes = mp_elf_bytes(elf, edge->from, avail)))
		avail--;
	if (!avail || mp_insn_decode(bytes, avail, edge->from, &insn) || !insn.rip_relative)
		return KIND_NONE;
	reloc = mp_elf_dyn_reloc_at(elf, insn.target);
	if (edge->to == EXACT_ELSEWHERE)
		return reloc ? KIND_ELSEWHERE : KIND_NONE;
	if (!reloc)
		return KIND_NO_SLOT;
	switch (reloc->type) {
	case R_X86_64_IRELATIVE: return KIND_RESOLVER;
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
		/* The first call through a slot of a symbol from elsewhere arrives in the stub again. */
		if (reloc->sym_shndx == SHN_UNDEF)
			return KIND_NONE;
		return own || is_protected(elf, reloc->sym) ? KIND_FIXED : KIND_INTERPOSABLE;
	case R_X86_64_RELATIVE: {
		const struct mp_section *section = mp_elf_section_at(elf, insn.target);

		return section && !strncmp(section->name, ".got", 4) ? KIND_FIXED : KIND_NO_SLOT;
	}
	default: return KIND_NO_SLOT;
	}
}

static int print(const struct mp_elf *elf, const struct exact_counts *counts, struct mp_err *err)
{
	uint64_t of[NR_KINDS] = {0};
	bool own = binds_own(elf);

	(void)err;
	for (size_t i = 0; i < counts->nr_edges; i++)
		of[kind_of(elf, &counts->edges[i], own)] += counts->edges[i].count;
	printf("transfers %" PRIu64 "\n", counts->nr_transfers);
	for (int k = KIND_ELSEWHERE; k < NR_KINDS; k++)
		printf("%s %" PRIu64 "\n", names[k], of[k]);
	return 0;
}

int main(int argc, char **argv)
{
	return counted_tool(argc, argv, "slot-calls", MP_ELF_SYMBOLS | MP_ELF_RELOCS, print);
}
