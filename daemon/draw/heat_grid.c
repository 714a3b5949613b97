// SPDX-License-Identifier: Apache-2.0
/* heat_grid - colours of a heat map, and where its rows and lines lie. */
#include "daemon/draw/heat_panel.h"

/* Dark to light in even steps of lightness, so that they differ in a grey print too. */
const char *const md_heat_colours[MD_HEAT_CLASSES] = {
	"#3b0f23", "#7a1330", "#b5272d", "#dc5a2a", "#f08f3c", "#f9bf6b", "#fde7b0",
};

double md_heat_grid_left(const struct md_heat_panel *panel)
{
	return panel->left + MD_HEAT_ADDRESSES + MD_HEAT_ARCS;
}

double md_heat_grid_width(const struct md_heat_panel *panel)
{
	return panel->grid.cell_width * MD_HEAT_LINES_PER_PAGE * panel->grid.pages_per_row;
}

double md_heat_row_middle(const struct md_heat_row *row)
{
	return row->top + row->height / 2;
}

double md_heat_rows_bottom(const struct md_heat_rows *rows)
{
	const struct md_heat_row *last = &rows->rows[rows->nr - 1];

	return rows->nr ? last->top + last->height : 0;
}

bool md_heat_find_line(const struct md_heat_rows *rows, uint64_t line, size_t *row, uint64_t *x)
{
	*row = md_heat_row_of(rows, line / MD_HEAT_LINES_PER_PAGE);
	if (*row == SIZE_MAX)
		return false;
	*x = line - rows->rows[*row].page * MD_HEAT_LINES_PER_PAGE;
	return true;
}
