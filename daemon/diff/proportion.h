// SPDX-License-Identifier: Apache-2.0
/*
 * proportion - tests whether two shares of samples differ by more than chance. Called by
 * "morph-stats diff".
 */
#ifndef MD_PROPORTION_H
#define MD_PROPORTION_H

#include <stddef.h>
#include <stdint.h>

/*
 * md_proportion_p - probability that two counts of one and the same share differ at least as
 * much as @x1 of @n1 and @x2 of @n2 (two-sided). Uses the normal approximation if each cell is
 * expected to hold 10 or more, else Fisher's exact test. Never below 1e-20: smaller tails are
 * not accurate.
 */
double md_proportion_p(uint64_t x1, uint64_t n1, uint64_t x2, uint64_t n2);

/*
 * md_holm_adjust - Holm's correction for @nr tests. @adjusted[i] below 0.05: @p[i] would be so
 * low by chance, in any of the tests, at most once in twenty times. Return: 0, -ENOMEM.
 */
int md_holm_adjust(const double *p, size_t nr, double *adjusted);

#endif
