// SPDX-License-Identifier: Apache-2.0
/*
 * worth_prior - what saved taken branches were worth in time, program by program, on the machine
 * of Documentation/lab/results.md. Written by scripts/report/worth-prior; do not edit. Included by
 * worth.c only.
 */
#ifndef MD_WORTH_PRIOR_H
#define MD_WORTH_PRIOR_H

#include "daemon/machine/worth.h"

/* clang-format off */
/* Saved taken branches per 1,000 instructions, and percent of time. */
static const struct md_effect_point md_worth_prior[] = {
	{30.11, 2.06}, /* speedtest1 */
	{44.23, 7.06}, /* lua */
	{11.40, 0.89}, /* gzip */
	{9.59, 1.67}, /* sort */
	{32.50, 4.21}, /* bash */
	{35.54, 4.67}, /* gawk */
	{42.46, 10.23}, /* tclsh */
	{11.27, 2.15}, /* zstd */
	{38.66, 3.94}, /* troff */
	{29.86, 3.10}, /* tcc */
	{0.51, 0.40}, /* php */
};
/* clang-format on */
#define MD_NR_WORTH_PRIOR (sizeof(md_worth_prior) / sizeof(md_worth_prior[0]))

/* Root mean square of the errors of 11 predictions, percent of the taken branches. */
#define MD_WORTH_PREDICTED_SD 8.6

#endif
