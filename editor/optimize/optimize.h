// SPDX-License-Identifier: Apache-2.0
/*
 * optimize - makes a verified output of one file and its profile; calls all stages of
 * morph-optimize.
 */
#ifndef ME_OPTIMIZE_H
#define ME_OPTIMIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/infer/counts.h"
#include "editor/base/digest.h"
#include "editor/evidence/eligible.h"
#include "editor/emit/emit.h"
#include "editor/evidence/evidence.h"
#include "editor/instrument/instrument.h"
#include "editor/instrument/meter.h"
#include "editor/layout/adjust.h"
#include "editor/layout/layout.h"
#include "editor/marker/slice.h"
#include "editor/instrument/call_clock.h"
#include "editor/instrument/number.h"
#include "editor/instrument/versions.h"
#include "editor/evidence/unowned_samples.h"
#include "editor/print/print.h"
#include "editor/evidence/select.h"
#include "editor/verify/verify.h"
#include "libprof/base/err.h"
#include "libprof/infer/infer.h"

/* Files that are open already. Bytes are read and written there; the paths are only names. */
struct me_optimize_files {
	int input;
	int output; /* open for reading and writing; neither synced, renamed nor closed */
	int debug;  /* same for the debug file; unused if the report names none */
};

enum me_stage {
	ME_STAGE_READ,
	ME_STAGE_PROFILE,
	ME_STAGE_INFER,
	ME_STAGE_LAYOUT,
	ME_STAGE_EMIT,
	ME_STAGE_DEBUG, /* part of emitting; the report shows it separately */
	ME_STAGE_WRITE,
	ME_STAGE_VERIFY,
	ME_NR_STAGES
};

/* An instrumented version, instead of a faster one. */
struct me_counting {
	bool none;	   /* the copies of @paths without instrumentation, to measure their cost */
	bool edges;	   /* counters: instrument.h */
	bool paths;	   /* numbers in a register: number.h */
	bool audit;	   /* two versions of some functions, timed in turns: versions.h */
	bool polls;	   /* with @paths: processes that map @path can poll: poll_code.h */
	bool calls;	   /* calls are sampled by their number: call_clock.h */
	const char *meter; /* file with places of counters, and there are no others: meter.h */
	bool alone;	   /* no other file of the process has counters */
	enum {
		ME_COUNT_AUTO, /* per thread if the file starts threads and this is possible */
		ME_COUNT_PLAIN,
		ME_COUNT_ATOMIC,
		ME_COUNT_THREADS
	} how;
	const char *path; /* of the file of counts; "%p" is the process id, "%u" the effective user */
};

/* Is an instrumented version wanted? */
static inline bool me_counting_any(const struct me_counting *c)
{
	return c->none || c->edges || c->paths || c->audit || c->calls || c->meter;
}

struct me_optimize_options {
	const char *input, *output;	       /* @output NULL: --dry-run */
	const struct me_optimize_files *files; /* NULL: by name */
	/* The input's debug file, or ME_DEBUG_FILE_AUTO; NULL: none is read. */
	const char *debug_file;
	/* The output's debug file; NULL: the output's name with .debug, or its build-id with
	 * @files. */
	const char *debug_output;
	const char *db;
	/*
	 * A store with samples of the same work, if @db has counts; NULL: none. The report then
	 * computes shares from these samples. They also show functions that could not be
	 * counted, and so have no counts. @uncounted says why.
	 */
	const char *sampled_db;
	const struct me_left_alone *uncounted;
	uint32_t nr_uncounted;
	int64_t since_s;
	uint64_t min_samples;
	enum mp_estimator estimator;
	struct me_stale_options stale;
	bool exact_profile; /* counts are exact, whatever the store says */
	struct me_layout_options layout;
	bool all; /* no profile: move everything eligible, in the original order, or what @plan says */
	const char *plan;      /* with @all: a file with the plan (plan_file.h); NULL: none */
	const char *save_plan; /* write the plan of the output here; NULL: do not */
	bool stress; /* with @all: in an order that exercises the editor, see plan_all.h */
	uint64_t stress_seed;
	/* With @layout.inline_leaves: calls are replaced at random, in all zones, whatever the profile. */
	bool stress_inline;
	uint64_t stress_inline_seed;
	struct me_counting counting;
	struct me_words skip, only;   /* functions by name: not moved; the only ones moved */
	struct me_words adjust_words; /* FUNCTION:HOW, as me_adjust_parse() reads it */
	/* A store with audits in running programs: functions have the order that won. NULL: none. */
	const char *audited_db;
	const struct me_adjust *adjusts; /* further wishes, by address; none with @counting */
	uint32_t nr_adjusts;
	bool remove_markers; /* copies lack what serves only code markers */
	/* For processes that run already: where the new segment begins in them, by the file's addresses. 0: not for such. */
	uint64_t live_at;
	bool explain;			      /* only the report is wanted */
	const struct me_print_options *print; /* what the stages print; NULL: nothing */
	bool keeps_nothing;		      /* a dry run with @files: the output is not for use */
	unsigned int nr_threads;	      /* limit; the output does not depend on it */
	/*
	 * Not NULL: nothing is written; this function gets the plan, as it is for code that is linked
	 * again: no old code stays. It returns what me_optimize() is to return. @counts: NULL with @all.
	 */
	int (*take_plan)(void *ctx, const struct mp_cfg *cfg, const struct mp_counts *counts,
			 const struct me_plan *plan, struct mp_err *err);
	void *take_ctx;
	/* Called when a stage begins; may be NULL. */
	void (*progress)(enum me_stage stage);
	/*
	 * Further outputs, each with a name, the same as by a call of its own. What they share with this one is done once.
	 * They are made first; if one fails, the call fails as its own call would. Nothing is reported of them.
	 */
	const struct me_optimize_options *then;
	uint32_t nr_then;
};

/* A function that an adjustment names. */
struct me_adjusted {
	char *name;
	uint64_t vaddr;		  /* of the original */
	struct me_adjustment how; /* @how.done: what the output follows */
	uint64_t new_vaddr;	  /* of its copy; 0: not copied */
	uint64_t loop_vaddr;	  /* where the hottest loop of the copy begins; 0: there is none */
	const char *why_not;	  /* static: why it is not copied; NULL: it is */
};

/* A function that audits inside running programs tested (me_optimize_options.audited_db). */
struct me_decided {
	char *name;
	uint64_t vaddr;		/* of the original */
	uint8_t verdict;	/* enum mp_audit_verdict: the order that is faster */
	uint8_t order;		/* the same: the order in the output */
	bool copied;		/* false: the output has only the old code of it */
	bool taken_over;	/* the verdict stood in the file before that audit */
	uint64_t pairs;		/* of windows */
	double share;		/* of the file's samples; 0: there is no sample */
	double faster_by;	/* the new order: 0.02 is 2 %; NAN: there is no pair */
	double lowest, highest; /* its bounds; NAN: too few pairs */
	int64_t last_s;		/* when the audit was stored last */
	char machine[96];	/* model of the processor */
};

/* Code markers (Documentation/markers.md) and the instructions that access them. */
struct me_markers_report {
	uint32_t nr_markers, nr_accesses;
	uint32_t nr_removed;		   /* accesses that copies lack */
	uint32_t nr_not_copied;		   /* accesses in code that was not copied */
	uint32_t stays[ME_NR_SLICE_STAYS]; /* accesses that stay in copies, by reason */
	uint32_t nr_insns;		   /* instructions that copies lack */
};

struct me_inplace_report;

struct me_optimize_report {
	char build_id[2 * MP_BUILD_ID_MAX + 1];
	struct mp_id id; /* of the original */
	struct me_digest
		input_digest;	 /* of the bytes that were read and verified; only with @files */
	uint64_t code_bytes;	 /* of executable sections */
	uint64_t code_described; /* of these, bytes with unwind information, which bounds functions */
	uint32_t nr_funcs, nr_considered; /* considered: with samples (--all: all) */
	uint32_t nr_moved;
	uint32_t refused[ME_NR_REFUSALS];  /* considered functions, by refusal */
	uint32_t problems[MP_NR_PROBLEMS]; /* of refused[ME_REFUSED_PROBLEM] */
	uint32_t nr_not_worth;		   /* eligible, but not in the plan */
	uint64_t nr_blocks, nr_hot_blocks;
	uint64_t samples, samples_moved, samples_outside;
	bool exact;		/* @db holds counts, not samples */
	uint64_t counts;	/* counts of blocks, if @samples are those of @sampled_db */
	double share_uncounted; /* share of samples in functions that could not be counted */
	uint64_t transfers;	/* transfers of control seen besides, or instead of, samples */
	uint64_t ways;		/* ways of branches that registers of samples showed */
	uint64_t paths,
		paths_strange; /* samples with a path; those whose path is not of this file */
	struct me_stale_report stale;
	double share_moved; /* share of samples, or without samples of transfers */
	struct me_prediction prediction;
	bool has_prediction;
	enum mp_order function_order; /* of the hot zone; not with @all */
	struct mp_counts_stats inference;
	struct me_instrument_report instrumented;
	struct me_meter_report metered;
	struct me_number_report numbered;
	struct me_call_clock_report clock;
	struct me_versions_report audited;
	struct me_loop_report loops;	  /* timing points of audited functions */
	uint8_t counters;		  /* enum me_counters */
	struct me_markers_report markers; /* only with @remove_markers */
	struct me_verify_report verified;
	struct me_emitted emitted;	 /* numbers only: its parts are freed */
	char *debug_file, *debug_output; /* debug files read and written; NULL: none */
	uint64_t debug_old_size, debug_new_size;
	uint64_t old_size, new_size; /* bytes of the files */
	uint64_t new_holes;	     /* of @new_size: me_output_parts_holes() */
	bool relinkable; /* linked with --emit-relocs: relocations tell what an address is */
	bool library;	 /* not a program */
	double stage_s[ME_NR_STAGES];	  /* elapsed time */
	double stage_cpu_s[ME_NR_STAGES]; /* CPU time */
	uint64_t peak_rss_bytes;
	uint32_t nr_attempts; /* @stage_s and @stage_cpu_s cover all of them */
	/* The functions left alone that have samples, most samples first. */
	struct me_left_alone {
		char *name;
		uint64_t vaddr, samples;
		const char *why; /* static */
	} * left_alone;
	uint32_t nr_left_alone;
	/* Functions that stay because an attempt with their copies was refused. */
	struct me_left_out {
		char *name;
		struct me_refused refused;
	} * left_out;
	uint32_t nr_left_out;
	struct me_adjusted *adjusted; /* ascending vaddr */
	uint32_t nr_adjusted;
	struct me_decided *decided; /* ascending vaddr */
	uint32_t nr_decided;
	char **adjust_unknown; /* words of a file that name no function */
	uint32_t nr_adjust_unknown;
	struct me_unowned_samples_list unowned; /* samples that lie in no function */
	bool nothing_to_move;
	const struct me_inplace_report *in_place; /* NULL: not --in-place */
};

/* Does much of the code have no unwind information? */
static inline bool me_lacks_unwind(const struct me_optimize_report *r)
{
	return r->code_described < r->code_bytes / 4 * 3;
}

/*
 * me_optimize - read, infer, lay out, emit, verify; only then the output appears, by rename.
 * With @options->files the output is complete when this returns 0, and else not usable. Return:
 * 0; -ENODATA no or too little profile, or nothing worth moving; -EPERM refused as unsafe (also
 * where verify refuses); -ENOTUNIQ adjustments contradict each other; else -errno.
 * Ownership: me_optimize_report_fini(@report), always.
 */
int me_optimize(const struct me_optimize_options *options, struct me_optimize_report *report,
		struct mp_err *err);
void me_optimize_report_fini(struct me_optimize_report *report);

#endif
