// SPDX-License-Identifier: Apache-2.0
/*
 * exact_counts - reads the exact counts of one file's code that tests/plugin/branches.c writes (edges=).
 * Used by tools that say what rewrites could save.
 */
#ifndef TESTS_EXACT_COUNTS_H
#define TESTS_EXACT_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"

#define EXACT_ELSEWHERE UINT64_MAX /* the address lies in another file */

/* Instructions that follow one another and were executed equally often. */
struct exact_run {
	uint64_t start, end, nr_insns, count;
};

enum exact_kind {
	EXACT_TAKEN,
	EXACT_FALL, /* of a conditional branch */
	EXACT_JUMP,
	EXACT_CALL,
	EXACT_IJUMP,
	EXACT_ICALL,
	EXACT_RET,
	EXACT_NR_KINDS
};

struct exact_edge {
	uint64_t from, to; /* @from: the transferring instruction */
	uint64_t count;
	enum exact_kind kind;
};

struct exact_counts {
	struct exact_run *runs; /* ascending */
	size_t nr_runs;
	struct exact_edge *edges; /* ascending @from, then @to */
	size_t nr_edges;
	uint64_t nr_insns;     /* executed */
	uint64_t nr_transfers; /* from this file; a branch that is not taken is none */
};

/* Return: 0, -errno, -EBADMSG. Ownership: exact_counts_fini(), also after an error. */
int exact_counts_read(const char *path, struct exact_counts *counts, struct mp_err *err);
void exact_counts_fini(struct exact_counts *counts);
/* How often the instruction at @vaddr was executed. */
uint64_t exact_counts_at(const struct exact_counts *counts, uint64_t vaddr);
/* How often control went from the instruction at @from to @to. */
uint64_t exact_counts_edge(const struct exact_counts *counts, uint64_t from, uint64_t to);

#endif
