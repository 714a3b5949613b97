// SPDX-License-Identifier: Apache-2.0
/*
 * place - where copies may lie in one process, or in several at the same time: free memory within reach of the code, at
 * an address that is the same everywhere, relative to where each has loaded the file. Called by `morph live place'.
 */
#ifndef MD_LIVE_PLACE_H
#define MD_LIVE_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/live/process.h"

struct md_taken {
	uint64_t start, end;
};

/* All addresses are link-time addresses of the file. */
struct md_place {
	struct md_taken *taken; /* in any of the processes */
	size_t nr_taken, room;
	uint64_t low, high; /* bounds of the file's segments */
	uint64_t code_size; /* bytes of its code */
	uint64_t align;	    /* the largest of its segments */
};

/*
 * md_place_add - what is taken in @process. @path: a file that it runs, or ran from there before another file got the name;
 * NULL: its program. Return: 0; -ENOENT: it does not have the file; -EPERM: it cannot be told; -errno; each with a message.
 * Ownership: md_place_fini(), also after an error. @place: zeros at first.
 */
int md_place_add(struct md_place *place, const struct md_process *process, const char *path,
		 struct mp_err *err);
/* The same for a file that is loaded @bias bytes above its link-time address. Return: 0, -ENOMEM. */
int md_place_add_maps(struct md_place *place, const struct md_process *process, uint64_t bias);
void md_place_fini(struct md_place *place);

/*
 * md_place_find - @size free bytes within reach of the file's segments, above them. Leaves room for heaps and stacks.
 * Return: their start; 0: there are none.
 */
uint64_t md_place_find(struct md_place *place, uint64_t size);
/*
 * md_place_choose - @nr addresses for morph-optimize's --live-at, ascending, which can be used at the same time. @whole: each
 * has room for a version of the whole file, with counters; else for as much as there is, and @nr is 1.
 * Return: 0; -ENOSPC with a message.
 */
int md_place_choose(struct md_place *place, size_t nr, bool whole, uint64_t *out,
		    struct mp_err *err);

#endif
