// SPDX-License-Identifier: Apache-2.0
/* stats_filter - a module matches by its path, its name or its build-id. */
#include "daemon/code/stats_filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *md_stats_format_id(const struct mp_id *id, char buf[static MD_ID_BYTES])
{
	if (id->build_id_len)
		mp_id_format_build_id(id, buf);
	else
		snprintf(buf, MD_ID_BYTES, "text:%016llx", (unsigned long long)id->text_hash);
	return buf;
}

/* Resolves symbolic links in a path that the user typed, since paths in the store have none. */
static bool leads_to(const char *path, const char *want)
{
	char *real = strchr(path, '/') ? realpath(path, NULL) : NULL;
	bool same = real && !strcmp(real, want);

	free(real);
	return same;
}

bool md_stats_filter_matches(const struct md_stats_filter *filter, const struct mp_module *module)
{
	char id[80];

	if (filter->module && strcmp(filter->module, module->path)) {
		if (strcmp(filter->module, basename(module->path)) &&
		    !leads_to(filter->module, module->path))
			return false;
	}
	if (filter->build_id) {
		md_stats_format_id(&module->id, id);
		if (strncasecmp(id, filter->build_id, strlen(filter->build_id)))
			return false;
	}
	return true;
}
