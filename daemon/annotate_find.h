// SPDX-License-Identifier: Apache-2.0
/*
 * annotate_find - which function of which file somebody means.
 */
#ifndef MD_ANNOTATE_FIND_H
#define MD_ANNOTATE_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/demangle.h"
#include "libprof/map.h"
#include "libprof/profile.h"
#include "libprof/store.h"

/* A file that may hold the function, and the counts that are for it. */
struct md_ann_source {
	const struct mp_module *module; /* whose counts they are; NULL: nothing is stored */
	char *path;
	struct mp_map *map; /* the file is an optimised one, @module its original */
	struct mp_ip_count *counts;
	size_t nr_counts;
	struct mp_edge_count *edges;
	size_t nr_edges;
	bool exact; /* both were counted, not sampled */
};
void md_ann_source_fini(struct md_ann_source *source);

/* "name", "0x401000" or "name@0x401000". */
struct md_ann_wish {
	char *name; /* NULL: an address alone */
	bool has_vaddr;
	uint64_t vaddr;
};
/* @address: of --address, or NULL. Return: 0, -EINVAL, -ENOMEM. */
int md_ann_wish_parse(const char *text, const char *address, struct md_ann_wish *out);

struct md_ann_candidate {
	size_t source;
	uint64_t vaddr;
	uint64_t samples;
	char *name; /* demangled; "" for an address */
	enum md_name_match match;
};

struct md_ann_candidates {
	struct md_ann_candidate *all;
	size_t nr;
	size_t nr_stripped; /* files without names of their own */
};

/*
 * Add what @source has to offer for @wish. Return: 0, -errno with a message: the file cannot be
 * read.
 */
int md_ann_find(const struct md_ann_source *source, size_t index, const struct md_ann_wish *wish,
		struct md_ann_candidates *out, struct mp_err *err);
/* Those that match best, most samples first. */
void md_ann_candidates_sort(struct md_ann_candidates *candidates);
void md_ann_candidates_fini(struct md_ann_candidates *candidates);

#endif
