// SPDX-License-Identifier: Apache-2.0
/*
 * stored - reads what a database has of one file, and infers counts from it, for developers'
 * tools. Any failure ends the program with a message.
 */
#ifndef STORED_H
#define STORED_H

#include <stddef.h>

#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"
#include "libprof/store/store.h"
#include "libprof/store/store_paths.h"

struct stored {
	struct mp_ip_count *ips;
	struct mp_edge_count *edges;
	struct mp_path_count *paths;
	size_t nr_ips, nr_edges, nr_paths;
	bool exact; /* from the store; the caller may change it */
};

/* Prints "program: @what: @why" and exits with status 1. */
_Noreturn void die(const char *what, const char *why);
/* Allocates zeroed memory for at least one element. Ownership: free(). */
void *zeros(size_t nr, size_t size);

/* Ownership: stored_fini(). */
struct stored stored_read(const struct mp_elf *elf, const char *db);
/*
 * stored_counts - infer counts from @stored. Ignores the paths in @options. Ownership:
 * mp_counts_fini().
 */
struct mp_counts stored_counts(const struct mp_cfg *cfg, const struct stored *stored,
			       const struct mp_counts_options *options);
void stored_fini(struct stored *stored);

#endif
