// SPDX-License-Identifier: Apache-2.0
/*
 * trying - the blocks of a trial (libprof/trial/trial.h): when one is long enough, what its processes took, and what they
 * counted. Called by step_trial.
 */
#ifndef MD_TRYING_H
#define MD_TRYING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/everyday/count_dir.h"
#include "daemon/worker/live.h"
#include "libprof/base/err.h"
#include "libprof/trial/trial.h"

/*
 * A block has at least so much CPU time of the program, and lasts at least and at most so long, in seconds. The first
 * pairs' blocks are short: both do the same kind of work then, of which a meter knows least. A trial that needs more pairs
 * looks for a small effect, and has time.
 */
#define MD_BLOCK_CPU_S	    2.0
#define MD_BLOCK_S	    6.0
#define MD_BLOCK_MAX_S	    600.0
#define MD_SHORT_PAIRS	    150
#define MD_SHORT_BLOCK_PART (1.0 / 3)
/* A long block with less work than this, in seconds of the meter, would say nothing; a short one, with a part of it. */
#define MD_BLOCK_LEAST_WORK 0.2
/*
 * A change of a large process takes a fifth of a CPU second. In its first hour, a trial in running processes may spend so many times
 * what swaps may take otherwise; over a day, that is an eighth more.
 */
#define MD_TRIAL_HASTE	 4
#define MD_TRIAL_HASTE_S 3600
/* After so many pairs, or so many days, a trial ends undecided. */
#define MD_TRIAL_PAIRS 2000
#define MD_TRIAL_DAYS  7

struct md_trying {
	struct mp_trial *trial;
	bool metered; /* false: system time is the work, user time is what is compared */
	enum md_variant version[2]; /* the two versions */
	struct md_work_path dir[2]; /* where they count */
	uint64_t table_hash[2];
	uint32_t nr_counters;
	int order;		/* the version of the pair's first block; -1: no pair has begun */
	int block;		/* 0, 1: which of the two blocks goes on */
	double part;		/* of a block's usual time, of this pair's blocks */
	double begun_s, swap_s; /* the block's beginning; CPU seconds of the last swap */
	struct md_done before;	/* of the version in place, at the block's beginning */
	uint64_t counts_before[MP_TRIAL_NR_COUNTERS];
	struct mp_trial_block blocks[2]; /* by version */
	bool incomplete;		 /* of this pair, something was missed */
};

/*
 * md_trying_new - goes on with the trial in the job's directory. A pair that was begun by a worker that ended is
 * dropped, and the versions count into new files. Return: 0, -ENOENT: there is none, -EBADMSG, -errno. Ownership: md_trying_free(*@out), which takes NULL.
 */
int md_trying_new(struct md_task *task, struct md_trying **out);
void md_trying_free(struct md_trying *t);
/* Draws the order of the next pair, if none is drawn. Return: 0, -errno. */
int md_trying_draw(struct md_task *task, struct md_live *live);
/* The version of the block that goes on, or that comes next; a pair was drawn. */
enum md_variant md_trying_version(const struct md_trying *t);
/* Forgets the pair that was begun. Return: 0, -errno. */
int md_trying_drop(struct md_task *task, struct md_trying *t);
/* Begins a block: its version has just been put in place, or stays. Return: 0, -errno. */
int md_trying_begin(struct md_task *task, struct md_live *live);
/* Is the block long enough? @cost_rate: CPU seconds a second that swaps may take. Return: 1, 0, -errno. */
int md_trying_is_over(struct md_task *task, const struct md_live *live, double cost_rate);
/*
 * md_trying_does_harm - three processes of the new version more have crashed than in the week before the trial, and none of
 * the original's in the trial. The trial itself compares parts of the processes that ended in whole pairs. A service that does
 * not end with the original has none, and its processes outlive blocks. If it is chance, the original is only kept, and a
 * later round tries anew. Return: 1, 0, -errno.
 */
int md_trying_does_harm(struct md_task *task, const struct md_live *live);
/*
 * Ends the block; after the second one, adds the pair to the trial, and saves it. Return: 0, -errno.
 */
int md_trying_end(struct md_task *task, struct md_live *live);

#endif
