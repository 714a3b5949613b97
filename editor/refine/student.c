// SPDX-License-Identifier: Apache-2.0
/*
 * student - tails of Student's t distribution, by the regularised incomplete beta function
 * (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.5.8 and 26.7.1).
 */
#include "editor/refine/student.h"

#include <math.h>

/*
 * TINY replaces a zero that would be divided by. A step that changes the value by less than ENOUGH,
 * a few units in the last place of a double, ends the fraction. It converges within 21 steps
 * for up to 22 degrees of freedom, and refining has 18 at most; TERMS_MAX only bounds the loop.
 */
#define TINY	  1e-300
#define ENOUGH	  1e-15
#define TERMS_MAX 500

/* No term of the fraction may be 0: the next one divides by it. */
static double not_zero(double x)
{
	return fabs(x) < TINY ? TINY : x;
}

/* The continued fraction of the incomplete beta function, from its first term on (Lentz's method). */
static double fraction(double a, double b, double x)
{
	double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), value = d;

	for (int m = 1; m <= TERMS_MAX; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double change;

		d = 1 / not_zero(1 + even * d);
		c = not_zero(1 + even / c);
		value *= c * d;
		d = 1 / not_zero(1 + odd * d);
		c = not_zero(1 + odd / c);
		change = c * d;
		value *= change;
		if (fabs(change - 1) < ENOUGH)
			break;
	}
	return value;
}

static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	/* The fraction converges fast on the left of the mean. */
	if (x < (a + 1) / (a + b + 2))
		return front * fraction(a, b, x) / a;
	return 1 - front * fraction(b, a, 1 - x) / b;
}

double me_student_tail(double t, double df)
{
	double half = incomplete_beta(df / 2, 0.5, df / (df + t * t)) / 2;

	return t >= 0 ? half : 1 - half;
}
