// SPDX-License-Identifier: Apache-2.0
/* way_evidence - ways of branches from the store into a profile; see way_evidence.h. */
#include "daemon/code/way_evidence.h"

#include <stdlib.h>

#include "libprof/infer/foreseen.h"
#include "libprof/store/store_ways.h"

int md_way_evidence_add(struct mp_store *store, int64_t module, int64_t since_s,
			const struct mp_cfg *cfg, struct mp_profile *profile, struct mp_err *err)
{
	struct mp_way_count *ways = NULL;
	size_t nr = 0;
	int r = mp_store_read_ways(store, module, since_s, &ways, &nr, err);

	if (!r && nr)
		r = mp_foreseen_add(cfg, ways, nr, profile, err);
	free(ways);
	return r;
}
