// SPDX-License-Identifier: Apache-2.0
/*
 * stats_diff - the command "diff": which code's share of the samples changed between two databases
 * or two periods, and whether the change exceeds chance. Decides what is compared and how it is
 * shown.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/diff/diff.h"
#include "daemon/diff/diff_period.h"
#include "daemon/stats/stats.h"

#define MP_OPTIONS struct options

enum sort {
	SORT_DELTA,
	SORT_OLD,
	SORT_NEW,
	SORT_P,
	SORT_NAME
};

struct options {
	struct md_cli *cli;
	struct md_diff diff;
	const char *dbs[2];
	int nr_dbs;
	struct mp_span periods[2];
	bool has_period[2];
	enum sort sort;
	long limit; /* 0: all */
	double percent_limit;
	bool only_significant;
	size_t nr_binaries;
	const char **binaries;
	char paths[2][PATH_MAX]; /* of the databases, once they are open */
	json_t *notes;
};

static void add_binary(const struct mp_option *option, void *options, char *arg,
		       struct argp_state *state)
{
	struct options *o = options;
	const char **bigger = realloc(o->binaries, (o->nr_binaries + 1) * sizeof(*bigger));

	if (!bigger)
		argp_failure(state, MP_EXIT_FAILED, ENOMEM, "--%s", option->name);
	o->binaries = bigger;
	bigger[o->nr_binaries++] = arg;
}

/*
 * Completes the request. One database needs two periods; if only one is given, the other is the
 * time before or after it.
 */
static void finish(struct options *o, struct argp_state *state)
{
	bool periods = o->has_period[0] || o->has_period[1];

	if (!o->nr_dbs && !periods)
		argp_error(state, "nothing to compare: give two databases, or --at=WHEN");
	if (o->nr_dbs == 1 && !periods) {
		o->dbs[1] = o->dbs[0];
		o->dbs[0] = NULL; /* that of --db, or the default one */
		return;
	}
	if (o->nr_dbs == 2) {
		if (o->cli->db)
			argp_error(state, "--db goes with one database or none");
		return;
	}
	if (o->nr_dbs == 1)
		o->dbs[1] = o->dbs[0];
	if (o->nr_dbs == 1 && o->cli->db)
		argp_error(state, "--db goes with one database and no period");
	if (!o->has_period[0] && md_period_before(&o->periods[1], &o->periods[0]))
		argp_error(state, "nothing lies before --after: give --before, too");
	if (!o->has_period[1] && md_period_behind(&o->periods[0], &o->periods[1]))
		argp_error(state, "nothing lies after --before: give --after, too");
}

static void set_at(const struct mp_option *option, void *options, char *arg,
		   struct argp_state *state)
{
	struct options *o = options;
	int64_t when_s;

	if (mp_since_parse(arg, time(NULL), &when_s) || when_s < MP_SECONDS_PER_DAY)
		argp_error(state, "--%s=%s: not a time", option->name, arg);
	o->periods[0] =
		(struct mp_span){.first_day = 0, .last_day = when_s / MP_SECONDS_PER_DAY - 1};
	o->periods[1] =
		(struct mp_span){.first_day = when_s / MP_SECONDS_PER_DAY, .last_day = INT64_MAX};
	o->has_period[0] = o->has_period[1] = true;
}

static void set_period(const struct mp_option *option, void *options, char *arg,
		       struct argp_state *state)
{
	struct options *o = options;
	bool after = !strcmp(option->name, "after");

	if (md_period_parse(arg, time(NULL), &o->periods[after]))
		argp_error(state, "--%s=%s: not a period of days", option->name, arg);
	o->has_period[after] = true;
}

static const char *const bys[] = {"", "module", "function", "block", NULL};
static const char *const sorts[] = {"delta", "old", "new", "p", "name", NULL};

static const struct mp_option option_table[] = {
	MP_WORD("by", diff.by, bys, "WHAT", "module, function (default) or block"),
	MP_VALUE(TEXT, "module", 'm', diff.filter.module, "NAME", MD_HELP_MODULE),
	MP_VALUE(TEXT, "build-id", 0, diff.filter.build_id, "HEX", MD_HELP_BUILD_ID),
	MP_SET("binary", 0, add_binary, "FILE",
	       MD_HELP_BINARY ". May be given once for each build"),
	MP_VALUE(TEXT, "function", 'f', diff.function, "NAME", MD_HELP_FUNCTION),
	MP_SET("at", 0, set_at, "WHEN",
	       "Compare what was before the day of WHEN with what came then"),
	MP_SET("before", 0, set_period, "PERIOD", "The old side: WHEN..WHEN, WHEN.. or ..WHEN"),
	MP_SET("after", 0, set_period, "PERIOD", "The new side: WHEN..WHEN, WHEN.. or ..WHEN"),
	MP_WORD("sort", sort, sorts, "KEY", "delta (default), old, new, p or name"),
	MD_OPTION_LIMIT,
	MP_NUMBER("percent-limit", 'p', percent_limit, 0, 100, "P",
		  "Only rows of at least P percent on either side"),
	MP_FLAG("significant", only_significant, "Only rows that changed by more than chance"),
	MP_OPTIONS_END};

static void take_word(void *options, char *arg, struct argp_state *state)
{
	struct options *o = options;

	if (o->nr_dbs == 2)
		argp_error(state, "%s: two databases at a time", arg);
	o->dbs[o->nr_dbs++] = arg;
}

static void check(void *options, struct argp_state *state)
{
	struct options *o = options;

	if (o->diff.function && o->diff.by == MD_BY_MODULE)
		argp_error(state, "--function goes with --by=function or --by=block");
	finish(o, state);
}

static const struct mp_usage usage = {
	.options = option_table,
	.arguments = "[OLD-DB] [NEW-DB]",
	.word = take_word,
	.check = check,
	.doc = "Say which shares of the samples changed, and whether by more than chance.\vWith two "
	       "databases: the second against the first. With one: against the default one. With --at, "
	       "--before or --after two periods of one database.",
	.shared = &md_cli_common_argp};

static void note(void *ctx, const char *what)
{
	struct options *o = ctx;

	md_cli_note("%s", what);
	json_array_append_new(o->notes, mp_json_string(what));
}

/* ---- order --------------------------------------------------------------------------------- */

static enum sort sort_by;

static int compare_doubles(double a, double b)
{
	return (a > b) - (a < b);
}

static int compare_rows(const void *a, const void *b)
{
	const struct md_diff_row *x = a, *y = b;
	const char *nx = x->function ? x->function : "", *ny = y->function ? y->function : "";
	int c = 0;

	switch (sort_by) {
	case SORT_OLD: c = compare_doubles(y->share[0], x->share[0]); break;
	case SORT_NEW: c = compare_doubles(y->share[1], x->share[1]); break;
	case SORT_P: c = compare_doubles(x->p, y->p); break;
	case SORT_NAME: c = strcmp(nx, ny); break;
	default: break;
	}
	if (!c)
		c = compare_doubles(fabs(y->delta), fabs(x->delta));
	if (!c)
		c = strcmp(nx, ny);
	if (!c)
		c = (x->group > y->group) - (x->group < y->group);
	if (!c)
		c = (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
	return c ? c : (x->offset > y->offset) - (x->offset < y->offset);
}

static bool is_shown(const struct options *o, const struct md_diff_row *row)
{
	if (o->only_significant && !md_diff_row_is_significant(row))
		return false;
	return row->share[0] >= o->percent_limit || row->share[1] >= o->percent_limit;
}

/* ---- print --------------------------------------------------------------------------------- */

static const char *format_p(double p, char *buf)
{
	if (p <= 1e-20)
		strcpy(buf, "<1e-20");
	else
		snprintf(buf, 16, p < 0.001 ? "%.0e" : "%.3f", p);
	return buf;
}

static char mark_of(const struct md_diff_row *row)
{
	return md_diff_row_is_significant(row) ? '*' : md_diff_row_is_possible(row) ? '?' : ' ';
}

static void put_share(const struct md_diff_row *row, int side)
{
	if (row->samples[side])
		printf("%7.2f%% ", row->share[side]);
	else
		printf("%8s ", "-");
}

static void print_row(const struct options *o, const struct md_diff_row *row)
{
	const struct md_diff_group *group = &o->diff.groups[row->group];
	bool bracket = group->path[0] != '[' && o->diff.by != MD_BY_MODULE;
	char buf[16];

	put_share(row, 0);
	put_share(row, 1);
	printf("%+8.2f %c %7s  ", row->delta, mark_of(row), format_p(row->p, buf));
	if (o->diff.by == MD_BY_MODULE) {
		md_cli_put_text(group->path);
		putchar('\n');
		return;
	}
	if (row->function)
		md_cli_put_text(row->function);
	else
		printf("(no function known)");
	if (row->function && o->diff.by == MD_BY_BLOCK)
		printf("+0x%" PRIx64, row->offset);
	if (row->code)
		printf(row->code == MD_DIFF_ADDED ? " (added)" : " (gone)");
	printf(bracket ? "  [" : "  ");
	md_cli_put_text(basename(group->path));
	printf(bracket ? "]\n" : "\n");
}

static void put_side(const struct options *o, int side, const char *name)
{
	const struct mp_span *p = &o->periods[side];
	char from[32], to[32];

	printf("%s: %" PRIu64 " samples in ", name, o->diff.sides[side].total);
	md_cli_put_text(o->paths[side]);
	if (p->first_day > 0)
		printf(", from %.10s",
		       md_cli_format_time(
			       p->first_day * MP_SECONDS_PER_DAY + MP_SECONDS_PER_DAY / 2, from));
	if (p->last_day < INT64_MAX)
		printf(", until %.10s",
		       md_cli_format_time(p->last_day * MP_SECONDS_PER_DAY + MP_SECONDS_PER_DAY / 2,
					  to));
	putchar('\n');
}

static void print_text(const struct options *o)
{
	static const char *const whats[] = {"", "Module", "Function  [Module]", "Block  [Module]"};
	size_t significant = 0;
	long nr = 0;

	put_side(o, 0, "Old");
	put_side(o, 1, "New");
	printf("\n     Old      New    Delta         p  %s\n", whats[o->diff.by]);
	for (size_t i = 0; i < o->diff.nr_rows; i++) {
		significant += md_diff_row_is_significant(&o->diff.rows[i]);
		if (!is_shown(o, &o->diff.rows[i]) || (o->limit && nr >= o->limit))
			continue;
		print_row(o, &o->diff.rows[i]);
		nr++;
	}
	printf("\n%zu of %zu changed by more than chance (*, at 5%% over all of them)\n",
	       significant, o->diff.nr_rows);
}

static json_t *side_json(const struct options *o, int side)
{
	const struct mp_span *p = &o->periods[side];
	json_t *json = json_pack("{s:o, s:I}", "db", mp_json_string(o->paths[side]), "samples",
				 (json_int_t)o->diff.sides[side].total);

	json_object_set_new(json, "left_out_samples",
			    json_integer((json_int_t)o->diff.sides[side].left_out));
	json_object_set_new(json, "first_s",
			    p->first_day > 0 ? json_integer(p->first_day * MP_SECONDS_PER_DAY)
					     : json_null());
	json_object_set_new(json, "end_s",
			    p->last_day < INT64_MAX
				    ? json_integer((p->last_day + 1) * MP_SECONDS_PER_DAY)
				    : json_null());
	return json;
}

static json_t *row_json(const struct options *o, const struct md_diff_row *row)
{
	static const char *const codes[] = {"", "added", "gone"};
	const struct md_diff_group *group = &o->diff.groups[row->group];
	char text[32];
	json_t *json = json_pack("{s:o, s:f, s:f, s:f, s:I, s:I, s:f, s:f, s:s, s:b}", "module",
				 mp_json_string(group->path), "old_percent", row->share[0],
				 "new_percent", row->share[1], "delta", row->delta, "old_samples",
				 (json_int_t)row->samples[0], "new_samples",
				 (json_int_t)row->samples[1], "p", row->p, "p_adjusted",
				 row->p_adjusted, "change",
				 md_diff_row_is_significant(row) ? "significant"
				 : md_diff_row_is_possible(row)	 ? "possible"
								 : "noise",
				 "several_builds", group->nr_builds > 1);

	if (o->diff.by == MD_BY_MODULE)
		return json;
	json_object_set_new(json, "function",
			    row->function ? mp_json_string(row->function) : json_null());
	snprintf(text, sizeof(text), "0x%" PRIx64, row->vaddr);
	json_object_set_new(json, "address",
			    row->function && !row->by_name ? json_string(text) : json_null());
	json_object_set_new(json, "code", row->code ? json_string(codes[row->code]) : json_null());
	if (o->diff.by == MD_BY_BLOCK)
		json_object_set_new(json, "offset", json_integer((json_int_t)row->offset));
	return json;
}

static int print_json(const struct options *o)
{
	static const char *const bys[] = {"", "module", "function", "block"};
	json_t *root = md_cli_json_new("diff"), *rows = json_array();
	long nr = 0;

	for (size_t i = 0; i < o->diff.nr_rows; i++) {
		if (!is_shown(o, &o->diff.rows[i]) || (o->limit && nr >= o->limit))
			continue;
		json_array_append_new(rows, row_json(o, &o->diff.rows[i]));
		nr++;
	}
	json_object_set_new(root, "by", json_string(bys[o->diff.by]));
	json_object_set_new(root, "old", side_json(o, 0));
	json_object_set_new(root, "new", side_json(o, 1));
	json_object_set_new(root, "nr_compared", json_integer((json_int_t)o->diff.nr_rows));
	json_object_set(root, "notes", o->notes);
	json_object_set_new(root, "rows", rows);
	return md_cli_json_print(root);
}

/* ---- run ----------------------------------------------------------------------------------- */

static int load(struct options *o, int side)
{
	struct md_cli cli = *o->cli;
	struct mp_store *store;
	struct mp_err err = {0};
	char text[300];
	int r;

	if (o->dbs[side])
		cli.db = o->dbs[side];
	r = md_cli_open(&cli, MP_STORE_READ, &store);
	if (r)
		return r;
	strcpy(o->paths[side], cli.path);
	r = md_diff_load(&o->diff.sides[side], store, &o->periods[side], &err);
	mp_store_close(store);
	if (r)
		return md_cli_fail("%s", err.msg);
	if (o->diff.sides[side].left_out) {
		snprintf(text, sizeof(text),
			 "%s side: %" PRIu64 " samples of days that are kept together with days "
			 "outside of the period are left out",
			 side ? "new" : "old", o->diff.sides[side].left_out);
		note(o, text);
	}
	if (!o->diff.sides[side].total) {
		md_cli_note("%s: no sample is stored%s", cli.path,
			    o->has_period[side] ? " of that period" : "");
		return MP_EXIT_NO_PROFILE;
	}
	return 0;
}

static void note_builds(struct options *o)
{
	char text[400];

	for (size_t g = 0; g < o->diff.nr_groups; g++) {
		const struct md_diff_group *group = &o->diff.groups[g];

		if (!group->wanted || group->nr_builds < 2)
			continue;
		snprintf(text, sizeof(text), "%.250s: %zu builds, matched by path%s", group->path,
			 group->nr_builds,
			 o->diff.by == MD_BY_MODULE ? "" : " and name of function");
		note(o, text);
	}
}

static int compare(struct options *o)
{
	struct mp_err err = {0};
	int r = md_diff_compare(&o->diff, &err);

	if (r)
		return md_cli_fail("%s", err.msg);
	if (!o->diff.nr_rows) {
		md_cli_note("no sample of such a module%s on either side",
			    o->diff.function ? " or function" : "");
		return MP_EXIT_NO_PROFILE;
	}
	note_builds(o);
	sort_by = o->sort;
	qsort(o->diff.rows, o->diff.nr_rows, sizeof(*o->diff.rows), compare_rows);
	if (o->cli->json)
		return print_json(o);
	print_text(o);
	return md_cli_finish(MP_EXIT_DONE);
}

int md_stats_diff(struct md_cli *cli, int argc, char **argv)
{
	struct options o = {.cli = cli,
			    .diff = {.by = MD_BY_FUNCTION, .note = note},
			    .periods = {MD_PERIOD_ALL, MD_PERIOD_ALL}};
	int r;

	md_cli_parse(&usage, argc, argv, &o, cli);
	o.notes = json_array();
	o.diff.ctx = &o;
	o.diff.binaries = o.binaries;
	o.diff.nr_binaries = o.nr_binaries;
	r = load(&o, 0);
	if (!r)
		r = load(&o, 1);
	if (!r)
		r = compare(&o);
	md_diff_fini(&o.diff);
	free(o.binaries);
	json_decref(o.notes);
	return r;
}
