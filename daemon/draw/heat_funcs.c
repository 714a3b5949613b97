// SPDX-License-Identifier: Apache-2.0
/*
 * heat_funcs - shows which functions the lines of the heat picture belong to: names of the
 * hottest, and for each function a shape that appears under the pointer. Called by heat_panel.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/demangle.h"
#include "daemon/draw/heat_panel.h"
#include "daemon/code/stats_code.h"
#include "libprof/cli/svg.h"

#define LINES_PER_PAGE (MD_HEAT_PAGE / MD_HEAT_LINE)
#define NAME_SIZE      14
#define NAME_SPACING   19.0
#define MAX_NAMES      24
#define MAX_HOVER      3000 /* functions with a shape; the limit keeps files small */

struct func {
	uint32_t func;
	double insns;
	uint64_t hottest_line; /* line with the most executed instructions per byte */
	double hottest;
	size_t first, nr; /* range in funcs.order */
};

struct funcs {
	struct func *funcs; /* hottest first */
	size_t nr;
	uint32_t *order; /* indices of places, by function, then ascending */
};

static int compare_funcs_of_places(const void *a, const void *b, void *ctx)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct md_heat_place *places = ctx;

	if (places[x].func != places[y].func)
		return places[x].func < places[y].func ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int compare_hottest(const void *a, const void *b)
{
	const struct func *x = a, *y = b;

	if (x->insns < y->insns || x->insns > y->insns)
		return x->insns < y->insns ? 1 : -1;
	return x->func < y->func ? -1 : x->func > y->func;
}

static int funcs_build(const struct md_heat_side *side, struct funcs *out)
{
	const struct md_heat *heat = side->heat;

	*out = (struct funcs){calloc(heat->nr_places + 1, sizeof(*out->funcs)), 0,
			      calloc(heat->nr_places + 1, sizeof(*out->order))};
	if (!out->funcs || !out->order)
		return -ENOMEM;
	for (size_t i = 0; i < heat->nr_places; i++)
		out->order[i] = (uint32_t)i;
	if (heat->nr_places)
		qsort_r(out->order, heat->nr_places, sizeof(*out->order), compare_funcs_of_places,
			heat->places);
	for (size_t i = 0; i < heat->nr_places; i++) {
		const struct md_heat_place *place = &heat->places[out->order[i]];
		struct func *func = &out->funcs[out->nr];
		double per_byte = place->insns / place->size;

		if (!out->nr || func[-1].func != place->func) {
			*func = (struct func){.func = place->func, .first = i};
			out->nr++;
		} else {
			func--;
		}
		func->nr++;
		func->insns += place->insns;
		if (per_byte > func->hottest) {
			func->hottest = per_byte;
			func->hottest_line = place->vaddr / MD_HEAT_LINE;
		}
	}
	if (out->nr)
		qsort(out->funcs, out->nr, sizeof(*out->funcs), compare_hottest);
	return 0;
}

static void funcs_free(struct funcs *funcs)
{
	free(funcs->funcs);
	free(funcs->order);
}

/* Return: the demangled name, without parameters if @brief; NULL: no memory. Ownership: free(). */
static char *func_name(const struct md_heat_panel *panel, uint32_t func, bool brief)
{
	const struct mp_cfg *cfg = panel->picture->cfg;
	const struct mp_section *section;
	char buf[32], *name;

	if (func == MP_NONE)
		return strdup("(no function)");
	section = mp_elf_section_at(cfg->elf, cfg->funcs[func].vaddr);
	/* Code without a symbol outside of .text, such as the PLT, gets the section's name. */
	if (!cfg->funcs[func].name[0] && section && strcmp(section->name, ".text"))
		return strdup(section->name);
	name = md_demangle(cfg->funcs[func].name);
	if (name && brief)
		name[md_name_base_len(name)] = '\0';
	return name ? name : strdup(md_code_function_name(&cfg->funcs[func], buf));
}

/* Writes the lines of a function as rectangles, one for each run of lines within a row. */
static void put_shape(const struct md_heat_side *side, const struct funcs *funcs,
		      const struct func *func, double height, FILE *out, uint64_t *nr_lines,
		      uint64_t *nr_pages)
{
	uint64_t next = 0, page = UINT64_MAX, start = 0, run = 0;
	size_t at = SIZE_MAX;

	*nr_lines = *nr_pages = 0;
	for (size_t i = func->first; i <= func->first + func->nr; i++) {
		bool last = i == func->first + func->nr;
		const struct md_heat_place *place = last ? NULL
							 : &side->heat->places[funcs->order[i]];
		uint64_t from = last ? 0 : place->vaddr / MD_HEAT_LINE;
		uint64_t to = last ? 0 : (place->vaddr + place->size - 1) / MD_HEAT_LINE;

		for (uint64_t line = from < next ? next : from; last || line <= to; line++) {
			uint64_t x = 0;
			size_t row = SIZE_MAX;

			if (!last && !md_heat_find_line(&side->rows, line, &row, &x))
				continue;
			if (run && (last || row != at || x != start + run)) {
				fprintf(out, "M%" PRIu64 " ", start);
				mp_svg_put_number(out, side->rows.rows[at].top);
				fprintf(out, "h%" PRIu64 "v", run);
				mp_svg_put_number(out, height);
				fprintf(out, "h-%" PRIu64 "z", run);
				run = 0;
			}
			if (last)
				break;
			if (!run)
				start = x;
			run++;
			at = row;
			++*nr_lines;
			*nr_pages += line / LINES_PER_PAGE != page;
			page = line / LINES_PER_PAGE;
			next = line + 1;
		}
	}
}

/* Draws shapes that are invisible until the pointer is over them. */
static void draw_hover(const struct md_heat_panel *panel, const struct md_heat_side *side,
		       const struct funcs *funcs, FILE *out)
{
	double total = panel->picture->before->insns;
	size_t nr_shown = panel->picture->after ? MAX_HOVER / 2 : MAX_HOVER;
	char share[32], samples[32], *name;

	mp_svg_put(out, "<g transform=\"translate(%n 0) scale(%n 1)\">\n", md_heat_grid_left(panel),
		   panel->grid.cell_width);
	for (size_t i = 0; i < funcs->nr && i < nr_shown; i++) {
		const struct func *func = &funcs->funcs[i];
		uint64_t lines, pages, nr = 0;

		fprintf(out, "<path class=\"f\" data-f=\"%" PRIu32 "\" d=\"",
			func->func == MP_NONE ? panel->picture->cfg->nr_funcs : func->func);
		put_shape(side, funcs, func, panel->grid.row_height, out, &lines, &pages);
		if (func->func != MP_NONE)
			nr = panel->picture->func_samples[func->func];
		else
			nr = panel->picture->func_samples[panel->picture->cfg->nr_funcs];
		name = func_name(panel, func->func, false);
		mp_svg_put(out, "\"><title>%t\n%t of executed instructions, %s samples\n",
			   name ? name : "", mp_svg_format_share(func->insns / total, share),
			   mp_svg_format_count(nr, samples));
		free(name);
		fprintf(out, "%" PRIu64 " lines, %" PRIu64 " pages</title></path>\n", lines, pages);
	}
	fputs("</g>\n", out);
}

struct name {
	const struct func *func;
	double home, x; /* position of its hottest line */
};

static int compare_homes(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	if (x->home < y->home || x->home > y->home)
		return x->home < y->home ? -1 : 1;
	return (x->x > y->x) - (x->x < y->x);
}

/* Draws the names of the hottest functions, each connected to its hottest line. */
static void draw_names(const struct md_heat_panel *panel, const struct md_heat_side *side,
		       const struct funcs *funcs, FILE *out, double *end)
{
	double right = md_heat_grid_left(panel) + md_heat_grid_width(panel),
	       total = panel->picture->before->insns;
	double top = side->rows.nr ? side->rows.rows[0].top : 0, y[MAX_NAMES];
	double bottom = panel->bottom - 4;
	struct name names[MAX_NAMES];
	size_t nr = 0, room = (size_t)((bottom - top) / NAME_SPACING);

	/* Keep the names close to a short grid. */
	bottom = fmin(bottom, fmax(md_heat_rows_bottom(&side->rows), top + 20 * NAME_SPACING));
	room = (size_t)((bottom - top) / NAME_SPACING);
	for (size_t i = 0; i < funcs->nr && nr < MAX_NAMES && nr < room; i++) {
		uint64_t x;
		size_t row;

		if (funcs->funcs[i].insns < 0.002 * total)
			break;
		if (!md_heat_find_line(&side->rows, funcs->funcs[i].hottest_line, &row, &x))
			continue;
		names[nr++] = (struct name){
			&funcs->funcs[i], md_heat_row_middle(&side->rows.rows[row]),
			md_heat_grid_left(panel) + ((double)x + 0.5) * panel->grid.cell_width};
	}
	if (nr)
		qsort(names, nr, sizeof(*names), compare_homes);
	for (size_t i = 0; i < nr; i++)
		y[i] = names[i].home;
	nr = md_heat_labels_place(y, nr, NAME_SPACING, top + 6, bottom);
	if (nr)
		*end = fmax(*end, y[nr - 1] + 12);
	for (size_t i = 0; i < nr; i++) {
		char *name = func_name(panel, names[i].func->func, true), share[32], *fit;
		double at = right + 30, width = panel->left + panel->width - at;

		mp_svg_format_share(names[i].func->insns / total, share);
		fit = mp_svg_fit_text(name ? name : "", NAME_SIZE, width - 54);
		mp_svg_put(out,
			   "<path d=\"M%n %nL%n %nL%n %n\" fill=\"none\" stroke=\"#888\" "
			   "stroke-width=\".6\"/>",
			   names[i].x, names[i].home, right + 3, names[i].home, at - 4, y[i]);
		mp_svg_put(out,
			   "<circle cx=\"%n\" cy=\"%n\" r=\"2\" fill=\"#fff\" stroke=\"#333\"/>\n",
			   names[i].x, names[i].home);
		mp_svg_put_words(out, at + 48, y[i] + 4.5, NAME_SIZE, "e", share);
		mp_svg_put_words(out, at + 54, y[i] + 4.5, NAME_SIZE, "", fit ? fit : "");
		free(fit);
		free(name);
	}
}

int md_heat_funcs_draw(const struct md_heat_panel *panel, const struct md_heat_side *side,
		       FILE *out, double *bottom)
{
	struct funcs funcs;
	int r = funcs_build(side, &funcs);

	if (!r) {
		draw_names(panel, side, &funcs, out, bottom);
		draw_hover(panel, side, &funcs, out);
	}
	funcs_free(&funcs);
	return r;
}
