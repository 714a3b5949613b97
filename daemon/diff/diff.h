// SPDX-License-Identifier: Apache-2.0
/*
 * diff - compares the samples of two sides by module, function or block. Side 0 is the old
 * side, side 1 the new one. Called by "morph-stats diff".
 */
#ifndef MD_DIFF_H
#define MD_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/code/stats_code.h"
#include "daemon/code/stats_filter.h"
#include "daemon/code/stats_rows.h"
#include "libprof/store/store_span.h"

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
	uint64_t left_out; /* in spans of days that lie only partly in the period */
};

/* Modules of both sides that users take for one: they share an identity or a path. */
struct md_diff_group {
	const char *path;		/* path of the newest member */
	const struct mp_module *module; /* the newest member */
	uint64_t samples[2];
	size_t nr_builds;
	bool wanted;
};

enum md_diff_code {
	MD_DIFF_SAME,  /* both sides have the function, or it is not known which have it */
	MD_DIFF_ADDED, /* no old build has this function */
	MD_DIFF_GONE,  /* no new build has this function */
};

struct md_diff_row {
	size_t group;
	char *function; /* NULL: unknown code */
	size_t build; /* 0: the code may be in all builds; else it is in build number @build only */
	bool by_name;
	uint64_t vaddr;	 /* 0: matched by name */
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
	/* the request */
	enum md_by by;
	struct md_stats_filter filter;
	const char *const *binaries; /* files that give code and select modules */
	size_t nr_binaries;
	const char *function; /* NULL: all functions */
	void (*note)(void *ctx, const char *what);
	void *ctx;
};

/* Loads the counts of @store that lie in @period. */
int md_diff_load(struct md_diff_side *side, struct mp_store *store, const struct mp_span *period,
		 struct mp_err *err);
/* Matches and compares both sides: fills groups and rows. Return: 0, -errno. */
int md_diff_compare(struct md_diff *diff, struct mp_err *err);
void md_diff_fini(struct md_diff *diff);

/* Tests at 5 %: with correction for the number of rows, and for this row alone. */
bool md_diff_row_is_significant(const struct md_diff_row *row);
bool md_diff_row_is_possible(const struct md_diff_row *row);

/* In diff_match.c: groups the modules of both sides. Return: 0, -ENOMEM, -errno of a --binary. */
int md_diff_match(struct md_diff *diff, struct mp_err *err);
/* In diff_rows.c: adds the rows of functions or blocks. */
int md_diff_code_rows(struct md_diff *diff, struct mp_err *err);
/* Ownership: takes @row->function. Return: 0, -ENOMEM. */
int md_diff_add_row(struct md_diff *diff, const struct md_diff_row *row);
/* Merges rows from index @first on that name the same code. */
void md_diff_unite_rows(struct md_diff *diff, size_t first);

#endif
