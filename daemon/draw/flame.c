// SPDX-License-Identifier: Apache-2.0
/* flame - builds, merges and rounds the tree; see flame.h. */
#include "daemon/draw/flame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/demangle.h"
#include "daemon/code/stats_rows.h"

void md_flame_fini(struct md_flame *root)
{
	for (size_t i = 0; i < root->nr; i++)
		md_flame_fini(&root->children[i]);
	free(root->children);
	free(root->name);
	*root = (struct md_flame){0};
}

/* Appends a child. Ownership: takes @name. Return: NULL: no memory, or @name is NULL. */
static struct md_flame *add_child(struct md_flame *node, char *name, uint64_t vaddr)
{
	if (node->nr == node->max && name) {
		size_t max = node->max ? 2 * node->max : 8;
		struct md_flame *bigger = reallocarray(node->children, max, sizeof(*bigger));

		if (!bigger) {
			free(name);
			return NULL;
		}
		node->children = bigger;
		node->max = max;
	}
	if (!name)
		return NULL;
	node->children[node->nr] = (struct md_flame){.name = name, .vaddr = vaddr};
	return &node->children[node->nr++];
}

static char *function_name(const struct md_row *row)
{
	char *name = row->function ? md_demangle(row->function) : NULL;

	return name ? name : strdup(row->function ? row->function : "(no function)");
}

static char *block_name(const struct md_row *row)
{
	char name[64];

	if (row->function)
		snprintf(name, sizeof(name), "%s0x%" PRIx64, (int64_t)row->offset < 0 ? "-" : "+",
			 (int64_t)row->offset < 0 ? -row->offset : row->offset);
	else
		snprintf(name, sizeof(name), "0x%" PRIx64, row->vaddr);
	return strdup(name);
}

/* Sorts rows by their functions' addresses; rows outside of functions come last. */
static int compare_functions(const void *a, const void *b)
{
	const struct md_row *x = a, *y = b;
	uint64_t fx = x->function ? x->vaddr - x->offset : UINT64_MAX;
	uint64_t fy = y->function ? y->vaddr - y->offset : UINT64_MAX;

	if (fx != fy)
		return fx < fy ? -1 : 1;
	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int add_rows(struct md_flame *module, const struct md_rows *rows)
{
	struct md_flame *function = NULL;

	for (size_t i = 0; i < rows->nr; i++) {
		const struct md_row *row = &rows->rows[i];
		struct md_flame *block;
		bool same = i && !row->function == !row[-1].function &&
			    (!row->function ||
			     row->vaddr - row->offset == row[-1].vaddr - row[-1].offset);

		if (!same)
			function = add_child(module, function_name(row),
					     row->function ? row->vaddr - row->offset : 0);
		if (!function)
			return -ENOMEM;
		block = add_child(function, block_name(row), row->vaddr);
		if (!block)
			return -ENOMEM;
		block->samples = row->samples;
		block->nr_insns = row->nr_insns;
		function->samples += row->samples;
	}
	return 0;
}

int md_flame_add_module(struct md_flame *root, const struct mp_module *module,
			const struct md_code *code, const struct md_ksyms *ksyms,
			const struct mp_ip_count *counts, size_t nr)
{
	struct md_flame *node = add_child(root, strdup(basename(module->path)), 0);
	struct md_rows rows = {0};
	char id[80];
	int r = 0;

	if (!node)
		return -ENOMEM;
	if (module->id.build_id_len)
		mp_id_format_build_id(&module->id, id);
	else
		snprintf(id, sizeof(id), "%016" PRIx64, module->id.text_hash);
	snprintf(node->id, sizeof(node->id), "%.8s", id);
	for (size_t i = 0; i < nr; i++)
		node->samples += counts[i].count;
	root->samples += node->samples;
	if (code)
		r = md_rows_of_blocks(&rows, module, code, NULL, counts, nr);
	else if (ksyms)
		r = md_rows_of_kernel(&rows, module, ksyms, true, NULL, counts, nr);
	if (rows.nr)
		qsort(rows.rows, rows.nr, sizeof(*rows.rows), compare_functions);
	if (!r)
		r = add_rows(node, &rows);
	md_rows_free(&rows);
	return r;
}

int md_flame_add_build_ids(struct md_flame *root)
{
	bool *shared = calloc(root->nr + 1, sizeof(*shared));
	int r = shared ? 0 : -ENOMEM;

	for (size_t i = 0; i < root->nr && !r; i++)
		for (size_t j = 0; j < i; j++)
			if (!strcmp(root->children[i].name, root->children[j].name))
				shared[i] = shared[j] = true;
	for (size_t i = 0; i < root->nr && !r; i++) {
		struct md_flame *module = &root->children[i];
		char *name;

		if (!shared[i])
			continue;
		if (asprintf(&name, "%s %s", module->name, module->id) < 0) {
			r = -ENOMEM;
			break;
		}
		free(module->name);
		module->name = name;
	}
	free(shared);
	return r;
}

static int compare_samples(const void *a, const void *b)
{
	const struct md_flame *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return strcmp(x->name, y->name);
}

void md_flame_sort(struct md_flame *root)
{
	if (root->nr)
		qsort(root->children, root->nr, sizeof(*root->children), compare_samples);
	for (size_t i = 0; i < root->nr; i++)
		md_flame_sort(&root->children[i]);
}

void md_flame_merge(struct md_flame *root, double least, double least_above)
{
	size_t kept = 0;

	if ((double)root->samples < least_above) {
		for (size_t i = 0; i < root->nr; i++)
			md_flame_fini(&root->children[i]);
		root->nr = 0;
	}
	while (kept < root->nr && (double)root->children[kept].samples >= least)
		kept++;
	if (root->nr > kept + 1) {
		struct md_flame *others = &root->children[kept];

		others->nr_merged = root->nr - kept;
		for (size_t i = kept + 1; i < root->nr; i++) {
			others->samples += root->children[i].samples;
			md_flame_fini(&root->children[i]);
		}
		for (size_t i = 0; i < others->nr; i++)
			md_flame_fini(&others->children[i]);
		others->nr = 0;
		others->vaddr = 0;
		root->nr = kept + 1;
	}
	for (size_t i = 0; i < root->nr; i++)
		md_flame_merge(&root->children[i], least, least_above);
}

/* ---- percentages --------------------------------------------------------------------------- */

struct remainder {
	size_t child;
	uint64_t left;
};

static int compare_remainders(const void *a, const void *b)
{
	const struct remainder *x = a, *y = b;

	if (x->left != y->left)
		return x->left < y->left ? 1 : -1;
	return x->child < y->child ? -1 : x->child > y->child;
}

int md_flame_round(struct md_flame *root)
{
	struct remainder *remainders = calloc(root->nr + 1, sizeof(*remainders));
	unsigned int given = 0;
	int r = 0;

	if (!remainders)
		return -ENOMEM;
	for (size_t i = 0; i < root->nr && root->samples; i++) {
		struct md_flame *child = &root->children[i];
		unsigned __int128 share = (unsigned __int128)child->samples * root->tenths;

		child->tenths = (unsigned int)(share / root->samples);
		remainders[i] = (struct remainder){i, (uint64_t)(share % root->samples)};
		given += child->tenths;
	}
	if (root->nr)
		qsort(remainders, root->nr, sizeof(*remainders), compare_remainders);
	for (size_t i = 0; i < root->nr && given < root->tenths; i++, given++)
		root->children[remainders[i].child].tenths++;
	free(remainders);
	for (size_t i = 0; i < root->nr && !r; i++)
		r = md_flame_round(&root->children[i]);
	return r;
}
