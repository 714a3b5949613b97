// SPDX-License-Identifier: Apache-2.0
/*
 * report - the machine as one HTML page: what its time goes to, gains with their intervals, history,
 * heat pictures. The page needs no network and runs nothing: its own policy forbids both. Names of
 * files and functions may be chosen by anybody, and are escaped. Called by `morph report'.
 */
#ifndef MD_REPORT_H
#define MD_REPORT_H

#include <stdio.h>

#include "daemon/worker/collector.h"
#include "daemon/machine/machine.h"
#include "daemon/machine/saved.h"
#include "libprof/store/jobs/store_history.h"

struct md_report_picture {
	const char *path;
	char *svg; /* a whole SVG file; owned by the caller */
	size_t size;
	bool after; /* it shows the optimised version, too */
};

struct md_report {
	const struct md_machine *machine;
	const struct md_collector *collector;
	const struct md_saved *saved;
	const struct mp_decision *decisions; /* oldest first */
	size_t nr_decisions;
	const struct md_report_picture *pictures;
	size_t nr_pictures;
	const char *host, *version;
	int64_t when_s;
};

/* The caller checks @out for write errors. */
void md_report_write(const struct md_report *report, FILE *out);

/* report_saved.c: a part of that page, bars for each day; nothing if nothing was measured. */
void md_report_put_week(const struct md_saved *saved, FILE *out);
/* The same numbers as text for Prometheus. The caller checks @out for write errors. */
void md_report_put_metrics(const struct md_saved *saved, const struct md_collector *collector,
			   FILE *out);

/* report_picture.c: the heat picture of one program. Return: 0, -errno. Ownership: free(out->svg). */
int md_report_picture_draw(struct mp_store *store, const struct md_machine_program *program,
			   struct md_report_picture *out, struct mp_err *err);

#endif
