// SPDX-License-Identifier: Apache-2.0
/*
 * store_contexts - trees of calling contexts, one per program and day.
 *
 * The last seven days of a program are kept apart, older ones in one tree. A tree takes at most
 * MP_CONTEXTS_BYTES_MAX bytes in its packed form, and at most MP_CONTEXTS_NODES_MAX nodes, of 80 bytes each
 * while morphd adds to it: beyond that its smallest leaves are folded. The samples of all trees equal the
 * ledgers' `contexts`. Written by morphd's flush; read by morph-stats.
 *
 * A second table has the calls that programs sampled by a clock of calls, in the same form: paths of a
 * call and the function that it entered. A sample's time is the number of calls that it stands for.
 * The samples of all these trees equal the ledgers' `calls`.
 */
#ifndef MP_STORE_CONTEXTS_H
#define MP_STORE_CONTEXTS_H

#include "libprof/context/context_tree.h"
#include "libprof/store/store.h"

#define MP_CONTEXTS_BYTES_MAX (64u << 10)
#define MP_CONTEXTS_NODES_MAX 49152u
#define MP_CALLS_BYTES_MAX    (256u << 10)
#define MP_CALLS_NODES_MAX    131072u

enum mp_context_table {
	MP_CONTEXTS, /* of samples of time */
	MP_CALLS,    /* calls that a clock of calls sampled */
};

/*
 * Adds @tree to the tree of the program @module, a key, on the day of @when_s. The caller counts its
 * samples in the ledger, in the same transaction. Return: 0, -ENOENT (no such module), -EOVERFLOW.
 */
int mp_store_add_contexts(struct mp_store *store, enum mp_context_table table, int64_t module,
			  int64_t when_s, const struct mp_context_tree *tree, struct mp_err *err);
/*
 * Adds the trees of a program since @since_s (0: all) to @tree, which is initialised. Having none is
 * no error. Return: 0, -EBADMSG (damaged).
 */
int mp_store_read_contexts(struct mp_store *store, enum mp_context_table table, int64_t module,
			   int64_t since_s, struct mp_context_tree *tree, struct mp_err *err);

struct mp_context_program {
	int64_t module;
	uint64_t nr_samples; /* of the period */
};
/* Programs with trees since @since_s, most samples first. Ownership: free(*@out). */
int mp_store_list_contexts(struct mp_store *store, enum mp_context_table table, int64_t since_s,
			   struct mp_context_program **out, size_t *nr, struct mp_err *err);

/* For store_merge: adds the trees of @in's module @from to those of @out's module @to. */
int mp_store_merge_contexts(struct mp_store *out, enum mp_context_table table, int64_t to,
			    struct mp_store *in, int64_t from, uint64_t *nr_samples,
			    struct mp_err *err);
/* For store_check: every tree can be read and belongs to a module. *@total: samples of all. */
int mp_store_check_contexts(struct mp_store *store, enum mp_context_table table, uint64_t *total,
			    struct mp_err *err);

#endif
