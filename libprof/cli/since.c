// SPDX-License-Identifier: Apache-2.0
/* since - parses the notations for a point in time; see since.h. */
#include "libprof/cli/since.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t unit_seconds(char unit)
{
	switch (unit) {
	case 's': return 1;
	case 'm': return 60;
	case 'h': return 3600;
	case 'd': return 86400;
	case 'w': return 7 * 86400;
	default: return 0;
	}
}

/* "3d": that long before @now_s. */
static int parse_span(const char *text, int64_t now_s, int64_t *since_s)
{
	int64_t unit, span;
	long long number;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	number = strtoll(text, &end, 10);
	unit = end[0] && !end[1] ? unit_seconds(end[0]) : 0;
	if (errno || !unit || __builtin_mul_overflow(number, unit, &span))
		return -EINVAL;
	/*
	 * Before 1970 there are no samples, so 1 means all of them; 0 would mean that the
	 * user gave no time.
	 */
	*since_s = span < now_s ? now_s - span : 1;
	return 0;
}

static int parse_date(const char *text, int64_t *since_s)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S",
					      "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct tm tm = {.tm_isdst = -1}, check;
		const char *end = strptime(text, formats[i], &tm);
		time_t t;

		if (!end || *end)
			continue;
		check = tm;
		t = mktime(&tm);
		/* mktime() would accept the 31st of June as the 1st of July. */
		if (t <= 0 || tm.tm_mday != check.tm_mday || tm.tm_mon != check.tm_mon)
			return -EINVAL;
		*since_s = t;
		return 0;
	}
	return -EINVAL;
}

static int64_t start_of_day(int64_t now_s, int days_back)
{
	time_t t = (time_t)now_s;
	struct tm tm;

	localtime_r(&t, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_mday -= days_back;
	tm.tm_isdst = -1;
	return mktime(&tm);
}

int mp_since_parse(const char *text, int64_t now_s, int64_t *since_s)
{
	long long number;
	char *end;

	if (!strcmp(text, "today") || !strcmp(text, "yesterday")) {
		*since_s = start_of_day(now_s, text[0] == 'y');
		return 0;
	}
	if (text[0] == '@' && isdigit((unsigned char)text[1])) {
		errno = 0;
		number = strtoll(text + 1, &end, 10);
		if (errno || *end || number <= 0)
			return -EINVAL;
		*since_s = number;
		return 0;
	}
	if (!parse_span(text, now_s, since_s))
		return 0;
	return parse_date(text, since_s);
}
