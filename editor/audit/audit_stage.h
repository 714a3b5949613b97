// SPDX-License-Identifier: Apache-2.0
/*
 * audit_stage - all that both sides share when they run: the one path, the hooks, the command,
 * the server's client. Runs either side once, in the same way.
 *
 * Judges nothing and counts nothing. Called by audit.
 */
#ifndef ME_AUDIT_STAGE_H
#define ME_AUDIT_STAGE_H

#include <stdint.h>

#include "editor/audit/audit.h"
#include "editor/audit/run/audit_run.h"
#include "editor/audit/run/audit_slot.h"
#include "editor/audit/server/audit_server.h"

enum {
	ME_SIDE_A,
	ME_SIDE_B
};

struct me_stage {
	const struct me_audit_opts *opts;
	struct me_program programs[2];
	uint64_t longest_ns; /* the longest of A's runs so far, wall time */
	/* private */
	struct me_slot slot;
	struct me_run_spec spec;   /* the program, or the server */
	struct me_run_spec client; /* with opts->client */
	struct me_server server;
	char **argv, **envp, *client_argv[4];
	bool set_up; /* --setup was started, so --teardown is due */
};

/*
 * me_stage_open - make the slot, run --setup, and open both files. Return: 0; -ECANCELED; -errno,
 * with @err set. Ownership: me_stage_close(), after an error too.
 */
int me_stage_open(struct me_stage *stage, const struct me_audit_opts *opts, struct mp_err *err);
/* me_stage_run - run @side once. Return: 0, -ECANCELED, or -errno with @err set. */
int me_stage_run(struct me_stage *stage, int side, struct me_run *run, struct mp_err *err);
/*
 * me_stage_run_both - run both sides at the same time, @first first. Needs one earlier run. Return:
 * 0 with the run of each side; -ECANCELED; -errno with @err set.
 */
int me_stage_run_both(struct me_stage *stage, int first, struct me_run runs[2], struct mp_err *err);
/*
 * me_stage_watch - find out, by one more run of A, whether both sides may run at the same time.
 * Needs one earlier run. Return: 0, with the reason against that in @why, "" if there is none;
 * -ECANCELED; -errno with @err set.
 */
int me_stage_watch(struct me_stage *stage, char *why, size_t size, struct mp_err *err);
/* me_stage_close - remove the slot, then run --teardown. Return: 0, or -errno with @err set. */
int me_stage_close(struct me_stage *stage, struct mp_err *err);

#endif
