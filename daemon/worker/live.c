// SPDX-License-Identifier: Apache-2.0
/* live - jobs whose versions are put in place in turns; see live.h. */
#include "daemon/worker/live.h"
#include "daemon/worker/file_state.h"
#include "daemon/worker/running.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/clock.h"
#include "libprof/base/grow.h"

static void free_live(struct md_live *live)
{
	md_spare_drop(live);
	if (live->forget)
		live->forget(live);
	free(live->watches);
	free(live->told);
	free(live->program);
	free(live->path);
	free(live);
}

static struct md_live **find(const struct md_worker *worker, const char *path)
{
	struct md_live **at = (struct md_live **)&worker->live;

	while (*at && strcmp((*at)->path, path) != 0)
		at = &(*at)->next;
	return at;
}

static bool is_of(const struct md_live *live, const struct mp_job *job)
{
	return live && live->state == job->state && live->round == job->round;
}

int md_live_of(struct md_task *t, struct md_live **out)
{
	struct md_worker *w = t->worker;
	struct md_live **at = find(w, t->job->path), *live = *at;

	*out = live;
	/* The store, which others may write, may say something else while a step waits for its child. */
	if (is_of(live, t->job) || (live && live->busy))
		return 0;
	if (live) {
		*at = live->next;
		free_live(live);
	}
	if (!w->cpu_time)
		w->cpu_time = md_cpu_time_open(t->err);
	if (!w->cpu_time)
		return -ENOTSUP;
	live = calloc(1, sizeof(*live));
	if (live) {
		live->path = strdup(t->job->path);
		live->program = strdup(md_running_program(t).path);
	}
	if (!live || !live->path || !live->program) {
		if (live) {
			free(live->program);
			free(live->path);
		}
		free(live);
		return mp_err_code(t->err, ENOMEM);
	}
	live->round = t->job->round;
	live->state = t->job->state;
	live->running = md_running_is(&t->dir);
	live->next = w->live;
	w->live = live;
	*out = live;
	return 0;
}

bool md_live_knows(const struct md_task *t, enum md_variant *there)
{
	const struct md_live *live = *find(t->worker, t->job->path);
	struct stat st;

	if (!is_of(live, t->job) || !live->file.st_ino || lstat(live->path, &st) ||
	    !md_file_is_as(&st, &live->file))
		return false;
	*there = live->there;
	return true;
}

/* The file has @index, which may have been another file's before. Return: 0, -errno. */
static int add_watch(struct md_task *t, struct md_live *live, enum md_variant variant, int index)
{
	struct md_watch new = {.variant = variant, .index = index};
	int ret = md_cpu_time_read(t->worker->cpu_time, index, &new.before);

	if (ret)
		return mp_err_set(t->err, -ret, "the time of processes: %s", strerror(-ret));
	/* Those that run already: none, unless the file was there when this worker began. */
	new.before.incomplete = false;
	for (size_t i = 0; i < live->nr_watches; i++) {
		struct md_watch *old = &live->watches[i];

		if (old->index != index || old->over)
			continue;
		if (old->variant == variant)
			return 0;
		old->after = new.before;
		old->over = true;
	}
	if (mp_resize(live->watches, live->nr_watches + 1))
		return mp_err_code(t->err, ENOMEM);
	live->watches[live->nr_watches++] = new;
	return 0;
}

/* From now on, processes of the file at the path count for @variant. */
static int watch(struct md_task *t, struct md_live *live, enum md_variant variant)
{
	const struct stat before = live->file;
	dev_t dev;
	ino_t ino;
	int index, ret;

	/* Processes that ended until now executed an earlier file, which may have had the same number. */
	md_cpu_time_poll(t->worker->cpu_time);
	if (lstat(live->path, &live->file))
		return mp_err_set(t->err, errno, "%s: %s", live->path, strerror(errno));
	live->proved &= md_file_is_as(&live->file, &before);
	live->there = variant;
	ret = md_cpu_time_number(live->program, &dev, &ino);
	/* While the program is not there, nothing begins to run it. */
	if (ret == -ENOENT && strcmp(live->path, live->program) != 0)
		return 0;
	if (ret)
		return mp_err_set(t->err, -ret, "%s: %s", live->program, strerror(-ret));
	index = md_cpu_time_watch(t->worker->cpu_time, dev, ino);
	if (index < 0)
		return mp_err_code(t->err, -index);
	return add_watch(t, live, variant, index);
}

static bool is_there(const struct md_task *t, const struct md_live *live, enum md_variant variant)
{
	/* Processes that have started since lack it; and what they have, only they know. */
	if (live->running && (variant != MD_ORIGINAL || !live->file.st_ino))
		return false;
	if (live->file.st_ino)
		return live->there == variant;
	return variant == MD_ORIGINAL && !strcmp(t->now.hash, t->job->file_hash);
}

/* By morph-optimize, which reads the whole of both files, and writes one. */
static int replace(struct md_task *t, struct md_live *live, enum md_variant variant,
		   struct md_child_result *r)
{
	int ret;

	/* The original comes back in this way at the end of turns. */
	if (variant == MD_ORIGINAL) {
		md_spare_drop(live);
		return md_task_restore(t, r);
	}
	md_spare_keep(live);
	ret = md_task_replace(t, variant, r);
	if (ret || r->end != MD_CHILD_EXITED || r->status)
		md_spare_drop(live);
	else
		md_spare_take(t, live);
	return ret;
}

/* Is the job still as this step found it? Return: 0; -ESTALE: it is not; -errno. */
static int check_job(struct md_task *t)
{
	struct mp_job now;
	bool same;
	int ret = mp_store_find_job(t->worker->store, t->job->path, &now, t->err);

	if (ret && ret != -ENOENT)
		return ret;
	same = !ret && now.state == t->job->state && now.round == t->job->round;
	mp_store_fini_job(&now);
	return same ? 0
		    : mp_err_set(t->err, ESTALE, "somebody has changed what is to be done with it");
}

/* A command that failed may have renamed the version to the path before. So the file at the path is read again. */
static void look_anew(struct md_task *t, struct md_live *live)
{
	struct mp_err why;

	live->file = (struct stat){0};
	/* If it cannot be read, its hash is none, and so is not the original's. */
	(void)md_file_look(live->path, &t->now, &why);
}

static int put(struct md_task *t, struct md_live *live, enum md_variant variant,
	       struct md_child_result *r)
{
	int ret;

	if (is_there(t, live, variant))
		ret = 0;
	else if (live->running)
		ret = md_running_put(t, variant, r);
	else if (md_spare_swap(t, live, variant))
		ret = 0;
	else
		ret = replace(t, live, variant, r);
	if (ret)
		return ret;
	if (r->end != MD_CHILD_EXITED || r->status)
		return 1;
	return watch(t, live, variant);
}

/*
 * `morph undo' does not wait for the worker: it notes what it was asked, and then puts the original back. So the job is
 * looked at behind the change, too: what was noted before that, the original of the caller follows, and if it was noted
 * later, that of morph undo.
 */
int md_live_put(struct md_task *t, struct md_live *live, enum md_variant variant,
		struct md_child_result *r)
{
	int ret = variant == MD_ORIGINAL ? 0 : check_job(t);

	*r = (struct md_child_result){.end = MD_CHILD_EXITED};
	if (!ret) {
		ret = put(t, live, variant, r);
		if (ret)
			look_anew(t, live);
	}
	return ret || variant == MD_ORIGINAL ? ret : check_job(t);
}

int md_live_put_back(struct md_task *t, struct md_live *live)
{
	struct md_child_result r;
	int ret = md_live_put(t, live, MD_ORIGINAL, &r);

	return ret > 0 ? mp_err_set(t->err, EIO, "the original could not be put back: %s", r.reason)
		       : ret;
}

bool md_live_leave(struct md_task *t)
{
	struct md_live *live = *find(t->worker, t->job->path);

	if (!live || live->running)
		return false;
	if (md_spare_swap(t, live, MD_ORIGINAL)) {
		live->there = MD_ORIGINAL;
		return true;
	}
	md_spare_drop(live);
	return false;
}

int md_live_check(struct md_task *t, struct md_live *live)
{
	enum md_variant there;
	int ret;

	/* Crashes of the other job's versions in these processes are not this one's. */
	if (live->waited && !md_live_waits(live)) {
		live->waited = false;
		live->nr_watches = 0;
		live->file = (struct stat){0};
	}
	if (md_live_knows(t, &there))
		return 0;
	/* Somebody may have changed the mode or the owner, which the spare one lacks. */
	md_spare_drop(live);
	live->file = (struct stat){0};
	ret = md_live_put_back(t, live);
	return ret ? ret : 1;
}

bool md_live_waits(const struct md_live *live)
{
	const struct md_live *other = live->next;

	/* Those that began earlier are behind it. */
	while (other && strcmp(other->program, live->program) != 0)
		other = other->next;
	return other;
}

int md_live_wait(struct md_task *t, struct md_live *live)
{
	live->waited = true;
	return md_task_note(t, "it waits: processes of the same program are counted or tried for "
			       "another file");
}

int md_live_failed(struct md_task *t, struct md_live *live)
{
	int ret;

	live->file = (struct stat){0};
	ret = md_live_put_back(t, live);
	live->failed_s = mp_now_s();
	return ret ? ret : (int)++live->failures;
}

int md_live_may_put(struct md_task *t, const struct md_live *live)
{
	struct md_done done;
	int ret;

	if (live->failures && mp_now_s() - live->failed_s < MD_LIVE_PAUSE_S * t->worker->pace)
		return 0;
	ret = md_live_done(t->worker, live, live->there, &done);
	return ret ? mp_err_set(t->err, -ret, "the time of processes: %s", strerror(-ret))
		   : done.running > 0;
}

bool md_live_is_filtered(const struct md_worker *w, const struct md_live *live)
{
	/* In running processes, morph live asks the filters, and nothing starts. */
	for (size_t i = 0; !live->running && i < live->nr_watches; i++)
		if (!live->watches[i].over &&
		    md_cpu_time_is_filtered(w->cpu_time, live->watches[i].index))
			return true;
	return false;
}

int md_live_done(struct md_worker *w, const struct md_live *live, enum md_variant variant,
		 struct md_done *out)
{
	*out = (struct md_done){0};
	for (size_t i = 0; i < live->nr_watches; i++) {
		const struct md_watch *watch = &live->watches[i];
		struct md_cpu_sum sum = watch->after;
		int ret = 0;

		if (watch->variant != variant)
			continue;
		if (!watch->over)
			ret = md_cpu_time_read(w->cpu_time, watch->index, &sum);
		if (ret)
			return ret;
		out->run_s += (double)(sum.cpu_ns - watch->before.cpu_ns) / 1e9;
		out->user_s += (double)(sum.user_ns - watch->before.user_ns) / 1e9;
		out->system_s += (double)(sum.system_ns - watch->before.system_ns) / 1e9;
		out->processes += sum.nr_exited - watch->before.nr_exited;
		out->crashes += sum.nr_killed - watch->before.nr_killed;
		if (!watch->over)
			out->running += sum.nr_live;
		out->incomplete |= !watch->over && sum.incomplete;
	}
	return 0;
}

int md_live_crashes(struct md_worker *w, const struct md_live *live, enum md_variant variant,
		    uint64_t *crashes)
{
	*crashes = 0;
	for (size_t i = 0; i < live->nr_watches; i++) {
		const struct md_watch *watch = &live->watches[i];
		uint64_t nr = watch->after.nr_killed;
		int ret = 0;

		if (watch->variant != variant)
			continue;
		if (!watch->over)
			ret = md_cpu_time_crashes(w->cpu_time, watch->index, &nr);
		if (ret)
			return ret;
		*crashes += nr - watch->before.nr_killed;
	}
	return 0;
}

void md_live_keep(struct md_worker *w, const struct mp_job *jobs, size_t nr)
{
	for (struct md_live **at = &w->live; *at;) {
		struct md_live *live = *at;
		bool keep = live->busy;

		for (size_t i = 0; !keep && i < nr; i++)
			keep = !strcmp(jobs[i].path, live->path) && is_of(live, &jobs[i]);
		if (keep) {
			at = &live->next;
			continue;
		}
		*at = live->next;
		free_live(live);
	}
}

void md_live_drop(struct md_worker *w, const char *path)
{
	struct md_live **at = find(w, path), *live = *at;

	if (!live || live->busy)
		return;
	*at = live->next;
	free_live(live);
}

bool md_live_has(const struct md_worker *w, const char *path)
{
	return *find(w, path);
}

bool md_live_is_news(struct md_worker *w, const char *path, const char *text)
{
	struct md_live *live = *find(w, path);
	bool news = !live || strcmp(live->told ? live->told : "", text) != 0;

	if (live && news) {
		free(live->told);
		live->told = strdup(text); /* without memory, it is told again */
	}
	return news;
}

bool md_live_any(const struct md_worker *w)
{
	return w->live;
}

void md_live_fini(struct md_worker *w)
{
	while (w->live) {
		struct md_live *live = w->live;

		w->live = live->next;
		free_live(live);
	}
	if (w->cpu_time)
		md_cpu_time_close(w->cpu_time);
	w->cpu_time = NULL;
}
