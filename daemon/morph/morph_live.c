// SPDX-License-Identifier: Apache-2.0
/*
 * morph_live - the command "live": puts an output's code into running processes, takes it back, and says where it is.
 * The work is in daemon/live/. Several processes are changed by one child of this command each, the parent
 * process first, since its later children inherit what it has.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/live/live.h"
#include "daemon/live/place.h"
#include "daemon/live/targets.h"
#include "daemon/morph/morph.h"
#include "daemon/morph/run_tool.h"
#include "libprof/base/text.h"

#define MP_OPTIONS struct live

/* Defaults of the options, in MiB. */
#define MAX_PRIVATE  64
#define MAX_SEARCHED 16

/* Of --nr. */
#define MAX_PLACES 16

/*
 * A process may have memory that whoever reads it waits for, as a file system of its own can. Only a signal that ends this
 * command ends such a wait. All else ends by limits of its own, in minutes.
 */
#define PROCESS_MOST_S 1800

enum action {
	ADOPT,
	UNDO,
	STATUS,
	PLACE
};

static const char *const names[] = {"adopt", "undo", "status", "place"};

struct live {
	struct md_cli *cli;
	enum action action;
	bool has_action, dry_run;
	const char *target, *output, *counts, *program;
	const char *given; /* undo: whose versions, as for md_version_is_of(); NULL: all */
	char *meant;	   /* the same without symbolic links */
	double max_private, max_searched, nr_places; /* 0 places: one, of any size */
	struct md_targets targets;
	json_t *rows;	  /* NULL: text */
	json_t *places;	  /* NULL: none were asked for */
	json_t *programs; /* place: what its processes run, each once; NULL: text */
	size_t nr_found;
	bool stuck; /* a thread of the process is still to stop, and traced: no other try is possible */
};

static const struct mp_option options[] = {
	MP_FLAG("dry-run", dry_run, "Say what would be done, and change nothing"),
	MP_VALUE(
		TEXT, "counts", 0, counts, "DIR",
		"adopt: the directory for files of counts, one for each user; for a version that counts"),
	MP_NUMBER("limit", 0, max_private, 0, 65536, "MIB",
		  "adopt: refuse if more memory than this becomes the process's own (default: 64)"),
	MP_NUMBER("nr", 0, nr_places, 1, MAX_PLACES, "N",
		  "place: print N addresses, each with room for a version of the whole file"),
	MP_VALUE(TEXT, "program", 0, program, "PATH",
		 "Leave out processes that run another program"),
	MP_NUMBER(
		"search", 0, max_searched, 0, 65536, "MIB",
		"undo, and adopt for versions no longer in use: leave the copies mapped if more memory than this would have to be searched, in "
		"the stopped process, for their addresses (default: 16)"),
	MP_OPTIONS_END};

static void take_word(void *data, char *arg, struct argp_state *state)
{
	struct live *l = data;

	if (!l->has_action) {
		for (int i = ADOPT; i <= PLACE; i++)
			if (!strcmp(arg, names[i])) {
				l->action = (enum action)i;
				l->has_action = true;
				return;
			}
		argp_error(state, "%s: not an action; adopt, undo, status or place", arg);
	} else if (!l->target) {
		l->target = arg;
	} else if (!l->output && l->action != STATUS) {
		l->output = arg;
	} else {
		argp_error(state, "%s: too many arguments", arg);
	}
}

/* A version that counts needs a directory, and no other takes one. A file that cannot be read is refused later. */
static void check_counts(const struct live *l, struct argp_state *state)
{
	enum md_version_kind kind;

	if (l->action != ADOPT) {
		if (l->counts)
			argp_error(state, "--counts: %s counts nothing", names[l->action]);
	} else if (!md_version_kind_read(l->output, &kind)) {
		if (kind != MD_VERSION_LIVE && !l->counts)
			argp_error(state, "%s counts (%s): give --counts=DIR", l->output,
				   md_version_kind_name(kind));
		if (kind == MD_VERSION_LIVE && l->counts)
			argp_error(state, "--counts: %s does not count", l->output);
	}
}

static void check(void *data, struct argp_state *state)
{
	const struct live *l = data;

	if (!l->has_action)
		argp_error(state, "adopt, undo, status or place?");
	if (!l->target && l->action != STATUS)
		argp_error(state, "which process? Give its number, a unit, a program or a library");
	/* It would be the beginning of each name. */
	if (l->output && !*l->output)
		argp_error(state, "the name of a file is empty");
	if (!l->output && l->action == ADOPT)
		argp_error(state, "which version? Give the output of morph-optimize");
	if (l->dry_run && l->action != ADOPT && l->action != UNDO)
		argp_error(state, "--dry-run: %s changes nothing", names[l->action]);
	if (l->nr_places > 0 && l->action != PLACE)
		argp_error(state, "--nr: %s prints no addresses", names[l->action]);
	check_counts(l, state);
}

static const struct mp_usage usage = {
	.options = options,
	.arguments = "adopt|undo|status|place [PROCESS [FILE]]",
	.word = take_word,
	.check = check,
	.doc = "Put the code of FILE, which morph-optimize wrote with --live-at, into a running process; take "
	       "it back; say where such code is; or print the address for --live-at. PROCESS is a number, "
	       "a unit of systemd such as nginx.service, or the path of a program or a library: all processes that "
	       "run it, or have loaded it. Another version that is in use is replaced. undo takes back all versions, "
	       "or those of FILE: of this original, this version, or those below this directory. The path of a "
	       "program or a library means its versions.\v"
	       "The process stands still for some milliseconds, and is refused, with the reason, where "
	       "anything could go wrong.",
	.shared = &md_cli_common_argp};

/* ---- results ------------------------------------------------------------------------------------ */

static json_t *result_json(const struct live *l, pid_t pid, const struct md_version *v,
			   const struct md_live_result *r)
{
	return json_pack(
		"{s:i, s:o, s:o, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}",
		"pid", (int)pid, "original", mp_json_string(v->original_path), "output",
		mp_json_string(v->path), "kind", md_version_kind_name(v->kind), "state",
		md_live_state_name(r->state), "changed", r->changed, "rounds",
		(json_int_t)r->rounds, "stop_ns",
		(json_int_t)(l->dry_run || r->rounds ? r->stop_ns : 0), "longest_stop_ns",
		(json_int_t)r->longest_ns, "work_ns", (json_int_t)r->work_ns, "threads",
		(json_int_t)r->nr_threads, "private_bytes", (json_int_t)r->private_bytes, "patches",
		(json_int_t)v->changes.nr_patches, "branches", (json_int_t)v->changes.nr_branches,
		"patches_over_first", (json_int_t)v->changes.nr_over_first, "words",
		(json_int_t)v->changes.nr_words, "left_out", (json_int_t)v->changes.nr_left_out,
		"breakpoints", (json_int_t)v->nr_breakpoints, "why_mapped", r->why_mapped);
}

static void put_changes(const struct md_version *v, const struct md_live_result *r)
{
	printf("  %zu patches, %zu branches, %zu words of tables; %zu left out\n"
	       "  %.1f MiB of copies at 0x%" PRIx64 "; %" PRIu64
	       " KiB become the process's own memory\n",
	       v->changes.nr_patches, v->changes.nr_branches, v->changes.nr_words,
	       v->changes.nr_left_out, (double)v->changes.segment_size / (1 << 20),
	       md_version_segment(v), r->private_bytes >> 10);
	if (v->changes.nr_over_first)
		printf("  %zu patches lie over first instructions of functions, where a probe would end the "
		       "process; write the version again\n",
		       v->changes.nr_over_first);
	if (v->nr_breakpoints)
		printf("  %zu breakpoints of somebody else (probes) in the pages that change\n",
		       v->nr_breakpoints);
}

static void put_text(const struct live *l, pid_t pid, const struct md_version *v,
		     const struct md_live_result *r)
{
	printf("process %d, ", (int)pid);
	mp_text_put(stdout, v->original_path);
	printf(": %s%s", l->dry_run ? "now " : "", md_live_state_name(r->state));
	if (r->rounds)
		printf("; %zu threads stood still for %.2f ms", r->nr_threads,
		       (double)r->stop_ns / 1e6);
	if (r->rounds > 1)
		printf(", in round %u", r->rounds);
	puts(".");
	if (l->action == STATUS || l->dry_run) {
		fputs("  from ", stdout);
		mp_text_put(stdout, v->path);
		printf(" (%s)\n", md_version_kind_name(v->kind));
	}
	if (l->action != UNDO)
		put_changes(v, r);
	if (l->dry_run)
		printf("  its %zu threads would stand still for some %.1f ms\n", r->nr_threads,
		       (double)r->stop_ns / 1e6);
	if (r->why_mapped[0])
		printf("  the copies stay mapped: %s\n", r->why_mapped);
}

static void put(struct live *l, pid_t pid, const struct md_version *v,
		const struct md_live_result *r)
{
	l->nr_found++;
	if (l->rows)
		json_array_append_new(l->rows, result_json(l, pid, v, r));
	else
		put_text(l, pid, v, r);
}

/* ---- one process -------------------------------------------------------------------------------- */

static int status_of(int r)
{
	return r == -EPERM			 ? MP_EXIT_REFUSED
	       : r == -EAGAIN || r == -ETIMEDOUT ? MP_EXIT_LATER
						 : MP_EXIT_FAILED;
}

static int failed(int r, const struct mp_err *err)
{
	md_cli_fail("%s", err->msg);
	return status_of(r);
}

static bool changes(const struct live *l)
{
	return (l->action == ADOPT || l->action == UNDO) && !l->dry_run;
}

/* The same for one process. Nothing is left to be done in one that was found by its program or unit, and has ended. */
static int process_failed(struct live *l, pid_t pid, int r, const struct mp_err *err)
{
	l->stuck = r == -ETIMEDOUT;
	if (changes(l) && l->targets.searched && l->targets.nr == 1 &&
	    md_target_has_ended(&l->targets.list[0]))
		return 0;
	if (l->rows)
		json_array_append_new(l->rows, json_pack("{s:i, s:o}", "pid", (int)pid, "error",
							 mp_json_string(err->msg)));
	return failed(r, err);
}

static struct md_live_request request_for(const struct live *l, pid_t pid)
{
	return (struct md_live_request){.pid = pid,
					.output = l->output,
					.counts = l->counts,
					.dry_run = l->dry_run,
					.max_private = (uint64_t)(l->max_private * (1 << 20)),
					.max_searched = (uint64_t)(l->max_searched * (1 << 20))};
}

static int adopt(struct live *l, pid_t pid)
{
	const struct md_live_request request = request_for(l, pid);
	struct md_version version = {.output_fd = -1};
	struct md_live_result result;
	struct mp_err err = {0};
	int lock = md_live_lock(pid, &err), r = lock;

	if (lock >= 0) {
		r = md_live_adopt(&request, &version, &result, &err);
		close(lock);
	}
	if (r)
		r = process_failed(l, pid, r, &err);
	else
		put(l, pid, &version, &result);
	md_version_close(&version);
	return r;
}

/* Undoes, or only shows, one of the versions that are in the process. */
static int one_version(struct live *l, struct md_process *process,
		       const struct md_versions *versions, struct md_version *version)
{
	const struct md_live_request request = request_for(l, process->pid);
	struct md_live_result result = {0};
	struct mp_err err = {0};
	int r;

	if (l->action == UNDO) {
		r = md_live_undo(&request, version, versions, process, &result, &err);
	} else {
		r = md_version_pages(version, versions, NULL, &err);
		if (!r)
			md_live_look(version, process, &result);
	}
	if (r)
		return process_failed(l, process->pid, r, &err);
	put(l, process->pid, version, &result);
	return 0;
}

static int open_versions(pid_t pid, bool with_changes, struct md_process *process,
			 struct md_versions *versions, struct mp_err *err)
{
	int r = md_process_open(pid, process, err);

	*versions = (struct md_versions){0};
	return r ? r : md_versions_find(process, with_changes, versions, err);
}

static void close_versions(struct md_process *process, struct md_versions *versions)
{
	md_versions_close(versions);
	md_process_close(process);
}

/*
 * The same after md_live_lock(), if there is any version: the process can hold this lock itself, so only one that has a version
 * may let this program wait. *@lock: the lock; -1: none.
 */
static int open_locked(pid_t pid, struct md_process *process, struct md_versions *versions,
		       int *lock, struct mp_err *err)
{
	int r = open_versions(pid, false, process, versions, err);

	if (r || !versions->nr)
		return r;
	*lock = md_live_lock(pid, err);
	if (*lock < 0)
		return *lock;
	close_versions(process, versions);
	return open_versions(pid, true, process, versions, err);
}

/* By the name that was given, too: whoever calls this command may have found the version by that. */
static bool is_meant(const struct live *l, const struct md_version *version)
{
	return !l->given || md_version_is_of(version, l->meant) ||
	       md_version_is_of(version, l->given);
}

static int each_version(struct live *l, pid_t pid)
{
	struct md_versions versions;
	struct md_process process;
	struct mp_err err = {0};
	int lock = -1, status = 0;
	int r = l->action == UNDO ? open_locked(pid, &process, &versions, &lock, &err)
				  : open_versions(pid, true, &process, &versions, &err);

	l->stuck = false;
	for (size_t i = 0; !r && !l->stuck && i < versions.nr; i++) {
		int one = is_meant(l, &versions.list[i])
				  ? one_version(l, &process, &versions, &versions.list[i])
				  : 0;

		status = status ? status : one;
	}
	/* A search of all processes leaves out a process that has ended, or whose first thread has ended. */
	if (r && (l->target || !(r == -ESRCH || md_process_goes_on_alone(pid))))
		status = process_failed(l, pid, r, &err);
	close_versions(&process, &versions);
	if (lock >= 0)
		close(lock);
	return status;
}

/* ---- all processes ------------------------------------------------------------------------------ */

/* The file whose code the copies have to reach; NULL: the process's program. */
static const char *file_of_places(const struct live *l)
{
	return l->output || !l->targets.library ? l->output : l->target;
}

/* The worker reads these names: it tries a library only if one program has loaded it. */
static void note_program(struct live *l, const struct md_target *target)
{
	const struct md_target_program program = md_target_program(target);
	/* One that has ended meanwhile has no name. */
	json_t *name = l->programs && program.path[0] ? mp_json_string(program.path) : NULL;
	bool known = false;
	json_t *other;
	size_t i;

	json_array_foreach(l->programs, i, other) known = known || json_equal(other, name);
	if (name && !known)
		json_array_append(l->programs, name);
	json_decref(name);
}

/* What is taken in one process. */
static int add_place(struct live *l, struct md_place *found, const struct md_target *target,
		     struct mp_err *err)
{
	struct md_process process = {0};
	int r = md_process_open(target->pid, &process, err);

	if (!r) {
		r = md_place_add(found, &process, file_of_places(l), err);
		if (!r)
			note_program(l, target);
		/* It had loaded the library when it was looked for. */
		if (r == -ENOENT)
			r = l->targets.library && !l->output ? 0 : -EPERM;
	}
	md_process_close(&process);
	/* Nothing can be put into one whose first thread has ended. */
	return r && l->targets.searched &&
			       (md_target_has_ended(target) ||
				md_process_goes_on_alone(target->pid))
		       ? 0
		       : r;
}

/* Prints the addresses for --live-at, which are free in all processes. */
static int place(struct live *l)
{
	const size_t nr = l->nr_places > 0 ? (size_t)l->nr_places : 1;
	struct md_place found = {0};
	uint64_t vaddrs[MAX_PLACES];
	struct mp_err err = {0};
	int r = 0;

	for (size_t i = 0; !r && i < l->targets.nr; i++)
		r = add_place(l, &found, &l->targets.list[i], &err);
	if (!r && !found.nr_taken)
		r = mp_err_set(&err, ESRCH,
			       "%s: no process %s it any more whose first thread goes on",
			       l->target, l->targets.library ? "has loaded" : "runs");
	if (!r)
		r = md_place_choose(&found, nr, l->nr_places > 0, vaddrs, &err);
	md_place_fini(&found);
	if (r)
		return failed(r, &err);
	l->nr_found = nr;
	for (size_t i = 0; i < nr; i++)
		if (l->places)
			json_array_append_new(l->places, json_integer((json_int_t)vaddrs[i]));
		else
			printf("0x%" PRIx64 "\n", vaddrs[i]);
	return 0;
}

static void put_row(struct live *l, json_t *row)
{
	const char *state = json_string_value(json_object_get(row, "state"));

	if (l->rows)
		json_array_append(l->rows, row);
	if (!state)
		return;
	l->nr_found++;
	if (!l->rows)
		printf("process %d: %s; stood still for %.2f ms\n",
		       (int)json_integer_value(json_object_get(row, "pid")), state,
		       (double)json_integer_value(json_object_get(row, "stop_ns")) / 1e6);
}

/* Is it a target no more? It may have ended, or begun another program. */
static bool is_past(const struct live *l, const struct md_target *target)
{
	struct md_target one = *target;
	struct md_targets list = {.list = &one, .nr = 1};
	struct mp_err quiet;

	return md_target_has_ended(target) ||
	       (l->program && md_targets_keep_program(&list, l->program, &quiet) == -ESRCH);
}

/* Another run of this command for one process; its results join ours. */
static int run_child(struct live *l, const struct md_target *target)
{
	char number[16], limit[48], search[48], *counts = NULL, *program = NULL;
	char *argv[11] = {(char *)"morph", (char *)"live", (char *)"--json", limit, search};
	struct mp_err err = {0};
	json_t *out, *row;
	size_t i, n = 5;
	int r;

	snprintf(number, sizeof(number), "%d", (int)target->pid);
	snprintf(limit, sizeof(limit), "--limit=%.17g", l->max_private);
	snprintf(search, sizeof(search), "--search=%.17g", l->max_searched);
	if (l->counts) {
		if (asprintf(&counts, "--counts=%s", l->counts) < 0)
			return failed(mp_err_code(&err, ENOMEM), &err);
		argv[n++] = counts;
	}
	/* It may begin another program before it is its turn. */
	if (l->program) {
		if (asprintf(&program, "--program=%s", l->program) < 0) {
			free(counts);
			return failed(mp_err_code(&err, ENOMEM), &err);
		}
		argv[n++] = program;
	}
	argv[n++] = (char *)names[l->action];
	argv[n++] = number;
	argv[n++] = (char *)(l->given ? l->given : l->output);
	r = md_run_tool(argv, &out, &err);
	free(counts);
	free(program);
	if (r > 128)
		r = mp_err_set(&err, EIO, "process %d: the command for it was ended by signal %d",
			       (int)target->pid, r - 128);
	if (r < 0)
		r = process_failed(l, target->pid, r, &err);
	else if (r && is_past(l, target))
		r = 0;
	else
		json_array_foreach(json_object_get(out, "processes"), i, row) put_row(l, row);
	json_decref(out);
	return r;
}

static int each_process(struct live *l)
{
	int status = 0;

	for (size_t i = 0; i < l->targets.nr; i++) {
		const struct md_target *target = &l->targets.list[i];
		bool child = changes(l) && l->targets.searched && l->targets.nr > 1;
		int r;

		/* A child has a limit of its own. */
		alarm(child ? 0 : PROCESS_MOST_S);
		r = child		 ? run_child(l, target)
		    : l->action == ADOPT ? adopt(l, target->pid)
					 : each_version(l, target->pid);
		status = status ? status : r;
	}
	alarm(0);
	return status;
}

/* A program inherits which signals are ignored and blocked: SIGALRM may be one of them. */
static void begin_alarm(void)
{
	sigset_t set;

	signal(SIGALRM, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	alarm(PROCESS_MOST_S);
}

/* If the target is a path, undo takes back the versions of this program or library, and leaves those of others. */
static int choose_meant(struct live *l, struct mp_err *err)
{
	l->given = l->output ? l->output : strchr(l->target, '/') ? l->target : NULL;
	if (!l->given)
		return 0;
	l->meant = realpath(l->given, NULL);
	if (!l->meant)
		l->meant = strdup(l->given);
	return l->meant ? 0 : mp_err_code(err, ENOMEM);
}

static int run(struct live *l)
{
	struct mp_err err = {0};
	int r = l->action == UNDO ? choose_meant(l, &err) : 0;

	begin_alarm();
	if (!r)
		r = md_targets_find(l->target, l->program, &l->targets, &err);
	if (!r && l->action == ADOPT && strchr(l->target, '/'))
		r = md_targets_keep(&l->targets, l->target, l->output, &err);
	/* Nothing has to be taken back from a program that nobody runs, or that is gone. */
	if ((r == -ESRCH || r == -ENOENT) && l->action == UNDO && strchr(l->target, '/'))
		r = 0;
	if (r)
		return failed(r, &err);
	return l->action == PLACE ? place(l) : each_process(l);
}

static int print_json(struct live *l)
{
	json_t *root = md_cli_json_new("live");

	json_object_set_new(root, "action", json_string(names[l->action]));
	if (l->action != PLACE) {
		json_object_set(root, "processes", l->rows);
	} else if (json_array_size(l->places)) {
		json_object_set(root, "live_at", json_array_get(l->places, 0));
		json_object_set(root, "places", l->places);
		json_object_set(root, "programs", l->programs);
	}
	return md_cli_json_print(root);
}

static void put_none(const struct live *l)
{
	fputs("No version ", stdout);
	if (l->given) {
		fputs("of ", stdout);
		mp_text_put(stdout, l->given);
		fputs(" ", stdout);
	}
	puts(l->target ? "is in the process." : "is in any process.");
}

int md_morph_live(struct md_cli *cli, int argc, char **argv)
{
	struct live l = {.cli = cli, .max_private = MAX_PRIVATE, .max_searched = MAX_SEARCHED};
	int r;

	md_cli_parse(&usage, argc, argv, &l, cli);
	if (cli->json) {
		l.rows = json_array();
		l.places = json_array();
		l.programs = json_array();
	}
	r = run(&l);
	md_targets_free(&l.targets);
	free(l.meant);
	if (cli->json) {
		if (print_json(&l))
			r = MP_EXIT_FAILED;
		json_decref(l.rows);
		json_decref(l.places);
		json_decref(l.programs);
	} else if (!r && !l.nr_found) {
		put_none(&l);
	}
	return r;
}
