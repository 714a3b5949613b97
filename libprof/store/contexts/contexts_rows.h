// SPDX-License-Identifier: Apache-2.0
/* contexts_rows - single rows of the tables of trees. Called by fleet/, which sends and replaces them. */
#ifndef MP_CONTEXTS_ROWS_H
#define MP_CONTEXTS_ROWS_H

#include "libprof/store/contexts/store_contexts.h"
#include "libprof/store/store_bucket.h"

/* The program's rows, without their trees, in order of days. Ownership: free(*@out). */
int mp_contexts_list_rows(struct mp_store *store, enum mp_context_table table, int64_t module,
			  struct mp_bucket **out, size_t *nr, struct mp_err *err);
/* Adds the tree of @row to @tree. */
int mp_contexts_read_row(struct mp_store *store, enum mp_context_table table,
			 const struct mp_bucket *row, struct mp_context_tree *tree,
			 struct mp_err *err);
/* Writes @tree, which may be folded, in place of @row's; a tree without samples: removes the row. */
int mp_contexts_replace_row(struct mp_store *store, enum mp_context_table table, int64_t module,
			    const struct mp_bucket *row, struct mp_context_tree *tree,
			    struct mp_err *err);
/* Return: the most bytes, and the most nodes, that a tree takes. */
size_t mp_contexts_bytes_max(enum mp_context_table table);
uint32_t mp_contexts_nodes_max(enum mp_context_table table);

#endif
