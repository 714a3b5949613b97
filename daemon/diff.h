// SPDX-License-Identifier: Apache-2.0
/*
 * diff - the samples of two sides, matched module by module, function by function or block by
 * block. Side 0 is the old one, side 1 the new one.
 */
#ifndef MD_DIFF_H
#define MD_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/stats_code.h"
#include "daemon/stats_filter.h"
#include "daemon/stats_rows.h"
#include "libprof/store_span.h"

struct md_diff_module {
	struct mp_ip_count *counts;
	size_t nr_counts;
	uint64_t samples;
	size_t group;
};

struct md_diff_side {
	struct mp_module *modules;
	struct md_diff_module *more; /* one per module */
	size_t nr;
	uint64_t total;	   /* samples of all modules in the period */
	uint64_t left_out; /* of days that are kept together with days outside of the period */
};

/* Modules of both sides that are one to people: of one identity, or of one path. */
struct md_diff_group {
	const char *path;		/* the newest member's */
	const struct mp_module *module; /* that member */
	uint64_t samples[2];
	size_t nr_builds;
	bool wanted;
};

enum md_diff_code {
	MD_DIFF_SAME,  /* or nobody knows */
	MD_DIFF_ADDED, /* the old builds have no such function */
	MD_DIFF_GONE,  /* the new ones have none */
};

struct md_diff_row {
	size_t group;
	char *function; /* NULL: none is known there */
	size_t build;	/* from 1: only this build has it; 0: matched by address or by name */
	bool by_name;
	uint64_t vaddr;	 /* 0 where matched by name */
	uint64_t offset; /* of a block in its function */
	uint64_t samples[2];
	double share[2]; /* percent */
	double delta;	 /* percentage points */
	double p, p_adjusted;
	enum md_diff_code code;
};

struct md_diff {
	struct md_diff_side sides[2];
	struct md_diff_group *groups;
	size_t nr_groups;
	struct md_diff_row *rows;
	size_t nr_rows, max_rows;
	/* asked for */
	enum md_by by;
	struct md_stats_filter filter;
	const char *const *binaries; /* files to take code from, and to say which modules */
	size_t nr_binaries;
	const char *function; /* NULL: all */
	void (*note)(void *ctx, const char *what);
	void *ctx;
};

/* What of @store lies in the days of @period. */
int md_diff_load(struct md_diff_side *side, struct mp_store *store, const struct mp_span *period,
		 struct mp_err *err);
/* Match, and compare: fills groups and rows. Return: 0, -errno. */
int md_diff_compare(struct md_diff *diff, struct mp_err *err);
void md_diff_fini(struct md_diff *diff);

/* After correction for the number of rows, at 5 %; and for this row alone. */
bool md_diff_row_is_significant(const struct md_diff_row *row);
bool md_diff_row_is_possible(const struct md_diff_row *row);

/* diff_match.c: groups of both sides' modules. Return: 0, -ENOMEM, -errno of a --binary. */
int md_diff_match(struct md_diff *diff, struct mp_err *err);
/* diff_rows.c: rows below modules. */
int md_diff_code_rows(struct md_diff *diff, struct mp_err *err);
/* Ownership: @row->function is taken. Return: 0, -ENOMEM. */
int md_diff_add_row(struct md_diff *diff, const struct md_diff_row *row);
/* Rows from @first on that are about the same thing become one. */
void md_diff_unite_rows(struct md_diff *diff, size_t first);

#endif
