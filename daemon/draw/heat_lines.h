// SPDX-License-Identifier: Apache-2.0
/*
 * heat_lines - groups executed code by cache lines, pages and functions, and computes figures
 * from them. Called by the heat picture.
 */
#ifndef MD_HEAT_LINES_H
#define MD_HEAT_LINES_H

#include "daemon/draw/heat.h"

struct md_heat_cell {
	/* line or page: its address / MD_HEAT_LINE or / MD_HEAT_PAGE; function: its index */
	uint64_t at;
	double insns;
};

struct md_heat_cells {
	struct md_heat_cell *cells; /* ascending by @at; all have executed instructions */
	size_t nr;
};

/* How many cells hold 90 %, 99 % and all of the executed instructions. */
struct md_heat_cover {
	size_t p90, p99, all;
};

struct md_heat_figures {
	struct md_heat_cover lines, pages, funcs;
	/* per 1,000 executed instructions of the original: */
	double taken;		       /* taken branches; for the optimised version: as predicted */
	double leave_line, leave_page; /* branches and direct calls to another line or page */
};

/*
 * Adds up executed instructions per line or page. The instructions of a place are spread evenly
 * over its bytes. Return: 0, -ENOMEM. Ownership: free(@out->cells).
 */
int md_heat_cells_build(const struct md_heat *heat, uint64_t cell_size, struct md_heat_cells *out);
/* Adds up by function. Code outside of all functions is one more cell, MP_NONE. */
int md_heat_cells_of_funcs(const struct md_heat *heat, struct md_heat_cells *out);
/* Return: executed instructions of cell @at; 0 if nothing runs in it. O(log n). */
double md_heat_cell_at(const struct md_heat_cells *cells, uint64_t at);

/* Return: 0, -ENOMEM. */
int md_heat_cover_count(const struct md_heat_cells *cells, struct md_heat_cover *out);
/*
 * @base: executed instructions of the original, so that figures of both versions refer to the
 * same work.
 */
int md_heat_figures_count(const struct md_heat *heat, double base, struct md_heat_figures *out);

/*
 * The colour scale: half-decade steps (1, 0.3, 0.1, ...) of a cell's share of all executed
 * instructions, starting with the largest step that any cell reaches. The last class holds all
 * smaller shares.
 */
#define MD_HEAT_CLASSES 7
struct md_heat_scale {
	double least[MD_HEAT_CLASSES]; /* lower bounds of shares, descending; the last is 0 */
};
void md_heat_scale_fit(double largest_share, struct md_heat_scale *out);
/* Return: the class of @share > 0; 0 is the hottest. */
int md_heat_scale_class(const struct md_heat_scale *scale, double share);

#endif
