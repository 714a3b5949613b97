// SPDX-License-Identifier: Apache-2.0
/*
 * audit_reader - a thread that audits a running program through its file (audit_file.h).
 *
 * The thread reads the windows as they come, tests them, and writes each verdict into the file at
 * once; from then on the program runs the version that won. The file may not exist yet, may be
 * replaced (then the verdicts go into the new one), and may be damaged by anybody: the reader then
 * says so and stops. Called by morphd's main.
 */
#ifndef MD_AUDIT_READER_H
#define MD_AUDIT_READER_H

#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/store/store.h"

struct md_audit_config {
	const char *path; /* of the file, which may not exist yet; NULL: no audit */
	double alpha;	  /* chance that any function gets a false verdict */
};

struct md_audit_totals {
	uint32_t nr_functions, nr_a, nr_b; /* all; where A, and where B is faster */
	uint64_t pairs, dropped, lost, torn;
};

struct md_audit_reader;

/* Return: 0, -ENOMEM, -errno. Ownership: md_audit_reader_free(). */
int md_audit_reader_start(const struct md_audit_config *config, struct md_audit_reader **out,
			  struct mp_err *err);
/*
 * md_audit_reader_save - stores what is known so far, as one audit that each call brings up to
 * date. Without a store, nothing is stored. Return: 0, -errno of the store.
 */
int md_audit_reader_save(struct md_audit_reader *reader, struct mp_store *store,
			 struct mp_err *err);
/* Ends the thread, after it has read what is in the file. */
void md_audit_reader_end(struct md_audit_reader *reader);
/* For the end. */
void md_audit_reader_totals(struct md_audit_reader *reader, struct md_audit_totals *out);
/* Return: why there is no result, or not all of it, for the user; NULL: nothing to report. */
const char *md_audit_reader_remark(struct md_audit_reader *reader);
/* Accepts NULL. */
void md_audit_reader_free(struct md_audit_reader *reader);

#endif
