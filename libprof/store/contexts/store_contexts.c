// SPDX-License-Identifier: Apache-2.0
/* store_contexts - the table of trees of calling contexts; see store_contexts.h. */
#include "libprof/store/contexts/store_contexts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/context/context_codec.h"
#include "libprof/store/contexts/contexts_rows.h"
#include "libprof/store/store_bucket.h"

/* The statements of a table, and how large its rows may be. */
struct table {
	const char *list, *read, *delete, *add, *programs, *strays;
	enum mp_stmt first; /* MP_STMT_CONTEXT_LIST, or the same of the other table */
	size_t bytes_max;
	uint32_t nodes_max;
};

#define TABLE(name, stmt, max, nodes)                                                              \
	{                                                                                          \
		.list = "SELECT key, first_day, last_day, nr_samples, length(data), checksum"      \
			" FROM " name " WHERE module = ?1 ORDER BY first_day",                     \
		.read = "SELECT data FROM " name " WHERE key = ?1",                                \
		.delete = "DELETE FROM " name " WHERE key = ?1",                                   \
		.add = "INSERT INTO " name "(module, first_day, last_day, nr_samples, checksum,"   \
		       " data) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",                                    \
		.programs = "SELECT module, last_day, nr_samples FROM " name                       \
			    " ORDER BY module, first_day",                                         \
		.strays = "SELECT count(*) FROM " name " WHERE module NOT IN"                      \
			  " (SELECT key FROM module)",                                             \
		.first = (stmt), .bytes_max = (max), .nodes_max = (nodes)                          \
	}

static const struct table tables[] = {
	[MP_CONTEXTS] = TABLE("context", MP_STMT_CONTEXT_LIST, MP_CONTEXTS_BYTES_MAX,
			      MP_CONTEXTS_NODES_MAX),
	[MP_CALLS] = TABLE("call", MP_STMT_CALL_LIST, MP_CALLS_BYTES_MAX, MP_CALLS_NODES_MAX),
};

/* Statements of a table, behind its first one. */
enum {
	LIST,
	READ,
	DELETE,
	ADD,
	PROGRAMS
};

/* ---- rows ---------------------------------------------------------------------------------- */

/* The program's trees, without their bytes, in order of days. Ownership: free(*@out). */
static int list_rows(struct mp_store *store, const struct table *t, int64_t module,
		     struct mp_bucket **out, size_t *nr, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, t->first + LIST, t->list, &stmt, err);

	*out = NULL;
	*nr = 0;
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	return mp_buckets_read(store, stmt, out, nr, err);
}

static int decode(struct mp_store *store, const struct table *t, sqlite3_stmt *stmt,
		  const struct mp_bucket *row, struct mp_context_tree *out, struct mp_err *err)
{
	const uint8_t *bytes = sqlite3_column_blob(stmt, 0);
	size_t size = (size_t)sqlite3_column_bytes(stmt, 0);
	struct mp_err why;
	int r;

	if (!bytes || size > t->bytes_max || row->checksum != (uint32_t)XXH3_64bits(bytes, size))
		return mp_store_damaged(store, "calling contexts with a wrong checksum", err);
	r = mp_context_decode(bytes, size, out, &why);
	if (r == -EBADMSG)
		return mp_store_damaged(store, why.msg, err);
	if (r)
		return mp_err_set(err, -r, "%s", why.msg);
	if (out->nodes[0].total == row->total)
		return 0;
	mp_context_tree_fini(out);
	return mp_store_damaged(store, "calling contexts that do not add up", err);
}

static int add_tree(struct mp_store *store, struct mp_context_tree *to,
		    const struct mp_context_tree *from, struct mp_err *err)
{
	int r = mp_context_add_tree(to, 0, from, NULL, NULL);

	return r ? mp_err_set(err, -r, "%s: calling contexts: %s", store->path, strerror(-r)) : 0;
}

/* Adds the tree of @row to @tree. */
static int read_row(struct mp_store *store, const struct table *t, const struct mp_bucket *row,
		    struct mp_context_tree *tree, struct mp_err *err)
{
	struct mp_context_tree read;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, t->first + READ, t->read, &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, row->key);
	r = mp_store_step(store, stmt, "read", err);
	if (r <= 0)
		return r ? r : mp_store_damaged(store, "calling contexts that are gone", err);
	r = decode(store, t, stmt, row, &read, err);
	sqlite3_reset(stmt);
	if (r)
		return r;
	/* The first tree is taken as it is: most programs have one that matters. */
	if (tree->nodes[0].total) {
		r = add_tree(store, tree, &read, err);
	} else {
		struct mp_context_tree empty = *tree;

		*tree = read;
		read = empty;
	}
	mp_context_tree_fini(&read);
	return r;
}

static int delete_row(struct mp_store *store, const struct table *t, int64_t key,
		      struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, t->first + DELETE, t->delete, &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, key);
	return mp_store_run(store, stmt, "write", err);
}

/* Folds @tree to the size of a row and writes it. */
static int write_row(struct mp_store *store, const struct table *t, int64_t module,
		     const struct mp_span *span, struct mp_context_tree *tree, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	uint8_t *bytes;
	size_t size;
	int r = mp_context_pack_within(tree, t->bytes_max, t->nodes_max, &bytes, &size);

	if (r)
		return mp_err_code(err, -r);
	r = mp_store_stmt(store, t->first + ADD, t->add, &stmt, err);
	if (!r) {
		sqlite3_bind_int64(stmt, 1, module);
		sqlite3_bind_int64(stmt, 2, span->first_day);
		sqlite3_bind_int64(stmt, 3, span->last_day);
		sqlite3_bind_int64(stmt, 4, (int64_t)tree->nodes[0].total);
		sqlite3_bind_int64(stmt, 5, (int64_t)(uint32_t)XXH3_64bits(bytes, size));
		sqlite3_bind_blob(stmt, 6, bytes, (int)size, SQLITE_STATIC);
		r = mp_store_run(store, stmt, "write", err);
		sqlite3_clear_bindings(stmt);
	}
	free(bytes);
	return r;
}

int mp_contexts_list_rows(struct mp_store *store, enum mp_context_table table, int64_t module,
			  struct mp_bucket **out, size_t *nr, struct mp_err *err)
{
	return list_rows(store, &tables[table], module, out, nr, err);
}

int mp_contexts_read_row(struct mp_store *store, enum mp_context_table table,
			 const struct mp_bucket *row, struct mp_context_tree *tree,
			 struct mp_err *err)
{
	return read_row(store, &tables[table], row, tree, err);
}

int mp_contexts_replace_row(struct mp_store *store, enum mp_context_table table, int64_t module,
			    const struct mp_bucket *row, struct mp_context_tree *tree,
			    struct mp_err *err)
{
	const struct mp_span span = {row->first_day, row->last_day, false};
	int r = delete_row(store, &tables[table], row->key, err);

	return r || !tree->nodes[0].total
		       ? r
		       : write_row(store, &tables[table], module, &span, tree, err);
}

size_t mp_contexts_bytes_max(enum mp_context_table table)
{
	return tables[table].bytes_max;
}

uint32_t mp_contexts_nodes_max(enum mp_context_table table)
{
	return tables[table].nodes_max;
}

/* ---- days ---------------------------------------------------------------------------------- */

/*
 * Makes one row of @tree, NULL for none, and of those of @rows that overlap @span or, with it, are older
 * than the days that are kept apart: days up to @old.
 */
static int add_to_rows(struct mp_store *store, const struct table *t, int64_t module,
		       const struct mp_bucket *rows, size_t nr, struct mp_span span, int64_t old,
		       const struct mp_context_tree *tree, struct mp_err *err)
{
	bool is_old = span.last_day <= old;
	struct mp_context_tree sum;
	int r = mp_context_tree_init(&sum);

	if (r)
		return mp_err_code(err, -r);
	for (size_t i = 0; i < nr && !r; i++) {
		bool overlaps = rows[i].first_day <= span.last_day &&
				rows[i].last_day >= span.first_day;

		if (!overlaps && !(is_old && rows[i].last_day <= old))
			continue;
		r = read_row(store, t, &rows[i], &sum, err);
		if (!r)
			r = delete_row(store, t, rows[i].key, err);
		if (rows[i].first_day < span.first_day)
			span.first_day = rows[i].first_day;
		if (rows[i].last_day > span.last_day)
			span.last_day = rows[i].last_day;
	}
	/* Last: of equal leaves, those that are stored are folded first. */
	if (!r && tree)
		r = add_tree(store, &sum, tree, err);
	if (!r)
		r = write_row(store, t, module, &span, &sum, err);
	mp_context_tree_fini(&sum);
	return r;
}

/* Makes one row of all that are older than the days that are kept apart. */
static int fold_old(struct mp_store *store, const struct table *t, int64_t module, int64_t old,
		    struct mp_err *err)
{
	struct mp_bucket *rows;
	size_t nr, nr_old = 0;
	int r = list_rows(store, t, module, &rows, &nr, err);

	if (r)
		return r;
	while (nr_old < nr && rows[nr_old].last_day <= old)
		nr_old++;
	if (nr_old > 1) {
		struct mp_span span = {rows[0].first_day, rows[0].last_day, false};

		r = add_to_rows(store, t, module, rows, nr_old, span, old, NULL, err);
	}
	free(rows);
	return r;
}

/* Adds @tree to the days of @span. */
static int add_span(struct mp_store *store, const struct table *t, int64_t module,
		    const struct mp_span *span, const struct mp_context_tree *tree,
		    struct mp_err *err)
{
	struct mp_bucket *rows;
	int64_t newest = span->last_day;
	bool is_new_day = true;
	size_t nr;
	int r = list_rows(store, t, module, &rows, &nr, err);

	if (r)
		return r;
	for (size_t i = 0; i < nr; i++) {
		if (rows[i].last_day > newest)
			newest = rows[i].last_day;
		is_new_day &= rows[i].last_day < span->first_day ||
			      rows[i].first_day > span->last_day;
	}
	r = add_to_rows(store, t, module, rows, nr, *span, newest - MP_KEEP_DAYS, tree, err);
	free(rows);
	if (!r && is_new_day)
		r = fold_old(store, t, module, newest - MP_KEEP_DAYS, err);
	return r;
}

static int check_module(struct mp_store *store, int64_t module, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_CONTEXT_MODULE, "SELECT 1 FROM module WHERE key = ?1",
			      &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	r = mp_store_step(store, stmt, "read", err);
	sqlite3_reset(stmt);
	return r > 0 ? 0 : r ? r : mp_err_set(err, ENOENT, "%s: no such module", store->path);
}

int mp_store_add_contexts(struct mp_store *store, enum mp_context_table table, int64_t module,
			  int64_t when_s, const struct mp_context_tree *tree, struct mp_err *err)
{
	const struct mp_span day = {mp_day_of(when_s), mp_day_of(when_s), false};
	bool began;
	int r;

	if (when_s < 0)
		return mp_err_set(err, EINVAL, "samples of a time before 1970");
	if (!tree->nodes[0].total)
		return 0;
	r = mp_store_enter(store, &began, err);
	if (r)
		return r;
	r = check_module(store, module, err);
	if (!r)
		r = add_span(store, &tables[table], module, &day, tree, err);
	return mp_store_leave(store, began, r, err);
}

/* ---- read ---------------------------------------------------------------------------------- */

int mp_store_read_contexts(struct mp_store *store, enum mp_context_table table, int64_t module,
			   int64_t since_s, struct mp_context_tree *tree, struct mp_err *err)
{
	const struct table *t = &tables[table];
	struct mp_bucket *rows;
	size_t nr;
	int r = list_rows(store, t, module, &rows, &nr, err);

	for (size_t i = 0; i < nr && !r; i++)
		if (mp_day_wanted(rows[i].last_day, since_s))
			r = read_row(store, t, &rows[i], tree, err);
	free(rows);
	return r;
}

static int compare_programs(const void *a, const void *b)
{
	const struct mp_context_program *x = a, *y = b;

	if (x->nr_samples != y->nr_samples)
		return x->nr_samples < y->nr_samples ? 1 : -1;
	return (x->module > y->module) - (x->module < y->module);
}

int mp_store_list_contexts(struct mp_store *store, enum mp_context_table table, int64_t since_s,
			   struct mp_context_program **out, size_t *nr, struct mp_err *err)
{
	const struct table *t = &tables[table];
	struct mp_context_program *list = NULL;
	int64_t module, before = INT64_MIN, samples;
	size_t n = 0, max = 0;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, t->first + PROGRAMS, t->programs, &stmt, err);

	*out = NULL;
	*nr = 0;
	if (r)
		return r;
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		module = sqlite3_column_int64(stmt, 0);
		samples = sqlite3_column_int64(stmt, 2);
		/* Check the order: a damaged tree could otherwise loop for ever. */
		if (module < before || samples < 0)
			r = mp_store_damaged(store, "calling contexts out of order", err);
		else if (!mp_day_wanted(sqlite3_column_int64(stmt, 1), since_s))
			continue;
		else if (!n || list[n - 1].module != module)
			r = mp_store_grow(list, max, n + 1, err);
		if (r < 0)
			break;
		if (!n || list[n - 1].module != module)
			list[n++] = (struct mp_context_program){.module = module};
		before = module;
		if (__builtin_add_overflow(list[n - 1].nr_samples, (uint64_t)samples,
					   &list[n - 1].nr_samples)) {
			r = mp_store_damaged(store, "impossible calling contexts", err);
			break;
		}
	}
	sqlite3_reset(stmt);
	if (r) {
		free(list);
		return r;
	}
	if (n)
		qsort(list, n, sizeof(*list), compare_programs);
	*out = list;
	*nr = n;
	return 0;
}

/* ---- whole databases ----------------------------------------------------------------------- */

int mp_store_merge_contexts(struct mp_store *out, enum mp_context_table table, int64_t to,
			    struct mp_store *in, int64_t from, uint64_t *nr_samples,
			    struct mp_err *err)
{
	const struct table *t = &tables[table];
	struct mp_bucket *rows;
	size_t nr;
	int r = list_rows(in, t, from, &rows, &nr, err);

	for (size_t i = 0; i < nr && !r; i++) {
		struct mp_span span = {rows[i].first_day, rows[i].last_day, false};
		struct mp_context_tree tree;

		r = mp_span_check(&span, err);
		if (!r && mp_context_tree_init(&tree))
			r = mp_err_set(err, ENOMEM, "out of memory");
		if (r)
			break;
		r = read_row(in, t, &rows[i], &tree, err);
		if (!r)
			r = add_span(out, t, to, &span, &tree, err);
		mp_context_tree_fini(&tree);
		*nr_samples += rows[i].total;
	}
	free(rows);
	return r;
}

int mp_store_check_contexts(struct mp_store *store, enum mp_context_table table, uint64_t *total,
			    struct mp_err *err)
{
	struct mp_context_program *programs;
	struct mp_context_tree tree;
	size_t nr;
	int r = mp_store_check_none(store, tables[table].strays,
				    "calling contexts without a module", err);

	*total = 0;
	if (!r)
		r = mp_store_list_contexts(store, table, 0, &programs, &nr, err);
	if (r)
		return r;
	for (size_t i = 0; i < nr && !r; i++) {
		r = mp_context_tree_init(&tree) ? mp_err_set(err, ENOMEM, "out of memory") : 0;
		if (!r)
			r = mp_store_read_contexts(store, table, programs[i].module, 0, &tree, err);
		mp_context_tree_fini(&tree);
		*total += programs[i].nr_samples;
	}
	free(programs);
	return r;
}
