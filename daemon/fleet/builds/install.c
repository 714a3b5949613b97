// SPDX-License-Identifier: Apache-2.0
/* install - see install.h. */
#include "daemon/fleet/builds/install.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/code/originals.h"
#include "daemon/fleet/rollout/lease.h"
#include "daemon/morph/request.h"
#include "daemon/policy/deny.h"
#include "daemon/worker/file_state.h"
#include "daemon/worker/work_dir.h"
#include "libprof/store/jobs/store_history.h"

/* One file, while it is worked on. */
struct work {
	struct md_install *in;
	const struct md_program *program;
	const struct md_wanted *wanted;
	struct md_install_result *result;
	char *original;	     /* path of the original's bytes */
	bool to_worker;	     /* a rule's audit comes first */
	bool from_fleet;     /* what is in place came from the fleet */
	char path[PATH_MAX]; /* of the output, when it is proved */
	char new[PATH_MAX];  /* until then */
	char what[600];	     /* which build, for the history */
};

static int end(struct work *w, const char *state, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int end(struct work *w, const char *state, const char *fmt, ...)
{
	va_list args;

	w->result->state = state;
	va_start(args, fmt);
	vsnprintf(w->result->why, sizeof(w->result->why), fmt, args);
	va_end(args);
	return 0;
}

/* ---- what is there ------------------------------------------------------------------------- */

/* Was the version that is in place now taken from the fleet? */
static bool is_from_fleet(const struct work *w)
{
	struct mp_decision *list;
	struct mp_job job;
	bool found = false;
	size_t nr;

	if (!w->in->store || mp_store_find_job(w->in->store, w->program->path, &job, NULL))
		return false;
	if (!mp_store_list_history(w->in->store, w->program->path, 0, &list, &nr, NULL)) {
		for (size_t i = 0; i < nr; i++)
			found |= list[i].round == job.round && !strcmp(list[i].step, "write") &&
				 !strcmp(list[i].verdict, MD_REQUEST_FLEET);
		mp_store_free_history(list, nr);
	}
	mp_store_fini_job(&job);
	return found;
}

/* Are the bytes of @path those that this host has made of the build? */
static bool is_made(const struct work *w, const char *path)
{
	const struct md_wanted *wanted = w->wanted;
	struct md_whole_file now;
	struct md_leases leases;
	char layout[MP_JOB_HASH_MAX];
	bool same = !md_whole_file_open(path, &now, NULL);

	if (!same)
		return false;
	memcpy(w->result->hash, now.hash, MD_SHA256_SIZE);
	same = !memcmp(now.hash, wanted->output_hash, MD_SHA256_SIZE);
	md_whole_file_close(&now);
	w->result->made = same;
	/* Another version of Morph makes other bytes: then the lease knows them. */
	if (same || md_file_hash(path, layout) || md_leases_open(w->in->state_dir, &leases, NULL))
		return same;
	for (size_t i = 0; i < leases.nr && !same; i++) {
		const struct md_lease *l = &leases.list[i];

		same = !strcmp(l->path, w->program->path) && l->release == wanted->release &&
		       !strcmp(l->options, wanted->options) &&
		       !strcmp(l->version, wanted->version) && !strcmp(l->layout, layout);
	}
	md_leases_close(&leases);
	w->result->made = same;
	return same;
}

/* Does the version, at @w->path, wait for the worker already? */
static bool is_waiting(struct work *w)
{
	struct mp_job job;
	bool waits;

	if (!w->in->store || mp_store_find_job(w->in->store, w->program->path, &job, NULL))
		return false;
	waits = w->from_fleet && job.state != MP_JOB_FAILED && job.state != MP_JOB_NOT_FASTER &&
		job.state != MP_JOB_UNDONE && job.state != MP_JOB_ADOPTED &&
		job.state != MP_JOB_KEPT && job.output && job.output[0] && is_made(w, job.output);
	if (waits)
		snprintf(w->path, sizeof(w->path), "%s", job.output);
	mp_store_fini_job(&job);
	return waits;
}

static int find_original(struct work *w, struct mp_err *err)
{
	int r = 0;

	if (!w->program->is_output)
		w->original = strdup(w->program->path);
	else
		r = md_original_find(&w->program->id, NULL, &w->original);
	if (r == -EACCES)
		return mp_err_set(err, EACCES, "%s: cannot be read", w->original);
	if (r)
		return mp_err_set(err, -r,
				  "%s: is an optimised version, and its original was not found",
				  w->program->path);
	return w->original ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

/* ---- where the output goes ------------------------------------------------------------------ */

static bool has_audit(const struct md_rule *rule)
{
	return rule && rule->audit == MD_AUDIT_COMMAND;
}

static int choose_path(struct work *w, struct mp_err *err)
{
	struct md_request request = {.path = w->program->path, .backup_dir = w->in->backup_dir};
	struct md_work_dir dir;
	int r;

	if (w->in->output) {
		snprintf(w->path, sizeof(w->path), "%s", w->in->output);
		r = 0;
	} else if (w->to_worker && !w->in->dry_run) {
		r = md_work_dir_open(w->in->state_dir, w->program->path, &dir, err);
		if (!r)
			snprintf(w->path, sizeof(w->path), "%s", md_work_path(&dir, "output").text);
	} else {
		r = md_request_name_output(&request, &w->program->id, w->path, sizeof(w->path),
					   err);
	}
	if (!r && snprintf(w->new, sizeof(w->new), "%s.fleet", w->path) >= PATH_MAX - 16)
		r = mp_err_set(err, ENAMETOOLONG, "%s: the name is too long", w->path);
	return r;
}

/* ---- make, and verify ------------------------------------------------------------------------ */

static bool is_rejected(const struct work *w)
{
	bool rejected = false;
	char hash[33];

	return w->in->store && !md_file_hash(w->new, hash) &&
	       !mp_store_is_rejected(w->in->store, &w->program->id, hash, &rejected, NULL) &&
	       rejected;
}

/* Return: 0; 1: there is a result; -errno. */
static int make(struct work *w, struct mp_err *err)
{
	int r = md_wanted_make(w->in->conn, w->wanted, w->original, w->new, w->result->hash, err);

	w->result->made = !r;
	if (r == -EPERM)
		return end(w, "refused", "not proved: %s", err->msg), 1;
	if (r == -ENOEXEC || r == -ESTALE)
		return end(w, "failed", "%s", err->msg), 1;
	if (r)
		return r;
	if (is_rejected(w)) {
		unlink(w->new);
		return end(w, "rejected", "this very version was undone or was not faster here"), 1;
	}
	return 0;
}

/* ---- put in place -------------------------------------------------------------------------- */

static struct md_request request_of(const struct work *w)
{
	return (struct md_request){.store = w->in->store,
				   .db = w->in->db,
				   .backup_dir = w->in->backup_dir,
				   .path = w->program->path};
}

/* Puts the original back. */
static int undo(struct work *w, struct mp_err *err)
{
	struct md_request request = request_of(w);
	int r = md_request_undo(&request, err);

	if (r > 0)
		r = mp_err_set(err, EIO, "%s: %s", w->program->path, request.why);
	md_request_fini(&request);
	return r;
}

/*
 * The host may have the build for a time, which is noted before the build is in place: also a host that is
 * killed in between knows when to undo it. Return: 0; 1: it may not, and there is a result; -errno.
 */
static int take_lease(struct work *w, const char *output, struct mp_err *err)
{
	struct md_lease lease = {.release = w->wanted->release};
	struct md_leases leases;
	enum md_offer answer;
	char cause[256];
	int r;

	snprintf(lease.path, sizeof(lease.path), "%s", w->program->path);
	snprintf(lease.options, sizeof(lease.options), "%s", w->wanted->options);
	snprintf(lease.version, sizeof(lease.version), "%s", w->wanted->version);
	lease.id = w->wanted->id;
	r = md_file_hash(output, lease.layout);
	if (r)
		return mp_err_set(err, -r, "%s: %s", output, strerror(-r));
	r = md_lease_ask(w->in->conn, &lease, time(NULL), &answer, cause, sizeof(cause), err);
	if (r)
		return r;
	if (answer > MD_OFFER_KEEP)
		return end(w, "failed", "this host may not have it any more: %s", cause), 1;
	r = md_leases_open(w->in->state_dir, &leases, err);
	if (r)
		return r;
	r = md_leases_put(&leases, &lease, err);
	md_leases_close(&leases);
	return r;
}

static int hand_over(struct work *w, struct mp_err *err)
{
	struct md_request request = request_of(w);
	int r = take_lease(w, w->path, err);

	if (r)
		return r > 0 ? 0 : r;
	r = md_request_take(&request, &w->program->id, w->path,
			    w->to_worker ? MP_JOB_WRITTEN : MP_JOB_ADVISED, w->what, err);

	if (!r && !w->to_worker) {
		md_request_fini(&request);
		r = md_request_adopt(&request, err);
	}
	if (r > 0)
		r = end(w, "rejected", "it may not be replaced: %s", request.why);
	else if (!r)
		r = w->to_worker ? end(w, "waiting", "proved; the policy's audit comes first")
				 : end(w, "installed", "proved, and in place");
	md_request_fini(&request);
	return r;
}

/* The proved output gets its name, then its job, then the place of the file. */
static int put(struct work *w, struct mp_err *err)
{
	int r = 0;

	if (w->in->dry_run) {
		unlink(w->new);
		return end(w, "proved", "proved; nothing was changed");
	}
	if (rename(w->new, w->path))
		return mp_err_set(err, errno, "%s: %s", w->path, strerror(errno));
	if (w->in->output)
		return end(w, "proved", "proved, and written to %.400s", w->path);
	if (w->program->is_output)
		r = undo(w, err);
	return r ? r : hand_over(w, err);
}

/* Says so if other bytes were made than the builder's. */
static void compare(const struct work *w)
{
	struct md_install_result *result = w->result;
	size_t size = strlen(result->why);

	if (result->made && memcmp(result->hash, w->wanted->output_hash, MD_SHA256_SIZE) != 0)
		snprintf(result->why + size, sizeof(result->why) - size,
			 "; not the builder's bytes, which Morph %.100s made", w->wanted->version);
}

/* ---- one file ------------------------------------------------------------------------------ */

static int install(struct work *w, struct mp_err *err)
{
	bool changes = !w->in->dry_run && !w->in->output;
	char why[512];
	int r;

	if (changes && is_made(w, w->program->path)) {
		w->result->unchanged = true;
		/* A new release may have the same bytes. */
		r = take_lease(w, w->program->path, err);
		return r ? (r > 0 ? 0 : r) : end(w, "installed", "is in place");
	}
	if (changes && md_deny(w->in->policy, w->program->path, why, sizeof(why)))
		return end(w, "rejected", "%s", why);
	if (changes && w->program->is_output && !w->from_fleet && !w->in->named)
		return end(w, "rejected", "a version that this host made is in place");
	if (changes && w->to_worker && is_waiting(w)) {
		w->result->unchanged = true;
		r = take_lease(w, w->path, err);
		return r ? (r > 0 ? 0 : r) : end(w, "waiting", "waits for the policy's audit");
	}
	r = find_original(w, err);
	if (r == -ENOENT)
		return end(w, "failed", "%s", err->msg);
	if (!r)
		r = choose_path(w, err);
	if (!r)
		r = make(w, err);
	return r ? (r > 0 ? 0 : r) : put(w, err);
}

/* A withdrawn build. What this host made itself stays. */
static int withdraw(struct work *w, struct mp_err *err)
{
	int r;

	if (!w->program->is_output || !w->from_fleet) {
		w->result->unchanged = true;
		return end(w, "undone", "it is not in place");
	}
	if (w->in->dry_run || w->in->output)
		return end(w, "proved", "it would be undone");
	r = undo(w, err);
	return r ? r : end(w, "undone", "it was withdrawn, and the original is back");
}

int md_install_do(struct md_install *install_, const struct md_program *program,
		  const struct md_wanted *wanted, struct md_install_result *result,
		  struct mp_err *err)
{
	struct work w = {.in = install_, .program = program, .wanted = wanted, .result = result};
	int r;

	*result = (struct md_install_result){.state = "failed"};
	if (!mp_id_equal(&program->id, &wanted->id))
		return end(&w, "failed", "the file is another one now");
	w.to_worker = !install_->output &&
		      has_audit(md_policy_rule(install_->policy, program->path));
	w.from_fleet = is_from_fleet(&w);
	snprintf(w.what, sizeof(w.what), "the fleet's build%s%.400s of Morph %.100s, release %d",
		 wanted->options[0] ? " " : "", wanted->options, wanted->version,
		 (int)wanted->release);
	r = wanted->undo ? withdraw(&w, err) : install(&w, err);
	if (!r)
		compare(&w);
	free(w.original);
	return r;
}
