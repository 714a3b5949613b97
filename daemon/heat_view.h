// SPDX-License-Identifier: Apache-2.0
/*
 * heat_view - what is drawn where: pages on rows with the gaps between them compressed, the jumps
 * between rows, labels that do not overlap. Pure geometry: no colours, no file.
 */
#ifndef MD_HEAT_VIEW_H
#define MD_HEAT_VIEW_H

#include "daemon/heat_lines.h"

/* A row of @pages_per_row pages, or the mark of a gap where nothing runs. */
struct md_heat_row {
	uint64_t page; /* the first; a multiple of pages_per_row. Gap: the first that is left out */
	uint64_t nr_left_out; /* pages; 0: a row */
	double top, height;
};

struct md_heat_rows {
	struct md_heat_row *rows; /* ascending page */
	size_t nr, nr_gaps;
	unsigned int pages_per_row;
};

/*
 * md_heat_rows_build - rows for the @pages (ascending) in which anything runs. Up to @keep_empty
 * rows between them are drawn empty, more become a gap.
 * Return: 0, -ENOMEM. Ownership: free(@out->rows).
 */
int md_heat_rows_build(const struct md_heat_cells *pages, unsigned int pages_per_row,
		       unsigned int keep_empty, struct md_heat_rows *out);
/* Set tops and heights from @top down. Return: the bottom. */
double md_heat_rows_place(struct md_heat_rows *rows, double top, double row_height,
			  double gap_height);
/* The index of the row that holds @page, or SIZE_MAX. */
size_t md_heat_row_of(const struct md_heat_rows *rows, uint64_t page);

struct md_heat_grid {
	unsigned int pages_per_row;
	double cell_width, row_height; /* of one line */
	double gap_height;
};
/* The grid of at most @width x @height for both (@b may be NULL) in which lines are largest. */
int md_heat_grid_fit(const struct md_heat_cells *a, const struct md_heat_cells *b,
		     unsigned int keep_empty, double width, double height,
		     struct md_heat_grid *out);

/* All jumps from one row to another. */
struct md_heat_arc {
	uint32_t from, to; /* rows */
	double count;
};

struct md_heat_arcs {
	struct md_heat_arc *arcs; /* most first */
	size_t nr;
	double within, between; /* jumps that stay in their row, and all others */
};
int md_heat_arcs_build(const struct md_heat *heat, const struct md_heat_rows *rows,
		       struct md_heat_arcs *out);
/* The share of @arcs->between that the first @nr arcs are. */
double md_heat_arcs_share(const struct md_heat_arcs *arcs, size_t nr);

/*
 * md_heat_labels_place - move @y (ascending) as little as need be for neighbours to be @spacing
 * apart and all to lie within [@top, @bottom].
 * Return: how many fit, from the first: less than @nr where there is no room for all, at most
 * MD_HEAT_MAX_LABELS.
 */
#define MD_HEAT_MAX_LABELS 64
size_t md_heat_labels_place(double *y, size_t nr, double spacing, double top, double bottom);

#endif
