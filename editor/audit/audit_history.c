// SPDX-License-Identifier: Apache-2.0
/* audit_history - repeats the test pair by pair, and keeps what it said. */
#include "editor/audit/audit_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int me_history_make(const struct mp_seq *seq, struct me_history *history)
{
	size_t step = (seq->nr + ME_HISTORY_MAX - 1) / ME_HISTORY_MAX, nr;
	struct mp_seq again;
	int ret = 0;

	memset(history, 0, sizeof(*history));
	if (!seq->nr)
		return 0;
	history->points = calloc(ME_HISTORY_MAX + 1, sizeof(*history->points));
	if (!history->points)
		return -ENOMEM;
	mp_seq_init(&again, seq->alpha);
	for (nr = 1; !ret && nr <= seq->nr; nr++) {
		struct me_history_point *p = &history->points[history->nr];

		ret = mp_seq_add(&again, seq->d[nr - 1]);
		if (ret || (nr % step && nr != seq->nr))
			continue;
		p->nr = nr;
		p->estimate = mp_seq_estimate(&again);
		mp_seq_interval(&again, &p->lo, &p->hi);
		history->nr++;
	}
	mp_seq_fini(&again);
	return ret;
}

void me_history_fini(struct me_history *history)
{
	free(history->points);
	memset(history, 0, sizeof(*history));
}
