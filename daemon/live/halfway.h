// SPDX-License-Identifier: Apache-2.0
/*
 * halfway - system calls that a stop would end when only a part is done, such as a write of much to a pipe: no signal comes
 * to the program, and yet it would see a short count. Such a thread is not stopped. Called by stop.
 */
#ifndef MD_LIVE_HALFWAY_H
#define MD_LIVE_HALFWAY_H

#include <sys/types.h>

enum md_halfway {
	MD_HALFWAY_NO,	 /* it waits elsewhere, or has ended */
	MD_HALFWAY_YES,	 /* it waits in such a call; whether a part is done cannot be told */
	MD_HALFWAY_RUNS, /* it runs, so that nothing can be told */
};

/* md_halfway - where a thread is that has not been asked to stop. Return: enum md_halfway; -errno: it may not be looked at. */
int md_halfway(pid_t tid);

#endif
