// SPDX-License-Identifier: Apache-2.0
/*
 * store_outputs - which files are outputs of Morph, and of which original. morph-optimize writes
 * down what it verified; morphd writes down what it had verified. Whoever collects believes a map
 * note of a file in this list without looking at the original.
 *
 * The list is as good as who may write the database. mp_store_merge() does not copy it: a database
 * that is merged may be a stranger's.
 */
#ifndef MP_STORE_OUTPUTS_H
#define MP_STORE_OUTPUTS_H

#include "libprof/store.h"

struct mp_output {
	struct mp_id id; /* its text hash covers the code and the map note */
	struct mp_id original;
	uint64_t paths_hash; /* mp_path_table_hash() of its table of paths; 0: none */
};

/* Add @output, or replace what is said of the same id. */
int mp_store_put_output(struct mp_store *store, const struct mp_output *output, struct mp_err *err);
/* *@has: whether exactly this output is in the list. Return: 0 or -errno. */
int mp_store_has_output(struct mp_store *store, const struct mp_output *output, bool *has,
			struct mp_err *err);

#endif
