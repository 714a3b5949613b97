// SPDX-License-Identifier: Apache-2.0
/*
 * morph_explain - the command "explain": why a program was not optimised, or what became of it, in
 * words of a user.
 */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/morph/morph.h"
#include "daemon/morph/wording.h"
#include "daemon/policy/policy.h"
#include "libprof/base/defaults.h"
#include "libprof/base/text.h"
#include "libprof/cli/progress.h"
#include "libprof/store/jobs/store_history.h"

#define MP_OPTIONS struct explain

struct explain {
	struct md_cli *cli;
	const char *name;
	struct md_machine machine;
	struct md_program program;
	struct md_machine_program *entry;
	struct md_machine_program none; /* the entry of a program that is not in the store */
	bool uncounted; /* counting has begun in this round, or was refused: it does not begin again */
	char *carried; /* what became of the profile of the version before; NULL: there was none */
	uint64_t lacking; /* samples that a round waits for; 0: none */
	double rate;	  /* of samples a second, since yesterday began */
};

static const struct mp_usage usage = {
	.arguments = "PROGRAM",
	.argument = MP_AT(name),
	.lacking = "no program given",
	.doc = "Say why PROGRAM was not optimised, or what became of it.",
	.shared = &md_cli_common_argp};

/* Prints @text, broken into lines. */
static void put_paragraph(const char *text, size_t columns)
{
	char *escaped = mp_text_escaped(text);
	const char *at = escaped;
	size_t column = 0;

	while (at && *at) {
		size_t len = strcspn(at, " ");

		if (column && column + 1 + len > columns) {
			putchar('\n');
			column = 0;
		}
		printf("%s%.*s", column ? " " : "", (int)len, at);
		column += len + (column ? 1 : 0);
		at += len;
		at += strspn(at, " ");
	}
	putchar('\n');
	free(escaped);
}

/* "about 3 hours" */
static void put_duration(double seconds)
{
	static const struct {
		double seconds;
		const char *name;
	} units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}};
	size_t i = 0;
	double nr;

	while (i < 2 && seconds < 1.5 * units[i].seconds)
		i++;
	nr = ceil(seconds / units[i].seconds);
	printf("about %.0f %s%s", nr, units[i].name, nr < 1.5 ? "" : "s");
}

static void put_lacking(const struct explain *e)
{
	if (!e->lacking)
		return;
	printf("\nA round begins after %" PRIu64 " more samples of it", e->lacking);
	if (e->rate > 0) {
		fputs(": in ", stdout);
		put_duration((double)e->lacking / e->rate);
		puts(", at the rate since yesterday.");
	} else {
		puts("; since yesterday there was none.");
	}
}

static void put_left_alone(const struct md_machine_program *p)
{
	if (!p->estimated || p->saving.movable > 0.995)
		return;
	printf("\nOf the instructions that it executes, %.0f %% lie in functions that Morph "
	       "leaves alone:\n",
	       100 * (1 - p->saving.movable));
	for (int i = 1; i < MP_NR_PROBLEMS; i++)
		if (p->saving.left_alone[i] >= 0.001)
			printf("%6.1f %%  %s\n", 100 * p->saving.left_alone[i],
			       mp_problem_name((enum mp_problem)i));
}

static int print(const struct explain *e)
{
	const struct md_machine_program *p = e->entry;
	char *reason = md_wording_reason(p), buf[MD_WORDING_MAX], text[MP_JOB_TEXT_MAX + 32];

	mp_text_put(stdout, p->path);
	printf(": %s\n", md_wording_state(p));
	put_paragraph(reason ? reason : "?", md_morph_columns());
	free(reason);
	printf("\n%.2f %% of this machine's samples (%" PRIu64 ") are in it.\n", 100 * p->share,
	       p->nr_samples);
	if (p->estimated)
		printf("Of 1,000 instructions, %.1f are taken branches; a layout is expected to "
		       "save %.1f of them.\n",
		       p->saving.taken, p->saving.saved);
	if (p->estimated && !md_machine_is_optimised(p))
		printf("Expected gain: %s of the machine's time, nine times of ten.\n",
		       md_wording_worth(&p->worth, buf));
	if (p->gain.ratio > 0)
		printf("Measured: %s.\n", md_wording_gain(&p->gain, buf));
	put_lacking(e);
	if (e->carried) {
		putchar('\n');
		snprintf(text, sizeof(text), "After the upgrade: %s.", e->carried);
		put_paragraph(text, md_morph_columns());
	}
	put_left_alone(p);
	return md_cli_finish(MP_EXIT_DONE);
}

static int print_json(const struct explain *e)
{
	json_t *root = md_cli_json_new("explain"), *left = json_object();

	for (int i = 1; i < MP_NR_PROBLEMS && e->entry->estimated; i++)
		if (e->entry->saving.left_alone[i] > 0)
			json_object_set_new(left, mp_problem_name((enum mp_problem)i),
					    json_real(100 * e->entry->saving.left_alone[i]));
	json_object_set_new(root, "program", md_morph_program_json(e->entry));
	json_object_set_new(root, "left_alone_percent", left);
	json_object_set_new(root, "samples_lacking", json_integer((json_int_t)e->lacking));
	json_object_set_new(root, "seconds_lacking",
			    e->lacking && e->rate > 0 ? json_real((double)e->lacking / e->rate)
						      : json_null());
	json_object_set_new(root, "carried_over",
			    e->carried ? mp_json_string(e->carried) : json_null());
	return md_cli_json_print(root);
}

/* The worker's step "match" of this round says how much was carried over. */
static int look_at_history(struct explain *e, struct mp_store *store)
{
	const struct mp_job *job = e->entry->job;
	struct mp_decision *list = NULL;
	struct mp_err err = {0};
	size_t nr = 0;
	int r = job ? mp_store_list_history(store, job->path, 0, &list, &nr, &err) : 0;

	for (size_t i = 0; i < nr; i++) {
		if (list[i].round != job->round)
			continue;
		e->uncounted |= !strcmp(list[i].step, "count");
		if (!e->carried && !strcmp(list[i].step, "match"))
			e->carried = strdup(list[i].reason);
	}
	mp_store_free_history(list, nr);
	return r ? md_cli_fail("%s", err.msg) : 0;
}

/* Does a round of it wait for samples, and how fast do they come? */
static int look_at_samples(struct explain *e, struct mp_store *store)
{
	const struct md_machine_program *p = e->entry;
	int64_t now_s = (int64_t)time(NULL), day_s = MP_SECONDS_PER_DAY,
		since_s = (now_s / day_s - 1) * day_s;
	struct md_policy policy = {0};
	struct mp_module *list = NULL;
	struct mp_err err = {0};
	const struct md_rule *rule;
	uint64_t nr = p->module ? p->module->nr_samples : 0, wanted;
	size_t nr_list = 0;
	char dir[PATH_MAX];
	int r = 0;

	/* A mistake in the policy is the worker's to tell. */
	if (!p->job || p->job->state != MP_JOB_WANTED ||
	    md_policy_default_dir(dir, sizeof(dir), NULL) || md_policy_read(dir, &policy, NULL))
		nr = UINT64_MAX;
	rule = md_policy_rule(&policy, p->path);
	wanted = policy.min_samples;
	/* Samples only show that it is used; what it does is counted. */
	if (!e->uncounted && md_policy_may_count(&policy, rule, p->path) && wanted > MP_MIN_SAMPLES)
		wanted = MP_MIN_SAMPLES;
	if (nr < wanted && !(rule && rule->train)) {
		e->lacking = wanted - nr;
		r = p->module ? mp_store_list_modules(store, since_s, &list, &nr_list, &err) : 0;
	}
	for (size_t i = 0; i < nr_list; i++)
		if (list[i].key == p->module->key)
			e->rate = (double)list[i].nr_samples / (double)(now_s - since_s);
	mp_store_free_modules(list, nr_list);
	md_policy_fini(&policy);
	return r ? md_cli_fail("%s", err.msg) : 0;
}

static void look(struct explain *e, struct mp_store *store)
{
	e->entry = md_morph_entry(&e->machine, &e->program);
	if (!e->entry) {
		e->none = (struct md_machine_program){.path = e->program.path,
						      .file = e->program.gone ? MD_FILE_GONE
							      : e->program.is_output
								      ? MD_FILE_OUTPUT
								      : MD_FILE_THERE};
		e->entry = &e->none;
		return;
	}
	if (e->entry->file == MD_FILE_UNKNOWN)
		e->entry->file = e->program.gone	? MD_FILE_GONE
				 : e->program.is_output ? MD_FILE_OUTPUT
							: MD_FILE_THERE;
	mp_progress_start("morph", false);
	mp_progress_say("reading %s", e->entry->path);
	/* Other programs with audits say what a saved branch is worth on this machine. */
	md_machine_estimate(&e->machine, store, 8, MD_MORPH_ESTIMATE_S, 0);
	if (!e->entry->estimated && e->entry->module &&
	    e->entry->module->nr_samples >= MD_WORTH_MIN_SAMPLES)
		md_machine_estimate_one(&e->machine, store, e->entry, 0, NULL);
	mp_progress_stop();
}

int md_morph_explain(struct md_cli *cli, int argc, char **argv)
{
	struct explain e = {.cli = cli};
	struct mp_store *store;
	int r;

	md_cli_parse(&usage, argc, argv, &e, cli);
	r = md_morph_load(cli, 0, &store, &e.machine);
	if (r)
		return r;
	r = md_morph_find(&e.machine, e.name, &e.program);
	if (!r) {
		look(&e, store);
		r = look_at_history(&e, store);
	}
	if (!r)
		r = look_at_samples(&e, store);
	if (!r)
		r = cli->json ? print_json(&e) : print(&e);
	free(e.carried);
	md_program_fini(&e.program);
	md_machine_fini(&e.machine);
	mp_store_close(store);
	return r;
}
