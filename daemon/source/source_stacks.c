// SPDX-License-Identifier: Apache-2.0
/* source_stacks - may a source take stacks at this rate? */
#include "daemon/source/source.h"

bool md_source_wants_stacks(enum md_stacks stacks, uint32_t rate_hz, uint32_t cost_ns)
{
	if (stacks != MD_STACKS_AUTO)
		return stacks == MD_STACKS_YES;
	return rate_hz && (uint64_t)rate_hz * cost_ns / 1000 <= MD_STACKS_SHARE_PPM;
}
