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

int md_version_optimize(struct md_task *t, struct md_line *line, const char *output,
			struct md_child_result *result, struct md_carried *carried)
{
	struct md_work_path report = md_work_path(&t->dir, "report");
	struct md_child as = {.out = report.text};
	json_t *root;
	int ret;

	md_line_add(line, "--json");
	md_line_add(line, "-o");
	md_line_add(line, output);
	md_line_add(line, t->job->path);
	ret = md_task_run(t, line->argv, &as, result);
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

int md_version_by_counts(struct md_task *t, enum md_variant variant, const char *output,
			 struct md_child_result *result)
{
	struct md_work_path counts = md_work_path(&t->dir, "counts.db");
	struct md_running_option live_at = md_running_option(&t->dir, variant);
	struct md_line line = {{t->worker->optimize}, 1};
	struct md_carried carried = {0};
	char db[PATH_MAX + 8];

	snprintf(db, sizeof(db), "--db=%s", counts.text);
	md_line_add(&line, db);
	md_line_add(&line, "--min-samples=1");
	md_line_add(&line, "--exact-profile");
	md_line_add(&line, "--stale=none");
	if (live_at.text[0])
		md_line_add(&line, live_at.text);
	return md_version_optimize(t, &line, output, result, &carried);
}

/* The two versions of a trial: the same counters in the original's layout and in the new one. */
static int write_metered(struct md_task *t, enum md_variant variant, struct md_child_result *result)
{
	struct md_work_path output = md_work_path(&t->dir, md_variant_name(variant)),
			    places = md_work_path(&t->dir, "meter.places"),
			    counts = md_work_path(&t->dir, "counts.db");
	struct md_work_path to = md_variant_counts(&t->dir, variant);
	struct md_running_option live_at = md_running_option(&t->dir, variant);
	char db[PATH_MAX + 8], meter[PATH_MAX + 8], file[PATH_MAX + 16];
	struct md_line line = {{t->worker->optimize}, 1};
	struct md_carried carried = {0};
	int ret;

	snprintf(db, sizeof(db), "--db=%s", counts.text);
	snprintf(meter, sizeof(meter), "--meter=%s", places.text);
	snprintf(file, sizeof(file), "--counts=%s/%%u", to.text);
	md_line_add(&line, "instrument");
	md_line_add(&line, "--kind=meter");
	md_line_add(&line, meter);
	md_line_add(&line, file);
	if (live_at.text[0])
		md_line_add(&line, live_at.text);
	if (variant == MD_METERED_ORIGINAL)
		md_line_add(&line, "--layout=original");
	else {
		md_line_add(&line, db);
		md_line_add(&line, "--min-samples=1");
		md_line_add(&line, "--exact-profile");
		md_line_add(&line, "--stale=none");
	}
	ret = md_version_optimize(t, &line, output.text, result, &carried);
	if (ret || result->end != MD_CHILD_EXITED || result->status)
		return ret;
	return md_task_note_variant(t, variant);
}

bool md_version_is_written(int ret, const struct md_child_result *result)
{
	return !ret && result->end == MD_CHILD_EXITED && !result->status;
}

int md_versions_in_turns(struct md_task *t, struct md_child_result *result)
{
	struct md_work_path running = md_work_path(&t->dir, md_variant_name(MD_NEW_RUNNING));
	const struct mp_job_gain gain = t->job->gain; /* of the version at the path */
	struct mp_meter meter;
	int ret = 0;

	*result = (struct md_child_result){.end = MD_CHILD_EXITED};
	if (md_running_is(&t->dir)) {
		ret = md_version_by_counts(t, MD_NEW_RUNNING, running.text, result);
		if (md_version_is_written(ret, result))
			ret = md_task_note_variant(t, MD_NEW_RUNNING);
	}
	for (enum md_variant v = MD_METERED_ORIGINAL;
	     md_version_is_written(ret, result) && v <= MD_METERED_NEW; v++) {
		if (!md_meter_load(md_work_path(&t->dir, "meter").text, &meter))
			break;
		ret = write_metered(t, v, result);
	}
	t->job->gain = gain;
	return ret;
}
