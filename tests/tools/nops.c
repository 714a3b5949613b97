// SPDX-License-Identifier: Apache-2.0
/*
 * nops - says how many executed instructions are no-ops. For scripts/bench/bench-small-rewrites.
 *
 *	nops FILE EDGES
 *
 * EDGES: exact counts of FILE (tests/plugin/branches.c, edges=). Prints lines `NAME COUNT`, executions:
 *  instructions	all
 *  nops		those that change nothing; endbr64 is none of them
 */
#include <inttypes.h>
#include <stdio.h>

#include "libprof/insn/insn.h"
#include "tests/support/counted_tool.h"

static uint64_t nops_in(const struct mp_elf *elf, const struct exact_run *run)
{
	const uint8_t *bytes = mp_elf_bytes(elf, run->start, run->end - run->start);
	uint64_t nr = 0;
	struct mp_insn insn;

	for (uint64_t at = run->start; bytes && at < run->end; at += insn.len) {
		if (mp_insn_decode(bytes + (at - run->start), run->end - at, at, &insn))
			break;
		nr += insn.nop;
	}
	return nr;
}

static int print(const struct mp_elf *elf, const struct exact_counts *counts, struct mp_err *err)
{
	uint64_t nops = 0;

	(void)err;
	for (size_t i = 0; i < counts->nr_runs; i++)
		nops += counts->runs[i].count * nops_in(elf, &counts->runs[i]);
	printf("instructions %" PRIu64 "\nnops %" PRIu64 "\n", counts->nr_insns, nops);
	return 0;
}

int main(int argc, char **argv)
{
	return counted_tool(argc, argv, "nops", MP_ELF_RELOCS, print);
}
