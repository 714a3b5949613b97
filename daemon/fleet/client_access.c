// SPDX-License-Identifier: Apache-2.0
/* client_access - what commands for hosts share: how they find the database, numbers of options, the version. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fleet/client_command.h"
#include "daemon/fleet/server.h"
#include "daemon/stats/stats.h"
#include "libprof/base/settings.h"

double md_fleet_number(struct argp_state *state, const char *option, const char *arg, double low,
		       double high)
{
	struct mp_err err = {""};
	double value = 0;

	if (mp_settings_number(arg, low, high, false, &value, &err))
		argp_error(state, "--%s=%s: %s", option, arg, err.msg);
	return value;
}

enum {
	KEY_CONFIG = 512
};

static const struct argp_option options[] = {
	{"database", 'd', "CONNECTION", 0,
	 "The fleet's database, as libpq takes it: 'host=NAME dbname=NAME ...' or postgresql://... "
	 "(default: $MORPH_FLEET, then the configuration file)",
	 0},
	{"config", KEY_CONFIG, "FILE", 0, "Settings (default: " MD_FLEET_CONFIG ")", 0},
	{0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct md_fleet_access *access = state->input;

	switch (key) {
	case 'd': access->database = arg; return 0;
	case KEY_CONFIG: access->config_path = arg; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct argp md_fleet_access_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

int md_fleet_access_find(struct md_fleet_access *access)
{
	const char *database = access->database ? access->database : getenv("MORPH_FLEET");
	struct mp_err err = {""};

	if (md_fleet_config_read(&access->config, access->config_path, &err)) {
		md_stats_fail("%s", err.msg);
		return MD_FLEET_USAGE;
	}
	if (database && md_fleet_config_set(&access->config, "database", database, &err)) {
		md_stats_fail("the fleet's database %s", err.msg);
		return MD_FLEET_USAGE;
	}
	if (!access->config.database[0]) {
		md_stats_fail("no fleet is configured: say database = CONNECTION in %s, or "
			      "--database=CONNECTION",
			      access->config_path ? access->config_path : MD_FLEET_CONFIG);
		return MD_FLEET_USAGE;
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
	if (!r)
		return 0;
	md_stats_fail("%s", err.msg);
	return r == -ECONNREFUSED ? MD_FLEET_LATER : MD_FLEET_FAILED;
}

const char *md_fleet_version(void)
{
	const char *space = strchr(argp_program_version, ' ');

	return space ? space + 1 : argp_program_version;
}
