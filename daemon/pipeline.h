// SPDX-License-Identifier: Apache-2.0
/*
 * pipeline - records from a source, through attribution, into the store and a recording.
 *
 * Decides when files are looked up, when to flush, and what happens when a flush
 * fails. Called by morphd's main and by tests.
 */
#ifndef MD_PIPELINE_H
#define MD_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/attribute.h"
#include "daemon/flush.h"
#include "daemon/outputs.h"
#include "daemon/polls.h"
#include "daemon/source.h"

struct md_pipeline {
	/* set by the caller */
	struct md_source *source;
	struct mp_store *store;			  /* NULL: nothing is stored */
	struct md_recwriter *writer;		  /* NULL: nothing is recorded */
	struct md_polls *polls;			  /* paths from these too; NULL: nobody is asked */
	struct md_sandbox *sandbox;		  /* reads files; NULL: they are read here */
	const struct md_who_selection *selection; /* NULL: all processes */
	const char *unconfined; /* why there is none, for the session; NULL: nothing to say */
	double interval_s;	/* may change while it runs */
	bool (*should_stop)(void *arg); /* asked after each batch; then what is left is drained */
	void (*warn)(void *arg, const char *message);
	void (*flushed)(void *arg); /* may be NULL */
	void (*step)(void *arg);    /* a step of the work is done; may be NULL */
	void *arg;
	struct md_outputs *outputs; /* of md_pipeline_init() */
	/* results */
	struct md_attribute at;
	struct md_flush flush;
	struct mp_ledger total;
	uint64_t nr_records, nr_bytes;
	uint64_t nr_batches;			   /* SAMPLES records */
	uint64_t max_addresses;			   /* distinct ones between two flushes */
	uint64_t time_ns;			   /* from first batch to last flush */
	uint8_t sampled[(MD_MODULES_MAX + 8) / 8]; /* a bit for each module with a sample */
	size_t nr_sampled;			   /* of these bits */
	unsigned int nr_refused;		   /* outputs whose maps are not believed */
};

/* Modules that got samples. */
size_t md_pipeline_nr_modules(const struct md_pipeline *pl);

/* Opens the session in the store. Return: 0 or -errno. */
int md_pipeline_init(struct md_pipeline *pl, struct mp_err *err);
/*
 * Until the source ends or should_stop(). Return: 0, or -errno of the source, the store, or the
 * recording; what was flushed before stays, what was not is still there to be flushed by another
 * run.
 */
int md_pipeline_run(struct md_pipeline *pl, struct mp_err *err);
/*
 * md_pipeline_change - after a run that came to its end: go on with @source, in a session of its
 * own. Modules stay known, processes do not: the new source finds them. Return: 0 or -errno.
 */
int md_pipeline_change(struct md_pipeline *pl, struct md_source *source, struct mp_err *err);
void md_pipeline_fini(struct md_pipeline *pl);

uint64_t md_ledger_lost(const struct mp_ledger *ledger);
uint64_t md_ledger_unattributed(const struct mp_ledger *ledger);

#endif
