// SPDX-License-Identifier: Apache-2.0
/*
 * process_walk - walks the stack of a process that is stopped by ptrace, and compares the frames
 * with those of libdwfl, an unwinder of its own. Used by unit tests and by the tool walks.
 */
#ifndef TESTS_PROCESS_WALK_H
#define TESTS_PROCESS_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libprof/unwind/walk.h"

#define PROCESS_WALK_MAX 4096

struct process_walk;

/* @copy: walk on a copy of so many bytes of the stack, as from perf; 0: read the process. */
struct process_walk *process_walk_new(pid_t pid, size_t copy);
void process_walk_free(struct process_walk *pw);

struct walk_comparison {
	struct mp_walk_result result;
	uint64_t ips[PROCESS_WALK_MAX];
	uint64_t theirs[PROCESS_WALK_MAX]; /* libdwfl's frames, without the innermost one */
	size_t nr_theirs;
	size_t nr_same;		      /* frames up to the first difference */
	bool is_wrong;		      /* one of our frames differs from libdwfl's */
	bool is_perfect;	      /* complete, and all frames are the same */
	bool is_kmod_same;	      /* the kernel module's walk is ours, as far as it goes */
	size_t nr_kmod, nr_kmod_read; /* its frames, and those that it did not look up again */
};

/* Walks the stopped thread both ways. Return: 0, -errno. */
int process_walk_compare(struct process_walk *pw, struct walk_comparison *out);

#endif
