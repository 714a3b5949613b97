// SPDX-License-Identifier: Apache-2.0
/* heat_lines - cells, their figures and the colour scale; see heat_lines.h. */
#include "daemon/draw/heat_lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_at(const void *a, const void *b)
{
	const struct md_heat_cell *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Sorts cells and adds up those with equal @at. */
static void merge(struct md_heat_cells *cells)
{
	size_t nr = 0;

	if (cells->nr)
		qsort(cells->cells, cells->nr, sizeof(*cells->cells), compare_at);
	for (size_t i = 0; i < cells->nr; i++) {
		if (nr && cells->cells[nr - 1].at == cells->cells[i].at)
			cells->cells[nr - 1].insns += cells->cells[i].insns;
		else
			cells->cells[nr++] = cells->cells[i];
	}
	cells->nr = nr;
}

static uint64_t last_cell(const struct md_heat_place *place, uint64_t cell_size)
{
	return (place->vaddr + place->size - 1) / cell_size;
}

int md_heat_cells_build(const struct md_heat *heat, uint64_t cell_size, struct md_heat_cells *out)
{
	size_t nr = 0;

	*out = (struct md_heat_cells){0};
	for (size_t i = 0; i < heat->nr_places; i++)
		nr += last_cell(&heat->places[i], cell_size) - heat->places[i].vaddr / cell_size +
		      1;
	out->cells = calloc(nr + 1, sizeof(*out->cells));
	if (!out->cells)
		return -ENOMEM;
	for (size_t i = 0; i < heat->nr_places; i++) {
		const struct md_heat_place *place = &heat->places[i];
		uint64_t end = place->vaddr + place->size;

		for (uint64_t at = place->vaddr / cell_size; at <= last_cell(place, cell_size);
		     at++) {
			uint64_t from = at * cell_size > place->vaddr ? at * cell_size
								      : place->vaddr;
			uint64_t to = (at + 1) * cell_size < end ? (at + 1) * cell_size : end;

			out->cells[out->nr++] = (struct md_heat_cell){
				at, place->insns * (double)(to - from) / place->size};
		}
	}
	merge(out);
	return 0;
}

int md_heat_cells_of_funcs(const struct md_heat *heat, struct md_heat_cells *out)
{
	*out = (struct md_heat_cells){calloc(heat->nr_places + 1, sizeof(*out->cells)), 0};
	if (!out->cells)
		return -ENOMEM;
	for (size_t i = 0; i < heat->nr_places; i++)
		out->cells[out->nr++] =
			(struct md_heat_cell){heat->places[i].func, heat->places[i].insns};
	merge(out);
	return 0;
}

double md_heat_cell_at(const struct md_heat_cells *cells, uint64_t at)
{
	const struct md_heat_cell key = {at, 0};
	const struct md_heat_cell *found =
		cells->nr ? bsearch(&key, cells->cells, cells->nr, sizeof(key), compare_at) : NULL;

	return found ? found->insns : 0;
}

/* ---- numbers ------------------------------------------------------------------------------- */

static int compare_hottest(const void *a, const void *b)
{
	const struct md_heat_cell *x = a, *y = b;

	if (x->insns < y->insns || x->insns > y->insns)
		return x->insns < y->insns ? 1 : -1;
	return compare_at(a, b);
}

int md_heat_cover_count(const struct md_heat_cells *cells, struct md_heat_cover *out)
{
	struct md_heat_cell *sorted = malloc((cells->nr + 1) * sizeof(*sorted));
	double sum = 0, total = 0;

	*out = (struct md_heat_cover){.all = cells->nr};
	if (!sorted)
		return -ENOMEM;
	if (cells->nr) {
		memcpy(sorted, cells->cells, cells->nr * sizeof(*sorted));
		qsort(sorted, cells->nr, sizeof(*sorted), compare_hottest);
	}
	for (size_t i = 0; i < cells->nr; i++)
		total += sorted[i].insns;
	for (size_t i = 0; i < cells->nr; i++) {
		/* The tolerance absorbs rounding errors of the sum. */
		if (sum < 0.9 * total * (1 - 1e-12))
			out->p90 = i + 1;
		if (sum < 0.99 * total * (1 - 1e-12))
			out->p99 = i + 1;
		sum += sorted[i].insns;
	}
	free(sorted);
	return 0;
}

static int cover_by(const struct md_heat *heat, uint64_t cell_size, struct md_heat_cover *out)
{
	struct md_heat_cells cells;
	int r = cell_size ? md_heat_cells_build(heat, cell_size, &cells)
			  : md_heat_cells_of_funcs(heat, &cells);

	if (r)
		return r;
	r = md_heat_cover_count(&cells, out);
	free(cells.cells);
	return r;
}

int md_heat_figures_count(const struct md_heat *heat, double base, struct md_heat_figures *out)
{
	double per_1000 = base > 0 ? 1000 / base : 0;
	int r;

	*out = (struct md_heat_figures){0};
	r = cover_by(heat, MD_HEAT_LINE, &out->lines);
	if (!r)
		r = cover_by(heat, MD_HEAT_PAGE, &out->pages);
	if (!r)
		r = cover_by(heat, 0, &out->funcs);
	for (size_t i = 0; i < heat->nr_jumps; i++) {
		const struct md_heat_jump *jump = &heat->jumps[i];

		if (jump->from / MD_HEAT_LINE != jump->to / MD_HEAT_LINE)
			out->leave_line += jump->count * per_1000;
		if (jump->from / MD_HEAT_PAGE != jump->to / MD_HEAT_PAGE)
			out->leave_page += jump->count * per_1000;
	}
	out->taken = (heat->expected_ratio > 0 ? heat->expected_taken : heat->taken) * per_1000;
	return r;
}

/* ---- colours ------------------------------------------------------------------------------- */

/* Returns 1, 0.3, 0.1, 0.03, ... for steps 0, 1, 2, 3, ... */
static double half_decade(int step)
{
	return (step % 2 ? 0.3 : 1.0) * pow(10, -(step / 2));
}

void md_heat_scale_fit(double largest_share, struct md_heat_scale *out)
{
	int step = 0;

	while (step < 40 && half_decade(step) > largest_share)
		step++;
	for (int i = 0; i + 1 < MD_HEAT_CLASSES; i++)
		out->least[i] = half_decade(step + i);
	out->least[MD_HEAT_CLASSES - 1] = 0;
}

int md_heat_scale_class(const struct md_heat_scale *scale, double share)
{
	int class = 0;

	while (class + 1 < MD_HEAT_CLASSES && share < scale->least[class])
		class ++;
	return class;
}
