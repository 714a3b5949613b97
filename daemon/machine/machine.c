// SPDX-License-Identifier: Apache-2.0
/* machine - puts modules, jobs, trials and files together; see machine.h. */
#include "daemon/machine/machine.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/machine/module_counts.h"
#include "daemon/machine/program.h"
#include "daemon/policy/deny.h"
#include "daemon/stats/defaults.h"
#include "libprof/base/clock.h"
#include "libprof/store/fleet/fleet_base.h"

void md_machine_fini(struct md_machine *machine)
{
	mp_store_free_modules(machine->modules, machine->nr_modules);
	mp_store_free_jobs(machine->jobs, machine->nr_jobs);
	mp_store_free_trials(machine->trials, machine->nr_trials);
	free(machine->sessions);
	for (size_t i = 0; i < machine->nr_programs; i++)
		free(machine->programs[i].denied);
	free(machine->programs);
	*machine = (struct md_machine){0};
}

struct md_machine_program *md_machine_find(struct md_machine *machine, const char *path)
{
	for (size_t i = 0; i < machine->nr_programs; i++)
		if (!strcmp(machine->programs[i].path, path))
			return &machine->programs[i];
	return NULL;
}

/* Whatever version is in place right now, another one is next: nothing is decided. */
static bool takes_turns(const struct md_machine_program *p)
{
	return p->job && (p->job->state == MP_JOB_COUNTING || p->job->state == MP_JOB_TRYING ||
			  p->job->state == MP_JOB_AUDITING);
}

bool md_machine_is_optimised(const struct md_machine_program *program)
{
	if (takes_turns(program))
		return false;
	return program->file == MD_FILE_OUTPUT ||
	       (program->file == MD_FILE_UNKNOWN && program->job &&
		(program->job->state == MP_JOB_ADOPTED || program->job->state == MP_JOB_KEPT));
}

/* ---- load ----------------------------------------------------------------------------------- */

static void add_module(struct md_machine *machine, const struct mp_module *module)
{
	struct md_machine_program *p = md_machine_find(machine, module->path);

	machine->nr_samples += module->nr_samples;
	if (!p) {
		p = &machine->programs[machine->nr_programs++];
		*p = (struct md_machine_program){.path = module->path, .module = module};
	} else if (p->module->last_s < module->last_s) {
		p->module = module;
	}
	p->nr_samples += module->nr_samples;
}

static void add_job(struct md_machine *machine, const struct mp_job *job)
{
	struct md_machine_program *p = md_machine_find(machine, job->path);

	if (!p) {
		p = &machine->programs[machine->nr_programs++];
		*p = (struct md_machine_program){.path = job->path};
	}
	p->job = job;
}

/* Takes the samples of the build that is at the path now, if there are any. */
static void look_at_file(struct md_machine *machine, struct md_machine_program *p)
{
	struct md_program file;

	if (p->module && p->module->kind != MP_MODULE_FILE) {
		p->file = MD_FILE_NONE;
		return;
	}
	if (md_program_read(p->path, &file, NULL)) {
		p->file = MD_FILE_GONE;
		return;
	}
	p->file = p->module ? MD_FILE_OTHER : MD_FILE_THERE;
	for (size_t i = 0; i < machine->nr_modules; i++)
		if (md_program_is_module(&file, &machine->modules[i])) {
			p->module = &machine->modules[i];
			p->file = MD_FILE_THERE;
		}
	if (file.is_output)
		p->file = MD_FILE_OUTPUT;
	md_program_fini(&file);
}

/* If no policy can be read, the fixed list of files that nobody may allow still holds. */
static void look_at_policy(struct md_machine *machine)
{
	struct md_policy policy = {0};
	char dir[PATH_MAX] = "", why[256];

	if (md_policy_default_dir(dir, sizeof(dir), NULL) || md_policy_read(dir, &policy, NULL)) {
		md_policy_fini(&policy);
		policy = (struct md_policy){.dir = dir};
	}
	for (size_t i = 0; i < machine->nr_programs; i++) {
		struct md_machine_program *p = &machine->programs[i];

		if ((p->file == MD_FILE_THERE || p->file == MD_FILE_OTHER) &&
		    md_deny(&policy, p->path, why, sizeof(why)))
			p->denied = strdup(why);
	}
	if (policy.dir != dir)
		md_policy_fini(&policy);
}

static bool is_audit(const struct mp_trial *trial)
{
	return trial->ratio > 0;
}

static void take_gain(const struct md_machine *machine, struct md_machine_program *p)
{
	if (p->job && p->job->gain.ratio > 0) {
		p->gain = p->job->gain;
		p->gain_s = p->job->since_s;
		return;
	}
	for (size_t i = 0; i < machine->nr_trials && p->module; i++) {
		const struct mp_trial *t = &machine->trials[i];

		if (is_audit(t) && mp_id_equal(&t->original, &p->module->id)) {
			p->gain = (struct mp_job_gain){t->ratio, t->lowest, t->highest, 0};
			p->gain_s = t->when_s;
		}
	}
}

static int compare_samples(const void *a, const void *b)
{
	const struct md_machine_program *x = a, *y = b;

	if (x->nr_samples != y->nr_samples)
		return x->nr_samples < y->nr_samples ? 1 : -1;
	return strcmp(x->path, y->path);
}

static int read_store(struct mp_store *store, int64_t since_s, struct md_machine *m,
		      struct mp_err *err)
{
	int r = mp_store_begin(store, err);

	if (r)
		return r;
	r = mp_store_list_modules(store, since_s, &m->modules, &m->nr_modules, err);
	/* Samples that were pulled from a fleet are not time of this machine. */
	if (!r)
		r = mp_fleet_keep_own(store, since_s, m->modules, m->nr_modules, err);
	if (!r)
		r = mp_store_list_jobs(store, &m->jobs, &m->nr_jobs, err);
	if (!r)
		r = mp_store_list_trials(store, NULL, NULL, &m->trials, &m->nr_trials, err);
	if (!r)
		r = mp_store_list_sessions(store, &m->sessions, &m->nr_sessions, err);
	if (!r)
		r = mp_store_period_start(store, since_s, &m->start_s, err);
	mp_store_rollback(store);
	/* Counts are kept by day; the first session began later on that day. */
	if (!r && m->start_s && m->nr_sessions &&
	    m->sessions[m->nr_sessions - 1].start_s > m->start_s)
		m->start_s = m->sessions[m->nr_sessions - 1].start_s;
	return r;
}

int md_machine_load(struct mp_store *store, int64_t since_s, struct md_machine *out,
		    struct mp_err *err)
{
	int r;

	*out = (struct md_machine){0};
	r = read_store(store, since_s, out, err);
	if (r)
		return r;
	out->programs = calloc(out->nr_modules + out->nr_jobs + 1, sizeof(*out->programs));
	if (!out->programs)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < out->nr_modules; i++)
		add_module(out, &out->modules[i]);
	for (size_t i = 0; i < out->nr_jobs; i++)
		add_job(out, &out->jobs[i]);
	for (size_t i = 0; i < out->nr_programs; i++) {
		struct md_machine_program *p = &out->programs[i];

		if (out->nr_samples)
			p->share = (double)p->nr_samples / (double)out->nr_samples;
		if (p->share >= MD_MORPH_LEAST_SHARE || p->job)
			look_at_file(out, p);
		take_gain(out, p);
	}
	look_at_policy(out);
	if (out->nr_programs)
		qsort(out->programs, out->nr_programs, sizeof(*out->programs), compare_samples);
	md_effect_fit(NULL, 0, &out->effect);
	return 0;
}

/* ---- estimate ------------------------------------------------------------------------------- */

int md_machine_estimate_one(struct md_machine *machine, struct mp_store *store,
			    struct md_machine_program *p, int64_t since_s, struct mp_err *err)
{
	struct md_module_counts c = {0};
	int r;

	if (!p->module)
		return mp_err_set(err, ENODATA, "%s: there is no sample of it", p->path);
	r = md_module_counts_read(store, p->module, since_s, &c, err);
	if (!r && (r = md_saving_compute(c.code.cfg, &c.counts, c.profile, &p->saving)))
		mp_err_code(err, -r);
	md_module_counts_fini(&c);
	if (r)
		return r;
	p->estimated = true;
	p->worth = md_worth_compute(&p->saving, &machine->effect, p->share);
	return 0;
}

/* Is there anything to estimate? */
static bool may_estimate(const struct md_machine_program *p)
{
	return p->module && p->module->kind == MP_MODULE_FILE &&
	       p->module->nr_samples >= MD_WORTH_MIN_SAMPLES &&
	       (p->file == MD_FILE_THERE || p->file == MD_FILE_OUTPUT);
}

/* Saved taken branches of audited versions, and what each gained. */
static int fit(struct md_machine *machine)
{
	struct md_effect_point *points = calloc(machine->nr_programs + 1, sizeof(*points));
	size_t nr = 0;

	if (!points)
		return -ENOMEM;
	for (size_t i = 0; i < machine->nr_programs; i++) {
		const struct md_machine_program *p = &machine->programs[i];
		double saved = p->saving.saved;

		if (!p->estimated || !(p->gain.ratio > 0))
			continue;
		/* A written layout has a prediction of its own, which is better than the estimate. */
		if (p->gain.predicted > 0)
			saved = (1 - p->gain.predicted) * p->saving.taken;
		points[nr++] = (struct md_effect_point){saved, 100 * (1 - 1 / p->gain.ratio)};
	}
	md_effect_fit(points, nr, &machine->effect);
	free(points);
	return 0;
}

int md_machine_estimate(struct md_machine *machine, struct mp_store *store, size_t max,
			double seconds, int64_t since_s)
{
	double end = mp_now_s() + seconds;
	size_t nr = 0;
	int r;

	for (int audited = 1; audited >= 0; audited--)
		for (size_t i = 0; i < machine->nr_programs && nr < max && mp_now_s() < end; i++) {
			struct md_machine_program *p = &machine->programs[i];

			if (p->estimated || !may_estimate(p) || (p->gain.ratio > 0) != audited)
				continue;
			md_machine_estimate_one(machine, store, p, since_s, NULL);
			nr++;
		}
	r = fit(machine);
	for (size_t i = 0; i < machine->nr_programs && !r; i++) {
		struct md_machine_program *p = &machine->programs[i];

		if (p->estimated)
			p->worth = md_worth_compute(&p->saving, &machine->effect, p->share);
	}
	return r;
}

/* ---- order ---------------------------------------------------------------------------------- */

static int compare_worth(const void *a, const void *b)
{
	const struct md_machine_program *x = *(const struct md_machine_program *const *)a,
					*y = *(const struct md_machine_program *const *)b;

	if (x->estimated != y->estimated)
		return x->estimated ? -1 : 1;
	if (x->worth.gain < y->worth.gain || x->worth.gain > y->worth.gain)
		return x->worth.gain < y->worth.gain ? 1 : -1;
	return compare_samples(x, y);
}

/* Its round has not ended, or it has none. */
static bool is_open(const struct md_machine_program *p)
{
	return !md_machine_is_optimised(p) && !p->denied &&
	       (!p->job || !mp_job_state_ends(p->job->state));
}

size_t md_machine_order(const struct md_machine *machine, const struct md_machine_program ***out)
{
	const struct md_machine_program **list = calloc(machine->nr_programs + 1, sizeof(*list));
	size_t nr = 0;

	for (size_t i = 0; i < machine->nr_programs && list; i++) {
		const struct md_machine_program *p = &machine->programs[i];

		if (is_open(p) && (p->file == MD_FILE_THERE || takes_turns(p)) && may_estimate(p))
			list[nr++] = p;
	}
	if (nr)
		qsort(list, nr, sizeof(*list), compare_worth);
	*out = list;
	return nr;
}
