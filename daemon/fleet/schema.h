// SPDX-License-Identifier: Apache-2.0
/*
 * schema - the fleet's tables and functions in a database: makes, upgrades and checks them. The files of sql/ whose names
 * begin with v1, v2, ... bring a database to this version. Called by server_command.
 */
#ifndef MD_FLEET_SCHEMA_H
#define MD_FLEET_SCHEMA_H

#include "daemon/fleet/pg.h"

/*
 * md_fleet_upgrade - brings the database to this program's version, in one transaction. *@changed: it had another one.
 * @init: the schema may be missing; one that is up to date is -EEXIST. Return: 0; -ENOENT: no schema, and not @init;
 * -EPROTO: a version that this program does not know; as md_pg_run().
 */
int md_fleet_upgrade(PGconn *conn, bool init, bool *changed, struct mp_err *err);
/* Calls @finding for each thing that is wrong with the database. Return: 0, as md_pg_run(). */
int md_fleet_check(PGconn *conn, void (*finding)(void *arg, const char *text), void *arg,
		   struct mp_err *err);

#endif
