// SPDX-License-Identifier: Apache-2.0
/*
 * attribute - assigns each sample to the module whose code it hit, or to a reason why that
 * failed.
 *
 * Follows the records in order: events change the address spaces, and samples are looked up in
 * them. Every emitted sample ends in exactly one place of the ledger. Opens no file and writes
 * no store. Called by the pipeline. Method: Morph (SOSP 1997), sections 3.2 and 3.3.
 */
#ifndef MD_ATTRIBUTE_H
#define MD_ATTRIBUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/attribute/sample_table.h"
#include "daemon/attribute/edges.h"
#include "daemon/context/contexts.h"
#include "daemon/module/modcache.h"
#include "daemon/attribute/paths.h"
#include "daemon/attribute/ways.h"
#include "daemon/module/procmap.h"
#include "daemon/record/record.h"
#include "libprof/store/store.h"

/* Entries of branch stacks since the start, by what became of them. */
struct md_branch_ledger {
	uint64_t seen;
	uint64_t kernel;       /* one end is in the kernel */
	uint64_t unmapped;     /* one end is in no known module */
	uint64_t cross_module; /* the two ends are in different modules */
	uint64_t table_full;   /* the table of edges cannot grow */
	uint64_t counted;      /* both ends in one module: became an edge */
	/*
	 * Counted entries of optimised code that could not be translated to the original. Known
	 * at a flush.
	 */
	uint64_t untranslated;
};

/* A program that a signal of a fault ended. */
struct md_crash {
	uint32_t module; /* of the program */
	uint8_t signal;
};
#define MD_MAX_CRASHES 64 /* between two flushes; more are not counted */

#define MD_WAYS_SHARE_ALL 1024

struct md_attribute {
	struct md_procmap *procmap;
	struct md_modcache *modcache;
	struct md_sample_table samples;
	struct md_edges taken_branches; /* taken branches */
	/* for optimised modules: runs from a branch target to the next branch taken */
	struct md_edges straight_runs;
	struct md_paths paths; /* from samples with registers */
	bool no_paths;	       /* registers were not asked for because of paths */
	struct md_ways *ways;  /* from samples with registers; NULL: not wanted */
	/* of a file, on a day, then only one sample in eight shows ways; 0: no limit */
	uint32_t ways_a_day;
	/* so many of 1,024 samples with registers show ways; 0: all */
	uint32_t ways_share, ways_credit;
	struct md_contexts *contexts; /* from samples with stacks */
	struct md_contexts *calls;    /* from programs that sample their calls (call_samples) */
	struct mp_ledger ledger;      /* since the last flush */
	struct mp_activity *activity; /* indexed by the program's module */
	uint32_t nr_activity;
	struct md_crash crashes[MD_MAX_CRASHES]; /* since the last flush */
	uint32_t nr_crashes;
	struct md_branch_ledger branches;
	uint64_t nr_frames;    /* callers in stacks, since the start */
	uint64_t nr_processes; /* known processes that were sampled */
	bool lacks_module; /* out of memory for one of a recording, whose samples belong nowhere now */
	uint64_t last_time_ns; /* latest time in the stream */
};

int md_attribute_init(struct md_attribute *at);
void md_attribute_fini(struct md_attribute *at);

/* Processes one checked record. Return: 0, -ENOMEM: a table is full; flush and call again. */
int md_attribute_record(struct md_attribute *at, const struct morph_record *record);

/*
 * Return: true if every emitted sample is in exactly one place of the ledger, and the tables
 * hold as many samples and paths as the ledger says.
 */
bool md_attribute_is_conserved(const struct md_attribute *at);
/* Empties all tables, after a flush or where nobody wants the counts. */
void md_attribute_clear(struct md_attribute *at);

#endif
