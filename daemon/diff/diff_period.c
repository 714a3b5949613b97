// SPDX-License-Identifier: Apache-2.0
/*
 * diff_period - parses periods; see diff_period.h. Decides that a period ends before the day of
 * its second WHEN, so that ..X and X.. share no day.
 */
#include "daemon/diff/diff_period.h"

#include <errno.h>
#include <string.h>

#include "libprof/cli/since.h"

static int parse_day(const char *text, size_t len, int64_t now_s, int64_t *day)
{
	char buf[64];
	int64_t when_s;

	if (len >= sizeof(buf))
		return -EINVAL;
	memcpy(buf, text, len);
	buf[len] = '\0';
	if (mp_since_parse(buf, now_s, &when_s))
		return -EINVAL;
	*day = when_s / MP_SECONDS_PER_DAY;
	return 0;
}

int md_period_parse(const char *text, int64_t now_s, struct mp_span *out)
{
	const char *dots = strstr(text, "..");
	struct mp_span span = MD_PERIOD_ALL;
	int64_t end;

	if (!dots || (dots == text && !dots[2]))
		return -EINVAL;
	if (dots > text && parse_day(text, (size_t)(dots - text), now_s, &span.first_day))
		return -EINVAL;
	if (dots[2]) {
		if (parse_day(dots + 2, strlen(dots + 2), now_s, &end))
			return -EINVAL;
		span.last_day = end - 1;
	}
	if (span.first_day > span.last_day)
		return -EINVAL;
	*out = span;
	return 0;
}

int md_period_before(const struct mp_span *span, struct mp_span *out)
{
	if (span->first_day <= 0)
		return -EINVAL;
	*out = (struct mp_span){.first_day = 0, .last_day = span->first_day - 1};
	return 0;
}

int md_period_behind(const struct mp_span *span, struct mp_span *out)
{
	if (span->last_day == INT64_MAX)
		return -EINVAL;
	*out = (struct mp_span){.first_day = span->last_day + 1, .last_day = INT64_MAX};
	return 0;
}
