// SPDX-License-Identifier: Apache-2.0
/*
 * saved - what the versions of Morph that were in place saved of this machine's CPU time, in the last days.
 *
 *	history and jobs -> uses: from when to when a version lay in a program's place, and what it gained
 *	store            -> samples of each day, of all modules and of each use
 *	sessions         -> seconds of CPU time that a sample stands for
 *
 * A version that is r times as fast saves r - 1 of the time that it takes. The time is that of the program's own
 * code, by its samples; what the program takes in libraries and in the kernel is left out, so this is rather too
 * little. Limits of several programs are added up: all may be at their worst at once. Reads the store and the
 * times of files, changes nothing. Called by the commands of morph that show the machine.
 */
#ifndef MD_SAVED_H
#define MD_SAVED_H

#include "daemon/machine/machine.h"

/* Days that are looked at: those that the store keeps apart. The last one is today, in UTC. */
#define MD_SAVED_DAYS MP_KEEP_DAYS

/* Seconds of CPU time; samples if has_rate is false. */
struct md_saved_time {
	double used;		   /* was taken */
	double saved, least, most; /* the originals would have taken so much more */
};

struct md_saved_program {
	char *path;
	struct mp_job_gain gain; /* the last one; ratio 0: it was not measured */
	bool in_use;		 /* still */
	struct md_saved_time time;
};

struct md_saved {
	int64_t since_s; /* where the period begins */
	bool whole;	 /* the store had samples in all of MD_SAVED_DAYS */
	bool has_rate;	 /* it is known how often was sampled */
	struct md_saved_time all, days[MD_SAVED_DAYS]; /* the oldest first */
	int64_t first_day;			       /* days since 1970 */
	struct md_saved_program *programs; /* that had a version in place in the period */
	size_t nr_programs, nr_measured;
};

/* md_saved_load - Return: 0, -errno. Ownership: md_saved_fini(@out), after an error too. */
int md_saved_load(struct mp_store *store, const struct md_machine *machine, int64_t now_s,
		  struct md_saved *out, struct mp_err *err);
void md_saved_fini(struct md_saved *saved);

/* Percent of what the originals would have taken. @saved: one of the three of @time. */
double md_saved_percent(const struct md_saved_time *time, double saved);

/* A version in place, from @from_s to @to_s. */
struct md_use {
	char *path;
	struct mp_id id; /* of the original */
	int64_t from_s, to_s;
	struct mp_job_gain gain;
	const struct mp_job *job; /* NULL: it has ended, or has no job */
	bool ended;
};
/*
 * md_uses_find - all uses that the @decisions (oldest first), the machine's jobs and files tell of. Return: 0,
 * -ENOMEM. Ownership: md_uses_free().
 */
struct mp_decision;
int md_uses_find(const struct md_machine *machine, const struct mp_decision *decisions,
		 size_t nr_decisions, int64_t now_s, struct md_use **out, size_t *nr);
void md_uses_free(struct md_use *uses, size_t nr);

#endif
