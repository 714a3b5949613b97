// SPDX-License-Identifier: Apache-2.0
/* versions - runs morph-optimize; see versions.h. */
#include "daemon/worker/versions.h"

#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/everyday/meter.h"
#include "daemon/worker/running.h"

void md_line_add(struct md_line *line, const char *word)
{
	line->argv[line->nr++] = (char *)word;
}

void md_line_end(struct md_line *line, const struct md_task *t, const char *output)
{
	md_line_add(line, "--json");
	md_line_add(line, "-o");
	md_line_add(line, output);
	md_line_add(line, t->job->path);
}

int md_version_optimize(struct md_task *t, struct md_line *line, struct md_child_result *result,
			struct md_carried *carried)
{
	struct md_work_path report = md_work_path(&t->dir, "report");
	struct md_child as = {.out = report.text};
	json_t *root;
	int ret = md_task_run(t, line->argv, &as, result);

	if (ret || result->end != MD_CHILD_EXITED || result->status)
		return ret;
	root = json_load_file(report.text, 0, NULL);
	t->job->gain.predicted = json_number_value(json_object_get(root, "predicted_taken_ratio"));
	if (!(t->job->gain.predicted >= 0 && t->job->gain.predicted < 1e6))
		t->job->gain.predicted = 0;
	md_carried_read(root, carried);
	json_decref(root);
	unlink(report.text);
	return 0;
}

/* What the lines of one call name. */
struct names {
	char db[PATH_MAX + 8], meter[PATH_MAX + 8];
	struct names_of {
		struct md_work_path file;
		char counts[PATH_MAX + 16];
		struct md_running_option live_at;
	} of[MD_NR_VARIANTS];
};

static void name(const struct md_task *t, struct names *names)
{
	snprintf(names->db, sizeof(names->db), "--db=%s", md_work_path(&t->dir, "counts.db").text);
	snprintf(names->meter, sizeof(names->meter), "--meter=%s",
		 md_work_path(&t->dir, "meter.places").text);
	for (enum md_variant v = MD_ORIGINAL + 1; v < MD_NR_VARIANTS; v++) {
		struct names_of *of = &names->of[v];

		of->file = md_work_path(&t->dir, md_variant_name(v));
		of->live_at = md_running_option(&t->dir, v);
		snprintf(of->counts, sizeof(of->counts), "--counts=%s/%%u",
			 md_variant_counts(&t->dir, v).text);
	}
}

static void add_profile(struct md_line *line, const struct names *names)
{
	md_line_add(line, names->db);
	md_line_add(line, "--min-samples=1");
	md_line_add(line, "--exact-profile");
	md_line_add(line, "--stale=none");
}

static void add_place(struct md_line *line, const struct names_of *of)
{
	if (of->live_at.text[0])
		md_line_add(line, of->live_at.text);
}

/* One of the versions of a trial: the same counters in the original's layout, or in the new one. */
static void add_metered(struct md_line *line, const struct md_task *t, const struct names *names,
			enum md_variant variant)
{
	const struct names_of *of = &names->of[variant];

	md_line_add(line, "--each");
	md_line_add(line, "instrument");
	md_line_add(line, "--kind=meter");
	md_line_add(line, names->meter);
	md_line_add(line, of->counts);
	if (variant == MD_METERED_ORIGINAL)
		md_line_add(line, "--layout=original");
	else
		add_profile(line, names);
	add_place(line, of);
	md_line_add(line, "-o");
	md_line_add(line, of->file.text);
	md_line_add(line, t->job->path);
}

static int write_versions(struct md_task *t, enum md_variant variant, bool metered,
			  struct md_child_result *result)
{
	struct md_line line = {{t->worker->optimize}, 1};
	struct md_carried carried = {0};
	struct names names;

	name(t, &names);
	md_line_add(&line, "--each");
	add_profile(&line, &names);
	add_place(&line, &names.of[variant]);
	md_line_end(&line, t, names.of[variant].file.text);
	for (enum md_variant v = MD_METERED_ORIGINAL; metered && v <= MD_METERED_NEW; v++)
		add_metered(&line, t, &names, v);
	return md_version_optimize(t, &line, result, &carried);
}

int md_version_by_counts(struct md_task *t, struct md_child_result *result)
{
	return write_versions(t, MD_NEW, false, result);
}

int md_version_verify(struct md_task *t, enum md_variant variant, struct md_child_result *r)
{
	struct md_work_path file = md_work_path(&t->dir, md_variant_name(variant));
	/* A version that times its functions inside the program may only follow where the policy allows it. */
	bool audits = md_policy_may_instrument(t->worker->policy, t->rule);
	const char *kind = variant == MD_NEW_RUNNING ? "--kind=live"
			   : audits		     ? "--kind=layout,audit"
						     : "--kind=layout";
	char *argv[] = {t->worker->optimize,
			(char *)"verify",
			(char *)"--report=none",
			(char *)kind,
			t->job->path,
			file.text,
			NULL};
	struct md_child as = {0};

	return md_task_run(t, argv, &as, r);
}

bool md_version_is_written(int ret, const struct md_child_result *result)
{
	return !ret && result->end == MD_CHILD_EXITED && !result->status;
}

int md_versions_for_trial(struct md_task *t, enum md_variant variant,
			  struct md_child_result *result)
{
	const struct mp_job_gain gain = t->job->gain;
	struct mp_meter meter;
	bool metered = md_meter_load(md_work_path(&t->dir, "meter").text, &meter);
	int ret = write_versions(t, variant, metered, result);

	/* What is predicted is about the version at the path. */
	if (variant != MD_NEW)
		t->job->gain = gain;
	if (!md_version_is_written(ret, result))
		return ret;
	ret = md_task_note_variant(t, variant);
	for (enum md_variant v = MD_METERED_ORIGINAL; metered && !ret && v <= MD_METERED_NEW; v++)
		ret = md_task_note_variant(t, v);
	return ret;
}
