// SPDX-License-Identifier: Apache-2.0
/*
 * live - puts an output's code into a running process, in another version's place if there is one, and takes it back. The
 * process never sees a state that is not right, not even if this program is killed at any point: first the copies are mapped
 * whole, and their counters; then pages of the original's code are changed one by one, and each of them leads only to
 * complete code. What is where is known from the process alone. Called by `morph live'.
 */
#ifndef MD_LIVE_H
#define MD_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/live/process.h"
#include "daemon/live/version.h"

enum md_live_state {
	MD_LIVE_IN_USE, /* all changes are in the process */
	MD_LIVE_PARTLY, /* some are: somebody was killed meanwhile */
	MD_LIVE_MAPPED, /* none is; the copies are mapped */
	MD_LIVE_NONE,	/* none is, and no copies are mapped */
	MD_LIVE_OTHER,	/* somebody else changed pages */
};

struct md_live_request {
	pid_t pid;
	const char *output; /* adopt: the file */
	const char *
		counts; /* adopt: the directory for counts; NULL for a version that does not count */
	bool dry_run;	/* says what would be done */
	uint64_t max_private;  /* adopt: bytes of memory that may become the process's own */
	uint64_t max_searched; /* bytes of memory to be searched for addresses of copies */
};

struct md_live_result {
	enum md_live_state state; /* before a dry run; else after what was done */
	bool changed;		  /* something was done */
	unsigned int rounds;	  /* stops */
	uint64_t stop_ns;	  /* the last stop, or in a dry run the stop that is expected */
	uint64_t longest_ns;	  /* the longest stop */
	uint64_t work_ns;	  /* of the last stop: from when the last thread stood still */
	size_t nr_threads;
	uint64_t private_bytes; /* memory that is, or would be, the process's own by this */
	char why_mapped[256];	/* undo: why copies stay mapped; "" if they do not */
};

/* Numbers of a version whose pages are known (md_version_pages()) for messages, and the state of the process. */
void md_live_look(const struct md_version *version, const struct md_process *process,
		  struct md_live_result *out);
/*
 * md_live_lock - While it is open, no other run of this program with the same /proc changes the process. Without the lock,
 * one run could unmap what another has mapped and is about to use. To be called before the process is looked at in order to
 * change it. Return: a descriptor, which is only this lock; -EAGAIN: another run did not end in time; -errno; each with a
 * message. Ownership: close().
 */
int md_live_lock(pid_t pid, struct mp_err *err);

/*
 * md_live_adopt - the caller has the lock. Return: 0: the version is in use, and no other of the same original; -EPERM: refused
 * with the reason, and nothing has changed; -EAGAIN: given up after many rounds, with what was in the way; -errno with a message.
 */
int md_live_adopt(const struct md_live_request *request, struct md_version *version,
		  struct md_live_result *out, struct mp_err *err);
/*
 * md_live_undo - takes @version back, one of the @mapped ones; the caller has the lock. Pages that another of them changed
 * stay as they are. Return: as above.
 */
int md_live_undo(const struct md_live_request *request, struct md_version *version,
		 const struct md_versions *mapped, struct md_process *process,
		 struct md_live_result *out, struct mp_err *err);

const char *md_live_state_name(enum md_live_state state);

#endif
