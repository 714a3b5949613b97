// SPDX-License-Identifier: Apache-2.0
/* renew_command - the command "renew": options, messages and exit status; see renew.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/fleet/command.h"
#include "daemon/fleet/pg.h"
#include "daemon/fleet/rollout/renew.h"
#include "daemon/cli/cli.h"
#include "daemon/worker/work_dir.h"

#define MP_OPTIONS struct options

struct options {
	struct md_fleet_access access;
	struct md_cli cli;
	const char *state_dir, *backup_dir;
	bool list;
};

static const struct mp_option option_table[] = {
	MP_VALUE(TEXT, "db", 0, cli.db, "FILE", "The store (default: see FILES in the man page)"),
	MP_VALUE(TEXT, "state-dir", 0, state_dir, "DIR",
		 "morph-worker's directory, which has the leases"),
	MP_VALUE(TEXT, "backup-dir", 0, backup_dir, "DIR", "Where the originals are"),
	MP_FLAG("list", list, "Say which leases there are, and do nothing"),
	MP_FLAG("json", cli.json, "Print JSON"),
	MP_OPTIONS_END};

static const struct mp_usage usage = {
	.options = option_table,
	.doc = "Look after the fleet's builds that are in place on this host: send what is known of them, "
	       "renew their leases, and put the original back where a build was withdrawn. Without the "
	       "server, originals are put back where the lease is over.\v"
	       "Exit status: 0 done, 1 a build could not be undone, 2 usage, 75 the server is gone; leases "
	       "that are over were undone."};

/* ---- output -------------------------------------------------------------------------------- */

static void put_text(const struct md_renewal *r)
{
	char when[32];

	md_cli_put_text(r->lease.path);
	printf(": %s", md_renew_result_name(r->result));
	if (r->result == MD_RENEW_LEASED || r->result == MD_RENEW_WAITS)
		printf(" until %s", md_cli_format_time(r->lease.expires_s, when));
	if (r->why[0]) {
		fputs(": ", stdout);
		md_cli_put_text(r->why);
	}
	putchar('\n');
}

static json_t *json_of(const struct md_renewal *r)
{
	return json_pack("{s:o, s:s, s:o, s:s, s:s, s:i, s:I}", "path",
			 mp_json_string(r->lease.path), "result", md_renew_result_name(r->result),
			 "reason", mp_json_string(r->why), "options", r->lease.options, "version",
			 r->lease.version, "release", (int)r->lease.release, "expires_s",
			 (json_int_t)r->lease.expires_s);
}

static int put(const struct options *o, const struct md_renewal *list, size_t nr, int status)
{
	json_t *root, *rows;

	if (!o->cli.json) {
		for (size_t i = 0; i < nr; i++)
			put_text(&list[i]);
		return md_cli_finish(status);
	}
	root = md_cli_json_new("renew");
	rows = json_array();
	for (size_t i = 0; i < nr; i++)
		json_array_append_new(rows, json_of(&list[i]));
	json_object_set_new(root, "rows", rows);
	return md_cli_json_print(root) ? MP_EXIT_FAILED : status;
}

/* ---- work ---------------------------------------------------------------------------------- */

static int status_of(const struct md_renew *renew, const struct md_renewal *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (list[i].result == MD_RENEW_FAILED)
			return MP_EXIT_FAILED;
	return renew->conn && !renew->lost ? MP_EXIT_DONE : MP_EXIT_LATER;
}

static void say_failures(const struct md_renewal *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (list[i].result == MD_RENEW_FAILED)
			md_cli_fail("%s: %s", list[i].lease.path, list[i].why);
}

/* A step may remove a lease from the list, so that it works on a copy. */
static int do_all(const struct options *o, struct md_renew *renew, struct md_leases *leases)
{
	struct md_renewal *list = calloc(leases->nr + 1, sizeof(*list));
	size_t nr = leases->nr;
	int r;

	if (!list)
		return md_cli_fail("out of memory");
	for (size_t i = 0; i < nr; i++) {
		list[i].lease = leases->list[i];
		list[i].result = leases->list[i].expires_s ? MD_RENEW_WAITS : MD_RENEW_RELEASED;
	}
	for (size_t i = 0; i < nr && !o->list; i++) {
		struct md_lease lease = list[i].lease;

		md_renew_lease(renew, leases, &lease, &list[i]);
	}
	say_failures(list, nr);
	r = put(o, list, nr, o->list ? MP_EXIT_DONE : status_of(renew, list, nr));
	free(list);
	return r;
}

/* A server that is gone does not keep a host from undoing. */
static void connect_server(const struct options *o, struct md_renew *renew)
{
	struct mp_err err = {""};

	if (o->access.config.database[0] &&
	    md_fleet_connect(o->access.config.database, &renew->conn, &err)) {
		renew->conn = NULL;
		md_cli_fail("%s", err.msg);
	}
}

int md_fleet_command_renew(int argc, char **argv)
{
	struct options o = {0};
	struct md_renew renew = {.now_s = time(NULL)};
	struct md_leases leases = {.lock = -1};
	char state_dir[PATH_MAX];
	struct mp_err err = {""};
	int r;

	md_fleet_options(&usage, argc, argv, &o);
	if (!o.list) {
		r = md_fleet_access_find(&o.access);
		if (r)
			return r;
	}
	renew.state_dir = o.state_dir ? o.state_dir : state_dir;
	if (!o.state_dir && md_state_default_dir(state_dir, sizeof(state_dir), &err))
		return md_cli_fail("%s", err.msg);
	if (!o.list)
		connect_server(&o, &renew);
	r = md_leases_open(renew.state_dir, &leases, &err) ? md_cli_fail("%s", err.msg) : 0;
	/* Without a lease nothing is to be looked up. */
	if (!r && leases.nr && !o.list)
		r = md_cli_open(&o.cli, MP_STORE_WRITE, &renew.store);
	if (!r) {
		renew.db = o.cli.path;
		renew.backup_dir = o.backup_dir;
		r = do_all(&o, &renew, &leases);
	}
	mp_store_close(renew.store);
	md_leases_close(&leases);
	PQfinish(renew.conn);
	return r;
}
