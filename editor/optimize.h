// SPDX-License-Identifier: Apache-2.0
/*
 * optimize - takes one file from profile to verified output: read, infer, lay out, emit, verify.
 */
#ifndef ME_OPTIMIZE_H
#define ME_OPTIMIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/counts.h"
#include "editor/digest.h"
#include "editor/eligible.h"
#include "editor/emit.h"
#include "editor/evidence.h"
#include "editor/instrument.h"
#include "editor/layout.h"
#include "editor/number.h"
#include "editor/outside.h"
#include "editor/print.h"
#include "editor/select.h"
#include "editor/verify.h"
#include "libprof/err.h"
#include "libprof/infer.h"

/* With fewer samples it is unclear where a program spends its time. */
#define ME_MIN_SAMPLES 1000

/* Open files that are used instead of the paths in the options. */
struct me_optimize_files {
	int input;
	int output; /* for reading and writing; not synced, not named and not closed */
	int debug;  /* as @output, for the debug file; used if the report names one that was read */
};

enum me_stage {
	ME_STAGE_READ,
	ME_STAGE_PROFILE,
	ME_STAGE_INFER,
	ME_STAGE_LAYOUT,
	ME_STAGE_EMIT,
	ME_STAGE_DEBUG, /* a part of emitting, with its own line in the report */
	ME_STAGE_WRITE,
	ME_STAGE_VERIFY,
	ME_NR_STAGES
};

/* A version that counts or tells its paths, instead of a faster one. */
struct me_counting {
	bool none;  /* the copies of @paths without any added code, to measure its cost */
	bool edges; /* counters: instrument.h */
	bool paths; /* numbers in a register: number.h */
	bool polls; /* with @paths: asked for paths through the file @path; poll_code.h */
	bool alone; /* true if no other file of the process has counters */
	enum {
		ME_COUNT_AUTO, /* for threads if the file starts some and can have them */
		ME_COUNT_PLAIN,
		ME_COUNT_ATOMIC,
		ME_COUNT_THREADS
	} how;
	const char *path; /* the file of counts; "%p" stands for the process's number */
};

/* True unless a faster version is wanted. */
static inline bool me_counting_any(const struct me_counting *c)
{
	return c->none || c->edges || c->paths;
}

struct me_optimize_options {
	const char *input, *output;	       /* @output NULL: --dry-run */
	const struct me_optimize_files *files; /* NULL: by name */
	/* The input's debug file, or ME_SEPARATE_AUTO; NULL: none is read. */
	const char *debug_file;
	/* The output's debug file; NULL: the output's name with .debug, or its build-id with @files. */
	const char *debug_output;
	const char *db;
	/*
	 * If @db has exact counts: a store with samples of the same work, or NULL. The report takes
	 * its shares from these samples, which also show functions that could not be counted.
	 * @uncounted gives the reasons.
	 */
	const char *sampled_db;
	const struct me_left_alone *uncounted;
	uint32_t nr_uncounted;
	int64_t since_s;
	uint64_t min_samples;
	enum mp_estimator estimator;
	struct me_stale_options stale;
	bool exact_profile; /* the counts are exact, whatever the store says */
	struct me_layout_options layout;
	bool all;    /* no profile: move everything eligible, in the original order */
	bool stress; /* with @all: in an order that exercises the editor, see plan_all.h */
	uint64_t stress_seed;
	struct me_counting counting;
	struct me_words skip, only;	      /* functions that stay; the only ones that may move */
	bool explain;			      /* for the report alone */
	const struct me_print_options *print; /* what stages show; NULL: nothing */
	bool keeps_nothing;		      /* a dry run with @files: the output is not for use */
	unsigned int nr_threads;	      /* at most; the output does not depend on it */
	/* Called when a stage begins; may be NULL. */
	void (*progress)(enum me_stage stage);
};

struct me_inplace_report;

struct me_optimize_report {
	char build_id[2 * MP_BUILD_ID_MAX + 1];
	struct mp_id id;	       /* of the original */
	struct me_digest input_digest; /* of what was read and verified against; only with files */
	uint32_t nr_funcs, nr_considered; /* considered: functions with samples; all with --all */
	uint32_t nr_moved;
	uint32_t refused[ME_NR_REFUSALS];  /* of the considered functions */
	uint32_t problems[MP_NR_PROBLEMS]; /* of refused[ME_REFUSED_PROBLEM] */
	uint32_t nr_not_worth;		   /* eligible, but not in the plan */
	uint64_t nr_blocks, nr_hot_blocks;
	uint64_t samples, samples_moved, samples_outside;
	bool exact;		/* @db holds counts, not samples */
	uint64_t counts;	/* executions of blocks, if the samples are of @sampled_db */
	double share_uncounted; /* of the samples, in functions that could not be counted */
	uint64_t transfers;	/* of control that were recorded, with or without samples */
	uint64_t paths,
		paths_strange; /* samples with a path; those whose path is not of this file */
	struct me_stale_report stale;
	double share_moved; /* of the samples; without samples, of the transfers */
	struct me_prediction prediction;
	bool has_prediction;
	struct mp_counts_stats inference;
	struct me_instrument_report instrumented;
	struct me_number_report numbered;
	uint8_t counters; /* enum me_counters */
	struct me_verify_report verified;
	struct me_emitted emitted;	 /* numbers only: the image is freed */
	char *debug_file, *debug_output; /* the debug files read and written; NULL: none */
	uint64_t debug_old_size, debug_new_size;
	uint64_t old_size, new_size; /* bytes of the files */
	uint64_t new_holes;	     /* of @new_size: me_image_holes() */
	bool relinkable; /* linked with --emit-relocs: relocations tell what an address is */
	bool library;	 /* a shared object, not a program */
	double stage_s[ME_NR_STAGES];	  /* wall-clock time */
	double stage_cpu_s[ME_NR_STAGES]; /* processor time */
	uint64_t peak_rss_bytes;
	uint32_t nr_attempts; /* attempts made; the seconds cover all of them */
	/* The functions left alone that have samples, most samples first. */
	struct me_left_alone {
		char *name;
		uint64_t vaddr, samples;
		const char *why; /* static */
	} * left_alone;
	uint32_t nr_left_alone;
	struct me_outside_list outside; /* samples outside of all functions */
	bool nothing_to_move;
	const struct me_inplace_report *in_place; /* NULL: not --in-place */
};

/*
 * me_optimize - run all stages. The output appears by rename after it has been verified; with
 * @options->files its contents are valid only if this returns 0.
 * Return: 0; -ENODATA no or too little profile, or nothing worth moving; -EPERM refused as unsafe
 * (also where verify refuses); else -errno. Ownership: me_optimize_report_fini(@report), always.
 */
int me_optimize(const struct me_optimize_options *options, struct me_optimize_report *report,
		struct mp_err *err);
void me_optimize_report_fini(struct me_optimize_report *report);

#endif
