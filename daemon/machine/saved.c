// SPDX-License-Identifier: Apache-2.0
/* saved - samples of days and of uses become seconds; see saved.h. */
#include "daemon/machine/saved.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/store/fleet/fleet_base.h"
#include "libprof/store/jobs/store_history.h"

#define DAY_S ((int64_t)MP_SECONDS_PER_DAY)

void md_saved_fini(struct md_saved *saved)
{
	for (size_t i = 0; i < saved->nr_programs; i++)
		free(saved->programs[i].path);
	free(saved->programs);
	*saved = (struct md_saved){0};
}

double md_saved_percent(const struct md_saved_time *time, double saved)
{
	double would = time->used + saved;

	return would > 0 ? 100 * saved / would : 0;
}

/* ---- samples of each day ---------------------------------------------------------------------- */

struct counts {
	size_t nr; /* modules */
	const struct mp_module *modules;
	uint64_t *of[MD_SAVED_DAYS + 1]; /* since the beginning of each day; the last one is zero */
	uint64_t all[MD_SAVED_DAYS + 1];
	struct mp_program_activity *activity; /* since ever */
	size_t nr_activity;
};

static void fini_counts(struct counts *c)
{
	for (size_t d = 0; d <= MD_SAVED_DAYS; d++)
		free(c->of[d]);
	free(c->activity);
}

static int count_since(struct mp_store *store, struct counts *c, size_t d, int64_t since_s,
		       struct mp_err *err)
{
	struct mp_module *list = NULL;
	size_t nr = 0;
	int r = mp_store_list_modules(store, since_s, &list, &nr, err);

	if (!r)
		r = mp_fleet_keep_own(store, since_s, list, nr, err);
	for (size_t i = 0; i < nr && !r; i++) {
		c->all[d] += list[i].nr_samples;
		for (size_t k = 0; k < c->nr; k++)
			if (c->modules[k].key == list[i].key)
				c->of[d][k] = list[i].nr_samples;
	}
	mp_store_free_modules(list, nr);
	return r;
}

static int count(struct mp_store *store, const struct md_machine *machine, int64_t first_day,
		 struct counts *c, struct mp_err *err)
{
	int r = mp_store_begin(store, err);

	if (r)
		return r;
	c->nr = machine->nr_modules;
	c->modules = machine->modules;
	for (size_t d = 0; d <= MD_SAVED_DAYS && !r; d++) {
		c->of[d] = calloc(c->nr + 1, sizeof(*c->of[d]));
		if (!c->of[d])
			r = mp_err_set(err, ENOMEM, "out of memory");
		else if (d < MD_SAVED_DAYS)
			r = count_since(store, c, d, (first_day + (int64_t)d) * DAY_S, err);
	}
	if (!r)
		r = mp_store_list_activity(store, 0, &c->activity, &c->nr_activity, err);
	mp_store_rollback(store);
	return r;
}

static size_t find_module(const struct counts *c, const struct mp_id *id)
{
	size_t k = 0;

	while (k < c->nr && !mp_id_equal(&c->modules[k].id, id))
		k++;
	return k;
}

/* Samples of module @k on the day @d. */
static double of_day(const struct counts *c, size_t k, size_t d)
{
	return c->of[d][k] > c->of[d + 1][k] ? (double)(c->of[d][k] - c->of[d + 1][k]) : 0;
}

/* ---- seconds that a sample stands for --------------------------------------------------------- */

/* The part of the session that lies on the day. */
static double share_of_day(const struct mp_session *s, int64_t begin_s)
{
	int64_t from = s->start_s > begin_s ? s->start_s : begin_s;
	int64_t to = s->last_s + 1 < begin_s + DAY_S ? s->last_s + 1 : begin_s + DAY_S;

	return to > from ? (double)(to - from) / (double)(s->last_s + 1 - s->start_s) : 0;
}

/* The mean of the day's sessions. 0: no session says how often it sampled. */
static double period_of_day(const struct md_machine *m, int64_t begin_s)
{
	double samples = 0, seconds = 0, last = 0;

	for (size_t i = m->nr_sessions; i-- > 0;) {
		const struct mp_session *s = &m->sessions[i];
		double nr = (double)s->ledger.attributed * share_of_day(s, begin_s);

		if (!s->rate_hz)
			continue;
		last = 1 / (double)s->rate_hz;
		samples += nr;
		seconds += nr * last;
	}
	return samples > 0 ? seconds / samples : last;
}

/* ---- uses ------------------------------------------------------------------------------------- */

/* The part of the day's samples that were taken during the use. */
static double part_of_day(const struct md_use *use, int64_t begin_s, int64_t end_s)
{
	int64_t from = use->from_s > begin_s ? use->from_s : begin_s;
	int64_t to = use->to_s < end_s ? use->to_s : end_s;

	return to > from ? (double)(to - from) / (double)(end_s - begin_s) : 0;
}

/*
 * On the day of its adoption, samples of the original are counted, too. For a program that is still in use, the job
 * says how many there were before. Return: samples of that day behind the adoption; negative: not known.
 */
static double behind_adoption(const struct counts *c, const struct md_use *use, size_t k, size_t d)
{
	for (size_t i = 0; use->job && i < c->nr_activity; i++) {
		double since;

		if (c->activity[i].module != c->modules[k].key || !c->activity[i].activity.app)
			continue;
		since = (double)c->activity[i].activity.app - (double)use->job->before_samples -
			(double)c->of[d + 1][k];
		return fmin(fmax(since, 0), of_day(c, k, d));
	}
	return -1;
}

static bool is_measured(const struct mp_job_gain *gain)
{
	return gain->ratio > 0 && gain->lowest > 0 && gain->highest > 0 && gain->ratio < 1e3 &&
	       gain->highest < 1e3;
}

static struct md_saved_program *find_program(struct md_saved *saved, const struct md_use *use)
{
	struct md_saved_program *p;

	for (size_t i = 0; i < saved->nr_programs; i++)
		if (!strcmp(saved->programs[i].path, use->path))
			return &saved->programs[i];
	if (mp_resize(saved->programs, saved->nr_programs + 1))
		return NULL;
	p = &saved->programs[saved->nr_programs];
	*p = (struct md_saved_program){.path = strdup(use->path)};
	if (!p->path)
		return NULL;
	saved->nr_programs++;
	return p;
}

static void add(struct md_saved_time *to, double used, const struct mp_job_gain *gain)
{
	if (!is_measured(gain))
		return;
	to->saved += used * (gain->ratio - 1);
	to->least += used * (gain->lowest - 1);
	to->most += used * (gain->highest - 1);
}

static int add_use(struct md_saved *saved, const struct counts *c, const struct md_use *use,
		   const double *periods, int64_t now_s)
{
	size_t k = find_module(c, &use->id);
	struct md_saved_program *p;

	if (use->to_s <= saved->since_s && use->ended)
		return 0;
	p = find_program(saved, use);
	if (!p)
		return -ENOMEM;
	p->in_use |= !use->ended;
	p->gain = use->gain;
	for (size_t d = 0; d < MD_SAVED_DAYS && k < c->nr; d++) {
		int64_t begin_s = (saved->first_day + (int64_t)d) * DAY_S, end_s = begin_s + DAY_S;
		double nr = -1, used;

		if (begin_s < saved->since_s)
			begin_s = saved->since_s < end_s ? saved->since_s : end_s;
		if (end_s > now_s)
			end_s = now_s > begin_s ? now_s : begin_s + 1;
		if (use->from_s > begin_s && use->from_s < end_s)
			nr = behind_adoption(c, use, k, d);
		if (nr < 0)
			nr = of_day(c, k, d) * part_of_day(use, begin_s, end_s);
		used = nr * periods[d];
		p->time.used += used;
		add(&p->time, used, &use->gain);
		add(&saved->all, used, &use->gain);
		add(&saved->days[d], used, &use->gain);
	}
	return 0;
}

/* The store knows a build, and not at which of two places it ran: count its samples once. */
static bool is_copy(const struct md_use *uses, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (mp_id_equal(&uses[k].id, &uses[i].id) && strcmp(uses[k].path, uses[i].path))
			return true;
	return false;
}

/* ---- all together ----------------------------------------------------------------------------- */

static void begin_period(const struct md_machine *machine, int64_t now_s, struct md_saved *out)
{
	out->first_day = now_s / DAY_S - (MD_SAVED_DAYS - 1);
	out->since_s = out->first_day * DAY_S;
	out->whole = machine->start_s && machine->start_s <= out->since_s;
	if (!out->whole && machine->start_s)
		out->since_s = machine->start_s;
}

static int add_up(struct mp_store *store, const struct md_machine *machine, int64_t now_s,
		  struct counts *c, struct md_saved *out, struct mp_err *err)
{
	struct mp_decision *decisions = NULL;
	double periods[MD_SAVED_DAYS];
	struct md_use *uses = NULL;
	size_t nr = 0, nr_uses = 0;
	int r = mp_store_list_history(store, NULL, 0, &decisions, &nr, err);

	if (!r && md_uses_find(machine, decisions, nr, now_s, &uses, &nr_uses))
		r = mp_err_set(err, ENOMEM, "out of memory");
	for (size_t d = 0; d < MD_SAVED_DAYS && !r; d++) {
		periods[d] = period_of_day(machine, (out->first_day + (int64_t)d) * DAY_S);
		out->has_rate |= periods[d] > 0;
		if (periods[d] <= 0)
			periods[d] = 1;
		out->days[d].used = (double)(c->all[d] - c->all[d + 1]) * periods[d];
		out->all.used += out->days[d].used;
	}
	for (size_t i = 0; i < nr_uses && !r; i++)
		if (!is_copy(uses, i) && add_use(out, c, &uses[i], periods, now_s))
			r = mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < out->nr_programs && !r; i++)
		out->nr_measured += is_measured(&out->programs[i].gain);
	md_uses_free(uses, nr_uses);
	mp_store_free_history(decisions, nr);
	return r;
}

int md_saved_load(struct mp_store *store, const struct md_machine *machine, int64_t now_s,
		  struct md_saved *out, struct mp_err *err)
{
	struct counts c = {0};
	int r;

	*out = (struct md_saved){0};
	begin_period(machine, now_s, out);
	r = count(store, machine, out->first_day, &c, err);
	if (!r)
		r = add_up(store, machine, now_s, &c, out, err);
	fini_counts(&c);
	return r;
}
