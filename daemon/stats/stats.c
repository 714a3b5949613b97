// SPDX-License-Identifier: Apache-2.0
/*
 * stats - common options, opening the store, messages, JSON and text output; see stats.h.
 */
#include "daemon/stats/stats.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/code/originals.h"
#include "libprof/cli/args.h"
#include "libprof/cli/fleet_tool.h"
#include "libprof/cli/json.h"
#include "libprof/cli/progress.h"
#include "libprof/cli/since.h"
#include "libprof/cli/stdio.h"
#include "libprof/base/text.h"

enum {
	KEY_BACKUP_DIR = 900,
	KEY_FLEET
};

static const char *program = "morph-stats";

void md_stats_set_program(const char *name)
{
	program = name;
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct md_stats *stats = state->input;

	switch (key) {
	case 'd':
		if (!*arg)
			argp_error(state, "--db: the name is empty");
		stats->db = arg;
		return 0;
	case 'j': stats->json = true; return 0;
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

const struct argp md_stats_common_argp = {.options = common_options, .parser = parse_common};

static error_t parse_fleet(int key, char *arg, struct argp_state *state)
{
	struct md_stats *stats = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = stats; return 0;
	case KEY_FLEET: stats->fleet = arg; return 0;
	case ARGP_KEY_END:
		if (stats->db && stats->fleet)
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

static const struct argp_child common_children[] = {{&md_stats_common_argp, 0, NULL, 0}, {0}};
const struct argp md_stats_fleet_argp = {
	.options = fleet_options, .parser = parse_fleet, .children = common_children};

void md_stats_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	/* Exits with status 2 on wrong usage, 0 on --help. */
	mp_args_parse(argp, argc, argv, 0, input);
	mp_stdio_parsed();
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

int md_stats_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	return MP_EXIT_FAILED;
}

void md_stats_note(const char *fmt, ...)
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
static int open_service(struct md_stats *stats, struct mp_store **out, const struct mp_err *own)
{
	struct mp_err err = {0};
	int r = mp_store_open(MP_STORE_SERVICE_PATH, MP_STORE_READ, out, &err);

	if (!r) {
		md_stats_note(
			"%s does not exist: reading the service's database, " MP_STORE_SERVICE_PATH,
			stats->path);
		strcpy(stats->path, MP_STORE_SERVICE_PATH);
		return 0;
	}
	if (r == -ENOENT)
		md_stats_fail("%s; the service has none either (" MP_STORE_SERVICE_PATH ")",
			      own->msg);
	else if (r == -EACCES)
		md_stats_fail("%s; only root and the service may read the service's database: "
			      "sudo %s COMMAND --db=" MP_STORE_SERVICE_PATH,
			      own->msg, program);
	else
		md_stats_fail("%s; the service's: %s", own->msg, err.msg);
	return r == -ENOENT || r == -EACCES ? MP_EXIT_NO_PROFILE : MP_EXIT_FAILED;
}

/* Modules of a fleet that are read if none is named: those with the most samples. */
#define FLEET_MODULES "--top=200"

static int open_fleet(struct md_stats *stats, enum mp_store_mode mode, struct mp_store **out)
{
	const char *module = stats->fleet_module ? stats->fleet_module : FLEET_MODULES;
	const char *const arguments[] = {module, NULL};
	struct mp_err err = {0};
	int r;

	if (mode == MP_STORE_WRITE)
		return md_stats_fail("a fleet's profiles are only read: leave out --fleet");
	mp_progress_stop();
	r = mp_fleet_tool_pull(stats->fleet, arguments, stats->path, sizeof(stats->path), &err);
	if (!r) {
		r = mp_store_open(stats->path, mode, out, &err);
		mp_fleet_tool_remove(stats->path);
		strcpy(stats->path, "the fleet");
	}
	if (r && err.msg[0])
		md_stats_fail("%s", err.msg);
	return !r ? 0 : r == -ENODATA ? MP_EXIT_NO_PROFILE : MP_EXIT_FAILED;
}

int md_stats_open(struct md_stats *stats, enum mp_store_mode mode, struct mp_store **out)
{
	struct mp_err err = {0};
	int r;

	if (stats->fleet)
		return open_fleet(stats, mode, out);
	if (stats->db) {
		if (strlen(stats->db) >= sizeof(stats->path))
			return md_stats_fail("the path of the database is too long");
		strcpy(stats->path, stats->db);
	} else {
		r = mp_store_default_path(stats->path, sizeof(stats->path), mode == MP_STORE_WRITE,
					  &err);
		if (r)
			return md_stats_fail("%s", err.msg);
	}
	r = mp_store_open(stats->path, mode, out, &err);
	if (!r)
		return 0;
	if (r == -ENOENT && mode == MP_STORE_READ && !stats->db && !getenv("MORPH_DB") &&
	    strcmp(stats->path, MP_STORE_SERVICE_PATH))
		return open_service(stats, out, &err);
	md_stats_fail("%s", err.msg);
	return r == -ENOENT && mode == MP_STORE_READ ? MP_EXIT_NO_PROFILE : MP_EXIT_FAILED;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

json_t *md_stats_json_new(const char *command)
{
	return mp_json_new(MD_STATS_JSON_SCHEMA, command);
}

int md_stats_json_print(json_t *root)
{
	int r = mp_json_is_whole(root)
			? json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10))
			: -1;
	int code = errno;

	json_decref(root);
	if (r && ferror(stdout))
		return md_stats_fail("standard output: %s", strerror(code));
	if (r)
		return md_stats_fail("out of memory");
	putchar('\n');
	return md_stats_finish(MP_EXIT_DONE);
}

json_t *md_stats_json_string(const char *text)
{
	return mp_json_string(text);
}

/* ---- text ---------------------------------------------------------------------------------- */

void md_stats_put_text(const char *text)
{
	mp_text_put(stdout, text);
}

const char *md_stats_format_size(uint64_t bytes, char *buf)
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

const char *md_stats_format_time(int64_t time_s, char *buf)
{
	time_t t = (time_t)time_s;
	struct tm tm;

	if (!time_s || !localtime_r(&t, &tm) || !strftime(buf, 32, "%Y-%m-%d %H:%M:%S", &tm))
		strcpy(buf, "-");
	return buf;
}

int md_stats_finish(int status)
{
	if (fflush(stdout) || ferror(stdout)) {
		int code = errno;

		return md_stats_fail("standard output: %s", strerror(code));
	}
	return status;
}

void md_stats_note_period(struct mp_store *store, int64_t since_s)
{
	int64_t start_s = 0;
	char buf[32];

	if (since_s && !mp_store_period_start(store, since_s, &start_s, NULL) && start_s &&
	    start_s < since_s)
		md_stats_note("counts are kept per day, and older days together: the result "
			      "begins at %s",
			      md_stats_format_time(start_s, buf));
}

void md_stats_since(struct argp_state *state, const char *arg, int64_t *since_s)
{
	if (mp_since_parse(arg, time(NULL), since_s))
		argp_error(state, "--since=%s: not a time: " MP_SINCE_FORMATS, arg);
}

void md_stats_limit(struct argp_state *state, const char *arg, long *limit)
{
	char *end;

	*limit = strtol(arg, &end, 10);
	if (*end || end == arg || *limit < 1)
		argp_error(state, "--limit=%s: not a number above 0", arg);
}

void md_stats_percent(struct argp_state *state, const char *option, const char *arg,
		      double *percent)
{
	char *end;

	*percent = strtod(arg, &end);
	if (*end || end == arg || !(*percent >= 0 && *percent <= 100))
		argp_error(state, "%s=%s: not a percentage", option, arg);
}

int md_stats_find_word(const char *arg, const char *const *words, int nr)
{
	for (int i = 0; i < nr; i++)
		if (!strcmp(arg, words[i]))
			return i;
	return -1;
}
