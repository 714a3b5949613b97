// SPDX-License-Identifier: Apache-2.0
/*
 * server - the fleet's database in PostgreSQL: connects, creates and upgrades the schema, checks the
 * database, enrols and bans hosts. Decides which of sql/'s files are applied, and nothing about counts.
 * Called by server_command and by the sending and reading of counts.
 */
#ifndef MD_FLEET_SERVER_H
#define MD_FLEET_SERVER_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/err.h"

/*
 * md_fleet_connect - connects with libpq's @conninfo, a string or URI. Refuses a connection by network
 * without TLS. Ownership: PQfinish(*@out). Return: 0, -ECONNREFUSED, -EPERM (no TLS), -ENOMEM.
 */
int md_fleet_connect(const char *conninfo, PGconn **out, struct mp_err *err);

/*
 * md_fleet_fail - sets the message "cannot WHAT: REASON" of a failed statement. @result may be NULL.
 * Return: -EACCES (a right is missing, or the host is banned), -ENOTCONN (the connection is lost), -EAGAIN
 * (quota, lock, or serialisation: later), -EINVAL (refused as damaged), -EIO.
 */
int md_fleet_fail(PGconn *conn, const PGresult *result, const char *what, struct mp_err *err);

/*
 * md_fleet_upgrade - applies the migrations that are missing, each in a transaction of its own, so that a
 * killed upgrade can be repeated. *@nr_applied: how many.
 * @init: the schema may be missing; without any missing migration this is -EEXIST.
 * Return: 0; -ENOENT: no schema, and not @init; -EPROTO: a newer schema; as md_fleet_fail().
 */
int md_fleet_upgrade(PGconn *conn, bool init, int *nr_applied, struct mp_err *err);

/* Calls @finding for each thing that is wrong with the database. *@nr: how many. */
int md_fleet_check(PGconn *conn, void (*finding)(void *arg, const char *text), void *arg, int *nr,
		   struct mp_err *err);

/* Gives a host a role, with the right to read the fleet's profiles if @reads. */
int md_fleet_enrol(PGconn *conn, const char *host, bool reads, struct mp_err *err);
/*
 * Leaves a host out of all sums and refuses what it sends, or takes this back. Return: 0, -ENOENT: no
 * such host.
 */
int md_fleet_ban(PGconn *conn, const char *host, bool banned, struct mp_err *err);
/* Deletes what belongs to the days before @before_day (since 1970, UTC). */
int md_fleet_forget(PGconn *conn, int before_day, int64_t *nr_rows, struct mp_err *err);

#endif
