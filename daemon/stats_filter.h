// SPDX-License-Identifier: Apache-2.0
/* stats_filter - which modules a command of morph-stats is about, and how their identity is shown. */
#ifndef MD_STATS_FILTER_H
#define MD_STATS_FILTER_H

#include <stdbool.h>

#include "libprof/id.h"
#include "libprof/store.h"

/* Which modules a command is about. */
struct md_stats_filter {
	const char *module;   /* path, or the part after its last slash; NULL: any */
	const char *build_id; /* prefix in hex; NULL: any */
	const char *binary;   /* FILE to use instead of the module's last path */
};
bool md_stats_filter_matches(const struct md_stats_filter *filter, const struct mp_module *module);
/* Text of a build-id, or the text hash as "text:HASH" where there is none. @buf holds 80. */
const char *md_stats_format_id(const struct mp_id *id, char *buf);

#endif
