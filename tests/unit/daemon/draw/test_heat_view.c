// SPDX-License-Identifier: Apache-2.0
/*
 * test_heat_view - every executed page has a row, gaps say how much they leave out, arcs add
 * up, and labels do not overlap.
 */
#include <math.h>

#include "daemon/draw/heat_view.h"
#include "tests/unit/suite.h"

#define MAX 400

static struct md_heat_cell cells[MAX];
static struct md_heat_cells pages = {cells, 0};
static struct md_heat_rows rows;

static void page(uint64_t at)
{
	cells[pages.nr++] = (struct md_heat_cell){at, 1};
}

/* Rows and gaps follow each other without holes, and every executed page has a row. */
static void check_rows(void)
{
	uint64_t next = rows.rows[0].page;

	for (size_t i = 0; i < rows.nr; i++) {
		const struct md_heat_row *row = &rows.rows[i];

		ck_assert_uint_eq(row->page, next);
		next += row->nr_left_out ? row->nr_left_out : rows.pages_per_row;
	}
	for (size_t i = 0; i < pages.nr; i++) {
		size_t at = md_heat_row_of(&rows, cells[i].at);

		ck_assert_uint_ne(at, SIZE_MAX);
		ck_assert_uint_eq(rows.rows[at].page,
				  cells[i].at / rows.pages_per_row * rows.pages_per_row);
	}
}

static void setup(void)
{
	pages.nr = 0;
	rows = (struct md_heat_rows){0};
}

static void tidy(void)
{
	free(rows.rows);
	rows.rows = NULL;
}

FIXTURE(setup, tidy);

TEST(rows_keep_short_gaps_and_compress_long_ones)
{
	page(10);
	page(13);
	page(20);
	ck_assert_int_eq(md_heat_rows_build(&pages, 1, 2, &rows), 0);
	/* 10, two empty rows, 13, a gap of six, 20 */
	ck_assert_uint_eq(rows.nr, 6);
	ck_assert_uint_eq(rows.nr_gaps, 1);
	ck_assert_uint_eq(rows.rows[4].page, 14);
	ck_assert_uint_eq(rows.rows[4].nr_left_out, 6);
	ck_assert_uint_eq(md_heat_row_of(&rows, 15), SIZE_MAX);
	ck_assert_uint_eq(md_heat_row_of(&rows, 9), SIZE_MAX);
	ck_assert_uint_eq(md_heat_row_of(&rows, 21), SIZE_MAX);
	ck_assert_uint_eq(md_heat_row_of(&rows, 12), 2);
	check_rows();
	ck_assert(md_heat_rows_place(&rows, 100, 10, 4) == 154);
	ck_assert(rows.rows[4].top == 140 && rows.rows[5].top == 144);
}

TEST(rows_hold_all_pages_whatever_their_number)
{
	uint32_t seed = 7;
	uint64_t at = 0;

	for (int i = 0; i < MAX; i++) {
		seed = seed * 1103515245 + 12345;
		at += 1 + ((seed >> 16) % 5 ? 0 : (seed >> 20) % 40);
		page(at);
	}
	for (unsigned int k = 1; k <= 64; k *= 2)
		for (unsigned int keep = 0; keep < 5; keep++) {
			ck_assert_int_eq(md_heat_rows_build(&pages, k, keep, &rows), 0);
			check_rows();
			free(rows.rows);
			rows.rows = NULL;
		}
}

TEST(rows_of_nothing_are_none)
{
	ck_assert_int_eq(md_heat_rows_build(&pages, 1, 2, &rows), 0);
	ck_assert_uint_eq(rows.nr, 0);
	ck_assert_uint_eq(md_heat_row_of(&rows, 0), SIZE_MAX);
}

TEST(grid_fits_its_room)
{
	static const uint64_t steps[] = {1, 3, 50};

	for (int s = 0; s < 3; s++)
		for (size_t nr = 1; nr <= MAX; nr += 57) {
			struct md_heat_grid grid;
			double height;

			pages.nr = 0;
			for (size_t i = 0; i < nr; i++)
				page(1000 + i * steps[s]);
			ck_assert_int_eq(md_heat_grid_fit(&pages, NULL, 4, 400, 700, &grid), 0);
			ck_assert_int_eq(md_heat_rows_build(&pages, grid.pages_per_row, 4, &rows),
					 0);
			height = md_heat_rows_place(&rows, 0, grid.row_height, grid.gap_height);
			ck_assert_msg(height <= 700.001, "%zu: %f", nr, height);
			ck_assert(grid.cell_width * 64 * grid.pages_per_row <= 400.001);
			ck_assert(grid.row_height > 0 && grid.cell_width > 0);
			free(rows.rows);
			rows.rows = NULL;
		}
}

TEST(arcs_add_up_what_goes_between_rows)
{
	AUTO(md_heat_fini) struct md_heat heat = {0};
	struct md_heat_arcs arcs;

	page(1);
	page(2);
	page(3);
	ck_assert_int_eq(md_heat_rows_build(&pages, 1, 0, &rows), 0);
	md_heat_add_jump(&heat, 0x1010, 0x2010, 5, MD_HEAT_CALL);
	md_heat_add_jump(&heat, 0x1ff0, 0x2ff0, 6, MD_HEAT_BRANCH);
	md_heat_add_jump(&heat, 0x2000, 0x1000, 4, MD_HEAT_BRANCH); /* backward: another arc */
	md_heat_add_jump(&heat, 0x3000, 0x3008, 90, MD_HEAT_BRANCH);
	md_heat_add_jump(&heat, 0x3000, 0x9000, 1, MD_HEAT_CALL); /* to a page where nothing runs */
	ck_assert_int_eq(md_heat_arcs_build(&heat, &rows, &arcs), 0);
	ck_assert_uint_eq(arcs.nr, 2);
	ck_assert(arcs.within == 90 && arcs.between == 16);
	ck_assert(arcs.arcs[0].from == 0 && arcs.arcs[0].to == 1 && arcs.arcs[0].count == 11);
	ck_assert(arcs.arcs[1].from == 1 && arcs.arcs[1].to == 0);
	ck_assert(md_heat_arcs_share(&arcs, 1) == 11 / 16.0);
	ck_assert(md_heat_arcs_share(&arcs, 9) == 15 / 16.0);
	free(arcs.arcs);
}

TEST(labels_never_overlap)
{
	uint32_t seed = 3;

	for (int round = 0; round < 300; round++) {
		double y[80], home[80];
		size_t nr = round % 80, placed;

		for (size_t i = 0; i < nr; i++) {
			seed = seed * 1103515245 + 12345;
			home[i] = (i ? home[i - 1] : 100) + (seed >> 16) % 16;
			y[i] = home[i];
		}
		placed = md_heat_labels_place(y, nr, 15, 90, 700);
		ck_assert_uint_eq(placed, nr < 41 ? nr : 41);
		for (size_t i = 0; i < placed; i++) {
			ck_assert_msg(y[i] >= 90 - 1e-9 && y[i] <= 700 + 1e-9, "%f", y[i]);
			ck_assert(!i || y[i] - y[i - 1] >= 15 - 1e-9);
		}
	}
}

TEST(labels_stay_at_home_where_there_is_room)
{
	double y[] = {100, 130, 131, 400};

	ck_assert_uint_eq(md_heat_labels_place(y, 4, 20, 0, 500), 4);
	ck_assert(y[0] == 100 && y[3] == 400);
	/* Two labels that touch move equally far. */
	ck_assert(fabs(y[1] - 120.5) < 1e-9 && fabs(y[2] - 140.5) < 1e-9);
	ck_assert_uint_eq(md_heat_labels_place(y, 4, 20, 10, 9), 0);
}
