// SPDX-License-Identifier: Apache-2.0
/*
 * store_trials - versions of a file that were tried on a machine, and what came of each. The
 * editor's refine/ adds them and reads them before it tries anything; morph-stats trials shows
 * them. mp_store_merge() copies them: each names its machine.
 */
#ifndef MP_STORE_TRIALS_H
#define MP_STORE_TRIALS_H

#include "libprof/store/store.h"

/* Longest texts that are kept; a longer one is refused. */
#define MP_TRIAL_TEXT_MAX 4096

struct mp_trial {
	struct mp_id original; /* the file that the version was made of */
	char *machine;	       /* kind of processor, such as "AMD EPYC 7B13" */
	char *functions;       /* names of the functions that were adjusted, separated by blanks */
	char *adjustments;     /* by address, separated by blanks; "": the layout alone */
	/* an audit's: "faster", "slower", "equal", "undecided" or "output differs" */
	char *verdict;
	uint32_t nr_runs; /* pairs of an audit, or runs */
	/* times as fast as the version it was compared with, and an interval; 0: not known */
	double ratio, lowest, highest;
	int64_t when_s;
};

/* Return: 0, -EINVAL: a text is too long or a number is no number. */
int mp_store_add_trial(struct mp_store *store, const struct mp_trial *trial, struct mp_err *err);
/*
 * Trials of @original (NULL: of all files) on @machine (NULL: on all), oldest first. Ownership:
 * mp_store_free_trials(). Return: 0, -EBADMSG: damaged.
 */
int mp_store_list_trials(struct mp_store *store, const struct mp_id *original, const char *machine,
			 struct mp_trial **out, size_t *nr, struct mp_err *err);
void mp_store_free_trials(struct mp_trial *trials, size_t nr);
/* For store_merge: copies all trials that @out does not have. */
int mp_store_merge_trials(struct mp_store *out, struct mp_store *in, struct mp_err *err);
/* For store_check: all of them can be read. */
int mp_store_check_trials(struct mp_store *store, struct mp_err *err);

#endif
