// SPDX-License-Identifier: Apache-2.0
/*
 * train - the steps of a training: calls the programs that sample, import and audit, and optimize
 * between them. All intermediate files lie in one directory beside the output. Called by
 * morph-optimize.
 */
#include "editor/train/train.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "editor/base/scratch.h"
#include "editor/emit/publish.h"
#include "editor/refine/interrupt.h"
#include "editor/refine/tool.h"
#include "editor/train/train_private.h"
#include "libprof/base/child.h"
#include "libprof/base/infile.h"
#include "libprof/base/outfile.h"

/* A script is not what runs; its interpreter is. */
static int check_script(struct me_trainer *t)
{
	char line[256] = "", interpreter[256] = "";
	uint64_t size;
	int fd = mp_infile_regular(t->file, &size, t->err), rc = 0;

	if (fd < 0)
		return fd;
	if (pread(fd, line, sizeof(line) - 1, 0) < 0)
		rc = mp_err_set(t->err, errno, "%s: %s", t->file, strerror(errno));
	else if (sscanf(line, "#!%*[ ]%255s", interpreter) == 1 ||
		 sscanf(line, "#!%255s", interpreter) == 1)
		rc = mp_err_set(t->err, EINVAL,
				"%s: is a script for %s; to make that faster, give it as FILE, and "
				"-o for the output",
				t->file, interpreter);
	close(fd);
	t->report->file = rc ? NULL : strdup(t->file);
	return rc || t->report->file ? rc : mp_err_set(t->err, ENOMEM, "out of memory");
}

static int find_file(struct me_trainer *t)
{
	const struct me_train_options *o = t->options;
	char found[sizeof(t->program)];
	const char *named = o->file ? found : t->program;

	if (!mp_child_find_in_path(o->command[0], t->program))
		return mp_err_set(t->err, ENOENT, "%s: command not found", o->command[0]);
	/* A bare name is a program of PATH, unless such a file is here. */
	if (o->file && (strchr(o->file, '/') || !access(o->file, F_OK) ||
			!mp_child_find_in_path(o->file, found)))
		named = o->file;
	if (!realpath(named, t->file))
		return mp_err_set(t->err, errno, "%s: %s", named, strerror(errno));
	return check_script(t);
}

/* The output appears after minutes, by a rename that would replace whatever has its name. */
static int check_output(struct me_trainer *t)
{
	const struct me_train_options *o = t->options;
	const char *named[] = {o->trials_db, o->optimize.db, o->optimize.debug_file};
	const char *inputs[sizeof(named) / sizeof(named[0]) + 1] = {NULL};
	size_t nr = 0;
	struct stat st;
	int rc = me_publish_check(t->file, o->output, t->err);

	if (!rc && o->only_profile && !lstat(o->output, &st))
		rc = mp_err_set(t->err, EEXIST, "%s: is there already", o->output);

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (named[i])
			inputs[nr++] = named[i];
	return rc ? rc : mp_outfile_check(o->output, inputs, t->err);
}

static int make_dir(struct me_trainer *t)
{
	const char *slash = strrchr(t->options->output, '/');
	int len = slash ? (int)(slash - t->options->output) : 1;
	char parent[PATH_MAX], template[PATH_MAX];

	snprintf(parent, sizeof(parent), "%.*s", len ? len : 1, slash ? t->options->output : ".");
	if (!realpath(parent, template))
		return mp_err_set(t->err, errno, "%s: %s", parent, strerror(errno));
	if (snprintf(t->dir, sizeof(t->dir), "%s/.morph-train.XXXXXX", template) >
	    PATH_MAX - NAME_MAX - 2)
		return mp_err_set(t->err, ENAMETOOLONG, "%s: too long", template);
	return me_scratch_make(t->dir, t->err);
}

/* Without samples, the loops decide where counters stand. So a failure to sample is no error. */
static int sample(struct me_trainer *t)
{
	struct me_train_path db = me_train_path(t, "samples.db");
	struct me_tool morphd;
	char db_option[PATH_MAX + 8];
	char *first[] = {morphd.path, (char *)"run", (char *)"--no-kernel",
			 db_option,   (char *)"--",  NULL};
	char **argv;
	int status;

	if (me_tool_find("morphd", &morphd, t->err)) {
		snprintf(t->report->why, sizeof(t->report->why), "%.150s", t->err->msg);
		return 0;
	}
	snprintf(db_option, sizeof(db_option), "--db=%s", db.text);
	argv = me_tool_with_command(first, t->options->command);
	if (!argv)
		return mp_err_set(t->err, ENOMEM, "out of memory");
	status = me_tool_run(argv, true);
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
	o.adjust_words = (struct me_words){0};
	o.nr_adjusts = 0;
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
			     binary = me_train_path(t, "counting");
	char db_option[PATH_MAX + 8], binary_option[PATH_MAX + 16];
	DIR *dir = opendir(t->dir);
	struct dirent *entry;
	struct me_tool stats;
	uint32_t nr = 0;
	int rc = dir ? me_tool_find("morph-stats", &stats, t->err) : -EIO;

	snprintf(db_option, sizeof(db_option), "--db=%s", db.text);
	snprintf(binary_option, sizeof(binary_option), "--binary=%s", binary.text);
	while (!rc && (entry = readdir(dir))) {
		struct me_train_path file;
		char *argv[] = {stats.path,    (char *)"import", db_option,
				binary_option, file.text,	 NULL};

		if (!is_counts(entry->d_name))
			continue;
		file = me_train_path(t, entry->d_name);
		if (me_tool_run(argv, true))
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

/* The database is closed, so that it has no journal beside it. */
static int keep_profile(struct me_trainer *t)
{
	struct me_train_path db = me_train_path(t, "exact.db");

	return renameat2(AT_FDCWD, db.text, AT_FDCWD, t->options->output, RENAME_NOREPLACE)
		       ? mp_err_set(t->err, errno, "%s: %s", t->options->output, strerror(errno))
		       : 0;
}

/* Anybody may have written the store. If its adjustments name no function, they are dropped. */
static int write_first(struct me_trainer *t)
{
	int rc = me_train_write_final(t);

	if (!t->wishes.nr || (rc != -ENOENT && rc != -ENOTUNIQ && rc != -EINVAL))
		return rc;
	me_wishes_fini(&t->wishes);
	me_wishes_fini(&t->report->known);
	return me_train_write_final(t);
}

/* Runs the command with @version at the path of the file. */
static int run_with(struct me_trainer *t, const char *version, double *cpu_s, double *wall_s,
		    int *status)
{
	struct me_in_place run = {.dir = t->dir,
				  .at = t->file,
				  .version = version,
				  .program = t->program,
				  .argv = t->options->command};
	struct me_in_place_result result;
	int rc = me_in_place_run(&run, &result, t->err);

	if (!rc && WIFSIGNALED(result.status))
		rc = mp_err_set(t->err, EIO, "%s: died of signal %d%s%s", t->options->command[0],
				WTERMSIG(result.status), result.last_stderr[0] ? ": " : "",
				result.last_stderr);
	*cpu_s = result.cpu_s;
	*wall_s = result.wall_s;
	*status = result.status;
	return rc;
}

/* A command that fails each time is most often one that was mistyped. */
static void warn_of_status(const struct me_trainer *t, int status)
{
	char what[160];

	if (!t->options->warn || !WIFEXITED(status) || !WEXITSTATUS(status))
		return;
	snprintf(what, sizeof(what), "the command ends with status %d: is that what it is to do?",
		 WEXITSTATUS(status));
	t->options->warn(what);
}

static int run_plain(struct me_trainer *t)
{
	int status = 0,
	    rc = run_with(t, t->file, &t->report->plain_s, &t->report->plain_wall_s, &status);

	if (!rc)
		warn_of_status(t, status);
	return rc;
}

static int run_counting(struct me_trainer *t)
{
	struct me_train_path out = me_train_path(t, "counting");
	double wall_s;
	int status;

	return run_with(t, out.text, &t->report->counting_s, &wall_s, &status);
}

int me_train(const struct me_train_options *options, struct me_train_report *report,
	     struct mp_err *err)
{
	static const struct {
		const char *words;
		int (*run)(struct me_trainer *t);
		enum {
			ALWAYS,
			COUNTS,
			VERSION,
			PROFILE
		} when;
	} steps[] = {
		{NULL, find_file, ALWAYS},
		{NULL, check_output, ALWAYS},
		{NULL, make_dir, ALWAYS},
		{"sampling the command", sample, COUNTS},
		{NULL, find_where, COUNTS},
		{"making the counting version", write_counting, COUNTS},
		{"running the command", run_plain, VERSION},
		{"running the command with counters", run_counting, COUNTS},
		{"adding up what was counted", import, COUNTS},
		{NULL, keep_profile, PROFILE},
		{NULL, me_train_read_trials, VERSION},
		{"making the new version", write_first, VERSION},
		{"auditing", me_train_audit, VERSION},
		{"refining", me_train_refine, VERSION},
		{NULL, me_train_judge, VERSION},
		{NULL, me_train_keep, VERSION},
	};
	struct me_trainer t = {.options = options, .report = report, .err = err};
	int rc = 0;

	*report = (struct me_train_report){.audit = -1};
	for (size_t i = 0; !rc && i < sizeof(steps) / sizeof(steps[0]); i++) {
		if ((steps[i].when == COUNTS && options->has_profile) ||
		    (steps[i].when == VERSION && options->only_profile) ||
		    (steps[i].when == PROFILE && !options->only_profile))
			continue;
		if (steps[i].words && options->say)
			options->say(steps[i].words);
		rc = me_interrupt_check(err);
		if (!rc)
			rc = steps[i].run(&t);
		/* -EAGAIN is a verdict, unless the system gave it: no process, no memory. */
		if (rc == -EAGAIN && steps[i].words)
			rc = -EIO;
		/* An interrupted step may report any error. */
		if (rc && me_interrupted())
			rc = me_interrupt_check(err);
	}
	me_scratch_remove(t.dir);
	me_wishes_fini(&t.wishes);
	return rc;
}

void me_train_report_fini(struct me_train_report *report)
{
	me_optimize_report_fini(&report->counting);
	me_optimize_report_fini(&report->final);
	me_where_fini(&report->where);
	me_wishes_fini(&report->known);
	me_wishes_fini(&report->chosen);
	me_refine_report_fini(&report->refinement);
	free(report->trials_lost);
	free(report->undecided);
	free(report->pairs);
	free(report->file);
	report->undecided = report->pairs = report->file = report->trials_lost = NULL;
}
