// SPDX-License-Identifier: Apache-2.0
/*
 * counting - what a version that counts has counted so far, cut into windows: pieces of a quarter of a second of its
 * CPU time. Tells when more counts would not make the layout better, and which counters tell how much work was done.
 * Called by step_count.
 */
#ifndef MD_COUNTING_H
#define MD_COUNTING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/everyday/count_dir.h"
#include "libprof/base/err.h"
#include "libprof/trial/meter_choose.h"

struct md_counting;

/*
 * md_counting_new - @file: the version that counts, into @dir. What is in @dir already belongs to no window, but counts.
 * Return: 0, -errno. Ownership: md_counting_free(*@out), which takes NULL.
 */
int md_counting_new(const char *file, const char *dir, struct md_counting **out,
		    struct mp_err *err);
void md_counting_free(struct md_counting *c);
/*
 * md_counting_window - ends a window in which the processes took @cpu_s. Return: 0, -errno. A window in which nothing
 * was counted is not kept.
 */
int md_counting_window(struct md_counting *c, double cpu_s, struct mp_err *err);
/* Return: the numbers of the last window, one for each of *@nr counters. They are valid until the next call. */
const uint64_t *md_counting_last(const struct md_counting *c, uint32_t *nr);
/* May a window end now? Not if the last look at the files took long, and not long ago. */
bool md_counting_is_due(const struct md_counting *c);
/*
 * md_counting_exclude - the version that counts has left the running processes. A thread that never leaves a loop stays in
 * its copy there, and goes on counting. Such counters tell nothing in the versions that come later, so the meter gets
 * none of those that have counted since the last look. @first: only takes the look. Return: 0, -errno.
 */
int md_counting_exclude(struct md_counting *c, bool first, struct mp_err *err);
/* CPU seconds of all windows, and their number. */
double md_counting_cpu_s(const struct md_counting *c);
size_t md_counting_nr(const struct md_counting *c);
/*
 * md_counting_is_enough - would more counts change the predicted saving by less than MP_ENOUGH_MORE points? Return: 1;
 * 0: no, or too few windows; -errno. *@more: these points, NAN: not known.
 */
int md_counting_is_enough(const struct md_counting *c, double *more, struct mp_err *err);
/* Writes all counts as one file of counts. Return: 0, -errno. */
int md_counting_save(const struct md_counting *c, const char *path, struct mp_err *err);
/*
 * md_counting_meter - chooses a work meter. Writes its places, one a line, to @path, if it has any (NULL: to no file). Return: 0, -EAGAIN: too
 * few windows, -errno.
 */
int md_counting_meter(const struct md_counting *c, const char *path, struct mp_meter *out,
		      struct mp_err *err);

#endif
