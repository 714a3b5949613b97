// SPDX-License-Identifier: Apache-2.0
/* test_windows - a version that counts takes at most the policy's part of the machine in each minute. */
#include "tests/unit/suite.h"

#include "daemon/everyday/windows.h"

static const struct md_policy policy = {.cost = 0.01};

/* Plays @seconds of a program that takes @cpus; returns what its counting took in the dearest minute. */
static double play(struct md_budget *budget, struct md_windows *w, int seconds, double cpus,
		   double *counted_s, bool *over)
{
	double cpu_s = 0, cost[3600] = {0}, most = 0;
	bool there = false;

	for (int s = 1; s <= seconds && !*over; s++) {
		double used = there ? cpus : 0;

		cpu_s += used;
		cost[s] = used * w->overhead;
		switch (md_windows_look(budget, w, s, there, cpu_s)) {
		case MD_WINDOWS_OPEN: there = true; break;
		case MD_WINDOWS_CLOSE: there = false; break;
		case MD_WINDOWS_OVER: *over = true; break;
		case MD_WINDOWS_STAY: break;
		}
	}
	for (int from = 1; from + 60 < seconds; from++) {
		double sum = 0;

		for (int s = from; s < from + 60; s++)
			sum += cost[s];
		most = sum > most ? sum : most;
	}
	*counted_s = cpu_s;
	return most;
}

TEST(windows_keep_the_budget_and_end)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	bool over = false;
	struct md_budget budget;
	struct md_windows w;
	double counted_s, most;

	md_budget_begin(&budget, &policy, 1, 0);
	md_windows_begin(&w, 1, false, 0);
	most = play(&budget, &w, 3500, (double)cpus, &counted_s, &over);
	/* A full minute's budget at the start, what a minute brings, and a second that is not looked at. */
	ck_assert(most <= 0.01 * 60 * (double)cpus * 2 + (double)cpus * MD_WINDOWS_OVERHEAD);
	ck_assert(over);
	ck_assert(counted_s >= MD_WINDOWS_CPU_S);
}

/* One that is long, and then none before the next ten minutes have brought what it spent. */
TEST(windows_in_running_processes_spend_ten_minutes_ahead)
{
	double rate = 0.02, spent_s = 0, cpu_s = 0;
	const struct md_policy some = {.cost = rate / (double)sysconf(_SC_NPROCESSORS_ONLN)};
	struct md_budget budget;
	struct md_windows w;
	int second = 1;

	md_budget_begin(&budget, &some, 1, 0);
	md_windows_begin(&w, 1, true, 0);
	ck_assert_int_eq(md_windows_look(&budget, &w, second, false, 0), MD_WINDOWS_OPEN);
	do {
		cpu_s += rate * 50;
		spent_s += rate * 50 * MD_WINDOWS_SHARED;
	} while (md_windows_look(&budget, &w, ++second, true, cpu_s) == MD_WINDOWS_STAY);
	ck_assert_double_ge(spent_s, rate * (60 + 600));
	ck_assert_double_le(spent_s, rate * (60 + 600 + second + 50));
	for (int i = 0; i < 600; i++)
		ck_assert_int_eq(md_windows_look(&budget, &w, ++second, false, cpu_s),
				 MD_WINDOWS_STAY);
	while (second < 1000 &&
	       md_windows_look(&budget, &w, ++second, false, cpu_s) == MD_WINDOWS_STAY)
		;
	ck_assert_int_lt(second, 1000);
}

TEST(windows_of_a_program_that_never_runs_end_after_their_time)
{
	bool over = false;
	struct md_budget budget;
	struct md_windows w;
	double counted_s;

	md_budget_begin(&budget, &policy, 1, 0);
	md_windows_begin(&w, 1, false, 0);
	play(&budget, &w, MD_WINDOWS_PLACE_S - 10, 0, &counted_s, &over);
	ck_assert(!over);
	md_budget_begin(&budget, &policy, 1, 0);
	md_windows_begin(&w, 1, false, 0);
	play(&budget, &w, MD_WINDOWS_PLACE_S + 10, 0, &counted_s, &over);
	ck_assert(over);
	ck_assert(counted_s == 0);
}

TEST(windows_wait_while_processes_go_on)
{
	struct md_budget budget;
	struct md_windows w;

	md_budget_begin(&budget, &policy, 1, 0);
	md_windows_begin(&w, 1, false, 0);
	ck_assert_int_eq(md_windows_look(&budget, &w, 1, false, 0), MD_WINDOWS_OPEN);
	ck_assert_int_eq(md_windows_look(&budget, &w, 2, true, 50), MD_WINDOWS_CLOSE);
	/* What they took is paid off before the next window. */
	ck_assert_int_eq(md_windows_look(&budget, &w, 3, false, 50), MD_WINDOWS_STAY);
	ck_assert_int_eq(md_windows_look(&budget, &w, 3600, false, 50), MD_WINDOWS_OPEN);
}

TEST(windows_of_two_programs_share_the_budget)
{
	struct md_budget budget;
	struct md_windows one, two;

	md_budget_begin(&budget, &policy, 1, 0);
	md_windows_begin(&one, 1, false, 0);
	md_windows_begin(&two, 1, false, 0);
	ck_assert_int_eq(md_windows_look(&budget, &one, 1, false, 0), MD_WINDOWS_OPEN);
	ck_assert_int_eq(md_windows_look(&budget, &two, 1, false, 0), MD_WINDOWS_OPEN);
	/* What the first one spends, the second one cannot. */
	ck_assert_int_eq(md_windows_look(&budget, &one, 2, true, 50), MD_WINDOWS_CLOSE);
	ck_assert_int_eq(md_windows_look(&budget, &two, 2, true, 0), MD_WINDOWS_CLOSE);
	ck_assert_int_eq(md_windows_look(&budget, &two, 3, false, 0), MD_WINDOWS_STAY);
}
