/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_private - what audit.c (windows, entries, exits) and audit_point.c (loops) share. No other
 * file includes this.
 */
#ifndef ME_RUNTIME_AUDIT_PRIVATE_H
#define ME_RUNTIME_AUDIT_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/base/runtime.h"
#include "libprof/note/audit_file.h"

#define WINDOW_NS 10000
/*
 * Longest windows, in shortest windows. After that time another function may end a window: LONGEST,
 * if no timing runs in it; LONGEST_TIMING, if a timing runs, perhaps on a stack to which control
 * never returns.
 */
#define LONGEST	       100
#define LONGEST_TIMING 1000000
/*
 * Before the second window of a pair, its version runs untimed for LEAD shortest windows and
 * LEAD_ENTRIES entries, so that it is not cold.
 */
#define LEAD	     10
#define LEAD_ENTRIES 4
/* Time over which the rate of the time-stamp counter is measured. */
#define CLOCKS_NS 1000000

/*
 * TIMING_TICKS: estimated cost of a timing in a loop in ticks, beside the ticks between the
 * time-stamps of its start. The next two are the pauses that a pair costs, as multiples of what its
 * timings cost: THREAD_PAUSES times that cost in the thread, PAUSES times at least in this
 * function. They keep the cost of timing below one percent. In loops, pauses may come before the
 * pairs: SAVED shortest windows in which nothing was timed, a tenth of a second, count for later
 * pairs. So a function that is entered rarely, and then runs for some milliseconds, has many pairs
 * in one invocation.
 */
#define TIMING_TICKS  400
#define THREAD_PAUSES 100
#define PAUSES	      400
#define SAVED	      10000
/*
 * Most ticks that one timing can have cost: if there are more, the thread was preempted meanwhile.
 */
#define MOST_SPENT 1000000

/*
 * Recursive calls in one timing from entry to exit. With more, the timing is abandoned: each of these calls enters
 * the runtime twice. The number is the same in both versions, so neither is favoured. Most invocations of a
 * recursive function call fewer, so the function is still timed.
 */
#define MOST_RECURSIONS 64

/* A thread looks for its own slots, and for a verdict, after this many entries at most. */
#define MOST_ENTRIES 65536
/*
 * While the rate of the time-stamp counter is not known, the runtime looks again after so many entries,
 * then after twice as many each time. So the first window is late by the time of CLOCKS_NS at most.
 */
#define FIRST_LOOK 16
#define LAST_LOOK  1024

/* The state of one call of the runtime. */
struct me_audit_work {
	const struct me_runtime_params *params;
	struct me_audit_state *state;
	struct me_audit_thread *thread;
	struct me_audit_slot *slots, *slot;
	uint64_t function, rsp, now;
	uint8_t *ret; /* the call's return address in the stub */
	bool loops;   /* the function is timed in its loops */
	/* For a call from a loop: timing point from 1 on, its version, least rounds between calls. */
	uint8_t point, version;
	uint32_t least_rounds;
};

static inline uint64_t me_audit_time_stamp(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

/*
 * me_audit_begin - finds out for which function and thread the stub called. @ret: address of the
 * return address. Return: false: there is nothing to do. Else call me_audit_end().
 */
bool me_audit_begin(struct me_audit_work *w, const struct me_runtime_params *params,
		    const uint64_t *ret);
void me_audit_end(const struct me_audit_work *w);
/* Return: entries, or rounds, until the runtime looks again at a clock that it does not know yet. @last: as many as the
 * last time; 0: it has not looked yet. */
uint64_t me_audit_next_look(const struct me_audit_work *w, uint64_t last);
/* Return: ticks of the shortest window; 0: not known yet, or nobody would read it. */
uint64_t me_audit_least_ticks(const struct me_audit_work *w);
/*
 * me_audit_obey - from now on the winner runs, and stubs in loops lead to code without stubs.
 * Return: false: there is no verdict.
 */
bool me_audit_obey(const struct me_audit_work *w);
/* me_audit_draw_pair - from now on the first window's version of the next pair runs. */
void me_audit_draw_pair(const struct me_audit_work *w, struct me_audit_slot *slot);
/* me_audit_first_pair - the function's first pair in this thread, which has saved no pauses yet. */
void me_audit_first_pair(const struct me_audit_work *w);
/* Return: time-stamp before which the next window of @w's function does not begin. */
uint64_t me_audit_due(const struct me_audit_work *w);
void me_audit_open_window(const struct me_audit_work *w);
/* me_audit_end_window - the last timing of the open window has ended. */
void me_audit_end_window(const struct me_audit_work *w);
/* me_audit_abandon - the open window's timing, if one runs, will not end as it should. */
void me_audit_abandon(const struct me_audit_work *w);
/* me_audit_leave_loop - the function returns while a timing of its loop runs. */
void me_audit_leave_loop(const struct me_audit_work *w);
/* Return: false: no other window than that of @w's function is open, or it may be ended. */
bool me_audit_other_is_open(const struct me_audit_work *w, uint64_t least);

#endif
