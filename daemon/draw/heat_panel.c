// SPDX-License-Identifier: Apache-2.0
/* heat_panel - draws one half of the heat picture; see heat_panel.h. */
#include "daemon/draw/heat_panel.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "libprof/cli/svg.h"

#define HEAD	   74.0	 /* height of heading and captions above the grid */
#define NAMES	   290.0 /* width right of the grid */
#define MAX_ARCS   40
#define KEEP_EMPTY 4

int md_heat_side_init(struct md_heat_side *side, const struct md_heat *heat)
{
	int r;

	*side = (struct md_heat_side){.heat = heat};
	r = md_heat_cells_build(heat, MD_HEAT_LINE, &side->lines);
	if (!r)
		r = md_heat_cells_build(heat, MD_HEAT_PAGE, &side->pages);
	return r;
}

void md_heat_side_fini(struct md_heat_side *side)
{
	free(side->lines.cells);
	free(side->pages.cells);
	free(side->rows.rows);
	free(side->arcs.arcs);
	*side = (struct md_heat_side){0};
}

int md_heat_panel_fit(struct md_heat_panel *panel, struct md_heat_side sides[2], bool both)
{
	double top = panel->top + HEAD;
	int r = md_heat_grid_fit(&sides[0].pages, both ? &sides[1].pages : NULL, KEEP_EMPTY,
				 panel->width - MD_HEAT_ADDRESSES - MD_HEAT_ARCS - NAMES,
				 panel->bottom - top, &panel->grid);

	/* Round sizes, so that the file has short numbers and agrees with them. */
	panel->grid.cell_width = floor(panel->grid.cell_width * 100) / 100;
	panel->grid.row_height = floor(panel->grid.row_height * 20) / 20;
	panel->grid.gap_height = floor(panel->grid.gap_height * 20) / 20;
	for (int i = 0; i <= both && !r; i++) {
		r = md_heat_rows_build(&sides[i].pages, panel->grid.pages_per_row, KEEP_EMPTY,
				       &sides[i].rows);
		if (r)
			break;
		md_heat_rows_place(&sides[i].rows, top, panel->grid.row_height,
				   panel->grid.gap_height);
		r = md_heat_arcs_build(sides[i].heat, &sides[i].rows, &sides[i].arcs);
		if (!r && sides[i].arcs.nr)
			panel->largest_arc = fmax(panel->largest_arc, sides[i].arcs.arcs[0].count);
	}
	return r;
}

/* ---- words --------------------------------------------------------------------------------- */

static void draw_head(const struct md_heat_panel *panel, const struct md_heat_side *side, FILE *out)
{
	const struct md_heat_picture *p = panel->picture;
	const struct md_heat_figures *f = panel->is_after ? &p->after_figures : &p->before_figures;
	const struct md_heat_arcs *arcs = &side->arcs;
	double all = arcs->within + arcs->between, y = panel->top;
	size_t nr = arcs->nr < MAX_ARCS ? arcs->nr : MAX_ARCS;
	char text[256], a[32], b[32];

	/* Use 99 %: samples rarely see code that runs only once or twice. */
	snprintf(text, sizeof(text), "%s 99 %% of what was executed lies in %s page%s",
		 panel->is_after ? "After:"
		 : p->after	 ? "Before:"
				 : "Now:",
		 mp_svg_format_count(f->pages.p99, a), f->pages.p99 == 1 ? "" : "s");
	mp_svg_put_words(out, panel->left, y, 20, "b", text);
	if (arcs->between > 0)
		snprintf(text, sizeof(text),
			 "Arcs: %s of the jumps and calls to other rows, by the %zu busiest way%s. "
			 "%s of all stay in their row.",
			 mp_svg_format_share(md_heat_arcs_share(arcs, nr), a), nr,
			 nr == 1 ? "" : "s",
			 mp_svg_format_share(all > 0 ? arcs->within / all : 0, b));
	else
		snprintf(text, sizeof(text), "All jumps and calls stay in their row.");
	mp_svg_put_words(out, panel->left, y + 22, 14, "q", text);
	/* caption of the horizontal axis */
	if (panel->grid.pages_per_row == 1)
		snprintf(text, sizeof(text), "a row is a page: 4 KiB, 64 lines");
	else
		snprintf(text, sizeof(text), "a row is %u pages: %u KiB", panel->grid.pages_per_row,
			 4 * panel->grid.pages_per_row);
	mp_svg_put_words(out, md_heat_grid_left(panel), y + HEAD - 10, 13, "q", text);
	mp_svg_put_words(out, panel->left, y + HEAD - 10, 13, "q", "address");
	mp_svg_put_words(out, md_heat_grid_left(panel) + md_heat_grid_width(panel) + 30,
			 y + HEAD - 10, 13, "q", "functions, share of executed");
}

/* ---- the grid ------------------------------------------------------------------------------ */

static void draw_empty(const struct md_heat_panel *panel, const struct md_heat_rows *rows,
		       FILE *out)
{
	double width = md_heat_grid_width(panel), left = md_heat_grid_left(panel);

	for (size_t i = 0; i < rows->nr;) {
		const struct md_heat_row *row = &rows->rows[i];
		double bottom = row->top + row->height;

		if (row->nr_left_out) {
			mp_svg_put(
				out,
				"<path d=\"M%n %nh%n\" stroke=\"#888\" stroke-dasharray=\"2 4\"/>\n",
				left, md_heat_row_middle(row), width);
			i++;
			continue;
		}
		for (i++; i < rows->nr && !rows->rows[i].nr_left_out; i++)
			bottom = rows->rows[i].top + rows->rows[i].height;
		mp_svg_put(out,
			   "<rect x=\"%n\" y=\"%n\" width=\"%n\" height=\"%n\" fill=\"" MD_HEAT_IDLE
			   "\"/>\n",
			   left, row->top, width, bottom - row->top);
	}
}

/* Draws one path per colour, with one stroke per run of lines. */
static void draw_cells(const struct md_heat_panel *panel, const struct md_heat_side *side,
		       FILE *out)
{
	double total = panel->picture->before->insns;

	mp_svg_put(out,
		   "<g transform=\"translate(%n 0) scale(%n 1)\" fill=\"none\" stroke-width=\"%n\" "
		   "shape-rendering=\"crispEdges\">\n",
		   md_heat_grid_left(panel), panel->grid.cell_width, panel->grid.row_height);
	for (int class = 0; class < MD_HEAT_CLASSES; class ++) {
		uint64_t end = 0; /* end of the open run, in lines */
		uint64_t nr = 0;
		size_t last_row = SIZE_MAX;
		bool any = false;

		for (size_t i = 0; i < side->lines.nr; i++) {
			const struct md_heat_cell *cell = &side->lines.cells[i];
			uint64_t x;
			size_t row;

			if (md_heat_scale_class(&panel->scale, cell->insns / total) != class ||
			    !md_heat_find_line(&side->rows, cell->at, &row, &x))
				continue;
			if (nr && cell->at == end && row == last_row) {
				nr++;
				end++;
				continue;
			}
			if (!any)
				mp_svg_put(out, "<path stroke=\"%s\" d=\"", md_heat_colours[class]);
			if (nr)
				fprintf(out, "h%" PRIu64, nr);
			fprintf(out, "M%" PRIu64 " ", x);
			mp_svg_put_number(out, md_heat_row_middle(&side->rows.rows[row]));
			any = true;
			nr = 1;
			end = cell->at + 1;
			last_row = row;
		}
		if (any)
			fprintf(out, "h%" PRIu64 "\"/>\n", nr);
	}
	fputs("</g>\n", out);
}

static void draw_page_bounds(const struct md_heat_panel *panel, const struct md_heat_rows *rows,
			     FILE *out)
{
	double page = panel->grid.cell_width * MD_HEAT_LINES_PER_PAGE;

	if (!rows->nr || panel->grid.pages_per_row == 1)
		return;
	fputs("<path stroke=\"#fff\" d=\"", out);
	for (unsigned int i = 1; i < panel->grid.pages_per_row; i++)
		mp_svg_put(out, "M%n %nV%n", md_heat_grid_left(panel) + i * page, rows->rows[0].top,
			   md_heat_rows_bottom(rows));
	fputs("\"/>\n", out);
}

/* ---- addresses ----------------------------------------------------------------------------- */

/* Reserves position @at. Return: false: another label is within 13 pixels. */
static bool claim(double *taken, size_t *nr, size_t max, double at)
{
	for (size_t i = 0; i < *nr; i++)
		if (fabs(taken[i] - at) < 13)
			return false;
	if (*nr == max)
		return false;
	taken[(*nr)++] = at;
	return true;
}

static void format_bytes(uint64_t bytes, char *buf, size_t size)
{
	if (bytes < 1 << 20)
		snprintf(buf, size, "%" PRIu64 " KiB", bytes >> 10);
	else
		snprintf(buf, size, "%.1f MiB", (double)bytes / (1 << 20));
}

static int compare_gaps(const void *a, const void *b)
{
	const struct md_heat_row *const *x = a, *const *y = b;

	return ((*x)->nr_left_out < (*y)->nr_left_out) - ((*x)->nr_left_out > (*y)->nr_left_out);
}

/*
 * Labels the first and the last address, then gaps, widest first, then others as far as there
 * is room.
 */
static int draw_addresses(const struct md_heat_panel *panel, const struct md_heat_rows *rows,
			  FILE *out)
{
	const struct md_heat_row **order = calloc(rows->nr + 1, sizeof(*order));
	double taken[128], x = panel->left;
	size_t nr_taken = 0, nr = 0;
	char text[64], size[32];

	if (!order)
		return -ENOMEM;
	if (rows->nr) {
		order[nr++] = &rows->rows[0];
		order[nr++] = &rows->rows[rows->nr - 1];
	}
	for (size_t i = 0; i < rows->nr; i++)
		if (rows->rows[i].nr_left_out)
			order[nr++] = &rows->rows[i];
	if (nr > 2)
		qsort(order + 2, nr - 2, sizeof(*order), compare_gaps);
	for (size_t i = 0; i < nr; i++) {
		double y = md_heat_row_middle(order[i]);

		if (!claim(taken, &nr_taken, 100, y))
			continue;
		if (order[i]->nr_left_out) {
			format_bytes(order[i]->nr_left_out * MD_HEAT_PAGE, size, sizeof(size));
			snprintf(text, sizeof(text), "\xe2\x8b\xae %s", size);
		} else {
			snprintf(text, sizeof(text), "%" PRIx64, order[i]->page * MD_HEAT_PAGE);
		}
		mp_svg_put_words(out, x, y + 4, 12, order[i]->nr_left_out ? "q" : "", text);
	}
	free(order);
	for (size_t i = 0; i < rows->nr; i++) {
		if (rows->rows[i].nr_left_out ||
		    !claim(taken, &nr_taken, 128, md_heat_row_middle(&rows->rows[i])))
			continue;
		snprintf(text, sizeof(text), "%" PRIx64, rows->rows[i].page * MD_HEAT_PAGE);
		mp_svg_put_words(out, x, md_heat_row_middle(&rows->rows[i]) + 4, 12, "", text);
	}
	return 0;
}

/* ---- arcs ---------------------------------------------------------------------------------- */

static void draw_arcs(const struct md_heat_panel *panel, const struct md_heat_side *side, FILE *out)
{
	size_t nr = side->arcs.nr < MAX_ARCS ? side->arcs.nr : MAX_ARCS;
	double right = md_heat_grid_left(panel) - 3;
	double height = panel->bottom - panel->top - HEAD;

	fputs("<g fill=\"none\" stroke-opacity=\".7\">\n", out);
	/* Draw the widest arcs first, so that they do not hide others. */
	for (size_t i = 0; i < nr; i++) {
		const struct md_heat_arc *arc = &side->arcs.arcs[i];
		double from = md_heat_row_middle(&side->rows.rows[arc->from]);
		double to = md_heat_row_middle(&side->rows.rows[arc->to]);
		double width = 0.8 + 4 * sqrt(arc->count / panel->largest_arc);
		/* A Bezier curve reaches three quarters of the distance to its handles. */
		double reach = (14 + (MD_HEAT_ARCS - 26) * sqrt(fabs(to - from) / height)) * 4 / 3;
		bool forward = arc->to > arc->from;
		char share[32];

		mp_svg_put(out,
			   "<path d=\"M%n %nC%n %n %n %n %n %n\" stroke=\"%s\" "
			   "stroke-width=\"%n\" marker-end=\"url(#%s)\"><title>",
			   right, from, right - reach, from, right - reach, to, right - 5, to,
			   forward ? MD_HEAT_FORWARD : MD_HEAT_BACKWARD, width,
			   forward ? "fw" : "bw");
		mp_svg_put(out, "%t of all jumps and calls</title></path>\n",
			   mp_svg_format_share(
				   arc->count / (side->arcs.within + side->arcs.between), share));
	}
	fputs("</g>\n", out);
}

/* ---- all of it ----------------------------------------------------------------------------- */

int md_heat_panel_draw(const struct md_heat_panel *panel, const struct md_heat_side *side,
		       FILE *out, double *bottom)
{
	int r;

	if (side->rows.nr)
		*bottom = fmax(*bottom, md_heat_rows_bottom(&side->rows) + 8);
	draw_head(panel, side, out);
	draw_empty(panel, &side->rows, out);
	draw_cells(panel, side, out);
	draw_page_bounds(panel, &side->rows, out);
	r = draw_addresses(panel, &side->rows, out);
	draw_arcs(panel, side, out);
	return r ? r : md_heat_funcs_draw(panel, side, out, bottom);
}
