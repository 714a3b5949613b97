// SPDX-License-Identifier: Apache-2.0
/*
 * stats_activity - the command "activity": how much of each program's time is its own code, its
 * libraries and the kernel (Morph, SOSP 1997, Table 3).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/stats.h"

struct activity {
	struct md_stats *stats;
	struct md_stats_filter filter;
	int64_t since_s;
	long limit;
};

enum {
	KEY_BUILD_ID = 256
};

static const struct argp_option options[] = {
	{"module", 'm', "NAME", 0, "Only the program with this path or file name", 0},
	{"build-id", KEY_BUILD_ID, "HEX", 0, "Only programs whose build-id begins so", 0},
	{"since", 's', "WHEN", 0, "2h, 3d, today, 2026-11-20, ...: not what is older", 0},
	{"limit", 'n', "N", 0, "At most N programs", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct activity *a = state->input;
	char *end;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = a->stats; return 0;
	case 'm': a->filter.module = arg; return 0;
	case KEY_BUILD_ID: a->filter.build_id = arg; return 0;
	case 's':
		if (mp_since_parse(arg, time(NULL), &a->since_s))
			argp_error(state, "--since=%s: not a time: " MP_SINCE_FORMATS, arg);
		return 0;
	case 'n':
		a->limit = strtol(arg, &end, 10);
		if (*end || end == arg || a->limit < 1)
			argp_error(state, "--limit=%s: not a number above 0", arg);
		return 0;
	case ARGP_KEY_ARG: argp_error(state, "%s: too many arguments", arg); return EINVAL;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_stats_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	options,
	parse,
	NULL,
	"Say how much of each program's time is its own code, its libraries and the kernel.",
	children,
	0,
	0};

struct table {
	struct mp_module *modules;
	size_t nr_modules;
	struct mp_program_activity *programs;
	size_t nr_programs;
};

static const struct mp_module *find_module(const struct table *table, int64_t key)
{
	for (size_t i = 0; i < table->nr_modules; i++)
		if (table->modules[i].key == key)
			return &table->modules[i];
	return NULL;
}

static uint64_t total_of(const struct mp_activity *a)
{
	return a->app + a->lib + a->kernel + a->other;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0.0;
}

static void print_row(const struct mp_activity *a, uint64_t all, const char *name)
{
	uint64_t total = total_of(a);

	printf("%6.2f%% %12" PRIu64 " %7.2f%% %7.2f%% %7.2f%% %7.2f%%  ", percent(total, all),
	       total, percent(a->app, total), percent(a->lib, total), percent(a->kernel, total),
	       percent(a->other, total));
	md_stats_put_text(name);
	putchar('\n');
}

static json_t *row_json(const struct mp_activity *a, const struct mp_module *module)
{
	char id[80];
	json_t *row = json_pack("{s:I, s:I, s:I, s:I, s:I}", "samples", (json_int_t)total_of(a),
				"application", (json_int_t)a->app, "library", (json_int_t)a->lib,
				"kernel", (json_int_t)a->kernel, "other", (json_int_t)a->other);

	if (module) {
		json_object_set_new(row, "path", md_stats_json_string(module->path));
		json_object_set_new(row, "build_id",
				    json_string(md_stats_format_id(&module->id, id)));
	}
	return row;
}

static int print(const struct activity *a, const struct table *table)
{
	struct mp_activity sum = {0};
	json_t *root = NULL, *rows = NULL;
	uint64_t all = 0;
	long nr = 0;

	for (size_t i = 0; i < table->nr_programs; i++) {
		const struct mp_activity *one = &table->programs[i].activity;

		sum.app += one->app;
		sum.lib += one->lib;
		sum.kernel += one->kernel;
		sum.other += one->other;
	}
	all = total_of(&sum);
	if (a->stats->json) {
		root = md_stats_json_new("activity");
		rows = json_array();
	} else {
		printf("   Time      Samples      Own Library  Kernel    Other  Program\n");
	}
	for (size_t i = 0; i < table->nr_programs; i++) {
		const struct mp_program_activity *p = &table->programs[i];
		const struct mp_module *module = find_module(table, p->module);

		if (module ? !md_stats_filter_matches(&a->filter, module)
			   : a->filter.module || a->filter.build_id)
			continue;
		if (a->limit && nr++ >= a->limit)
			break;
		if (rows)
			json_array_append_new(rows, row_json(&p->activity, module));
		else
			print_row(&p->activity, all, module ? module->path : "(program not known)");
	}
	if (!rows) {
		print_row(&sum, all, "(all programs)");
		return md_stats_finish(MD_EXIT_DONE);
	}
	json_object_set_new(root, "total", row_json(&sum, NULL));
	json_object_set_new(root, "programs", rows);
	return md_stats_json_print(root);
}

int md_stats_activity(struct md_stats *stats, int argc, char **argv)
{
	struct activity a = {.stats = stats};
	struct table table = {0};
	struct mp_store *store;
	struct mp_err err = {0};
	int r;

	md_stats_parse(&argp, argc, argv, &a);
	r = md_stats_open(stats, MP_STORE_READ, &store);
	if (r)
		return r;
	r = mp_store_begin(store, &err);
	if (!r)
		r = mp_store_list_modules(store, 0, &table.modules, &table.nr_modules, &err);
	if (!r)
		r = mp_store_list_activity(store, a.since_s, &table.programs, &table.nr_programs,
					   &err);
	if (r) {
		r = md_stats_fail("%s", err.msg);
	} else if (!table.nr_programs) {
		md_stats_note("%s: no activity is stored%s", stats->path,
			      a.since_s ? " since then" : "");
		r = MD_EXIT_NO_PROFILE;
	} else {
		r = print(&a, &table);
	}
	mp_store_free_modules(table.modules, table.nr_modules);
	free(table.programs);
	mp_store_close(store);
	return r;
}
