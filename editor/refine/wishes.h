// SPDX-License-Identifier: Apache-2.0
/*
 * wishes - the adjustments of one version, as a list and as text: "0x401136:loop=0 0x4012c0:stay".
 * Called by refine/ and by the command train.
 */
#ifndef ME_WISHES_H
#define ME_WISHES_H

#include <stdbool.h>
#include <stddef.h>

#include "editor/layout/adjust.h"
#include "libprof/base/err.h"

struct me_wishes {
	struct me_adjust *list;
	size_t nr;
};

/* Return: 0, -ENOMEM. Ownership: me_wishes_fini(). */
int me_wishes_add(struct me_wishes *wishes, const struct me_adjust *wish);
int me_wishes_copy(struct me_wishes *to, const struct me_wishes *from);
/* Replaces all wishes for the function of @wish by @wish. */
int me_wishes_replace(struct me_wishes *wishes, const struct me_adjust *wish);
void me_wishes_fini(struct me_wishes *wishes);

/* Ownership: free(). Return: NULL: no memory. */
char *me_wishes_format(const struct me_wishes *wishes);
/* Return: 0, -EINVAL: not such a text, -ENOMEM. @out is empty after an error. */
int me_wishes_parse(const char *text, struct me_wishes *out, struct mp_err *err);

#endif
