// SPDX-License-Identifier: Apache-2.0
/*
 * child - runs one program of Morph, without a shell, at a low priority, in a session of its own; ends
 * it when the machine is wanted, when this process must stop, or when its time is over. Of what it writes to standard
 * error, the first line is kept. If this process dies, the child is told, too. Called by the worker's steps.
 */
#ifndef MD_CHILD_H
#define MD_CHILD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/policy/policy.h"
#include "libprof/base/err.h"

#define MD_CHILD_LOOK_S 10

enum md_child_priority {
	MD_CHILD_IDLE,	/* only what nobody else wants: CPU and disk */
	MD_CHILD_NICE,	/* little of a busy machine */
	MD_CHILD_PROMPT /* as this process */
};

struct md_child {
	char *const *argv;
	const char *user; /* whose rights it gets; NULL: this process's */
	const char *out;  /* file for standard output; NULL: none */
	double limit_s;	  /* 0: none */
	bool must_run;	  /* even if this process was told to stop */
	enum md_child_priority priority;
	const struct md_policy *policy; /* is the machine wanted? NULL: nobody asks */
	/* Called every MD_CHILD_LOOK_S seconds; true ends the child. NULL: none. */
	bool (*look)(void *arg);
	void *look_arg;
};

enum md_child_end {
	MD_CHILD_EXITED,
	MD_CHILD_DIED,	  /* of a signal that nobody here sent */
	MD_CHILD_STOPPED, /* because this process was told to stop */
	MD_CHILD_WANTED,  /* because the machine is wanted */
	MD_CHILD_LATE,	  /* its time was over */
	MD_CHILD_ENOUGH	  /* @look said so */
};

struct md_child_result {
	enum md_child_end end;
	int status;	  /* exit status, or signal */
	double cpu_s;	  /* with all that it waited for */
	char reason[512]; /* its first message, without the program's name */
};

/* Return: 0: it ran, whatever came of it; -errno: it could not be started. */
int md_child_run(const struct md_child *child, struct md_child_result *result, struct mp_err *err);

/*
 * md_child_share_lock - children with this process's rights keep the descriptor @fd open: if this
 * process is killed, the lock is free only when its child has ended, too.
 */
void md_child_share_lock(int fd);

/* SIGTERM, SIGINT and SIGHUP stop the work from now on. */
void md_child_catch_signals(void);
bool md_child_is_stopped(void);
/*
 * md_child_each_second - calls @look(@arg) each second while a child is waited for. @look may run children itself; it is
 * not called meanwhile. NULL: nobody looks.
 */
void md_child_each_second(void (*look)(void *arg), void *arg);

#endif
