// SPDX-License-Identifier: Apache-2.0
/*
 * audit_thread - gives each thread its own slots of audited functions, in private memory.
 *
 *	memory:  common slots, state
 *		 ...
 *		 region: slots of a thread, struct me_audit_thread | of another thread | ...
 *
 * The base of %gs is the distance from the common slots to the thread's own; 0: the thread has
 * none yet. A new thread inherits its parent's base. The base of %fs then tells that the slots
 * belong to another thread: nothing is timed in them until the new thread has its own.
 */
#include "editor/runtime/audit_thread.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "editor/runtime/system.h"

_Static_assert(sizeof(struct me_audit_state) <= ME_RUNTIME_PAGE, "has one page");

static struct me_audit_thread *thread_at(const struct me_audit_state *state, uint64_t slots)
{
	return (struct me_audit_thread *)(slots + state->stride - ME_RUNTIME_PAGE);
}

static bool has_ended(long pid, uint32_t tid)
{
	return call4(SYS_tgkill, pid, (long)tid, 0, 0) == -ESRCH;
}

/*
 * Claim slots: those of an ended thread with the same id, then free ones, then those of any ended
 * thread. Return: 1 + their number; 0: none.
 */
static uint64_t claim(struct me_audit_state *state, uint32_t tid)
{
	long pid = call1(SYS_getpid, 0);

	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < ME_AUDIT_MAX_THREADS; i++) {
			uint32_t was = state->claims[i];

			if (was && was != tid && (!round || !has_ended(pid, was)))
				continue;
			if (__atomic_compare_exchange_n(&state->claims[i], &was, tid, false,
							__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
				return i + 1;
		}
	}
	return 0;
}

/* Windows that the former owner left open leave no trace, as those that the process's end cuts
 * off. */
static void wipe(uint64_t from, uint64_t end)
{
	for (; from < end; from += 8)
		__atomic_store_n((uint64_t *)from, 0, __ATOMIC_RELAXED);
}

/* Ends the process: something else uses %gs. */
static void refuse(void)
{
	static const char text[] = "morph: something else in this process uses %gs: this version "
				   "cannot be audited here\n";

	call4(SYS_write, 2, (long)text, sizeof(text) - 1, 0);
	call1(SYS_exit_group, 127);
}

struct me_audit_thread *me_audit_thread_find(const struct me_runtime_params *params,
					     struct me_audit_slot **slots)
{
	struct me_audit_state *state = me_audit_state_of(params);
	struct me_audit_slot *common = me_audit_common(params);
	struct me_thread_state access = {.fsgsbase = state->fsgsbase};
	struct me_audit_thread *thread;
	uint64_t base, tp, number, at;
	uint32_t tid;

	*slots = common;
	if (!state->ready)
		return NULL;
	base = read_gs(&access);
	tp = read_fs(&access);
	if (base) {
		at = (uint64_t)common + base - state->region;
		if (at % state->stride || at / state->stride >= ME_AUDIT_MAX_THREADS)
			refuse();
		*slots = (struct me_audit_slot *)((uint64_t)common + base);
		thread = thread_at(state, (uint64_t)*slots);
		if (thread->tid && thread->tp == tp)
			return thread;
	}
	tid = (uint32_t)call1(SYS_gettid, 0);
	number = claim(state, tid);
	*slots = common;
	at = number ? state->region + (number - 1) * state->stride : (uint64_t)common;
	write_gs(&access, at - (uint64_t)common);
	if (!number)
		return NULL;
	wipe(at, at + state->stride);
	*slots = (struct me_audit_slot *)at;
	thread = thread_at(state, at);
	thread->tp = tp;
	thread->tid = tid;
	return thread;
}

void me_audit_threads_start(const struct me_runtime_params *params)
{
	struct me_audit_state *state = me_audit_state_of(params);
	struct me_thread_state access = {.fsgsbase = state->fsgsbase};
	uint64_t bytes;
	long ret;

	if (read_gs(&access))
		refuse();
	state->stride = params->counters_bytes + ME_RUNTIME_PAGE;
	bytes = ME_AUDIT_MAX_THREADS * state->stride;
	ret = call6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (failed(ret))
		return;
	if (call4(SYS_madvise, ret, (long)bytes, MADV_WIPEONFORK, 0)) {
		call4(SYS_munmap, ret, (long)bytes, 0, 0);
		return;
	}
	state->region = (uint64_t)ret;
	state->ready = 1;
}
