// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_private - one run of optimize: its state, and the steps that optimize.c calls in order.
 * Only optimize*.c include this header.
 */
#ifndef ME_OPTIMIZE_PRIVATE_H
#define ME_OPTIMIZE_PRIVATE_H

#include "editor/evidence/pointer.h"
#include "editor/instrument/instrument.h"
#include "editor/instrument/meter.h"
#include "editor/instrument/number.h"
#include "editor/optimize/next_try.h"
#include "editor/optimize/optimize.h"
#include "editor/optimize/plan_file.h"
#include "libprof/callgraph/entry_samples.h"
#include "libprof/infer/path_evidence.h"
#include "libprof/infer/profile.h"
#include "libprof/store/store_outputs.h"

/* Where further outputs part from the first one. */
enum me_branch {
	ME_BRANCH_START,
	ME_BRANCH_FILE,	  /* the file was analysed */
	ME_BRANCH_LAYOUT, /* it was laid out by its profile */
};

/* Which output this process makes, and which others can be made of its analysis. */
struct me_several {
	struct me_optimize_options own; /* of this process's output */
	const struct me_optimize_options *more;
	uint32_t nr_more;
	struct me_several_result *result; /* for the parent; NULL: this is no child */
};

struct me_job {
	const struct me_optimize_options *options; /* @several->own */
	struct me_several *several;
	struct me_optimize_report *report;
	struct mp_elf *elf;
	struct mp_elf
		*debug; /* the debug file of @elf; NULL: none, or @elf carries the information */
	struct mp_cfg *cfg;
	struct mp_profile *profile;
	struct mp_profile *sampled; /* samples for the report's shares; NULL: those of @profile */
	struct mp_path_evidence paths;
	struct mp_entry_samples entries; /* how functions were entered */
	struct me_eligible eligible;
	uint8_t *movable;		  /* per function: eligible, as layout wants it */
	struct me_instrument *instrument; /* NULL: no counters */
	struct me_meter *meter; /* NULL: none; else of this output, or of one that parts later */
	const char *meter_file; /* its places */
	const struct me_next_try *learnt; /* of earlier attempts */
	struct me_number *number;	  /* NULL: no path numbers */
	struct mp_counts counts;
	struct me_pointers pointers; /* empty until they are found */
	struct me_plan plan;
	struct me_instrumentation added;   /* beside @plan */
	struct me_adjustment *adjustments; /* per function; NULL: none is wanted */
	struct me_slices slices;	   /* of code markers; only with remove_markers */
	struct mp_output verified;	   /* the output that verify accepted */
	struct me_plan_file given;	   /* with options->plan */
	struct me_plan_writer *saved;	   /* with options->save_plan */
	struct me_plan_call *replaced;	   /* for @saved */
	uint32_t nr_replaced;
	double stage_start_s, stage_start_cpu_s;
};

/* Books the time since the last call under @stage, and announces the next stage. */
void me_job_end_stage(struct me_job *job, enum me_stage stage);

/* Shows what a stage computed, if the user asked for it. @placement: NULL before copies have
 * places. */
int me_job_print(struct me_job *job, enum me_print_what what, const struct me_placement *placement,
		 struct mp_err *err);

/*
 * me_several_branch - makes the others that part here, in processes of their own. Return: 0: go on; 1: this process is
 * such a child, and @several->own has changed; -errno: an output failed, or no process could be started.
 */
int me_several_branch(struct me_several *several, enum me_branch at, struct mp_err *err);
/* The places of the meter of an output that shares the file with this process's; NULL: none has a meter. */
const char *me_several_meter(const struct me_several *several);
/* In a child, tells the parent what came of it, and ends. */
void me_several_end(const struct me_several *several, int rc, const struct mp_err *err);
/* me_several_branch() at the end of @stage, whose time does not include that of the other outputs. */
int me_job_branch(struct me_job *job, enum me_branch at, enum me_stage stage, struct mp_err *err);

/* Opens and analyses the input, and decides which functions may move. */
int me_job_read_file(struct me_job *job, struct mp_err *err);
/* Finds what the kind of output adds to the file, before layout. */
int me_job_read_kind(struct me_job *job, struct mp_err *err);
/* Reads the profile from the store. Return: also -ENODATA, too few samples. */
int me_job_read_profile(struct me_job *job, struct mp_err *err);
/* Infers counts and lays the code out; with --all it does neither. */
int me_job_plan(struct me_job *job, struct mp_err *err);

/* Reads the plan that the user gives. Its settings are those of @options from now on. */
int me_job_read_plan(struct me_job *job, struct me_optimize_options *options, struct mp_err *err);
/* Notes the plan for its file, before blocks are cut. */
int me_job_begin_saving(struct me_job *job, struct mp_err *err);
/* Writes the file. Call it when the output is there. */
int me_job_save_plan(struct me_job *job, struct mp_err *err);

/* Chooses the addresses that become those of copies. This completes the plan. */
int me_job_redirect(struct me_job *job, struct mp_err *err);

/* Finds the functions that adjustments name, and leaves those out that are to stay. */
int me_job_read_adjustments(struct me_job *job, struct mp_err *err);
/* Changes the plan as adjustments say; notes where that put the functions. */
int me_job_adjust_plan(struct me_job *job, struct mp_err *err);
int me_job_note_adjusted(struct me_job *job, const struct me_placement *placement,
			 struct mp_err *err);
/* Reads what audits in running programs decided, and adds adjustments for it. */
int me_job_follow_verdicts(struct me_job *job, struct mp_err *err);
/* Notes the shares of the samples that these functions have. Call it with the profile. */
int me_job_weigh_decided(struct me_job *job, struct mp_err *err);
void me_job_note_decided(struct me_job *job, const struct me_placement *placement);
/* Finds what serves only code markers, and cuts the blocks there. Replaces job->cfg. */
int me_job_find_markers(struct me_job *job, struct mp_err *err);
/* Leaves the instructions that serve only markers out of all copies, and fills the report. */
int me_job_leave_markers_out(struct me_job *job, struct mp_err *err);

/* Replaces calls, and jumps to PLT stubs, in copies (editor/rewrite). The indexes of blocks change. */
int me_job_rewrite(struct me_job *job, struct mp_err *err);

/* Marks functions without unwind information as left alone. */
void me_job_leave_bare(struct me_job *job);
/* Chooses registers for path numbers, and leaves functions alone that have none. */
int me_job_number_registers(struct me_job *job, struct mp_err *err);
/* Finds the places of the meter @file. */
int me_job_find_meter(struct me_job *job, const char *file, struct mp_err *err);
/* Finds the places of this output's meter. With layout.original only the functions that hold them move. */
int me_job_read_meter(struct me_job *job, struct mp_err *err);
int me_job_add_meter(struct me_job *job, struct mp_err *err);
/* Add counters, path numbers, or neither to a plan that copies every function. */
int me_job_add_counters(struct me_job *job, struct mp_err *err);
int me_job_add_numbers(struct me_job *job, struct mp_err *err);
/* Adds a second version of some functions. Return: also -ENODATA, there is none to audit. */
int me_job_add_versions(struct me_job *job, struct mp_err *err);
/* Has the calls of functions counted and sampled. */
int me_job_add_call_clock(struct me_job *job, struct mp_err *err);
int me_job_add_nothing(struct me_job *job, struct mp_err *err);

/* Fills the report: functions and samples that were considered, moved and left alone. */
int me_job_account(struct me_job *job, struct mp_err *err);
/* Emits, writes, verifies and publishes the output. */
int me_job_produce(struct me_job *job, struct mp_err *err);

#endif
