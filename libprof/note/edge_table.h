// SPDX-License-Identifier: Apache-2.0
/*
 * edge_table - describes the counters of an instrumented file: the blocks and edges of each
 * instrumented function, and the counter of each edge. The editor writes it; edge_solve
 * uses it to turn counters into counts of blocks and edges. It lies in section
 * .morph.edges, which is not loaded. The format is in Documentation/abi.md.
 */
#ifndef MP_EDGE_TABLE_H
#define MP_EDGE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/elf/elf.h"
#include "libprof/base/err.h"

#define MP_EDGE_TABLE_SECTION ".morph.edges"
/*
 * The same format, for a few counters that do not determine other counts: only edges with a counter, and their blocks.
 * An edge from a block to the outside stands for all control that comes to the block.
 */
#define MP_METER_TABLE_SECTION ".morph.meter"
#define MP_METER_PLACES_MAX    8 /* counters of a meter */

/* One more kind beside enum mp_edge_kind: one end lies outside of the function. */
#define MP_EDGE_OUTSIDE 0xff

struct mp_counted_block {
	uint64_t vaddr; /* address in the original */
	uint32_t size;
	uint32_t term_off; /* offset of the terminating branch; @size: there is none */
};

struct mp_counted_edge {
	/* indexes into @blocks, of the same function; MP_NONE: outside of the function */
	uint32_t from, to;
	uint32_t counter; /* index; MP_NONE: the other counters give this count */
	uint8_t kind;	  /* enum mp_edge_kind; MP_EDGE_OUTSIDE if @from or @to is MP_NONE */
	bool spare;	  /* has a counter although others give its count: measures errors */
};

struct mp_counted_func {
	uint32_t first_block, nr_blocks;
	uint32_t first_edge, nr_edges;
};

/*
 * Functions lie one after the other: each begins in @blocks and @edges where the one before
 * ends. No two edges have the same counter.
 */
struct mp_edge_table {
	struct mp_counted_func *funcs;
	uint32_t nr_funcs;
	struct mp_counted_block *blocks;
	uint32_t nr_blocks;
	struct mp_counted_edge *edges;
	uint32_t nr_edges;
	uint32_t nr_counters; /* at most nr_edges */
	uint64_t hash;	      /* mp_edge_table_hash() of the section; set by mp_edge_table_read() */
};

/*
 * mp_edge_table_encode - the whole section as bytes.
 * Return: 0, -ENOMEM, -EINVAL (not as described above). Ownership: free(*@bytes).
 */
int mp_edge_table_encode(const struct mp_edge_table *table, uint8_t **bytes, size_t *size,
			 struct mp_err *err);
/* Hash of the section's bytes. A file of counts (counts_file) names its table by this hash. */
uint64_t mp_edge_table_hash(const void *bytes, size_t size);
/*
 * mp_edge_table_read - reads the table of @elf, which must not be opened with MP_ELF_ID
 * alone.
 * Return: 0, -ENOENT (not instrumented), -EBADMSG (damaged), -ENOMEM.
 * Ownership: mp_edge_table_free(*@out).
 */
int mp_edge_table_read(const struct mp_elf *elf, struct mp_edge_table **out, struct mp_err *err);
/* mp_meter_table_read - the same for a version with a meter. */
int mp_meter_table_read(const struct mp_elf *elf, struct mp_edge_table **out, struct mp_err *err);
void mp_edge_table_free(struct mp_edge_table *table);

#endif
