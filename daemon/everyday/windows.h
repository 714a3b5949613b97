// SPDX-License-Identifier: Apache-2.0
/*
 * windows - when a version that counts is in place, such that it costs at most the policy's part of the machine in each
 * minute. Decides by numbers alone; called by step_count each second.
 *
 * A budget of CPU seconds grows by cost * processors each second, up to that of a minute. The processes of the
 * version spend from it what counting takes of their time. The version is put in place when half of the minute's
 * budget is there, and taken away when nothing is left. Processes that started in time may go on, and spend on; the
 * next window then comes later. All programs that count share one budget.
 */
#ifndef MD_WINDOWS_H
#define MD_WINDOWS_H

#include <stdbool.h>

#include "daemon/policy/policy.h"

/*
 * Part of its processes' CPU time that counting takes. Assumption, on the safe side: measured were 15 % of the time of a
 * compiler, and up to 20 % of others (Documentation/lab/results.md).
 */
#define MD_WINDOWS_OVERHEAD 0.2
/*
 * The same in running processes, where threads share counters that are not atomic, and lose some counts. Measured were 19 % of
 * mariadbd's time with two clients on two CPUs; more CPUs wait for each other longer. (Atomic counters took 76 %.)
 */
#define MD_WINDOWS_SHARED 0.3
/*
 * A change of running processes takes as much CPU time as seconds of counting, so a window there may spend what the next
 * ten minutes bring. The budget is then kept over ten minutes.
 */
#define MD_WINDOWS_AHEAD_S 600
/*
 * A window takes at least so much CPU time. Of 33 s of a build farm's cc1, windows of 1.3 s give a meter that is wrong by 0.09
 * to 0.16 on a second of unseen work, windows of 0.25 s one that is wrong by 0.04 to 0.05.
 */
#define MD_WINDOW_S 0.25
/* Counting ends at the latest after so much CPU time of the version, or after so long in place, in seconds. */
#define MD_WINDOWS_CPU_S   60
#define MD_WINDOWS_PLACE_S 600
/* Less is no profile. */
#define MD_WINDOWS_LEAST_S 5
/*
 * Counting goes on for so long even if the counts agree with each other: they come from some minutes, in which the
 * program did perhaps one kind of work.
 */
#define MD_WINDOWS_ENOUGH_S 30

struct md_budget {
	double rate, most; /* CPU seconds a second; its upper limit */
	double left;	   /* what may be spent */
	double at_s;	   /* the last look */
};

/* The windows of one program that counts. */
struct md_windows {
	double at_s;	  /* the last look */
	double cpu_s;	  /* of the version's processes by then */
	double place_s;	  /* seconds in place */
	double counted_s; /* cpu_s at the end of the last window */
	size_t next_look; /* windows at which to look next whether they are enough */
	double pace;	  /* all times are so much shorter; 1 but in tests */
	double overhead;  /* part of the version's CPU time that counting takes */
	double ahead_s;	  /* seconds whose budget may be spent before they come */
};

enum md_windows_act {
	MD_WINDOWS_STAY,
	MD_WINDOWS_OPEN,  /* put the version in place */
	MD_WINDOWS_CLOSE, /* put the original back */
	MD_WINDOWS_OVER,  /* enough time was spent; it may be in place still */
};

/* @pace: times are so much shorter; 1 but in tests. @running: for versions in running processes. */
void md_budget_begin(struct md_budget *budget, const struct md_policy *policy, double pace,
		     double now_s);
void md_windows_begin(struct md_windows *w, double pace, bool running, double now_s);
/* @there: the version is in place; @cpu_s: what its processes took since the beginning. */
enum md_windows_act md_windows_look(struct md_budget *budget, struct md_windows *w, double now_s,
				    bool there, double cpu_s);

#endif
