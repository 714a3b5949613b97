// SPDX-License-Identifier: Apache-2.0
/* pull - the statements that read a profile; see pull.h. Everything that the server says is checked. */
#include "daemon/fleet/pull/pull.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pg.h"
#include "daemon/fleet/pull/pull_tree.h"

/* From this number of hosts on, a count needs another host's. Few hosts may each do other work. */
#define CONFIRMING_HOSTS 16
/* Modules of one answer. */
#define MODULES_MAX    65536
#define NAME_MAX_BYTES 4096

static int impossible(const char *what, struct mp_err *err)
{
	return mp_err_set(err, EPROTO, "the server gives %s that cannot be", what);
}

/* ---- modules ------------------------------------------------------------------------------- */

static int read_module(const json_t *row, struct md_pull_module *out, struct mp_err *err)
{
	double kind = md_row_number(row, "kind"), text_size = md_row_number(row, "text_size");
	const char *name = md_row_text(row, "name");

	if (md_module_of_text(md_row_text(row, "module"), &out->id) || kind < MP_MODULE_FILE ||
	    kind > MP_MODULE_VDSO || text_size < 0 || text_size >= 0x1p63 ||
	    strlen(name) > NAME_MAX_BYTES)
		return impossible("a module", err);
	out->kind = (enum mp_module_kind)kind;
	out->text_size = (uint64_t)text_size;
	out->name = strdup(name);
	return out->name ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

void md_pull_free_modules(struct md_pull_module *modules, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(modules[i].name);
	free(modules);
}

/* Ownership: takes @rows. */
static int read_modules(json_t *rows, struct md_pull_module **out, size_t *nr, struct mp_err *err)
{
	int r = 0;

	*nr = json_array_size(rows);
	*out = *nr <= MODULES_MAX ? calloc(*nr + 1, sizeof(**out)) : NULL;
	if (!*out)
		r = *nr > MODULES_MAX ? impossible("a list of modules", err)
				      : mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < *nr && !r; i++)
		r = read_module(json_array_get(rows, i), &(*out)[i], err);
	json_decref(rows);
	if (r && *out)
		md_pull_free_modules(*out, *nr);
	return r;
}

#define MODULES "SELECT module, kind, text_size, name FROM "

int md_pull_find(PGconn *conn, const uint8_t *build_id, size_t size, struct md_pull_module **out,
		 size_t *nr, struct mp_err *err)
{
	json_t *rows;
	int r = md_pg_rows(conn, "ask for modules", &rows, err, MODULES "fleet.find_modules($1)",
			   "b", build_id, size);

	return r ? r : read_modules(rows, out, nr, err);
}

int md_pull_top(PGconn *conn, int32_t until_day, int limit, struct md_pull_module **out, size_t *nr,
		struct mp_err *err)
{
	json_t *rows;
	int r = md_pg_rows(conn, "ask for modules", &rows, err,
			   MODULES "fleet.list_modules(0, $1) LIMIT $2::integer", "ii",
			   (int64_t)until_day, (int64_t)limit);

	return r ? r : read_modules(rows, out, nr, err);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Parameters of read_rows() and read_hosts(). */
#define PARAMETERS "($1, $2::smallint, 0, $3::integer, $4, CASE WHEN $5 THEN fleet.my_host() END)"
#define VALUES(request, key, size, kind)                                                           \
	"biidy", key, size, (int64_t)(kind), (int64_t)(request)->until_day, (request)->quantile,   \
		(request)->without_self

/* Columns: chunk, last_day, exact, total, weight, data, host. */
static bool read_row(const PGresult *result, struct md_pull_row *row)
{
	int64_t last_day, weight, exact, host;

	if (!md_pg_number(result, 0, 8, &row->chunk) || !md_pg_number(result, 1, 4, &last_day) ||
	    !md_pg_number(result, 2, 1, &exact) || !md_pg_number(result, 3, 8, &row->total) ||
	    !md_pg_number(result, 4, 4, &weight) || PQgetisnull(result, 0, 5) ||
	    !md_pg_number(result, 6, 4, &host))
		return false;
	row->host = (int32_t)host;
	row->last_day = (int32_t)last_day;
	row->weight = (int32_t)weight;
	row->exact = exact != 0;
	row->data = (const uint8_t *)PQgetvalue(result, 0, 5);
	row->size = (size_t)PQgetlength(result, 0, 5);
	return true;
}

/* Sums of one kind: counts, edges and paths, or a tree. */
struct sums {
	enum mp_fleet_kind kind;
	struct md_pull_sum *counts;
	struct md_pull_tree tree;
};

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
			failed = sums->counts ? md_pull_sum_add(sums->counts, &row, err)
					      : md_pull_tree_add(&sums->tree, &row, err);
		PQclear(result);
	}
	return failed ? failed : r;
}

static int read_rows(PGconn *conn, const struct md_pull_request *request, const struct mp_id *id,
		     struct sums *sums, struct mp_err *err)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	size_t size = md_module_key(id, key);
	int r = md_pg_send(conn, "read counts", err,
			   "SELECT chunk, last_day, exact, total, weight, data, host"
			   " FROM fleet.read_rows" PARAMETERS " ORDER BY chunk, host",
			   VALUES(request, key, size, sums->kind));

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
	PGresult *result;
	int r = md_pg_run(conn, "count hosts", &result, err,
			  "SELECT count(*) FROM fleet.read_hosts" PARAMETERS,
			  VALUES(request, key, size, kind));

	if (!r)
		*nr = strtoll(md_pg_text(result, 0), NULL, 10);
	if (!r && *nr < 0)
		r = impossible("a number of hosts", err);
	PQclear(result);
	return r;
}

/* Reads what is kept by address: counts, edges and paths. */
static int read_sums(PGconn *conn, const struct md_pull_request *request,
		     struct mp_fleet_profile *out, struct md_pull_stats *stats, struct mp_err *err)
{
	struct md_pull_result results[MP_FLEET_PATHS + 1] = {0};
	const struct md_pull_result *counts = &results[MP_FLEET_COUNTS],
				    *edges = &results[MP_FLEET_EDGES],
				    *paths = &results[MP_FLEET_PATHS];
	int64_t nr_hosts[MP_FLEET_PATHS + 1] = {0};
	int r = 0, last = request->counts_only ? MP_FLEET_EDGES : MP_FLEET_PATHS;

	for (int kind = 0; kind <= last && !r; kind++) {
		struct md_pull_result *result = &results[kind];

		if (kind < MP_NR_FLEET_SERIES)
			r = count_hosts(conn, request, &out->id, (enum mp_fleet_kind)kind,
					&nr_hosts[kind], err);
		if (!r)
			r = read_kind(conn, request, &out->id, (enum mp_fleet_kind)kind,
				      nr_hosts[kind], result, err);
		if (!r && result->last_day > out->day)
			out->day = result->last_day;
		stats->nr_rows += result->nr_rows;
		stats->nr_bad += result->nr_bad;
		stats->outside += result->outside;
		stats->left_out += result->left_out;
	}
	out->counts = counts->counts;
	out->nr_counts = counts->nr;
	out->edges = edges->edges;
	out->nr_edges = edges->nr;
	out->paths = paths->paths;
	out->nr_paths = paths->nr;
	out->exact_counts = counts->exact;
	out->exact_edges = edges->exact;
	stats->nr_hosts = nr_hosts[counts->nr ? MP_FLEET_COUNTS : MP_FLEET_EDGES];
	stats->samples = counts->total;
	stats->transfers = edges->total;
	stats->paths = paths->total;
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
	if (sums.tree.last_day > out->day)
		out->day = sums.tree.last_day;
	stats->nr_rows += sums.tree.nr_rows;
	stats->nr_bad += sums.tree.nr_bad;
	*(kind == MP_FLEET_CALLS ? &stats->calls : &stats->contexts) = sums.tree.sum.nodes[0].total;
	*(kind == MP_FLEET_CALLS ? &out->calls : &out->contexts) = sums.tree.sum;
	return 0;
}

/* One transaction that reads a profile for @request into @out. */
struct reading {
	const struct md_pull_request *request;
	struct mp_fleet_profile *out;
	struct md_pull_stats *stats;
};

static int read_all(PGconn *conn, void *arg, struct mp_err *err)
{
	struct reading *reading = arg;
	const struct md_pull_request *request = reading->request;
	struct mp_fleet_profile *out = reading->out;
	struct md_pull_stats *stats = reading->stats;
	int r = md_pg_run(conn, "read counts", NULL, err,
			  "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL);

	if (!r)
		r = read_sums(conn, request, out, stats, err);
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
	struct reading reading = {request, out, stats};
	int r;

	memset(stats, 0, sizeof(*stats));
	out->day = -1;
	/* Counts, edges and hosts are of one moment. */
	r = md_pg_transaction(conn, read_all, &reading, "read counts", err);
	if (!r && !out->nr_counts && !out->nr_edges && !out->nr_paths && !stats->contexts &&
	    !stats->calls)
		r = mp_err_set(err, ENOENT, "the fleet has no counts of it");
	if (r)
		md_pull_free_profile(out);
	return r;
}
