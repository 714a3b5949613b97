// SPDX-License-Identifier: Apache-2.0
/*
 * attribute - gives each sample to the module whose code it hit, or to the reason why not.
 *
 * Follows the records in order: events change the address spaces, samples are looked up
 * in them. Every sample emitted ends in exactly one place of the ledger. It opens no file
 * and writes no store. Morph (SOSP 1997), sections 3.2 and 3.3.
 */
#ifndef MD_ATTRIBUTE_H
#define MD_ATTRIBUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/counts.h"
#include "daemon/edges.h"
#include "daemon/modcache.h"
#include "daemon/paths.h"
#include "daemon/procmap.h"
#include "daemon/record.h"
#include "libprof/store.h"

/* What became of the entries of branch stacks, from the start. */
struct md_branch_ledger {
	uint64_t seen;
	uint64_t kernel;   /* either end in the kernel */
	uint64_t unmapped; /* either end in no known module */
	uint64_t between;  /* from one module to another */
	uint64_t no_room;
	uint64_t counted; /* to be edges: of the same module */
	/* Of the counted, those of moved code that the original has nothing for, or that cannot
	 * be told; known when they are flushed. */
	uint64_t moved;
};

struct md_attribute {
	struct md_procmap *procmap;
	struct md_modcache *modcache;
	struct md_counts counts;
	struct md_edges transfers;    /* taken ones */
	struct md_edges straight;     /* of optimised modules: from a target on to what left it */
	struct md_paths paths;	      /* of samples with registers */
	struct mp_ledger ledger;      /* since the last flush */
	struct mp_activity *activity; /* by index of the program's module */
	uint32_t nr_activity;
	struct md_branch_ledger branches;
	uint64_t nr_processes; /* that were sampled and known */
	uint64_t last_time_ns; /* of the stream */
};

int md_attribute_init(struct md_attribute *at);
void md_attribute_fini(struct md_attribute *at);

/* One checked record. Return: 0, -ENOMEM: a table is full, flush and call again. */
int md_attribute_record(struct md_attribute *at, const struct morph_record *record);

/* True where every emitted sample is in one place, and the tables hold those attributed, and those
 * whose path was decoded. */
bool md_attribute_is_conserved(const struct md_attribute *at);
/* What is pending becomes nothing: it was flushed, or nobody wants it. */
void md_attribute_clear(struct md_attribute *at);

#endif
