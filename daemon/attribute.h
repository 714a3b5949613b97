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
#include "daemon/modcache.h"
#include "daemon/procmap.h"
#include "daemon/record.h"
#include "libprof/store.h"

struct md_attribute {
	struct md_procmap *procmap;
	struct md_modcache *modcache;
	struct md_counts counts;
	struct mp_ledger ledger;      /* since the last flush */
	struct mp_activity *activity; /* by index of the program's module */
	uint32_t nr_activity;
	uint64_t nr_branches;  /* branch-stack entries seen */
	uint64_t nr_processes; /* that were sampled and known */
	uint64_t last_time_ns; /* of the stream */
};

int md_attribute_init(struct md_attribute *at);
void md_attribute_fini(struct md_attribute *at);

/* One checked record. Return: 0, -ENOMEM: the table of counts is full, flush and call again. */
int md_attribute_record(struct md_attribute *at, const struct morph_record *record);

/* True where every emitted sample is in one place, and the table holds those attributed. */
bool md_attribute_is_conserved(const struct md_attribute *at);
/* What is pending becomes nothing: it was flushed, or nobody wants it. */
void md_attribute_clear(struct md_attribute *at);

#endif
