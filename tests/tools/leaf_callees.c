// SPDX-License-Identifier: Apache-2.0
/*
 * leaf_callees - prints the functions whose code could stand in place of a call. For
 * scripts/bench/bench-leaf-calls.
 *
 *	leaf-callees FILE
 *
 * One line for each:
 *  leaf ADDRESS BYTES		one block, as editor/rewrite/leaf.h defines it, and the size of the code that
 *				replaces calls
 *  branching ADDRESS BYTES	the same of several blocks
 *  caller ADDRESS BYTES	a function in which no call may be replaced, with its first range
 */
#include <inttypes.h>
#include <stdio.h>

#include "editor/rewrite/leaf.h"
#include "libprof/elf/elf.h"
#include "tests/support/eligible_tool.h"

static void print(const struct mp_cfg *cfg, const struct me_eligible *eligible)
{
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		struct me_leaf leaf;

		if (!func->nr_blocks || eligible->verdict[f] != ME_ELIGIBLE)
			printf("caller %#" PRIx64 " %" PRIu64 "\n", func->vaddr, func->size);
		else if (me_leaf_find(cfg, f, &leaf))
			printf("%s %#" PRIx64 " %u\n", leaf.nr_parts == 1 ? "leaf" : "branching",
			       func->vaddr, leaf.size);
		else if (!me_leaf_caller(cfg, f))
			printf("caller %#" PRIx64 " %" PRIu64 "\n", func->vaddr,
			       cfg->ranges[func->first_range].size);
	}
}

int main(int argc, char **argv)
{
	return eligible_tool(argc, argv, "leaf-callees", print);
}
