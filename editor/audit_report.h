// SPDX-License-Identifier: Apache-2.0
/*
 * audit_report - an audit's result in words for people and as JSON for scripts.
 *
 * Decides wording only. Called by morph_audit.c.
 */
#ifndef ME_AUDIT_REPORT_H
#define ME_AUDIT_REPORT_H

#include <stdio.h>

#include "editor/audit.h"

/* Of the JSON; grows when a field changes its meaning. */
#define ME_AUDIT_SCHEMA 1

void me_audit_print(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out);
/* me_audit_print_json - one object; its fields are in Documentation/json.md. */
int me_audit_print_json(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out);
/* me_audit_progress - says how far the audit is, where progress was started. */
void me_audit_progress(const struct me_seq *seq, void *arg);

/* Lines about an audit that nobody watches on a terminal. */
struct me_audit_lines {
	FILE *out;
	double every_s;
	double start_s, last_s; /* 0 at first */
};
/* me_audit_progress_line - the same as a line, at most every so often. @arg: the lines. */
void me_audit_progress_line(const struct me_seq *seq, void *arg);

const char *me_metric_name(enum me_audit_metric metric);
const char *me_audit_verdict_name(enum me_audit_verdict verdict);

#endif
