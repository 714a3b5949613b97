/* SPDX-License-Identifier: Apache-2.0 */
/* audit_thread - gives each thread its own slots of audited functions. Called by audit.c. */
#ifndef ME_RUNTIME_AUDIT_THREAD_H
#define ME_RUNTIME_AUDIT_THREAD_H

#include <stdint.h>

#include "editor/base/runtime.h"

static inline struct me_audit_state *me_audit_state_of(const struct me_runtime_params *params)
{
	return (struct me_audit_state *)((char *)params + params->state);
}

/* The slots that stand in the file's own memory, for threads without slots of their own. */
static inline struct me_audit_slot *me_audit_common(const struct me_runtime_params *params)
{
	return (struct me_audit_slot *)((char *)params + params->counters);
}

/* me_audit_threads_start - prepares slots for threads. */
void me_audit_threads_start(const struct me_runtime_params *params);
/*
 * me_audit_thread_find - the calling thread; gives it slots if it has none. *@slots: its slots.
 * Return: NULL: there are too many threads, and *@slots are the common ones.
 */
struct me_audit_thread *me_audit_thread_find(const struct me_runtime_params *params,
					     struct me_audit_slot **slots);

#endif
