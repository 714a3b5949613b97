// SPDX-License-Identifier: Apache-2.0
/*
 * optimize - calls the stages in order and collects the facts for the report. The stages
 * decide; this file has no policy. Called by morph-optimize, inplace and train.
 */
#include "editor/optimize.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "editor/entries.h"
#include "editor/gs_use.h"
#include "editor/plan_all.h"
#include "editor/pointer.h"
#include "editor/publish.h"
#include "editor/room.h"
#include "editor/selfcheck.h"
#include "editor/separate.h"
#include "editor/start.h"
#include "editor/stubs.h"
#include "editor/unproved.h"
#include "libprof/map.h"
#include "libprof/path_evidence.h"
#include "libprof/profile.h"
#include "libprof/store.h"
#include "libprof/store_outputs.h"
#include "libprof/store_paths.h"

/* x86-64: 2 MiB. */
#define HUGE_PAGE_LOG2 21

struct job {
	const struct me_optimize_options *options;
	struct me_optimize_report *report;
	struct mp_elf *elf;
	struct mp_elf *debug; /* its separate debug file; NULL: none */
	struct mp_cfg *cfg;
	struct mp_profile *profile;
	struct mp_profile *sampled; /* samples from which the report computes shares; NULL: none */
	struct mp_path_evidence paths;
	struct me_eligible eligible;
	uint8_t *movable;		  /* per function: it may move */
	struct me_instrument *instrument; /* NULL: no counters */
	const struct me_unproved_list *unproved;
	struct me_number *number; /* NULL: no path numbers */
	struct mp_counts counts;
	struct me_plan plan;
	struct mp_output verified; /* what verify accepted */
	double stage_start_s, stage_start_cpu_s;
};

static double now_s(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void end_stage(struct job *job, enum me_stage stage)
{
	double now = now_s(CLOCK_MONOTONIC), now_cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);

	job->report->stage_s[stage] += now - job->stage_start_s;
	job->report->stage_cpu_s[stage] += now_cpu - job->stage_start_cpu_s;
	job->stage_start_s = now;
	job->stage_start_cpu_s = now_cpu;
	stage++;
	if (job->options->all && stage == ME_STAGE_PROFILE)
		stage = ME_STAGE_LAYOUT;
	if (stage == ME_STAGE_DEBUG)
		stage++;
	if (job->options->progress && stage < ME_NR_STAGES)
		job->options->progress(stage);
}

/* With counters, any user that runs the program would write files with its rights. */
static int refuse_set_id(const char *path, struct mp_err *err)
{
	struct stat st;

	if (stat(path, &st) || !(st.st_mode & (S_ISUID | S_ISGID)))
		return 0;
	return mp_err_set(err, EPERM, "%s: has other rights than who runs it: no counters", path);
}

static int read_debug_file(struct job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	struct me_optimize_report *r = job->report;
	int rc;

	if (!o->debug_file)
		return 0;
	rc = me_separate_open(job->elf, o->debug_file, &job->debug, err);
	if (!job->debug)
		return rc == -ENOENT && !strcmp(o->debug_file, ME_SEPARATE_AUTO) ? 0 : rc;
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

/* If verify refused every register for a function, the function is left alone. */
static int number_registers(struct job *job, struct mp_err *err)
{
	uint16_t *barred = calloc((size_t)job->cfg->nr_funcs + 1, sizeof(*barred));
	int rc;

	if (!barred)
		return mp_err_set(err, ENOMEM, "out of memory");
	me_unproved_spread(job->unproved, job->cfg, barred);
	for (uint32_t f = 0; f < job->cfg->nr_funcs; f++) {
		if (barred[f] != ME_UNPROVED_ANY || !job->movable[f])
			continue;
		job->movable[f] = 0;
		job->eligible.detail[f] = "not numbered: what its registers hold is not proved";
	}
	/* Numbers cannot tell from which jump control came to a label. */
	for (uint32_t f = 0; f < job->cfg->nr_funcs; f++) {
		if (!job->movable[f] || !(job->cfg->funcs[f].flags & MP_FUNC_LABELS))
			continue;
		job->movable[f] = 0;
		job->eligible.detail[f] = "not numbered: its labels are values";
	}
	rc = me_number_new(job->cfg, job->options->counting.polls, job->movable, barred,
			   &job->number, err);
	free(barred);
	return rc;
}

/* Apply --skip and --only: functions that the user excludes do not move, and the report says
 * so. */
static int apply_selection(struct job *job, struct mp_err *err)
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
		if (!job->movable[f] || (!skip[f] && (!o->only.nr || only[f])))
			continue;
		job->movable[f] = 0;
		job->eligible.detail[f] = skip[f] ? "left out by --skip" : "not named by --only";
	}
	free(skip);
	free(only);
	return rc;
}

/* Functions without unwind rows cannot be instrumented: stubs need the rows of their block. */
static void leave_bare(struct job *job)
{
	for (uint32_t f = 0; f < job->cfg->nr_funcs; f++) {
		if (!job->movable[f] || !(job->cfg->funcs[f].flags & MP_FUNC_BARE))
			continue;
		job->movable[f] = 0;
		job->eligible.verdict[f] = ME_REFUSED_UNWIND;
		job->eligible.detail[f] = mp_problem_name(MP_PROBLEM_NO_FDE);
	}
}

static int read_file(struct job *job, struct mp_err *err)
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
	rc = mp_cfg_build(job->elf,
			  &(struct mp_cfg_options){.fine = o->counting.paths || o->counting.none},
			  &job->cfg, &why);
	if (!rc)
		rc = me_eligible_functions(job->cfg, o->nr_threads, &job->eligible, &why);
	if (rc)
		return mp_err_set(err, -rc, "%s: %s", job->options->input, why.msg);
	job->report->nr_funcs = job->cfg->nr_funcs;
	job->movable = malloc(job->cfg->nr_funcs + 1);
	if (!job->movable)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t f = 0; f < job->cfg->nr_funcs; f++)
		job->movable[f] = job->eligible.verdict[f] == ME_ELIGIBLE;
	rc = apply_selection(job, &why);
	if (rc)
		return mp_err_set(err, -rc, "%s: %s", o->input, why.msg);
	if (o->counting.edges || o->counting.paths || o->counting.none)
		leave_bare(job);
	if (job->options->counting.edges) {
		rc = refuse_set_id(o->input, err);
		if (rc)
			return rc;
		rc = me_instrument_new(job->cfg, job->movable, job->eligible.detail,
				       &job->instrument, &why);
		if (rc)
			return mp_err_set(err, -rc, "%s: %s", job->options->input, why.msg);
	}
	if (job->options->counting.paths) {
		if (o->counting.polls)
			rc = refuse_set_id(o->input, err);
		if (rc)
			return rc;
		rc = number_registers(job, &why);
		if (rc)
			return mp_err_set(err, -rc, "%s: %s", job->options->input, why.msg);
	}
	end_stage(job, ME_STAGE_READ);
	return 0;
}

static bool starts_threads(const struct mp_elf *elf)
{
	static const char *const names[] = {"pthread_create", "thrd_create"};

	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
			if (elf->symbols[i].name && !strcmp(elf->symbols[i].name, names[n]))
				return true;
	return false;
}

/*
 * Threads find their own counters by %gs, which only one file of a process can use. A process
 * has one program, but several libraries; and code outside of a library starts the threads that
 * run it.
 */
static enum me_counters choose_for(const struct job *job)
{
	const struct me_counting *c = &job->options->counting;
	struct me_start start;
	struct mp_err why;
	bool program = !me_start_find(job->elf, &start, &why) && start.program;

	if (!starts_threads(job->elf) && (program || !c->alone))
		return ME_COUNTERS_PLAIN;
	return (program || c->alone) && !me_gs_is_used(job->elf) ? ME_COUNTERS_THREADS
								 : ME_COUNTERS_ATOMIC;
}

/* Two threads that count at once in the same counters lose counts, unless these are atomic. */
static int choose_counters(struct job *job, struct mp_err *err)
{
	switch (job->options->counting.how) {
	case ME_COUNT_PLAIN: job->plan.counters = ME_COUNTERS_PLAIN; break;
	case ME_COUNT_ATOMIC: job->plan.counters = ME_COUNTERS_ATOMIC; break;
	case ME_COUNT_THREADS:
		if (me_gs_is_used(job->elf))
			return mp_err_set(err, EPERM,
					  "%s: uses %%gs itself: count with edges,atomic",
					  job->options->input);
		job->plan.counters = ME_COUNTERS_THREADS;
		break;
	default: job->plan.counters = choose_for(job);
	}
	job->report->counters = job->plan.counters;
	return 0;
}

static int add_counters(struct job *job, struct mp_err *err)
{
	const struct me_counting *c = &job->options->counting;
	int rc = choose_counters(job, err);

	if (rc)
		return rc;
	job->plan.counts_path = c->path;
	return me_instrument_plan(job->instrument, job->options->all ? NULL : &job->counts,
				  job->movable, &job->plan, &job->report->instrumented, err);
}

static int add_numbers(struct job *job, struct mp_err *err)
{
	job->plan.counts_path = job->options->counting.path;
	return me_number_plan(job->number, job->options->all ? NULL : &job->counts, job->movable,
			      &job->plan, &job->report->numbered, err);
}

static int add_nothing(struct job *job, struct mp_err *err)
{
	struct me_stubs none = {0};
	uint32_t nr_inline;

	return me_stubs_put(job->cfg, job->movable, &none, &job->plan, &nr_inline)
		       ? mp_err_set(err, ENOMEM, "out of memory")
		       : 0;
}

/* Read samples for the report alone; it is no error if the store has none of this file. */
static int read_sampled(struct job *job, struct mp_err *err)
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
		rc = mp_store_read_counts(store, module.key, 0, &counts, &nr, &ignored);
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

static int build_profile(struct job *job, const struct me_evidence *evidence, struct mp_err *err)
{
	int rc = mp_profile_build(job->cfg, evidence->counts, evidence->nr_counts, &job->profile,
				  err);

	if (!rc &&
	    me_outside_find(job->cfg, evidence->counts, evidence->nr_counts, &job->report->outside))
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
	if (!rc)
		job->profile->exact = job->report->exact =
			evidence->exact ||
			(job->options->exact_profile && !job->report->stale.used);
	return rc;
}

static int read_profile(struct job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	const struct me_evidence_options which = {
		.input = o->input,
		.db = o->db,
		.since_s = o->since_s,
		.min_samples = o->min_samples,
		.paths = o->estimator == MP_ESTIMATE_PATHS,
		.remember = (o->output || o->files) && !me_counting_any(&o->counting),
		.stale = o->stale,
	};
	struct me_evidence evidence;
	uint64_t seen;
	int rc = me_evidence_read(&which, job->cfg, &evidence, &job->report->stale, err);

	if (!rc)
		rc = build_profile(job, &evidence, err);
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
	end_stage(job, ME_STAGE_PROFILE);
	return rc;
}

/* Leave functions alone that would lose by moving, then predict the result for the others. */
static int weigh_plan(struct job *job, struct mp_err *err)
{
	struct me_pointers pointers = {0};
	struct me_entries entries = {0};
	int rc = me_pointers_find(job->cfg, job->movable, &pointers, err);

	if (!rc)
		rc = me_entries_count(job->cfg, &job->counts, pointers.redirected, pointers.labels,
				      &entries, err);
	if (!rc)
		rc = me_entries_weigh(job->cfg, &job->counts, &entries, &job->plan, err);
	for (uint32_t f = 0; f < job->cfg->nr_funcs && !rc; f++) {
		if (!entries.left[f])
			continue;
		job->movable[f] = 0;
		job->eligible.verdict[f] = ME_REFUSED_ENTRIES;
		job->eligible.detail[f] = ME_WHY_ENTRIES;
	}
	if (!rc)
		rc = me_layout_predict(job->cfg, &job->counts, &job->plan, entries.arrivals,
				       &job->report->prediction, err);
	job->report->has_prediction = !rc;
	me_entries_fini(&entries);
	me_pointers_fini(&pointers);
	return rc;
}

static int make_room(struct job *job, const struct mp_counts *counts, struct mp_err *err)
{
	return me_room_make(job->cfg, counts, ME_NUMBERED_PIECES_MAX, job->movable,
			    job->eligible.detail)
		       ? mp_err_set(err, ENOMEM, "out of memory")
		       : 0;
}

static int make_plan(struct job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	struct mp_counts_options inference = {
		.estimator = o->estimator,
		.layout_prior = true,
		.call_graph = true,
		.paths = job->paths.edge ? &job->paths : NULL,
		.nr_threads = o->nr_threads,
	};
	struct me_layout_options layout = o->layout;
	int rc;

	layout.nr_threads = o->nr_threads;
	if (o->all && o->counting.paths && make_room(job, NULL, err))
		return -ENOMEM;
	if (o->all)
		return me_plan_all(job->cfg, job->movable, o->stress ? &o->stress_seed : NULL,
				   &job->plan, err);
	rc = mp_counts_build(job->cfg, job->profile, &inference, &job->counts,
			     &job->report->inference, err);
	mp_profile_drop_edges(job->profile);
	mp_path_evidence_fini(&job->paths);
	end_stage(job, ME_STAGE_INFER);
	if (!rc)
		rc = me_layout_build(job->cfg, &job->counts, job->movable, &layout, &job->plan,
				     err);
	/* An instrumented version counts all functions, whatever that costs. */
	if (!rc && !me_counting_any(&o->counting))
		rc = weigh_plan(job, err);
	if (!rc && o->counting.paths)
		rc = make_room(job, &job->counts, err);
	end_stage(job, ME_STAGE_LAYOUT);
	return rc;
}

static int compare_left(const void *a, const void *b)
{
	const struct me_left_alone *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int list_left_alone(struct job *job, uint32_t func, uint64_t samples, const char *why)
{
	struct me_optimize_report *r = job->report;
	struct me_left_alone *grown = r->left_alone;

	if ((r->nr_left_alone & (r->nr_left_alone - 1)) == 0) /* 0, 1, 2, 4, 8, ... */
		grown = realloc(grown,
				(r->nr_left_alone ? 2 * r->nr_left_alone : 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->left_alone = grown;
	grown[r->nr_left_alone] = (struct me_left_alone){strdup(job->cfg->funcs[func].name),
							 job->cfg->funcs[func].vaddr, samples, why};
	return grown[r->nr_left_alone++].name ? 0 : -ENOMEM;
}

/* Why this function could not be counted; NULL: no reason is known. */
static const char *why_uncounted(const struct job *job, uint32_t func)
{
	const struct me_optimize_options *o = job->options;

	for (uint32_t i = 0; i < o->nr_uncounted; i++)
		if (o->uncounted[i].vaddr == job->cfg->funcs[func].vaddr)
			return o->uncounted[i].why;
	return NULL;
}

/* Functions that were not counted are not in the prediction and do not move: their share of
 * branches stays. */
static void predict_uncounted(struct me_optimize_report *r)
{
	double u = r->share_uncounted;

	r->prediction.ratio = r->prediction.ratio * (1 - u) + u;
	r->prediction.least = r->prediction.least * (1 - u) + u;
	r->prediction.most = r->prediction.most * (1 - u) + u;
}

/* Fill the report: functions considered, moved and left alone, and their shares of the samples. */
static int account(struct job *job, struct mp_err *err)
{
	struct me_optimize_report *r = job->report;
	const struct mp_cfg *cfg = job->cfg;
	uint8_t *moved = calloc(cfg->nr_funcs + 1, 1);
	uint8_t *copied = calloc(cfg->nr_blocks + 1, 1);
	const uint64_t *counted = r->samples && job->profile ? job->profile->block_samples
							     : job->counts.samples;
	const uint64_t *seen = job->sampled ? job->sampled->block_samples : counted;
	uint64_t seen_in_all = r->samples_outside, seen_moved = 0, seen_uncounted = 0;
	int rc = moved && copied ? 0 : -ENOMEM;

	for (uint32_t i = 0; !rc && i < job->plan.nr_blocks; i++) {
		if (job->plan.blocks[i].stub)
			continue;
		copied[job->plan.blocks[i].block] = 1;
		moved[cfg->blocks[job->plan.blocks[i].block].func] = 1;
		r->nr_hot_blocks += job->plan.blocks[i].zone == ME_ZONE_HOT;
	}
	r->nr_blocks = job->plan.nr_blocks - job->plan.nr_stubs;
	for (uint32_t f = 0; !rc && f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		uint64_t samples = 0, counts = 0;
		const char *why = NULL;

		for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
			if (!seen)
				break;
			samples += seen[b];
			counts += counted ? counted[b] : 0;
			seen_moved += copied[b] ? seen[b] : 0;
		}
		seen_in_all += samples;
		r->nr_moved += moved[f];
		if (!samples && !counts && !moved[f] && !job->options->all)
			continue;
		r->nr_considered++;
		if (moved[f])
			continue;
		if (!counts)
			why = why_uncounted(job, f);
		if (why)
			seen_uncounted += samples;
		if (job->movable[f] && why) {
			r->refused[job->eligible.verdict[f]]++;
			rc = list_left_alone(job, f, samples, why);
			continue;
		}
		if (job->movable[f]) {
			r->nr_not_worth++;
			continue;
		}
		r->refused[job->eligible.verdict[f]]++;
		if (job->eligible.verdict[f] == ME_REFUSED_PROBLEM)
			r->problems[func->problem]++;
		rc = list_left_alone(job, f, samples, job->eligible.detail[f]);
	}
	free(moved);
	free(copied);
	if (rc)
		return mp_err_set(err, ENOMEM, "out of memory");
	r->samples_moved = r->samples ? seen_moved : 0;
	r->share_moved = seen_in_all ? (double)seen_moved / (double)seen_in_all : 0;
	r->share_uncounted = seen_in_all ? (double)seen_uncounted / (double)seen_in_all : 0;
	predict_uncounted(r);
	if (r->nr_left_alone)
		qsort(r->left_alone, r->nr_left_alone, sizeof(*r->left_alone), compare_left);
	return 0;
}

/* The name by which the output finds its debug file; NULL: by its build-id. */
static const char *debug_name(const struct job *job)
{
	const char *path = job->report->debug_output, *slash;

	if (job->options->files)
		return NULL;
	if (!path)
		path = job->report->debug_file;
	slash = path ? strrchr(path, '/') : NULL;
	return slash ? slash + 1 : path;
}

/* A written file: the name for messages, and its descriptor. */
struct written {
	const char *path;
	int fd; /* -1: none */
};

/* The facts about an output that the database keeps. */
static struct mp_output output_of(const struct mp_elf *original, const struct mp_elf *output)
{
	const struct mp_section *paths = mp_elf_section(output, MP_PATH_TABLE_SECTION);
	struct mp_output is = {.id = output->id, .original = original->id};

	if (paths && paths->type == SHT_PROGBITS && paths->size)
		is.paths_hash = mp_path_table_hash(output->data + paths->off, paths->size);
	return is;
}

/*
 * Note the output in the database: collectors that use this database then need not verify it.
 * If the user may not write to the database, collectors verify the output themselves, if they
 * find the original.
 */
static void write_down(const struct job *job)
{
	struct mp_store *store;

	if (!job->options->db || job->options->all || job->options->keeps_nothing ||
	    (!job->options->files && !job->options->output) ||
	    mp_store_open(job->options->db, MP_STORE_WRITE, &store, NULL))
		return;
	mp_store_put_output(store, &job->verified, NULL);
	mp_store_close(store);
}

static int verify_file(struct job *job, const struct written *file,
		       const struct written *debug_file, struct mp_err *err)
{
	const struct mp_elf *original = job->elf;
	struct me_verify_debug debug = {job->debug, NULL, debug_name(job)};
	struct mp_elf *output = NULL, *debug_output = NULL;
	char own_name[2 * MP_BUILD_ID_MAX + sizeof(".debug")];
	struct mp_err why;
	int rc = mp_elf_open_fd(file->path, file->fd, MP_ELF_ALL, &output, &why);

	if (!rc && job->debug) {
		rc = mp_elf_open_fd(debug_file->path, debug_file->fd, MP_ELF_DEBUG | MP_ELF_SYMBOLS,
				    &debug_output, &why);
		debug.output = debug_output;
	}
	if (!rc && job->debug && !debug.name) {
		char text[2 * MP_BUILD_ID_MAX + 1] = {0};

		mp_id_format_build_id(&output->id, text);
		sprintf(own_name, "%s.debug", text + 2);
		debug.name = own_name;
	}
	if (!rc)
		rc = me_verify_threads(original, output, job->debug ? &debug : NULL,
				       job->options->nr_threads, &job->report->verified, &why);
	if (!rc)
		job->verified = output_of(original, output);
	mp_elf_close(debug_output);
	mp_elf_close(output);
	if (rc == -EBADMSG || rc == -ENOEXEC)
		return mp_err_set(err, EPERM,
				  "%s: the output does not verify, nothing was written: %s",
				  original->path, why.msg);
	return rc ? mp_err_set(err, -rc, "%s: verify: %s", original->path, why.msg) : 0;
}

/* Free the analysis, which is not needed any more; verify must not use it. */
static void forget_analysis(struct job *job)
{
	mp_cfg_free(job->cfg);
	job->cfg = NULL;
	mp_elf_drop_pages(job->elf);
}

static void end_writing(struct job *job)
{
	me_image_fini(&job->report->emitted.image);
	me_image_fini(&job->report->emitted.debug_image);
	malloc_trim(0);
	end_stage(job, ME_STAGE_WRITE);
}

/* Make the temporary debug file, after the program's. */
static int begin_debug(struct job *job, struct me_publish *publish, struct mp_err *err)
{
	const struct me_optimize_report *r = job->report;
	struct stat a, b;
	int rc = me_publish_begin(publish, job->options->input, r->debug_output, err);

	if (rc)
		return rc;
	/* It is not executable. */
	publish->mode &= 0666;
	if (r->debug_output && !stat(r->debug_file, &a) && !stat(r->debug_output, &b) &&
	    a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return mp_err_set(err, EINVAL, "%s: is the input's debug file; give another name",
				  r->debug_output);
	return me_publish_write(publish, &r->emitted.debug_image, err);
}

/*
 * Publish the debug file first: a program whose link has another file's checksum has no debug
 * information, and this is the state if Morph is killed between the two renames.
 */
static int publish(struct job *job, struct mp_err *err)
{
	struct me_optimize_report *r = job->report;
	struct me_publish publish, debug = {.fd = -1};
	int rc = me_publish_begin(&publish, job->options->input, job->options->output, err);

	if (rc)
		return rc;
	if (job->debug)
		rc = begin_debug(job, &debug, err);
	if (!rc)
		rc = me_publish_write(&publish, &r->emitted.image, err);
	end_writing(job);
	if (!rc)
		rc = verify_file(job, &(struct written){publish.temporary, publish.fd},
				 &(struct written){debug.temporary, debug.fd}, err);
	end_stage(job, ME_STAGE_VERIFY);
	if (!rc && job->debug)
		rc = me_publish_commit(&debug, err);
	if (!rc)
		rc = me_publish_commit(&publish, err);
	if (debug.fd >= 0 || debug.temporary || debug.final)
		me_publish_end(&debug);
	me_publish_end(&publish);
	return rc;
}

static int write_open(struct job *job, struct mp_err *err)
{
	struct me_optimize_report *r = job->report;
	const struct me_optimize_files *files = job->options->files;
	int rc = me_image_write(&r->emitted.image, files->output);

	if (!rc && job->debug)
		rc = me_image_write(&r->emitted.debug_image, files->debug);
	if (rc)
		return mp_err_set(err, -rc, "%s: cannot write its new version: %s",
				  job->options->input, strerror(-rc));
	end_writing(job);
	rc = verify_file(job, &(struct written){job->options->input, files->output},
			 &(struct written){r->debug_file, files->debug}, err);
	/* Last, so that it is the digest of the bytes that verify read, whatever happens to the
	 * file. */
	me_digest_memory(job->elf->data, job->elf->size, &r->input_digest);
	end_stage(job, ME_STAGE_VERIFY);
	return rc;
}

static int produce(struct job *job, struct mp_err *err)
{
	struct me_optimize_report *r = job->report;
	struct mp_err why;
	int rc;

	job->plan.page_log2 = job->options->layout.huge_pages ? HUGE_PAGE_LOG2 : 0;
	rc = me_emit_spending(job->cfg, &job->plan, job->debug, debug_name(job), &r->emitted, &why);
	if (rc)
		return mp_err_set(err, rc == -ERANGE ? EPERM : -rc, "%s: %s", job->options->input,
				  why.msg);
	forget_analysis(job);
	end_stage(job, ME_STAGE_EMIT);
	r->stage_s[ME_STAGE_DEBUG] = r->emitted.debug.seconds;
	r->stage_s[ME_STAGE_EMIT] -= r->emitted.debug.seconds;
	r->stage_cpu_s[ME_STAGE_DEBUG] = r->emitted.debug.cpu_seconds;
	r->stage_cpu_s[ME_STAGE_EMIT] -= r->emitted.debug.cpu_seconds;
	r->new_size = r->emitted.image.size_bytes;
	r->new_holes = me_image_holes(&r->emitted.image);
	r->debug_new_size = r->emitted.debug_image.size_bytes;
	rc = job->options->files ? write_open(job, err) : publish(job, err);
	if (!rc)
		write_down(job);
	return rc;
}

/*
 * The most memory that this program used. getrusage() does not tell: exec keeps ru_maxrss,
 * which may be that of a larger parent.
 */
static uint64_t peak_rss_bytes(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
			break;
	if (status)
		fclose(status);
	return kib * 1024;
}

static int optimize(const struct me_optimize_options *options,
		    const struct me_unproved_list *unproved, struct me_optimize_report *report,
		    struct mp_err *err)
{
	struct job job = {.options = options,
			  .unproved = unproved,
			  .report = report,
			  .stage_start_s = now_s(CLOCK_MONOTONIC),
			  .stage_start_cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID)};
	int rc;

	*report = (struct me_optimize_report){0};
	rc = read_file(&job, err);
	if (!rc && !options->all)
		rc = read_profile(&job, err);
	if (!rc)
		rc = make_plan(&job, err);
	if (!rc && options->counting.edges)
		rc = add_counters(&job, err);
	if (!rc && options->counting.paths)
		rc = add_numbers(&job, err);
	if (!rc && options->counting.none)
		rc = add_nothing(&job, err);
	if (!rc)
		rc = account(&job, err);
	if (!rc && job.plan.nr_blocks == 0) {
		report->nothing_to_move = true;
		rc = report->nr_left_alone
			     ? mp_err_set(err, ENODATA,
					  "%s: nothing can be moved, nothing was written: %s",
					  options->input, report->left_alone[0].why)
			     : mp_err_set(err, ENODATA,
					  "%s: nothing worth moving, nothing was written",
					  options->input);
	}
	/* The plan replaces the profile from here on. */
	me_instrument_free(job.instrument);
	job.instrument = NULL;
	me_number_free(job.number);
	job.number = NULL;
	mp_counts_fini(&job.counts);
	mp_path_evidence_fini(&job.paths);
	mp_profile_free(job.profile);
	mp_profile_free(job.sampled);
	job.profile = job.sampled = NULL;
	/* Inference and layout freed many small pieces: return them before emit asks for
	 * memory. */
	malloc_trim(0);
	mp_elf_drop_pages(job.elf);
	if (!rc)
		rc = produce(&job, err);
	me_plan_fini(&job.plan);
	me_eligible_fini(&job.eligible);
	free(job.movable);
	mp_cfg_free(job.cfg);
	mp_elf_close(job.debug);
	mp_elf_close(job.elf);
	report->peak_rss_bytes = peak_rss_bytes();
	return rc;
}

int me_optimize(const struct me_optimize_options *options, struct me_optimize_report *report,
		struct mp_err *err)
{
	struct me_unproved_list unproved = {0};
	double stage_s[ME_NR_STAGES] = {0}, stage_cpu_s[ME_NR_STAGES] = {0};
	uint32_t nr_attempts = 0;
	int rc;

	/* Each attempt avoids the registers, or functions, that verify refused. Most files need
	 * at most one further attempt. */
	for (;;) {
		rc = optimize(options, &unproved, report, err);
		/* Failed attempts count, too. */
		for (int i = 0; i < ME_NR_STAGES; i++) {
			report->stage_s[i] = stage_s[i] += report->stage_s[i];
			report->stage_cpu_s[i] = stage_cpu_s[i] += report->stage_cpu_s[i];
		}
		report->nr_attempts = ++nr_attempts;
		if (rc != -EPERM || !options->counting.paths || !report->verified.nr_unproved)
			break;
		rc = me_unproved_add(&unproved, &report->verified, err);
		if (rc)
			break;
		me_optimize_report_fini(report);
	}
	free(unproved.list);
	return rc;
}

void me_optimize_report_fini(struct me_optimize_report *report)
{
	for (uint32_t i = 0; i < report->nr_left_alone; i++)
		free(report->left_alone[i].name);
	free(report->left_alone);
	free(report->stale.path);
	report->stale.path = NULL;
	free(report->debug_file);
	free(report->debug_output);
	report->debug_file = report->debug_output = NULL;
	me_emitted_fini(&report->emitted);
	me_outside_fini(&report->outside);
	report->left_alone = NULL;
	report->nr_left_alone = 0;
}
