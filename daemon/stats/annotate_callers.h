// SPDX-License-Identifier: Apache-2.0
/* annotate_callers - who called the annotated function, by stacks. Called by stats_annotate. */
#ifndef MD_ANNOTATE_CALLERS_H
#define MD_ANNOTATE_CALLERS_H

#include "daemon/annotate/annotate_print.h"
#include "libprof/store/store.h"

/*
 * md_annotate_callers - the callers of @function in @module, most samples first. Without stacks in the store, none.
 * Return: 0, -errno. Ownership: md_annotate_callers_free(@out, *@nr).
 */
int md_annotate_callers(struct mp_store *store, const char *function, const struct mp_id *module,
			int64_t since_s, struct md_ann_caller **out, size_t *nr,
			struct mp_err *err);
void md_annotate_callers_free(struct md_ann_caller *callers, size_t nr);

#endif
