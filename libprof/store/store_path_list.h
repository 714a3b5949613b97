// SPDX-License-Identifier: Apache-2.0
/*
 * store_path_list - paths of the store in memory: rows of any buckets, joined and sorted at the
 * end. Called by store_paths.
 */
#ifndef MP_STORE_PATH_LIST_H
#define MP_STORE_PATH_LIST_H

#include "libprof/note/path_key.h"
#include "libprof/store/store_private.h"

/* Rows in memory. Keys are in @bytes; mp_path_list_point() sets the addresses in @paths at the end. */
struct mp_path_list {
	struct mp_path_count *paths;
	size_t nr, max;
	uint8_t *bytes;
	size_t nr_bytes, max_bytes;
};

int mp_path_list_add(struct mp_path_list *list, const uint8_t *key, uint32_t size, uint64_t count,
		     struct mp_err *err);
/* Sets the keys' addresses; to be called after the last mp_path_list_add(). */
void mp_path_list_point(struct mp_path_list *list);
/* Order of the keys' bytes. */
int mp_path_compare_keys(const void *a, const void *b);
/* Sorts and joins equal keys, and returns everything in one allocation. */
int mp_path_list_finish(struct mp_store *store, struct mp_path_list *list,
			struct mp_path_count **out, size_t *nr, struct mp_err *err);
void mp_path_list_fini(struct mp_path_list *list);

#endif
