// SPDX-License-Identifier: Apache-2.0
/*
 * store_paths - how many samples ended which way through a module's code.
 *
 * A path is named by addresses of the original (path_key), so that those of any numbering add up.
 * Like edges, paths are evidence beside the samples: each of these samples is among the counts too.
 * Days are kept and folded as those of counts are, in a share of the database of their own: a
 * megabyte and half of the module's text. Where one bucket alone has more, its rarest paths become shorter:
 * all but their last two blocks are left away, or even those but the last. No sample is lost by that.
 */
#ifndef MP_STORE_PATHS_H
#define MP_STORE_PATHS_H

#include "libprof/path_key.h"
#include "libprof/store.h"
#include "libprof/store_span.h"

/*
 * Add @paths, in any order, to the module's of the day of @when_s. Return: 0, -ENOENT no such
 * module, -EINVAL bytes that are no key.
 */
int mp_store_add_paths(struct mp_store *store, int64_t module, int64_t when_s,
		       const struct mp_path_count *paths, size_t nr, struct mp_err *err);
/*
 * Paths of a module since @since_s (0: all), in the order of their keys' bytes. None is no error:
 * *@nr 0, *@out NULL. Ownership: free(*@out), which the keys lie in. Return: 0, -ENOENT no such
 * module.
 */
int mp_store_read_paths(struct mp_store *store, int64_t module, int64_t since_s,
			struct mp_path_count **out, size_t *nr, struct mp_err *err);

/* As their namesakes in store_span.h. */
int mp_store_list_path_spans(struct mp_store *store, int64_t module, struct mp_span **out,
			     size_t *nr, struct mp_err *err);
int mp_store_read_path_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			    struct mp_path_count **out, size_t *nr, struct mp_err *err);
int mp_store_add_path_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			   const struct mp_path_count *paths, size_t nr, struct mp_err *err);

/* For mp_store_check(): every bucket is of a module and adds up, no path is of no bucket. */
int mp_store_check_paths(struct mp_store *store, uint64_t *total, struct mp_err *err);

#endif
