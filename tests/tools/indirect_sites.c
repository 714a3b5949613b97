// SPDX-License-Identifier: Apache-2.0
/*
 * indirect_sites - prints the indirect calls and jumps of a file's functions. For
 * scripts/bench/bench-indirect-calls.
 *
 *	indirect-sites FILE
 *
 * One line for each:
 *  site ADDRESS KIND MOVES	KIND: call; tail, a jump to another function; switch; goto, a jump to a
 *				label that is a value; unknown. MOVES: 1 if the function can be copied
 *  entry ADDRESS KIND MOVES	a function; KIND: leaf, as editor/rewrite/leaf.h defines it, or plain
 * Stubs of procedure linkage tables are no functions, so their jumps are missing.
 */
#include <inttypes.h>
#include <stdio.h>

#include "editor/rewrite/leaf.h"
#include "libprof/elf/elf.h"
#include "tests/support/eligible_tool.h"

static const char *jump_kind(const struct mp_cfg *cfg, const struct mp_block *block)
{
	switch (block->term) {
	case MP_TERM_TABLE:
		return block->table != MP_NONE && cfg->tables[block->table].labels ? "goto"
										   : "switch";
	case MP_TERM_INDIRECT_TAIL: return "tail";
	default: return cfg->funcs[block->func].flags & MP_FUNC_LABELS ? "goto" : "unknown";
	}
}

static void print_sites(const struct mp_cfg *cfg, const struct mp_block *block, bool moves)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	struct mp_insn insn;

	for (uint32_t off = 0; bytes && off < block->size; off += insn.len) {
		uint64_t at = block->vaddr + off;

		if (mp_insn_decode(bytes + off, block->size - off, at, &insn))
			return;
		if (insn.kind == MP_INSN_ICALL)
			printf("site %#" PRIx64 " call %d\n", at, moves);
		else if (insn.kind == MP_INSN_IJUMP)
			printf("site %#" PRIx64 " %s %d\n", at, jump_kind(cfg, block), moves);
	}
}

static void print(const struct mp_cfg *cfg, const struct me_eligible *eligible)
{
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		bool moves = func->nr_blocks && eligible->verdict[f] == ME_ELIGIBLE;
		struct me_leaf leaf;

		if (func->problem == MP_PROBLEM_SPECIAL)
			continue;
		printf("entry %#" PRIx64 " %s %d\n", func->vaddr,
		       moves && me_leaf_find(cfg, f, &leaf) ? "leaf" : "plain", moves);
		for (uint32_t b = 0; b < func->nr_blocks; b++)
			print_sites(cfg, &cfg->blocks[func->first_block + b], moves);
	}
}

int main(int argc, char **argv)
{
	return eligible_tool(argc, argv, "indirect-sites", print);
}
