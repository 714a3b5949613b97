// SPDX-License-Identifier: Apache-2.0
/*
 * ways - which ways branches went after samples, by the samples' registers (inference.md, "Ways that
 * registers show"). Registers wait here until a worker of sandbox executes code with them
 * (ways_work.h); then only numbers of ways are kept. Registers are never written anywhere.
 *
 * Filled by attribute, run by pipeline, written and emptied by flush.
 */
#ifndef MD_WAYS_H
#define MD_WAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/attribute/edges.h"
#include "daemon/attribute/ways_work.h"
#include "daemon/module/modcache.h"
#include "daemon/record/record.h"

/* Since the start. */
struct md_ways_ledger {
	uint64_t samples; /* of code of originals, with registers */
	uint64_t dropped; /* too many at once, too few in their file, or their file cannot be read */
	uint64_t ways;	  /* of branches; a sample may show several */
	uint64_t failed;  /* samples whose worker gave up or lied */
};

struct md_ways_pending {
	uint32_t module;
	struct md_ways_sample sample;
};

struct md_ways {
	struct md_sandbox *sandbox; /* executes; NULL: this process does */
	struct md_edges counts;	    /* since the last flush; `to' is 1 for taken, 0 for not */
	struct md_ways_pending *pending;
	size_t nr_pending;
	struct md_ways_ledger ledger;
	bool has_said; /* why the first ones failed */
};

/*
 * md_ways_new - starts the process that executes; without rights, an ordinary user may do without it.
 * Return: 0, -ENOMEM, -errno: no sandbox is possible here. Ownership: md_ways_free(*@out).
 */
int md_ways_new(struct md_ways **out, struct mp_err *err);
void md_ways_free(struct md_ways *ways);

/* Adds entry @nr of @record, a sample at link-time address @vaddr of the original @module. */
void md_ways_add(struct md_ways *ways, uint32_t module, uint64_t vaddr,
		 const struct morph_registers *record, uint32_t nr);
/* Return: true if md_ways_run() should be called before the next flush. */
bool md_ways_is_due(const struct md_ways *ways);
/*
 * md_ways_run - executes code after the samples that wait, and forgets their registers. Files with
 * few samples are left out, since each file takes a worker of its own, unless @all. *@said: why samples
 * failed for the first time, else empty.
 */
void md_ways_run(struct md_ways *ways, struct md_modcache *mc, bool all, struct mp_err *said);

#endif
