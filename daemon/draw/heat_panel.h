// SPDX-License-Identifier: Apache-2.0
/*
 * heat_panel - draws one half of the heat picture: pages as rows, lines as cells, function
 * names, and arcs for jumps. Called by heat_draw.
 */
#ifndef MD_HEAT_PANEL_H
#define MD_HEAT_PANEL_H

#include "daemon/draw/heat_draw.h"
#include "daemon/draw/heat_view.h"

#define MD_HEAT_LINES_PER_PAGE (MD_HEAT_PAGE / MD_HEAT_LINE)
#define MD_HEAT_ADDRESSES      70.0 /* width left of the grid; the arcs come between */
#define MD_HEAT_ARCS	       110.0

#define MD_HEAT_IDLE	 "#eeeeee"
#define MD_HEAT_FORWARD	 "#0072b2"
#define MD_HEAT_BACKWARD "#d55e00"
extern const char *const md_heat_colours[MD_HEAT_CLASSES]; /* hottest first */

/* One version of the program, prepared for drawing. */
struct md_heat_side {
	const struct md_heat *heat;
	struct md_heat_cells lines, pages;
	struct md_heat_rows rows;
	struct md_heat_arcs arcs;
};
int md_heat_side_init(struct md_heat_side *side, const struct md_heat *heat);
void md_heat_side_fini(struct md_heat_side *side);

struct md_heat_panel {
	const struct md_heat_picture *picture;
	struct md_heat_scale scale;
	struct md_heat_grid grid;
	double left, width, top, bottom;
	double largest_arc; /* over both sides, so that equal thickness means equal frequency */
	bool is_after;
};
/* Chooses one grid for both sides and places their rows. Return: 0, -ENOMEM. */
int md_heat_panel_fit(struct md_heat_panel *panel, struct md_heat_side sides[2], bool both);
/* Draws the panel. *@bottom is raised to its lower edge. Return: 0, -ENOMEM. */
int md_heat_panel_draw(const struct md_heat_panel *panel, const struct md_heat_side *side,
		       FILE *out, double *bottom);
/* Draws the names beside the grid and the shapes over it. Return: 0, -ENOMEM. */
int md_heat_funcs_draw(const struct md_heat_panel *panel, const struct md_heat_side *side,
		       FILE *out, double *bottom);

double md_heat_grid_left(const struct md_heat_panel *panel);
double md_heat_grid_width(const struct md_heat_panel *panel);
double md_heat_row_middle(const struct md_heat_row *row);
double md_heat_rows_bottom(const struct md_heat_rows *rows);
/* Finds the row and column of a line. Return: false: the line is not drawn. */
bool md_heat_find_line(const struct md_heat_rows *rows, uint64_t line, size_t *row, uint64_t *x);

#endif
