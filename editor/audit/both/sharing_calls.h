// SPDX-License-Identifier: Apache-2.0
/*
 * sharing_calls - what one system call says about two runs of a command at the same time: would
 * they disturb each other, or use something that only one of them can have?
 *
 * Decides which calls are looked at, and judges each of them. A call that is not in the list is
 * taken for harmless. Called by audit_sharing.
 */
#ifndef ME_SHARING_CALLS_H
#define ME_SHARING_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The names that a run made for itself: exclusively, so that a second run makes other ones. */
struct me_own_names {
	char **names;
	uint32_t nr, room;
};

void me_own_names_fini(struct me_own_names *own);

/* A system call of the process @pid that is about to begin. */
struct me_call {
	pid_t pid;
	uint64_t nr;
	uint64_t args[6];
};

/*
 * me_sharing_filter - from now on each call of this process and its children that has to be judged
 * stops for the tracer (SECCOMP_RET_TRACE). Return: 0 or -errno.
 */
int me_sharing_filter(void);

/*
 * me_sharing_judge - does the call forbid a second run at the same time? Return: false if it does
 * not; true with the reason in @why, which continues "since ". Adds to @own what the call makes.
 */
bool me_sharing_judge(const struct me_call *call, struct me_own_names *own, char *why, size_t size);

#endif
