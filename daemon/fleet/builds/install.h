// SPDX-License-Identifier: Apache-2.0
/*
 * install - does on this host what the fleet wants with one file: has this host's own morph-optimize make the
 * output by the plan, from this host's own original, and verify it, and hands it over: to morph-worker, if
 * a rule of the policy says how to audit it, else to the place of the file, on probation. Trusts neither the
 * builder nor the server. Called by the command "install".
 */
#ifndef MD_FLEET_INSTALL_H
#define MD_FLEET_INSTALL_H

#include "daemon/fleet/builds/wanted.h"
#include "daemon/machine/program.h"
#include "daemon/policy/policy.h"
#include "libprof/store/store.h"

struct md_install {
	PGconn *conn;
	struct mp_store *store; /* open for writing; NULL: @output or @dry_run only */
	const char *db;		/* its path */
	const char *backup_dir; /* NULL: morph-optimize's default */
	const char *state_dir;	/* of morph-worker */
	const struct md_policy *policy;
	const char *output; /* write the proved output here, and change nothing else; NULL: no */
	bool dry_run;	    /* prove it, and change nothing */
	bool named;	    /* somebody named the file: a version of this host's own gives way */
};

/* The end of an install: @state is one of fleet.build_host, or "proved" if nothing was changed. */
struct md_install_result {
	const char *state;
	char why[600];
	bool unchanged; /* it was so before */
	bool made;	/* @hash is that of this host's output */
	uint8_t hash[MD_SHA256_SIZE];
};

/*
 * md_install_do - @program: the file as it is now, of which @wanted is about. Return: 0, with @result;
 * -errno: it could not be tried, because the server is gone, or this host has a fault.
 */
int md_install_do(struct md_install *install, const struct md_program *program,
		  const struct md_wanted *wanted, struct md_install_result *result,
		  struct mp_err *err);

#endif
