// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_store - a damaged database gives an error, never a crash or a hang. The first byte says
 * what the rest is: a chunk (of counts, of edges), a whole database, or changes to a good one
 * (3 bytes offset, 1 byte to flip, each), cut to a length.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/store/contexts/store_contexts.h"
#include "libprof/store/store_codec.h"
#include "libprof/store/store_paths.h"
#include "libprof/store/store_private.h"
#include "libprof/store/store_ways.h"
#include "libprof/store/whole/store_merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64];
static uint8_t *good;
static size_t good_size;

static void die(const char *what)
{
	perror(what);
	abort();
}

static void clean_up(void)
{
	unlink(path);
}

/* Adds calling contexts of two days. */
static void add_contexts(struct mp_store *store, int64_t key, struct mp_ledger *ledger)
{
	struct mp_context_tree tree;
	struct mp_err err;

	if (mp_context_tree_init(&tree))
		die("contexts");
	for (unsigned int i = 0; i < 100; i++) {
		struct mp_context_step steps[3] = {{{1, i % 3, MP_CONTEXT_CALL}, false},
						   {{2, i % 7, MP_CONTEXT_CALL}, i % 2},
						   {{1, i % 5, MP_CONTEXT_FUNCTION}, false}};

		if (mp_context_add(&tree, steps, 3, 1, 250000))
			die("contexts");
	}
	if (mp_store_add_contexts(store, MP_CONTEXTS, key, 86400, &tree, &err) ||
	    mp_store_add_contexts(store, MP_CONTEXTS, key, 3 * 86400, &tree, &err))
		die("contexts");
	ledger->contexts += 2 * tree.nodes[0].total;
	mp_context_tree_fini(&tree);
}

static void fill(struct mp_store *store)
{
	static struct mp_ip_count counts[800];
	static struct mp_edge_count edges[400];
	static struct mp_way_count ways[400];
	static uint8_t keys[100][3];
	struct mp_path_count paths[100];
	struct mp_session session = {.start_s = 86400, .collector = "replay"};
	struct mp_activity activity = {1, 2, 3, 4};
	struct mp_ledger ledger = {0};
	struct mp_err err;

	if (mp_store_begin(store, &err) || mp_store_start_session(store, &session, &err))
		die("fill");
	for (unsigned int m = 0; m < 3; m++) {
		struct mp_id id = {.build_id_len = 4, .text_hash = m};
		int64_t key;

		for (unsigned int i = 0; i < 800; i++) {
			counts[i] = (struct mp_ip_count){i * 97 + m, 1 + i % 5};
			ledger.attributed += 2 * counts[i].count;
		}
		for (unsigned int i = 0; i < 400; i++)
			edges[i] = (struct mp_edge_count){i / 2 * 50 + m, i * 97, 1 + i % 5, i % 2};
		for (unsigned int i = 0; i < 400; i++)
			ways[i] = (struct mp_way_count){i * 53 + m, i % 3, 1 + i % 2};
		for (unsigned int i = 0; i < 100; i++) {
			keys[i][0] = (uint8_t)(1 + i);
			keys[i][1] = (uint8_t)(2 * i % 128);
			keys[i][2] = 2;
			paths[i] = (struct mp_path_count){keys[i], 1 + i % 3, 1 + i % 5};
			ledger.paths[MP_PATH_DECODED] += 2 * paths[i].count;
		}
		if (mp_store_put_module(store, &id, MP_MODULE_FILE, "/bin/x", 65536, 86400, &key,
					&err) ||
		    mp_store_add_edges(store, key, 86400 + m, edges, 400, &err) ||
		    mp_store_add_edges(store, key, 3 * 86400, edges, 400, &err) ||
		    mp_store_add_ways(store, key, 86400 + m, ways, 400, &err) ||
		    mp_store_add_ways(store, key, 3 * 86400, ways, 400, &err) ||
		    mp_store_add_paths(store, key, 86400 + m, paths, 100, &err) ||
		    mp_store_add_paths(store, key, 3 * 86400, paths, 100, &err) ||
		    mp_store_add_ip_counts(store, key, 86400 + m, counts, 800, &err) ||
		    mp_store_add_ip_counts(store, key, 3 * 86400, counts, 800, &err) ||
		    mp_store_add_activity(store, key, 86400, &activity, &err))
			die("fill");
		add_contexts(store, key, &ledger);
	}
	ledger.emitted = ledger.attributed;
	if (mp_store_add_ledger(store, session.key, 86400, &ledger, &err) ||
	    mp_store_commit(store, &err))
		die("fill");
}

static void make_good(void)
{
	const char *tmp = getenv("TMPDIR");
	struct mp_store *store;
	struct mp_err err;
	FILE *f;
	int fd;

	if (access("/dev/shm", W_OK) == 0)
		tmp = "/dev/shm"; /* a file system without a disk is a hundred times faster */
	snprintf(path, sizeof(path), "%.40s/morph-fuzz-XXXXXX", tmp ? tmp : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		die(path);
	close(fd);
	atexit(clean_up);
	if (mp_store_open(path, MP_STORE_WRITE, &store, &err))
		die(err.msg);
	fill(store);
	mp_store_close(store);
	f = fopen(path, "rb");
	if (!f || fseek(f, 0, SEEK_END))
		die(path);
	good_size = (size_t)ftell(f);
	rewind(f);
	good = malloc(good_size);
	if (!good || fread(good, 1, good_size, f) != good_size)
		die(path);
	fclose(f);
}

static void write_database(const uint8_t *data, size_t size)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(data, 1, size, f) != size || fclose(f))
		die(path);
}

static void read_counts(struct mp_store *store, int64_t key)
{
	struct mp_ip_count *counts = NULL;
	size_t nr;

	if (mp_store_read_ip_counts(store, key, 0, &counts, &nr, NULL))
		return;
	/* Counts from a database that was accepted must ascend. */
	for (size_t i = 1; i < nr; i++)
		if (counts[i].vaddr <= counts[i - 1].vaddr || !counts[i].count)
			abort();
	free(counts);
}

static void read_edges(struct mp_store *store, int64_t key)
{
	struct mp_edge_count *edges = NULL;
	size_t nr;

	if (mp_store_read_edges(store, key, 0, &edges, &nr, NULL))
		return;
	for (size_t i = 0; i < nr; i++) {
		if (!edges[i].count || edges[i].mispredicted > edges[i].count)
			abort();
		if (i && (edges[i].from < edges[i - 1].from ||
			  (edges[i].from == edges[i - 1].from && edges[i].to <= edges[i - 1].to)))
			abort();
	}
	free(edges);
}

static void read_ways(struct mp_store *store, int64_t key)
{
	struct mp_way_count *ways = NULL;
	size_t nr;

	if (mp_store_read_ways(store, key, 0, &ways, &nr, NULL))
		return;
	for (size_t i = 0; i < nr; i++) {
		if (!ways[i].taken && !ways[i].fell)
			abort();
		if (i && ways[i].vaddr <= ways[i - 1].vaddr)
			abort();
	}
	free(ways);
}

static void read_paths(struct mp_store *store, int64_t key)
{
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];
	struct mp_path_count *paths = NULL;
	size_t nr;

	if (mp_store_read_paths(store, key, 0, &paths, &nr, NULL))
		return;
	for (size_t i = 0; i < nr; i++) {
		if (!paths[i].count ||
		    !mp_path_key_decode(paths[i].key, paths[i].key_size, vaddrs, NULL))
			abort();
	}
	free(paths);
}

static void read_contexts(struct mp_store *store, int64_t key)
{
	struct mp_context_tree tree;

	if (mp_context_tree_init(&tree))
		die("contexts");
	/* The totals of a tree that was accepted add up. */
	if (!mp_store_read_contexts(store, MP_CONTEXTS, key, 0, &tree, NULL))
		for (uint32_t i = 1; i < tree.nr_nodes; i++)
			if (tree.nodes[i].total > tree.nodes[tree.nodes[i].parent].total)
				abort();
	mp_context_tree_fini(&tree);
}

static void read_database(void)
{
	struct mp_program_activity *programs = NULL;
	struct mp_session *sessions = NULL;
	struct mp_module *modules = NULL;
	struct mp_err err = {0};
	struct mp_store *store;
	int64_t start_s;
	size_t nr;

	if (mp_store_open(path, MP_STORE_READ, &store, &err)) {
		if (!err.msg[0])
			abort();
		return;
	}
	if (!mp_store_list_modules(store, 0, &modules, &nr, &err)) {
		for (size_t i = 0; i < nr; i++) {
			read_counts(store, modules[i].key);
			read_edges(store, modules[i].key);
			read_ways(store, modules[i].key);
			read_paths(store, modules[i].key);
			read_contexts(store, modules[i].key);
		}
		mp_store_free_modules(modules, nr);
	}
	if (!mp_store_list_sessions(store, &sessions, &nr, &err))
		free(sessions);
	if (!mp_store_list_activity(store, 1, &programs, &nr, &err))
		free(programs);
	mp_store_period_start(store, 1, &start_s, &err);
	mp_store_check(store, &err);
	mp_store_close(store);
}

/* Like morph-stats merge, into a database without a name, which must be sound before and after. */
static void merge_database(void)
{
	struct mp_merge_stats stats = {0};
	struct mp_store *in, *out;
	struct mp_err err = {0};
	int ret;

	if (mp_store_open(path, MP_STORE_READ, &in, &err))
		return;
	if (mp_store_open("", MP_STORE_WRITE, &out, &err) || mp_store_begin(out, &err))
		die(err.msg);
	if (!mp_store_begin(in, &err)) {
		ret = mp_store_merge(out, in, false, &stats, &err);
		if (ret)
			mp_store_rollback(out);
		else if (mp_store_commit(out, &err))
			die(err.msg);
		mp_store_rollback(in);
		if (mp_store_check(out, &err))
			die(err.msg);
	}
	mp_store_close(in);
	mp_store_close(out);
}

/* Adds to the database, like the daemon. */
static void write_to_database(void)
{
	const struct mp_ip_count counts[] = {{5, 1}, {70000, 2}};
	const struct mp_edge_count edges[] = {{5, 9, 1, 1}, {70000, 1, 2, 0}};
	struct mp_id id = {.build_id_len = 4, .text_hash = 1};
	struct mp_activity activity = {1, 1, 1, 1};
	struct mp_store *store;
	char wal[80];
	int64_t key;

	if (!mp_store_open(path, MP_STORE_WRITE, &store, NULL)) {
		if (!mp_store_put_module(store, &id, MP_MODULE_FILE, "/x", 1, 86400, &key, NULL)) {
			mp_store_add_ip_counts(store, key, 20 * 86400, counts, 2, NULL);
			mp_store_add_edges(store, key, 20 * 86400, edges, 2, NULL);
			mp_store_add_activity(store, key, 20 * 86400, &activity, NULL);
		}
		mp_store_close(store);
	}
	/* A database that could not be closed properly leaves these files. */
	snprintf(wal, sizeof(wal), "%s-wal", path);
	unlink(wal);
	snprintf(wal, sizeof(wal), "%s-shm", path);
	unlink(wal);
}

static void try_chunk(const uint8_t *data, size_t size)
{
	static struct mp_ip_count ips[MP_CHUNK_SIZE];
	static uint8_t again[MP_CHUNK_SIZE * MP_CHUNK_ENTRY_MAX];
	size_t nr, nr_again;

	if (mp_chunk_decode(0x10000, data, size, ips, &nr))
		return;
	/* The bytes may differ, because a count has several encodings; the counts must be equal. */
	size = mp_chunk_encode(0x10000, ips, nr, again);
	if (mp_chunk_decode(0x10000, again, size, ips, &nr_again) || nr != nr_again)
		abort();
}

static void try_edges(const uint8_t *data, size_t size)
{
	size_t nr, nr_again, max = size / MP_EDGE_ENTRY_MIN + 1;
	struct mp_edge_count *edges = calloc(max, sizeof(*edges));
	struct mp_edge_count *same = calloc(max, sizeof(*same));
	uint8_t *again = malloc(max * MP_EDGE_ENTRY_MAX);

	if (!edges || !same || !again)
		die("malloc");
	if (!mp_edge_decode(0x10000, data, size, edges, &nr)) {
		/* The bytes may differ, because a number has several encodings. */
		size = mp_edge_encode(0x10000, edges, nr, again);
		if (size > nr * MP_EDGE_ENTRY_MAX ||
		    mp_edge_decode(0x10000, again, size, same, &nr_again) || nr != nr_again ||
		    memcmp(edges, same, nr * sizeof(*edges)))
			abort();
	}
	free(edges);
	free(same);
	free(again);
}

static void try_changes(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(good_size);
	size_t length = good_size;

	if (!copy)
		die("malloc");
	memcpy(copy, good, good_size);
	for (; size >= 4; data += 4, size -= 4) {
		size_t off = ((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]);

		copy[off % good_size] ^= data[3];
	}
	if (size == 3)
		length = ((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]) % good_size;
	write_database(copy, length);
	free(copy);
	read_database();
	merge_database();
	write_to_database();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!good)
		make_good();
	if (!size)
		return 0;
	switch (data[0] % 5) {
	case 0: try_chunk(data + 1, size - 1); break;
	case 4: try_edges(data + 1, size - 1); break;
	case 1:
		write_database(data + 1, size - 1);
		read_database();
		merge_database();
		write_to_database();
		break;
	default: try_changes(data + 1, size - 1);
	}
	return 0;
}
