// SPDX-License-Identifier: Apache-2.0
/*
 * train - calls the programs that sample, import and audit, and optimize between them. Everything
 * intermediate lies in one directory beside the output. Called by morph-optimize.
 */
#include "editor/train.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "editor/audit_run.h"
#include "editor/audit_slot.h"

extern char **environ;

struct trainer {
	const struct me_train_options *options;
	struct me_train_report *report;
	struct mp_err *err;
	char dir[PATH_MAX];
	char program[PATH_MAX]; /* what the command runs */
	char file[PATH_MAX];
};

struct path {
	char text[PATH_MAX];
};

static struct path in_dir(const struct trainer *t, const char *name)
{
	struct path path;

	snprintf(path.text, sizeof(path.text), "%.*s/%s", PATH_MAX - 64, t->dir, name);
	return path;
}

/* ---- programs ---------------------------------------------------------------------------- */

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

static bool find_in_path(const char *name, char *out)
{
	const char *path = getenv("PATH"), *end;

	if (strchr(name, '/'))
		return is_program(name) && realpath(name, out);
	for (; path && *path; path = *end ? end + 1 : end) {
		char candidate[PATH_MAX];

		end = strchrnul(path, ':');
		if (snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)(end - path), path,
			     name) < (int)sizeof(candidate) &&
		    is_program(candidate))
			return realpath(candidate, out);
	}
	return false;
}

/* One of our own: beside this one, as it was installed, or wherever the shell finds it. */
static int find_tool(const struct trainer *t, const char *name, struct path *out)
{
	static const char *const places[] = {"%.*s/%s", "%.*s/../sbin/%s"};
	char self[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		char candidate[PATH_MAX];

		if (snprintf(candidate, sizeof(candidate), places[i], (int)(slash - self), self,
			     name) < (int)sizeof(candidate) &&
		    is_program(candidate) && realpath(candidate, out->text))
			return 0;
	}
	if (find_in_path(name, out->text))
		return 0;
	return mp_err_set(t->err, ENOENT, "%s: is not installed", name);
}

/* Its wait status, or -errno; @quiet: what it prints goes nowhere. */
static int run_tool(char *const *argv, bool quiet)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int rc, status;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	for (int fd = STDOUT_FILENO; quiet && fd <= STDERR_FILENO; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
	rc = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (rc)
		return -rc;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status;
}

static size_t count(char *const *argv)
{
	size_t nr = 0;

	while (argv[nr])
		nr++;
	return nr;
}

/* @first, then the command. Ownership: free(). */
static char **with_command(const struct trainer *t, char *const *first)
{
	size_t a = count(first), b = count(t->options->command);
	char **argv = calloc(a + b + 1, sizeof(*argv));

	if (argv) {
		memcpy(argv, first, a * sizeof(*argv));
		memcpy(argv + a, t->options->command, b * sizeof(*argv));
	}
	return argv;
}

/* ---- steps ------------------------------------------------------------------------------- */

static int find_file(struct trainer *t)
{
	const struct me_train_options *o = t->options;

	if (!find_in_path(o->command[0], t->program))
		return mp_err_set(t->err, ENOENT, "%s: command not found", o->command[0]);
	if (!realpath(o->file ? o->file : t->program, t->file))
		return mp_err_set(t->err, errno, "%s: %s", o->file, strerror(errno));
	t->report->file = strdup(t->file);
	return t->report->file ? 0 : mp_err_set(t->err, ENOMEM, "out of memory");
}

static int make_dir(struct trainer *t)
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

static void remove_dir(struct trainer *t)
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

/* Where samples cannot be had counters do without. */
static int sample(struct trainer *t)
{
	struct path db = in_dir(t, "samples.db"), morphd;
	char db_option[PATH_MAX + 8];
	char *first[] = {morphd.text, (char *)"run", (char *)"--no-kernel",
			 db_option,   (char *)"--",  NULL};
	char **argv;
	int status;

	if (find_tool(t, "morphd", &morphd)) {
		snprintf(t->report->why, sizeof(t->report->why), "%.150s", t->err->msg);
		return 0;
	}
	snprintf(db_option, sizeof(db_option), "--db=%s", db.text);
	argv = with_command(t, first);
	if (!argv)
		return mp_err_set(t->err, ENOMEM, "out of memory");
	status = run_tool(argv, true);
	free(argv);
	t->report->sampled = !access(db.text, R_OK) && status >= 0;
	if (!t->report->sampled)
		snprintf(t->report->why, sizeof(t->report->why), "morphd run cannot sample here");
	return 0;
}

/*
 * A file with less than this share of the samples cannot make the command faster by as much, which
 * no audit could tell from noise.
 */
#define LEAST_SHARE 0.05

/* Does the file that is to be optimised matter for the command? */
static int find_where(struct trainer *t)
{
	struct me_where *w = &t->report->where;
	struct path db = in_dir(t, "samples.db");
	struct mp_err ignored;

	if (!t->report->sampled || me_where_find(db.text, t->file, w, &ignored))
		return 0;
	/* Whoever names a file has a reason. */
	if (t->options->file || !w->matters || (double)w->file >= LEAST_SHARE * (double)w->all)
		return 0;
	return mp_err_set(t->err, ESRCH,
			  "%s: %llu of %llu samples are in this file, but %llu in %s", t->file,
			  (unsigned long long)w->file, (unsigned long long)w->all,
			  (unsigned long long)w->other, w->path);
}

static int write_counting(struct trainer *t)
{
	struct path db = in_dir(t, "samples.db"), out = in_dir(t, "counting");
	struct path counts = in_dir(t, "%p.counts");
	struct me_optimize_options o = t->options->optimize;
	int rc = -ENODATA;

	o.input = t->file;
	o.output = out.text;
	o.counting.edges = o.counting.alone = true;
	o.counting.path = counts.text;
	o.exact_profile = false;
	o.debug_file = NULL;
	o.min_samples = 1; /* they only say where counters do not stand */
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

/* In a process of its own, whose view of the file system may change: @in_place of the file. */
static int run_in_place(struct trainer *t, const char *in_place, double *cpu_s, double *wall_s)
{
	struct me_run_spec spec = {
		.path = t->program, .argv = t->options->command, .envp = environ, .cpu = -1};
	struct me_program program;
	struct me_run run = {0};
	struct me_slot slot;
	int rc;

	rc = me_program_open(&program, in_place, t->err);
	if (rc)
		return rc;
	rc = me_slot_open(&slot, t->dir, "slot", t->file, t->err);
	if (!rc) {
		rc = me_slot_put(&slot, &program, t->err);
		if (!rc)
			rc = me_run(&spec, &run, t->err);
		me_slot_close(&slot);
	}
	me_program_close(&program);
	*cpu_s = (double)run.cpu_ns / 1e9;
	*wall_s = (double)run.wall_ns / 1e9;
	if (!rc && WIFSIGNALED(run.status))
		rc = mp_err_set(t->err, EIO, "%s: died of signal %d: %s", t->options->command[0],
				WTERMSIG(run.status), run.last_words);
	return rc;
}

struct outcome {
	int rc;
	double cpu_s, wall_s;
	struct mp_err err;
};

static int run_command(struct trainer *t, const char *in_place, double *cpu_s, double *wall_s)
{
	struct outcome out = {.rc = -EIO};
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return mp_err_set(t->err, errno, "pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		return mp_err_set(t->err, errno, "fork: %s", strerror(errno));
	if (!pid) {
		out.rc = run_in_place(t, in_place, &out.cpu_s, &out.wall_s);
		out.err = *t->err;
		_exit(write(fds[1], &out, sizeof(out)) != sizeof(out));
	}
	close(fds[1]);
	if (read(fds[0], &out, sizeof(out)) != sizeof(out))
		snprintf(out.err.msg, sizeof(out.err.msg), "%s: could not be run",
			 t->options->command[0]);
	close(fds[0]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	*cpu_s = out.cpu_s;
	*wall_s = out.wall_s;
	if (out.rc)
		*t->err = out.err;
	return out.rc;
}

static bool is_counts(const char *name)
{
	size_t len = strlen(name);

	return len > 7 && !strcmp(name + len - 7, ".counts");
}

/* One file for each process that ran the counting version. */
static int import(struct trainer *t)
{
	struct path db = in_dir(t, "exact.db"), binary = in_dir(t, "counting"), stats;
	char db_option[PATH_MAX + 8], binary_option[PATH_MAX + 16];
	DIR *dir = opendir(t->dir);
	struct dirent *entry;
	uint32_t nr = 0;
	int rc = dir ? find_tool(t, "morph-stats", &stats) : -EIO;

	snprintf(db_option, sizeof(db_option), "--db=%s", db.text);
	snprintf(binary_option, sizeof(binary_option), "--binary=%s", binary.text);
	while (!rc && (entry = readdir(dir))) {
		struct path file;
		char *argv[] = {stats.text,    (char *)"import", db_option,
				binary_option, file.text,	 NULL};

		if (!is_counts(entry->d_name))
			continue;
		file = in_dir(t, entry->d_name);
		if (run_tool(argv, true))
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

/* The final version's debug file until it is kept: by the name that it will have then. */
static struct path final_debug(const struct trainer *t)
{
	const char *output = t->options->output, *slash = strrchr(output, '/');
	char name[NAME_MAX + 1];

	snprintf(name, sizeof(name), "%.*s.debug", NAME_MAX - 6, slash ? slash + 1 : output);
	return in_dir(t, name);
}

static int write_final(struct trainer *t)
{
	struct path db = in_dir(t, "exact.db"), out = in_dir(t, "final"), debug = final_debug(t);
	struct path samples = in_dir(t, "samples.db");
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
	o.min_samples = 1; /* counted, not sampled: the audit says what it is worth */
	return me_optimize(&o, &t->report->final, t->err);
}

/* ---- what is kept ------------------------------------------------------------------------- */

/* Beside the output; before it, for the reason that publish has. */
static int keep_debug(struct trainer *t)
{
	struct me_optimize_report *r = &t->report->final;
	struct path debug = final_debug(t);
	struct stat a, b;
	char *kept;

	if (!r->debug_output)
		return 0;
	if (asprintf(&kept, "%s.debug", t->options->output) < 0)
		return mp_err_set(t->err, ENOMEM, "out of memory");
	free(r->debug_output);
	r->debug_output = kept;
	if (!stat(r->debug_file, &a) && !stat(kept, &b) && a.st_dev == b.st_dev &&
	    a.st_ino == b.st_ino)
		return mp_err_set(t->err, EINVAL, "%s: is the input's debug file; give another -o",
				  kept);
	if (rename(debug.text, kept))
		return mp_err_set(t->err, errno, "%s: %s", kept, strerror(errno));
	return 0;
}

static int keep_as(struct trainer *t, const char *name, const char *as)
{
	struct path file = in_dir(t, name);

	if (rename(file.text, as))
		return mp_err_set(t->err, errno, "%s: %s", as, strerror(errno));
	return 0;
}

/*
 * The new version and the pairs of the audit, which may go on with them. The debug file has the name
 * that the new version knows it by.
 */
static int keep_undecided(struct trainer *t)
{
	struct me_train_report *r = t->report;
	int rc;

	if (asprintf(&r->undecided, "%s.undecided", t->options->output) < 0 ||
	    asprintf(&r->pairs, "%s.csv", r->undecided) < 0)
		return mp_err_set(t->err, ENOMEM, "out of memory");
	rc = keep_debug(t);
	if (!rc)
		rc = keep_as(t, "audit.csv", r->pairs);
	if (!rc)
		rc = keep_as(t, "final", r->undecided);
	if (rc)
		return rc;
	r->end = ME_TRAIN_UNDECIDED;
	return mp_err_set(t->err, EAGAIN,
			  "%s: the audit could not decide; the new version is kept as %s", t->file,
			  r->undecided);
}

/* ---- the audit --------------------------------------------------------------------------- */

/* Seconds for an audit that was given no limit: so many pairs, but no more than half an hour. */
#define AUDIT_SECONDS	  120
#define AUDIT_SECONDS_MAX 1800
#define AUDIT_PAIRS	  16

double me_train_audit_seconds(size_t nr_pairs, double run_s)
{
	/* A's first run, a pair to warm up; copies of the files, and machines that vary. */
	return 1.2 * (double)(2 * nr_pairs + 3) * run_s;
}

static double audit_limit_s(const struct trainer *t)
{
	double wanted = me_train_audit_seconds(AUDIT_PAIRS, t->report->plain_wall_s);

	if (t->options->audit_seconds > 0)
		return t->options->audit_seconds;
	if (wanted < AUDIT_SECONDS)
		return AUDIT_SECONDS;
	return wanted < AUDIT_SECONDS_MAX ? ceil(wanted) : AUDIT_SECONDS_MAX;
}

/* Before the time is spent: with these runs the audit takes longer than usual, or cannot decide. */
static void warn_of_limit(const struct trainer *t)
{
	const struct me_train_options *o = t->options;
	double run_s = t->report->plain_wall_s, limit_s = t->report->audit_limit_s;
	char what[320];

	if (!o->warn || o->audit_pairs)
		return;
	if (me_train_audit_seconds(ME_TRAIN_LEAST_PAIRS, run_s) > 1.2 * limit_s)
		snprintf(what, sizeof(what),
			 "a run takes %.1f s: in the audit's %.0f s there is no time for %d pairs, "
			 "and fewer cannot decide; train with a shorter piece of work, or allow "
			 "--audit-seconds=%.0f",
			 run_s, limit_s, ME_TRAIN_LEAST_PAIRS,
			 me_train_audit_seconds(2 * ME_TRAIN_LEAST_PAIRS, run_s) + 1);
	else if (o->audit_seconds <= 0 && limit_s > AUDIT_SECONDS)
		snprintf(what, sizeof(what),
			 "a run takes %.1f s: the audit may take %.0f s, for %d pairs of runs",
			 run_s, limit_s, AUDIT_PAIRS);
	else
		return;
	o->warn(what);
}

/* What the audit found, from what it wrote for programs. */
static int read_audit(struct trainer *t, const char *path)
{
	struct me_train_report *r = t->report;
	json_t *root = json_load_file(path, 0, NULL);
	json_t *interval = json_object_get(root, "interval");
	const char *verdict = json_string_value(json_object_get(root, "verdict"));

	if (!verdict) {
		json_decref(root);
		return mp_err_set(t->err, EIO, "morph-audit wrote no result");
	}
	snprintf(r->verdict, sizeof(r->verdict), "%s", verdict);
	r->speedup = json_number_value(json_object_get(root, "speedup"));
	r->lowest = json_number_value(json_array_get(interval, 0));
	r->highest = json_number_value(json_array_get(interval, 1));
	r->nr_pairs = (size_t)json_integer_value(json_object_get(root, "pairs"));
	r->level = 100 * (1 - json_number_value(json_object_get(root, "alpha")));
	json_decref(root);
	return 0;
}

/* Runs morph-audit. Return: its exit status, or -errno. */
static int run_audit(struct trainer *t)
{
	struct path final = in_dir(t, "final"), json = in_dir(t, "audit.json");
	struct path csv = in_dir(t, "audit.csv"), tool;
	char at[PATH_MAX + 8], limit[96], to_json[PATH_MAX + 16], to_csv[PATH_MAX + 16];
	char *first[] = {tool.text,	      at,      limit,	   to_json,	 to_csv,
			 (char *)"--command", t->file, final.text, (char *)"--", NULL};
	char **argv;
	int status, rc = find_tool(t, "morph-audit", &tool);

	if (rc)
		return rc;
	snprintf(at, sizeof(at), "--at=%s", t->file);
	snprintf(to_json, sizeof(to_json), "--export-json=%s", json.text);
	snprintf(to_csv, sizeof(to_csv), "--export-csv=%s", csv.text);
	t->report->audit_limit_s = audit_limit_s(t);
	warn_of_limit(t);
	if (t->options->audit_pairs)
		snprintf(limit, sizeof(limit), "--pairs=%s", t->options->audit_pairs);
	else
		snprintf(limit, sizeof(limit), "--max-seconds=%g", t->report->audit_limit_s);
	argv = with_command(t, first);
	if (!argv)
		return mp_err_set(t->err, ENOMEM, "out of memory");
	status = run_tool(argv, false);
	free(argv);
	if (status < 0 || !WIFEXITED(status))
		return mp_err_set(t->err, EIO, "morph-audit could not be run");
	t->report->audit = WEXITSTATUS(status);
	if (t->report->audit != 0 && t->report->audit != 5 && t->report->audit != 6)
		return mp_err_set(t->err, EIO, "morph-audit failed");
	return read_audit(t, json.text);
}

static int audit(struct trainer *t)
{
	struct me_train_report *r = t->report;
	int rc;

	r->audit = -1;
	if (t->options->no_audit)
		return 0;
	rc = run_audit(t);
	if (rc)
		return rc;
	if (!strcmp(r->verdict, "faster"))
		return 0;
	if (!strcmp(r->verdict, "undecided"))
		return keep_undecided(t);
	if (r->audit == 6)
		return mp_err_set(t->err, EBADE,
				  "%s: the new version's output differs; nothing was written",
				  t->file);
	return mp_err_set(t->err, ECANCELED, "%s: the new version is %s here; nothing was written",
			  t->file, !strcmp(r->verdict, "slower") ? "slower" : "not faster");
}

static int keep(struct trainer *t)
{
	int rc = keep_debug(t);

	if (!rc)
		rc = keep_as(t, "final", t->options->output);
	if (!rc)
		t->report->end = ME_TRAIN_KEPT;
	return rc;
}

static int run_plain(struct trainer *t)
{
	return run_command(t, t->file, &t->report->plain_s, &t->report->plain_wall_s);
}

static int run_counting(struct trainer *t)
{
	struct path out = in_dir(t, "counting");
	double wall_s;

	return run_command(t, out.text, &t->report->counting_s, &wall_s);
}

int me_train(const struct me_train_options *options, struct me_train_report *report,
	     struct mp_err *err)
{
	static const struct {
		const char *words;
		int (*run)(struct trainer *t);
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
		{"auditing", audit},
		{NULL, keep},
	};
	struct trainer t = {.options = options, .report = report, .err = err};
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
