// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_read - the input of a run: the file, its debug file, its profile. Decides which
 * functions the user or the kind of output leaves out. Called by optimize.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "editor/optimize/optimize_private.h"
#include "editor/evidence/live/live_rules.h"
#include "editor/evidence/selfcheck.h"
#include "editor/debug/debug_file.h"
#include "editor/emit/start.h"
#include "libprof/infer/foreseen.h"
#include "libprof/store/store.h"

static int read_debug_file(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	struct me_optimize_report *r = job->report;
	int rc;

	if (!o->debug_file)
		return 0;
	rc = me_debug_file_open(job->elf, o->debug_file, &job->debug, err);
	if (!job->debug)
		return rc == -ENOENT && !strcmp(o->debug_file, ME_DEBUG_FILE_AUTO) ? 0 : rc;
	r->debug_old_size = job->debug->size;
	r->debug_file = strdup(job->debug->path);
	if (o->output &&
	    asprintf(&r->debug_output, "%s%s", o->debug_output ? o->debug_output : o->output,
		     o->debug_output ? "" : ".debug") < 0)
		r->debug_output = NULL;
	return r->debug_file && (r->debug_output || !o->output)
		       ? 0
		       : mp_err_set(err, ENOMEM, "out of memory");
}

/* Functions that --skip or --only leave out do not move, and the report says so. */
static int apply_selection(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	uint32_t nr = job->cfg->nr_funcs;
	unsigned char *skip = calloc(nr + 1, 1), *only = calloc(nr + 1, 1);
	int rc = skip && only ? 0 : mp_err_set(err, ENOMEM, "out of memory");

	if (!rc)
		rc = me_select_functions(job->cfg, &o->skip, skip, err);
	if (!rc)
		rc = me_select_functions(job->cfg, &o->only, only, err);
	for (uint32_t f = 0; f < nr && !rc; f++) {
		if (!job->movable[f] || (!skip[f] && (!o->only.given || only[f])))
			continue;
		job->movable[f] = 0;
		job->eligible.detail[f] = skip[f] ? "left out by --skip" : "not named by --only";
	}
	free(skip);
	free(only);
	return rc;
}

/* Functions whose copies were refused stay. */
static int leave_out_refused(struct me_job *job, struct mp_err *err)
{
	const struct me_next_try *learnt = job->learnt;
	struct me_optimize_report *r = job->report;

	r->left_out = calloc((size_t)learnt->nr_left_out + 1, sizeof(*r->left_out));
	for (uint32_t i = 0; r->left_out && i < learnt->nr_left_out; i++) {
		uint32_t f = mp_cfg_func_at(job->cfg, learnt->left_out[i].vaddr);
		struct me_left_out *out = &r->left_out[r->nr_left_out];

		if (f == MP_NONE)
			continue;
		out->name = strdup(job->cfg->funcs[f].name);
		if (!out->name)
			return mp_err_set(err, ENOMEM, "out of memory");
		out->refused = learnt->left_out[i];
		r->nr_left_out++;
		if (!job->movable[f])
			continue;
		job->movable[f] = 0;
		job->eligible.verdict[f] = ME_REFUSED_ATTEMPT;
		job->eligible.detail[f] = "its copy was refused";
	}
	return r->left_out ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

/* Only unwind information says for certain where functions begin and end. */
static void measure_code(const struct mp_elf *elf, struct me_optimize_report *r)
{
	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		const struct mp_section *s = &elf->sections[i];

		if (s->flags & SHF_ALLOC && s->flags & SHF_EXECINSTR && s->type == SHT_PROGBITS)
			r->code_bytes += s->size;
	}
	for (uint32_t i = 0; i < elf->nr_fdes; i++)
		if (mp_elf_is_code(elf, elf->fdes[i].start))
			r->code_described += elf->fdes[i].size;
}

/* Functions, blocks and edges of the file, and which of the functions may move. */
static int analyse(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	int rc =
		mp_cfg_build(job->elf,
			     &(struct mp_cfg_options){.fine = o->counting.paths || o->counting.none,
						      .exits = o->counting.audit,
						      .entries = o->live_at != 0},
			     &job->cfg, err);

	if (!rc && o->remove_markers)
		rc = me_job_find_markers(job, err);
	if (!rc)
		rc = me_eligible_functions(job->cfg, o->nr_threads, &job->eligible, err);
	if (!rc && o->live_at)
		rc = me_live_restrict(job->cfg, &job->eligible, err);
	if (rc)
		return rc;
	measure_code(job->elf, job->report);
	job->report->nr_funcs = job->cfg->nr_funcs;
	job->movable = malloc(job->cfg->nr_funcs + 1);
	if (!job->movable)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t f = 0; f < job->cfg->nr_funcs; f++)
		job->movable[f] = job->eligible.verdict[f] == ME_ELIGIBLE;
	rc = apply_selection(job, err);
	if (!rc)
		rc = leave_out_refused(job, err);
	return rc ? rc : me_job_read_adjustments(job, err);
}

/* Users of a set-user-ID or set-group-ID file must not write files with its rights. */
static int refuse_set_id(const struct me_job *job, struct mp_err *err)
{
	struct stat st;

	if (stat(job->options->input, &st) || !(st.st_mode & (S_ISUID | S_ISGID)))
		return 0;
	return mp_err_set(err, EPERM, "has other rights than who runs it: no counters");
}

int me_job_read_file(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	struct me_start start;
	struct mp_err why;
	int rc = o->files ? mp_elf_open_fd(o->input, o->files->input, MP_ELF_ALL, &job->elf, err)
			  : mp_elf_open(o->input, MP_ELF_ALL, &job->elf, err);

	if (rc)
		return rc;
	rc = me_selfcheck_file(job->elf, &why);
	if (!rc)
		rc = me_selfcheck_companions(o->input, &why);
	if (!rc)
		rc = me_eligible_file(job->elf, &why);
	if (rc)
		return mp_err_set(err, -rc, "%s: %s", job->options->input, why.msg);
	rc = read_debug_file(job, err);
	if (rc)
		return rc;
	job->report->id = job->elf->id;
	mp_id_format_build_id(&job->elf->id, job->report->build_id);
	job->report->relinkable = job->elf->relinkable;
	(void)me_start_find(job->elf, &start, NULL);
	job->report->library = !start.program;
	job->report->old_size = job->elf->size;
	rc = analyse(job, &why);
	/* Outputs that part from this one here and after layout have the same places. */
	if (!rc && me_several_meter(job->several))
		rc = me_job_find_meter(job, me_several_meter(job->several), &why);
	if (rc)
		return mp_err_set(err, -rc, "%s: %s", o->input, why.msg);
	rc = me_job_branch(job, ME_BRANCH_FILE, ME_STAGE_READ, err);
	if (rc >= 0)
		rc = me_job_read_kind(job, err);
	me_job_end_stage(job, ME_STAGE_READ);
	return rc;
}

int me_job_read_kind(struct me_job *job, struct mp_err *err)
{
	const struct me_counting *c = &job->options->counting;
	struct mp_err why;
	int rc = 0;

	if (me_counting_any(c) && !c->meter)
		me_job_leave_bare(job);
	if (c->edges || c->polls || c->audit || c->calls || c->meter)
		rc = refuse_set_id(job, &why);
	if (!rc && c->edges)
		rc = me_instrument_new(job->cfg, job->movable, job->eligible.detail,
				       &job->instrument, &why);
	if (!rc && c->meter)
		rc = me_job_read_meter(job, &why);
	if (!rc && c->paths)
		rc = me_job_number_registers(job, &why);
	return rc ? mp_err_set(err, -rc, "%s: %s", job->options->input, why.msg) : 0;
}

/* These samples serve the report alone, so a store without samples of this file is no failure. */
static int read_sampled(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	struct me_optimize_report *r = job->report;
	struct mp_ip_count *counts = NULL;
	struct mp_module module = {0};
	struct mp_store *store;
	struct mp_err ignored;
	size_t nr = 0;
	int rc;

	if (!o->sampled_db || mp_store_open(o->sampled_db, MP_STORE_READ, &store, &ignored))
		return 0;
	rc = mp_store_find_module(store, &job->elf->id, &module, &ignored);
	if (!rc)
		rc = mp_store_read_ip_counts(store, module.key, 0, &counts, &nr, &ignored);
	free(module.path);
	mp_store_close(store);
	if (!rc && nr)
		rc = mp_profile_build(job->cfg, counts, nr, &job->sampled, err);
	else
		rc = 0;
	free(counts);
	if (rc || !job->sampled)
		return rc;
	r->counts = r->samples;
	r->samples = job->sampled->nr_samples + job->sampled->nr_outside;
	r->samples_outside = job->sampled->nr_outside;
	return 0;
}

/* Exact counts say more than ways do. */
static int add_ways(struct me_job *job, const struct me_evidence *evidence, struct mp_err *err)
{
	if (job->profile->exact || !evidence->nr_ways)
		return 0;
	for (size_t i = 0; i < evidence->nr_ways; i++)
		job->report->ways += evidence->ways[i].taken + evidence->ways[i].fell;
	return mp_foreseen_add(job->cfg, evidence->ways, evidence->nr_ways, job->profile, err);
}

static int build_profile(struct me_job *job, const struct me_evidence *evidence, struct mp_err *err)
{
	int rc = mp_profile_build(job->cfg, evidence->counts, evidence->nr_counts, &job->profile,
				  err);

	if (!rc && me_unowned_samples_find(job->cfg, evidence->counts, evidence->nr_counts,
					   &job->report->unowned))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	if (!rc && evidence->nr_edges)
		rc = mp_profile_add_edges(job->profile, job->cfg, evidence->edges,
					  evidence->nr_edges, err);
	if (!rc && evidence->nr_unknown)
		rc = mp_profile_set_unknown(job->profile, job->cfg, evidence->unknown,
					    evidence->nr_unknown, err);
	if (!rc && evidence->nr_paths)
		rc = mp_path_evidence_build(job->cfg, evidence->paths, evidence->nr_paths,
					    &job->paths, err);
	if (rc)
		return rc;
	job->profile->exact = job->report->exact =
		evidence->exact || (job->options->exact_profile && !job->report->stale.used);
	return add_ways(job, evidence, err);
}

int me_job_read_profile(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	const struct me_evidence_options which = {
		.input = o->input,
		.db = o->db,
		.since_s = o->since_s,
		.min_samples = o->min_samples,
		.paths = o->estimator == MP_ESTIMATE_PATHS,
		.remember = (o->output || o->files) && !me_counting_any(&o->counting),
		.entries = o->live_at != 0,
		.stale = o->stale,
	};
	struct me_evidence evidence;
	uint64_t seen;
	int rc = me_evidence_read(&which, job->cfg, &evidence, &job->report->stale, err);

	if (!rc)
		rc = build_profile(job, &evidence, err);
	job->entries = evidence.entries;
	evidence.entries = (struct mp_entry_samples){0};
	me_evidence_fini(&evidence);
	if (rc)
		return rc;
	job->report->samples = job->profile->nr_samples + job->profile->nr_outside;
	job->report->samples_outside = job->profile->nr_outside;
	job->report->transfers = job->profile->nr_transfers + job->profile->nr_transfers_outside;
	job->report->paths = job->paths.nr_paths;
	job->report->paths_strange = job->paths.nr_strange;
	seen = job->report->samples + job->report->transfers;
	if (seen < o->min_samples)
		return mp_err_set(err, ENODATA, "%s: too little profile: %llu samples%s, want %llu",
				  o->input, (unsigned long long)seen,
				  job->report->transfers ? " and transfers of control" : "",
				  (unsigned long long)o->min_samples);
	rc = read_sampled(job, err);
	if (!rc)
		rc = me_job_weigh_decided(job, err);
	me_job_end_stage(job, ME_STAGE_PROFILE);
	return rc;
}
