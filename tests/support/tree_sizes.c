// SPDX-License-Identifier: Apache-2.0
/* tree_sizes - measures the forms of trees of calling contexts; see tree_sizes.h. */
#include "tests/support/tree_sizes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "libprof/context/context_codec.h"
#include "libprof/context/context_pack.h"
#include "libprof/store/contexts/store_contexts.h"

#define TURNS 7

static void need(bool made, const char *what)
{
	if (!made) {
		fprintf(stderr, "tree-sizes: %s\n", what);
		exit(1);
	}
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void least(double *ms, double began)
{
	double took = now_ms() - began;

	if (!*ms || took < *ms)
		*ms = took;
}

struct figures {
	double pack, unpack, fold, deflate, inflate;
	size_t plain, zlib, packed;
};

static void measure_packed(const struct mp_context_tree *tree, struct figures *f)
{
	struct mp_context_tree read;
	double began = now_ms();
	uint8_t *bytes;

	need(!mp_context_pack(tree, &bytes, &f->packed), "no memory");
	least(&f->pack, began);
	began = now_ms();
	need(!mp_context_decode(bytes, f->packed, &read, NULL), "a packed tree cannot be read");
	least(&f->unpack, began);
	need(read.nr_nodes == tree->nr_nodes && read.nodes[0].total == tree->nodes[0].total,
	     "a packed tree is not the same");
	began = now_ms();
	need(!mp_context_fold(&read, read.nr_nodes / 2), "no memory");
	least(&f->fold, began);
	mp_context_tree_fini(&read);
	free(bytes);
}

static void measure_zlib(const struct mp_context_tree *tree, struct figures *f)
{
	struct mp_context_tree read;
	double began = now_ms();
	uint8_t *plain, *bytes;
	uLongf size;

	need(!mp_context_encode(tree, &plain, &f->plain), "no memory");
	size = compressBound(f->plain);
	bytes = malloc(size);
	need(bytes && compress2(bytes, &size, plain, f->plain, 6) == Z_OK, "zlib fails");
	least(&f->deflate, began);
	f->zlib = size;
	began = now_ms();
	size = f->plain;
	need(uncompress(plain, &size, bytes, f->zlib) == Z_OK &&
		     !mp_context_decode(plain, f->plain, &read, NULL),
	     "zlib fails");
	least(&f->inflate, began);
	mp_context_tree_fini(&read);
	free(plain);
	free(bytes);
}

static void print_tree(const char *db, const struct mp_context_tree *tree)
{
	struct figures f = {0};

	for (int i = 0; i < TURNS; i++) {
		measure_packed(tree, &f);
		measure_zlib(tree, &f);
	}
	printf("%s: %" PRIu64 " samples, %" PRIu32 " nodes; %zu bytes, zlib %zu, packed %zu; "
	       "ms: pack %.2f, read %.2f, fold %.2f; zlib %.2f and %.2f\n",
	       db, tree->nodes[0].total, tree->nr_nodes, f.plain, f.zlib, f.packed, f.pack,
	       f.unpack, f.fold, f.deflate, f.inflate);
}

static void print_table(const char *path, enum mp_context_table table)
{
	struct mp_context_program *programs;
	struct mp_context_tree tree;
	struct mp_store *store;
	struct mp_err err = {0};
	size_t nr;

	need(!mp_store_open(path, MP_STORE_READ, &store, &err), err.msg);
	need(!mp_store_list_contexts(store, table, 0, &programs, &nr, &err), err.msg);
	for (size_t i = 0; i < nr; i++) {
		need(!mp_context_tree_init(&tree), "no memory");
		need(!mp_store_read_contexts(store, table, programs[i].module, 0, &tree, &err),
		     err.msg);
		print_tree(path, &tree);
		mp_context_tree_fini(&tree);
	}
	free(programs);
	mp_store_close(store);
}

void tree_sizes_print(const char *db)
{
	print_table(db, MP_CONTEXTS);
	print_table(db, MP_CALLS);
}
