// SPDX-License-Identifier: Apache-2.0
/*
 * store_copies - samples of outputs by the addresses of their own code.
 *
 * A sample of an output counts for its original's address (store.h). These counts tell
 * besides which copy it was taken in. They are evidence like edges: no ledger contains them,
 * and a profile does not need them. Only samples of outputs whose map is believed are here.
 * Days are kept and folded as those of counts. Written by morphd's flush; read by
 * morph-stats and by the editor's refine/.
 */
#ifndef MP_STORE_COPIES_H
#define MP_STORE_COPIES_H

#include "libprof/store/store.h"

struct mp_copy_count {
	uint64_t vaddr;	   /* link-time address in the output */
	uint64_t original; /* its original's address; the same in code that was not moved */
	uint64_t count;
};

/*
 * Adds @counts (strictly ascending vaddr) of the module @output, made of @original, to the day
 * that holds @when_s. Return: 0, -ENOENT (no such module), -EINVAL (not ascending).
 */
int mp_store_add_copies(struct mp_store *store, int64_t output, int64_t original, int64_t when_s,
			const struct mp_copy_count *counts, size_t nr, struct mp_err *err);
/*
 * Counts of @output since @since_s (0: all), ascending vaddr. Having none is no error: *@nr 0,
 * *@out NULL. Ownership: free(*@out). Return: 0, -ENOENT (no such module).
 */
int mp_store_read_copies(struct mp_store *store, int64_t output, int64_t since_s,
			 struct mp_copy_count **out, size_t *nr, struct mp_err *err);

struct mp_copied {
	int64_t output, original; /* keys of modules */
};
/* All outputs with such samples, by key. Ownership: free(*@out). */
int mp_store_list_copied(struct mp_store *store, struct mp_copied **out, size_t *nr,
			 struct mp_err *err);

/*
 * For store_merge: adds the samples of @in's module @from to those of @out's module @to, made of
 * @original.
 */
int mp_store_merge_copies(struct mp_store *out, int64_t to, int64_t original, struct mp_store *in,
			  int64_t from, struct mp_err *err);
/* For store_check: each output and its original are modules, and no samples lack them. */
int mp_store_check_copied(struct mp_store *store, struct mp_err *err);

#endif
