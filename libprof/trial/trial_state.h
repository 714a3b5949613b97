// SPDX-License-Identifier: Apache-2.0
/*
 * trial_state - a trial as one JSON text, so that a worker that was killed goes on with it.
 *
 * The text has the trial's settings and what was measured in each pair. Loading adds these pairs
 * again, one by one, so that everything else, bets and verdict included, follows from them and
 * cannot contradict them. Numbers are written so that they are read as the same. Called by
 * morph-worker.
 */
#ifndef MP_TRIAL_STATE_H
#define MP_TRIAL_STATE_H

#include <stddef.h>

#include "libprof/base/err.h"
#include "libprof/trial/trial.h"

/* A text longer than this, in bytes, is refused. */
#define MP_TRIAL_STATE_MAX (32u << 20)

/*
 * mp_trial_save - writes a new file, and renames it to @path once it is complete on the disk.
 * Return: 0, -errno.
 */
int mp_trial_save(const struct mp_trial *t, const char *path, struct mp_err *err);
/*
 * mp_trial_load - Return: 0; -EBADMSG: this is no such text: torn, hostile, too long; -ENOENT and
 * other -errno of reading; -ENOMEM. Ownership: mp_trial_free(*@out).
 */
int mp_trial_load(const char *path, struct mp_trial **out, struct mp_err *err);
/* The same of a text in memory. Ownership: free() the text. */
int mp_trial_to_text(const struct mp_trial *t, char **text);
int mp_trial_from_text(const char *text, size_t size, struct mp_trial **out, struct mp_err *err);

#endif
