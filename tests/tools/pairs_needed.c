// SPDX-License-Identifier: Apache-2.0
/*
 * pairs_needed - how many pairs an audit needs, by simulation with measured differences.
 *
 *	pairs-needed runs|windows ALPHA EFFECT AUDITS MOST <DIFFERENCES
 *
 * DIFFERENCES are those of pairs of two equal versions, numbers between white space. Each pair of an
 * audit is one of them, drawn at random, with the sign of a coin, plus EFFECT. The pairs go through the
 * code that tests pairs of runs (libprof/audit/sequential_test.h) or of windows
 * (libprof/audit/effect_test.h), until it decides, or for MOST pairs. Prints a line: the pairs at which
 * a quarter, half and three quarters of the AUDITS were decided rightly (MOST: fewer were), and the
 * numbers of wrong and undecided ones. Called by scripts/bench/bench-loops.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/mix.h"
#include "libprof/audit/effect_test.h"

#define MOST_DIFFERENCES 100000

struct audit {
	bool windows;
	double alpha, effect;
	size_t most;
	const double *differences;
	size_t nr;
};

static void fail(const char *what)
{
	fprintf(stderr, "pairs-needed: %s\n", what);
	exit(1);
}

static double next_difference(const struct audit *a, uint64_t *random)
{
	double d = a->differences[me_next_random(random) % a->nr];

	return (me_next_random(random) >> 63 ? d : -d) + a->effect;
}

static enum mp_audit_verdict add_run(struct mp_seq *seq, double d)
{
	if (mp_seq_add(seq, d))
		fail("no memory");
	if (seq->verdict == MP_SEQ_UNDECIDED)
		return MP_AUDIT_VERDICT_NONE;
	return seq->verdict == MP_SEQ_POSITIVE ? MP_AUDIT_VERDICT_B : MP_AUDIT_VERDICT_A;
}

static enum mp_audit_verdict add_windows(struct mp_effect_test *test, double d)
{
	const struct mp_pair pair = {.ticks = {1, 1}, .rounds = {1, 1}, .difference = d};

	if (mp_effect_add(test, &pair))
		fail("no memory");
	return mp_effect_verdict(test);
}

/* Return: pairs until the verdict. */
static size_t run(const struct audit *a, uint64_t seed, enum mp_audit_verdict *verdict)
{
	static struct mp_effect_test test;
	struct mp_seq seq;
	size_t nr = 0;

	mp_effect_init(&test, a->alpha);
	mp_seq_init(&seq, a->alpha);
	*verdict = MP_AUDIT_VERDICT_NONE;
	while (nr < a->most && *verdict == MP_AUDIT_VERDICT_NONE) {
		double d = next_difference(a, &seed);

		*verdict = a->windows ? add_windows(&test, d) : add_run(&seq, d);
		nr++;
	}
	mp_seq_fini(&seq);
	mp_effect_fini(&test);
	return nr;
}

static int compare(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

static void simulate(const struct audit *a, size_t nr_audits)
{
	size_t *pairs = calloc(nr_audits, sizeof(*pairs)), wrong = 0, undecided = 0;

	if (!pairs)
		fail("no memory");
	for (size_t i = 0; i < nr_audits; i++) {
		enum mp_audit_verdict verdict;

		pairs[i] = run(a, (i + 1) * 0x632be59bd9b4e019u, &verdict);
		undecided += verdict == MP_AUDIT_VERDICT_NONE;
		if (verdict == (a->effect > 0 ? MP_AUDIT_VERDICT_A : MP_AUDIT_VERDICT_B)) {
			wrong++;
			pairs[i] = a->most;
		}
	}
	qsort(pairs, nr_audits, sizeof(*pairs), compare);
	printf("%zu %zu %zu %zu %zu\n", pairs[nr_audits / 4], pairs[nr_audits / 2],
	       pairs[nr_audits * 3 / 4], wrong, undecided);
	free(pairs);
}

int main(int argc, char **argv)
{
	static double differences[MOST_DIFFERENCES];
	struct audit a = {.differences = differences};
	size_t nr_audits;

	if (argc != 6 || (strcmp(argv[1], "runs") && strcmp(argv[1], "windows"))) {
		fprintf(stderr,
			"usage: pairs-needed runs|windows ALPHA EFFECT AUDITS MOST <DIFFERENCES\n");
		return 2;
	}
	a.windows = !strcmp(argv[1], "windows");
	a.alpha = strtod(argv[2], NULL);
	a.effect = strtod(argv[3], NULL);
	nr_audits = strtoul(argv[4], NULL, 10);
	a.most = strtoul(argv[5], NULL, 10);
	while (a.nr < MOST_DIFFERENCES && scanf("%lf", &differences[a.nr]) == 1)
		a.nr++;
	if (!a.nr || a.alpha <= 0 || a.alpha >= 1 || !nr_audits || !a.most)
		fail("no differences, or a number is out of range");
	simulate(&a, nr_audits);
	return 0;
}
