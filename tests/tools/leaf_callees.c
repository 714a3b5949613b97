// SPDX-License-Identifier: Apache-2.0
/*
 * leaf_callees - prints the functions whose code could stand in place of a call. For
 * scripts/bench/bench-leaf-calls.
 *
 *	leaf-callees FILE
 *
 * One line for each:
 *  leaf ADDRESS BYTES		one block, as editor/evidence/leaf.h defines it
 *  branching ADDRESS BYTES	several blocks without loops, otherwise the same
 *  caller ADDRESS BYTES	a function in which no call may be replaced, with its first range
 */
#include <inttypes.h>
#include <stdio.h>

#include "editor/evidence/eligible.h"
#include "editor/evidence/leaf.h"
#include "editor/unwind/unwind.h"
#include "libprof/elf/elf.h"

#define LANDING 4

/* Do all edges lead forward, to returns only? */
static bool is_branching(const struct mp_cfg *cfg, uint32_t func)
{
	const struct mp_func *f = &cfg->funcs[func];

	if (f->problem || f->nr_ranges != 1 || f->size > 4 * ME_LEAF_BODY_MAX ||
	    f->flags & (MP_FUNC_SYSCALL | MP_FUNC_IFUNC | MP_FUNC_NORETURN | MP_FUNC_GET_PC |
			MP_FUNC_BARE | MP_FUNC_LABELS))
		return false;
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
		uint64_t at = block->vaddr, size = block->size - block->term_len;
		struct mp_insn insn;

		if (block->flags & MP_BLOCK_PADDING)
			continue;
		if (!bytes || block->flags & MP_BLOCK_STAYS)
			return false;
		if (size >= LANDING && !mp_insn_decode(bytes, size, at, &insn) && insn.endbr64) {
			at += LANDING;
			size -= LANDING;
		}
		switch (block->term) {
		case MP_TERM_RET:
		case MP_TERM_COND:
		case MP_TERM_JUMP:
		case MP_TERM_FALL: break;
		default: return false;
		}
		if (size && !me_leaf_is_plain(cfg->elf, at, size, f->vaddr, f->vaddr + f->size))
			return false;
		for (uint32_t e = 0; e < block->nr_edges; e++)
			if (cfg->edges[block->first_edge + e].to <= b)
				return false;
	}
	return me_unwind_has_no_frame(cfg, func);
}

static void print(const struct mp_cfg *cfg, const struct me_eligible *eligible)
{
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		struct me_leaf leaf;

		if (!func->nr_blocks || eligible->verdict[f] != ME_ELIGIBLE)
			printf("caller %#" PRIx64 " %" PRIu64 "\n", func->vaddr, func->size);
		else if (me_leaf_find(cfg, f, &leaf))
			printf("leaf %#" PRIx64 " %u\n", func->vaddr, leaf.size);
		else if (is_branching(cfg, f))
			printf("branching %#" PRIx64 " %" PRIu64 "\n", func->vaddr, func->size);
		else if (!me_leaf_caller(cfg, f))
			printf("caller %#" PRIx64 " %" PRIu64 "\n", func->vaddr,
			       cfg->ranges[func->first_range].size);
	}
}

int main(int argc, char **argv)
{
	const struct mp_cfg_options options = {0};
	struct me_eligible eligible = {0};
	struct mp_cfg *cfg = NULL;
	struct mp_elf *elf;
	struct mp_err err;
	int rc;

	if (argc != 2) {
		fputs("usage: leaf-callees FILE\n", stderr);
		return 2;
	}
	rc = mp_elf_open(argv[1], MP_ELF_ALL, &elf, &err);
	if (!rc) {
		rc = mp_cfg_build(elf, &options, &cfg, &err);
		if (!rc)
			rc = me_eligible_functions(cfg, 1, &eligible, &err);
		if (!rc)
			print(cfg, &eligible);
		me_eligible_fini(&eligible);
		mp_cfg_free(cfg);
		mp_elf_close(elf);
	}
	if (rc)
		fprintf(stderr, "leaf-callees: %s: %s\n", argv[1], err.msg);
	return rc ? 1 : 0;
}
