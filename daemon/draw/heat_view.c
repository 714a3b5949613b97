// SPDX-License-Identifier: Apache-2.0
/* heat_view - rows, arcs and labels of the heat picture; see heat_view.h. */
#include "daemon/draw/heat_view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"

/* ---- rows ---------------------------------------------------------------------------------- */

int md_heat_rows_build(const struct md_heat_cells *pages, unsigned int pages_per_row,
		       unsigned int keep_empty, struct md_heat_rows *out)
{
	uint64_t next = 0; /* number of the row after the last one, counted from address 0 */

	*out = (struct md_heat_rows){.pages_per_row = pages_per_row};
	/* Before each page there is at most one gap or @keep_empty rows. */
	out->rows = calloc(pages->nr * (keep_empty + 2) + 1, sizeof(*out->rows));
	if (!out->rows)
		return -ENOMEM;
	for (size_t i = 0; i < pages->nr; i++) {
		uint64_t at = pages->cells[i].at / pages_per_row;

		if (i && at < next)
			continue;
		if (i && at - next > keep_empty) {
			out->rows[out->nr++] =
				(struct md_heat_row){.page = next * pages_per_row,
						     .nr_left_out = (at - next) * pages_per_row};
			out->nr_gaps++;
		} else if (i) {
			for (; next < at; next++)
				out->rows[out->nr++] =
					(struct md_heat_row){.page = next * pages_per_row};
		}
		out->rows[out->nr++] = (struct md_heat_row){.page = at * pages_per_row};
		next = at + 1;
	}
	return 0;
}

double md_heat_rows_place(struct md_heat_rows *rows, double top, double row_height,
			  double gap_height)
{
	for (size_t i = 0; i < rows->nr; i++) {
		rows->rows[i].top = top;
		rows->rows[i].height = rows->rows[i].nr_left_out ? gap_height : row_height;
		top += rows->rows[i].height;
	}
	return top;
}

size_t md_heat_row_of(const struct md_heat_rows *rows, uint64_t page)
{
	size_t low = mp_search(i, 0, rows->nr, rows->rows[i].page <= page);

	if (!low || rows->rows[low - 1].nr_left_out ||
	    page - rows->rows[low - 1].page >= rows->pages_per_row)
		return SIZE_MAX;
	return low - 1;
}

/* ---- the grid's size ----------------------------------------------------------------------- */

#define MAX_PAGES_PER_ROW 64
#define MAX_CELL	  9.0
#define MAX_ROW		  14.0
#define MAX_GAP		  24.0

static int count_rows(const struct md_heat_cells *pages, unsigned int pages_per_row,
		      unsigned int keep_empty, double *nr_rows, double *nr_gaps)
{
	struct md_heat_rows rows;

	if (md_heat_rows_build(pages, pages_per_row, keep_empty, &rows))
		return -ENOMEM;
	*nr_gaps = (double)rows.nr_gaps;
	*nr_rows = (double)(rows.nr - rows.nr_gaps);
	free(rows.rows);
	return 0;
}

int md_heat_grid_fit(const struct md_heat_cells *a, const struct md_heat_cells *b,
		     unsigned int keep_empty, double width, double height, struct md_heat_grid *out)
{
	const struct md_heat_cells *both[] = {a, b};
	double best = 0;

	*out = (struct md_heat_grid){.pages_per_row = 1};
	for (unsigned int k = 1; k <= MAX_PAGES_PER_ROW; k *= 2) {
		struct md_heat_grid grid = {.pages_per_row = k};
		double least, row = MAX_ROW, gap = MAX_GAP;

		grid.cell_width = fmin(width / (MD_HEAT_PAGE / MD_HEAT_LINE * k), MAX_CELL);
		for (int i = 0; i < 2 && both[i]; i++) {
			double nr_rows, nr_gaps, gap_height;

			if (count_rows(both[i], k, keep_empty, &nr_rows, &nr_gaps))
				return -ENOMEM;
			/* Gaps get at most a fifth of the height. */
			gap_height = nr_gaps ? fmin(MAX_GAP, height / 5 / nr_gaps) : MAX_GAP;
			gap = fmin(gap, gap_height);
			if (nr_rows)
				row = fmin(row, (height - nr_gaps * gap_height) / nr_rows);
		}
		grid.row_height = row;
		grid.gap_height = gap;
		/* Judge a cell by its smaller side, weighted. */
		least = fmin(grid.cell_width, grid.row_height / 1.5);
		if (least > best) {
			best = least;
			*out = grid;
		}
	}
	return 0;
}

/* ---- arcs ---------------------------------------------------------------------------------- */

static int compare_ends(const void *a, const void *b)
{
	const struct md_heat_arc *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static int compare_counts(const void *a, const void *b)
{
	const struct md_heat_arc *x = a, *y = b;

	if (x->count < y->count || x->count > y->count)
		return x->count < y->count ? 1 : -1;
	return compare_ends(a, b);
}

int md_heat_arcs_build(const struct md_heat *heat, const struct md_heat_rows *rows,
		       struct md_heat_arcs *out)
{
	size_t nr = 0;

	*out = (struct md_heat_arcs){.arcs = calloc(heat->nr_jumps + 1, sizeof(*out->arcs))};
	if (!out->arcs)
		return -ENOMEM;
	for (size_t i = 0; i < heat->nr_jumps; i++) {
		const struct md_heat_jump *jump = &heat->jumps[i];
		size_t from = md_heat_row_of(rows, jump->from / MD_HEAT_PAGE);
		size_t to = md_heat_row_of(rows, jump->to / MD_HEAT_PAGE);

		if (from == to && from != SIZE_MAX) {
			out->within += jump->count;
			continue;
		}
		out->between += jump->count;
		/* Code outside of all rows, such as the PLT, has no blocks. */
		if (from == SIZE_MAX || to == SIZE_MAX)
			continue;
		out->arcs[nr++] = (struct md_heat_arc){(uint32_t)from, (uint32_t)to, jump->count};
	}
	if (nr)
		qsort(out->arcs, nr, sizeof(*out->arcs), compare_ends);
	for (size_t i = 0; i < nr; i++) {
		if (out->nr && !compare_ends(&out->arcs[out->nr - 1], &out->arcs[i]))
			out->arcs[out->nr - 1].count += out->arcs[i].count;
		else
			out->arcs[out->nr++] = out->arcs[i];
	}
	if (out->nr)
		qsort(out->arcs, out->nr, sizeof(*out->arcs), compare_counts);
	return 0;
}

double md_heat_arcs_share(const struct md_heat_arcs *arcs, size_t nr)
{
	double sum = 0;

	for (size_t i = 0; i < nr && i < arcs->nr; i++)
		sum += arcs->arcs[i].count;
	return arcs->between > 0 ? sum / arcs->between : 0;
}

/* ---- labels -------------------------------------------------------------------------------- */

/*
 * Labels that touch form a cluster. It moves to where its labels are, on average, closest to
 * their targets.
 */
struct cluster {
	size_t first, nr;
	double sum; /* sum of the positions that each label wants for the cluster's first */
};

static double cluster_at(const struct cluster *c, double spacing, double top, double bottom)
{
	double at = c->sum / (double)c->nr;

	at = fmin(at, bottom - (double)(c->nr - 1) * spacing);
	return fmax(at, top);
}

size_t md_heat_labels_place(double *y, size_t nr, double spacing, double top, double bottom)
{
	struct cluster clusters[MD_HEAT_MAX_LABELS];
	size_t room = bottom < top ? 0 : (size_t)((bottom - top) / spacing) + 1, used = 0;

	nr = nr < room ? nr : room;
	nr = nr < MD_HEAT_MAX_LABELS ? nr : MD_HEAT_MAX_LABELS;
	for (size_t i = 0; i < nr; i++) {
		clusters[used++] = (struct cluster){i, 1, y[i]};
		while (used > 1) {
			struct cluster *above = &clusters[used - 2], *c = &clusters[used - 1];

			if (cluster_at(above, spacing, top, bottom) + (double)above->nr * spacing <=
			    cluster_at(c, spacing, top, bottom))
				break;
			above->sum += c->sum - (double)(above->nr * c->nr) * spacing;
			above->nr += c->nr;
			used--;
		}
	}
	for (size_t c = 0; c < used; c++)
		for (size_t i = 0; i < clusters[c].nr; i++)
			y[clusters[c].first + i] = cluster_at(&clusters[c], spacing, top, bottom) +
						   (double)i * spacing;
	return nr;
}
