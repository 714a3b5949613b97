// SPDX-License-Identifier: Apache-2.0
/* trial - pairs of blocks become a verdict; trial.h explains why it is valid. */
#include "libprof/trial/trial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/defaults.h"
#include "libprof/base/grow.h"
#include "libprof/trial/trial_private.h"

/*
 * Times and weights beyond this, or below its inverse, are no measurement. Their ratios are finite
 * numbers.
 */
#define NUMBER_MAX 1e30
#define COUNT_MAX  (UINT64_C(1) << 53)
/*
 * Pairs in which only the new version crashed. A single user who does bad work again and again is
 * in one of them.
 */
#define PAIRS_CRASHED 3
/*
 * The weights are fitted from so many pairs on. The meter's own count for as many blocks as PRIOR: few, since they come
 * from a version that took longer, and from other minutes.
 */
#define FIT_PAIRS 4
#define PRIOR	  0.2
/*
 * Guesses how unlike the work of two blocks is whose times differ as much beyond their work as those of alike blocks
 * do; the last one: unlike work does not matter.
 */
static const double unlike_guesses[MP_TRIAL_NR_GUESSES] = {0.01, 0.03, 0.1, 0.3, 1, INFINITY};
/* A guess must describe the pairs better than the last one by this, in the log of the likelihood. */
#define GUESS_GAIN 2.0
/* Trials whose alpha is about the same. */
#define ALPHA_FIRST 10.0

static const char *const names[MP_NR_TRIAL_VERDICTS] = {
	[MP_TRIAL_RUNNING] = "running",		[MP_TRIAL_FASTER] = "faster",
	[MP_TRIAL_SLOWER] = "slower",		[MP_TRIAL_EQUAL_SPEED] = "equal",
	[MP_TRIAL_MUCH_SLOWER] = "much slower", [MP_TRIAL_CRASHES] = "crashes",
	[MP_TRIAL_UNDECIDED] = "undecided",
};

const char *mp_trial_verdict_name(enum mp_trial_verdict verdict)
{
	return verdict < MP_NR_TRIAL_VERDICTS ? names[verdict] : "unknown";
}

double mp_trial_alpha(uint64_t k)
{
	double n = k ? (double)k : 1;

	return MP_ALPHA * ALPHA_FIRST / ((n + ALPHA_FIRST - 1) * (n + ALPHA_FIRST));
}

static bool config_makes_sense(const struct mp_trial_config *c)
{
	bool sense = c->alpha > 0 && c->alpha < 1 && c->nr_counters >= 1 &&
		     c->nr_counters <= MP_TRIAL_NR_COUNTERS && c->least_work >= 0 &&
		     c->least_work <= NUMBER_MAX && c->least_processes <= COUNT_MAX &&
		     c->max_pairs >= 1 && c->max_pairs <= MP_TRIAL_MAX_PAIRS;

	/* A number that is none fails each comparison. */
	for (size_t i = 0; sense && i < c->nr_counters; i++)
		sense = c->weights[i] >= 1 / NUMBER_MAX && c->weights[i] <= NUMBER_MAX;
	return sense;
}

int mp_trial_new(const struct mp_trial_config *config, struct mp_trial **out)
{
	struct mp_trial *t;

	*out = NULL;
	if (!config_makes_sense(config))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->config = *config;
	t->drawn = t->unlike = -1;
	memcpy(t->weights, config->weights, config->nr_counters * sizeof(t->weights[0]));
	t->blocks.nr = config->nr_counters + 1;
	mp_seq_init_kind(&t->speed, MP_SEQ_EVERYDAY, config->alpha);
	mp_seq_init_kind(&t->not_slower, MP_SEQ_EVERYDAY, config->alpha);
	mp_seq_init_kind(&t->not_faster, MP_SEQ_EVERYDAY, config->alpha);
	/* Only one direction of each is asked, which has half of the error. */
	mp_seq_init_kind(&t->harm, MP_SEQ_EVERYDAY, 2 * MP_TRIAL_HARM_ALPHA);
	mp_seq_init_kind(&t->crashes, MP_SEQ_RUNS, 2 * MP_TRIAL_HARM_ALPHA);
	for (size_t i = 0; i < config->nr_counters; i++) {
		double alpha = MP_TRIAL_UNLIKE_ALPHA / (double)config->nr_counters;

		mp_seq_init_kind(&t->larger[i], MP_SEQ_EVERYDAY, alpha);
		mp_seq_init_kind(&t->smaller[i], MP_SEQ_EVERYDAY, alpha);
	}
	*out = t;
	return 0;
}

void mp_trial_free(struct mp_trial *t)
{
	if (!t)
		return;
	mp_seq_fini(&t->speed);
	mp_seq_fini(&t->not_slower);
	mp_seq_fini(&t->not_faster);
	mp_seq_fini(&t->harm);
	mp_seq_fini(&t->crashes);
	for (size_t i = 0; i < t->config.nr_counters; i++) {
		mp_seq_fini(&t->larger[i]);
		mp_seq_fini(&t->smaller[i]);
	}
	free(t->pairs);
	free(t);
}

int mp_trial_draw(struct mp_trial *t, bool coin)
{
	if (t->verdict != MP_TRIAL_RUNNING)
		return -EALREADY;
	if (t->drawn < 0)
		t->drawn = coin;
	return t->drawn;
}

int mp_trial_drawn(const struct mp_trial *t)
{
	return t->drawn;
}

/* The last pair may end the trial. */
static void look_at_budget(struct mp_trial *t)
{
	if (t->verdict == MP_TRIAL_RUNNING && t->nr + t->nr_abandoned >= t->config.max_pairs)
		t->verdict = MP_TRIAL_UNDECIDED;
}

void mp_trial_abandon(struct mp_trial *t)
{
	if (t->drawn < 0)
		return;
	t->drawn = -1;
	t->nr_abandoned++;
	look_at_budget(t);
}

static bool block_makes_sense(const struct mp_trial_config *c, const struct mp_trial_block *b)
{
	bool sense = (b->cpu_s == 0 || b->cpu_s >= 1 / NUMBER_MAX) && b->cpu_s <= NUMBER_MAX &&
		     b->processes <= COUNT_MAX && b->crashes <= b->processes;

	for (size_t i = 0; i < c->nr_counters; i++)
		sense &= b->counts[i] <= COUNT_MAX;
	return sense;
}

static double work_of(const struct mp_trial_config *c, const struct mp_trial_block *b)
{
	double work = 0;

	for (size_t i = 0; i < c->nr_counters; i++)
		work += c->weights[i] * (double)b->counts[i];
	return work;
}

/* The rule is the same for both blocks, and looks at no time that is above 0. */
static bool block_counts(const struct mp_trial_config *c, const struct mp_trial_block *b,
			 double work)
{
	return b->cpu_s > 0 && work > 0 && work >= c->least_work &&
	       b->processes >= c->least_processes;
}

/* Adds the difference @d and its shifted copies to the tests. Return: 0, -ENOMEM. */
static int add_speed(struct mp_trial *t, double d, double noise)
{
	int rc = mp_seq_add_noisy(&t->speed, d, noise);

	if (!rc)
		rc = mp_seq_add_noisy(&t->not_slower, d + MP_TRIAL_EQUAL, noise);
	if (!rc)
		rc = mp_seq_add_noisy(&t->not_faster, d - MP_TRIAL_EQUAL, noise);
	return rc ? rc : mp_seq_add_noisy(&t->harm, d + log1p(MP_TRIAL_HARM), noise);
}

/* Looks whether counter @i's share differs. */
static void look_at_share(struct mp_trial *t, size_t i)
{
	const struct mp_seq *larger = &t->larger[i], *smaller = &t->smaller[i];
	double capital =
		fmax(mp_seq_capital(larger, larger->up), mp_seq_capital(smaller, smaller->down));

	if (t->unlike < 0 &&
	    (larger->verdict == MP_SEQ_POSITIVE || smaller->verdict == MP_SEQ_NEGATIVE))
		t->unlike = (int)i;
	t->doubt |= capital >= 2 * (double)t->config.nr_counters / MP_TRIAL_DOUBT_ALPHA;
}

/* Compares the counters' shares. One counter is always all of the work. */
static int add_shares(struct mp_trial *t, const struct mp_trial_block blocks[2],
		      const double work[2])
{
	const struct mp_trial_config *c = &t->config;
	int rc = 0;

	t->doubt = false;
	for (size_t i = 0; !rc && c->nr_counters > 1 && i < c->nr_counters; i++) {
		double shift = c->weights[i] * ((double)blocks[1].counts[i] / work[1] -
						(double)blocks[0].counts[i] / work[0]);

		rc = mp_seq_add(&t->larger[i], shift - MP_TRIAL_UNLIKE);
		if (!rc)
			rc = mp_seq_add(&t->smaller[i], shift + MP_TRIAL_UNLIKE);
		look_at_share(t, i);
	}
	return rc;
}

/*
 * Compares the crashes, of pairs that are dropped, too: a version that crashes at once does little
 * work.
 */
static int add_crashes(struct mp_trial *t, const struct mp_trial_block blocks[2])
{
	double new = (double)blocks[1].processes, all = new + (double)blocks[0].processes;

	for (int v = 0; v < 2; v++) {
		t->sums.processes[v] += blocks[v].processes;
		t->sums.crashes[v] += blocks[v].crashes;
	}
	if (!blocks[0].processes || !blocks[1].processes ||
	    !(blocks[0].crashes + blocks[1].crashes))
		return 0;
	t->nr_crashed++;
	t->log_crashed += (double)blocks[1].crashes * log(all / new);
	return mp_seq_add(&t->crashes, (double)blocks[1].crashes / new -
					       (double)blocks[0].crashes / (all - new));
}

/* ---- weights --------------------------------------------------------------------------------- */

static double column_of(const struct mp_trial *t, const struct mp_trial_block *b, size_t i)
{
	return (double)(i < t->config.nr_counters ? b->counts[i] : b->processes);
}

static double weighted(const struct mp_trial *t, const double *weights,
		       const struct mp_trial_block *b)
{
	double work = 0;

	for (size_t i = 0; i < t->blocks.nr; i++)
		work += weights[i] * column_of(t, b, i);
	return work;
}

static void add_to_fit(struct mp_trial *t, const struct mp_trial_block *b)
{
	for (size_t i = 0; i < t->blocks.nr; i++) {
		double x = column_of(t, b, i) / b->cpu_s;

		t->blocks.target[i] += x;
		for (size_t k = 0; k < t->blocks.nr; k++)
			t->blocks.gram[i][k] += x * column_of(t, b, k) / b->cpu_s;
	}
	t->nr_blocks++;
}

/* For the pairs that follow. Columns have length 1, so that counts of all sizes are alike. */
static void fit_weights(struct mp_trial *t)
{
	double scale[MP_FIT_MAX], prior = PRIOR / t->nr_blocks;
	struct mp_fit fit = t->blocks;

	for (size_t i = 0; i < fit.nr; i++)
		scale[i] = fit.gram[i][i] > 0 ? sqrt(fit.gram[i][i]) : 1;
	for (size_t i = 0; i < fit.nr; i++) {
		fit.target[i] /= scale[i];
		for (size_t k = 0; k < fit.nr; k++)
			fit.gram[i][k] /= scale[i] * scale[k];
		fit.gram[i][i] += prior;
		if (i < t->config.nr_counters)
			fit.target[i] += prior * t->config.weights[i] * scale[i];
	}
	mp_fit(&fit, t->weights);
	for (size_t i = 0; i < fit.nr; i++)
		t->weights[i] /= scale[i];
}

/*
 * How the pair differs, by weights that earlier pairs gave. @unlike: by how much the work of its blocks is unlike: half
 * of the sum of the differences of its shares.
 */
static double difference(const struct mp_trial *t, const struct mp_trial_block blocks[2],
			 double *unlike)
{
	double plain[MP_TRIAL_NR_COUNTERS + 1] = {0}, work[2];
	const double *weights = t->weights;

	memcpy(plain, t->config.weights, t->config.nr_counters * sizeof(plain[0]));
	if (t->sums.nr_pairs < FIT_PAIRS || !(weighted(t, weights, &blocks[0]) > 0) ||
	    !(weighted(t, weights, &blocks[1]) > 0))
		weights = plain;
	for (int v = 0; v < 2; v++)
		work[v] = weighted(t, weights, &blocks[v]);
	*unlike = 0;
	for (size_t i = 0; i < t->blocks.nr; i++)
		*unlike += weights[i] / 2 *
			   fabs(column_of(t, &blocks[0], i) / work[0] -
				column_of(t, &blocks[1], i) / work[1]);
	return log(blocks[0].cpu_s) - log(work[0]) - log(blocks[1].cpu_s) + log(work[1]);
}

static double noise_of(size_t guess, double unlike)
{
	return hypot(1, unlike / unlike_guesses[guess]);
}

/* Minus the log of the likelihood of the pairs so far, if @guess is right and their noise is exponential. */
static double badness(const struct mp_trial *t, size_t guess)
{
	const struct mp_trial_guess *g = &t->guesses[guess];

	return t->sums.nr_pairs * log(g->differences) + g->logs;
}

/*
 * The noise of a pair whose work is @unlike, as a part of that of a usual one, by what the earlier pairs say. Exchanging
 * the names of a pair's blocks changes nothing here.
 */
static double guessed_noise(const struct mp_trial *t, double unlike)
{
	size_t best = MP_TRIAL_NR_GUESSES - 1;
	double least = badness(t, best) - GUESS_GAIN;

	for (size_t i = 0; t->sums.nr_pairs >= FIT_PAIRS && i < MP_TRIAL_NR_GUESSES - 1; i++) {
		if (badness(t, i) < least) {
			least = badness(t, i);
			best = i;
		}
	}
	return noise_of(best, unlike) * exp(-t->guesses[best].logs / fmax(t->sums.nr_pairs, 1));
}

static void look_at_guesses(struct mp_trial *t, double d, double unlike)
{
	for (size_t i = 0; i < MP_TRIAL_NR_GUESSES; i++) {
		t->guesses[i].differences += fabs(d) / noise_of(i, unlike);
		t->guesses[i].logs += log(noise_of(i, unlike));
	}
}

static int add_pair_that_counts(struct mp_trial *t, const struct mp_trial_block blocks[2],
				const double work[2])
{
	double unlike, d = difference(t, blocks, &unlike);
	int rc = add_speed(t, d, guessed_noise(t, unlike));

	look_at_guesses(t, d, unlike);
	if (!rc)
		rc = add_shares(t, blocks, work);
	for (int v = 0; !rc && v < 2; v++) {
		t->sums.cpu_s[v] += blocks[v].cpu_s;
		t->sums.work[v] += work[v];
	}
	t->sums.nr_pairs++;
	add_to_fit(t, &blocks[0]);
	add_to_fit(t, &blocks[1]);
	fit_weights(t);
	return rc;
}

/* What the times say, whatever the work was. */
static enum mp_trial_verdict judge_times(const struct mp_trial *t)
{
	if (t->speed.verdict == MP_SEQ_POSITIVE)
		return MP_TRIAL_FASTER;
	if (t->speed.verdict == MP_SEQ_NEGATIVE)
		return MP_TRIAL_SLOWER;
	if (t->not_slower.verdict == MP_SEQ_POSITIVE && t->not_faster.verdict == MP_SEQ_NEGATIVE)
		return MP_TRIAL_EQUAL_SPEED;
	return MP_TRIAL_RUNNING;
}

/* May the work be why times differ, as far as is known? */
static bool withholds(const struct mp_trial *t)
{
	return t->unlike >= 0 || t->doubt ||
	       (t->config.nr_counters > 1 && t->sums.nr_pairs < MP_TRIAL_LIKE_PAIRS);
}

/*
 * Is it that only processes of the new version crash, more than chance does? Each crash of a pair
 * is on one of the new version's processes with a probability of its share of them, at most.
 */
static bool only_new_crashes(const struct mp_trial *t)
{
	return !t->sums.crashes[0] && t->nr_crashed >= PAIRS_CRASHED &&
	       t->log_crashed >= -log(MP_TRIAL_HARM_ALPHA);
}

static void judge(struct mp_trial *t)
{
	if (t->crashes.verdict == MP_SEQ_POSITIVE || only_new_crashes(t))
		t->verdict = MP_TRIAL_CRASHES;
	else if (t->harm.verdict == MP_SEQ_NEGATIVE)
		t->verdict = MP_TRIAL_MUCH_SLOWER;
	else if (!withholds(t))
		t->verdict = judge_times(t);
	look_at_budget(t);
}

int mp_trial_add_pair(struct mp_trial *t, const struct mp_trial_block blocks[2])
{
	const struct mp_trial_config *c = &t->config;
	const double work[2] = {work_of(c, &blocks[0]), work_of(c, &blocks[1])};
	int rc;

	if (t->verdict != MP_TRIAL_RUNNING)
		return -EALREADY;
	if (t->drawn < 0 || !block_makes_sense(c, &blocks[0]) || !block_makes_sense(c, &blocks[1]))
		return -EINVAL;
	rc = mp_push(t->pairs, t->nr, t->room,
		     ((struct mp_trial_pair){t->drawn, {blocks[0], blocks[1]}}));
	if (rc)
		return rc;
	t->drawn = -1;
	rc = add_crashes(t, blocks);
	if (!rc && block_counts(c, &blocks[0], work[0]) && block_counts(c, &blocks[1], work[1]))
		rc = add_pair_that_counts(t, blocks, work);
	judge(t);
	return rc;
}

enum mp_trial_verdict mp_trial_verdict(const struct mp_trial *t)
{
	return t->verdict;
}

uint32_t mp_trial_nr_pairs(const struct mp_trial *t)
{
	return t->sums.nr_pairs;
}

const struct mp_trial_config *mp_trial_config(const struct mp_trial *t)
{
	return &t->config;
}

void mp_trial_result(const struct mp_trial *t, struct mp_trial_result *out)
{
	double lo, hi;

	*out = t->sums;
	out->verdict = t->verdict;
	out->nr_dropped = t->nr + t->nr_abandoned - t->sums.nr_pairs;
	mp_seq_interval(&t->speed, &lo, &hi);
	out->lowest = exp(lo);
	out->highest = exp(hi);
	out->speedup = exp(mp_seq_estimate(&t->speed));
	out->unlike = t->unlike;
	out->withheld = withholds(t) && judge_times(t) != MP_TRIAL_RUNNING;
	out->unlike_shift =
		t->unlike < 0 ? 0 : mp_seq_estimate(&t->larger[t->unlike]) + MP_TRIAL_UNLIKE;
}
