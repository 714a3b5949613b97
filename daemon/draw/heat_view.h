// SPDX-License-Identifier: Apache-2.0
/*
 * heat_view - the geometry of the heat picture: rows of pages with compressed gaps, arcs
 * between rows, and labels that do not overlap. Knows no colours and writes no file. Called by
 * heat_panel and heat_funcs.
 */
#ifndef MD_HEAT_VIEW_H
#define MD_HEAT_VIEW_H

#include "daemon/draw/heat_lines.h"

/* A row of @pages_per_row pages, or a gap where nothing runs. */
struct md_heat_row {
	/* row: its first page, a multiple of pages_per_row; gap: the first page left out */
	uint64_t page;
	uint64_t nr_left_out; /* pages of a gap; 0: a row */
	double top, height;
};

struct md_heat_rows {
	struct md_heat_row *rows; /* ascending by page */
	size_t nr, nr_gaps;
	unsigned int pages_per_row;
};

/*
 * md_heat_rows_build - make rows for the executed @pages (ascending). Up to @keep_empty empty
 * rows between them are kept; more become a gap. Return: 0, -ENOMEM. Ownership:
 * free(@out->rows).
 */
int md_heat_rows_build(const struct md_heat_cells *pages, unsigned int pages_per_row,
		       unsigned int keep_empty, struct md_heat_rows *out);
/* Sets tops and heights of all rows from @top down. Return: the bottom. */
double md_heat_rows_place(struct md_heat_rows *rows, double top, double row_height,
			  double gap_height);
/* Return: index of the row that holds @page, or SIZE_MAX. */
size_t md_heat_row_of(const struct md_heat_rows *rows, uint64_t page);

struct md_heat_grid {
	unsigned int pages_per_row;
	double cell_width, row_height; /* size of one line's cell */
	double gap_height;
};
/*
 * Finds the grid within @width x @height whose cells are largest for both sides (@b may be
 * NULL).
 */
int md_heat_grid_fit(const struct md_heat_cells *a, const struct md_heat_cells *b,
		     unsigned int keep_empty, double width, double height,
		     struct md_heat_grid *out);

/* All jumps from one row to another, added up. */
struct md_heat_arc {
	uint32_t from, to; /* row indices */
	double count;
};

struct md_heat_arcs {
	struct md_heat_arc *arcs; /* most frequent first */
	size_t nr;
	double within, between; /* jumps within a row, and jumps between rows */
};
int md_heat_arcs_build(const struct md_heat *heat, const struct md_heat_rows *rows,
		       struct md_heat_arcs *out);
/* Return: the share of @arcs->between that the first @nr arcs have. */
double md_heat_arcs_share(const struct md_heat_arcs *arcs, size_t nr);

/*
 * md_heat_labels_place - move the positions @y (ascending) as little as possible, so that
 * neighbours are @spacing apart and all lie within [@top, @bottom]. Return: how many labels
 * fit, from the first: at most MD_HEAT_MAX_LABELS, fewer than @nr if there is no room for all.
 */
#define MD_HEAT_MAX_LABELS 64
size_t md_heat_labels_place(double *y, size_t nr, double spacing, double top, double bottom);

#endif
