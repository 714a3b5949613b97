// SPDX-License-Identifier: Apache-2.0
/*
 * confirm - one process at a time that says whether a file is an output of an original; the asking
 * side of libprof/confirm.h. This program looks into neither file: it hands over descriptors, and
 * morph-optimize, without any right, reads and verifies. Called by outputs.
 */
#ifndef MD_CONFIRM_H
#define MD_CONFIRM_H

#include <stdbool.h>
#include <sys/types.h>

#include "libprof/confirm.h"

struct md_confirm {
	pid_t pid; /* 0: none */
	int answer;
	uint64_t began_ns;
	struct mp_confirm_answer got;
	size_t size; /* of @got, so far */
};

/*
 * md_confirm_start - ask whether @output is an output of one of @candidates (@nr of them, at most
 * MP_CONFIRM_MAX). No other question may be open. Return: 0 or -errno.
 */
int md_confirm_start(struct md_confirm *confirm, int output, const int *candidates, size_t nr);
/*
 * md_confirm_poll - wait at most @timeout_ms for the answer. Return: true once the process ended;
 * then *@yes says whether an output was confirmed, and @confirm->got which.
 */
bool md_confirm_poll(struct md_confirm *confirm, int timeout_ms, bool *yes);
/* Ends the process, if one is left. */
void md_confirm_stop(struct md_confirm *confirm);

#endif
