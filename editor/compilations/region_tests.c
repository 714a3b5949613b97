// SPDX-License-Identifier: Apache-2.0
/* region_tests - tests all regions of two compilations at once; see region_tests.h. */
#include "editor/compilations/region_tests.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int me_region_tests_init(struct me_region_tests *out, uint32_t nr_regions, double alpha,
			 double indifference)
{
	*out = (struct me_region_tests){
		.alpha = alpha, .indifference = indifference, .nr = nr_regions};
	out->list = calloc((size_t)nr_regions + 1, sizeof(*out->list));
	return out->list ? 0 : -ENOMEM;
}

void me_region_tests_fini(struct me_region_tests *tests)
{
	for (uint32_t i = 0; tests->list && i <= tests->nr; i++)
		if (tests->list[i].tested)
			mp_seq_fini(&tests->list[i].seq);
	free(tests->list);
	*tests = (struct me_region_tests){0};
}

void me_region_tests_choose(struct me_region_tests *tests, const uint64_t *old_run,
			    const uint64_t *new_run)
{
	uint32_t whole = tests->nr;
	double all = (double)(old_run[whole] + new_run[whole]);

	tests->nr_tested = 0;
	for (uint32_t i = 0; i <= whole; i++) {
		struct me_region_test *c = &tests->list[i];
		uint64_t both = old_run[i] + new_run[i];

		c->tested = i == whole || (!c->work_differs && both >= ME_REGION_LEAST_SAMPLES &&
					   (double)both >= ME_REGION_LEAST_SHARE * all);
		tests->nr_tested += c->tested;
	}
	for (uint32_t i = 0; i <= whole; i++)
		if (tests->list[i].tested)
			mp_seq_init(&tests->list[i].seq, tests->alpha / tests->nr_tested);
}

int me_region_tests_add(struct me_region_tests *tests, const uint64_t *old_run,
			const uint64_t *new_run)
{
	for (uint32_t i = 0; i <= tests->nr; i++) {
		struct me_region_test *c = &tests->list[i];
		int rc;

		c->samples[ME_OLD] += old_run[i];
		c->samples[ME_NEW] += new_run[i];
		if (!c->tested)
			continue;
		rc = mp_seq_add(&c->seq,
				log(((double)old_run[i] + 0.5) / ((double)new_run[i] + 0.5)));
		if (rc)
			return rc;
	}
	tests->nr_pairs++;
	return 0;
}

/* The log ratio of a region's times that would change the whole's time by the indifference. */
static double least_effect(const struct me_region_tests *tests, const struct me_region_test *c)
{
	const struct me_region_test *whole = &tests->list[tests->nr];
	double all = (double)(whole->samples[ME_OLD] + whole->samples[ME_NEW]);
	double share = (double)(c->samples[ME_OLD] + c->samples[ME_NEW]) / fmax(1, all);

	return share > 0 ? log1p(expm1(tests->indifference) / share) : INFINITY;
}

static enum me_region_verdict verdict_of(const struct me_region_tests *tests,
					 const struct me_region_test *c)
{
	double effect;

	if (c->seq.verdict == MP_SEQ_POSITIVE)
		return ME_REGION_FASTER;
	if (c->seq.verdict == MP_SEQ_NEGATIVE)
		return ME_REGION_SLOWER;
	effect = least_effect(tests, c);
	if (tests->indifference > 0 && mp_seq_holds(&c->seq, 0) && !mp_seq_holds(&c->seq, effect) &&
	    !mp_seq_holds(&c->seq, -effect))
		return ME_REGION_EQUAL;
	return ME_REGION_UNDECIDED;
}

bool me_region_tests_are_over(struct me_region_tests *tests)
{
	for (uint32_t i = 0; i <= tests->nr; i++)
		if (tests->list[i].tested &&
		    verdict_of(tests, &tests->list[i]) == ME_REGION_UNDECIDED)
			return false;
	return true;
}

void me_region_tests_end(struct me_region_tests *tests)
{
	for (uint32_t i = 0; i <= tests->nr; i++) {
		struct me_region_test *c = &tests->list[i];

		if (!c->tested)
			continue;
		c->verdict = verdict_of(tests, c);
		mp_seq_interval(&c->seq, &c->lowest, &c->highest);
	}
}

const char *me_region_verdict_name(enum me_region_verdict verdict)
{
	static const char *const names[] = {
		[ME_REGION_UNDECIDED] = "undecided",
		[ME_REGION_FASTER] = "faster",
		[ME_REGION_SLOWER] = "slower",
		[ME_REGION_EQUAL] = "equal",
	};

	return names[verdict];
}
