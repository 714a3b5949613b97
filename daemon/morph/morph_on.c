// SPDX-License-Identifier: Apache-2.0
/*
 * morph_on - the command "on": one word after which Morph looks after this machine, or a user's own programs, by
 * itself. Writes on.conf, which the policy reads behind morph.conf, and starts the units. Says which files it
 * would begin with; the worker decides.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/morph/morph.h"
#include "daemon/morph/rule_file.h"
#include "daemon/morph/units.h"
#include "daemon/morph/wording.h"
#include "daemon/policy/defaults.h"
#include "daemon/policy/deny.h"
#include "daemon/policy/policy.h"
#include "daemon/stats/interrupt.h"
#include "daemon/worker/collector.h"
#include "libprof/base/defaults.h"
#include "libprof/base/outfile.h"
#include "libprof/base/text.h"
#include "libprof/store/jobs/store_history.h"

#define MP_OPTIONS struct on

/* Files that are named. */
#define MAX_SHOWN 8

struct on {
	struct md_cli *cli;
	bool dry_run, live;
	int counting; /* index in no_yes */
	const char *policy_dir;
	struct mp_words only, except;
	char dir[PATH_MAX], file[MP_PATH_ROOM];
	struct md_policy policy; /* as it will be */
	struct md_machine machine;
	enum md_units units;
};

static const char *const no_yes[] = {"no", "yes", NULL};

static void take_pattern(const struct mp_option *o, void *options, char *arg,
			 struct argp_state *state)
{
	struct mp_words *list = (struct mp_words *)((char *)options + o->at);
	char **longer;

	if (arg[0] != '/' || strpbrk(arg, "\n\r"))
		argp_error(state, "--%s=%s: a pattern of paths must begin with /", o->name, arg);
	longer = realloc(list->list, ((size_t)list->nr + 1) * sizeof(*longer));
	if (!longer)
		argp_failure(state, MP_EXIT_FAILED, ENOMEM, "--%s", o->name);
	list->list = longer;
	list->list[list->nr++] = arg;
}

static const struct mp_option options[] = {
	MP_FLAG("dry-run", dry_run, "Say what would happen, and change nothing"),
	{"only", 0, "PATTERN",
	 "Look after files of this pattern alone, such as '/usr/bin/*'; may be given again",
	 MP_OPTION_SET, MP_AT(only), .set = take_pattern},
	{"except", 0, "PATTERN", "Leave files of this pattern alone; may be given again",
	 MP_OPTION_SET, MP_AT(except), .set = take_pattern},
	MP_WORD("counting", counting, no_yes, "no|yes",
		"May a version that counts be in a program's place for a while? (default: yes)"),
	MP_FLAG("live", live,
		"Also put versions into programs that run already, and need not start again"),
	MP_VALUE(TEXT, "policy", 0, policy_dir, "DIR",
		 "The directory with morph.conf; no unit is started then"),
	MP_OPTIONS_END};

static const struct mp_usage usage = {
	.options = options,
	.doc = "Make the programs that take this machine's time faster from now on, without a command that "
	       "trains or measures them: what the machine does every day serves for both. Each faster version "
	       "does the same as its original, was measured here, and is watched. `morph off' puts every "
	       "original back. Without root, Morph looks after the user's own programs.\v"
	       "Called again, it sets its settings anew.",
	.shared = &md_cli_common_argp};

/* ---- the settings --------------------------------------------------------------------------- */

static void put_list(FILE *out, const char *key, const struct mp_words *list)
{
	for (int i = 0; i < list->nr; i++)
		fprintf(out, "%s = %s\n", key, list->list[i]);
}

static void put_settings(FILE *out, const struct on *on)
{
	fputs("# Written by morph on; `morph off' removes it. See morph.conf(5).\n"
	      "mode = adopt\n",
	      out);
	fprintf(out, "share = %g%%\ncounting = %s\n", 100 * MD_POLICY_ON_SHARE,
		no_yes[on->counting]);
	if (on->live)
		fputs("live = yes\n", out);
	put_list(out, "only", &on->only);
	put_list(out, "exclude", &on->except);
}

/* Reads the policy with the new settings, before they are on the disk. */
static int preview(struct on *on)
{
	int fd = memfd_create("on.conf", MFD_CLOEXEC);
	FILE *out = fd < 0 || fchmod(fd, 0600) ? NULL : fdopen(fd, "w");
	struct mp_err err = {0};
	char path[64];
	int r;

	if (!out) {
		r = md_cli_fail("%s: %s", MD_POLICY_ON, strerror(errno));
		if (fd >= 0)
			close(fd);
		return r;
	}
	put_settings(out, on);
	fflush(out);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = md_policy_read_on(on->dir, path, &on->policy, &err);
	fclose(out);
	if (!r)
		return 0;
	md_cli_fail("%s", err.msg);
	return r == -EINVAL || r == -EPERM ? MP_EXIT_USAGE : MP_EXIT_FAILED;
}

static int write_settings(const struct on *on)
{
	struct mp_outfile out;
	struct mp_err err = {0};
	int r = md_policy_make_dir(on->dir, &err);

	if (!r)
		r = mp_outfile_open(on->file, md_interrupt_unlinks, &out, &err);
	if (!r) {
		/* The policy refuses a file that others can write. */
		fchmod(fileno(out.file), 0644);
		put_settings(out.file, on);
		r = mp_outfile_commit(&out, &err);
	}
	if (r == -EACCES)
		return md_cli_fail("%s: you may not write it; `sudo morph on' does", on->file);
	return r ? md_cli_fail("%s", err.msg) : 0;
}

/* ---- what somebody undid --------------------------------------------------------------------- */

static bool was_asked(const struct mp_decision *list, size_t nr, uint32_t round)
{
	for (size_t i = 0; i < nr; i++)
		if (list[i].round == round && !strcmp(list[i].step, "undo") &&
		    !strcmp(list[i].verdict, "asked"))
			return true;
	return false;
}

/* What `morph off' undid need not wait for the time `retry'. */
static int begin_again(struct mp_store *store, const struct mp_job *job, struct mp_err *err)
{
	struct mp_decision *list = NULL;
	size_t nr = 0;
	int r = 0;

	if (job->state != MP_JOB_UNDONE)
		return 0;
	r = mp_store_list_history(store, job->path, 0, &list, &nr, err);
	if (!r && was_asked(list, nr, job->round))
		r = mp_store_want_job(store, job->path, job->asked, job->uid, true,
				      (int64_t)time(NULL), NULL, err);
	mp_store_free_history(list, nr);
	return r;
}

/* Without a store there is nothing to begin again. */
static int begin_all_again(const struct on *on)
{
	struct mp_store *store = NULL;
	struct mp_err err = {0};
	int r = 0;

	if (!on->machine.nr_jobs || mp_store_open(on->cli->path, MP_STORE_WRITE, &store, &err))
		return 0;
	for (size_t i = 0; i < on->machine.nr_jobs && !r; i++)
		r = begin_again(store, &on->machine.jobs[i], &err);
	mp_store_close(store);
	return r ? md_cli_fail("%s", err.msg) : 0;
}

/* ---- what it begins with -------------------------------------------------------------------- */

/* Is the program's share large enough, or does a rule name it? */
static bool is_large(const struct on *on, const struct md_machine_program *p)
{
	return p->file != MD_FILE_NONE && p->file != MD_FILE_GONE && p->path[0] == '/' &&
	       (p->share >= on->policy.share || md_policy_rule(&on->policy, p->path));
}

/* Why it is no candidate, in words of a user; NULL: it is one. */
static const char *why_not(const struct on *on, const struct md_machine_program *p, char *buf,
			   size_t size)
{
	if (md_deny(&on->policy, p->path, buf, size))
		return buf;
	if (!p->job || !mp_job_state_ends(p->job->state) || p->job->state == MP_JOB_ADVISED)
		return NULL;
	snprintf(buf, size, "%s%s%.400s", md_wording_state(p),
		 p->job->detail && p->job->detail[0] ? ": " : "",
		 p->job->detail ? p->job->detail : "");
	return buf;
}

static json_t *programs_json(const struct on *on)
{
	json_t *rows = json_array();
	char buf[600];

	for (size_t i = 0; i < on->machine.nr_programs; i++) {
		const struct md_machine_program *p = &on->machine.programs[i];
		const char *why = why_not(on, p, buf, sizeof(buf));

		if (is_large(on, p))
			json_array_append_new(
				rows,
				json_pack("{s:o, s:f, s:b, s:o}", "path", mp_json_string(p->path),
					  "percent", 100 * p->share, "candidate", !why, "why_not",
					  why ? mp_json_string(why) : json_null()));
	}
	return rows;
}

static void put_program(const struct md_machine_program *p, const char *why)
{
	char *reason = why ? mp_text_escaped(why) : NULL;

	printf("%7.1f %%  ", 100 * p->share);
	mp_text_put(stdout, p->path);
	printf("%s%.120s\n", reason ? "  " : "", reason ? reason : "");
	free(reason);
}

static void put_programs(const struct on *on)
{
	const struct md_machine *m = &on->machine;
	size_t nr = 0;
	char buf[600];

	for (size_t i = 0; i < m->nr_programs; i++)
		if (is_large(on, &m->programs[i]) && ++nr <= MAX_SHOWN) {
			if (nr == 1)
				puts("It begins with these, or says why not:");
			put_program(&m->programs[i],
				    why_not(on, &m->programs[i], buf, sizeof(buf)));
		}
	if (nr > MAX_SHOWN)
		printf("           and %zu more: morph list\n", nr - MAX_SHOWN);
	if (!nr)
		puts("No program has been sampled long enough yet; it begins as samples come.");
}

/* ---- all together --------------------------------------------------------------------------- */

static const char *unit_word(enum md_units units)
{
	static const char *const words[] = {[MD_UNITS_NONE] = "none",
					    [MD_UNITS_ENABLED] = "enabled",
					    [MD_UNITS_CHANGED] = "changed",
					    [MD_UNITS_FAILED] = "failed"};

	return words[units];
}

static int print_json(const struct on *on, const struct md_collector *collector)
{
	json_t *root = md_cli_json_new("on"), *only = json_array(), *except = json_array();

	for (int i = 0; i < on->only.nr; i++)
		json_array_append_new(only, mp_json_string(on->only.list[i]));
	for (int i = 0; i < on->except.nr; i++)
		json_array_append_new(except, mp_json_string(on->except.list[i]));
	json_object_set_new(root, "file", mp_json_string(on->file));
	json_object_set_new(root, "dry_run", json_boolean(on->dry_run));
	json_object_set_new(root, "counting", json_boolean(on->counting));
	json_object_set_new(root, "live", json_boolean(on->live));
	json_object_set_new(root, "share_percent", json_real(100 * on->policy.share));
	json_object_set_new(root, "only", only);
	json_object_set_new(root, "except", except);
	json_object_set_new(root, "units", json_string(unit_word(on->units)));
	json_object_set_new(root, "collecting", json_boolean(collector->runs));
	json_object_set_new(root, "why",
			    collector->runs ? json_null() : mp_json_string(collector->why));
	json_object_set_new(root, "programs", programs_json(on));
	return md_cli_json_print(root);
}

static void put_units(const struct on *on)
{
	bool root = !geteuid();

	if (on->units == MD_UNITS_CHANGED)
		printf("%s started, and start%s with the machine.\n",
		       root ? "morphd and morph-optimize.timer are" : "morph-optimize.timer is",
		       root ? "" : "s");
	else if (on->units == MD_UNITS_NONE && !on->dry_run)
		puts("No unit of systemd is there to start: run morphd, and morph-worker now and then.");
}

static int print(const struct on *on, const struct md_collector *collector)
{
	char *why = mp_text_escaped(collector->why);

	printf("Morph %s after each program that takes %g %% of the time%s, %s:\n"
	       "it %s, writes a version that does the same, measures both in everyday\n"
	       "use, and puts the new one in place only if it is faster.\n",
	       on->dry_run ? "would look" : "looks", 100 * on->policy.share,
	       on->only.nr ? " and that --only names" : "",
	       geteuid() ? "of yours" : "of the machine's",
	       on->counting ? "counts for a while how often its code runs" : "samples its code");
	put_programs(on);
	if (on->live)
		puts("Programs that have run for a long time are changed while they run: morph live status.");
	if (on->counting)
		puts("Counting takes minutes of a program's use, and measuring from a quarter of an hour to a "
		     "week:\n`morph explain PROGRAM' says how far it is.");
	put_units(on);
	if (!collector->runs)
		printf("Morph is not collecting: %s.\n", why ? why : "?");
	free(why);
	fputs(on->dry_run ? "Nothing was changed; without --dry-run, " : "The settings are in ",
	      stdout);
	mp_text_put(stdout, on->file);
	puts(on->dry_run ? " is written, and the units are started."
			 : ". `morph' shows what happens, `morph off' undoes it.");
	return md_cli_finish(on->units == MD_UNITS_FAILED ? MP_EXIT_FAILED : MP_EXIT_DONE);
}

static int turn_on(struct on *on)
{
	struct md_collector collector;
	int r = preview(on);

	if (r)
		return r;
	md_morph_load_quietly(on->cli, &on->machine);
	if (!on->dry_run) {
		r = write_settings(on);
		if (!r)
			r = begin_all_again(on);
		if (r)
			return r;
		md_machine_fini(&on->machine);
		md_morph_load_quietly(on->cli, &on->machine);
		on->units = on->policy_dir ? MD_UNITS_NONE : md_units_enable(true);
	}
	md_collector_look(on->cli->path, &collector);
	r = on->cli->json ? print_json(on, &collector) : print(on, &collector);
	return r ? r : on->units == MD_UNITS_FAILED ? MP_EXIT_FAILED : 0;
}

int md_morph_on(struct md_cli *cli, int argc, char **argv)
{
	struct on on = {.cli = cli, .counting = 1};
	int r;

	md_cli_parse(&usage, argc, argv, &on, cli);
	r = md_morph_policy_dir(on.policy_dir, on.dir, sizeof(on.dir));
	snprintf(on.file, sizeof(on.file), "%s/%s", on.dir, MD_POLICY_ON);
	if (!r)
		r = turn_on(&on);
	md_machine_fini(&on.machine);
	md_policy_fini(&on.policy);
	free(on.only.list);
	free(on.except.list);
	return r;
}
