/* SPDX-License-Identifier: Apache-2.0 */
/* thread - gives each thread its own counters. Called by attach.c and start.S. */
#ifndef ME_RUNTIME_THREAD_H
#define ME_RUNTIME_THREAD_H

#include <stdbool.h>

#include "editor/base/runtime.h"

/*
 * me_runtime_thread - the stack pointer @rsp of the calling thread is outside the
 * window of the counters in use. Give the thread other counters, unless these are its own.
 */
void me_runtime_thread(const struct me_runtime_params *params, uint64_t rsp);
/*
 * me_runtime_threads_start - prepare counters for threads, and give the first thread
 * its own. The whole file, with @sets sets of counters, is mapped at @file. @fsgsbase:
 * user space may read and write the bases of %fs and %gs.
 */
void me_runtime_threads_start(const struct me_runtime_params *params, uint64_t file, uint64_t sets,
			      bool fsgsbase, uint64_t rsp);

#endif
