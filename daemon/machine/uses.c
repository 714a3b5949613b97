// SPDX-License-Identifier: Apache-2.0
/* uses - when versions of Morph lay in programs' places; see saved.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/machine/saved.h"
#include "libprof/base/grow.h"
#include "libprof/store/jobs/store_history.h"

struct uses {
	struct md_use *list;
	size_t nr;
};

void md_uses_free(struct md_use *uses, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(uses[i].path);
	free(uses);
}

static bool is_in_use(enum mp_job_state state)
{
	return state == MP_JOB_ADOPTED || state == MP_JOB_KEPT;
}

/* The use of @path that has not ended. NULL: none. */
static struct md_use *find_open(const struct uses *uses, const char *path)
{
	for (size_t i = uses->nr; i-- > 0;)
		if (!uses->list[i].ended && !strcmp(uses->list[i].path, path))
			return &uses->list[i];
	return NULL;
}

/* Return: NULL: no memory. */
static struct md_use *begin(struct uses *uses, const char *path, const struct mp_id *id,
			    int64_t from_s, const struct mp_job_gain *gain)
{
	struct md_use use = {
		.path = strdup(path), .id = *id, .from_s = from_s, .to_s = from_s, .gain = *gain};

	if (!use.path || mp_resize(uses->list, uses->nr + 1)) {
		free(use.path);
		return NULL;
	}
	uses->list[uses->nr] = use;
	return &uses->list[uses->nr++];
}

static int take_decision(struct uses *uses, const struct mp_decision *d)
{
	struct md_use *use = find_open(uses, d->path);

	if (!use)
		return !is_in_use(d->state) || begin(uses, d->path, &d->id, d->when_s, &d->gain)
			       ? 0
			       : -ENOMEM;
	use->to_s = d->when_s;
	use->ended = !is_in_use(d->state);
	if (d->gain.ratio > 0 && !use->ended)
		use->gain = d->gain;
	return 0;
}

/* The job knows best: the oldest rows of the history are dropped. */
static int take_job(struct uses *uses, const struct mp_job *job, int64_t now_s)
{
	struct md_use *use = find_open(uses, job->path);

	if (!is_in_use(job->state))
		return 0;
	if (!use)
		use = begin(uses, job->path, &job->id, job->adopted_s, &job->gain);
	if (!use)
		return -ENOMEM;
	use->job = job;
	use->gain = job->gain;
	use->to_s = now_s;
	if (job->adopted_s)
		use->from_s = job->adopted_s;
	return 0;
}

/* A version without a job was put in place when the file was changed. */
static int take_file(struct uses *uses, const struct md_machine_program *p, int64_t now_s)
{
	struct md_use *use;
	struct stat st;

	if (p->file != MD_FILE_OUTPUT || !p->module ||
	    (p->job && (is_in_use(p->job->state) || !mp_job_state_ends(p->job->state))) ||
	    lstat(p->path, &st))
		return 0;
	use = begin(uses, p->path, &p->module->id, st.st_ctim.tv_sec, &p->gain);
	if (use)
		use->to_s = now_s;
	return use ? 0 : -ENOMEM;
}

int md_uses_find(const struct md_machine *machine, const struct mp_decision *decisions,
		 size_t nr_decisions, int64_t now_s, struct md_use **out, size_t *nr)
{
	struct uses uses = {0};
	int r = 0;

	for (size_t i = 0; i < nr_decisions && !r; i++)
		r = take_decision(&uses, &decisions[i]);
	for (size_t i = 0; i < machine->nr_jobs && !r; i++)
		r = take_job(&uses, &machine->jobs[i], now_s);
	/* A use that no job continues has ended with what is known of it. */
	for (size_t i = 0; i < uses.nr; i++)
		uses.list[i].ended |= !uses.list[i].job;
	for (size_t i = 0; i < machine->nr_programs && !r; i++)
		r = take_file(&uses, &machine->programs[i], now_s);
	*out = uses.list;
	*nr = uses.nr;
	if (!r)
		return 0;
	md_uses_free(uses.list, uses.nr);
	*out = NULL;
	*nr = 0;
	return r;
}
