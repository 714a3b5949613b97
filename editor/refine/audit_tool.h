// SPDX-License-Identifier: Apache-2.0
/* audit_tool - runs morph-audit and reads its result. Called by program_runner and by train. */
#ifndef ME_AUDIT_TOOL_H
#define ME_AUDIT_TOOL_H

#include "editor/refine/runner.h"

struct me_audit_tool {
	const char *a, *b;    /* is @b faster than @a? */
	const char *at;	      /* where both appear */
	char *const *command; /* what is run */
	double alpha;	      /* probability of any false claim */
	const char *pairs;    /* as --pairs; NULL: @limit_s counts */
	double limit_s;
	const char *filter;	/* as --filter; NULL: none */
	const char *earlier;	/* pairs of an audit of the same files to go on with; NULL: none */
	const char *json, *csv; /* files for the result and the pairs; overwritten */
	bool quiet;		/* its own report goes nowhere */
};

/*
 * me_audit_tool_run - *@status: the exit status of morph-audit, 0, 5 or 6. Return: 0 with a verdict;
 * -EINTR; -errno; -EIO if morph-audit failed: the message is the reason that it gave.
 */
int me_audit_tool_run(const struct me_audit_tool *audit, struct me_verdict *out, int *status,
		      struct mp_err *err);

#endif
