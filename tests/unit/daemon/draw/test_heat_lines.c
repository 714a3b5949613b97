// SPDX-License-Identifier: Apache-2.0
/*
 * test_heat_lines - executed instructions of lines and pages add up to the total; figures and
 * colours derived from them.
 */
#include <math.h>

#include "daemon/draw/heat_lines.h"
#include "tests/unit/suite.h"

static struct md_heat heat;

static void place(uint64_t vaddr, uint32_t size, uint32_t func, double insns)
{
	const struct md_heat_place one = {
		.vaddr = vaddr, .size = size, .func = func, .count = 1, .insns = insns};

	ck_assert_int_eq(md_heat_add_place(&heat, &one), 0);
}

static double sum_of(const struct md_heat_cells *cells)
{
	double sum = 0;

	for (size_t i = 0; i < cells->nr; i++)
		sum += cells->cells[i].insns;
	return sum;
}

static void tidy(void)
{
	md_heat_fini(&heat);
}

FIXTURE(NULL, tidy);

TEST(heat_lines_spread_a_place_over_its_bytes)
{
	struct md_heat_cells lines;

	/* 16 bytes in line 0, 64 in line 1, 16 in line 2; another place adds 8 in line 2. */
	place(48, 96, 0, 96);
	place(176, 8, 1, 5);
	ck_assert_int_eq(md_heat_cells_build(&heat, 64, &lines), 0);
	ck_assert_uint_eq(lines.nr, 3);
	ck_assert(fabs(md_heat_cell_at(&lines, 0) - 16) < 1e-9);
	ck_assert(fabs(md_heat_cell_at(&lines, 1) - 64) < 1e-9);
	ck_assert(fabs(md_heat_cell_at(&lines, 2) - 21) < 1e-9);
	ck_assert(md_heat_cell_at(&lines, 3) == 0);
	free(lines.cells);
}

TEST(heat_lines_add_up_to_all)
{
	static const uint64_t sizes[] = {64, 4096};
	uint32_t seed = 1;

	for (int i = 0; i < 500; i++) {
		seed = seed * 1103515245 + 12345;
		place(0x1000 + (seed >> 8) % 100000, 1 + (seed >> 4) % 300, (seed >> 12) % 9,
		      1 + seed % 1000);
	}
	md_heat_sort(&heat);
	for (int i = 0; i < 2; i++) {
		struct md_heat_cells cells;

		ck_assert_int_eq(md_heat_cells_build(&heat, sizes[i], &cells), 0);
		ck_assert(fabs(sum_of(&cells) / heat.insns - 1) < 1e-9);
		for (size_t k = 1; k < cells.nr; k++)
			ck_assert(cells.cells[k - 1].at < cells.cells[k].at);
		free(cells.cells);
	}
}

TEST(heat_cover_counts_the_hottest_first)
{
	struct md_heat_cell cells[] = {{1, 5}, {2, 90}, {3, 4}, {9, 1}};
	struct md_heat_cells all = {cells, 4};
	struct md_heat_cover cover;

	ck_assert_int_eq(md_heat_cover_count(&all, &cover), 0);
	ck_assert_uint_eq(cover.p90, 1); /* exactly 90 of 100 */
	ck_assert_uint_eq(cover.p99, 3);
	ck_assert_uint_eq(cover.all, 4);
	all.nr = 0;
	ck_assert_int_eq(md_heat_cover_count(&all, &cover), 0);
	ck_assert_uint_eq(cover.p90 + cover.p99 + cover.all, 0);
}

TEST(heat_figures_tell_jumps_by_how_far_they_go)
{
	struct md_heat_figures f;

	place(0, 64, 0, 2000);
	ck_assert_int_eq(md_heat_add_jump(&heat, 10, 50, 4, MD_HEAT_BRANCH), 0);
	ck_assert_int_eq(md_heat_add_jump(&heat, 10, 64, 2, MD_HEAT_CALL), 0);
	ck_assert_int_eq(md_heat_add_jump(&heat, 4000, 4096, 6, MD_HEAT_TABLE), 0);
	ck_assert_int_eq(md_heat_add_jump(&heat, 1, 2, 0, MD_HEAT_BRANCH), 0);
	ck_assert_uint_eq(heat.nr_jumps, 3); /* a jump with count 0 is omitted */
	ck_assert_int_eq(md_heat_figures_count(&heat, 1000, &f), 0);
	ck_assert(f.taken == 4 && f.leave_line == 8 && f.leave_page == 6);
	ck_assert_uint_eq(f.funcs.all, 1);
}

TEST(heat_scale_steps_down_from_the_largest)
{
	struct md_heat_scale scale;

	md_heat_scale_fit(0.05, &scale);
	ck_assert(fabs(scale.least[0] - 0.03) < 1e-12);
	ck_assert(fabs(scale.least[1] - 0.01) < 1e-12);
	ck_assert(fabs(scale.least[2] - 0.003) < 1e-12);
	ck_assert_int_eq(md_heat_scale_class(&scale, 0.05), 0);
	ck_assert_int_eq(md_heat_scale_class(&scale, 0.02), 1);
	ck_assert_int_eq(md_heat_scale_class(&scale, 1e-30), MD_HEAT_CLASSES - 1);
	for (double share = 1e-9; share < 1; share *= 1.7) {
		int class = md_heat_scale_class(&scale, share);

		ck_assert(share >= scale.least[class]);
		ck_assert(!class || share < scale.least[class - 1]);
	}
	md_heat_scale_fit(1, &scale);
	ck_assert(scale.least[0] == 1);
	md_heat_scale_fit(0, &scale); /* nothing runs: the scale is still valid */
	ck_assert(scale.least[0] > scale.least[1]);
}
