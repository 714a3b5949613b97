// SPDX-License-Identifier: Apache-2.0
/*
 * since - converts notations for a point in time to unix seconds. Called by the programs
 * that take --since.
 */
#ifndef MP_SINCE_H
#define MP_SINCE_H

#include <stdint.h>

/* For messages: the notations of mp_since_parse(). */
#define MP_SINCE_FORMATS                                                                           \
	"give 90s, 10m, 2h, 3d or 1w (so long ago), today, yesterday, 2026-11-20, "                \
	"'2026-11-20 14:00', or @SECONDS"

/*
 * mp_since_parse - reads "90s", "10m", "2h", "3d", "1w" (before @now_s), "2026-11-20",
 * "2026-11-20 14:00[:05]", "@SECONDS", "today" or "yesterday", in local time.
 * Return: 0, -EINVAL.
 */
int mp_since_parse(const char *text, int64_t now_s, int64_t *since_s);

#endif
