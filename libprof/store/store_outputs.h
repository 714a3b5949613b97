// SPDX-License-Identifier: Apache-2.0
/*
 * store_outputs - lists the files that are outputs of Morph, and the original of each.
 * morph-optimize adds the outputs that it verified; morphd adds those that it had verified.
 * A collector trusts the map note of a listed file without reading the original. The list
 * is only as trustworthy as the users who may write the database. mp_store_merge() does not
 * copy it, since a merged database may come from a stranger.
 */
#ifndef MP_STORE_OUTPUTS_H
#define MP_STORE_OUTPUTS_H

#include "libprof/store/store.h"

struct mp_output {
	struct mp_id id; /* its text hash covers the code and the map note */
	struct mp_id original;
	uint64_t paths_hash; /* mp_path_table_hash() of its path table; 0: none */
};

/* Adds @output, or replaces the entry with the same id. */
int mp_store_put_output(struct mp_store *store, const struct mp_output *output, struct mp_err *err);
/* *@has: true if exactly this output is in the list. Return: 0 or -errno. */
int mp_store_has_output(struct mp_store *store, const struct mp_output *output, bool *has,
			struct mp_err *err);

#endif
