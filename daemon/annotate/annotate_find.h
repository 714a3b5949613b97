// SPDX-License-Identifier: Apache-2.0
/*
 * annotate_find - finds the function that a user named, in one or several files. Called by
 * "morph-stats annotate".
 */
#ifndef MD_ANNOTATE_FIND_H
#define MD_ANNOTATE_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/code/demangle.h"
#include "libprof/infer/profile.h"
#include "libprof/store/store.h"

struct mp_map;

/* A file that may hold the function, and its counts. */
struct md_ann_source {
	/* module that the counts belong to; NULL: nothing is stored */
	const struct mp_module *module;
	char *path;
	struct mp_map *map; /* set if the file is an optimised one; @module is then its original */
	struct mp_ip_count *counts;
	size_t nr_counts;
	struct mp_edge_count *edges;
	size_t nr_edges;
	struct mp_way_count *ways; /* of branches */
	size_t nr_ways;
	bool exact; /* @counts and @edges were counted, not sampled */
};
void md_ann_source_fini(struct md_ann_source *source);

/* A function as the user wrote it: "name", "0x401000" or "name@0x401000". */
struct md_ann_function {
	char *name; /* NULL: only an address was given */
	bool has_vaddr;
	uint64_t vaddr;
};
/* @address: the argument of --address, or NULL. Return: 0, -EINVAL, -ENOMEM. */
int md_ann_function_parse(const char *text, const char *address, struct md_ann_function *out);

struct md_ann_candidate {
	size_t source;
	uint64_t vaddr;
	uint64_t samples;
	char *name; /* demangled; "" if the user gave an address */
	enum md_name_match match;
};

struct md_ann_candidates {
	struct md_ann_candidate *all;
	size_t nr;
	size_t nr_stripped; /* files that have no symbol table of their own */
};

/*
 * Adds the functions of @source that match @wanted. Return: 0, or -errno with a message: the file
 * cannot be read.
 */
int md_ann_find(const struct md_ann_source *source, size_t index,
		const struct md_ann_function *wanted, struct md_ann_candidates *out,
		struct mp_err *err);
/* Sorts by samples, most first, and drops all but the best kind of match. */
void md_ann_candidates_sort(struct md_ann_candidates *candidates);
void md_ann_candidates_fini(struct md_ann_candidates *candidates);

#endif
