// SPDX-License-Identifier: Apache-2.0
/*
 * diff_period - parses periods of days, as users write them. Called by "morph-stats diff".
 */
#ifndef MD_DIFF_PERIOD_H
#define MD_DIFF_PERIOD_H

#include "libprof/store/store_span.h"

#define MD_PERIOD_ALL ((struct mp_span){.first_day = 0, .last_day = INT64_MAX})

/*
 * md_period_parse - "WHEN..WHEN", "WHEN.." or "..WHEN": from the day of the first WHEN to the
 * day before the second. mp_since_parse() defines WHEN. Return: 0, -EINVAL: not a period, or an
 * empty one.
 */
int md_period_parse(const char *text, int64_t now_s, struct mp_span *out);
/* Gives all days before @span, or all after it. Return: 0, -EINVAL: there are none. */
int md_period_before(const struct mp_span *span, struct mp_span *out);
int md_period_behind(const struct mp_span *span, struct mp_span *out);

#endif
