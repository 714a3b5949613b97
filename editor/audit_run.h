// SPDX-License-Identifier: Apache-2.0
/*
 * audit_run - one measured run of a program: its time, its end, a hash of what it wrote.
 *
 * Judges nothing. Called by audit.
 */
#ifndef ME_AUDIT_RUN_H
#define ME_AUDIT_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "libprof/err.h"

struct me_run_spec {
	const char *path; /* what is executed */
	char *const *argv;
	char *const *envp;
	const char *stdin_path; /* NULL: nothing to read */
	const char *filter;	/* shell command that stdout passes through; NULL: none */
	char *const *files;	/* NULL-terminated: files it writes; hashed, then removed */
	bool with_stderr;	/* stderr belongs to the output */
	uint64_t timeout_ns;	/* 0: none */
	int cpu;		/* run on this CPU only; -1: anywhere */
	/* Signal mask while waiting, and of the program. The caller blocks what cancels. */
	const sigset_t *mask;
};

struct me_run_output {
	uint64_t hash[2];
	uint64_t size_bytes;
};

struct me_run {
	uint64_t cpu_ns, user_ns, wall_ns; /* with the children it waited for */
	int status;			   /* as from wait(2) */
	bool timed_out;			   /* and was killed for it */
	struct me_run_output out, err;	   /* after the filter; err: if with_stderr */
	struct me_run_output files;	   /* all of them in order */
	char last_words[160];		   /* end of its stderr, one line */
};

/*
 * me_run - runs the program to its end in a process group of its own; what it leaves behind in
 * that group is killed. Output is hashed while it is read, never stored.
 *
 * Return: 0 whatever the program's status; -ECANCELED after me_run_cancel(); -errno if it could
 * not be run at all, with @err set.
 */
int me_run(const struct me_run_spec *spec, struct me_run *run, struct mp_err *err);
/* me_run_cancel - end the run in progress, and all later ones. For signal handlers. */
void me_run_cancel(void);

#endif
