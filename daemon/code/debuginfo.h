// SPDX-License-Identifier: Apache-2.0
/*
 * debuginfo - looks up addresses in DWARF: source lines and inlined functions.
 *
 * Reads the file itself or a separate debug file on this machine (/usr/lib/debug, by build-id
 * or .gnu_debuglink). Never uses the network.
 */
#ifndef MD_DEBUGINFO_H
#define MD_DEBUGINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"

struct md_debuginfo;

/*
 * md_debuginfo_open - find debug information for the ELF file @path. Return: 0, -ENOENT neither
 * debug information nor symbols, -ENOMEM.
 */
int md_debuginfo_open(const char *path, struct md_debuginfo **out, struct mp_err *err);
void md_debuginfo_close(struct md_debuginfo *di);
bool md_debuginfo_has_lines(const struct md_debuginfo *di);

/* Strings live until md_debuginfo_close(). */
struct md_line {
	const char *file;
	int line;
};
/* Finds the source line of the instruction at link-time address @vaddr. Return: false: none. */
bool md_debuginfo_line(struct md_debuginfo *di, uint64_t vaddr, struct md_line *out);
/* Return: the directory that relative file names at @vaddr start from; NULL: not known. */
const char *md_debuginfo_directory(struct md_debuginfo *di, uint64_t vaddr);

struct md_inline {
	const char *function; /* mangled, if the language mangles names */
	struct md_line call;  /* the call's source line; its file is NULL where that is not known */
	uint64_t key;	      /* identifies the inlined call */
};
/* Finds the inlined functions that hold @vaddr, outermost first. Return: how many, at most @max. */
size_t md_debuginfo_inlines(struct md_debuginfo *di, uint64_t vaddr, struct md_inline *out,
			    size_t max);

/* Calls @visit for every function symbol, also those of a separate debug file. */
void md_debuginfo_each_symbol(struct md_debuginfo *di,
			      void (*visit)(void *ctx, const char *name, uint64_t vaddr,
					    uint64_t size),
			      void *ctx);

#endif
