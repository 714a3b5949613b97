// SPDX-License-Identifier: Apache-2.0
/*
 * export - what the formats of "morph-stats export" share. Each format is one file,
 * export_<format>.c; stats_export.c has the table of formats.
 *
 * A format gets one module after the other and writes at once, so that memory does not grow
 * with the output; those that add modules up write at the end. It prints no messages, and counts
 * the samples that it leaves out.
 */
#ifndef MD_EXPORT_H
#define MD_EXPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/calls/call_tree.h"
#include "daemon/code/stats_code.h"
#include "libprof/infer/counts.h"
#include "libprof/order/order.h"
#include "libprof/store/store.h"

/*
 * Factor for inferred counts (samples per instruction) in formats that need whole numbers. It
 * is the same for all modules and files, so that counts can be added up elsewhere.
 */
#define MD_EXPORT_SCALE 1000

/* Version of --format=json; it grows if a field changes its meaning. */
#define MD_EXPORT_JSON_SCHEMA 1

enum md_export_need {
	MD_EXPORT_CODE = 1 << 0,   /* functions and symbols, if the file can be read */
	MD_EXPORT_COUNTS = 1 << 1, /* also blocks and their inferred counts */
	MD_EXPORT_EDGES = 1 << 2,  /* edge counts */
	MD_EXPORT_ONE = 1 << 3,	   /* the format describes one module, whose file is required */
	MD_EXPORT_BINARY = 1 << 4, /* the output is binary, not for a terminal */
};

enum md_linker {
	MD_LINKER_LLD,	/* --symbol-ordering-file */
	MD_LINKER_GOLD, /* --section-ordering-file */
	MD_LINKER_LD,	/* a linker script for -T */
	MD_NR_LINKERS
};

/* Which branches the format fdata contains. */
enum md_branches {
	MD_BRANCHES_AUTO, /* counted branches if there are any, else inferred ones */
	MD_BRANCHES_NONE,
	MD_BRANCHES_SEEN,
	MD_BRANCHES_INFERRED,
};

struct md_call_graph;

struct md_export_module {
	const struct mp_module *module;
	const struct mp_ip_count *counts; /* ascending by address */
	size_t nr_counts;
	const struct mp_edge_count *edges; /* ascending; none unless the format asks for them */
	size_t nr_edges;
	bool exact;		    /* @counts and @edges were counted, not sampled */
	const struct md_code *code; /* NULL: the file could not be read */
	const char *why;	    /* if @code is NULL: the reason */
	/* for code->cfg; NULL unless the format asks for counts */
	const struct mp_profile *profile;
	/* for code->cfg; NULL unless the format asks for counts */
	const struct mp_counts *inferred;
};

struct md_export {
	FILE *out;
	int64_t since_s, now_s;
	uint64_t period_ns; /* processor time that one sample stands for; 0: not known */
	enum md_branches branches;
	enum md_linker linker;
	enum mp_order order;
	const struct md_call_graph *graph; /* for @calls of a format that wants it; else NULL */
	uint64_t nr_written, nr_skipped;   /* in samples */
	uint64_t nr_unnamed;		   /* functions left out because they have no usable name */
	uint64_t nr_shared_names;	   /* functions whose name another function has too */
	uint64_t nr_lineless;		   /* functions that ran and whose source is not known */
	void *state;			   /* private to the format */
};

struct md_export_format {
	const char *name;
	unsigned int needs; /* bits of enum md_export_need */
	/* Says whether a module with @nr_edges needs MD_EXPORT_COUNTS. NULL: every module does. */
	bool (*wants_counts)(const struct md_export *e, size_t nr_edges);
	/* Any of these may be NULL. Return: 0, -errno with a message. */
	int (*begin)(struct md_export *e, struct mp_err *err);
	int (*module)(struct md_export *e, const struct md_export_module *m, struct mp_err *err);
	int (*end)(struct md_export *e, struct mp_err *err);
	void (*drop)(struct md_export *e); /* frees e->state; also called after an error */
	/* Writes calling contexts instead of modules. NULL: the format has no stacks. */
	int (*calls)(struct md_export *e, const struct md_calls *calls, struct mp_err *err);
	bool wants_graph; /* for @calls: how often functions called one another */
};

extern const struct md_export_format md_export_folded, md_export_fdata, md_export_callgrind,
	md_export_pprof, md_export_llvm_sample, md_export_gcc_afdo, md_export_propeller,
	md_export_order, md_export_json, md_export_speedscope;

/* Rounds an inferred count to a whole number; a count above 0 gives at least 1. */
uint64_t md_export_scaled(double count);

/* A call or tail call between two functions, or of a function to itself. */
struct md_export_call {
	uint64_t at;		 /* address of the call instruction */
	uint32_t caller, callee; /* function numbers */
	double count;		 /* inferred, above 0 */
};

/*
 * md_export_calls - list the calls with a count, ascending by caller and address: direct calls
 * found in the code, and indirect calls for which there are edge counts. Return: 0, -ENOMEM.
 * Ownership: free(*@out).
 */
int md_export_calls(const struct md_export_module *m, struct md_export_call **out, size_t *nr);

/* Return: edge counts per unit of an inferred count; 0: there are no edge counts. */
double md_export_seen_per_count(const struct md_export_module *m);

/* Return: true if the instruction at @vaddr is one of @kinds (bits 1 << enum mp_insn_kind). */
bool md_export_insn_is(const struct mp_elf *elf, uint64_t vaddr, unsigned int kinds);

/*
 * Counts samples per function of m->code; one more element has the samples outside of
 * functions. Return: NULL: no memory. Ownership: free().
 */
uint64_t *md_export_func_samples(const struct md_export_module *m);

/* Adds samples in blocks (m->profile) to e->nr_written, and all others to e->nr_skipped. */
void md_export_count_blocks(struct md_export *e, const struct md_export_module *m);

/* Finds the last instruction of @block. Return: false: its bytes cannot be read. */
bool md_export_last_insn(const struct mp_cfg *cfg, const struct mp_block *block, uint64_t *vaddr);

#endif
