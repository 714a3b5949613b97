// SPDX-License-Identifier: Apache-2.0
/*
 * audit - performance auditing (Lau and others, CGO 2008, section 2): each thread draws a version
 * of an audited function for a window, and times it there. Called by the stubs of audited
 * functions through start.S, and by attach.c.
 *
 * Windows come in pairs. A coin decides which version the first window has; the second window has
 * the other one. A window begins at an entry, and ends at the first exit that comes WINDOW_NS or
 * later. The version of a window runs untimed before: else caches and predictors would know only the
 * version that runs between pairs. In a thread one window is open at most, so that no
 * window contains timings of another one. A function with a verdict runs the winner untimed.
 *
 * Only the outermost invocation is timed. It is known by its stack pointer: an exit with this
 * stack pointer ends it; an entry or exit above, or an entry at the same place, says that it was
 * left in another way (longjmp(), an exception, a switch of stacks). Its window is then abandoned.
 * Recursive calls enter the runtime, too, and pauses pay for them.
 *
 * The rule for a window was fixed before any time was looked at: it counts if all of its timings
 * ended, none of them with too many recursive calls, and if the thread stayed on its processor
 * meanwhile. Signal handlers do not show, unless they leave by longjmp().
 *
 * A signal handler may interrupt this code and enter an audited function, which then runs
 * untimed. No value that is read from memory is used as an address or as an index without a check.
 */
#include "editor/runtime/audit.h"

#include <stddef.h>
#include <sys/resource.h>
#include <time.h>

#include "editor/runtime/audit_private.h"
#include "editor/runtime/audit_thread.h"
#include "editor/runtime/ring.h"
#include "editor/runtime/system.h"
#include "editor/runtime/untimed.h"

static uint64_t clock_ns(void)
{
	struct timespec ts;

	if (call4(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&ts, 0, 0))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* How often the thread left its processor so far. */
static uint64_t count_switches(void)
{
	struct rusage usage;

	if (call4(SYS_getrusage, RUSAGE_THREAD, (long)&usage, 0, 0))
		return 0;
	return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

/* splitmix64 */
static uint64_t draw(struct me_audit_thread *thread)
{
	uint64_t z = thread->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Do not call the runtime before @entries more entries. */
static void count_down(const struct me_audit_work *w, uint64_t entries)
{
	w->slot->since = w->now;
	w->slot->entries = entries;
	w->slot->countdown = (int32_t)entries;
}

/* Wait until about @due, as fast as entries came since the last call. */
static void wait(const struct me_audit_work *w, uint64_t due)
{
	uint64_t passed = w->slot->entries + 1;
	uint64_t each = (w->now - w->slot->since) / passed + 1, entries = (due - w->now) / each;

	/* Entries may come faster from now on; to look too early costs little. */
	if (entries > 8 * passed)
		entries = 8 * passed;
	count_down(w, entries > MOST_ENTRIES ? MOST_ENTRIES : entries);
}

/* Another function's window is open. The longer it is, the more rarely this function looks: what
 * that costs is part of the other one's timing. */
static void wait_for_other(const struct me_audit_work *w)
{
	uint64_t entries = 16 + (w->now & 15);

	if (w->thread->rsp && entries < 2 * w->slot->entries)
		entries = 2 * w->slot->entries;
	count_down(w, entries > MOST_ENTRIES ? MOST_ENTRIES : entries);
}

uint64_t me_audit_least_ticks(const struct me_audit_work *w)
{
	struct me_audit_state *state = w->state;
	uint64_t ns;

	if (!state->ring || state->least)
		return state->ring ? state->least : 0;
	ns = clock_ns();
	if (!state->ns || ns < state->ns + CLOCKS_NS || w->now <= state->ticks)
		return 0;
	state->least = (w->now - state->ticks) / ((ns - state->ns) / 1000) * (WINDOW_NS / 1000) + 1;
	return state->least;
}

uint64_t me_audit_next_look(const struct me_audit_work *w, uint64_t last)
{
	if (!w->state->ring)
		return MOST_ENTRIES;
	if (!last)
		return FIRST_LOOK;
	return last < LAST_LOOK / 2 ? 2 * last : LAST_LOOK;
}

/* ---- windows ----------------------------------------------------------------------------- */

static void add(uint64_t *word, uint64_t value)
{
	if (value)
		__atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

static void put_record(const struct me_audit_work *w, uint64_t function,
		       const struct me_audit_slot *slot, enum mp_audit_fate fate)
{
	const struct me_audit_thread *t = w->thread;
	struct mp_audit_function *f = me_ring_function(w->state->ring, function);
	struct mp_audit_record record = {
		.pair = slot->pair,
		.ticks = t->ticks,
		.rounds = t->rounds,
		.started = t->began,
		.function = (uint32_t)function,
		.thread = (uint32_t)t->tid,
		.point = slot->point,
		.version = slot->version,
		.second = slot->window == 2,
		.fate = (uint8_t)fate,
	};

	add(&f->starts, t->starts);
	add(&f->stops, t->stops);
	add(&f->abandoned, t->abandoned);
	add(&f->windows[fate], 1);
	me_ring_put(w->params, w->state->ring, &record);
}

void me_audit_draw_pair(const struct me_audit_work *w, struct me_audit_slot *slot)
{
	struct me_audit_thread *t = w->thread;

	if (!t->random)
		t->random = w->now ^ t->tid << 40 ^ t->tp;
	slot->pair = draw(t) | 1;
	slot->first = draw(t) >> 63;
	slot->version = slot->first;
	slot->window = 1;
}

void me_audit_first_pair(const struct me_audit_work *w)
{
	me_audit_draw_pair(w, w->slot);
	w->slot->due = w->now + w->state->least * LEAD;
	w->slot->paid = w->now;
	if (!w->thread->paid)
		w->thread->paid = w->now;
}

uint64_t me_audit_due(const struct me_audit_work *w)
{
	const struct me_audit_slot *slot = w->slot;
	uint64_t due = slot->due;

	if (slot->window == 2)
		return due;
	if (due < slot->paid)
		due = slot->paid;
	return due < w->thread->paid ? w->thread->paid : due;
}

/*
 * Adds @pause to the pauses up to @paid. Those long ago are forgotten: functions that are timed in
 * loops may save SAVED shortest windows, others nothing.
 */
static uint64_t pay(const struct me_audit_work *w, bool loops, uint64_t paid, uint64_t pause)
{
	uint64_t saved = loops ? w->state->least * SAVED : 0;
	uint64_t from = w->now > saved ? w->now - saved : 0;

	return (paid > from ? paid : from) + pause;
}

/*
 * The next pair comes when the pauses pay for this one. Its first version runs untimed for LEAD to
 * three times LEAD shortest windows, at random, so that pairs keep no step with the program.
 */
static void pay_for_pair(const struct me_audit_work *w, struct me_audit_slot *slot)
{
	struct me_audit_thread *t = w->thread;
	uint64_t lead = w->state->least * LEAD;

	if (slot->spent > MOST_SPENT)
		slot->spent = MOST_SPENT;
	t->paid = pay(w, slot->point, t->paid, slot->spent * THREAD_PAUSES);
	slot->paid =
		pay(w, slot->point, slot->paid, slot->spent * (PAUSES + draw(t) % (2 * PAUSES)));
	slot->due = w->now + lead + draw(t) % (2 * lead + 1);
	slot->spent = 0;
}

/*
 * End the open window. The second window of the pair follows when its version has run for a while,
 * or else the next pair.
 */
static void close_window(const struct me_audit_work *w, enum mp_audit_fate fate)
{
	struct me_audit_thread *t = w->thread;
	uint64_t function = t->open - 1;
	struct me_audit_slot *slot;

	if (function >= w->params->nr_audited) {
		t->open = 0;
		return;
	}
	slot = w->slots + function;
	put_record(w, function, slot, fate);
	slot->timing = 0;
	slot->countdown = 0;
	slot->since = w->now;
	slot->entries = 0;
	t->open = t->rsp = 0;
	if (fate == MP_AUDIT_TIMED && slot->window == 1) {
		slot->window = 2;
		slot->version = !slot->first;
		slot->countdown = LEAD_ENTRIES;
		slot->entries = LEAD_ENTRIES;
		slot->due = w->now + w->state->least * LEAD;
		return;
	}
	me_audit_draw_pair(w, slot);
	pay_for_pair(w, slot);
}

/* The invocation that is timed was left without an exit. */
void me_audit_abandon(const struct me_audit_work *w)
{
	if (w->thread->rsp)
		w->thread->abandoned++;
	close_window(w, MP_AUDIT_ABANDONED);
}

void me_audit_open_window(const struct me_audit_work *w)
{
	struct me_audit_thread *t = w->thread;

	t->ticks = t->rounds = t->starts = t->stops = t->abandoned = t->longest = 0;
	t->switches = count_switches();
	t->began = me_audit_time_stamp();
	t->open = 1 + w->function;
}

void me_audit_end_window(const struct me_audit_work *w)
{
	close_window(w,
		     count_switches() == w->thread->switches ? MP_AUDIT_TIMED : MP_AUDIT_PREEMPTED);
}

bool me_audit_other_is_open(const struct me_audit_work *w, uint64_t least)
{
	struct me_audit_thread *t = w->thread;
	uint64_t longest = least * (t->rsp ? LONGEST_TIMING : LONGEST);

	if (t->rsp && t->longest)
		longest = t->longest;
	if (t->open && w->now - t->began > longest)
		me_audit_abandon(w);
	return t->open;
}

static void start_timing(const struct me_audit_work *w)
{
	struct me_audit_thread *t = w->thread;

	t->starts++;
	t->rsp = w->rsp;
	t->nested = 0;
	w->slot->timing = 1;
	count_down(w, 0);
	t->entered = me_audit_time_stamp();
	/* Its end takes about as long as its start. */
	t->cost = 2 * (t->entered - w->now);
	w->slot->spent += t->cost;
}

/* ---- entries and exits ------------------------------------------------------------------- */

static uint32_t read_verdict(const struct me_audit_work *w)
{
	return w->state->ring
		       ? __atomic_load_n(&me_ring_function(w->state->ring, w->function)->verdict,
					 __ATOMIC_RELAXED)
		       : 0;
}

bool me_audit_obey(const struct me_audit_work *w)
{
	uint32_t verdict = read_verdict(w);

	w->slot->decided = verdict == MP_AUDIT_VERDICT_A || verdict == MP_AUDIT_VERDICT_B;
	if (!w->slot->decided)
		return false;
	if (w->thread->open == 1 + w->function)
		me_audit_abandon(w);
	w->slot->window = 0;
	w->slot->version = verdict == MP_AUDIT_VERDICT_B ? MP_AUDIT_B : MP_AUDIT_A;
	count_down(w, MOST_ENTRIES);
	return true;
}

/* Loops time a function that has timing points. While one does, other threads and recursive calls
 * must show themselves. */
static void enter_loops(const struct me_audit_work *w)
{
	count_down(w, w->thread->open == 1 + w->function ? 0 : MOST_ENTRIES);
}

/* The invocation that is timed calls its function. Return: false: the timing was abandoned. */
static bool recur(const struct me_audit_work *w)
{
	struct me_audit_thread *t = w->thread;

	if (++t->nested > MOST_RECURSIONS) {
		me_audit_abandon(w);
		return false;
	}
	count_down(w, 0);
	w->slot->spent += t->cost;
	return true;
}

static void enter(const struct me_audit_work *w)
{
	struct me_audit_thread *t = w->thread;
	struct me_audit_slot *slot = w->slot;
	uint64_t least, due;

	if (t->open && t->rsp && w->rsp >= t->rsp)
		me_audit_abandon(w);
	if (me_audit_obey(w)) {
		me_untimed_enter(w->state, w->ret, slot->version);
		return;
	}
	if (w->loops) {
		enter_loops(w);
		return;
	}
	if (t->open == 1 + w->function && !t->rsp) {
		start_timing(w);
		return;
	}
	if (t->open == 1 + w->function && recur(w))
		return;
	least = me_audit_least_ticks(w);
	if (!least) {
		slot->version = MP_AUDIT_A;
		count_down(w, w->state->ring ? LAST_LOOK : MOST_ENTRIES);
		return;
	}
	if (me_audit_other_is_open(w, least)) {
		wait_for_other(w);
		return;
	}
	if (!slot->window)
		me_audit_first_pair(w);
	due = me_audit_due(w);
	if (w->now < due) {
		wait(w, due);
	} else {
		me_audit_open_window(w);
		start_timing(w);
	}
}

static void leave(const struct me_audit_work *w)
{
	struct me_audit_thread *t = w->thread;

	if (t->open != 1 + w->function || !t->rsp) {
		w->slot->timing = 0;
		return;
	}
	if (w->rsp < t->rsp)
		return;
	if (w->slot->point) {
		me_audit_leave_loop(w);
		return;
	}
	if (w->rsp > t->rsp) {
		me_audit_abandon(w);
		return;
	}
	t->ticks += w->now - t->entered;
	t->rounds++;
	t->stops++;
	t->rsp = 0;
	w->slot->timing = 0;
	if (w->now - t->began >= w->state->least)
		me_audit_end_window(w);
}

bool me_audit_begin(struct me_audit_work *w, const struct me_runtime_params *params,
		    const uint64_t *ret)
{
	uint32_t number;

	__builtin_memcpy(&number, (const char *)ret[0] + 1, sizeof(number));
	*w = (struct me_audit_work){.function = number & ME_AUDIT_NUMBER_FUNCTION,
				    .ret = (uint8_t *)ret[0]};
	if (w->function >= params->nr_audited)
		return false;
	w->loops = number & ME_AUDIT_NUMBER_LOOPS;
	w->point = 1 + (number >> ME_AUDIT_NUMBER_POINT) % ME_AUDIT_MAX_POINTS;
	w->version = number >> ME_AUDIT_NUMBER_VERSION & 1;
	w->least_rounds = number >> ME_AUDIT_NUMBER_ROUNDS;
	w->params = params;
	w->state = me_audit_state_of(params);
	w->rsp = (uint64_t)(ret + 1) + ME_RED_ZONE;
	w->thread = me_audit_thread_find(params, &w->slots);
	w->slot = w->slots + w->function;
	if (!w->thread) {
		w->slot->countdown = MOST_ENTRIES;
		return false;
	}
	/* This code runs already, below: a signal handler interrupted it. If it runs above, it was
	 * left by longjmp(). */
	if (w->thread->busy && w->rsp < w->thread->busy)
		return false;
	w->thread->busy = w->rsp;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

void me_audit_end(const struct me_audit_work *w)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	w->thread->busy = 0;
}

void me_runtime_audit_enter(const struct me_runtime_params *params, const uint64_t *ret)
{
	struct me_audit_work w;
	uint64_t now = me_audit_time_stamp();

	if (!me_audit_begin(&w, params, ret))
		return;
	w.now = now;
	enter(&w);
	me_audit_end(&w);
}

void me_runtime_audit_leave(const struct me_runtime_params *params, const uint64_t *ret,
			    uint64_t now)
{
	struct me_audit_work w;

	if (!me_audit_begin(&w, params, ret))
		return;
	w.now = now;
	leave(&w);
	me_audit_end(&w);
}

void me_audit_start(const struct me_runtime_params *params, int fd, bool fsgsbase)
{
	struct me_audit_state *state = me_audit_state_of(params);

	state->fsgsbase = fsgsbase;
	if (fd >= 0)
		state->ring = me_ring_map(params, fd);
	state->ns = clock_ns();
	state->ticks = me_audit_time_stamp();
	me_audit_threads_start(params);
}
