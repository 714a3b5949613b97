// SPDX-License-Identifier: Apache-2.0
/*
 * audit_metric - the number by which A and B are compared: its value in a run, its unit, and
 * which direction is better.
 *
 * Called by audit (values and ratios) and by all that prints values.
 */
#ifndef ME_AUDIT_METRIC_H
#define ME_AUDIT_METRIC_H

#include <stdbool.h>
#include <stdio.h>

#include "editor/audit/run/audit_pattern.h"
#include "libprof/base/err.h"

enum me_metric_kind {
	ME_METRIC_CPU,	/* user + system time of the program and the children it waited for */
	ME_METRIC_USER, /* user time only; many kernels only sample it */
	ME_METRIC_WALL,
	ME_METRIC_PATTERN, /* a number that the command prints */
};

struct me_run;

struct me_metric {
	enum me_metric_kind kind;
	bool higher_is_better;	   /* ME_METRIC_PATTERN only */
	const char *unit;	   /* of ME_METRIC_PATTERN; NULL: none was given */
	struct me_pattern pattern; /* ME_METRIC_PATTERN */
	/* Number of requests that a run served: a time is divided by it. text NULL: by nothing. */
	struct me_pattern requests;
};

/*
 * me_metric_parse - read cpu, user, wall or a pattern. Sets @higher_is_better for a pattern; the
 * caller may change that. Return: 0; -EINVAL with @err set. Ownership: me_metric_fini().
 */
int me_metric_parse(struct me_metric *metric, const char *text, struct mp_err *err);
void me_metric_fini(struct me_metric *metric);

/* me_metric_name - cpu, user, wall, or the pattern as given. */
const char *me_metric_name(const struct me_metric *metric);
/* me_metric_title - what is measured, in words; @server: A and B are servers. */
const char *me_metric_title(const struct me_metric *metric, bool server);
/* me_metric_unit - "ns", "ns/request", the user's unit, or "". */
const char *me_metric_unit(const struct me_metric *metric);
/* me_metric_is_time - is it the time of one run in nanoseconds, divided by nothing? */
bool me_metric_is_time(const struct me_metric *metric);

/* me_metric_value - the value of one run. Return: 0; -EINVAL with @err set if it has none. */
int me_metric_value(const struct me_metric *metric, const struct me_run *run, double *value,
		    struct mp_err *err);
/* me_metric_ratio - logarithm of how many times as good @b is as @a. Both are above 0. */
double me_metric_ratio(const struct me_metric *metric, double a, double b);

/* A value in a unit that people read: a factor, decimals, and the unit's name. */
struct me_metric_scale {
	double factor; /* value * factor is the number to print */
	int decimals;
	const char *unit; /* "ms", "us/request", ..., or "" */
};
/* me_metric_scale - the scale for values about as large as @value. */
struct me_metric_scale me_metric_scale(const struct me_metric *metric, double value);
/*
 * me_metric_put - print @value in its own scale. A time is followed by s, ms or us; other units are
 * not printed.
 */
void me_metric_put(FILE *out, const struct me_metric *metric, double value, int width);

#endif
