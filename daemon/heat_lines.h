// SPDX-License-Identifier: Apache-2.0
/*
 * heat_lines - executed code as cache lines, pages and functions, and the numbers about them.
 */
#ifndef MD_HEAT_LINES_H
#define MD_HEAT_LINES_H

#include "daemon/heat.h"

struct md_heat_cell {
	uint64_t at; /* line or page: its address / MD_HEAT_LINE or / MD_HEAT_PAGE; function: index */
	double insns;
};

struct md_heat_cells {
	struct md_heat_cell *cells; /* ascending @at, all of them run */
	size_t nr;
};

/* How many of them hold 90 %, 99 % and all of the executed instructions. */
struct md_heat_cover {
	size_t p90, p99, all;
};

struct md_heat_figures {
	struct md_heat_cover lines, pages, funcs;
	/* Per 1,000 executed instructions of @base: */
	double taken;		       /* taken branches; after: as expected of a run */
	double leave_line, leave_page; /* branches, jumps and direct calls to another one */
};

/* What executes in each line or page: a place's instructions are spread over its bytes.
 * Return: 0, -ENOMEM. Ownership: free(@out->cells). */
int md_heat_cells_build(const struct md_heat *heat, uint64_t cell_size, struct md_heat_cells *out);
/* By function; what is in none is one more, MP_NONE. */
int md_heat_cells_of_funcs(const struct md_heat *heat, struct md_heat_cells *out);
/* 0 where nothing runs in it. O(log n). */
double md_heat_cell_at(const struct md_heat_cells *cells, uint64_t at);

/* Return: 0, -ENOMEM. */
int md_heat_cover_count(const struct md_heat_cells *cells, struct md_heat_cover *out);
/* @base: executed instructions of the original, so that both versions are told per same work. */
int md_heat_figures_count(const struct md_heat *heat, double base, struct md_heat_figures *out);

/*
 * The scale of the colours: half-decade steps (1, 0.3, 0.1, ...) of a cell's share of all
 * executed instructions, from the largest step that any cell reaches, @nr of them; what is below
 * the last step is of the last class too.
 */
#define MD_HEAT_CLASSES 7
struct md_heat_scale {
	double least[MD_HEAT_CLASSES]; /* share; descending; the last is 0 */
};
void md_heat_scale_fit(double largest_share, struct md_heat_scale *out);
/* The class of @share > 0: 0 is the hottest. */
int md_heat_scale_class(const struct md_heat_scale *scale, double share);

#endif
