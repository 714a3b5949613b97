// SPDX-License-Identifier: Apache-2.0
/*
 * export - what the formats of "morph-stats export" share: one file per format
 * (export_<format>.c), one table of them in stats_export.c.
 *
 * A format is given one module after the other and writes as it goes, so that memory does not
 * grow with what is written. It prints no messages; what it leaves out it counts.
 */
#ifndef MD_EXPORT_H
#define MD_EXPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/stats_code.h"
#include "libprof/counts.h"
#include "libprof/order.h"
#include "libprof/store.h"

/* What inferred counts (samples per instruction) are multiplied by where a format takes whole
 * numbers: the same for all modules and files, so that they can be added up elsewhere. */
#define MD_EXPORT_SCALE 1000

/* Version of --format=json; grows when a field changes its meaning. */
#define MD_EXPORT_JSON_SCHEMA 1

enum md_export_need {
	MD_EXPORT_CODE = 1 << 0,   /* functions and symbols, where the file can be had */
	MD_EXPORT_COUNTS = 1 << 1, /* blocks and their inferred counts too */
	MD_EXPORT_EDGES = 1 << 2,  /* transfers that were seen */
	MD_EXPORT_ONE = 1 << 3,	   /* speaks of one module, whose file must be there */
	MD_EXPORT_BINARY = 1 << 4, /* nothing for a terminal */
};

enum md_linker {
	MD_LINKER_LLD,	/* --symbol-ordering-file */
	MD_LINKER_GOLD, /* --section-ordering-file */
	MD_LINKER_LD,	/* a linker script for -T */
	MD_NR_LINKERS
};

/* Which branches fdata tells of. */
enum md_branches {
	MD_BRANCHES_AUTO, /* those that were seen, where any were, else inferred ones */
	MD_BRANCHES_NONE,
	MD_BRANCHES_SEEN,
	MD_BRANCHES_INFERRED,
};

struct md_export_module {
	const struct mp_module *module;
	const struct mp_ip_count *counts; /* ascending */
	size_t nr_counts;
	const struct mp_edge_count *edges; /* ascending; none unless asked for */
	size_t nr_edges;
	bool exact;			  /* both were counted, not sampled */
	const struct md_code *code;	  /* NULL: the file could not be had */
	const char *why;		  /* then: why not */
	const struct mp_profile *profile; /* of code->cfg; NULL unless counts were asked for */
	const struct mp_counts *inferred; /* likewise */
};

struct md_export {
	FILE *out;
	int64_t since_s, now_s;
	uint64_t period_ns; /* of processor time that one sample stands for; 0: not known */
	enum md_branches branches;
	enum md_linker linker;
	enum mp_order order;
	uint64_t nr_written, nr_skipped; /* samples */
	uint64_t nr_unnamed;		 /* functions left out for want of a usable name */
	uint64_t nr_shared_names;	 /* functions whose name others have as well */
	void *state;			 /* the format's own */
};

struct md_export_format {
	const char *name;
	unsigned int needs; /* enum md_export_need */
	/* Whether MD_EXPORT_COUNTS is needed for a module with so many edges; NULL: it is. */
	bool (*wants_counts)(const struct md_export *e, size_t nr_edges);
	/* Any may be NULL. Return: 0, -errno with a message. */
	int (*begin)(struct md_export *e, struct mp_err *err);
	int (*module)(struct md_export *e, const struct md_export_module *m, struct mp_err *err);
	int (*end)(struct md_export *e, struct mp_err *err);
	void (*drop)(struct md_export *e); /* frees e->state, also after an error */
};

extern const struct md_export_format md_export_folded, md_export_fdata, md_export_callgrind,
	md_export_pprof, md_export_autofdo, md_export_order, md_export_json;

/* An inferred count as a whole number; what ran at all is at least 1. */
uint64_t md_export_scaled(double count);
/* The part of a path behind its last slash. */
const char *md_export_file_name(const char *path);

/* A call or tail call from one function to another, or to itself. */
struct md_export_call {
	uint64_t at;		 /* of its instruction */
	uint32_t caller, callee; /* functions */
	double count;		 /* inferred, above 0 */
};

/*
 * md_export_calls - calls that happen, ascending caller and address: the direct ones that code shows,
 * and indirect ones where they were seen. Return: 0, -ENOMEM. Ownership: free(*@out).
 */
int md_export_calls(const struct md_export_module *m, struct md_export_call **out, size_t *nr);

/* Seen transfers for each unit of an inferred count; 0: none were seen. */
double md_export_seen_per_count(const struct md_export_module *m);

/* Whether the instruction at @vaddr is one of @kinds (1 << enum mp_insn_kind). */
bool md_export_insn_is(const struct mp_elf *elf, uint64_t vaddr, unsigned int kinds);

/* Samples per function of m->code, and behind them those in none. Return: NULL: no memory.
 * Ownership: free(). */
uint64_t *md_export_func_samples(const struct md_export_module *m);

/* Count what lies in blocks (m->profile) as written, all other samples as left out. */
void md_export_count_blocks(struct md_export *e, const struct md_export_module *m);

/* The last instruction of @block, from its file's bytes. Return: false where it cannot be read. */
bool md_export_last_insn(const struct mp_cfg *cfg, const struct mp_block *block, uint64_t *vaddr);

#endif
