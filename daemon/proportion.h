// SPDX-License-Identifier: Apache-2.0
/*
 * proportion - is a share of samples really another one, or only counted differently by chance?
 */
#ifndef MD_PROPORTION_H
#define MD_PROPORTION_H

#include <stddef.h>
#include <stdint.h>

/*
 * md_proportion_p - how likely two counts of one and the same share differ at least as much as
 * @x1 of @n1 and @x2 of @n2 do (two-sided). The normal approximation where each cell is expected
 * to hold 10 or more, else Fisher's exact test. Never below 1e-20: tails are not known that well.
 */
double md_proportion_p(uint64_t x1, uint64_t n1, uint64_t x2, uint64_t n2);

/*
 * md_holm_adjust - Holm's correction: @adjusted[i] below 0.05 means that @p[i] would be so low by
 * chance, in any of the @nr tests, at most one time in twenty. Return: 0, -ENOMEM.
 */
int md_holm_adjust(const double *p, size_t nr, double *adjusted);

#endif
