// SPDX-License-Identifier: Apache-2.0
/*
 * stats_rows - the rows of a query: modules, functions, blocks, paths or addresses with
 * samples. Called by query, export, diff and flame.
 */
#ifndef MD_STATS_ROWS_H
#define MD_STATS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/code/ksyms.h"
#include "daemon/code/stats_code.h"
#include "libprof/note/path_key.h"
#include "libprof/store/store.h"
#include "libprof/store/store_copies.h"

enum md_by {
	MD_BY_NONE,
	MD_BY_MODULE,
	MD_BY_FUNCTION,
	MD_BY_BLOCK,
	MD_BY_PATH,
	MD_BY_COPY,
	MD_BY_CONTEXT
};
enum md_sort {
	MD_SORT_SAMPLES,
	MD_SORT_WEIGHT,
	MD_SORT_NAME,
	MD_SORT_ADDRESS
};

struct md_row {
	const struct mp_module *module;
	char *function;	      /* NULL: not known */
	bool bare;	      /* only an address is known, because the file could not be read */
	uint64_t vaddr, size; /* size 0: not known */
	uint64_t offset;      /* of a block in its function */
	uint64_t original;    /* of a copy, @vaddr: the address of its original block */
	uint64_t samples;
	uint32_t nr_insns; /* of a block; 0: not known */
	double weight;	   /* of a block: samples / instructions (length scaling) */
	/*
	 * The blocks of a path, in order; the last is @vaddr. If the first is 0, the path came from
	 * outside of the function. NULL: the row is no path.
	 */
	uint64_t *path;
	uint32_t nr_path;
};

struct md_rows {
	struct md_row *rows;
	size_t nr, max;
};

/* Adds one row. Ownership: takes @row->function and ->path. Return: 0, -ENOMEM. */
int md_rows_add(struct md_rows *rows, const struct md_row *row);
void md_rows_free(struct md_rows *rows);
void md_rows_sort(struct md_rows *rows, enum md_sort by);

/*
 * Makes rows of one module from its counts (ascending): by function, by block, or by address.
 * @function: only the function with this name, or the one that holds the address "0x..."; NULL:
 * all. Return: 0, -ENOMEM.
 */
int md_rows_of_functions(struct md_rows *rows, const struct mp_module *module,
			 const struct md_code *code, const char *function,
			 const struct mp_ip_count *counts, size_t nr);
int md_rows_of_blocks(struct md_rows *rows, const struct mp_module *module,
		      const struct md_code *code, const char *function,
		      const struct mp_ip_count *counts, size_t nr);
/* Makes one row per path. @code NULL: functions are not known. */
int md_rows_of_paths(struct md_rows *rows, const struct mp_module *module,
		     const struct md_code *code, const char *function,
		     const struct mp_path_count *paths, size_t nr);
/*
 * Makes one row per copy of a block in the output @module, also for blocks that were not moved.
 * @code: of the original; NULL: not known, one row per address.
 */
int md_rows_of_copies(struct md_rows *rows, const struct mp_module *module,
		      const struct md_code *code, const char *function,
		      const struct mp_copy_count *copies, size_t nr);
int md_rows_of_addresses(struct md_rows *rows, const struct mp_module *module,
			 const struct mp_ip_count *counts, size_t nr);

/*
 * Makes rows for the kernel @module: by function, or by address if @addresses. With @function,
 * a name or an address, only its rows. Samples outside of all functions form one row without a
 * function. Return: 0, -ENOMEM.
 */
int md_rows_of_kernel(struct md_rows *rows, const struct mp_module *module,
		      const struct md_ksyms *ksyms, bool addresses, const char *function,
		      const struct mp_ip_count *counts, size_t nr);

#endif
