// SPDX-License-Identifier: Apache-2.0
/*
 * source_counts - counts of source lines, for compilers: by function, and in each function by the calls that
 * the compiler replaced by the function's body. Adds up the modules of a program. Called by the formats that
 * compilers read.
 *
 * An example. f() starts at line 10, was called twice, and has a loop of 8 rounds in line 12, in which line
 * 13 calls g(). g() starts at line 3 and was put in place of the call:
 *
 *	f	entered 2	(2, 0) 16			offset 2 from line 10, discriminator 0
 *				(3, 0) g:	(1, 0) 16	offset 1 from line 3
 */
#ifndef MD_SOURCE_COUNTS_H
#define MD_SOURCE_COUNTS_H

#include <uthash.h>

#include "daemon/export/export.h"

/* The name of a function, kept once: names are compared by address. */
struct md_source_name {
	UT_hash_handle hh;
	uint32_t number; /* from 1, in the order of the list */
	char text[];
};

/* A place in a function's source. */
struct md_spot_key {
	uint32_t offset;	/* lines from where the function is declared, modulo 65,536 */
	uint32_t discriminator; /* which block of that line */
};

/* How often a call called this function. */
struct md_target {
	UT_hash_handle hh;
	const struct md_source_name *name;
	uint64_t count;
};

struct md_spot {
	UT_hash_handle hh;
	struct md_spot_key at;
	uint64_t count;
	struct md_target *targets; /* the most frequent first */
	/* While modules are added: the largest count of an instruction in function number @function. */
	uint64_t most;
	uint64_t function;
};

/* A function, or the body of a function in place of a call. */
struct md_body {
	UT_hash_handle hh;
	struct {
		const struct md_source_name *name;
		struct md_spot_key at;
	} key;
	uint64_t entered; /* of a function: how often it was called */
	uint64_t total;	  /* of all spots in it and in @inlined */
	struct md_spot *spots;
	struct md_body *inlined;
};

/* How the compiler that will read the counts names functions and places. */
enum md_compiler {
	/* LLVM: discriminators hold a base, a duplication factor and a copy identifier. */
	MD_COMPILER_LLVM,
	/* GCC 12: reads no discriminators; a name ends before its first dot. */
	MD_COMPILER_GCC,
};

/* The message if md_source_counts_finish() finds nothing. */
#define MD_SOURCE_COUNTS_NONE                                                                      \
	"no function that ran has debug information: compile the program with -g "                 \
	"(clang: also -fdebug-info-for-profiling), then sample it"

struct md_source_counts;

/* Begins the export's counts, in e->state. Return: 0, -ENOMEM with a message. Ownership: md_source_counts_drop(). */
int md_source_counts_begin(struct md_export *e, enum md_compiler compiler, struct mp_err *err);
void md_source_counts_drop(struct md_export *e);

/*
 * md_source_counts_add - adds the counts of @m to e->state. Counts functions that ran, but that the debug information does
 * not describe, in e->nr_lineless. Return: 0; -EBADMSG: damaged debug information; -EOPNOTSUPP: discriminators
 * of another kind; -ENOENT: a .dwo file is missing; -ENOMEM; with a message.
 */
int md_source_counts_add(struct md_export *e, const struct md_export_module *m, struct mp_err *err);

/*
 * md_source_counts_finish - call it behind the last module. Return: the functions, those with the largest totals
 * first; everything in them is in order, too. NULL: nothing was counted.
 */
struct md_body *md_source_counts_finish(struct md_source_counts *counts);
/* Return: the list of all names (->hh.next); NULL: none. */
const struct md_source_name *md_source_counts_names(const struct md_source_counts *counts);

/* The parts of LLVM's discriminators. */
struct md_discriminator {
	uint32_t base, factor, copy;
};
struct md_discriminator md_discriminator_decode(uint32_t discriminator);

#endif
