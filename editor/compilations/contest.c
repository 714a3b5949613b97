// SPDX-License-Identifier: Apache-2.0
/* contest - tests all regions of two compilations at once; see contest.h. */
#include "editor/compilations/contest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int me_contest_init(struct me_contest *out, uint32_t nr_regions, double alpha, double indifference)
{
	*out = (struct me_contest){.alpha = alpha, .indifference = indifference, .nr = nr_regions};
	out->list = calloc((size_t)nr_regions + 1, sizeof(*out->list));
	return out->list ? 0 : -ENOMEM;
}

void me_contest_fini(struct me_contest *contest)
{
	for (uint32_t i = 0; contest->list && i <= contest->nr; i++)
		if (contest->list[i].tested)
			mp_seq_fini(&contest->list[i].seq);
	free(contest->list);
	*contest = (struct me_contest){0};
}

void me_contest_choose(struct me_contest *contest, const uint64_t *old_run, const uint64_t *new_run)
{
	uint32_t whole = contest->nr;
	double all = (double)(old_run[whole] + new_run[whole]);

	contest->nr_tested = 0;
	for (uint32_t i = 0; i <= whole; i++) {
		struct me_contestant *c = &contest->list[i];
		uint64_t both = old_run[i] + new_run[i];

		c->tested = i == whole || (!c->work_differs && both >= ME_CONTEST_LEAST_SAMPLES &&
					   (double)both >= ME_CONTEST_LEAST_SHARE * all);
		contest->nr_tested += c->tested;
	}
	for (uint32_t i = 0; i <= whole; i++)
		if (contest->list[i].tested)
			mp_seq_init(&contest->list[i].seq, contest->alpha / contest->nr_tested);
}

int me_contest_add(struct me_contest *contest, const uint64_t *old_run, const uint64_t *new_run)
{
	for (uint32_t i = 0; i <= contest->nr; i++) {
		struct me_contestant *c = &contest->list[i];
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
	contest->nr_pairs++;
	return 0;
}

/* The log ratio of a region's times that would change the whole's time by the indifference. */
static double least_effect(const struct me_contest *contest, const struct me_contestant *c)
{
	const struct me_contestant *whole = &contest->list[contest->nr];
	double all = (double)(whole->samples[ME_OLD] + whole->samples[ME_NEW]);
	double share = (double)(c->samples[ME_OLD] + c->samples[ME_NEW]) / fmax(1, all);

	return share > 0 ? log1p(expm1(contest->indifference) / share) : INFINITY;
}

static enum me_contest_verdict verdict_of(const struct me_contest *contest,
					  const struct me_contestant *c)
{
	double effect;

	if (c->seq.verdict == MP_SEQ_POSITIVE)
		return ME_CONTEST_FASTER;
	if (c->seq.verdict == MP_SEQ_NEGATIVE)
		return ME_CONTEST_SLOWER;
	effect = least_effect(contest, c);
	if (contest->indifference > 0 && mp_seq_holds(&c->seq, 0) &&
	    !mp_seq_holds(&c->seq, effect) && !mp_seq_holds(&c->seq, -effect))
		return ME_CONTEST_EQUAL;
	return ME_CONTEST_UNDECIDED;
}

bool me_contest_is_over(struct me_contest *contest)
{
	for (uint32_t i = 0; i <= contest->nr; i++)
		if (contest->list[i].tested &&
		    verdict_of(contest, &contest->list[i]) == ME_CONTEST_UNDECIDED)
			return false;
	return true;
}

void me_contest_end(struct me_contest *contest)
{
	for (uint32_t i = 0; i <= contest->nr; i++) {
		struct me_contestant *c = &contest->list[i];

		if (!c->tested)
			continue;
		c->verdict = verdict_of(contest, c);
		mp_seq_interval(&c->seq, &c->lowest, &c->highest);
	}
}

const char *me_contest_verdict_name(enum me_contest_verdict verdict)
{
	static const char *const names[] = {
		[ME_CONTEST_UNDECIDED] = "undecided",
		[ME_CONTEST_FASTER] = "faster",
		[ME_CONTEST_SLOWER] = "slower",
		[ME_CONTEST_EQUAL] = "equal",
	};

	return names[verdict];
}
