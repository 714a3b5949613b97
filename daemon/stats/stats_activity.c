// SPDX-License-Identifier: Apache-2.0
/*
 * stats_activity - the command "activity": how the time of each program is divided between its
 * own code, libraries and the kernel (Morph, SOSP 1997, Table 3).
 */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/stats/stats.h"
#include "libprof/store/store_process.h"

#define MP_OPTIONS struct activity

enum by {
	BY_PROGRAM,
	BY_PROCESS,
	BY_UNIT,
	BY_USER
};

struct activity {
	struct md_cli *cli;
	struct md_stats_filter filter;
	int64_t since_s;
	long limit;
	enum by by;
};

static const char *const bys[] = {"program", "process", "unit", "user", NULL};

static const struct mp_option options[] = {
	MP_WORD("by", by, bys, "WHAT",
		"program (default): its own code, libraries, kernel; or process, unit or user: whose samples"),
	MP_VALUE(TEXT, "module", 'm', filter.module, "NAME",
		 "Only the program with this path or file name"),
	MP_VALUE(TEXT, "build-id", 0, filter.build_id, "HEX",
		 "Only programs whose build-id begins with HEX"),
	MD_OPTION_SINCE,
	MP_VALUE(LIMIT, "limit", 'n', limit, "N", "At most N programs"),
	MP_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	const struct activity *a = options;

	if (a->by != BY_PROGRAM && (a->filter.module || a->filter.build_id))
		argp_error(state, "--module and --build-id go with --by=program");
}

static const struct mp_usage usage = {
	.options = options,
	.doc = "Say how much of each program's time is its own code, its libraries and the kernel.",
	.check = check,
	.shared = &md_cli_common_argp};

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
	md_cli_put_text(name);
	putchar('\n');
}

static json_t *row_json(const struct mp_activity *a, const struct mp_module *module)
{
	char id[80];
	json_t *row = json_pack("{s:I, s:I, s:I, s:I, s:I}", "samples", (json_int_t)total_of(a),
				"application", (json_int_t)a->app, "library", (json_int_t)a->lib,
				"kernel", (json_int_t)a->kernel, "other", (json_int_t)a->other);

	if (module) {
		json_object_set_new(row, "path", mp_json_string(module->path));
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
	if (a->cli->json) {
		root = md_cli_json_new("activity");
		rows = json_array();
	} else {
		/* The first column is relative to all samples, the others to the program's own. */
		printf("                       Of the program's samples:\n");
		printf(" Of all      Samples      Own Library  Kernel    Other  Program\n");
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
		return md_cli_finish(MP_EXIT_DONE);
	}
	json_object_set_new(root, "total", row_json(&sum, NULL));
	json_object_set_new(root, "programs", rows);
	return md_cli_json_print(root);
}

/* ---- by process, unit or user ---------------------------------------------------------------- */

/* Return: the key of a row. @buf holds 64 bytes. */
static const char *name_of(enum by by, const struct mp_process *process, char *buf)
{
	const struct passwd *user;

	if (by == BY_PROCESS)
		return process->name[0] ? process->name : "(not known)";
	if (by == BY_UNIT)
		return process->unit[0] ? process->unit : "(not known)";
	if (process->uid == MP_UID_UNKNOWN)
		return "(not known)";
	user = getpwuid(process->uid);
	if (user)
		snprintf(buf, 64, "%s", user->pw_name);
	else
		snprintf(buf, 64, "%" PRIu32, process->uid);
	return buf;
}

static bool is_same(enum by by, const struct mp_process *a, const struct mp_process *b)
{
	return by == BY_PROCESS ? !strcmp(a->name, b->name)
	       : by == BY_UNIT	? !strcmp(a->unit, b->unit)
				: a->uid == b->uid;
}

/* Adds up entries with the same key, in place. Return: number of entries left. */
static size_t add_up(enum by by, struct mp_process *all, size_t nr)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr; i++) {
		size_t k = 0;

		while (k < kept && !is_same(by, &all[k], &all[i]))
			k++;
		if (k == kept)
			all[kept++] = all[i];
		else
			all[k].nr += all[i].nr;
	}
	if (kept)
		qsort(all, kept, sizeof(*all), mp_process_compare);
	return kept;
}

static int print_processes(const struct activity *a, const struct mp_process *all, size_t nr)
{
	static const char *const titles[] = {"", "Process", "Unit", "User"};
	json_t *root = NULL, *rows = NULL;
	uint64_t sum = 0;
	char buf[64];

	for (size_t i = 0; i < nr; i++)
		sum += all[i].nr;
	if (a->cli->json) {
		root = md_cli_json_new("activity");
		rows = json_array();
	} else {
		printf(" Of all      Samples  %s\n", titles[a->by]);
	}
	for (size_t i = 0; i < nr && (!a->limit || i < (size_t)a->limit); i++) {
		const char *name = name_of(a->by, &all[i], buf);

		if (rows) {
			json_array_append_new(rows, json_pack("{s:o, s:I}", bys[a->by],
							      mp_json_string(name), "samples",
							      (json_int_t)all[i].nr));
			continue;
		}
		printf("%6.2f%% %12" PRIu64 "  ", percent(all[i].nr, sum), all[i].nr);
		md_cli_put_text(name);
		putchar('\n');
	}
	if (!rows)
		return md_cli_finish(MP_EXIT_DONE);
	json_object_set_new(root, "by", json_string(bys[a->by]));
	json_object_set_new(root, "total_samples", json_integer((json_int_t)sum));
	json_object_set_new(root, "rows", rows);
	return md_cli_json_print(root);
}

static int show_processes(const struct activity *a, struct mp_store *store)
{
	struct mp_process *all = NULL;
	struct mp_err err = {0};
	size_t nr = 0;
	int r = mp_store_list_processes(store, a->since_s, &all, &nr, &err);

	if (r)
		return md_cli_fail("%s", err.msg);
	nr = add_up(a->by, all, nr);
	if (nr) {
		r = print_processes(a, all, nr);
	} else {
		md_cli_note("%s: no samples by %s are stored%s", a->cli->path, bys[a->by],
			    a->since_s ? " since then" : "");
		r = MP_EXIT_NO_PROFILE;
	}
	free(all);
	return r;
}

int md_stats_activity(struct md_cli *cli, int argc, char **argv)
{
	struct activity a = {.cli = cli};
	struct table table = {0};
	struct mp_store *store;
	struct mp_err err = {0};
	int r;

	md_cli_parse(&usage, argc, argv, &a, cli);
	r = md_cli_open(cli, MP_STORE_READ, &store);
	if (r)
		return r;
	if (a.by != BY_PROGRAM) {
		r = show_processes(&a, store);
		mp_store_close(store);
		return r;
	}
	r = mp_store_begin(store, &err);
	if (!r)
		r = mp_store_list_modules(store, 0, &table.modules, &table.nr_modules, &err);
	if (!r)
		r = mp_store_list_activity(store, a.since_s, &table.programs, &table.nr_programs,
					   &err);
	if (r) {
		r = md_cli_fail("%s", err.msg);
	} else if (!table.nr_programs) {
		md_cli_note("%s: no activity is stored%s", cli->path,
			    a.since_s ? " since then" : "");
		r = MP_EXIT_NO_PROFILE;
	} else {
		r = print(&a, &table);
	}
	mp_store_free_modules(table.modules, table.nr_modules);
	free(table.programs);
	mp_store_close(store);
	return r;
}
