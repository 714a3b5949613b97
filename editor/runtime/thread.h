/* SPDX-License-Identifier: Apache-2.0 */
/* thread - counters of its own for each thread. */
#ifndef ME_RUNTIME_THREAD_H
#define ME_RUNTIME_THREAD_H

#include <stdbool.h>

#include "editor/runtime.h"

/*
 * The calling thread has the stack pointer @rsp, outside of the window of the counters that it counts
 * in: give it others, unless these are its own.
 */
void me_runtime_thread(const struct me_runtime_params *params, uint64_t rsp);
/* The first thread, once all of the file is mapped at @file, with @sets of counters. */
void me_runtime_threads_start(const struct me_runtime_params *params, uint64_t file, uint64_t sets,
			      bool fsgsbase, uint64_t rsp);

#endif
