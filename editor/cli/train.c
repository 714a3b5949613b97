// SPDX-License-Identifier: Apache-2.0
/*
 * train - the steps of a training: calls the programs that sample, import and audit, and optimize
 * between them. All intermediate files lie in one directory beside the output. Called by
 * morph-optimize.
 */
#include "editor/cli/train.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/cli/train_private.h"

struct me_train_path me_train_path(const struct me_trainer *t, const char *name)
{
	struct me_train_path path;

	snprintf(path.text, sizeof(path.text), "%.*s/%s", PATH_MAX - 64, t->dir, name);
	return path;
}

static int find_file(struct me_trainer *t)
{
	const struct me_train_options *o = t->options;

	if (!me_train_find_program(o->command[0], t->program))
		return mp_err_set(t->err, ENOENT, "%s: command not found", o->command[0]);
	if (!realpath(o->file ? o->file : t->program, t->file))
		return mp_err_set(t->err, errno, "%s: %s", o->file, strerror(errno));
	t->report->file = strdup(t->file);
	return t->report->file ? 0 : mp_err_set(t->err, ENOMEM, "out of memory");
}

static int make_dir(struct me_trainer *t)
{
	const char *slash = strrchr(t->options->output, '/');
	int len = slash ? (int)(slash - t->options->output) : 1;
	char parent[PATH_MAX], template[PATH_MAX];

	snprintf(parent, sizeof(parent), "%.*s", len ? len : 1, slash ? t->options->output : ".");
	if (!realpath(parent, template))
		return mp_err_set(t->err, errno, "%s: %s", parent, strerror(errno));
	if (snprintf(t->dir, sizeof(t->dir), "%s/.morph-train.XXXXXX", template) > PATH_MAX - 64)
		return mp_err_set(t->err, ENAMETOOLONG, "%s: too long", template);
	if (!mkdtemp(t->dir)) {
		int rc = mp_err_set(t->err, errno, "%s: %s", t->dir, strerror(errno));

		t->dir[0] = 0;
		return rc;
	}
	return 0;
}

static void remove_dir(struct me_trainer *t)
{
	DIR *dir = *t->dir ? opendir(t->dir) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	if (*t->dir)
		rmdir(t->dir);
}

/* A failure to sample is no error: counters then stand where loops suggest. */
static int sample(struct me_trainer *t)
{
	struct me_train_path db = me_train_path(t, "samples.db"), morphd;
	char db_option[PATH_MAX + 8];
	char *first[] = {morphd.text, (char *)"run", (char *)"--no-kernel",
			 db_option,   (char *)"--",  NULL};
	char **argv;
	int status;

	if (me_train_find_tool(t, "morphd", &morphd)) {
		snprintf(t->report->why, sizeof(t->report->why), "%.150s", t->err->msg);
		return 0;
	}
	snprintf(db_option, sizeof(db_option), "--db=%s", db.text);
	argv = me_train_with_command(t, first);
	if (!argv)
		return mp_err_set(t->err, ENOMEM, "out of memory");
	status = me_train_run_tool(argv, true);
	free(argv);
	t->report->sampled = !access(db.text, R_OK) && status >= 0;
	if (!t->report->sampled)
		snprintf(t->report->why, sizeof(t->report->why), "morphd run cannot sample here");
	return 0;
}

/*
 * A file with less than this share of the samples cannot speed the command up by more than the
 * share, which no audit could tell from noise.
 */
#define LEAST_SHARE 0.05

/* Checks that the command spends enough of its time in the file. */
static int find_where(struct me_trainer *t)
{
	struct me_where *w = &t->report->where;
	struct me_train_path db = me_train_path(t, "samples.db");
	struct mp_err ignored;

	if (!t->report->sampled || me_where_find(db.text, t->file, w, &ignored))
		return 0;
	/* A user who names a file wants that file. */
	if (t->options->file || !w->matters || (double)w->file >= LEAST_SHARE * (double)w->all)
		return 0;
	return mp_err_set(t->err, ESRCH,
			  "%s: %llu of %llu samples are in this file, but %llu in %s", t->file,
			  (unsigned long long)w->file, (unsigned long long)w->all,
			  (unsigned long long)w->other, w->path);
}

static int write_counting(struct me_trainer *t)
{
	struct me_train_path db = me_train_path(t, "samples.db"),
			     out = me_train_path(t, "counting");
	struct me_train_path counts = me_train_path(t, "%p.counts");
	struct me_optimize_options o = t->options->optimize;
	int rc = -ENODATA;

	o.input = t->file;
	o.output = out.text;
	o.counting.edges = o.counting.alone = true;
	o.counting.path = counts.text;
	o.exact_profile = false;
	o.debug_file = NULL;
	o.min_samples = 1; /* samples only move counters away from hot code */
	if (t->report->sampled) {
		o.db = db.text;
		rc = me_optimize(&o, &t->report->counting, t->err);
		if (rc == -ENODATA) {
			snprintf(t->report->why, sizeof(t->report->why), "%.150s", t->err->msg);
			me_optimize_report_fini(&t->report->counting);
			t->report->sampled = false;
		}
	}
	if (rc == -ENODATA) {
		o.all = true;
		rc = me_optimize(&o, &t->report->counting, t->err);
	}
	return rc;
}

static bool is_counts(const char *name)
{
	size_t len = strlen(name);

	return len > 7 && !strcmp(name + len - 7, ".counts");
}

/* Each process that ran the counting version wrote its own file of counts. */
static int import(struct me_trainer *t)
{
	struct me_train_path db = me_train_path(t, "exact.db"),
			     binary = me_train_path(t, "counting"), stats;
	char db_option[PATH_MAX + 8], binary_option[PATH_MAX + 16];
	DIR *dir = opendir(t->dir);
	struct dirent *entry;
	uint32_t nr = 0;
	int rc = dir ? me_train_find_tool(t, "morph-stats", &stats) : -EIO;

	snprintf(db_option, sizeof(db_option), "--db=%s", db.text);
	snprintf(binary_option, sizeof(binary_option), "--binary=%s", binary.text);
	while (!rc && (entry = readdir(dir))) {
		struct me_train_path file;
		char *argv[] = {stats.text,    (char *)"import", db_option,
				binary_option, file.text,	 NULL};

		if (!is_counts(entry->d_name))
			continue;
		file = me_train_path(t, entry->d_name);
		if (me_train_run_tool(argv, true))
			rc = mp_err_set(t->err, EIO, "%s: cannot be imported", file.text);
		nr++;
	}
	if (dir)
		closedir(dir);
	if (!rc && !nr)
		rc = mp_err_set(t->err, ENODATA, "%s: %s did not run it: nothing was counted",
				t->file, t->options->command[0]);
	return rc;
}

static int write_final(struct me_trainer *t)
{
	struct me_train_path db = me_train_path(t, "exact.db"), out = me_train_path(t, "final"),
			     debug = me_train_final_debug(t);
	struct me_train_path samples = me_train_path(t, "samples.db");
	struct me_optimize_options o = t->options->optimize;

	o.input = t->file;
	o.output = out.text;
	o.db = db.text;
	o.counting = (struct me_counting){0};
	o.exact_profile = true;
	o.sampled_db = t->report->sampled ? samples.text : NULL;
	o.uncounted = t->report->counting.left_alone;
	o.nr_uncounted = t->report->counting.nr_left_alone;
	o.debug_output = o.debug_file ? debug.text : NULL;
	o.min_samples = 1; /* exact counts need no minimum; the audit judges the result */
	return me_optimize(&o, &t->report->final, t->err);
}

static int run_plain(struct me_trainer *t)
{
	return me_train_run(t, t->file, &t->report->plain_s, &t->report->plain_wall_s);
}

static int run_counting(struct me_trainer *t)
{
	struct me_train_path out = me_train_path(t, "counting");
	double wall_s;

	return me_train_run(t, out.text, &t->report->counting_s, &wall_s);
}

int me_train(const struct me_train_options *options, struct me_train_report *report,
	     struct mp_err *err)
{
	static const struct {
		const char *words;
		int (*run)(struct me_trainer *t);
	} steps[] = {
		{NULL, find_file},
		{NULL, make_dir},
		{"sampling the command", sample},
		{NULL, find_where},
		{"making the counting version", write_counting},
		{"running the command", run_plain},
		{"running the command with counters", run_counting},
		{"adding up what was counted", import},
		{"making the new version", write_final},
		{"auditing", me_train_audit},
		{NULL, me_train_keep},
	};
	struct me_trainer t = {.options = options, .report = report, .err = err};
	int rc = 0;

	*report = (struct me_train_report){.audit = -1};
	for (size_t i = 0; !rc && i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (steps[i].words && options->say)
			options->say(steps[i].words);
		rc = steps[i].run(&t);
	}
	remove_dir(&t);
	return rc;
}

void me_train_report_fini(struct me_train_report *report)
{
	me_optimize_report_fini(&report->counting);
	me_optimize_report_fini(&report->final);
	me_where_fini(&report->where);
	free(report->undecided);
	free(report->pairs);
	free(report->file);
	report->undecided = report->pairs = report->file = NULL;
}
