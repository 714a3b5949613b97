// SPDX-License-Identifier: Apache-2.0
/*
 * register_uses - says what the executed instructions of a program do with the registers that a function
 * saves for its caller: rbx, rbp, r12 to r15. For tests/plugin/activations.c.
 *
 *	register-uses FILE EDGES
 *
 * EDGES: exact counts of FILE (tests/plugin/branches.c, edges=). Prints lines:
 *  range ADDRESS BYTES NUMBER ENTRY	code of function NUMBER (from 1), which begins at ENTRY
 *  push ADDRESS MASK			the instruction pushes this register (bit 0: rax, 3: rbx, ...)
 *  use ADDRESS MASK			the instruction uses these registers; pushes and pops are no uses
 */
#include <inttypes.h>
#include <stdio.h>

#include "libprof/cfg/cfg.h"
#include "tests/support/counted_tool.h"
#include "tests/support/saved_registers.h"

static void print_run(const struct mp_elf *elf, const struct exact_run *run)
{
	const uint8_t *bytes = mp_elf_bytes(elf, run->start, run->end - run->start);
	struct saved_registers r;

	for (uint64_t at = run->start; bytes && at < run->end; at += r.len) {
		if (!saved_registers_decode(bytes + (at - run->start), run->end - at, &r))
			return;
		if (r.mask && r.use != REGISTER_POP)
			printf("%s %#" PRIx64 " %#x\n", r.use == REGISTER_PUSH ? "push" : "use", at,
			       r.mask);
	}
}

static bool no_blocks(void *ctx, const struct mp_func *func)
{
	(void)ctx, (void)func;
	return false;
}

static int print(const struct mp_elf *elf, const struct exact_counts *counts, struct mp_err *err)
{
	const struct mp_cfg_options options = {.want = no_blocks};
	struct mp_cfg *cfg = NULL;
	int rc = mp_cfg_build(elf, &options, &cfg, err);

	for (uint32_t r = 0; !rc && r < cfg->nr_ranges; r++)
		printf("range %#" PRIx64 " %" PRIu64 " %u %#" PRIx64 "\n", cfg->ranges[r].start,
		       cfg->ranges[r].size, cfg->ranges[r].func + 1,
		       cfg->funcs[cfg->ranges[r].func].vaddr);
	for (size_t i = 0; !rc && i < counts->nr_runs; i++)
		print_run(elf, &counts->runs[i]);
	mp_cfg_free(cfg);
	return rc;
}

int main(int argc, char **argv)
{
	return counted_tool(argc, argv, "register-uses", MP_ELF_ALL, print);
}
