// SPDX-License-Identifier: Apache-2.0
/*
 * fleet-store - makes stores as hosts of a fleet have them, and compares stores.
 *	fleet-store add DB TRUTH SEED DAY [TIMES]	adds random counts of DAY to DB, and to TRUTH
 *	fleet-store odd DB	adds a module whose counts lie further apart than its text is large
 *	fleet-store compare A B	are the counts and transfers of all modules the same?
 *	fleet-store sum DB	prints how many samples, transfers and modules there are
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/store.h"
#include "libprof/store/store_span.h"

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
};

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
		r = mp_store_start_session(store, &session, err);
	if (!r)
		r = mp_store_add_ledger(store, session.key, 1, &ledger, err);
	return r ? r : mp_store_commit(store, err);
}

static int do_add(char **argv, int times)
{
	struct mp_store *stores[2] = {NULL, NULL};
	struct mp_err err = {""};
	struct counts counts;
	int r = mp_store_open(argv[2], MP_STORE_WRITE, &stores[0], &err);

	state = strtoull(argv[4], NULL, 0);
	if (!r)
		r = mp_store_open(argv[3], MP_STORE_WRITE, &stores[1], &err);
	for (int i = 0; i < times && !r; i++) {
		make(&counts);
		r = add(stores[0], &counts, strtoll(argv[5], NULL, 0), &err);
		if (!r)
			r = add(stores[1], &counts, TRUTH_DAY, &err);
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
		return do_add(argv, argc == 7 ? atoi(argv[6]) : 1);
	if (argc == 3 && !strcmp(argv[1], "odd"))
		return do_odd(argv);
	if (argc == 4 && !strcmp(argv[1], "compare"))
		return do_compare(argv);
	if (argc == 3 && !strcmp(argv[1], "sum"))
		return do_sum(argv);
	fprintf(stderr,
		"usage: fleet-store add DB TRUTH SEED DAY [TIMES] | odd DB | compare A B | sum DB\n");
	return 2;
}
