// SPDX-License-Identifier: Apache-2.0
/* command - see command.h. */
#include "daemon/fleet/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/fleet/pg.h"
#include "daemon/stats/stats.h"
#include "libprof/base/settings.h"
#include "libprof/cli/args.h"
#include "libprof/cli/stdio.h"

/* ---- options ------------------------------------------------------------------------------- */

#define FIRST_KEY 256

static const struct md_option common[] = {
	{"database", 'd', "CONNECTION",
	 "The fleet's database, as libpq takes it: 'host=NAME dbname=NAME ...' or postgresql://... "
	 "(default: $MORPH_FLEET, then the configuration file)",
	 MD_OPTION_TEXT, offsetof(struct md_fleet_access, database), 0, 0},
	{"config", 0, "FILE", "Settings (default: " MD_FLEET_CONFIG ")", MD_OPTION_TEXT,
	 offsetof(struct md_fleet_access, config_path), 0, 0},
};
#define NR_COMMON ((int)(sizeof(common) / sizeof(common[0])))

/* A command line that is parsed. */
struct line {
	const struct md_usage *usage;
	struct md_fleet_access *access;
	const struct md_option *options[NR_COMMON + MD_OPTIONS_MAX];
	int nr;
};

static void take(const struct md_option *o, char *arg, struct argp_state *state, void *at)
{
	struct mp_err err = {""};
	struct md_places *places = at;

	switch (o->kind) {
	case MD_OPTION_FLAG: *(bool *)at = true; return;
	case MD_OPTION_TEXT: *(const char **)at = arg; return;
	case MD_OPTION_TIME:
		if (mp_since_parse(arg, time(NULL), at))
			argp_error(state, "--%s=%s: not a time: " MP_SINCE_FORMATS, o->name, arg);
		return;
	case MD_OPTION_LIMIT: md_stats_limit(state, arg, at); return;
	case MD_OPTION_NUMBER:
		if (mp_settings_number(arg, o->low, o->high, false, at, &err))
			argp_error(state, "--%s=%s: %s", o->name, arg, err.msg);
		return;
	case MD_OPTION_PLACES:
		if (places->nr == MD_PLACES_MAX)
			argp_error(state, "at most %d times --%s", MD_PLACES_MAX, o->name);
		places->list[places->nr++] = arg;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct line *line = state->input;
	const struct md_usage *usage = line->usage;
	struct md_fleet_access *access = line->access;

	for (int i = 0; i < line->nr; i++) {
		const struct md_option *o = line->options[i];

		if (key != (o->letter ? o->letter : FIRST_KEY + i))
			continue;
		take(o, arg, state, (char *)access + o->at);
		return 0;
	}
	switch (key) {
	case ARGP_KEY_ARG:
		access->arguments = state->argv + state->next - 1;
		access->nr_arguments = state->argc - state->next + 1;
		state->next = state->argc;
		if (access->nr_arguments > usage->most)
			argp_error(state, "%s: too many arguments", access->arguments[usage->most]);
		return 0;
	case ARGP_KEY_END:
		if (access->nr_arguments < usage->least)
			argp_error(state, "%s", usage->lacking);
		if (usage->check)
			usage->check(access, state);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

void md_fleet_parse(const struct md_usage *usage, int argc, char **argv, void *options)
{
	struct argp_option list[NR_COMMON + MD_OPTIONS_MAX + 1] = {0};
	struct argp argp = {list, parse, usage->arguments, usage->doc, NULL, NULL, NULL};
	struct line line = {.usage = usage, .access = options};

	for (int i = 0; usage->options && usage->options[i].name; i++)
		line.options[line.nr++] = &usage->options[i];
	for (int i = 0; i < NR_COMMON; i++)
		line.options[line.nr++] = &common[i];
	for (int i = 0; i < line.nr; i++) {
		const struct md_option *o = line.options[i];

		list[i] = (struct argp_option){o->name,	 o->letter ? o->letter : FIRST_KEY + i,
					       o->value, o->doc ? 0 : OPTION_HIDDEN,
					       o->doc,	 0};
	}
	md_stats_set_program(argv[0]);
	mp_args_parse(&argp, argc, argv, usage->in_order ? ARGP_IN_ORDER : 0, &line);
	mp_stdio_parsed();
}

/* ---- the database -------------------------------------------------------------------------- */

int md_fleet_access_find(struct md_fleet_access *access)
{
	const char *database = access->database ? access->database : getenv("MORPH_FLEET");
	struct mp_err err = {""};

	if (md_fleet_config_read(&access->config, access->config_path, &err)) {
		md_stats_fail("%s", err.msg);
		return MP_EXIT_USAGE;
	}
	if (database && md_fleet_config_set(&access->config, "database", database, &err)) {
		md_stats_fail("the fleet's database %s", err.msg);
		return MP_EXIT_USAGE;
	}
	if (!access->config.database[0]) {
		md_stats_fail("no fleet is configured: say database = CONNECTION in %s, or "
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

int md_fleet_start(const struct md_usage *usage, int argc, char **argv, void *options, PGconn **out)
{
	md_fleet_parse(usage, argc, argv, options);
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
	md_stats_fail("%s", err->msg);
	return md_fleet_status(r);
}
