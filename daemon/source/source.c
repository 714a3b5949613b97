// SPDX-License-Identifier: Apache-2.0
/* source - the list of sources; see source.h. */
#include "daemon/source/source.h"

#include <stdio.h>
#include <string.h>

static const struct md_source_ops *const sources[] = {
	&md_source_kmod,
	&md_source_bpf,
	&md_source_perf,
	&md_source_replay,
};

const struct md_source_ops *md_source_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (!strcmp(sources[i]->name, name))
			return sources[i];
	return NULL;
}

void md_source_describe(const struct md_source *source, struct md_recfile_info *info)
{
	struct md_recfile_info own;

	source->ops->describe(source, &own);
	*info = own;
	if (source->choice[0])
		snprintf(info->why, sizeof(info->why), "%s; %.118s", source->choice, own.why);
}
