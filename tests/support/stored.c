// SPDX-License-Identifier: Apache-2.0
/* stored - reads a database; see stored.h. Called by tests/tools/accuracy.c and paths.c. */
#include "tests/support/stored.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/infer/path_evidence.h"
#include "libprof/infer/profile.h"

void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
	exit(1);
}

void *zeros(size_t nr, size_t size)
{
	void *v = calloc(nr + 1, size);

	if (!v)
		die("memory", strerror(ENOMEM));
	return v;
}

struct stored stored_read(const struct mp_elf *elf, const char *db)
{
	struct mp_store *store;
	struct mp_module module = {0};
	struct mp_err err = {""};
	struct stored out = {0};

	if (mp_store_open(db, MP_STORE_READ, &store, &err) ||
	    mp_store_find_module(store, &elf->id, &module, &err) ||
	    mp_store_read_ip_counts(store, module.key, 0, &out.ips, &out.nr_ips, &err) ||
	    mp_store_read_edges(store, module.key, 0, &out.edges, &out.nr_edges, &err) ||
	    mp_store_read_paths(store, module.key, 0, &out.paths, &out.nr_paths, &err) ||
	    mp_store_is_exact(store, module.key, 0, &out.exact, &err))
		die(db, *err.msg ? err.msg : "nothing of this file");
	free(module.path);
	mp_store_close(store);
	return out;
}

struct mp_counts stored_counts(const struct mp_cfg *cfg, const struct stored *stored,
			       const struct mp_counts_options *options)
{
	struct mp_counts_options with = *options;
	struct mp_path_evidence paths;
	struct mp_profile *profile;
	struct mp_counts out;
	struct mp_err err = {""};

	if (mp_profile_build(cfg, stored->ips, stored->nr_ips, &profile, &err) ||
	    (stored->nr_edges &&
	     mp_profile_add_edges(profile, cfg, stored->edges, stored->nr_edges, &err)) ||
	    mp_path_evidence_build(cfg, stored->paths, stored->nr_paths, &paths, &err))
		die("counts", err.msg);
	profile->exact = stored->exact;
	with.paths = &paths;
	if (mp_counts_build(cfg, profile, &with, &out, NULL, &err))
		die("counts", err.msg);
	mp_path_evidence_fini(&paths);
	mp_profile_free(profile);
	return out;
}

void stored_fini(struct stored *stored)
{
	free(stored->ips);
	free(stored->edges);
	free(stored->paths);
}
