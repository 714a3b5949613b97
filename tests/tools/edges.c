// SPDX-License-Identifier: Apache-2.0
/*
 * edges - prints the edge counts that a store has of one module, one per line: FROM TO COUNT
 * MISPREDICTED, with addresses in hex. For tests that compare imports.
 *
 *	edges DATABASE PATH
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/store.h"

static int print_edges(struct mp_store *store, const char *path, struct mp_err *err)
{
	struct mp_edge_count *edges = NULL;
	struct mp_module *modules = NULL;
	size_t nr_modules = 0, nr = 0, i;
	int r = mp_store_list_modules(store, 0, &modules, &nr_modules, err);

	for (i = 0; !r && i < nr_modules && strcmp(modules[i].path, path); i++)
		;
	if (!r && i == nr_modules)
		r = mp_err_set(err, 1, "%s: not in the database", path);
	if (!r)
		r = mp_store_read_edges(store, modules[i].key, 0, &edges, &nr, err);
	for (i = 0; !r && i < nr; i++)
		printf("%" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64 "\n", edges[i].from,
		       edges[i].to, edges[i].count, edges[i].mispredicted);
	free(edges);
	mp_store_free_modules(modules, nr_modules);
	return r;
}

int main(int argc, char **argv)
{
	struct mp_store *store = NULL;
	struct mp_err err = {0};
	int r;

	if (argc != 3) {
		fprintf(stderr, "usage: edges DATABASE PATH\n");
		return 2;
	}
	r = mp_store_open(argv[1], MP_STORE_READ, &store, &err);
	if (!r)
		r = print_edges(store, argv[2], &err);
	mp_store_close(store);
	if (r)
		fprintf(stderr, "edges: %s\n", err.msg);
	return r ? 1 : 0;
}
