// SPDX-License-Identifier: Apache-2.0
/*
 * audit_hooks - the user's commands around the audit and before each run.
 *
 * Decides how they are run: outside the measurement, with their output on standard error.
 * Processes that a hook leaves behind stay. Called by audit_stage.
 */
#ifndef ME_AUDIT_HOOKS_H
#define ME_AUDIT_HOOKS_H

#include <signal.h>

#include "libprof/base/err.h"

/* Shell commands; NULL: none. */
struct me_hooks {
	const char *setup;    /* once, before everything else */
	const char *prepare;  /* before each run */
	const char *teardown; /* once, at the end, also after an error or a signal */
};

/*
 * me_hook_run - run @command, which the option @option gave; NULL: none. @side: 'A' or 'B', in
 * the variable MORPH_AUDIT_SIDE, with the file @program in MORPH_AUDIT_PROGRAM; 0: neither. Return:
 * 0; -ECANCELED after a signal; -EINVAL with @err set if it fails.
 */
int me_hook_run(const char *option, const char *command, char side, const char *program,
		const sigset_t *mask, struct mp_err *err);

#endif
