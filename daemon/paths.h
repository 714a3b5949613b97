// SPDX-License-Identifier: Apache-2.0
/*
 * paths - which way control took to samples in programs that number their paths, since the last
 * flush, and what programs said that were asked for their paths.
 *
 * A sample is counted by its block and the number that the block's register held, and only where
 * some path has that number; what the path is, is looked up again when it is written. PEP (CGO
 * 2005), section 3.2. Filled by attribute, emptied by flush.
 */
#ifndef MD_PATHS_H
#define MD_PATHS_H

#include "daemon/edges.h"
#include "daemon/modcache.h"
#include "daemon/record.h"
#include "libprof/path_key.h"
#include "libprof/store.h"

struct md_paths {
	struct md_edges counts; /* from: md_counts_key() of module and place; to: the number */
	struct mp_path path;	/* scratch */
};

/* One of a list made to be written. */
struct md_path {
	uint32_t module; /* index of the original */
	struct mp_path_count count;
};

void md_paths_fini(struct md_paths *paths);
void md_paths_clear(struct md_paths *paths);
/* Room for @more further samples. Return: 0, -ENOMEM (also: too many; flush). */
int md_paths_reserve(struct md_paths *paths, size_t more);
/*
 * md_paths_add - a sample at @vaddr of @module, which has a table of paths, with the registers of
 * entry @nr of @record. There is room: md_paths_reserve() was asked before.
 */
enum mp_path_fate md_paths_add(struct md_paths *paths, const struct md_module *module,
			       uint64_t vaddr, const struct morph_registers *record, uint32_t nr);
/* The same @nr times, of a path to @block of the table whose register held @value there, for which
 * the program was asked. */
enum mp_path_fate md_paths_add_asked(struct md_paths *paths, const struct md_module *module,
				     uint32_t block, uint64_t value, uint64_t nr);
uint64_t md_paths_sum(const struct md_paths *paths);

/*
 * md_paths_list - all of them as the store wants them, in the order of modules.
 * Return: 0, -ENOMEM, -EBADMSG of a module without a table.
 * Ownership: free(*@out) and free(*@keys), which the keys lie in.
 */
int md_paths_list(struct md_paths *paths, const struct md_modcache *mc, struct md_path **out,
		  size_t *nr, uint8_t **keys);

#endif
