// SPDX-License-Identifier: Apache-2.0
/* test_order_ties - ties between groups, compared with a matrix of weights. */

#include "libprof/order/order_ties.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define MAX 24

TEST(ties_add_up_as_groups_merge)
{
	seed = 5;
	for (int round = 0; round < 500; round++) {
		double weight[MAX][MAX] = {{0}};
		uint32_t nr = 2 + random_below(MAX - 2), a, b, pair;
		struct mp_ties *ties;

		ck_assert_int_eq(mp_ties_new(nr, 1, &ties), 0);
		for (uint32_t i = 0; i < 2 * nr; i++) {
			uint32_t x = random_below(nr), y = random_below(nr);
			double w = 1 + random_below(1000);

			if (x == y)
				continue;
			weight[x][y] += w;
			weight[y][x] += w;
			ck_assert_int_eq(mp_ties_add(ties, x, y, w, i), 0);
		}
		while (mp_ties_heaviest(ties, &a, &b, &pair)) {
			ck_assert_uint_lt(pair, 2 * nr);
			ck_assert(weight[a][b] > 0);
			for (uint32_t x = 0; x < nr; x++)
				for (uint32_t y = 0; y < nr; y++)
					ck_assert(weight[x][y] <= weight[a][b]);
			ck_assert_int_eq(mp_ties_fold(ties, a, b), 0);
			weight[a][b] = weight[b][a] = 0;
			for (uint32_t x = 0; x < nr; x++) {
				weight[a][x] += weight[b][x];
				weight[x][a] += weight[x][b];
				weight[b][x] = weight[x][b] = 0;
			}
		}
		for (uint32_t x = 0; x < nr; x++)
			for (uint32_t y = 0; y < nr; y++)
				ck_assert(weight[x][y] == 0);
		mp_ties_free(ties);
	}
	mp_ties_free(NULL);
}
