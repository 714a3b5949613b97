// SPDX-License-Identifier: Apache-2.0
/*
 * train_keep - the end of a training: audits the new version, and keeps it if it is faster, or under
 * another name if the audit cannot decide. Called by train.c.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "editor/cli/train_private.h"

/* Without a limit, an audit gets the seconds that AUDIT_PAIRS need, but at most half an hour. */
#define AUDIT_SECONDS	  120
#define AUDIT_SECONDS_MAX 1800
#define AUDIT_PAIRS	  16

struct me_train_path me_train_final_debug(const struct me_trainer *t)
{
	const char *output = t->options->output, *slash = strrchr(output, '/');
	char name[NAME_MAX + 1];

	snprintf(name, sizeof(name), "%.*s.debug", NAME_MAX - 6, slash ? slash + 1 : output);
	return me_train_path(t, name);
}

/* The debug file goes beside the output, and before it, so that no output lacks one. */
static int keep_debug(struct me_trainer *t)
{
	struct me_optimize_report *r = &t->report->final;
	struct me_train_path debug = me_train_final_debug(t);
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

static int keep_as(struct me_trainer *t, const char *name, const char *as)
{
	struct me_train_path file = me_train_path(t, name);

	if (rename(file.text, as))
		return mp_err_set(t->err, errno, "%s: %s", as, strerror(errno));
	return 0;
}

/*
 * Keeps the new version and the pairs of the audit, so that the audit can be continued. The debug
 * file gets the name that the new version refers to.
 */
static int keep_undecided(struct me_trainer *t)
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

double me_train_audit_seconds(size_t nr_pairs, double run_s)
{
	/* A's first run and a pair to warm up. A fifth more for copies of files and slow moments. */
	return 1.2 * (double)(2 * nr_pairs + 3) * run_s;
}

static double audit_limit_s(const struct me_trainer *t)
{
	double wanted = me_train_audit_seconds(AUDIT_PAIRS, t->report->plain_wall_s);

	if (t->options->audit_seconds > 0)
		return t->options->audit_seconds;
	if (wanted < AUDIT_SECONDS)
		return AUDIT_SECONDS;
	return wanted < AUDIT_SECONDS_MAX ? ceil(wanted) : AUDIT_SECONDS_MAX;
}

/* Warns before time is spent that the audit will take long, or cannot decide in its limit. */
static void warn_of_limit(const struct me_trainer *t)
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

/* Reads the result that morph-audit wrote as JSON. */
static int read_audit(struct me_trainer *t, const char *path)
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
static int run_audit(struct me_trainer *t)
{
	struct me_train_path final = me_train_path(t, "final"),
			     json = me_train_path(t, "audit.json");
	struct me_train_path csv = me_train_path(t, "audit.csv"), tool;
	char at[PATH_MAX + 8], limit[96], to_json[PATH_MAX + 16], to_csv[PATH_MAX + 16];
	char *first[] = {tool.text,	      at,      limit,	   to_json,	 to_csv,
			 (char *)"--command", t->file, final.text, (char *)"--", NULL};
	char **argv;
	int status, rc = me_train_find_tool(t, "morph-audit", &tool);

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
	argv = me_train_with_command(t, first);
	if (!argv)
		return mp_err_set(t->err, ENOMEM, "out of memory");
	status = me_train_run_tool(argv, false);
	free(argv);
	if (status < 0 || !WIFEXITED(status))
		return mp_err_set(t->err, EIO, "morph-audit could not be run");
	t->report->audit = WEXITSTATUS(status);
	if (t->report->audit != 0 && t->report->audit != 5 && t->report->audit != 6)
		return mp_err_set(t->err, EIO, "morph-audit failed");
	return read_audit(t, json.text);
}

int me_train_audit(struct me_trainer *t)
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

int me_train_keep(struct me_trainer *t)
{
	int rc = keep_debug(t);

	if (!rc)
		rc = keep_as(t, "final", t->options->output);
	if (!rc)
		t->report->end = ME_TRAIN_KEPT;
	return rc;
}
