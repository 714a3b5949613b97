// SPDX-License-Identifier: Apache-2.0
/*
 * debuginfo - what DWARF says about addresses: source lines, and which functions were inlined.
 *
 * From the file itself or from separate debug files on this machine (/usr/lib/debug, by build-id
 * or .gnu_debuglink). Never from the network.
 */
#ifndef MD_DEBUGINFO_H
#define MD_DEBUGINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/err.h"

struct md_debuginfo;

/*
 * md_debuginfo_open - look for what there is about the ELF file @path.
 * Return: 0, -ENOENT neither debug information nor symbols, -ENOMEM.
 */
int md_debuginfo_open(const char *path, struct md_debuginfo **out, struct mp_err *err);
void md_debuginfo_close(struct md_debuginfo *di);
bool md_debuginfo_has_lines(const struct md_debuginfo *di);

/* Strings live until md_debuginfo_close(). */
struct md_line {
	const char *file;
	int line;
};
/* The line that the instruction at link-time address @vaddr came from. Return: false: none. */
bool md_debuginfo_line(struct md_debuginfo *di, uint64_t vaddr, struct md_line *out);
/* The directory that relative file names of the code at @vaddr begin in; NULL: not known. */
const char *md_debuginfo_directory(struct md_debuginfo *di, uint64_t vaddr);

struct md_inline {
	const char *function; /* as its name is mangled, where it is */
	struct md_line call;  /* where it was called; file NULL: not known */
	uint64_t key;	      /* one per inlined call: the same key is the same call */
};
/* Inlined functions that hold @vaddr, outermost first. Return: how many, at most @max. */
size_t md_debuginfo_inlines(struct md_debuginfo *di, uint64_t vaddr, struct md_inline *out,
			    size_t max);

/* Every function symbol, also those of a separate debug file. */
void md_debuginfo_each_symbol(struct md_debuginfo *di,
			      void (*visit)(void *ctx, const char *name, uint64_t vaddr,
					    uint64_t size),
			      void *ctx);

#endif
