// SPDX-License-Identifier: Apache-2.0
/* test_register_offset - the most expensive edges add nothing, and all paths keep distinct
 * numbers. */
#include "tests/unit/suite.h"

#include <math.h>

#include "editor/instrument/register_offset.h"

#define NR_VERTICES 40
#define NR_EDGES    90

static int64_t added(const struct me_register_offset_edge *edge, const uint32_t *offset)
{
	return (int64_t)edge->value + offset[edge->to] - offset[edge->from];
}

TEST(register_offset_moves_what_is_added_off_the_dear_edge)
{
	/* A -> B -> C and A -> D, B -> D; D distinguishes them. */
	enum {
		A,
		B,
		C,
		D
	};
	struct me_register_offset_edge edges[] = {
		{A, B, 0, 2}, {B, C, 0, 1}, {A, D, 0, 9}, {B, D, 1, 9}};
	uint32_t offset[4];

	ck_assert_int_eq(me_register_offsets_find(edges, 4, 4, offset), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(added(&edges[i], offset), edges[i].to == B ? 1 : 0);
}

static uint32_t next_random(uint32_t *state)
{
	return *state = *state * 1664525 + 1013904223;
}

/* Return: remaining cost if one edge into each vertex were free. */
static double one_to_each(const struct me_register_offset_edge *edges)
{
	double best[NR_VERTICES] = {0}, left = 0;

	for (int i = 0; i < NR_EDGES; i++) {
		best[edges[i].to] = fmax(best[edges[i].to], edges[i].price);
		left += edges[i].price;
	}
	for (int v = 0; v < NR_VERTICES; v++)
		left -= best[v];
	return left;
}

TEST(register_offset_costs_no_more_than_one_free_edge_to_each_block)
{
	uint32_t state = 1;

	for (int round = 0; round < 200; round++) {
		struct me_register_offset_edge edges[NR_EDGES];
		uint32_t offset[NR_VERTICES];
		bool is_told[NR_VERTICES] = {false};
		double paid = 0;

		for (int i = 0; i < NR_EDGES; i++) {
			uint32_t to = 1 + (next_random(&state) >> 8) % (NR_VERTICES - 1);

			edges[i] = (struct me_register_offset_edge){
				.from = (next_random(&state) >> 8) % to,
				.to = to,
				.value = (next_random(&state) >> 8) % 1000,
				.price = 1 + (next_random(&state) >> 8) % 100};
			/*
			 * At most one edge into each vertex, from lower ones, so there is no
			 * cycle.
			 */
			if (!is_told[to] && next_random(&state) >> 30 == 0) {
				is_told[to] = true;
				edges[i].price = HUGE_VAL;
				edges[i].value = 0;
			}
		}
		ck_assert_int_eq(me_register_offsets_find(edges, NR_EDGES, NR_VERTICES, offset), 0);
		for (int i = 0; i < NR_EDGES; i++) {
			if (isinf(edges[i].price))
				ck_assert_int_eq(added(&edges[i], offset), 0);
			if (added(&edges[i], offset))
				paid += edges[i].price;
			ck_assert_uint_le(offset[edges[i].to], ME_REGISTER_OFFSET_MAX);
			ck_assert_uint_le(offset[edges[i].from], ME_REGISTER_OFFSET_MAX);
			if (isinf(edges[i].price))
				edges[i].price = 1000;
		}
		ck_assert(paid <= one_to_each(edges));
	}
}

TEST(register_offset_stays_in_its_bounds)
{
	struct me_register_offset_edge edges[] = {{0, 1, ME_REGISTER_OFFSET_MAX, 9},
						  {1, 2, ME_REGISTER_OFFSET_MAX, 8},
						  {3, 2, 5, 7},
						  {3, 4, ME_REGISTER_OFFSET_MAX - 1, 6}};
	uint32_t offset[5];

	ck_assert_int_eq(me_register_offsets_find(edges, 4, 5, offset), 0);
	for (int v = 0; v < 5; v++)
		ck_assert_uint_le(offset[v], ME_REGISTER_OFFSET_MAX);
	ck_assert_int_eq(added(&edges[0], offset), 0);
	ck_assert_int_ne(added(&edges[1], offset), 0);
	ck_assert_int_eq(added(&edges[2], offset), 0);
	ck_assert_int_eq(added(&edges[3], offset), 0);
	ck_assert_int_eq(me_register_offsets_find(edges, 0, 5, offset), 0);
}
