// SPDX-License-Identifier: Apache-2.0
/*
 * pipeline - moves records from a source through attribution into the store and a recording.
 *
 * Decides when files are looked up, when to flush, and what happens when a flush fails. Called
 * by morphd's main and by tests.
 */
#ifndef MD_PIPELINE_H
#define MD_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/attribute/attribute.h"
#include "daemon/attribute/call_samples.h"
#include "daemon/attribute/flush.h"
#include "daemon/module/outputs.h"
#include "daemon/attribute/path_requests.h"
#include "daemon/attribute/rows_give.h"
#include "daemon/attribute/stack_walk.h"
#include "daemon/source/source.h"

struct md_pipeline {
	/* set by the caller */
	struct md_source *source;
	struct mp_store *store;	     /* NULL: nothing is stored */
	struct md_recwriter *writer; /* NULL: nothing is recorded */
	/* also delivers paths; NULL: no program is polled */
	struct md_path_requests *polls;
	struct md_call_samples *calls; /* NULL: no calls are sampled */
	struct md_sandbox *sandbox;    /* reads files; NULL: this process reads them */
	bool wants_ways;	       /* count ways of branches; may change between sources */
	uint32_t ways_a_second;	       /* most samples that show them, per CPU; 0: no limit */
	uint32_t ways_a_day;	       /* as in md_attribute */
	const struct md_sample_selection *selection; /* NULL: all processes */
	/* why there is no sandbox, for the session; NULL: nothing to report */
	const char *unconfined;
	double interval_s; /* time between flushes; may change while it runs */
	/* called after each batch; if true, what is left is drained */
	bool (*should_stop)(void *arg);
	void (*warn)(void *arg, const char *message);
	void (*flushed)(void *arg); /* may be NULL */
	void (*step)(void *arg);    /* called after each step of the work; may be NULL */
	void *arg;
	struct md_rows_give rows_give;
	struct md_stack_walk *stacks; /* made by md_pipeline_init() if the source has stacks */
	struct md_outputs *outputs;   /* made by md_pipeline_init() */
	/* results */
	struct md_attribute at;
	struct md_flush flush;
	int64_t ways_ns; /* when code was executed for ways last */
	struct mp_ledger total;
	uint64_t nr_records, nr_bytes;
	uint64_t nr_batches;			   /* SAMPLES records */
	uint64_t max_addresses;			   /* most distinct addresses between two flushes */
	uint64_t time_ns;			   /* from the first batch to the last flush */
	uint8_t sampled[(MD_MODULES_MAX + 8) / 8]; /* one bit per module with samples */
	size_t nr_sampled;			   /* number of these bits */
	unsigned int nr_refused;		   /* outputs whose maps are not believed */
};

/* Return: number of modules with samples. */
size_t md_pipeline_nr_modules(const struct md_pipeline *pl);

/* Opens the session in the store. Return: 0 or -errno. */
int md_pipeline_init(struct md_pipeline *pl, struct mp_err *err);
/*
 * Runs until the source ends or should_stop() returns true. Return: 0, or -errno of the source,
 * the store or the recording. After an error, flushed counts are stored; pending counts remain
 * for another run.
 */
int md_pipeline_run(struct md_pipeline *pl, struct mp_err *err);
/*
 * md_pipeline_change - after a completed run, continue with @source in a new session. Modules
 * stay known; processes do not, since the new source reports them again. Return: 0 or -errno.
 */
int md_pipeline_change(struct md_pipeline *pl, struct md_source *source, struct mp_err *err);
void md_pipeline_fini(struct md_pipeline *pl);

uint64_t md_ledger_lost(const struct mp_ledger *ledger);
uint64_t md_ledger_unattributed(const struct mp_ledger *ledger);

/*
 * Return: true if a later attempt may succeed: a full disk or a locked database is temporary, an
 * error of the database itself is not.
 */
bool md_pipeline_is_temporary(int ret);

#endif
