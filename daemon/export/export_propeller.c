// SPDX-License-Identifier: Apache-2.0
/*
 * export_propeller - writes which basic blocks clang should put together, and in which order: the file of
 * -fbasic-block-sections=list=. Blocks that are not listed become the function's cold part.
 *
 *	!main/other_name	a function, with all its names
 *	!!0 2 1			its blocks that ran, by clang's numbers; the first block always leads
 *
 * This is version 0 of the file, which all versions of clang from 12 on read; clang 14 to 16 ignore the newer one.
 * The linker gets an order of functions by --format=order.
 *
 * Counts and jumps are those of Morph's blocks, which differ from clang's. Where one of Morph's holds several of
 * clang's, control falls from one to the next. Nothing is written before everything is known.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/export/export.h"
#include "daemon/export/export_symbols.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/elf/block_map.h"
#include "libprof/order/order_exttsp.h"

/* An order of so many blocks takes a quarter of a second at most; more keep the order that they have. */
#define ORDERED_MAX 10000
/* clang puts less padding before a block that it aligns, which belongs to no block. */
#define PADDING_MAX 64

/* Clusters, and what they are made of. */
struct propeller {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	struct mp_block_map map;
	struct md_export_symbols symbols;
	uint32_t *nr_hot; /* per function of the map */
	uint32_t *order; /* of @nr_hot blocks, indexes in map.blocks, from the function's first block on */
	/* of the function that is ordered; per block */
	const struct mp_mapped_func *func;
	double *count;
	uint32_t *place; /* among those that ran; MP_NONE: did not run */
	uint32_t *hot;	 /* per block that ran, and of the next two: index in map.blocks */
	uint32_t *sizes;
	double *weights;
	struct mp_exttsp_link *links;
	uint32_t nr_links, max_links;
};

static void propeller_fini(struct propeller *p)
{
	mp_block_map_fini(&p->map);
	md_export_symbols_fini(&p->symbols);
	free(p->nr_hot);
	free(p->order);
	free(p->count);
	free(p->place);
	free(p->hot);
	free(p->sizes);
	free(p->weights);
	free(p->links);
}

static int propeller_init(struct propeller *p, const struct md_export_module *m, struct mp_err *err)
{
	const struct md_code *code = m->code;
	size_t most = 1;
	int r = mp_block_map_read(code->elf, &p->map, err);

	if (r)
		return r;
	for (uint32_t f = 0; f < p->map.nr_funcs; f++)
		most = p->map.funcs[f].nr_blocks > most ? p->map.funcs[f].nr_blocks : most;
	p->cfg = code->cfg;
	p->counts = m->inferred;
	p->nr_hot = calloc((size_t)p->map.nr_funcs + 1, sizeof(*p->nr_hot));
	p->order = malloc(((size_t)p->map.nr_blocks + 1) * sizeof(*p->order));
	p->count = malloc(most * sizeof(*p->count));
	p->place = malloc(most * sizeof(*p->place));
	p->hot = malloc(most * sizeof(*p->hot));
	p->sizes = malloc(most * sizeof(*p->sizes));
	p->weights = malloc(most * sizeof(*p->weights));
	if (!p->nr_hot || !p->order || !p->count || !p->place || !p->hot || !p->sizes ||
	    !p->weights ||
	    md_export_symbols_init(&p->symbols, code->debug_file ? code->debug_file : code->elf))
		return mp_err_code(err, ENOMEM);
	return 0;
}

/* ---- from Morph's blocks to clang's --------------------------------------------------------- */

static const struct mp_mapped_block *block_of(const struct propeller *p, uint32_t i)
{
	return &p->map.blocks[p->func->first_block + i];
}

static bool is_last(const struct propeller *p, uint32_t i)
{
	return i + 1 == p->func->nr_blocks;
}

/* The address behind block @i and the padding that follows it. */
static uint64_t end_of(const struct propeller *p, uint32_t i)
{
	const struct mp_mapped_block *block = block_of(p, i);
	uint64_t end = block->vaddr + block->size;

	return !is_last(p, i) && block_of(p, i + 1)->vaddr - end < PADDING_MAX
		       ? block_of(p, i + 1)->vaddr
		       : end;
}

/*
 * The first block of the function that begins at @vaddr, or the one that holds it; in the padding before a block, this
 * block, to which control falls. MP_NONE: none.
 */
static uint32_t block_at(const struct propeller *p, uint64_t vaddr)
{
	uint32_t i = mp_search(k, 0, p->func->nr_blocks, block_of(p, k)->vaddr < vaddr);

	if (i < p->func->nr_blocks && block_of(p, i)->vaddr == vaddr)
		return i;
	if (!i || vaddr >= end_of(p, i - 1))
		return MP_NONE;
	return vaddr - block_of(p, i - 1)->vaddr < block_of(p, i - 1)->size ? i - 1 : i;
}

/* An empty block runs as often as the block behind it; at the end of a function it has no address of its own. */
static double count_of(const struct propeller *p, uint32_t i)
{
	const struct mp_mapped_block *block = block_of(p, i);
	bool has_code = block->size ||
			(!is_last(p, i) && block_of(p, i + 1)->vaddr == block->vaddr);
	uint32_t b = has_code ? mp_cfg_block_at(p->cfg, block->vaddr) : MP_NONE;

	if (b == MP_NONE)
		return 0;
	/* A block with samples has run, even if inference gave it the count 0. */
	return p->counts->block[b] > 0
		       ? p->counts->block[b]
		       : mp_profile_weight(p->counts->samples[b], p->cfg->blocks[b].nr_insns);
}

static int add_link(struct propeller *p, uint32_t from, uint32_t to, double count, bool falls)
{
	if (from == to || !(count > 0) || p->place[from] == MP_NONE || p->place[to] == MP_NONE)
		return 0;
	return mp_push(p->links, p->nr_links, p->max_links,
		       (struct mp_exttsp_link){p->place[from], p->place[to], count,
					       falls ? count : 0});
}

/* Adds the ways out of Morph's block @b, which ends in clang's block @i. */
static int link_edges(struct propeller *p, uint32_t i, uint32_t b)
{
	const struct mp_block *block = &p->cfg->blocks[b];
	int r = 0;

	for (uint32_t k = 0; k < block->nr_edges && !r; k++) {
		const struct mp_edge *edge = &p->cfg->edges[block->first_edge + k];
		uint32_t to = block_at(p, p->cfg->blocks[edge->to].vaddr);

		if (to != MP_NONE)
			r = add_link(p, i, to, p->counts->edge[block->first_edge + k],
				     edge->kind != MP_EDGE_TABLE);
	}
	return r;
}

/* Adds the ways out of clang's block @i, and the fall into it if Morph's block began before it. */
static int link_block(struct propeller *p, uint32_t i)
{
	const struct mp_mapped_block *block = block_of(p, i), *before = i ? block - 1 : NULL;
	uint32_t b = mp_cfg_block_at(p->cfg, block->vaddr);
	int r = 0;

	if (b == MP_NONE)
		return 0;
	if (before && end_of(p, i - 1) == block->vaddr &&
	    (!before->size || p->cfg->blocks[b].vaddr < block->vaddr))
		r = add_link(p, i - 1, i, p->count[i], true);
	/* The blocks of one part stand together in the array; those of any other part may follow. */
	for (bool first = true; !r && b < p->cfg->nr_blocks; b++, first = false) {
		const struct mp_block *own = &p->cfg->blocks[b];

		if ((!first && own->vaddr - block->vaddr >= block->size) ||
		    own->vaddr + own->size > end_of(p, i))
			break;
		r = link_edges(p, i, b);
	}
	return r;
}

/* ---- clusters ------------------------------------------------------------------------------ */

/*
 * Is an order found in time? clang makes few empty blocks, but a hostile file may have as many as it has bytes, and
 * blocks without links cost most.
 */
static bool is_ordered(const struct mp_exttsp *problem)
{
	uint32_t nr_empty = 0;

	for (uint32_t i = 0; i < problem->nr_blocks; i++)
		nr_empty += !problem->sizes[i];
	return problem->nr_blocks <= ORDERED_MAX && nr_empty <= problem->nr_blocks / 2 + 1;
}

/* Numbers the blocks that ran, and the first. Return: how many; 0: the function did not run. */
static uint32_t find_hot(struct propeller *p, uint32_t *entry)
{
	uint32_t nr = 0;
	bool ran = false;

	for (uint32_t i = 0; i < p->func->nr_blocks; i++) {
		bool is_entry = block_of(p, i)->number == p->func->entry;

		p->count[i] = count_of(p, i);
		ran |= p->count[i] > 0;
		p->place[i] = p->count[i] > 0 || is_entry ? nr : MP_NONE;
		if (p->place[i] == MP_NONE)
			continue;
		p->sizes[nr] = block_of(p, i)->size;
		p->weights[nr] = p->count[i];
		p->hot[nr++] = p->func->first_block + i;
		if (is_entry)
			*entry = p->place[i];
	}
	return ran ? nr : 0;
}

/* The first block, then all others as they lie. */
static void keep_order(uint32_t *order, const struct mp_exttsp *problem)
{
	uint32_t nr = 0;

	order[nr++] = problem->entry;
	for (uint32_t i = 0; i < problem->nr_blocks; i++)
		if (i != problem->entry)
			order[nr++] = i;
}

/* Finds the cluster of function @f of the map. Return: 0, -ENOMEM. */
static int order_function(struct propeller *p, uint32_t f)
{
	uint32_t *order = p->order + p->map.funcs[f].first_block;
	struct mp_exttsp problem = {.sizes = p->sizes, .counts = p->weights};
	int r = 0;

	p->func = &p->map.funcs[f];
	problem.nr_blocks = find_hot(p, &problem.entry);
	p->nr_links = 0;
	for (uint32_t i = 0; problem.nr_blocks && i < p->func->nr_blocks && !r; i++)
		if (p->place[i] != MP_NONE)
			r = link_block(p, i);
	problem.links = p->links;
	problem.nr_links = p->nr_links;
	if (problem.nr_blocks && !is_ordered(&problem))
		keep_order(order, &problem);
	else if (!r && problem.nr_blocks)
		r = mp_exttsp_order(&problem, order);
	for (uint32_t i = 0; i < problem.nr_blocks && !r; i++)
		order[i] = p->hot[order[i]];
	p->nr_hot[f] = problem.nr_blocks;
	return r;
}

/* ---- the file ------------------------------------------------------------------------------ */

/* clang looks functions up by their names alone, so one that two functions have is of no use. */
static bool is_usable(const struct md_export_symbol *symbol)
{
	const unsigned char *name = (const unsigned char *)symbol->symbol->name;

	for (const unsigned char *p = name; *p; p++)
		if (*p <= ' ' || *p == 0x7f || *p == '/')
			return false;
	return !symbol->nr_same && name[0] != '!';
}

/* Writes the names of the function at @vaddr to @out, which may be NULL. Return: how many it has. */
static size_t put_names(FILE *out, const struct propeller *p, uint64_t vaddr)
{
	size_t nr, nr_usable = 0;
	const struct md_export_symbol *symbols = md_export_symbols_at(&p->symbols, vaddr, &nr);

	for (size_t i = 0; i < nr; i++) {
		if (!is_usable(&symbols[i]))
			continue;
		if (out)
			fprintf(out, "%c%s", nr_usable ? '/' : '!', symbols[i].symbol->name);
		nr_usable++;
	}
	return nr_usable;
}

static void put_function(FILE *out, const struct propeller *p, uint32_t f)
{
	const struct mp_mapped_func *func = &p->map.funcs[f];

	put_names(out, p, func->vaddr);
	fputs("\n!!", out);
	for (uint32_t i = 0; i < p->nr_hot[f]; i++)
		fprintf(out, "%s%" PRIu32, i ? " " : "",
			p->map.blocks[p->order[func->first_block + i]].number);
	fputc('\n', out);
}

/* Finds the clusters of all functions that can be named. */
static int order_all(struct propeller *p, struct md_export *e, const char *path, struct mp_err *err)
{
	bool any = false;

	for (uint32_t f = 0; f < p->map.nr_funcs; f++) {
		if (order_function(p, f))
			return mp_err_code(err, ENOMEM);
		if (p->nr_hot[f] && !put_names(NULL, p, p->map.funcs[f].vaddr)) {
			e->nr_unnamed++;
			p->nr_hot[f] = 0;
		}
		any |= p->nr_hot[f] > 0;
	}
	return any ? 0
		   : mp_err_set(err, ENODATA,
				"%s: no function that ran is in its map of basic blocks", path);
}

static int propeller_module(struct md_export *e, const struct md_export_module *m,
			    struct mp_err *err)
{
	struct propeller p = {0};
	int r = propeller_init(&p, m, err);

	if (!r)
		r = order_all(&p, e, m->code->elf->path, err);
	for (uint32_t f = 0; f < p.map.nr_funcs && !r; f++)
		if (p.nr_hot[f])
			put_function(e->out, &p, f);
	propeller_fini(&p);
	if (!r)
		md_export_count_blocks(e, m);
	return r;
}

const struct md_export_format md_export_propeller = {
	.name = "propeller",
	.needs = MD_EXPORT_CODE | MD_EXPORT_COUNTS | MD_EXPORT_EDGES | MD_EXPORT_ONE,
	.module = propeller_module,
};
