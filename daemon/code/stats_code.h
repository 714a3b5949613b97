// SPDX-License-Identifier: Apache-2.0
/*
 * stats_code - opens the file of a module, if it still exists, with its functions and blocks.
 * Called by query, annotate, export, diff and flame.
 */
#ifndef MD_STATS_CODE_H
#define MD_STATS_CODE_H

#include <stdbool.h>

#include "libprof/cfg/cfg.h"
#include "libprof/elf/elf.h"
#include "libprof/store/store.h"

struct md_code {
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct mp_elf *debug_file; /* debug file that gives the functions' names; NULL: none */
	bool blocks;		   /* the CFG has blocks; else functions and their ranges only */
};

/*
 * md_code_open - open the code of @module, from @binary, its last path, or where its original
 * is kept (daemon/code/originals.h). The identity must match: another file at that path is refused.
 * A @binary may be an output made from the module. Functions of a stripped file get names from
 * its debug file. Return: 0; -ENOENT: the file does not exist, or never did (the kernel);
 * -ESTALE: another file; -errno of reading it; always with a message.
 */
int md_code_open(const struct mp_module *module, const char *binary, bool blocks,
		 struct md_code *out, struct mp_err *err);
void md_code_close(struct md_code *code);

/* Return: index in cfg->ranges of the range that holds @vaddr, or MP_NONE. */
uint32_t md_code_range_at(const struct md_code *code, uint64_t vaddr);

/* Return: "name", or "0x401000" for a function without one. */
const char *md_code_function_name(const struct mp_func *func, char buf[static 32]);

#endif
