// SPDX-License-Identifier: Apache-2.0
/*
 * names - the symbols of a file and of its separate debug file, by address. Finds the name of
 * an address, and the address of a name. Called by annotate, export and stats_code.
 */
#ifndef MD_NAMES_H
#define MD_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/code/debuginfo.h"
#include "libprof/elf/elf.h"

struct md_name {
	uint64_t vaddr, size;
	const char *name;
	bool function; /* else data */
	bool local;    /* or only a debug file has it */
};

struct md_names {
	struct md_name *names; /* ascending; at one address, functions and global names first */
	size_t nr, max;
	const struct mp_elf *elf;
};

/* @debug may be NULL. Both must outlive @out. Return: 0, -ENOMEM. */
int md_names_build(const struct mp_elf *elf, struct md_debuginfo *debug, struct md_names *out);
void md_names_fini(struct md_names *names);

/* Return: the best name whose symbol holds @vaddr; NULL: none. */
const struct md_name *md_names_at(const struct md_names *names, uint64_t vaddr);
/* Return: the function that the PLT entry at @vaddr calls; NULL: not a PLT entry. */
const char *md_names_plt(const struct md_names *names, uint64_t vaddr);

/*
 * Return: "ns::f", "ns::f+0x10" or "puts@plt", C++ names in brief; NULL: no name, or no memory.
 * Ownership: free().
 */
char *md_names_format(const struct md_names *names, uint64_t vaddr);

#endif
