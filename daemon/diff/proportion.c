// SPDX-License-Identifier: Apache-2.0
/*
 * proportion - tests of shares; see proportion.h. Decides when the normal approximation is good
 * enough.
 */
#include "daemon/diff/proportion.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define EXPECTED_MIN 10.0
#define P_MIN	     1e-20
/* Rounding must not put equally likely tables on different sides of the limit. */
#define SLACK (1 + 1e-7)

static double clamp(double p)
{
	return p < P_MIN ? P_MIN : p > 1 ? 1 : p;
}

/*
 * The hypergeometric distribution: k of n1 + n2 samples are of interest, i of them among the
 * first n1. Walk from the peak outward with weights relative to the peak, so that nothing
 * overflows. Weights beyond the end of the walk are negligible.
 */
struct walk {
	double n1, n2, k;
	double observed; /* i of the observed table */
	double limit;	 /* weight of the observed table */
	double sum, tail;
};

/* Return: weight of i + 1 divided by the weight of i. */
static double ratio_up(const struct walk *w, double i)
{
	return (w->k - i) * (w->n1 - i) / ((i + 1) * (w->n2 - w->k + i + 1));
}

static void take(struct walk *w, double weight)
{
	w->sum += weight;
	if (weight <= w->limit * SLACK)
		w->tail += weight;
}

static double fisher(double x1, double n1, double x2, double n2)
{
	/* Use the smallest cell of the table, for precision. */
	if (n1 > n2)
		return fisher(x2, n2, x1, n1);
	if (x1 + x2 > (n1 - x1) + (n2 - x2))
		return fisher(n1 - x1, n1, n2 - x2, n2);

	struct walk w = {.n1 = n1, .n2 = n2, .k = x1 + x2, .observed = x1, .limit = 1};
	double low = fmax(0, w.k - n2), high = fmin(w.k, n1);
	double peak = fmin(fmax(floor((n1 + 1) * (w.k + 1) / (n1 + n2 + 2)), low), high);
	double weight = 1;

	for (double i = peak; i < w.observed && weight > 0; i++)
		weight *= ratio_up(&w, i);
	for (double i = peak; i > w.observed && weight > 0; i--)
		weight /= ratio_up(&w, i - 1);
	w.limit = weight;
	take(&w, 1);
	weight = 1;
	for (double i = peak; i < high && weight > P_MIN * 1e-3; i++) {
		weight *= ratio_up(&w, i);
		take(&w, weight);
	}
	weight = 1;
	for (double i = peak; i > low && weight > P_MIN * 1e-3; i--) {
		weight /= ratio_up(&w, i - 1);
		take(&w, weight);
	}
	return w.tail / w.sum;
}

double md_proportion_p(uint64_t x1, uint64_t n1, uint64_t x2, uint64_t n2)
{
	double a = (double)x1, n = (double)n1, b = (double)x2, m = (double)n2;
	double all = n + m, pooled = (a + b) / all, smallest;

	if (!n1 || !n2 || !(x1 + x2) || pooled >= 1)
		return 1;
	smallest = fmin(n, m) * fmin(pooled, 1 - pooled);
	if (smallest < EXPECTED_MIN)
		return clamp(fisher(a, n, b, m));
	return clamp(erfc(fabs(a / n - b / m) / sqrt(pooled * (1 - pooled) * (1 / n + 1 / m)) /
			  sqrt(2)));
}

struct ranked {
	double p;
	size_t index;
};

static int compare(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->p != y->p)
		return x->p < y->p ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

int md_holm_adjust(const double *p, size_t nr, double *adjusted)
{
	struct ranked *order = malloc((nr + 1) * sizeof(*order));
	double highest = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		order[i] = (struct ranked){p[i], i};
	if (nr)
		qsort(order, nr, sizeof(*order), compare);
	for (size_t i = 0; i < nr; i++) {
		highest = fmax(highest, fmin(1, order[i].p * (double)(nr - i)));
		adjusted[order[i].index] = highest;
	}
	free(order);
	return 0;
}
