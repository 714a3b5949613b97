// SPDX-License-Identifier: Apache-2.0
/*
 * audit_sharing - may a command run twice at the same time? Watches one run of it.
 *
 * It may not if a run changes a file that it did not make for itself, talks to a server, listens,
 * has several threads, or needs much of the machine's memory. Both runs would then disturb each
 * other, or one CPU would be too little for them. Called by audit_stage.
 */
#ifndef ME_AUDIT_SHARING_H
#define ME_AUDIT_SHARING_H

#include <stddef.h>

#include "editor/audit/run/audit_run.h"
#include "libprof/base/err.h"

/*
 * me_sharing_watch - run @spec once under ptrace, with its output thrown away. Return: 0, with the
 * reason against a second run in @why, "" if there is none; -ECANCELED after me_run_cancel(). A run
 * that cannot be watched is a reason, not an error.
 */
int me_sharing_watch(const struct me_run_spec *spec, char *why, size_t size, struct mp_err *err);

#endif
