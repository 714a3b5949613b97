// SPDX-License-Identifier: Apache-2.0
/*
 * canary_policy - shows and changes the policies by which builds are rolled out: the rows of fleet.canary_policy, one
 * for all modules and one for each module that needs its own. Called by canary_command.
 */
#ifndef MD_FLEET_CANARY_POLICY_H
#define MD_FLEET_CANARY_POLICY_H

#include "daemon/fleet/pg.h"

/* A command changes at most so many settings of a policy, which has fewer. */
#define MD_POLICY_CHANGES_MAX 14

/* Columns with new values, as the database takes them. Starts as zeros. */
struct md_policy_changes {
	struct {
		const char *column;
		char value[256];
	} list[MD_POLICY_CHANGES_MAX];
	size_t nr;
};

/*
 * md_policy_read_change - adds "COLUMN=VALUE". Shares and chances may be in per cent, times have a unit (90s, 12h, 1d) or
 * are seconds. Return: 0; -EINVAL with a message.
 */
int md_policy_read_change(struct md_policy_changes *changes, const char *text, struct mp_err *err);
/*
 * md_policy_change - makes all @changes or none. @module: a list of one key, as PostgreSQL writes it; "{}": the policy of all
 * modules. A module without a policy of its own gets a copy of that of all modules first. Return: 0; -EINVAL; as md_pg_run().
 */
int md_policy_change(PGconn *conn, const char *module, const struct md_policy_changes *changes,
		     struct mp_err *err);
/* The module has no policy of its own any more. Return: 0; as md_pg_run(). */
int md_policy_drop(PGconn *conn, const char *module, struct mp_err *err);
/* Prints all policies. Return: 0; as md_pg_run(). */
int md_policy_print(PGconn *conn, bool json, struct mp_err *err);

#endif
