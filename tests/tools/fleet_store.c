// SPDX-License-Identifier: Apache-2.0
/*
 * fleet-store - makes stores as hosts of a fleet have them, and compares stores.
 *	fleet-store add DB TRUTH SEED DAY [TIMES]	adds random counts of DAY to DB, and to TRUTH
 *	fleet-store add-all DB TRUTH SEED DAY [TIMES]	the same, with paths, calling contexts and sampled calls
 *	fleet-store odd DB	adds a module whose counts lie further apart than its text is large
 *	fleet-store named DB DAY PATH...	adds a module of each of these names
 *	fleet-store host DB SEED DAY MODULES NR ADDRESSES	adds counts as a host of a fleet has them
 *		whose hosts run NR of MODULES modules each, the first ones most often, and have samples
 *		of some ADDRESSES addresses of each
 *	fleet-store compare A B	are the counts, transfers, paths and trees of all modules the same?
 *	fleet-store sum DB	prints how many samples, transfers and modules there are
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/varint.h"
#include "libprof/store/contexts/store_contexts.h"
#include "libprof/store/store_paths.h"

#define NR_MODULES 3
#define TEXT_SIZE  (1u << 20)
/* Where TRUTH has all counts. */
#define TRUTH_DAY 20000

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % below;
}

static int fail(const struct mp_err *err)
{
	fprintf(stderr, "fleet-store: %s\n", err->msg);
	return 1;
}

struct counts {
	int64_t module_number;
	struct mp_ip_count ips[400];
	struct mp_edge_count edges[100];
	size_t nr_ips, nr_edges;
	/* with add-all */
	struct mp_context_tree trees[2]; /* by enum mp_context_table */
	struct mp_path_count paths[20];
	uint8_t keys[20][64];
	size_t nr_paths;
};

/* ---- paths and trees ------------------------------------------------------------------------ */

#define TREES_MODULE UINT64_C(0x1234)
#define PERIOD_NS    250000

/* So few addresses that the paths and trees of all hosts together fit into a row. */
static void make_path(struct counts *c)
{
	struct mp_path_count *path = &c->paths[c->nr_paths];
	struct mp_varint_writer w = {0};
	uint64_t last = 0, nr = 1 + draw(3);

	for (uint64_t i = 0; i < nr; i++) {
		uint64_t vaddr = 0x401000 + draw(8) * 0x5000;

		if (i)
			mp_varint_put_signed(&w, (int64_t)(vaddr - last));
		else
			mp_varint_put(&w, vaddr);
		last = vaddr;
	}
	memcpy(c->keys[c->nr_paths], w.bytes, w.size);
	*path = (struct mp_path_count){c->keys[c->nr_paths], (uint32_t)w.size, 1 + draw(9)};
	free(w.bytes);
	c->nr_paths++;
}

static int make_trees(struct counts *c)
{
	int r = 0;

	c->nr_paths = 0;
	for (uint64_t i = draw(20); i; i--)
		make_path(c);
	for (int table = 0; table < 2 && !r; table++) {
		r = mp_context_tree_init(&c->trees[table]);
		for (uint64_t i = draw(30); i && !r; i--) {
			struct mp_context_step steps[4];
			size_t nr = 1 + draw(4);
			uint64_t count = 1 + draw(5);

			for (size_t k = 0; k < nr; k++)
				steps[k] = (struct mp_context_step){
					{TREES_MODULE + draw(2), 0x401000 + draw(4) * 16,
					 k + 1 < nr ? MP_CONTEXT_CALL : MP_CONTEXT_FUNCTION},
					draw(2)};
			r = mp_context_add(&c->trees[table], steps, nr, count, count * PERIOD_NS);
		}
	}
	return r;
}

static int add_trees(struct mp_store *store, const struct counts *c, int64_t module, int64_t when_s,
		     struct mp_ledger *ledger, struct mp_err *err)
{
	int r = mp_store_add_paths(store, module, when_s, c->paths, c->nr_paths, err);

	for (size_t i = 0; i < c->nr_paths; i++)
		ledger->paths[MP_PATH_DECODED] += c->paths[i].count;
	for (int table = 0; table < 2 && !r; table++)
		if (c->trees[table].nr_nodes)
			r = mp_store_add_contexts(store, (enum mp_context_table)table, module,
						  when_s, &c->trees[table], err);
	if (c->trees[MP_CONTEXTS].nr_nodes)
		ledger->contexts = c->trees[MP_CONTEXTS].nodes[0].total;
	if (c->trees[MP_CALLS].nr_nodes)
		ledger->calls = c->trees[MP_CALLS].nodes[0].total;
	return r;
}

/* Is @a the same as @b, which has as many nodes? */
static bool is_same_tree(const struct mp_context_tree *a, const struct mp_context_tree *b)
{
	uint32_t *at = calloc(a->nr_nodes, sizeof(*at));
	bool same = at && a->nr_nodes == b->nr_nodes;

	for (uint32_t i = 1; i < a->nr_nodes && same; i++) {
		struct mp_context_key key = mp_context_key_of(a, i);
		const struct mp_context_node *x = &a->nodes[i], *y;

		at[i] = mp_context_find(b, at[x->parent], &key);
		y = &b->nodes[at[i]];
		same = at[i] && x->self == y->self && x->self_ns == y->self_ns &&
		       x->total == y->total && x->nr_new == y->nr_new;
	}
	free(at);
	return same;
}

static int compare_trees(struct mp_store *a, int64_t in_a, struct mp_store *b, int64_t in_b,
			 const char *path, struct mp_err *err)
{
	int r = 0, different = 0;

	for (int table = 0; table < 2 && !r; table++) {
		struct mp_context_tree x, y;

		if (mp_context_tree_init(&x) || mp_context_tree_init(&y))
			return mp_err_set(err, ENOMEM, "out of memory");
		r = mp_store_read_contexts(a, (enum mp_context_table)table, in_a, 0, &x, err);
		if (!r)
			r = mp_store_read_contexts(b, (enum mp_context_table)table, in_b, 0, &y,
						   err);
		if (!r && !is_same_tree(&x, &y)) {
			printf("%s: %s: a tree of %" PRIu64 " samples in %u nodes, not %" PRIu64
			       " in %u\n",
			       path, table ? "calls" : "contexts", y.nodes[0].total, y.nr_nodes,
			       x.nodes[0].total, x.nr_nodes);
			different = 1;
		}
		mp_context_tree_fini(&x);
		mp_context_tree_fini(&y);
	}
	return r ? r : different;
}

static int compare_paths(struct mp_store *a, int64_t in_a, struct mp_store *b, int64_t in_b,
			 const char *path, struct mp_err *err)
{
	struct mp_path_count *x = NULL, *y = NULL;
	size_t nr_x = 0, nr_y = 0;
	int r = mp_store_read_paths(a, in_a, 0, &x, &nr_x, err);
	bool same;

	if (!r)
		r = mp_store_read_paths(b, in_b, 0, &y, &nr_y, err);
	same = nr_x == nr_y;
	for (size_t i = 0; i < nr_x && same; i++)
		same = x[i].count == y[i].count && x[i].key_size == y[i].key_size &&
		       !memcmp(x[i].key, y[i].key, x[i].key_size);
	if (!r && !same) {
		printf("%s: %zu other paths than the %zu\n", path, nr_y, nr_x);
		r = 1;
	}
	free(x);
	free(y);
	return r;
}

/* ---- counts --------------------------------------------------------------------------------- */

/* Some chunks get counts at many addresses, as a program's hot code does. */
static void make(struct counts *c)
{
	uint64_t base = 0x401000 + draw(TEXT_SIZE / 2), vaddr = base;

	c->module_number = (int64_t)draw(NR_MODULES);
	c->nr_ips = 1 + draw(400);
	c->nr_edges = draw(100);
	for (size_t i = 0; i < c->nr_ips; i++) {
		vaddr += 1 + draw(draw(8) ? 12 : 20000) % (TEXT_SIZE / 800);
		c->ips[i] = (struct mp_ip_count){vaddr, 1 + draw(draw(20) ? 5 : 1 << 30)};
	}
	vaddr = base;
	for (size_t i = 0; i < c->nr_edges; i++) {
		vaddr += 1 + draw(3000);
		c->edges[i] = (struct mp_edge_count){vaddr, base + draw(TEXT_SIZE), 1 + draw(9), 0};
		c->edges[i].mispredicted = draw(c->edges[i].count + 1);
	}
}

static int add(struct mp_store *store, const struct counts *c, int64_t day, struct mp_err *err)
{
	struct mp_id id = {.build_id_len = 20, .text_hash = 0xfedcba9876543210u};
	struct mp_session session = {.collector = "perf", .start_s = 1, .last_s = 1};
	struct mp_ledger ledger = {0};
	char path[32];
	int64_t module;
	int r = mp_store_begin(store, err);

	id.build_id[0] = (uint8_t)(0xa0 + c->module_number);
	snprintf(path, sizeof(path), "/usr/bin/m%" PRId64, c->module_number);
	for (size_t i = 0; i < c->nr_ips; i++)
		ledger.attributed += c->ips[i].count;
	ledger.emitted = ledger.attributed;
	if (!r)
		r = mp_store_put_module(store, &id, MP_MODULE_FILE, path, TEXT_SIZE,
					day * MP_SECONDS_PER_DAY, &module, err);
	if (!r)
		r = mp_store_add_ip_counts(store, module, day * MP_SECONDS_PER_DAY, c->ips,
					   c->nr_ips, err);
	if (!r)
		r = mp_store_add_edges(store, module, day * MP_SECONDS_PER_DAY, c->edges,
				       c->nr_edges, err);
	if (!r)
		r = add_trees(store, c, module, day * MP_SECONDS_PER_DAY, &ledger, err);
	if (!r)
		r = mp_store_start_session(store, &session, err);
	if (!r)
		r = mp_store_add_ledger(store, session.key, 1, &ledger, err);
	return r ? r : mp_store_commit(store, err);
}

/* ---- hosts of a large fleet ---------------------------------------------------------------- */

static int compare_ips(const void *a, const void *b)
{
	const struct mp_ip_count *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static double draw_share(void)
{
	return (double)draw(1u << 30) / (1u << 30);
}

/* The place that is number @i by popularity in the module @module: eight of them in each function. */
static uint64_t place_of(uint64_t module, uint64_t i)
{
	uint64_t kept = state, place;

	state = module * 1000003 + i / 8;
	place = draw(TEXT_SIZE / 256) * 256;
	state += i;
	place += draw(256);
	state = kept;
	return 0x400000 + place;
}

/* Which places of the module this host reaches. The popularity of the i-th one falls as 1 / i. */
static size_t host_counts(uint64_t module, uint64_t addresses, struct mp_ip_count *out)
{
	double load = exp(2 * draw_share() - 1);
	size_t nr = 0, kept = 0;

	for (uint64_t i = 0; i < 4 * addresses; i++) {
		double rank = (double)i / (double)addresses;

		if (draw_share() < 1 / (1 + 2 * rank))
			out[nr++] = (struct mp_ip_count){
				place_of(module, i),
				1 + (uint64_t)(load * 8 * draw_share() / (rank + 0.01))};
	}
	qsort(out, nr, sizeof(*out), compare_ips);
	for (size_t i = 0; i < nr; i++) {
		if (kept && out[kept - 1].vaddr == out[i].vaddr)
			out[kept - 1].count += out[i].count;
		else
			out[kept++] = out[i];
	}
	return kept;
}

static int put(struct mp_store *store, uint64_t module, const char *path, int64_t day,
	       const struct mp_ip_count *ips, size_t nr, struct mp_err *err)
{
	struct mp_id id = {.build_id_len = 20, .text_hash = module * 0x9e3779b97f4a7c15u};
	struct mp_session session = {.collector = "perf", .start_s = 1, .last_s = 1};
	struct mp_ledger ledger = {0};
	int64_t key;
	int r;

	memcpy(id.build_id, &module, sizeof(module));
	for (size_t i = 0; i < nr; i++)
		ledger.attributed += ips[i].count;
	ledger.emitted = ledger.attributed;
	r = mp_store_put_module(store, &id, MP_MODULE_FILE, path, TEXT_SIZE,
				day * MP_SECONDS_PER_DAY, &key, err);
	if (!r)
		r = mp_store_add_ip_counts(store, key, day * MP_SECONDS_PER_DAY, ips, nr, err);
	if (!r)
		r = mp_store_start_session(store, &session, err);
	return r ? r : mp_store_add_ledger(store, session.key, 1, &ledger, err);
}

static int do_host(char **argv)
{
	uint64_t seed = strtoull(argv[3], NULL, 0), addresses = strtoull(argv[7], NULL, 0);
	double nr_modules = strtod(argv[5], NULL);
	int64_t day = strtoll(argv[4], NULL, 0);
	struct mp_ip_count *ips = calloc(4 * addresses + 1, sizeof(*ips));
	struct mp_store *store = NULL;
	struct mp_err err = {""};
	char path[64];
	int r = ips ? mp_store_open(argv[2], MP_STORE_WRITE, &store, &err)
		    : mp_err_set(&err, ENOMEM, "out of memory");

	if (!r)
		r = mp_store_begin(store, &err);
	for (int64_t i = 0; i < strtoll(argv[6], NULL, 0) && !r; i++) {
		uint64_t module;

		/* The modules of a host are the same on each day, the counts are not. */
		state = seed * 7919 + (uint64_t)i;
		module = 1 + (uint64_t)(exp(draw_share() * log(nr_modules)) - 0.5);
		state += (uint64_t)day * 1000003;
		snprintf(path, sizeof(path), "/usr/bin/m%" PRIu64, module);
		r = put(store, module, path, day, ips, host_counts(module, addresses, ips), &err);
	}
	if (!r)
		r = mp_store_commit(store, &err);
	mp_store_close(store);
	free(ips);
	return r ? fail(&err) : 0;
}

static int do_named(int argc, char **argv)
{
	static const struct mp_ip_count ips[] = {{0x401000, 3}, {0x401010, 4}};
	struct mp_store *store = NULL;
	struct mp_err err = {""};
	int r = mp_store_open(argv[2], MP_STORE_WRITE, &store, &err);

	if (!r)
		r = mp_store_begin(store, &err);
	for (int i = 4; i < argc && !r; i++)
		r = put(store, (uint64_t)i, argv[i], strtoll(argv[3], NULL, 0), ips, 2, &err);
	if (!r)
		r = mp_store_commit(store, &err);
	mp_store_close(store);
	return r ? fail(&err) : 0;
}

/* ---- small stores -------------------------------------------------------------------------- */

static int do_add(char **argv, int times, bool all)
{
	struct mp_store *stores[2] = {NULL, NULL};
	struct mp_err err = {""};
	static struct counts counts;
	int r = mp_store_open(argv[2], MP_STORE_WRITE, &stores[0], &err);

	state = strtoull(argv[4], NULL, 0);
	if (!r)
		r = mp_store_open(argv[3], MP_STORE_WRITE, &stores[1], &err);
	for (int i = 0; i < times && !r; i++) {
		make(&counts);
		r = all && make_trees(&counts) ? mp_err_set(&err, ENOMEM, "out of memory") : 0;
		if (!r)
			r = add(stores[0], &counts, strtoll(argv[5], NULL, 0), &err);
		if (!r)
			r = add(stores[1], &counts, TRUTH_DAY, &err);
		mp_context_tree_fini(&counts.trees[0]);
		mp_context_tree_fini(&counts.trees[1]);
	}
	mp_store_close(stores[0]);
	mp_store_close(stores[1]);
	return r ? fail(&err) : 0;
}

static int do_odd(char **argv)
{
	static const struct counts counts = {
		.module_number = 9, .ips = {{0x1000, 1}, {0x100000000, 1}}, .nr_ips = 2};
	struct mp_store *store = NULL;
	struct mp_err err = {""};
	int r = mp_store_open(argv[2], MP_STORE_WRITE, &store, &err);

	if (!r)
		r = add(store, &counts, TRUTH_DAY, &err);
	mp_store_close(store);
	return r ? fail(&err) : 0;
}

/* Return: 0 equal, 1 not, -errno. */
static int compare_module(struct mp_store *a, struct mp_store *b, const struct mp_module *m,
			  struct mp_err *err)
{
	struct mp_ip_count *ips[2] = {NULL, NULL};
	struct mp_edge_count *edges[2] = {NULL, NULL};
	size_t nr_ips[2] = {0, 0}, nr_edges[2] = {0, 0};
	struct mp_module other = {0};
	int r = mp_store_find_module(b, &m->id, &other, err);

	if (!r)
		r = mp_store_read_ip_counts(a, m->key, 0, &ips[0], &nr_ips[0], err);
	if (!r)
		r = mp_store_read_ip_counts(b, other.key, 0, &ips[1], &nr_ips[1], err);
	if (!r)
		r = mp_store_read_edges(a, m->key, 0, &edges[0], &nr_edges[0], err);
	if (!r)
		r = mp_store_read_edges(b, other.key, 0, &edges[1], &nr_edges[1], err);
	if (!r &&
	    (nr_ips[0] != nr_ips[1] || nr_edges[0] != nr_edges[1] ||
	     (nr_ips[0] && memcmp(ips[0], ips[1], nr_ips[0] * sizeof(**ips)) != 0) ||
	     (nr_edges[0] && memcmp(edges[0], edges[1], nr_edges[0] * sizeof(**edges)) != 0))) {
		printf("%s: %" PRIu64 " samples at %zu addresses and %" PRIu64
		       " transfers, not %" PRIu64 " at %zu and %" PRIu64 "\n",
		       m->path, other.nr_samples, nr_ips[1], other.nr_transfers, m->nr_samples,
		       nr_ips[0], m->nr_transfers);
		r = 1;
	}
	if (r >= 0) {
		int paths = compare_paths(a, m->key, b, other.key, m->path, err);
		int trees = paths < 0 ? paths
				      : compare_trees(a, m->key, b, other.key, m->path, err);

		r = trees < 0 ? trees : r | paths | trees;
	}
	for (int i = 0; i < 2; i++) {
		free(ips[i]);
		free(edges[i]);
	}
	free(other.path);
	return r;
}

static int do_compare(char **argv)
{
	struct mp_module *modules = NULL;
	struct mp_store *a = NULL, *b = NULL;
	struct mp_err err = {""};
	size_t nr = 0;
	int r = mp_store_open(argv[2], MP_STORE_READ, &a, &err), different = 0;

	if (!r)
		r = mp_store_open(argv[3], MP_STORE_READ, &b, &err);
	if (!r)
		r = mp_store_check(b, &err);
	if (!r)
		r = mp_store_list_modules(a, 0, &modules, &nr, &err);
	for (size_t i = 0; i < nr && r >= 0; i++) {
		r = compare_module(a, b, &modules[i], &err);
		different |= r > 0;
	}
	mp_store_free_modules(modules, nr);
	mp_store_close(a);
	mp_store_close(b);
	return r < 0 ? fail(&err) : different;
}

static int do_sum(char **argv)
{
	struct mp_module *modules = NULL;
	struct mp_store *store = NULL;
	uint64_t samples = 0, transfers = 0;
	struct mp_err err = {""};
	size_t nr = 0;
	int r = mp_store_open(argv[2], MP_STORE_READ, &store, &err);

	if (!r)
		r = mp_store_check(store, &err);
	if (!r)
		r = mp_store_list_modules(store, 0, &modules, &nr, &err);
	for (size_t i = 0; i < nr; i++) {
		samples += modules[i].nr_samples;
		transfers += modules[i].nr_transfers;
	}
	if (!r)
		printf("%" PRIu64 " %" PRIu64 " %zu\n", samples, transfers, nr);
	mp_store_free_modules(modules, nr);
	mp_store_close(store);
	return r ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
	if (argc >= 6 && argc <= 7 && !strcmp(argv[1], "add"))
		return do_add(argv, argc == 7 ? atoi(argv[6]) : 1, false);
	if (argc >= 6 && argc <= 7 && !strcmp(argv[1], "add-all"))
		return do_add(argv, argc == 7 ? atoi(argv[6]) : 1, true);
	if (argc == 3 && !strcmp(argv[1], "odd"))
		return do_odd(argv);
	if (argc >= 5 && !strcmp(argv[1], "named"))
		return do_named(argc, argv);
	if (argc == 8 && !strcmp(argv[1], "host"))
		return do_host(argv);
	if (argc == 4 && !strcmp(argv[1], "compare"))
		return do_compare(argv);
	if (argc == 3 && !strcmp(argv[1], "sum"))
		return do_sum(argv);
	fprintf(stderr,
		"usage: fleet-store add|add-all DB TRUTH SEED DAY [TIMES] | odd DB | named DB DAY PATH..."
		" | host DB SEED DAY MODULES NR ADDRESSES | compare A B | sum DB\n");
	return 2;
}
