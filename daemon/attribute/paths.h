// SPDX-License-Identifier: Apache-2.0
/*
 * paths - counts the paths that samples came along, in programs that number their paths, since
 * the last flush. Also counts the paths that programs report themselves (path_requests).
 *
 * A sample is counted by its block and the number in the block's register, if the number is
 * valid. The path itself is decoded again when it is stored. Method: PEP (CGO 2005), section
 * 3.2. Filled by attribute, emptied by flush.
 */
#ifndef MD_PATHS_H
#define MD_PATHS_H

#include "daemon/attribute/edges.h"
#include "daemon/module/modcache.h"
#include "daemon/record/record.h"
#include "libprof/note/path_key.h"
#include "libprof/store/store.h"

struct md_paths {
	struct md_edges counts; /* from: md_sample_table_key() of module and block; to: the number */
	struct mp_path path;	/* reused buffer */
};

/* One path count, ready to be stored. */
struct md_path {
	uint32_t module; /* index of the original */
	struct mp_path_count count;
};

void md_paths_fini(struct md_paths *paths);
void md_paths_clear(struct md_paths *paths);
/* Makes room for @more samples. Return: 0, -ENOMEM (also if there are too many: flush). */
int md_paths_reserve(struct md_paths *paths, size_t more);
/*
 * md_paths_add - count a sample at @vaddr of @module, which has a table of paths. Entry @nr of
 * @record has its registers. The caller has reserved room with md_paths_reserve().
 */
enum mp_path_fate md_paths_add(struct md_paths *paths, const struct md_module *module,
			       uint64_t vaddr, const struct morph_registers *record, uint32_t nr);
/*
 * Counts @nr executions of a path that the program reported: it ends in block @block of the
 * table, whose register held @value.
 */
enum mp_path_fate md_paths_add_reported(struct md_paths *paths, const struct md_module *module,
					uint32_t block, uint64_t value, uint64_t nr);
uint64_t md_paths_sum(const struct md_paths *paths);

/*
 * md_paths_list - list all counts for the store, by module. Return: 0, -ENOMEM, -EBADMSG a
 * module has no table. Ownership: free(*@out), and free(*@keys), which holds the keys.
 */
int md_paths_list(struct md_paths *paths, const struct md_modcache *mc, struct md_path **out,
		  size_t *nr, uint8_t **keys);

#endif
