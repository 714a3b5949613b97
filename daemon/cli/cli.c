// SPDX-License-Identifier: Apache-2.0
/*
 * cli - common options, opening the store, messages, JSON and text output; see cli.h.
 */
#include "daemon/cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/code/originals.h"
#include "libprof/cli/fleet_tool.h"
#include "libprof/cli/progress.h"
#include "libprof/base/text.h"

enum {
	KEY_BACKUP_DIR = 900,
	KEY_FLEET
};

static const char *program = "morph-stats";

void md_cli_set_program(const char *name)
{
	program = name;
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct md_cli *cli = state->input;

	switch (key) {
	case 'd':
		if (!*arg)
			argp_error(state, "--db: the name is empty");
		cli->db = arg;
		return 0;
	case 'j': cli->json = true; return 0;
	case KEY_BACKUP_DIR: md_originals_set_backup_dir(arg); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option common_options[] = {
	{"db", 'd', "FILE", 0, "The database", 10},
	{"json", 'j', NULL, 0, "Print JSON", 10},
	{"backup-dir", KEY_BACKUP_DIR, "DIR", 0,
	 "Where morph-optimize --in-place has put the originals of replaced files", 10},
	{0},
};

const struct argp md_cli_common_argp = {.options = common_options, .parser = parse_common};

static error_t parse_fleet(int key, char *arg, struct argp_state *state)
{
	struct md_cli *cli = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = cli; return 0;
	case KEY_FLEET: cli->fleet = arg; return 0;
	case ARGP_KEY_END:
		if (cli->db && cli->fleet)
			argp_error(state, "--db and --fleet exclude each other");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option fleet_options[] = {
	{"fleet", KEY_FLEET, "CONNECTION", 0,
	 "Ask a fleet's database: 'host=NAME dbname=NAME ...' or postgresql://... (needs "
	 "morph-fleet)",
	 10},
	{0},
};

static const struct argp_child common_children[] = {{&md_cli_common_argp, 0, NULL, 0}, {0}};
const struct argp md_cli_fleet_argp = {
	.options = fleet_options, .parser = parse_fleet, .children = common_children};

void md_cli_parse(const struct mp_usage *usage, int argc, char **argv, void *options,
		  struct md_cli *cli)
{
	mp_options_read(usage, argc, argv, options, cli);
}

static void say(const char *fmt, va_list ap)
{
	char *text = NULL;

	mp_progress_stop();
	fflush(stdout);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	fprintf(stderr, "%s: ", program);
	mp_text_put(stderr, text ? text : "out of memory");
	fputc('\n', stderr);
	free(text);
}

int md_cli_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	return MP_EXIT_FAILED;
}

void md_cli_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

/*
 * Opens the service's database for a user who has none. @own: why the user's database did not
 * open.
 */
static int open_service(struct md_cli *cli, struct mp_store **out, const struct mp_err *own)
{
	struct mp_err err = {0};
	int r = mp_store_open(MP_STORE_SERVICE_PATH, MP_STORE_READ, out, &err);

	if (!r) {
		md_cli_note(
			"%s does not exist: reading the service's database, " MP_STORE_SERVICE_PATH,
			cli->path);
		strcpy(cli->path, MP_STORE_SERVICE_PATH);
		return 0;
	}
	if (r == -ENOENT)
		md_cli_fail("%s; the service has none either (" MP_STORE_SERVICE_PATH ")",
			    own->msg);
	else if (r == -EACCES)
		md_cli_fail("%s; only root and the service may read the service's database: "
			    "sudo %s COMMAND --db=" MP_STORE_SERVICE_PATH,
			    own->msg, program);
	else
		md_cli_fail("%s; the service's: %s", own->msg, err.msg);
	return r == -ENOENT || r == -EACCES ? MP_EXIT_NO_PROFILE : MP_EXIT_FAILED;
}

/* Modules of a fleet that are read if none is named: those with the most samples. */
#define FLEET_MODULES "--top=200"

static int open_fleet(struct md_cli *cli, enum mp_store_mode mode, struct mp_store **out)
{
	const char *module = cli->fleet_module ? cli->fleet_module : FLEET_MODULES;
	const char *const arguments[] = {module, NULL};
	struct mp_err err = {0};
	int r;

	if (mode == MP_STORE_WRITE)
		return md_cli_fail("a fleet's profiles are only read: leave out --fleet");
	mp_progress_stop();
	r = mp_fleet_tool_pull(cli->fleet, arguments, cli->path, sizeof(cli->path), &err);
	if (!r) {
		r = mp_store_open(cli->path, mode, out, &err);
		mp_fleet_tool_remove(cli->path);
		strcpy(cli->path, "the fleet");
	}
	if (r && err.msg[0])
		md_cli_fail("%s", err.msg);
	return !r ? 0 : r == -ENODATA ? MP_EXIT_NO_PROFILE : MP_EXIT_FAILED;
}

int md_cli_open(struct md_cli *cli, enum mp_store_mode mode, struct mp_store **out)
{
	struct mp_err err = {0};
	int r;

	if (cli->fleet)
		return open_fleet(cli, mode, out);
	if (cli->db) {
		if (strlen(cli->db) >= sizeof(cli->path))
			return md_cli_fail("the path of the database is too long");
		strcpy(cli->path, cli->db);
	} else {
		r = mp_store_default_path(cli->path, sizeof(cli->path), mode == MP_STORE_WRITE,
					  &err);
		if (r)
			return md_cli_fail("%s", err.msg);
	}
	r = mp_store_open(cli->path, mode, out, &err);
	if (!r)
		return 0;
	if (r == -ENOENT && mode == MP_STORE_READ && !cli->db && !getenv("MORPH_DB") &&
	    strcmp(cli->path, MP_STORE_SERVICE_PATH))
		return open_service(cli, out, &err);
	md_cli_fail("%s", err.msg);
	return r == -ENOENT && mode == MP_STORE_READ ? MP_EXIT_NO_PROFILE : MP_EXIT_FAILED;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

json_t *md_cli_json_new(const char *command)
{
	return mp_json_new(MD_CLI_JSON_SCHEMA, command);
}

int md_cli_json_print(json_t *root)
{
	int r = mp_json_is_whole(root)
			? json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10))
			: -1;
	int code = errno;

	json_decref(root);
	if (r && ferror(stdout))
		return md_cli_fail("standard output: %s", strerror(code));
	if (r)
		return md_cli_fail("out of memory");
	putchar('\n');
	return md_cli_finish(MP_EXIT_DONE);
}

/* ---- text ---------------------------------------------------------------------------------- */

void md_cli_put_text(const char *text)
{
	mp_text_put(stdout, text);
}

const char *md_cli_format_size(uint64_t bytes, char buf[static 32])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double size = (double)bytes;
	size_t unit = 0;

	while (size >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		size /= 1024;
		unit++;
	}
	snprintf(buf, 32, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
	return buf;
}

const char *md_cli_format_time(int64_t time_s, char buf[static 32])
{
	time_t t = (time_t)time_s;
	struct tm tm;

	if (!time_s || !localtime_r(&t, &tm) || !strftime(buf, 32, "%Y-%m-%d %H:%M:%S", &tm))
		strcpy(buf, "-");
	return buf;
}

int md_cli_finish(int status)
{
	if (fflush(stdout) || ferror(stdout)) {
		int code = errno;

		return md_cli_fail("standard output: %s", strerror(code));
	}
	return status;
}

void md_cli_note_period(struct mp_store *store, int64_t since_s)
{
	int64_t start_s = 0;
	char buf[32];

	if (since_s && !mp_store_period_start(store, since_s, &start_s, NULL) && start_s &&
	    start_s < since_s)
		md_cli_note("counts are kept per day, and older days together: the result "
			    "begins at %s",
			    md_cli_format_time(start_s, buf));
}

int md_cli_find_word(const char *arg, const char *const *words, int nr)
{
	for (int i = 0; i < nr; i++)
		if (!strcmp(arg, words[i]))
			return i;
	return -1;
}
