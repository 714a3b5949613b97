// SPDX-License-Identifier: Apache-2.0
/*
 * audit_pattern - a number in the output of a command: /REGEX/ or stderr:/REGEX/.
 *
 * The expression is a POSIX extended one; its first group is the number. Called by audit_options
 * (reads it from the command line), audit_run (applies it to a run's output) and audit_metric.
 */
#ifndef ME_AUDIT_PATTERN_H
#define ME_AUDIT_PATTERN_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "libprof/base/err.h"

struct me_pattern {
	regex_t regex;
	const char *text; /* as given; NULL: there is no pattern */
	bool from_stderr;
};

/* Limits of a number: its logarithm and the ratio of two numbers are then finite. */
#define ME_PATTERN_MIN 1e-100
#define ME_PATTERN_MAX 1e100

/*
 * me_pattern_parse - read [stderr:]/REGEX/. Return: 0; -EINVAL with @err set. Ownership: @text
 * must live as long as @pattern; me_pattern_fini() after success.
 */
int me_pattern_parse(struct me_pattern *pattern, const char *text, struct mp_err *err);
void me_pattern_fini(struct me_pattern *pattern);
/* me_pattern_is - does @text have the form of a pattern? */
bool me_pattern_is(const char *text);

/*
 * me_pattern_number - the number of the first match in @output of @size bytes. ^ and $ match at
 * each line. Return: 0; -ENOENT nothing matches; -ERANGE not positive or out of range; -EINVAL no
 * number; with @err set.
 */
int me_pattern_number(const struct me_pattern *pattern, const char *output, size_t size,
		      double *number, struct mp_err *err);

#endif
