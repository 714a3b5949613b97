// SPDX-License-Identifier: Apache-2.0
/*
 * ask_confirm - asks one process at a time whether a file is Morph's output of an original.
 * Counterpart of libprof/note/confirm.h. morphd reads neither file: it passes descriptors to
 * morph-optimize, which verifies them without any privilege. Called by outputs.
 */
#ifndef MD_ASK_CONFIRM_H
#define MD_ASK_CONFIRM_H

#include <stdbool.h>
#include <sys/types.h>

#include "libprof/note/confirm.h"

struct md_confirm {
	pid_t pid; /* 0: no question is open */
	int answer;
	uint64_t began_ns;
	struct mp_confirm_answer got;
	size_t size; /* bytes of @got received so far */
};

/*
 * md_confirm_start - ask whether @output is an output of one of the @nr @candidates (at most
 * MP_CONFIRM_MAX). No other question may be open. Return: 0 or -errno.
 */
int md_confirm_start(struct md_confirm *confirm, int output, const int *candidates, size_t nr);
/*
 * md_confirm_poll - wait at most @timeout_ms for the answer. Return: true once the process
 * ended. Then *@yes says whether an output was confirmed; @confirm->got says of which original.
 */
bool md_confirm_poll(struct md_confirm *confirm, int timeout_ms, bool *yes);
/* Ends the process, if one runs. */
void md_confirm_stop(struct md_confirm *confirm);

#endif
