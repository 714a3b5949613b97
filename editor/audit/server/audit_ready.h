// SPDX-License-Identifier: Apache-2.0
/*
 * audit_ready - does a server answer? With tcp:[HOST:]PORT or unix:PATH, a server answers if it
 * accepts a connection. Any other text is a shell command, which succeeds if the server answers.
 *
 * Called by audit_options (checks the form) and audit_server.
 */
#ifndef ME_AUDIT_READY_H
#define ME_AUDIT_READY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/err.h"

/* me_ready_check - is @ready well-formed? Return: 0; -EINVAL with @err set. */
int me_ready_check(const char *ready, struct mp_err *err);
/*
 * me_ready_now - ask once; a command is killed at @deadline_ns. Return: 1 the server answers; 0 it
 * does not; -ECANCELED after a signal; -errno with @err set if the question cannot be asked.
 */
int me_ready_now(const char *ready, uint64_t deadline_ns, char *const *envp, const sigset_t *mask,
		 struct mp_err *err);

#endif
