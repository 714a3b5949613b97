// SPDX-License-Identifier: Apache-2.0
/*
 * stats_code - a module's file, when it still is the module, and its functions and blocks.
 */
#ifndef MD_STATS_CODE_H
#define MD_STATS_CODE_H

#include <stdbool.h>

#include "libprof/cfg.h"
#include "libprof/elf.h"
#include "libprof/store.h"

struct md_code {
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct mp_elf *symbols; /* a debug file whose names functions have; NULL: none */
	bool blocks;		/* of every function; else functions and their ranges only */
};

/*
 * md_code_open - the code of @module, from @binary, from its last path, or from where its original
 * is kept (daemon/originals.h). The file's identity decides: another file of that name is refused. A
 * @binary that is an output made from the module stands for the module. Functions of a stripped file
 * have the names of its debug file.
 * Return: 0, -ENOENT where there is no such file any more (or never was: the kernel), -ESTALE
 * where the file is another one, -errno of reading it; always with a message.
 */
int md_code_open(const struct mp_module *module, const char *binary, bool blocks,
		 struct md_code *out, struct mp_err *err);
void md_code_close(struct md_code *code);

/* The index in cfg->ranges of the one that holds @vaddr, or MP_NONE. */
uint32_t md_code_range_at(const struct md_code *code, uint64_t vaddr);
/* The symbol that begins at @vaddr and names a function, or NULL. */
const struct mp_symbol *md_code_symbol_at(const struct md_code *code, uint64_t vaddr);

/* "name", or "0x401000" for a function without one. @buf holds 32. */
const char *md_code_function_name(const struct mp_func *func, char *buf);

#endif
