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
 * debug information nor symbols; -errno: a failure of the machine.
 */
int md_debuginfo_open(const char *path, struct md_debuginfo **out, struct mp_err *err);
void md_debuginfo_close(struct md_debuginfo *di);
bool md_debuginfo_has_lines(const struct md_debuginfo *di);
/*
 * md_debuginfo_fault - what went wrong so far: functions below then found less than the file holds. Return: 0;
 * -EBADMSG: the debug information is damaged; -ENOENT: a .dwo file is missing; -ENOMEM, -EIO; with a message.
 */
int md_debuginfo_fault(const struct md_debuginfo *di, struct mp_err *err);

/* Strings live until md_debuginfo_close(). */
struct md_line {
	const char *file;
	int line;
	unsigned int discriminator; /* as it stands in the file; 0: none */
};
/* Finds the source line of the instruction at link-time address @vaddr. Return: false: none. */
bool md_debuginfo_line(struct md_debuginfo *di, uint64_t vaddr, struct md_line *out);
/* Return: the directory that relative file names at @vaddr start from; NULL: not known. */
const char *md_debuginfo_directory(struct md_debuginfo *di, uint64_t vaddr);

struct md_inline {
	const char *function; /* mangled, if the language mangles names */
	int first_line;	      /* where the function is declared; 0: not known */
	struct md_line call;  /* the call's source line; its file is NULL where that is not known */
	uint64_t key;	      /* identifies the inlined call */
};
/* Finds the inlined functions that hold @vaddr, outermost first. Return: how many, at most @max. */
size_t md_debuginfo_inlines(struct md_debuginfo *di, uint64_t vaddr, struct md_inline *out,
			    size_t max);

/* A function that the compiler wrote as a function of its own. */
struct md_function {
	const char *linkage;  /* its symbol's name, without suffixes; NULL: the file does not say */
	const char *name;     /* as in the source; NULL: none */
	const char *producer; /* the compiler's name and version; NULL: not known */
	int first_line;	      /* where it is declared; 0: not known */
};
/* Finds the function whose code holds @vaddr. Return: false: none. */
bool md_debuginfo_function(struct md_debuginfo *di, uint64_t vaddr, struct md_function *out);

/* Calls @visit for every function symbol, also those of a separate debug file. */
void md_debuginfo_each_symbol(struct md_debuginfo *di,
			      void (*visit)(void *ctx, const char *name, uint64_t vaddr,
					    uint64_t size),
			      void *ctx);

#endif
