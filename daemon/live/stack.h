// SPDX-License-Identifier: Apache-2.0
/*
 * stack - where the threads of a stopped process will go on: looks for addresses in registers and on stacks. Never
 * misses one that a thread may use; a stale word may look like one. Called by live.
 */
#ifndef MD_LIVE_STACK_H
#define MD_LIVE_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/live/inject.h"
#include "daemon/live/process.h"
#include "daemon/live/stop.h"

struct md_stack_query {
	/* Is this an address that is looked for? */
	bool (*wanted)(void *arg, uint64_t address);
	void *arg;
	uint64_t skip[2]; /* starts of mappings that hold no addresses, in a search of all memory; 0: none */
};

/*
 * md_stacks_search - searches registers and stacks of all threads of @stop. From a signal handler's stack it goes on to
 * that of the code which the signal interrupted.
 * Return: 0: there is none; 1: *@found is one, and *@tid the thread; -EFBIG: a stack is too large to be searched; -EIO: it
 * cannot be read; both with a message.
 */
int md_stacks_search(const struct md_stop *stop, const struct md_process *process,
		     const struct md_gadgets *gadgets, const struct md_stack_query *query,
		     uint64_t *found, pid_t *tid, struct mp_err *err);

/*
 * md_memory_search - searches all memory that the process can write or has written, @limit bytes at most, as above; also for
 * addresses that setjmp() has saved, which glibc hides by a number of the thread. Return: 0, 1; -EFBIG: more than that is
 * resident; -EACCES: it has written memory that it may not read now; -EIO.
 */
int md_memory_search(const struct md_stop *stop, const struct md_process *process, uint64_t limit,
		     const struct md_stack_query *query, uint64_t *found, struct mp_err *err);

#endif
