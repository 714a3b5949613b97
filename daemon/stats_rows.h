// SPDX-License-Identifier: Apache-2.0
/*
 * stats_rows - the lines of a query: modules, functions, blocks or bare addresses with samples.
 */
#ifndef MD_STATS_ROWS_H
#define MD_STATS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/stats_code.h"
#include "libprof/path_key.h"
#include "libprof/store.h"

enum md_by {
	MD_BY_NONE,
	MD_BY_MODULE,
	MD_BY_FUNCTION,
	MD_BY_BLOCK,
	MD_BY_PATH
};
enum md_sort {
	MD_SORT_SAMPLES,
	MD_SORT_WEIGHT,
	MD_SORT_NAME,
	MD_SORT_ADDRESS
};

struct md_row {
	const struct mp_module *module;
	char *function;	      /* NULL: none is known there */
	bool bare;	      /* an address, the file could not be read */
	uint64_t vaddr, size; /* size 0: not known */
	uint64_t offset;      /* block: distance to the function's start */
	uint64_t samples;
	uint32_t nr_insns; /* block; 0: not known */
	double weight;	   /* block: samples / instructions (length scaling) */
	uint64_t *path; /* path: its blocks, @vaddr the last; first 0: from outside. NULL: none */
	uint32_t nr_path;
};

struct md_rows {
	struct md_row *rows;
	size_t nr, max;
};

/* Add one row. Ownership: @row->function and ->path are taken. Return: 0, -ENOMEM. */
int md_rows_add(struct md_rows *rows, const struct md_row *row);
void md_rows_free(struct md_rows *rows);
void md_rows_sort(struct md_rows *rows, enum md_sort by);

/*
 * Rows of one module from its counts (ascending): by function or by block of @code, or one per
 * address where @code is NULL. @function: only the function of that name, or that begins at or
 * holds the address "0x..."; NULL: all. Return: 0, -ENOMEM.
 */
int md_rows_of_functions(struct md_rows *rows, const struct mp_module *module,
			 const struct md_code *code, const char *function,
			 const struct mp_ip_count *counts, size_t nr);
int md_rows_of_blocks(struct md_rows *rows, const struct mp_module *module,
		      const struct md_code *code, const char *function,
		      const struct mp_ip_count *counts, size_t nr);
/* The same of paths, one row for each; @code NULL: no function is known. */
int md_rows_of_paths(struct md_rows *rows, const struct mp_module *module,
		     const struct md_code *code, const char *function,
		     const struct mp_path_count *paths, size_t nr);
int md_rows_of_addresses(struct md_rows *rows, const struct mp_module *module,
			 const struct mp_ip_count *counts, size_t nr);

#endif
