// SPDX-License-Identifier: Apache-2.0
/* object_left - the list of what was left as it was, and why. */
#include <errno.h>
#include <string.h>

#include "editor/object/object_private.h"
#include "libprof/base/grow.h"

int me_object_leave(struct me_object_report *report, const char *name, const char *why, bool moved)
{
	struct me_object_left *left;

	if (mp_grow(report->left, report->cap_left, report->nr_left + 1))
		return -ENOMEM;
	left = &report->left[report->nr_left];
	*left = (struct me_object_left){.member = strdup(report->member),
					.name = name ? strdup(name) : NULL,
					.why = strdup(why),
					.moved = moved};
	report->nr_left++;
	return left->member && left->why && (left->name || !name) ? 0 : -ENOMEM;
}
