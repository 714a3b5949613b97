// SPDX-License-Identifier: Apache-2.0
/*
 * morph_overview - `morph' without a command: one page that fits a terminal of 24 lines. Says whether
 * Morph collects, what the machine's time goes to, what was made faster, what is next, what failed.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker/collector.h"
#include "daemon/policy/defaults.h"
#include "daemon/policy/policy.h"
#include "daemon/morph/morph.h"
#include "daemon/morph/wording.h"
#include "libprof/base/defaults.h"
#include "libprof/base/text.h"
#include "libprof/cli/progress.h"

/* Lines of each part. With titles and the collector's two lines they are at most 24. */
#define MAX_PROGRAMS  8
#define MAX_OPTIMISED 3
#define MAX_FAILED    2

struct overview {
	struct md_cli *cli;
	struct md_machine machine;
	struct md_collector collector;
	struct md_saved saved;
	const struct md_machine_program **next;
	size_t nr_next;
	size_t columns;
};

static bool has_failed(const struct md_machine_program *p)
{
	return p->job && !md_wording_has_nothing_yet(p) &&
	       (p->job->state == MP_JOB_FAILED || p->job->state == MP_JOB_REFUSED ||
		p->job->state == MP_JOB_UNDONE);
}

/* ---- text -------------------------------------------------------------------------------------- */

static void put_saved(const struct overview *o)
{
	char text[MD_WORDING_SAVED_MAX];

	if (md_wording_saved(&o->saved, text))
		puts(text);
}

static void put_collector(const struct overview *o)
{
	const struct md_collector *c = &o->collector;
	const struct mp_session *s = o->machine.nr_sessions ? &o->machine.sessions[0] : NULL;
	char when[MD_WORDING_MAX];

	if (!c->runs) {
		char *why = mp_text_escaped(c->why);

		printf("Morph is not collecting: %s.\n", why ? why : "?");
		free(why);
	} else {
		printf("Morph is collecting since %s, at a cost of %.2f %% of one CPU and %.0f "
		       "MiB",
		       md_wording_time(c->since_s, when), c->cpu_percent,
		       (double)c->rss_bytes / (1 << 20));
		if (s)
			printf("; %s, %" PRIu32 " Hz", s->collector, s->rate_hz);
		puts(".");
	}
	printf("%" PRIu64 " samples since %s; %zu programs, libraries and kernels.\n",
	       o->machine.nr_samples, md_wording_time(o->machine.start_s, when),
	       o->machine.nr_programs);
}

static void put_program(const struct overview *o, const struct md_machine_program *p)
{
	printf("%6.2f %% ", 100 * p->share);
	if (p->estimated)
		printf("%5.0f %% ", 100 * p->saving.movable);
	else
		printf("%7s ", "-");
	if (p->estimated && !md_machine_is_optimised(p))
		printf("%5.2f %5.1f to %4.1f  ", p->worth.gain, p->worth.least, p->worth.most);
	else
		printf("%5s %13s  ", "-", "");
	md_wording_put_path(stdout, p->path, o->columns - 61);
	printf("  %s\n", md_wording_state(p));
}

static void put_programs(const struct overview *o)
{
	const struct md_machine *m = &o->machine;

	printf("\n%8s %7s %-18s  %-*s  %s\n", "Machine", "Movable", "May gain % of all",
	       (int)o->columns - 61, "Program", "State");
	for (size_t i = 0; i < m->nr_programs && i < MAX_PROGRAMS; i++)
		put_program(o, &m->programs[i]);
}

static void put_optimised(const struct overview *o)
{
	char gain[MD_WORDING_MAX];
	size_t shown = 0, nr = 0;

	for (size_t i = 0; i < o->machine.nr_programs; i++)
		nr += md_machine_is_optimised(&o->machine.programs[i]);
	if (!nr) {
		puts("\nOptimised: nothing yet.");
		return;
	}
	printf("\nOptimised: %zu.\n", nr);
	for (size_t i = 0; i < o->machine.nr_programs && shown < MAX_OPTIMISED; i++) {
		const struct md_machine_program *p = &o->machine.programs[i];

		if (!md_machine_is_optimised(p))
			continue;
		fputs("  ", stdout);
		md_wording_put_path(stdout, p->path, o->columns - 36);
		printf("  %s\n", md_wording_gain(&p->gain, gain));
		shown++;
	}
}

/* Its round is under way, or `morph on' will begin one: nobody has to do anything. */
static bool goes_by_itself(const struct md_machine_program *p)
{
	char dir[PATH_MAX], file[MP_PATH_ROOM];

	if (p->job && p->job->state != MP_JOB_WANTED)
		return true;
	if (p->share < MD_POLICY_ON_SHARE || md_morph_policy_dir(NULL, dir, sizeof(dir)))
		return false;
	snprintf(file, sizeof(file), "%s/%s", dir, MD_POLICY_ON);
	return !access(file, F_OK);
}

static void put_next(const struct overview *o)
{
	char worth[MD_WORDING_MAX];
	const char *path;
	bool fits;

	if (!o->nr_next) {
		puts("Next: nothing; no program with enough samples is left.");
		return;
	}
	path = o->next[0]->path;
	/* A command that is cut cannot be pasted. */
	fits = strlen(path) <= o->columns - 55;
	if (goes_by_itself(o->next[0])) {
		fputs("Next, by itself: ", stdout);
		mp_text_put(stdout, path);
		printf(", %s; `morph explain' says more\n", md_wording_state(o->next[0]));
		return;
	}
	fputs("Next: morph optimize ", stdout);
	mp_text_put(stdout, path);
	if (o->next[0]->estimated)
		printf("%smay gain %s", fits ? ", " : "\n      ",
		       md_wording_worth(&o->next[0]->worth, worth));
	putchar('\n');
}

static void put_failed(const struct overview *o)
{
	size_t shown = 0, nr = 0;

	for (size_t i = 0; i < o->machine.nr_programs; i++) {
		const struct md_machine_program *p = &o->machine.programs[i];
		char *detail;

		if (!has_failed(p) || ++nr > MAX_FAILED)
			continue;
		fputs(shown++ ? "        " : "Failed: ", stdout);
		md_wording_put_path(stdout, p->path, 24);
		detail = mp_text_escaped(p->job->detail ? p->job->detail : "");
		printf("  %s%s%.*s\n", md_wording_state(p), detail && *detail ? ", " : "",
		       (int)o->columns - 56, detail ? detail : "");
		free(detail);
	}
	if (nr > MAX_FAILED)
		printf("        and %zu more: morph list\n", nr - MAX_FAILED);
}

static int print(const struct overview *o)
{
	put_saved(o);
	put_collector(o);
	put_programs(o);
	put_optimised(o);
	put_next(o);
	put_failed(o);
	return md_cli_finish(MP_EXIT_DONE);
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static json_t *collector_json(const struct overview *o)
{
	const struct md_collector *c = &o->collector;
	const struct mp_session *s = o->machine.nr_sessions ? &o->machine.sessions[0] : NULL;

	return json_pack("{s:b, s:o, s:o, s:f, s:I, s:o, s:o, s:I}", "runs", c->runs, "since_s",
			 c->runs ? json_integer(c->since_s) : json_null(), "why",
			 c->runs ? json_null() : mp_json_string(c->why), "cpu_percent",
			 c->cpu_percent, "rss_bytes", (json_int_t)c->rss_bytes, "source",
			 s ? mp_json_string(s->collector) : json_null(), "source_why",
			 s ? mp_json_string(s->why) : json_null(), "rate_hz",
			 (json_int_t)(s ? s->rate_hz : 0));
}

static json_t *seconds(const struct md_saved *saved, double amount)
{
	return saved->has_rate ? json_real(amount) : json_null();
}

static json_t *saved_json(const struct md_saved *s)
{
	json_t *days = json_array();

	for (size_t d = 0; d < MD_SAVED_DAYS; d++)
		json_array_append_new(
			days,
			json_pack("{s:I, s:o, s:o}", "day_s",
				  (json_int_t)((s->first_day + (int64_t)d) * MP_SECONDS_PER_DAY),
				  "used_cpu_seconds", seconds(s, s->days[d].used), "cpu_seconds",
				  seconds(s, s->days[d].saved)));
	return json_pack("{s:I, s:I, s:I, s:b, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o}", "programs",
			 (json_int_t)s->nr_programs, "not_measured",
			 (json_int_t)(s->nr_programs - s->nr_measured), "since_s",
			 (json_int_t)s->since_s, "whole", s->whole, "percent",
			 md_saved_percent(&s->all, s->all.saved), "least",
			 md_saved_percent(&s->all, s->all.least), "most",
			 md_saved_percent(&s->all, s->all.most), "used_cpu_seconds",
			 seconds(s, s->all.used), "cpu_seconds", seconds(s, s->all.saved),
			 "cpu_seconds_least", seconds(s, s->all.least), "cpu_seconds_most",
			 seconds(s, s->all.most), "days", days);
}

static int print_json(const struct overview *o)
{
	const struct md_machine *m = &o->machine;
	json_t *root = md_cli_json_new("overview"), *rows = json_array(), *next = json_array();

	for (size_t i = 0; i < m->nr_programs; i++)
		if (m->programs[i].share >= MD_MORPH_LEAST_SHARE || m->programs[i].job)
			json_array_append_new(rows, md_morph_program_json(&m->programs[i]));
	for (size_t i = 0; i < o->nr_next; i++)
		json_array_append_new(next, mp_json_string(o->next[i]->path));
	json_object_set_new(root, "collector", collector_json(o));
	json_object_set_new(root, "samples", json_integer((json_int_t)m->nr_samples));
	json_object_set_new(root, "start_s", json_integer(m->start_s));
	json_object_set_new(root, "effect",
			    json_pack("{s:f, s:f, s:f, s:I}", "slope", m->effect.slope, "slope_sd",
				      m->effect.slope_sd, "spread", m->effect.spread, "audits",
				      (json_int_t)m->effect.nr_here));
	json_object_set_new(root, "saved", saved_json(&o->saved));
	json_object_set_new(root, "programs", rows);
	json_object_set_new(root, "next", next);
	return md_cli_json_print(root);
}

int md_morph_overview(struct md_cli *cli)
{
	struct overview o = {.cli = cli, .columns = md_morph_columns()};
	struct mp_err err = {0};
	struct mp_store *store;
	int r = md_morph_load(cli, 0, &store, &o.machine);

	if (r)
		return r;
	md_collector_look(cli->path, &o.collector);
	mp_progress_start("morph", false);
	mp_progress_say("estimating gains");
	r = md_machine_estimate(&o.machine, store, 2 * MAX_PROGRAMS, MD_MORPH_ESTIMATE_S, 0);
	mp_progress_stop();
	o.nr_next = md_machine_order(&o.machine, &o.next);
	if (r)
		r = md_cli_fail("out of memory");
	else if (md_saved_load(store, &o.machine, (int64_t)time(NULL), &o.saved, &err))
		r = md_cli_fail("%s", err.msg);
	else if (!o.machine.nr_programs)
		r = (md_cli_note("%s: holds no samples", cli->path), md_morph_nothing_collected());
	else
		r = cli->json ? print_json(&o) : print(&o);
	free(o.next);
	md_saved_fini(&o.saved);
	md_machine_fini(&o.machine);
	mp_store_close(store);
	return r;
}
