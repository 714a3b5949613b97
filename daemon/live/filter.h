// SPDX-License-Identifier: Apache-2.0
/*
 * filter - do the seccomp filters of a stopped thread allow the system calls that are about to be made in it? The kernel gives
 * the filters, programs of classic BPF, which are executed here for each call. What is not known of a call, such as the number of
 * a descriptor, must not matter. Called by inject.
 */
#ifndef MD_LIVE_FILTER_H
#define MD_LIVE_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "libprof/base/err.h"

struct md_filter_call {
	struct seccomp_data data;
	unsigned int unknown; /* bit k: argument k is not known */
};
#define MD_FILTER_NO_IP (1u << 8) /* in @unknown: nor is the instruction pointer */

/* Does the thread run behind a filter? */
bool md_filter_is_there(pid_t tid);
/* Does the program of @nr instructions return SECCOMP_RET_ALLOW for @call, whatever is not known? */
bool md_filter_allows(const struct sock_filter *program, size_t nr,
		      const struct md_filter_call *call);
/*
 * md_filter_check - asks all filters of thread @tid, which this program has stopped. Return: 0; -EPERM: one of them does not
 * allow one of the calls, or this program may not read it, with a message; -ENOMEM.
 */
int md_filter_check(pid_t tid, const struct md_filter_call *calls, size_t nr_calls,
		    struct mp_err *err);

#endif
