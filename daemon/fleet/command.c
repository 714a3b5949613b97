// SPDX-License-Identifier: Apache-2.0
/* command - see command.h. */
#include "daemon/fleet/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/fleet/pg.h"
#include "daemon/cli/cli.h"

/* ---- options ------------------------------------------------------------------------------- */

#define KEY_CONFIG 1

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct md_fleet_access *access = state->input;

	switch (key) {
	case 'd': access->database = arg; return 0;
	case KEY_CONFIG: access->config_path = arg; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option common[] = {
	{"database", 'd', "CONNECTION", 0,
	 "The fleet's database, as libpq takes it: 'host=NAME dbname=NAME ...' or postgresql://... "
	 "(default: $MORPH_FLEET, then the configuration file)",
	 0},
	{"config", KEY_CONFIG, "FILE", 0, "Settings (default: " MD_FLEET_CONFIG ")", 0},
	{0}};

static const struct argp shared = {.options = common, .parser = parse};

void md_fleet_options(const struct mp_usage *usage, int argc, char **argv, void *options)
{
	struct mp_usage whole = *usage;

	whole.shared = &shared;
	md_cli_set_program(argv[0]);
	mp_options_read(&whole, argc, argv, options, options);
}

/* ---- the database -------------------------------------------------------------------------- */

int md_fleet_access_find(struct md_fleet_access *access)
{
	const char *database = access->database ? access->database : getenv("MORPH_FLEET");
	struct mp_err err = {""};

	if (md_fleet_config_read(&access->config, access->config_path, &err)) {
		md_cli_fail("%s", err.msg);
		return MP_EXIT_USAGE;
	}
	if (database && md_fleet_config_set(&access->config, "database", database, &err)) {
		md_cli_fail("the fleet's database %s", err.msg);
		return MP_EXIT_USAGE;
	}
	if (!access->config.database[0]) {
		md_cli_fail("no fleet is configured: say database = CONNECTION in %s, or "
			    "--database=CONNECTION",
			    access->config_path ? access->config_path : MD_FLEET_CONFIG);
		return MP_EXIT_USAGE;
	}
	/* A server that does not answer at all must not stop a command for minutes. */
	setenv("PGCONNECT_TIMEOUT", "20", 0);
	return 0;
}

int md_fleet_access_connect(struct md_fleet_access *access, PGconn **out)
{
	struct mp_err err = {""};
	int r = md_fleet_access_find(access);

	if (r)
		return r;
	r = md_fleet_connect(access->config.database, out, &err);
	return r ? md_fleet_failed(r, &err) : 0;
}

int md_fleet_start(const struct mp_usage *usage, int argc, char **argv, void *options, PGconn **out)
{
	md_fleet_options(usage, argc, argv, options);
	return md_fleet_access_connect(options, out);
}

int md_fleet_status(int r)
{
	return r == -ECONNREFUSED || r == -ENOTCONN || r == -EAGAIN || r == -EDQUOT
		       ? MP_EXIT_LATER
		       : MP_EXIT_FAILED;
}

int md_fleet_failed(int r, const struct mp_err *err)
{
	md_cli_fail("%s", err->msg);
	return md_fleet_status(r);
}
