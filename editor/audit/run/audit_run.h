// SPDX-License-Identifier: Apache-2.0
/*
 * audit_run - one measured run of a program: times, exit status, and a hash of its output.
 *
 * Decides how a run is set up, which is the same for both programs. Judges nothing.
 * Called by audit_stage, audit_both, audit_server, and by refine and compilations.
 */
#ifndef ME_AUDIT_RUN_H
#define ME_AUDIT_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/err.h"

struct me_pattern;

/* The numbers that a run may print. */
enum {
	ME_RUN_METRIC,
	ME_RUN_REQUESTS,
	ME_RUN_NR_NUMBERS
};

struct me_run_spec {
	const char *path; /* file to execute */
	char *const *argv;
	char *const *envp;
	const char *stdin_path; /* NULL: empty input */
	const char *filter;	/* shell command that stdout passes through; NULL: none */
	char *const *files;	/* NULL-terminated: files it writes; each is hashed, then removed */
	bool with_stderr;	/* compare stderr, too */
	uint64_t timeout_ns;	/* 0: no limit */
	int cpu;		/* run on this CPU only; -1: any */
	/*
	 * Signal mask of the program, and of morph-audit while it waits. The caller
	 * blocks the signals that cancel.
	 */
	const sigset_t *mask;
	/* NULL: none. An output that is searched for a number is kept in memory, up to a limit. */
	const struct me_pattern *patterns[ME_RUN_NR_NUMBERS];
	int watch_fd; /* the run is killed as soon as this hangs up; 0: none */
};

struct me_run_output {
	uint64_t hash[2];
	uint64_t size_bytes;
};

struct me_run {
	uint64_t cpu_ns, user_ns, wall_ns; /* cpu, user: with the children it waited for */
	int status;			   /* as returned by wait(2) */
	bool timed_out;			   /* did not finish in time and was killed */
	bool hung_up;			   /* was killed because of watch_fd */
	struct me_run_output out, err;	   /* out: after the filter; err: only if with_stderr */
	struct me_run_output files;	   /* all files, in order */
	char last_stderr_line[160];	   /* last line of its stderr */
	double numbers[ME_RUN_NR_NUMBERS]; /* for each pattern */
	char no_number[256];		   /* why a pattern gave no number; "": all did */
	char server[320];		   /* audit_server: how the server failed; "": it did not */
};

/*
 * me_run - run the program to its end in its own process group, and kill the rest of
 * the group. Output is hashed while it is read. Only output that a pattern searches is kept.
 *
 * Return: 0 whatever the program's status; -ECANCELED after me_run_cancel(); -errno
 * with @err set if the program could not be run.
 */
int me_run(const struct me_run_spec *spec, struct me_run *run, struct mp_err *err);
/* me_run_cancel - end the current run, and every later one at once. Safe in a signal handler. */
void me_run_cancel(void);
/* me_run_cancelled - how often me_run_cancel() was called. */
int me_run_cancelled(void);

#endif
