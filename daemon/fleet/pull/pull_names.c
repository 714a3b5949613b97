// SPDX-License-Identifier: Apache-2.0
/* pull_names - modules of trees; see pull_names.h. */
#include "daemon/fleet/pull/pull_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pg.h"
#include "libprof/base/grow.h"

/* Hosts can name modules that nobody has. */
#define HASHES_MAX  65536
#define NAME_LENGTH 4096

void md_pull_names_fini(struct md_pull_names *names)
{
	free(names->hashes);
	*names = (struct md_pull_names){0};
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void sort(struct md_pull_names *names)
{
	size_t kept = 0;

	if (names->nr)
		qsort(names->hashes, names->nr, sizeof(*names->hashes), compare);
	for (size_t i = 0; i < names->nr; i++)
		if (!kept || names->hashes[kept - 1] != names->hashes[i])
			names->hashes[kept++] = names->hashes[i];
	names->nr = kept;
}

int md_pull_names_want(struct md_pull_names *names, const struct mp_context_tree *tree)
{
	for (uint32_t i = 1; i < tree->nr_modules; i++) {
		if (mp_push(names->hashes, names->nr, names->max, tree->modules[i]))
			return -ENOMEM;
	}
	sort(names);
	if (names->nr > HASHES_MAX)
		names->nr = HASHES_MAX;
	return 0;
}

/* Is the module wanted? Then it is not any more. */
static bool take(struct md_pull_names *names, const struct mp_id *id)
{
	uint64_t hash = mp_context_module_of(id), *found = NULL;

	if (names->nr)
		found = bsearch(&hash, names->hashes, names->nr, sizeof(hash), compare);
	if (!found)
		return false;
	names->nr--;
	memmove(found, found + 1, (size_t)(names->hashes + names->nr - found) * sizeof(*found));
	return true;
}

static int add(struct mp_store *store, const struct mp_module *m, struct mp_err *err)
{
	int64_t key;

	return mp_store_put_module(store, &m->id, m->kind, m->path ? m->path : "", m->text_size,
				   time(NULL), &key, err);
}

/* Takes the modules that @from has. @to: add them there; NULL: they are there. */
static int find_in_store(struct md_pull_names *names, struct mp_store *from, struct mp_store *to,
			 struct mp_err *err)
{
	struct mp_module *modules = NULL;
	size_t nr = 0;
	int r = mp_store_list_modules(from, 0, &modules, &nr, err);

	for (size_t i = 0; i < nr && !r && names->nr; i++)
		if (take(names, &modules[i].id) && to)
			r = add(to, &modules[i], err);
	mp_store_free_modules(modules, nr);
	return r;
}

/* ---- the server ---------------------------------------------------------------------------- */

struct found {
	struct mp_module *modules;
	size_t nr, max;
};

static bool read_module(const PGresult *result, struct mp_module *out)
{
	int64_t kind;

	*out = (struct mp_module){0};
	if (PQgetisnull(result, 0, 0) || !md_pg_number(result, 1, 2, &kind) ||
	    md_module_of_key((const uint8_t *)PQgetvalue(result, 0, 0),
			     (size_t)PQgetlength(result, 0, 0), &out->id))
		return false;
	out->kind = (enum mp_module_kind)kind;
	return kind >= MP_MODULE_FILE && kind <= MP_MODULE_VDSO;
}

static int keep(struct found *found, const struct mp_module *m)
{
	return mp_push(found->modules, found->nr, found->max, *m);
}

/* The server cannot compute the hashes: it gives all modules, one after the other. */
static int list_modules(struct md_pull_names *names, PGconn *conn, struct found *found,
			struct mp_err *err)
{
	static const char what[] = "ask for modules";
	PGresult *result;
	int failed = 0,
	    r = md_pg_send(conn, what, err, "SELECT module, kind FROM fleet.module", "");

	if (r)
		return r;
	while ((r = md_pg_next(conn, what, &result, failed ? NULL : err)) > 0) {
		struct mp_module m;

		if (!failed && read_module(result, &m) && take(names, &m.id))
			failed = keep(found, &m) ? mp_err_set(err, ENOMEM, "out of memory") : 0;
		PQclear(result);
	}
	return failed ? failed : r;
}

/* Adds a module under the name that most hosts have for it. */
static int add_named(PGconn *conn, struct mp_module *m, struct mp_store *store, struct mp_err *err)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	json_t *rows;
	const json_t *row;
	int r = md_pg_rows(conn, "ask for a module", &rows, err,
			   "SELECT name, text_size FROM fleet.module_facts($1)", "b", key,
			   md_module_key(&m->id, key));

	if (r)
		return r;
	row = json_array_get(rows, 0);
	if (strlen(md_row_text(row, "name")) <= NAME_LENGTH)
		m->path = strdup(md_row_text(row, "name"));
	if (md_row_number(row, "text_size") > 0 && md_row_number(row, "text_size") <= UINT32_MAX)
		m->text_size = (uint64_t)md_row_number(row, "text_size");
	json_decref(rows);
	r = add(store, m, err);
	free(m->path);
	m->path = NULL;
	return r;
}

static int find_on_server(struct md_pull_names *names, PGconn *conn, struct mp_store *store,
			  struct mp_err *err)
{
	struct found found = {0};
	int r = list_modules(names, conn, &found, err);

	for (size_t i = 0; i < found.nr && !r; i++)
		r = add_named(conn, &found.modules[i], store, err);
	free(found.modules);
	return r;
}

int md_pull_names_find(struct md_pull_names *names, PGconn *conn, struct mp_store *local,
		       struct mp_store *store, struct mp_err *err)
{
	int r = names->nr ? find_in_store(names, store, NULL, err) : 0;

	if (!r && names->nr && local)
		r = find_in_store(names, local, store, err);
	if (!r && names->nr)
		r = find_on_server(names, conn, store, err);
	return r;
}
