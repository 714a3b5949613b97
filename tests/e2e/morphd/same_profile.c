// SPDX-License-Identifier: Apache-2.0
/*
 * same_profile - tests whether two sources of samples measure the same for the same work.
 *
 *	same_profile TABLE [ALARMS]	TABLE has lines "RUN SOURCE LEVEL NAME COUNT"; one
 *					false alarm in ALARMS tests (1000000)
 *	same_profile --self-test	checks that false alarms are as rare as promised
 *
 * Samples of a timer are not independent of each other, nor of the order of a program's work, and
 * a machine changes from run to run. No formula for the error of a count is valid, so this is a
 * randomisation test: the script draws by lot which source collects in which run. If the sources
 * do not differ, every other outcome of that lottery was as likely. The difference for the drawn
 * outcome is then the largest among N others with a chance of exactly 1 in N + 1, however the runs
 * differ.
 *
 * The difference of two sources at one level (modules, functions, blocks) is the sum of -log(1 - e)
 * over the categories; e is the part of the variance of the category's share that lies between the
 * sources. The sum detects one category that differs much, and many that differ a little.
 *
 * To show that the test would detect a difference, each pair is tested again after at most SKEW of
 * one source's samples were moved from the largest category to the second. If that is not detected,
 * the machine changed too much between runs, and the test proves nothing. More runs help more than
 * longer runs: the amount that one category can add to the sum grows with the number of runs.
 *
 * Exit: 0 same, 1 different, 3 undecided, 2 wrong use.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALARMS	       1000000 /* one false alarm in this many, for all tests together */
#define SKEW	       0.03
#define MAX_RUNS       64
#define MAX_SOURCES    4
#define MAX_LEVELS     4
#define MAX_CATEGORIES 128
#define MIN_COUNT      10 /* average over the runs; smaller categories are merged into one */
#define MIN_RUNS       14 /* per source; fewer runs have too few lotteries */

struct table {
	uint32_t nr_runs, nr_categories;
	double count[MAX_RUNS][MAX_CATEGORIES];
	char name[MAX_CATEGORIES][128];
};

struct input {
	uint32_t nr_runs, nr_sources, nr_levels;
	uint32_t source[MAX_RUNS];
	char sources[MAX_SOURCES][32], levels[MAX_LEVELS][32];
	struct table tables[MAX_LEVELS];
};

#define PART 8 /* runs */

/* The runs of two sources. The shares of a category have a mean of 0 and a sum of squares of 1. */
struct pair {
	uint32_t nr_runs, nr_first, nr_categories; /* the first source's runs come first */
	float share[MAX_RUNS][MAX_CATEGORIES];
	/* The sums of all subsets of each PART runs. A lottery adds a few of these. */
	float sum[MAX_RUNS / PART][1 << PART][MAX_CATEGORIES];
};

static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1du;
}

static uint32_t draw_below(uint32_t n)
{
	return (draw() >> 32) * n >> 32;
}

static double draw_unit(void)
{
	return (draw() >> 11) * 0x1p-53;
}

/* ---- the test ------------------------------------------------------------------------------ */

/*
 * With a mean of 0 and a sum of squares of 1, the variance between the groups is s * s / n1 +
 * s * s / n2, where s is the sum over the first group.
 */
static double difference(const struct pair *p, uint64_t set)
{
	double factor = 1.0 / p->nr_first + 1.0 / (p->nr_runs - p->nr_first);
	double product = 1, out = 0, e;
	float sum[MAX_CATEGORIES];
	uint32_t i, k;

	memset(sum, 0, p->nr_categories * sizeof(sum[0]));
	for (i = 0; set; i++, set >>= PART) {
		const float *part = p->sum[i][set & ((1 << PART) - 1)];

		for (k = 0; k < p->nr_categories; k++)
			sum[k] += part[k];
	}
	for (k = 0; k < p->nr_categories; k++) {
		e = (double)sum[k] * sum[k] * factor;
		product *= e < 1 - 1e-9 ? 1 - e : 1e-9;
		if (product < 1e-200) {
			out -= log(product);
			product = 1;
		}
	}
	return out - log(product);
}

/* Return: a random set of @nr of @of runs; all sets are equally likely. */
static uint64_t draw_set(uint32_t nr, uint32_t of)
{
	uint64_t set;

	do {
		set = draw() >> (64 - of);
	} while ((uint32_t)__builtin_popcountll(set) != nr);
	return set;
}

/* Return: the number of the first of @nr lotteries with as large a difference; 0: none had. */
static uint64_t first_as_large(const struct pair *p, uint64_t nr)
{
	double seen = difference(p, (UINT64_C(1) << p->nr_first) - 1);
	uint64_t n;

	/* Differences that only differ by rounding count as equal. */
	for (n = 1; n <= nr; n++)
		if (difference(p, draw_set(p->nr_first, p->nr_runs)) >= seen * (1 - 1e-6))
			return n;
	return 0;
}

static void make_sums(struct pair *p)
{
	uint32_t i, set, k, last;

	for (i = 0; i * PART < p->nr_runs; i++)
		for (set = 1; set < 1 << PART; set++) {
			last = i * PART + __builtin_ctz(set);
			for (k = 0; k < p->nr_categories; k++)
				p->sum[i][set][k] =
					p->sum[i][set & (set - 1)][k] + p->share[last][k];
		}
}

/* Merges the small categories into one. */
static void make_pair(const struct table *t, const uint32_t *source, uint32_t a, uint32_t b,
		      struct pair *p)
{
	double count[MAX_CATEGORIES], total, mean, squares;
	uint32_t runs[MAX_RUNS], i, k, to;
	bool is_small[MAX_CATEGORIES];

	/* The sum of the empty set stays 0; all others are written later. */
	memset(p, 0, offsetof(struct pair, sum));
	for (i = 0; i < t->nr_runs; i++)
		if (source[i] == a)
			runs[p->nr_runs++] = i;
	p->nr_first = p->nr_runs;
	for (i = 0; i < t->nr_runs; i++)
		if (source[i] == b)
			runs[p->nr_runs++] = i;
	for (k = 0; k < t->nr_categories; k++) {
		total = 0;
		for (i = 0; i < p->nr_runs; i++)
			total += t->count[runs[i]][k];
		is_small[k] = total < MIN_COUNT * p->nr_runs;
	}
	for (i = 0; i < p->nr_runs; i++) {
		memset(count, 0, sizeof(count));
		total = 0;
		to = 1; /* 0: the small categories */
		for (k = 0; k < t->nr_categories; k++) {
			count[is_small[k] ? 0 : to++] += t->count[runs[i]][k];
			total += t->count[runs[i]][k];
		}
		p->nr_categories = to;
		for (k = 0; k < to; k++)
			p->share[i][k] = total ? count[k] / total : 0;
	}
	for (k = 0; k < p->nr_categories; k++) {
		mean = squares = 0;
		for (i = 0; i < p->nr_runs; i++)
			mean += p->share[i][k] / p->nr_runs;
		for (i = 0; i < p->nr_runs; i++)
			squares += (p->share[i][k] - mean) * (p->share[i][k] - mean);
		for (i = 0; i < p->nr_runs; i++)
			p->share[i][k] = squares > 0 ? (p->share[i][k] - mean) / sqrt(squares) : 0;
	}
	make_sums(p);
}

/* Return: chi-square / degrees of freedom of one source's runs; independent samples have 1. */
static double overdispersion(const struct table *t, const uint32_t *source, uint32_t of)
{
	double column[MAX_CATEGORIES] = {0}, row[MAX_RUNS] = {0}, all = 0, chi = 0, expected;
	uint32_t nr_runs = 0, nr_categories = 0, i, k;

	for (i = 0; i < t->nr_runs; i++) {
		if (source[i] != of)
			continue;
		nr_runs++;
		for (k = 0; k < t->nr_categories; k++) {
			column[k] += t->count[i][k];
			row[i] += t->count[i][k];
			all += t->count[i][k];
		}
	}
	for (k = 0; k < t->nr_categories; k++) {
		if (column[k] < MIN_COUNT * nr_runs)
			continue;
		nr_categories++;
		for (i = 0; i < t->nr_runs; i++) {
			if (source[i] != of)
				continue;
			expected = column[k] * row[i] / all;
			chi += (t->count[i][k] - expected) * (t->count[i][k] - expected) / expected;
		}
	}
	return nr_runs > 1 && nr_categories > 1 ? chi / ((nr_runs - 1) * (nr_categories - 1)) : NAN;
}

static double samples(const struct table *t, const uint32_t *source, uint32_t of)
{
	double all = 0;
	uint32_t i, k;

	for (i = 0; i < t->nr_runs; i++)
		for (k = 0; source[i] == of && k < t->nr_categories; k++)
			all += t->count[i][k];
	return all;
}

/* Moves samples of one source from the largest category to the second. */
static void skew(struct table *t, const uint32_t *source, uint32_t of)
{
	double column[MAX_CATEGORIES] = {0}, total, moved;
	uint32_t first = 0, second = 1, i, k;

	for (i = 0; i < t->nr_runs; i++)
		for (k = 0; k < t->nr_categories; k++)
			column[k] += t->count[i][k];
	for (k = 1; k < t->nr_categories; k++)
		first = column[k] > column[first] ? k : first;
	second = !first;
	for (k = 0; k < t->nr_categories; k++)
		second = k != first && column[k] > column[second] ? k : second;
	for (i = 0; i < t->nr_runs; i++) {
		if (source[i] != of)
			continue;
		total = 0;
		for (k = 0; k < t->nr_categories; k++)
			total += t->count[i][k];
		moved = fmin(floor(total * SKEW), t->count[i][first]);
		t->count[i][first] -= moved;
		t->count[i][second] += moved;
	}
}

/* ---- the measured table -------------------------------------------------------------------- */

static int name_of(char (*names)[32], uint32_t *nr, uint32_t max, const char *name)
{
	uint32_t i;

	for (i = 0; i < *nr; i++)
		if (!strcmp(names[i], name))
			return i;
	if (*nr == max)
		return -1;
	snprintf(names[*nr], 32, "%s", name);
	return (*nr)++;
}

static int category_of(struct table *t, const char *name)
{
	uint32_t k;

	for (k = 0; k < t->nr_categories; k++)
		if (!strcmp(t->name[k], name))
			return k;
	if (t->nr_categories == MAX_CATEGORIES)
		return MAX_CATEGORIES - 1; /* a category that comes this late is small */
	snprintf(t->name[k], sizeof(t->name[k]), "%s", name);
	return t->nr_categories++;
}

static bool read_input(const char *path, struct input *in)
{
	char source[32], level[32], name[128];
	FILE *f = fopen(path, "r");
	double count;
	uint32_t run;
	int s, l, n;

	if (!f)
		return false;
	while ((n = fscanf(f, "%u %31s %31s %127s %lf", &run, source, level, name, &count)) == 5) {
		s = name_of(in->sources, &in->nr_sources, MAX_SOURCES, source);
		l = name_of(in->levels, &in->nr_levels, MAX_LEVELS, level);
		if (s < 0 || l < 0 || run >= MAX_RUNS)
			break;
		in->source[run] = s;
		if (run >= in->nr_runs)
			in->nr_runs = run + 1;
		in->tables[l].count[run][category_of(&in->tables[l], name)] += count;
	}
	fclose(f);
	return n == EOF && in->nr_runs;
}

static int test_pair(struct input *in, uint32_t l, uint32_t a, uint32_t b, uint64_t nr)
{
	static struct pair p;
	static struct table skewed;
	const struct table *t = &in->tables[l];
	uint64_t at, seen;

	make_pair(t, in->source, a, b, &p);
	at = first_as_large(&p, nr);
	skewed = *t;
	skew(&skewed, in->source, b);
	make_pair(&skewed, in->source, a, b, &p);
	seen = first_as_large(&p, nr);
	printf("%s, %s and %s: %u categories, %u and %u runs: %s; with %g %% moved: %s\n",
	       in->levels[l], in->sources[a], in->sources[b], p.nr_categories, p.nr_first,
	       p.nr_runs - p.nr_first, at ? "the same" : "FAIL: not the same", SKEW * 100,
	       seen ? "that is NOT seen" : "that is seen");
	return !at ? 1 : seen ? 3 : 0;
}

static int test_all(struct input *in, uint64_t alarms)
{
	uint32_t nr_pairs = in->nr_sources * (in->nr_sources - 1) / 2, a, b, l, i, nr;
	uint64_t lotteries = nr_pairs * in->nr_levels * alarms;
	int worst = 0, is;

	for (l = 0; l < in->nr_levels; l++)
		in->tables[l].nr_runs = in->nr_runs;
	for (a = 0; a < in->nr_sources; a++) {
		for (nr = i = 0; i < in->nr_runs; i++)
			nr += in->source[i] == a;
		if (nr < MIN_RUNS || nr_pairs == 0) {
			fprintf(stderr, "same_profile: %u runs of %s, %u sources: too few\n", nr,
				in->sources[a], in->nr_sources);
			return 2;
		}
		printf("%s: %.0f samples a run; chi-square by degree of freedom between its runs:",
		       in->sources[a], samples(&in->tables[0], in->source, a) / nr);
		for (l = 0; l < in->nr_levels; l++)
			printf(" %s %.2f", in->levels[l],
			       overdispersion(&in->tables[l], in->source, a));
		printf("\n");
	}
	for (l = 0; l < in->nr_levels; l++)
		for (a = 0; a < in->nr_sources; a++)
			for (b = a + 1; b < in->nr_sources; b++) {
				is = test_pair(in, l, a, b, lotteries);
				worst = is == 1 || !worst ? is : worst;
			}
	return worst;
}

/* ---- self-test ------------------------------------------------------------------------------ */

#define TRIALS	    4000
#define TRIAL_RUNS  32
#define TRIAL_LEVEL 50 /* one false alarm in this many */

/*
 * Makes runs of two sources that differ only in how evenly they sample, on a machine that changes
 * from run to run and drifts. The shares change by far more than sampling alone would cause.
 */
static void invent(struct table *t, uint32_t *source)
{
	static const double weight[] = {30, 20, 15, 10, 8, 6, 4, 3, 2, 1, 0.5, 0.5};
	double cut[12], total, drift = 0, at;
	uint32_t i, j, k, n;

	memset(t, 0, sizeof(*t));
	t->nr_runs = TRIAL_RUNS;
	t->nr_categories = 12;
	for (i = 0; i < TRIAL_RUNS; i++)
		source[i] = i < TRIAL_RUNS / 2;
	for (i = TRIAL_RUNS - 1; i > 0; i--) {
		j = draw_below(i + 1);
		n = source[i];
		source[i] = source[j];
		source[j] = n;
	}
	for (i = 0; i < TRIAL_RUNS; i++) {
		drift += draw_unit() - 0.5;
		total = 0;
		for (k = 0; k < 12; k++) {
			total += weight[k] * (1 + 0.1 * draw_unit() + (k == 3 ? 0.2 * drift : 0));
			cut[k] = total;
		}
		n = 500;
		for (j = 0; j < n; j++) {
			/* Every other sample of the second source is evenly spaced. */
			at = total * (source[i] && j % 2 ? (j + draw_unit()) / n : draw_unit());
			for (k = 0; k < 11 && at >= cut[k]; k++)
				;
			t->count[i][k]++;
		}
	}
}

static int self_test(void)
{
	static struct table t;
	static struct pair p;
	uint32_t source[MAX_RUNS], alarms = 0, i;
	double mean = (double)TRIALS / TRIAL_LEVEL;

	for (i = 0; i < TRIALS; i++) {
		invent(&t, source);
		make_pair(&t, source, 0, 1, &p);
		alarms += !first_as_large(&p, TRIAL_LEVEL - 1);
	}
	printf("%u false alarms in %u trials, %.0f expected\n", alarms, TRIALS, mean);
	/* The random numbers are always the same, so the result does not depend on luck. */
	return fabs(alarms - mean) > 3 * sqrt(mean);
}

int main(int argc, char **argv)
{
	uint64_t alarms = argc == 3 ? strtoul(argv[2], NULL, 10) : ALARMS;
	static struct input in;

	if (argc == 2 && !strcmp(argv[1], "--self-test"))
		return self_test();
	if (argc < 2 || argc > 3 || !alarms || !read_input(argv[1], &in)) {
		fprintf(stderr, "usage: same_profile TABLE [ALARMS] | --self-test\n");
		return 2;
	}
	return test_all(&in, alarms);
}
