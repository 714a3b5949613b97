// SPDX-License-Identifier: Apache-2.0
/*
 * interrupt - SIGINT, SIGTERM and SIGHUP end a long piece of work in order: what runs is ended, and
 * all intermediate files are removed. For programs that run other programs.
 */
#ifndef ME_INTERRUPT_H
#define ME_INTERRUPT_H

#include <stdbool.h>
#include <sys/types.h>

#include "libprof/base/err.h"

/* From now on these signals set a flag, and end a run in this process (me_run_cancel()). */
void me_interrupt_catch(void);
bool me_interrupted(void);
/* Return: 0, or -EINTR with a message. */
int me_interrupt_check(struct mp_err *err);
/* Waits for the child @pid, and ends it with SIGTERM when interrupted. Return: 0 with *@status, -errno. */
int me_interrupt_wait(pid_t pid, int *status);

#endif
