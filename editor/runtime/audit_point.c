// SPDX-License-Identifier: Apache-2.0
/*
 * audit_point - times loops of audited functions that are entered rarely (Lau and others, CGO 2008,
 * section 5). Called by the stubs in loops, through start.S.
 *
 * Both versions have the same state at a timing point, so control may go from one version to the
 * other there. A pair of windows is as in audit.c, but a window begins and ends at one timing
 * point, and has one timing of as many rounds as take WINDOW_NS. The stub counts rounds down and
 * calls the runtime behind the last one. So the clock is read twice a window, however short a
 * round is. If the function returns meanwhile, the timing ends there, and the window goes on with
 * another timing in the next invocation.
 *
 * A window counts rounds of the version that it is about only: a round that begins in the other
 * version calls the runtime at once, and the window is abandoned. So it is if a round begins
 * above on the stack. Rounds of recursive calls are part of a timing. All else is as in audit.c.
 *
 * After a verdict the stub leads on to the same block of the winner without stubs, so a loop that
 * never ends costs nothing more, either.
 */
#include "editor/runtime/audit.h"

#include "editor/runtime/audit_private.h"

/* Another timing point ends a window that takes this many times longer than expected. */
#define LONGEST_ROUNDS 64
/* Rounds may be shorter from now on; to look too early costs little. */
#define FASTER 8
/*
 * After a verdict the runtime is called after this many rounds, and has the stub lead to code without
 * stubs. An invocation with fewer rounds ends before. Such a call costs about as many instructions
 * as the stubs of this many rounds. So what is paid is at most twice the least that it could be.
 */
#define LEAVING_ROUNDS 64

static struct me_audit_point *point_of(const struct me_audit_work *w)
{
	return &w->slot->points[w->point - 1];
}

/* Call the runtime after @rounds more rounds of the version that runs, at once from the other. */
static void count_down(const struct me_audit_work *w, uint64_t rounds)
{
	struct me_audit_point *p = point_of(w);
	uint8_t version = w->slot->version == MP_AUDIT_B;

	if (rounds > MOST_ENTRIES)
		rounds = MOST_ENTRIES;
	if (rounds < w->least_rounds)
		rounds = w->least_rounds;
	if (!rounds)
		rounds = 1;
	p->since = w->now;
	p->rounds = rounds;
	p->least = w->least_rounds;
	p->left[!version] = 0;
	p->left[version] = (int32_t)(rounds - 1);
}

/* Rounds of both versions since the last count_down(). */
static uint64_t rounds_passed(const struct me_audit_work *w)
{
	const struct me_audit_point *p = point_of(w);
	int64_t left = (int64_t)p->left[0] + p->left[1] + 1, rounds = (int64_t)p->rounds;

	return left < rounds ? (uint64_t)(rounds - left) : 0;
}

/* Ticks that one of these rounds took. */
static uint64_t ticks_each(const struct me_audit_work *w)
{
	return (w->now - point_of(w)->since) / (rounds_passed(w) + 1) + 1;
}

/* Number of rounds in @ticks, at the speed of the last ones. */
static uint64_t rounds_in(const struct me_audit_work *w, uint64_t ticks)
{
	uint64_t rounds = ticks / ticks_each(w) + 1, most = FASTER * (rounds_passed(w) + 1);

	return rounds < most ? rounds : most;
}

/* Another window is open: look again later, the more rarely the longer it is. */
static void wait_for_other(const struct me_audit_work *w)
{
	uint64_t rounds = 16 + (w->now & 15), last = point_of(w)->rounds;

	count_down(w, w->thread->rsp && rounds < 2 * last ? 2 * last : rounds);
}

static void start_timing(const struct me_audit_work *w, uint64_t rounds)
{
	struct me_audit_thread *t = w->thread;

	t->starts++;
	t->rsp = w->rsp;
	w->slot->timing = 1;
	/* The next entry must show itself: another thread, or a recursive call. */
	w->slot->countdown = 0;
	count_down(w, rounds);
	t->entered = me_audit_time_stamp();
	w->slot->spent += 2 * (t->entered - w->now) + TIMING_TICKS;
}

static void open_window(const struct me_audit_work *w, uint64_t least)
{
	uint64_t rounds = rounds_in(w, least), each = ticks_each(w);

	w->slot->point = w->point;
	me_audit_open_window(w);
	w->thread->longest = LONGEST * least + LONGEST_ROUNDS * each;
	start_timing(w, rounds);
}

static void stop_timing(const struct me_audit_work *w, uint64_t rounds)
{
	struct me_audit_thread *t = w->thread;

	t->ticks += w->now - t->entered;
	t->rounds += rounds;
	t->stops++;
	t->rsp = 0;
	w->slot->timing = 0;
}

/* Rounds of the open window have passed. */
static void pass(const struct me_audit_work *w, uint64_t least)
{
	struct me_audit_thread *t = w->thread;
	uint64_t passed = t->ticks + w->now - t->entered;

	if (w->version != w->slot->version || w->now - t->began > t->longest) {
		me_audit_abandon(w);
		count_down(w, 1);
		return;
	}
	if (w->rsp < t->rsp || passed < least) {
		t->rounds += rounds_passed(w);
		count_down(w, passed < least ? rounds_in(w, least - passed) : 1);
		return;
	}
	stop_timing(w, rounds_passed(w));
	me_audit_end_window(w);
	count_down(w, rounds_in(w, least));
}

/* A round begins in an open window in which no timing runs, as the function has returned. */
static void go_on(const struct me_audit_work *w, uint64_t least)
{
	if (w->version == w->slot->version && w->thread->ticks < least)
		start_timing(w, rounds_in(w, least - w->thread->ticks));
	else
		count_down(w, 1);
}

/*
 * The last round ends with the function. A timing of too few rounds is not one. A window goes on in
 * the next invocation.
 */
void me_audit_leave_loop(const struct me_audit_work *w)
{
	struct me_audit_thread *t = w->thread;
	struct me_audit_work at = *w;
	struct me_audit_point *p;

	at.point = w->slot->point;
	if (at.point < 1 || at.point > ME_AUDIT_MAX_POINTS) {
		me_audit_abandon(w);
		return;
	}
	p = point_of(&at);
	if (rounds_passed(&at) + 1 < p->least) {
		t->abandoned++;
		t->rsp = 0;
		w->slot->timing = 0;
	} else {
		stop_timing(&at, rounds_passed(&at) + 1);
		if (t->ticks >= w->state->least)
			me_audit_end_window(w);
	}
	p->left[0] = p->left[1] = 0;
	p->rounds = 1;
	p->since = w->now;
}

/* The pair waits for its second window at another timing point, which may not be passed again. */
static bool is_elsewhere(const struct me_audit_work *w, uint64_t least)
{
	struct me_audit_slot *slot = w->slot;

	if (slot->window != 2 || slot->point == w->point)
		return false;
	if (w->now < slot->due + least * LONGEST)
		return true;
	me_audit_draw_pair(w, slot);
	return false;
}

static void pass_point(const struct me_audit_work *w)
{
	struct me_audit_thread *t = w->thread;
	struct me_audit_slot *slot = w->slot;
	uint64_t least = me_audit_least_ticks(w), due;
	bool decided = slot->decided;

	if (t->open && t->rsp && w->rsp > t->rsp)
		me_audit_abandon(w);
	if (me_audit_obey(w)) {
		/* The next entry can be led past the stubs. */
		if (!decided)
			slot->countdown = 0;
		count_down(w, LEAVING_ROUNDS);
		return;
	}
	if (!least) {
		slot->version = MP_AUDIT_A;
		count_down(w, me_audit_next_look(w, point_of(w)->rounds));
		return;
	}
	if (t->open == 1 + w->function && slot->point == w->point) {
		(t->rsp ? pass : go_on)(w, least);
		return;
	}
	if (me_audit_other_is_open(w, least)) {
		wait_for_other(w);
		return;
	}
	if (!slot->window)
		me_audit_first_pair(w);
	due = me_audit_due(w);
	if (w->now < due || is_elsewhere(w, least))
		count_down(w, w->now < due ? rounds_in(w, due - w->now) : rounds_in(w, least));
	else if (w->version != slot->version)
		count_down(w, 1);
	else
		open_window(w, least);
}

void me_runtime_audit_point(const struct me_runtime_params *params, const uint64_t *ret,
			    uint64_t now)
{
	struct me_audit_work w;

	if (!me_audit_begin(&w, params, ret)) {
		if (w.slot && !w.thread)
			point_of(&w)->left[0] = point_of(&w)->left[1] = MOST_ENTRIES;
		return;
	}
	w.now = now;
	pass_point(&w);
	me_audit_end(&w);
}
