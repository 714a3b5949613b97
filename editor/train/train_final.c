// SPDX-License-Identifier: Apache-2.0
/* train_final - the last version: its files, its options, the time that its audits may take. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "editor/base/defaults.h"
#include "editor/train/train_private.h"

struct me_train_path me_train_path(const struct me_trainer *t, const char *name)
{
	struct me_train_path path;

	snprintf(path.text, sizeof(path.text), "%.*s/%s", PATH_MAX - NAME_MAX - 2, t->dir, name);
	return path;
}

void me_train_final_options(const struct me_trainer *t, struct me_train_final *final)
{
	struct me_optimize_options *o = &final->options;

	*final = (struct me_train_final){.options = t->options->optimize,
					 .db = me_train_path(t, "exact.db"),
					 .samples = me_train_path(t, "samples.db"),
					 .output = me_train_path(t, "final"),
					 .debug = me_train_final_debug(t)};
	o->input = t->file;
	o->output = final->output.text;
	o->debug_output = o->debug_file ? final->debug.text : NULL;
	o->adjusts = t->wishes.list;
	o->nr_adjusts = (uint32_t)t->wishes.nr;
	o->counting = (struct me_counting){0};
	if (t->without_words)
		o->adjust_words = (struct me_words){0};
	if (t->options->has_profile)
		return;
	o->db = final->db.text;
	o->exact_profile = true;
	o->sampled_db = t->report->sampled ? final->samples.text : NULL;
	o->uncounted = t->report->counting.left_alone;
	o->nr_uncounted = t->report->counting.nr_left_alone;
	o->min_samples = 1; /* exact counts need no minimum; the audit judges the result */
}

int me_train_write_final(struct me_trainer *t)
{
	struct me_train_final final;

	me_train_final_options(t, &final);
	me_optimize_report_fini(&t->report->final);
	t->report->final = (struct me_optimize_report){0};
	return me_optimize(&final.options, &t->report->final, t->err);
}

struct me_train_path me_train_final_debug(const struct me_trainer *t)
{
	char name[NAME_MAX + 1];

	snprintf(name, sizeof(name), "%.*s.debug", NAME_MAX - 6, basename(t->options->output));
	return me_train_path(t, name);
}

double me_train_budget_s(const struct me_trainer *t)
{
	if (t->options->budget_seconds > 0)
		return t->options->budget_seconds;
	return fmin(fmax(ME_BUDGET_RUNS * t->report->plain_wall_s, ME_BUDGET_SECONDS),
		    ME_BUDGET_SECONDS_MAX);
}
