// SPDX-License-Identifier: Apache-2.0
/*
 * edge_table - what the counters of an instrumented file count: the blocks and edges of each
 * instrumented function, and which edge has which counter.
 *
 * Written by the editor, read by whoever makes counts of blocks and edges out of counters
 * (edge_solve). It lies in the section .morph.edges, which is not loaded; format in
 * Documentation/abi.md.
 */
#ifndef MP_EDGE_TABLE_H
#define MP_EDGE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/elf.h"
#include "libprof/err.h"

#define MP_EDGE_TABLE_SECTION ".morph.edges"

/* A kind beside those of enum mp_edge_kind: one end lies outside of the function. */
#define MP_EDGE_OUTSIDE 0xff

struct mp_counted_block {
	uint64_t vaddr; /* in the original */
	uint32_t size;
	uint32_t term_off; /* where the terminating branch starts; @size: there is none */
};

struct mp_counted_edge {
	uint32_t from, to; /* indexes into @blocks, of the same function; MP_NONE: outside of it */
	uint32_t counter;  /* index, or MP_NONE: follows from the others */
	uint8_t kind;	   /* enum mp_edge_kind; MP_EDGE_OUTSIDE where @from or @to is MP_NONE */
	bool spare; /* counted though it follows from others: measures what conservation misses */
};

struct mp_counted_func {
	uint32_t first_block, nr_blocks;
	uint32_t first_edge, nr_edges;
};

/*
 * The functions lie one after the other: each begins in @blocks and @edges where the one before
 * ends. No two edges have the same counter.
 */
struct mp_edge_table {
	struct mp_counted_func *funcs;
	uint32_t nr_funcs;
	struct mp_counted_block *blocks;
	uint32_t nr_blocks;
	struct mp_counted_edge *edges;
	uint32_t nr_edges;
	uint32_t nr_counters; /* no more than there are edges */
	uint64_t hash;	      /* mp_edge_table_hash() of the section; set by mp_edge_table_read() */
};

/*
 * mp_edge_table_encode - the section's whole bytes.
 * Return: 0, -ENOMEM, -EINVAL (not as described above). Ownership: free(*@bytes).
 */
int mp_edge_table_encode(const struct mp_edge_table *table, uint8_t **bytes, size_t *size,
			 struct mp_err *err);
/* The same number for the bytes of the section wherever they are: a file of counts (counts_file) names it. */
uint64_t mp_edge_table_hash(const void *bytes, size_t size);
/*
 * mp_edge_table_read - the table of @elf, which was not opened for its id alone.
 * Return: 0, -ENOENT not instrumented, -EBADMSG damaged, -ENOMEM. Ownership:
 * mp_edge_table_free(*@out).
 */
int mp_edge_table_read(const struct mp_elf *elf, struct mp_edge_table **out, struct mp_err *err);
void mp_edge_table_free(struct mp_edge_table *table);

#endif
