// SPDX-License-Identifier: Apache-2.0
/*
 * audit_report - an audit's result: in words for people, as JSON for scripts.
 *
 * Decides wording only. Called by morph_audit.c.
 */
#ifndef ME_AUDIT_REPORT_H
#define ME_AUDIT_REPORT_H

#include <stdio.h>

#include "editor/audit/audit.h"

/* Version of the JSON; grows when a field changes its meaning. */
#define ME_AUDIT_SCHEMA 1

/* me_audit_print - write the result in words. */
void me_audit_print(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out);
/* me_audit_print_json - write one object, see Documentation/json.md. Return: 0, -ENOMEM or -EIO. */
int me_audit_print_json(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out);
/* me_audit_print_failure - the object of an audit that failed, with the reason. Return: as above. */
int me_audit_print_failure(const char *reason, FILE *out);
/* Progress; all fields but the first are for an output that is not a terminal. */
struct me_audit_lines {
	bool no_speed; /* the metric is a number that need not be a speed */
	FILE *out;
	double every_s;
	double start_s, last_s; /* set by me_audit_progress_line(), 0 at first */
};
/* me_audit_progress - show the result so far on a terminal. @arg: a struct me_audit_lines. */
void me_audit_progress(const struct mp_seq *seq, void *arg);
/*
 * me_audit_progress_line - write the result so far as a line, at most one in every_s
 * seconds. @arg: a struct me_audit_lines.
 */
void me_audit_progress_line(const struct mp_seq *seq, void *arg);

const char *me_audit_verdict_name(enum me_audit_verdict verdict);

#endif
