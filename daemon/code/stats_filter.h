// SPDX-License-Identifier: Apache-2.0
/* stats_filter - selects the modules that a command handles, and prints their identity. */
#ifndef MD_STATS_FILTER_H
#define MD_STATS_FILTER_H

#include <stdbool.h>

#include "libprof/elf/id.h"
#include "libprof/store/store.h"

/* Selects the modules that a command handles. */
struct md_stats_filter {
	const char *module;   /* path, or the part after its last slash; NULL: any */
	const char *build_id; /* prefix in hex; NULL: any */
	const char *binary;   /* file to use instead of the module's last path */
};
bool md_stats_filter_matches(const struct md_stats_filter *filter, const struct mp_module *module);
#define MD_ID_BYTES 80
/* Return: text of the build-id; "text:HASH" with the text hash if there is none. */
const char *md_stats_format_id(const struct mp_id *id, char buf[static MD_ID_BYTES]);

#endif
