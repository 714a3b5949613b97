// SPDX-License-Identifier: Apache-2.0
/* effect_test - takes pairs of windows together, and tests them; see effect_test.h. */
#include "libprof/audit/effect_test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Number of pairs at which capital enters for the second time. */
#define FIRST_ENTRY 32

void mp_effect_init(struct mp_effect_test *test, double alpha)
{
	memset(test, 0, sizeof(*test));
	mp_seq_init(&test->seq, alpha);
	mp_seq_enter(&test->seq);
	test->nr_entry = FIRST_ENTRY;
	test->nr_wanted = 1;
}

void mp_effect_fini(struct mp_effect_test *test)
{
	mp_seq_fini(&test->seq);
}

static uint32_t find_point(struct mp_effect_test *test, uint16_t point)
{
	uint32_t i = 0;

	while (i < test->nr_points && test->points[i].point != point)
		i++;
	if (i < test->nr_points)
		return i;
	if (i == MP_EFFECT_NR_POINTS)
		return i - 1;
	test->points[i].point = point;
	test->nr_points++;
	return i;
}

static int compare(const void *a, const void *b)
{
	const struct mp_effect_pair *x = a, *y = b;

	if (x->point != y->point)
		return x->point < y->point ? -1 : 1;
	return (x->difference > y->difference) - (x->difference < y->difference);
}

/* Mean of the middle half of @nr ascending differences. It leaves as many out at both ends. */
static double middle_mean(const struct mp_effect_pair *pairs, uint32_t nr)
{
	uint32_t out = nr / 4;
	double sum = 0;

	for (uint32_t i = out; i < nr - out; i++)
		sum += pairs[i].difference;
	return sum / (nr - 2 * out);
}

/* The share of a point's time does not depend on which of its windows ran which version. */
static double weight_of(const struct mp_point_sums *point)
{
	return (double)point->ticks[MP_AUDIT_A] + (double)point->ticks[MP_AUDIT_B];
}

static double take_together(struct mp_effect_test *test)
{
	struct mp_effect_pair *pairs = test->waiting;
	double sum = 0, weights = 0;

	qsort(pairs, test->nr_waiting, sizeof(*pairs), compare);
	for (uint32_t i = 0, end; i < test->nr_waiting; i = end) {
		double weight = weight_of(&test->points[pairs[i].point]);

		for (end = i; end < test->nr_waiting && pairs[end].point == pairs[i].point;)
			end++;
		sum += weight * middle_mean(&pairs[i], end - i);
		weights += weight;
	}
	return sum / weights;
}

static void add_sums(struct mp_point_sums *point, const struct mp_pair *pair)
{
	point->pairs++;
	for (int v = 0; v < MP_AUDIT_NR_VERSIONS; v++) {
		point->ticks[v] += pair->ticks[v];
		point->rounds[v] += pair->rounds[v];
	}
}

int mp_effect_add(struct mp_effect_test *test, const struct mp_pair *pair)
{
	uint32_t point = find_point(test, pair->point), part;
	int ret;

	add_sums(&test->points[point], pair);
	test->waiting[test->nr_waiting++] = (struct mp_effect_pair){pair->difference, point};
	test->nr_pairs++;
	if (test->nr_waiting < test->nr_wanted)
		return 0;
	ret = mp_seq_add_noisy(&test->seq, take_together(test), 1 / sqrt((double)test->nr_waiting));
	test->nr_waiting = 0;
	if (test->nr_pairs >= test->nr_entry) {
		mp_seq_enter(&test->seq);
		test->nr_entry *= 2;
	}
	part = test->nr_pairs / MP_EFFECT_PART < MP_EFFECT_PAIRS_MAX
		       ? (uint32_t)(test->nr_pairs / MP_EFFECT_PART)
		       : MP_EFFECT_PAIRS_MAX;
	test->nr_wanted = part ? part : 1;
	return ret == -EINVAL ? 0 : ret;
}

enum mp_audit_verdict mp_effect_verdict(const struct mp_effect_test *test)
{
	switch (test->seq.verdict) {
	case MP_SEQ_POSITIVE: return MP_AUDIT_VERDICT_B;
	case MP_SEQ_NEGATIVE: return MP_AUDIT_VERDICT_A;
	case MP_SEQ_UNDECIDED:
	default: return MP_AUDIT_VERDICT_NONE;
	}
}
