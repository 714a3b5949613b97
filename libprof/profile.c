// SPDX-License-Identifier: Apache-2.0
/*
 * profile - adds sample counts to the blocks that hold them, in one walk over both.
 */
#include "libprof/profile.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/cfg_private.h"

int mp_profile_build(const struct mp_cfg *cfg, const struct mp_ip_count *counts, size_t nr,
		     struct mp_profile **out, struct mp_err *err)
{
	const struct mp_cfg_index *index = cfg->private_data;
	struct mp_profile *profile = calloc(1, sizeof(*profile));
	size_t i = 0;

	*out = NULL;
	if (profile)
		profile->block_samples = calloc((size_t)cfg->nr_blocks + 1, sizeof(uint64_t));
	if (!profile || !profile->block_samples) {
		mp_profile_free(profile);
		return mp_err_set(err, ENOMEM, "profile: out of memory");
	}
	profile->nr_blocks = cfg->nr_blocks;
	for (uint32_t p = 0; p < index->nr_parts; p++) {
		const struct mp_part *part = &index->parts[p];

		for (uint32_t n = 0; n < part->nr_blocks; n++) {
			uint32_t block = part->first_block + n;
			uint64_t start = cfg->blocks[block].vaddr;

			for (; i < nr && counts[i].vaddr < start; i++)
				profile->nr_outside += counts[i].count;
			for (; i < nr && counts[i].vaddr - start < cfg->blocks[block].size; i++) {
				profile->block_samples[block] += counts[i].count;
				profile->nr_samples += counts[i].count;
			}
		}
	}
	for (; i < nr; i++)
		profile->nr_outside += counts[i].count;
	*out = profile;
	return 0;
}

void mp_profile_free(struct mp_profile *profile)
{
	if (!profile)
		return;
	free(profile->block_samples);
	free(profile);
}
