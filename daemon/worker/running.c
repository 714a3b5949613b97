// SPDX-License-Identifier: Apache-2.0
/* running - versions in processes that run already; see running.h. */
#include "daemon/worker/running.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/everyday/cpu_time.h"
#include "daemon/policy/deny.h"
#include "libprof/base/child.h"
#include "libprof/base/clock.h"
#include "libprof/cli/exit_status.h"
#include "libprof/cli/json.h"

#define NOTE	  "running"
#define NR_PLACES 4

/* Two versions may be mapped in one process for a while, so each has a place of its own. */
static const enum md_variant with_place[NR_PLACES] = {MD_COUNTING, MD_METERED_ORIGINAL,
						      MD_METERED_NEW, MD_NEW_RUNNING};

/* ---- morph live ------------------------------------------------------------------------------ */

/*
 * The service's sandbox has mounts of its own and forbids ptrace(), and would do so for `morph live', too. So systemd is asked to run
 * it outside. Return: words of a command that does; 0: this is no service of root's.
 */
static size_t be_outside(char *program, char **argv)
{
	static const char *const words[] = {"--quiet", "--wait", "--pipe", "--collect", "--"};
	size_t nr = 0;

	/* systemd tells each service its number. */
	if (geteuid() || !getenv("INVOCATION_ID") || !mp_child_find_in_path("systemd-run", program))
		return 0;
	argv[nr++] = program;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		argv[nr++] = (char *)words[i];
	return nr;
}

static bool is_done(const struct md_child_result *r)
{
	return r->end == MD_CHILD_EXITED && !r->status;
}

/* A command that was ended by a signal prints nothing, and systemd-run may take that for success. */
static void check_printed(const char *out, struct md_child_result *r)
{
	json_t *printed = json_load_file(out, 0, NULL);

	if (is_done(r) && !json_is_object(printed)) {
		r->status = MP_EXIT_FAILED;
		snprintf(r->reason, sizeof(r->reason), "morph live was ended");
	}
	json_decref(printed);
}

#define DOLLAR "a path with a $: systemd-run would change it"
/* A stop that is tried for long is mostly waiting. */
#define CPU_MOST_S 5

/* Runs `morph live' with @words behind it. @out: where it prints. Return: 0, -EINTR, -errno. */
static int run_live(struct md_task *t, bool must_run, const char *out, char *const *words,
		    struct md_child_result *r)
{
	char program[PATH_MAX], *argv[20];
	struct md_child as = {.must_run = must_run, .priority = MD_CHILD_PROMPT, .out = out};
	double begun_s = mp_now_s();
	size_t outside = be_outside(program, argv), nr = outside;
	int ret;

	*r = (struct md_child_result){.end = MD_CHILD_EXITED, .status = MP_EXIT_REFUSED};
	/* systemd would put a variable there. */
	for (size_t i = 0; outside && words[i]; i++)
		if (strchr(words[i], '$')) {
			snprintf(r->reason, sizeof(r->reason), DOLLAR);
			return 0;
		}
	/* What systemd runs goes on when systemd-run is stopped, so it is waited for. */
	as.must_run |= outside;

	argv[nr++] = t->worker->morph;
	argv[nr++] = (char *)"live";
	argv[nr++] = (char *)"--json";
	while (*words)
		argv[nr++] = *words++;
	argv[nr] = NULL;
	ret = md_task_run_beside(t, argv, &as, r);
	if (!ret)
		check_printed(out, r);
	/* What it took outside is not known, but for a limit. */
	if (outside)
		r->cpu_s = fmin(mp_now_s() - begun_s, CPU_MOST_S);
	/* Opening and closing windows is a part of what counting costs. */
	if (t->job->state == MP_JOB_COUNTING)
		t->worker->budget.left -= r->cpu_s;
	return ret;
}

/*
 * The option by which only processes of the program get a version of the library. "": it is no library, or nobody
 * knows it yet.
 */
struct of_program {
	char option[PATH_MAX + 16];
};

static struct of_program of_program(const struct md_task *t)
{
	struct md_running_program program = md_running_program(t);
	struct of_program of = {""};

	if (strcmp(program.path, t->job->path) != 0)
		snprintf(of.option, sizeof(of.option), "--program=%s", program.path);
	return of;
}

/* Does the policy leave the processes of the program alone, whatever it says of the library? @why gets the reason. */
static bool leaves_alone(const struct md_policy *policy, const char *program, char *why,
			 size_t size)
{
	if (md_deny_processes(policy, program, why, size))
		return true;
	if (md_policy_may_live(policy, md_policy_rule(policy, program)))
		return false;
	snprintf(why, size, "left alone: `live = no' in the policy");
	return true;
}

/* May a version go into the processes? The policy may have changed in the middle of the round. @r gets the reason. */
static bool may_put(const struct md_task *t, enum md_variant variant, struct md_child_result *r)
{
	struct md_running_program program = md_running_program(t);
	char why[200];

	if (variant == MD_ORIGINAL || !md_policy_is_library(t->job->path))
		return true;
	*r = (struct md_child_result){.end = MD_CHILD_EXITED, .status = MP_EXIT_REFUSED};
	if (!strcmp(program.path, t->job->path))
		snprintf(r->reason, sizeof(r->reason),
			 "it is not known which program has loaded it");
	else if (leaves_alone(t->worker->policy, program.path, why, sizeof(why)))
		snprintf(r->reason, sizeof(r->reason), "%.200s, which has loaded it, is %s",
			 program.path, why);
	else
		return true;
	return false;
}

int md_running_put(struct md_task *t, enum md_variant variant, struct md_child_result *r)
{
	struct md_work_path file = md_work_path(&t->dir, md_variant_name(variant)),
			    dir = md_variant_counts(&t->dir, variant);
	struct md_work_path out = md_work_path(&t->dir, "live.out");
	char counts[PATH_MAX + 16];
	struct of_program of = of_program(t);
	char *words[8] = {(char *)(variant == MD_ORIGINAL ? "undo" : "adopt")};
	size_t nr = 1;
	int ret;

	if (!may_put(t, variant, r))
		return 0;
	snprintf(counts, sizeof(counts), "--counts=%s", dir.text);
	if (variant != MD_NEW_RUNNING && variant != MD_ORIGINAL)
		words[nr++] = counts;
	/* Processes of others may have loaded it, and are not asked: whoever likes to could hold up the undoing. */
	if (of.option[0] && (variant != MD_ORIGINAL || !strchr(of.option, '$')))
		words[nr++] = of.option;
	words[nr++] = t->job->path;
	if (variant != MD_ORIGINAL)
		words[nr++] = file.text;
	ret = run_live(t, variant == MD_ORIGINAL, out.text, words, r);
	unlink(out.text);
	return ret;
}

/*
 * Processes whose program has got another name, as `mv nginx nginx.old' does, are not found by the program's path. All that have
 * loaded the library are asked for this job's versions; those that cannot be asked have none.
 */
static int undo_renamed(struct md_task *t)
{
	struct md_work_path out = md_work_path(&t->dir, "live.out");
	char *words[] = {(char *)"undo", t->job->path, t->dir.path, NULL};
	struct md_child_result r;
	int ret = run_live(t, true, out.text, words, &r);

	unlink(out.text);
	return ret;
}

int md_running_undo(struct md_task *t)
{
	struct md_child_result r;
	int ret = md_running_put(t, MD_ORIGINAL, &r);

	if (!ret && is_done(&r) && md_running_is_replaced(t))
		ret = undo_renamed(t);
	if (!ret && !is_done(&r))
		ret = mp_err_set(t->err, EIO,
				 "a version could not be taken back from running processes: %s",
				 r.reason[0] ? r.reason : "morph live failed");
	return ret;
}

int md_running_end(struct md_task *t)
{
	bool in_use = t->job->state == MP_JOB_ADOPTED || t->job->state == MP_JOB_KEPT;

	return md_running_is(&t->dir) && !in_use ? md_running_undo(t) : 0;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The file at the path of the program. NULL: there is none. Ownership: json_decref(). */
static json_t *note_file(const char *program)
{
	struct stat st;

	/*
	 * Not the time of change: a new owner or name makes no other file of it. Not the device: its number may be another
	 * one when the machine has started again.
	 */
	return lstat(program, &st)
		       ? NULL
		       : json_pack("[I, I, I]", (json_int_t)st.st_ino,
				   (json_int_t)st.st_mtim.tv_sec, (json_int_t)st.st_mtim.tv_nsec);
}

bool md_running_is_replaced(const struct md_task *t)
{
	json_t *note = t->dir.path[0] ? json_load_file(md_work_path(&t->dir, NOTE).text, 0, NULL)
				      : NULL;
	const char *path = json_string_value(json_object_get(note, "program"));
	json_t *now = path ? note_file(path) : NULL;
	bool gone = !now && (errno == ENOENT || errno == ENOTDIR);
	bool is = path && (now ? !json_equal(now, json_object_get(note, "file")) : gone);

	json_decref(now);
	json_decref(note);
	return is;
}

/* Does the kernel say that another file lies at the path, or none? */
static bool is_old(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path), end = sizeof(deleted) - 1;

	return len > end && !strcmp(path + len - end, deleted);
}

/* The program whose processes have loaded the library. Return: NULL: it cannot be tried there, and @r says why. */
static json_t *choose_program(const struct md_task *t, json_t *programs, struct md_child_result *r)
{
	json_t *program = json_array_size(programs) == 1 ? json_array_get(programs, 0) : NULL;
	const char *path = json_string_value(program);
	char why[200] = "not known";
	json_t *other;
	size_t i;

	json_array_foreach(programs, i, other) if (is_old(json_string_value(other)))
	{
		snprintf(r->reason, sizeof(r->reason), "%s, while old processes of it run",
			 MD_RUNNING_REPLACED);
		return NULL;
	}
	if (path && strchr(path, '$'))
		snprintf(r->reason, sizeof(r->reason), DOLLAR);
	else if (!path)
		snprintf(r->reason, sizeof(r->reason),
			 "several programs have loaded it, so the CPU time of one does not tell "
			 "what it takes");
	else if (path[0] != '/' || leaves_alone(t->worker->policy, path, why, sizeof(why)))
		snprintf(r->reason, sizeof(r->reason), "%.200s, which has loaded it, is %s", path,
			 why);
	else
		return program;
	return NULL;
}

static json_t *make_note(const struct md_task *t, json_t *found, struct md_child_result *r)
{
	json_t *places = json_object_get(found, "places"), *program, *note;

	if (json_array_size(places) != NR_PLACES) {
		snprintf(r->reason, sizeof(r->reason), "morph live names no places");
		return NULL;
	}
	if (!md_policy_is_library(t->job->path))
		return json_pack("{s:O}", "places", places);
	/* It was chosen at the beginning of the round, and other processes are left out. */
	if (md_running_is(&t->dir)) {
		note = json_load_file(md_work_path(&t->dir, NOTE).text, 0, NULL);
		if (!note)
			snprintf(r->reason, sizeof(r->reason),
				 "what was noted of it cannot be read");
		json_object_set(note, "places", places);
		return note;
	}
	program = choose_program(t, json_object_get(found, "programs"), r);
	return program ? json_pack("{s:O, s:O, s:o*}", "places", places, "program", program, "file",
				   note_file(json_string_value(program)))
		       : NULL;
}

static int save_places(struct md_task *t, const struct md_work_path *found,
		       struct md_child_result *r)
{
	json_t *root = json_load_file(found->text, 0, NULL), *note = make_note(t, root, r);
	int ret = note ? mp_json_save(note, md_work_path(&t->dir, NOTE).text, t->err) : 1;

	json_decref(root);
	return ret;
}

int md_running_move(struct md_task *t, struct md_child_result *r)
{
	struct md_work_path found = md_work_path(&t->dir, "places");
	struct of_program of = of_program(t);
	char nr[24];
	char *words[] = {(char *)"place", nr, t->job->path, of.option[0] ? of.option : NULL, NULL};
	int ret;

	snprintf(nr, sizeof(nr), "--nr=%d", NR_PLACES);
	ret = run_live(t, false, found.text, words, r);
	if (!ret)
		ret = is_done(r) ? save_places(t, &found, r) : 1;
	unlink(found.text);
	return ret;
}

struct md_running_option md_running_option(const struct md_work_dir *dir, enum md_variant variant)
{
	json_t *note = json_load_file(md_work_path(dir, NOTE).text, 0, NULL);
	struct md_running_option out = {""};

	for (size_t i = 0; note && i < NR_PLACES; i++)
		if (with_place[i] == variant)
			snprintf(out.text, sizeof(out.text), "--live-at=%" JSON_INTEGER_FORMAT,
				 json_integer_value(
					 json_array_get(json_object_get(note, "places"), i)));
	json_decref(note);
	return out;
}

/* ---- the decision ---------------------------------------------------------------------------- */

bool md_running_is(const struct md_work_dir *dir)
{
	return !access(md_work_path(dir, NOTE).text, F_OK);
}

struct md_running_program md_running_program(const struct md_task *t)
{
	json_t *note = t->dir.path[0] ? json_load_file(md_work_path(&t->dir, NOTE).text, 0, NULL)
				      : NULL;
	const char *path = json_string_value(json_object_get(note, "program"));
	struct md_running_program program;

	snprintf(program.path, sizeof(program.path), "%s", path ? path : t->job->path);
	json_decref(note);
	return program;
}

/* Did long-running processes take most of the time? Return: 1, 0, -errno. */
static int run_long(struct md_task *t)
{
	struct md_cpu_time *ct = t->worker->cpu_time;
	struct md_cpu_sum sum;
	dev_t dev;
	ino_t ino;
	int index, ret;

	if (md_cpu_time_number(md_running_program(t).path, &dev, &ino))
		return 0;
	index = md_cpu_time_watch(ct, dev, ino);
	ret = index < 0 ? index : md_cpu_time_read(ct, index, &sum);
	if (ret)
		return mp_err_set(t->err, -ret, "the time of processes: %s", strerror(-ret));
	return md_cpu_time_of_old(ct, index, MD_RUNNING_AGE_S * t->worker->pace) > 0.5;
}

/* Only the processes tell which program has loaded the library, so they are asked first. */
static int begin_library(struct md_task *t, struct md_child_result *r)
{
	int ret = md_running_move(t, r);

	if (!ret)
		ret = run_long(t);
	else if (ret > 0)
		return 2;
	if (ret == 1)
		return 1;
	unlink(md_work_path(&t->dir, NOTE).text);
	snprintf(
		r->reason, sizeof(r->reason),
		"no processes that have run for a long time take most of the CPU time of the program "
		"that has loaded it");
	return ret < 0 ? ret : 2;
}

int md_running_begin(struct md_task *t, struct md_child_result *r)
{
	int ret;

	unlink(md_work_path(&t->dir, NOTE).text);
	if (!md_policy_may_live(t->worker->policy, t->rule) || !t->worker->morph[0])
		return 0;
	if (md_policy_is_library(t->job->path))
		return begin_library(t, r);
	ret = run_long(t);
	if (ret != 1)
		return ret;
	ret = md_running_move(t, r);
	return ret < 0 ? ret : ret ? 2 : 1;
}
