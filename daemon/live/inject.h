// SPDX-License-Identifier: Apache-2.0
/*
 * inject - lets a stopped thread of another process make system calls, and gives it back as it was. The thread's own
 * state lies on its stack as a signal frame before its registers change, so that it finds back by itself
 * (rt_sigreturn) if this program dies at any point. Called by live.
 */
#ifndef MD_LIVE_INJECT_H
#define MD_LIVE_INJECT_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/live/process.h"
#include "daemon/live/stop.h"

/*
 * Code of the process that serves: found before the process is stopped. What is executed lies in the C library, since the
 * program's code may change meanwhile, and copies may go.
 */
struct md_gadgets {
	uint64_t syscall;     /* of the instructions syscall and ret */
	uint64_t sigreturn;   /* where signal handlers return to */
	uint64_t *sigreturns; /* all such places, also elsewhere, ascending */
	size_t nr_sigreturns;
};

/*
 * md_gadgets_find - searches the process's code. Return: 0; -EPERM: there are none; -ENOMEM.
 * Ownership: free(sigreturns).
 */
int md_gadgets_find(const struct md_process *process, struct md_gadgets *out, struct mp_err *err);

enum md_injection_kind {
	MD_INJECT_MAP, /* a file, to be read and executed */
	MD_INJECT_SHARE, /* a file, to be read and written; what the process writes goes to the file */
	MD_INJECT_PAGE, /* memory to be read and executed; /proc/PID/mem writes it */
	MD_INJECT_UNMAP,
};

struct md_injection {
	enum md_injection_kind kind;
	uint64_t address, size;
	/* MAP, SHARE */
	const char *path;
	uint64_t off;
	uint64_t dev, ino; /* of the file that @path must lead to */
};

/*
 * md_inject - maps or unmaps, in one thread of @stop. Return: 0; -EAGAIN: no thread can do it now; -EPERM: the process may
 * not, with the reason; nothing has changed then. -EIO: a system call waits for seconds; the thread goes on when it ends.
 */
int md_inject(struct md_stop *stop, const struct md_process *process, int mem,
	      const struct md_gadgets *gadgets, const struct md_injection *what,
	      struct mp_err *err);

#endif
