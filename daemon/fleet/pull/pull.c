// SPDX-License-Identifier: Apache-2.0
/* pull - the statements that read a profile; see pull.h. Everything that the server says is checked. */
#include "daemon/fleet/pull/pull.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pg_params.h"
#include "daemon/fleet/pull/pull_paths.h"
#include "daemon/fleet/pull/pull_tree.h"
#include "daemon/fleet/server.h"

/* From this number of hosts on, a count needs another host's. Few hosts may each do other work. */
#define CONFIRMING_HOSTS 16
/* Modules of one answer. */
#define MODULES_MAX    65536
#define NAME_MAX_BYTES 4096

/* ---- columns ------------------------------------------------------------------------------- */

/* A number of @size bytes. Return: false: the column has another type, or is NULL. */
static bool get_number(const PGresult *result, int row, int column, int size, int64_t *out)
{
	if (PQgetisnull(result, row, column) || PQgetlength(result, row, column) != size)
		return false;
	*out = md_pg_get(PQgetvalue(result, row, column), (size_t)size);
	return true;
}

static int impossible(const char *what, struct mp_err *err)
{
	return mp_err_set(err, EPROTO, "the server gives %s that cannot be", what);
}

/* ---- modules ------------------------------------------------------------------------------- */

/* Columns: module, kind int2, text_size int8, name. */
static int read_module(const PGresult *result, int row, struct md_pull_module *out,
		       struct mp_err *err)
{
	int64_t kind = 0, text_size = 0;
	int size = PQgetlength(result, row, 3);

	if (PQgetisnull(result, row, 0) ||
	    md_module_of_key((const uint8_t *)PQgetvalue(result, row, 0),
			     (size_t)PQgetlength(result, row, 0), &out->id) ||
	    !get_number(result, row, 1, 2, &kind) || kind < MP_MODULE_FILE ||
	    kind > MP_MODULE_VDSO ||
	    (!PQgetisnull(result, row, 2) && !get_number(result, row, 2, 8, &text_size)) ||
	    text_size < 0 || size > NAME_MAX_BYTES)
		return impossible("a module", err);
	out->kind = (enum mp_module_kind)kind;
	out->text_size = (uint64_t)text_size;
	out->name = strndup(PQgetvalue(result, row, 3), (size_t)size);
	return out->name ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

void md_pull_free_modules(struct md_pull_module *modules, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(modules[i].name);
	free(modules);
}

static int read_modules(const PGresult *result, struct md_pull_module **out, size_t *nr,
			struct mp_err *err)
{
	int n = PQntuples(result), r = 0;
	struct md_pull_module *modules;

	if (n > MODULES_MAX)
		return impossible("a list of modules", err);
	modules = calloc((size_t)n + 1, sizeof(*modules));
	if (!modules)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (int i = 0; i < n && !r; i++)
		r = read_module(result, i, &modules[i], err);
	if (r) {
		md_pull_free_modules(modules, (size_t)n);
		return r;
	}
	*out = modules;
	*nr = (size_t)n;
	return 0;
}

int md_pull_find(PGconn *conn, const uint8_t *build_id, size_t size, struct md_pull_module **out,
		 size_t *nr, struct mp_err *err)
{
	struct md_pg_params p = {0};
	PGresult *result;
	int r;

	md_pg_add_bytes(&p, MD_PG_BYTEA, build_id, size);
	r = md_pg_run(conn, "SELECT module, kind, text_size, name FROM fleet.find_modules($1)", &p,
		      "ask for modules", &result, err);
	if (r)
		return r;
	r = read_modules(result, out, nr, err);
	PQclear(result);
	return r;
}

int md_pull_top(PGconn *conn, int32_t until_day, int limit, struct md_pull_module **out, size_t *nr,
		struct mp_err *err)
{
	struct md_pg_params p = {0};
	PGresult *result;
	int r;

	md_pg_add_number(&p, MD_PG_INT4, until_day);
	md_pg_add_number(&p, MD_PG_INT4, limit);
	r = md_pg_run(
		conn,
		"SELECT module, kind, text_size, name FROM fleet.list_modules(0, $1) LIMIT $2", &p,
		"ask for modules", &result, err);
	if (r)
		return r;
	r = read_modules(result, out, nr, err);
	PQclear(result);
	return r;
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Parameters of read_rows() and read_hosts(). */
static void add_parameters(struct md_pg_params *p, const struct md_pull_request *request,
			   const uint8_t *key, size_t size, enum mp_fleet_kind kind)
{
	md_pg_add_bytes(p, MD_PG_BYTEA, key, size);
	md_pg_add_number(p, MD_PG_INT2, kind);
	md_pg_add_number(p, MD_PG_INT4, request->until_day);
	md_pg_add_float(p, request->quantile);
	md_pg_add_number(p, MD_PG_INT2, request->without_self);
}

#define ROWS_ARGUMENTS "($1, $2, 0, $3, $4, CASE WHEN $5 <> 0 THEN fleet.my_host() END)"

/* Columns: chunk, last_day, exact, total, weight, data, host. */
static bool read_row(const PGresult *result, struct md_pull_row *row)
{
	int64_t last_day, weight, exact, host;

	if (!get_number(result, 0, 0, 8, &row->chunk) || !get_number(result, 0, 1, 4, &last_day) ||
	    !get_number(result, 0, 2, 1, &exact) || !get_number(result, 0, 3, 8, &row->total) ||
	    !get_number(result, 0, 4, 4, &weight) || PQgetisnull(result, 0, 5) ||
	    !get_number(result, 0, 6, 4, &host))
		return false;
	row->host = (int32_t)host;
	row->last_day = (int32_t)last_day;
	row->weight = (int32_t)weight;
	row->exact = exact != 0;
	row->data = (const uint8_t *)PQgetvalue(result, 0, 5);
	row->size = (size_t)PQgetlength(result, 0, 5);
	return true;
}

/* Sums of one kind. */
struct sums {
	enum mp_fleet_kind kind;
	struct md_pull_sum *counts;
	struct md_pull_paths *paths;
	struct md_pull_tree tree;
};

static int add_row(struct sums *sums, const struct md_pull_row *row, struct mp_err *err)
{
	switch (sums->kind) {
	case MP_FLEET_PATHS: return md_pull_paths_add(sums->paths, row, err);
	case MP_FLEET_CONTEXTS:
	case MP_FLEET_CALLS: return md_pull_tree_add(&sums->tree, row, err);
	default: return md_pull_sum_add(sums->counts, row, err);
	}
}

/* After a failure the rest is read without a look, so that the connection can be used again. */
static int add_rows(PGconn *conn, struct sums *sums, struct mp_err *err)
{
	static const char what[] = "read counts";
	struct md_pull_row row;
	PGresult *result;
	int r, failed = 0;

	while ((r = md_pg_next(conn, what, &result, failed ? NULL : err)) > 0) {
		if (!failed && !read_row(result, &row))
			failed = impossible("a row", err);
		else if (!failed)
			failed = add_row(sums, &row, err);
		PQclear(result);
	}
	return failed ? failed : r;
}

static int read_rows(PGconn *conn, const struct md_pull_request *request, const struct mp_id *id,
		     struct sums *sums, struct mp_err *err)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	size_t size = md_module_key(id, key);
	struct md_pg_params p = {0};
	int r;

	add_parameters(&p, request, key, size, sums->kind);
	r = md_pg_send(conn,
		       "SELECT chunk, last_day, exact, total, weight, data, host"
		       " FROM fleet.read_rows" ROWS_ARGUMENTS " ORDER BY chunk, host",
		       &p, "read counts", err);
	return r ? r : add_rows(conn, sums, err);
}

static int read_kind(PGconn *conn, const struct md_pull_request *request, const struct mp_id *id,
		     enum mp_fleet_kind kind, int64_t nr_hosts, struct md_pull_result *out,
		     struct mp_err *err)
{
	bool confirmed = request->quantile < 1 && nr_hosts >= CONFIRMING_HOSTS;
	struct sums sums = {.kind = kind};
	int r = md_pull_sum_new(kind, request->elf, confirmed, &sums.counts, err);

	if (r)
		return r;
	r = read_rows(conn, request, id, &sums, err);
	if (!r)
		r = md_pull_sum_finish(sums.counts, out, err);
	md_pull_sum_free(sums.counts);
	return r;
}

static int count_hosts(PGconn *conn, const struct md_pull_request *request, const struct mp_id *id,
		       enum mp_fleet_kind kind, int64_t *nr, struct mp_err *err)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	size_t size = md_module_key(id, key);
	struct md_pg_params p = {0};
	PGresult *result;
	int r;

	add_parameters(&p, request, key, size, kind);
	r = md_pg_run(conn, "SELECT count(*) FROM fleet.read_hosts" ROWS_ARGUMENTS, &p,
		      "count hosts", &result, err);
	if (r)
		return r;
	if (PQntuples(result) != 1 || !get_number(result, 0, 0, 8, nr) || *nr < 0)
		r = impossible("a number of hosts", err);
	PQclear(result);
	return r;
}

static void add_stats(struct md_pull_stats *stats, const struct md_pull_result *result)
{
	stats->nr_rows += result->nr_rows;
	stats->nr_bad += result->nr_bad;
	stats->outside += result->outside;
}

static void see_day(struct mp_fleet_profile *out, int32_t day)
{
	if (day > out->day)
		out->day = day;
}

static int read_both(PGconn *conn, const struct md_pull_request *request,
		     struct mp_fleet_profile *out, struct md_pull_stats *stats, struct mp_err *err)
{
	struct md_pull_result results[MP_NR_FLEET_SERIES] = {{.last_day = -1}, {.last_day = -1}};
	const struct md_pull_result *counts = &results[MP_FLEET_COUNTS],
				    *edges = &results[MP_FLEET_EDGES];
	int64_t nr_hosts[MP_NR_FLEET_SERIES] = {0};
	int r = 0;

	for (int kind = 0; kind < MP_NR_FLEET_SERIES && !r; kind++) {
		r = count_hosts(conn, request, &out->id, (enum mp_fleet_kind)kind, &nr_hosts[kind],
				err);
		if (!r)
			r = read_kind(conn, request, &out->id, (enum mp_fleet_kind)kind,
				      nr_hosts[kind], &results[kind], err);
	}
	out->counts = counts->counts;
	out->nr_counts = counts->nr;
	out->edges = edges->edges;
	out->nr_edges = edges->nr;
	out->exact_counts = counts->exact;
	out->exact_edges = edges->exact;
	see_day(out, counts->last_day);
	see_day(out, edges->last_day);
	stats->nr_hosts = nr_hosts[counts->nr ? MP_FLEET_COUNTS : MP_FLEET_EDGES];
	stats->samples = counts->total;
	stats->transfers = edges->total;
	add_stats(stats, counts);
	add_stats(stats, edges);
	return r;
}

static int read_paths(PGconn *conn, const struct md_pull_request *request,
		      struct mp_fleet_profile *out, struct md_pull_stats *stats, struct mp_err *err)
{
	struct md_pull_paths_result result = {.last_day = -1};
	struct sums sums = {.kind = MP_FLEET_PATHS, .paths = md_pull_paths_new(request->elf)};
	int r = sums.paths ? read_rows(conn, request, &out->id, &sums, err)
			   : mp_err_set(err, ENOMEM, "out of memory");

	if (!r)
		r = md_pull_paths_finish(sums.paths, &result, err);
	md_pull_paths_free(sums.paths);
	out->paths = result.paths;
	out->nr_paths = result.nr;
	see_day(out, result.last_day);
	stats->paths = result.total;
	stats->nr_rows += result.nr_rows;
	stats->nr_bad += result.nr_bad;
	stats->outside += result.outside;
	stats->left_out += result.left_out;
	return r;
}

static int read_tree(PGconn *conn, const struct md_pull_request *request, enum mp_fleet_kind kind,
		     struct mp_fleet_profile *out, struct md_pull_stats *stats, struct mp_err *err)
{
	struct sums sums = {.kind = kind};
	int r = md_pull_tree_init(&sums.tree, kind, err);

	if (!r)
		r = read_rows(conn, request, &out->id, &sums, err);
	if (!r)
		r = md_pull_tree_finish(&sums.tree, err);
	if (r) {
		md_pull_tree_fini(&sums.tree);
		return r;
	}
	see_day(out, sums.tree.last_day);
	stats->nr_rows += sums.tree.nr_rows;
	stats->nr_bad += sums.tree.nr_bad;
	*(kind == MP_FLEET_CALLS ? &stats->calls : &stats->contexts) = sums.tree.sum.nodes[0].total;
	*(kind == MP_FLEET_CALLS ? &out->calls : &out->contexts) = sums.tree.sum;
	return 0;
}

static int read_all(PGconn *conn, const struct md_pull_request *request,
		    struct mp_fleet_profile *out, struct md_pull_stats *stats, struct mp_err *err)
{
	int r = read_both(conn, request, out, stats, err);

	if (!r && !request->counts_only)
		r = read_paths(conn, request, out, stats, err);
	if (!r && !request->counts_only)
		r = read_tree(conn, request, MP_FLEET_CONTEXTS, out, stats, err);
	if (!r && !request->counts_only)
		r = read_tree(conn, request, MP_FLEET_CALLS, out, stats, err);
	if (r || out->nr_counts || out->nr_edges)
		return r;
	return count_hosts(conn, request, &out->id, MP_FLEET_CONTEXTS, &stats->nr_hosts, err);
}

void md_pull_free_profile(struct mp_fleet_profile *profile)
{
	free(profile->counts);
	free(profile->edges);
	free(profile->paths);
	mp_context_tree_fini(&profile->contexts);
	mp_context_tree_fini(&profile->calls);
	profile->counts = NULL;
	profile->edges = NULL;
	profile->paths = NULL;
	profile->nr_counts = profile->nr_edges = profile->nr_paths = 0;
}

int md_pull_profile(PGconn *conn, const struct md_pull_request *request,
		    struct mp_fleet_profile *out, struct md_pull_stats *stats, struct mp_err *err)
{
	int r;

	memset(stats, 0, sizeof(*stats));
	out->day = -1;
	/* Counts, edges and hosts are of one moment. */
	r = md_pg_run(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, "read counts",
		      NULL, err);
	if (r)
		return r;
	r = read_all(conn, request, out, stats, err);
	if (!r)
		r = md_pg_run(conn, "COMMIT", NULL, "read counts", NULL, err);
	if (!r && !out->nr_counts && !out->nr_edges && !out->nr_paths && !stats->contexts &&
	    !stats->calls)
		r = mp_err_set(err, ENOENT, "the fleet has no counts of it");
	if (r)
		md_pull_free_profile(out);
	return r;
}
