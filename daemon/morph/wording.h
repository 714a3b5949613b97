// SPDX-License-Identifier: Apache-2.0
/*
 * wording - how the commands of morph name states, gains and reasons, so that all say the same.
 * Decides wording only.
 */
#ifndef MD_WORDING_H
#define MD_WORDING_H

#include <stdbool.h>
#include <stdio.h>

#include "daemon/machine/machine.h"
#include "daemon/machine/saved.h"

#define MD_WORDING_MAX 64

/* By its samples so far there was nothing to move: only such a refused job stores their number. */
bool md_wording_has_nothing_yet(const struct md_machine_program *program);
/* The state of a program, in at most 24 columns. */
const char *md_wording_state(const struct md_machine_program *program);
/* One word for scripts: "not-tried", "in-use", "gone", or the name of the job's state. */
const char *md_wording_state_key(const struct md_machine_program *program);
/*
 * Why the program is not optimised, or what has become of it: one or more sentences. Return: NULL
 * if out of memory. Ownership: free().
 */
char *md_wording_reason(const struct md_machine_program *program);

/* "4.1 % faster (2.0 to 6.3)", "not measured". @buf holds MD_WORDING_MAX bytes. */
const char *md_wording_gain(const struct mp_job_gain *gain, char *buf);
/* "1.93 % (0.41 to 3.44)". @buf holds MD_WORDING_MAX bytes. */
const char *md_wording_worth(const struct md_worth *worth, char *buf);

/*
 * "Saved 4.1 % (3.2 to 5.0) of this machine's CPU time in the last 7 days, 31,400 s", and how many programs were
 * not measured. Return: false: no version was in place. @buf holds MD_WORDING_SAVED_MAX bytes.
 */
#define MD_WORDING_SAVED_MAX 320
bool md_wording_saved(const struct md_saved *saved, char *buf);

/* Prints @text in exactly @width columns; a longer one loses its beginning. */
void md_wording_put_path(FILE *out, const char *text, size_t width);
/* The time of a day, "2026-11-20 14:03", or "-". @buf holds MD_WORDING_MAX bytes. */
const char *md_wording_time(int64_t time_s, char *buf);

#endif
