// SPDX-License-Identifier: Apache-2.0
/*
 * add-path DB ADDRESS... - adds a path to the module of DB with the most samples, and a sample
 * with that path to a new session.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "libprof/store/store_paths.h"
#include "libprof/base/varint.h"

int main(int argc, char **argv)
{
	struct mp_session session = {.start_s = time(NULL), .collector = "replay"};
	struct mp_ledger ledger = {.emitted = 1, .attributed = 1, .paths[MP_PATH_DECODED] = 1};
	struct mp_varint_writer w = {0};
	struct mp_err err = {{0}};
	struct mp_module *modules;
	struct mp_ip_count sample = {.count = 1};
	struct mp_path_count path = {.count = 1};
	struct mp_store *store;
	size_t nr;
	int i;

	if (argc < 3)
		return 2;
	for (i = 2; i < argc; i++) {
		uint64_t vaddr = strtoull(argv[i], NULL, 0);

		if (i == 2)
			mp_varint_put(&w, vaddr);
		else
			mp_varint_put_signed(&w, (int64_t)(vaddr - sample.vaddr));
		sample.vaddr = vaddr;
	}
	path.key = w.bytes;
	path.key_size = (uint32_t)w.size;
	if (mp_store_open(argv[1], MP_STORE_WRITE, &store, &err) || mp_store_begin(store, &err) ||
	    mp_store_list_modules(store, 0, &modules, &nr, &err) || !nr ||
	    mp_store_add_ip_counts(store, modules[0].key, session.start_s, &sample, 1, &err) ||
	    mp_store_add_paths(store, modules[0].key, session.start_s, &path, 1, &err) ||
	    mp_store_start_session(store, &session, &err) ||
	    mp_store_add_ledger(store, session.key, session.start_s, &ledger, &err) ||
	    mp_store_commit(store, &err)) {
		fprintf(stderr, "add-path: %s\n", err.msg[0] ? err.msg : "no module");
		return 1;
	}
	mp_store_free_modules(modules, nr);
	mp_store_close(store);
	free(w.bytes);
	return 0;
}
