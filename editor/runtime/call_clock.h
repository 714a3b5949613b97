/* SPDX-License-Identifier: Apache-2.0 */
/* call_clock - samples calls by a count of calls. Called by attach.c and start.S. */
#ifndef ME_RUNTIME_CALL_CLOCK_H
#define ME_RUNTIME_CALL_CLOCK_H

#include "editor/base/runtime.h"

/* me_call_clock_start - maps the file of calls. @fd: the open file; it may be unusable. */
void me_call_clock_start(const struct me_runtime_params *params, int fd);
/*
 * me_runtime_call - control is in the stub of a function, and the count of calls is below 0. @ret:
 * address of the return address of the stub's call; that of the function lies ME_RED_ZONE above it.
 */
void me_runtime_call(const struct me_runtime_params *params, const uint64_t *ret);

#endif
