// SPDX-License-Identifier: Apache-2.0
/*
 * stats_rows - makes and sorts rows; see stats_rows.h. Decides how samples outside of functions
 * and blocks are shown.
 */
#include "daemon/code/stats_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/infer/profile.h"

int md_rows_add(struct md_rows *rows, const struct md_row *row)
{
	if (mp_grow(rows->rows, rows->max, rows->nr + 1)) {
		free(row->function);
		free(row->path);
		return -ENOMEM;
	}
	rows->rows[rows->nr++] = *row;
	return 0;
}

void md_rows_free(struct md_rows *rows)
{
	for (size_t i = 0; i < rows->nr; i++) {
		free(rows->rows[i].function);
		free(rows->rows[i].path);
	}
	free(rows->rows);
	memset(rows, 0, sizeof(*rows));
}

/* ---- order --------------------------------------------------------------------------------- */

static int compare_address(const void *a, const void *b)
{
	const struct md_row *x = a, *y = b;
	int r = strcmp(x->module->path, y->module->path);

	if (!r)
		r = (x->module->key > y->module->key) - (x->module->key < y->module->key);
	return r ? r : (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int compare_samples(const void *a, const void *b)
{
	const struct md_row *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return compare_address(a, b);
}

static int compare_weight(const void *a, const void *b)
{
	const struct md_row *x = a, *y = b;

	if (x->weight < y->weight || x->weight > y->weight)
		return x->weight < y->weight ? 1 : -1;
	return compare_samples(a, b);
}

static int compare_name(const void *a, const void *b)
{
	const struct md_row *x = a, *y = b;
	const char *nx = x->function ? x->function : "", *ny = y->function ? y->function : "";
	int r = strcmp(nx, ny);

	return r ? r : compare_address(a, b);
}

void md_rows_sort(struct md_rows *rows, enum md_sort by)
{
	static int (*const compare[])(const void *, const void *) = {
		[MD_SORT_SAMPLES] = compare_samples,
		[MD_SORT_WEIGHT] = compare_weight,
		[MD_SORT_NAME] = compare_name,
		[MD_SORT_ADDRESS] = compare_address,
	};

	if (rows->nr)
		qsort(rows->rows, rows->nr, sizeof(*rows->rows), compare[by]);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static bool is_wanted(const struct md_code *code, uint32_t f, const char *wanted)
{
	unsigned long long address;
	char *end;

	if (!wanted)
		return true;
	if (f == MP_NONE)
		return false;
	if (!strcmp(code->cfg->funcs[f].name, wanted))
		return true;
	if (strncmp(wanted, "0x", 2))
		return false;
	address = strtoull(wanted, &end, 16);
	return !*end && mp_cfg_func_at(code->cfg, address) == f;
}

static char *name_of(const struct md_code *code, uint32_t f)
{
	char buf[32];

	return strdup(md_code_function_name(&code->cfg->funcs[f], buf));
}

int md_rows_of_functions(struct md_rows *rows, const struct mp_module *module,
			 const struct md_code *code, const char *function,
			 const struct mp_ip_count *counts, size_t nr)
{
	const struct mp_cfg *cfg = code->cfg;
	/* The last element is for samples outside of all functions. */
	uint64_t *samples = calloc((size_t)cfg->nr_funcs + 1, sizeof(*samples));
	uint64_t first_outside = 0;
	int r = 0;

	if (!samples)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		uint32_t f = mp_cfg_func_at(cfg, counts[i].vaddr);

		if (f == MP_NONE) {
			f = cfg->nr_funcs;
			if (!samples[f])
				first_outside = counts[i].vaddr;
		}
		samples[f] += counts[i].count;
	}
	for (uint32_t f = 0; f <= cfg->nr_funcs && !r; f++) {
		struct md_row row = {.module = module, .samples = samples[f]};

		if (!samples[f] || !is_wanted(code, f < cfg->nr_funcs ? f : MP_NONE, function))
			continue;
		row.vaddr = first_outside;
		if (f < cfg->nr_funcs) {
			row.vaddr = cfg->funcs[f].vaddr;
			row.size = cfg->funcs[f].size;
			row.function = name_of(code, f);
			if (!row.function)
				r = -ENOMEM;
		}
		if (!r)
			r = md_rows_add(rows, &row);
	}
	free(samples);
	return r;
}

static int add_block(struct md_rows *rows, const struct mp_module *module,
		     const struct md_code *code, uint32_t b, uint64_t samples)
{
	const struct mp_block *block = &code->cfg->blocks[b];
	struct md_row row = {
		.module = module,
		.vaddr = block->vaddr,
		.size = block->size,
		.offset = block->vaddr - code->cfg->funcs[block->func].vaddr,
		.samples = samples,
		.nr_insns = block->nr_insns,
		.weight = mp_profile_weight(samples, block->nr_insns),
	};

	row.function = name_of(code, block->func);
	return row.function ? md_rows_add(rows, &row) : -ENOMEM;
}

/* Adds an address outside of all blocks: in a function that could not be decoded, or in none. */
static int add_loose(struct md_rows *rows, const struct mp_module *module,
		     const struct md_code *code, uint32_t f, const struct mp_ip_count *count)
{
	struct md_row row = {.module = module, .vaddr = count->vaddr, .samples = count->count};

	if (f != MP_NONE) {
		row.offset = count->vaddr - code->cfg->funcs[f].vaddr;
		row.function = name_of(code, f);
		if (!row.function)
			return -ENOMEM;
	}
	return md_rows_add(rows, &row);
}

int md_rows_of_blocks(struct md_rows *rows, const struct mp_module *module,
		      const struct md_code *code, const char *function,
		      const struct mp_ip_count *counts, size_t nr)
{
	const struct mp_cfg *cfg = code->cfg;
	uint64_t *samples = calloc((size_t)cfg->nr_blocks + 1, sizeof(*samples));
	int r = 0;

	if (!samples)
		return -ENOMEM;
	for (size_t i = 0; i < nr && !r; i++) {
		uint32_t b = mp_cfg_block_at(cfg, counts[i].vaddr), f;

		if (b != MP_NONE) {
			samples[b] += counts[i].count;
			continue;
		}
		f = mp_cfg_func_at(cfg, counts[i].vaddr);
		if (is_wanted(code, f, function))
			r = add_loose(rows, module, code, f, &counts[i]);
	}
	for (uint32_t b = 0; b < cfg->nr_blocks && !r; b++)
		if (samples[b] && is_wanted(code, cfg->blocks[b].func, function))
			r = add_block(rows, module, code, b, samples[b]);
	free(samples);
	return r;
}

int md_rows_of_addresses(struct md_rows *rows, const struct mp_module *module,
			 const struct mp_ip_count *counts, size_t nr)
{
	int r = 0;

	for (size_t i = 0; i < nr && !r; i++) {
		struct md_row row = {.module = module,
				     .bare = true,
				     .vaddr = counts[i].vaddr,
				     .samples = counts[i].count};

		r = md_rows_add(rows, &row);
	}
	return r;
}

/*
 * Number of entries from @copies[0] on that lie in one copy of block @b: a copy keeps the order of
 * its original's instructions.
 */
static size_t in_one_copy(const struct md_code *code, uint32_t b,
			  const struct mp_copy_count *copies, size_t nr, uint64_t *samples)
{
	size_t n = 0;

	*samples = 0;
	do
		*samples += copies[n++].count;
	while (n < nr && b != MP_NONE && copies[n].original > copies[n - 1].original &&
	       mp_cfg_block_at(code->cfg, copies[n].original) == b);
	return n;
}

int md_rows_of_copies(struct md_rows *rows, const struct mp_module *module,
		      const struct md_code *code, const char *function,
		      const struct mp_copy_count *copies, size_t nr)
{
	int r = 0;

	for (size_t i = 0, n; i < nr && !r; i += n) {
		struct md_row row = {.module = module,
				     .bare = !code,
				     .vaddr = copies[i].vaddr,
				     .original = copies[i].original};
		uint32_t b = code ? mp_cfg_block_at(code->cfg, row.original) : MP_NONE;
		uint32_t f = code ? mp_cfg_func_at(code->cfg, row.original) : MP_NONE;

		n = in_one_copy(code, b, copies + i, nr - i, &row.samples);
		if (function && (!code || !is_wanted(code, f, function)))
			continue;
		if (b != MP_NONE) {
			/* From the first sampled instruction back to the start of the copy. */
			row.vaddr -= row.original - code->cfg->blocks[b].vaddr;
			row.original = code->cfg->blocks[b].vaddr;
			row.size = code->cfg->blocks[b].size;
		}
		if (f != MP_NONE) {
			row.offset = row.original - code->cfg->funcs[f].vaddr;
			row.function = name_of(code, f);
			if (!row.function)
				return -ENOMEM;
		}
		r = md_rows_add(rows, &row);
	}
	return r;
}

int md_rows_of_paths(struct md_rows *rows, const struct mp_module *module,
		     const struct md_code *code, const char *function,
		     const struct mp_path_count *paths, size_t nr)
{
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];
	int r = 0;

	for (size_t i = 0; i < nr && !r; i++) {
		uint32_t n = mp_path_key_decode(paths[i].key, paths[i].key_size, vaddrs, NULL);
		struct md_row row = {.module = module, .samples = paths[i].count, .nr_path = n};
		uint32_t f = MP_NONE;

		if (!n)
			continue; /* the store has no empty paths */
		row.vaddr = vaddrs[n - 1];
		if (code)
			f = mp_cfg_func_at(code->cfg, row.vaddr);
		if (function && (!code || !is_wanted(code, f, function)))
			continue;
		row.path = malloc(n * sizeof(*row.path));
		if (f != MP_NONE)
			row.function = name_of(code, f);
		if (!row.path || (f != MP_NONE && !row.function)) {
			free(row.path);
			free(row.function);
			return -ENOMEM;
		}
		memcpy(row.path, vaddrs, n * sizeof(*row.path));
		r = md_rows_add(rows, &row);
	}
	return r;
}
