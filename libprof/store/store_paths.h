// SPDX-License-Identifier: Apache-2.0
/*
 * store_paths - counts how many samples ended each path through a module's code.
 *
 * A path is named by addresses of the original (path_key), so paths of all numberings add
 * up. Like edges, paths are evidence beside the samples: each sample with a path is also in
 * the counts.
 *
 * Days are kept and folded as those of counts, in a separate share of the database: a
 * megabyte and half of the module's text. If one bucket alone exceeds it, its rarest paths
 * are shortened to their last two blocks, or to the last one. No sample is lost.
 */
#ifndef MP_STORE_PATHS_H
#define MP_STORE_PATHS_H

#include "libprof/note/path_key.h"
#include "libprof/store/store.h"
#include "libprof/store/store_span.h"

/*
 * Adds @paths, in any order, to the module's paths of the day of @when_s.
 * Return: 0, -ENOENT (no such module), -EINVAL (bytes that are no key).
 */
int mp_store_add_paths(struct mp_store *store, int64_t module, int64_t when_s,
		       const struct mp_path_count *paths, size_t nr, struct mp_err *err);
/*
 * Paths of a module since @since_s (0: all), in the order of their keys' bytes. Having none
 * is no error: *@nr 0, *@out NULL. Ownership: free(*@out), which contains the keys. Return:
 * 0, -ENOENT (no such module).
 */
int mp_store_read_paths(struct mp_store *store, int64_t module, int64_t since_s,
			struct mp_path_count **out, size_t *nr, struct mp_err *err);

/* As the functions for counts in store_span.h. */
int mp_store_list_path_spans(struct mp_store *store, int64_t module, struct mp_span **out,
			     size_t *nr, struct mp_err *err);
int mp_store_read_path_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			    struct mp_path_count **out, size_t *nr, struct mp_err *err);
int mp_store_add_path_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			   const struct mp_path_count *paths, size_t nr, struct mp_err *err);

/*
 * Writes the key of @path's last @keep blocks, 2 or 1, into MP_PATH_KEY_MAX bytes, as the store does where
 * there are too many paths. Return: its size; 0: the path has no more blocks.
 */
uint32_t mp_path_shorten(const struct mp_path_count *path, uint32_t keep, uint8_t *key);

/*
 * For mp_store_check(): every bucket must have a module and correct sums, and every path a
 * bucket.
 */
int mp_store_check_paths(struct mp_store *store, uint64_t *total, struct mp_err *err);

#endif
