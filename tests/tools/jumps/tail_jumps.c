// SPDX-License-Identifier: Apache-2.0
/*
 * tail_jumps - says how often the moved code of an output jumps from one function to another, and how many of these
 * jumps a layout could leave out. For scripts/bench/bench-small-rewrites.
 *
 *	tail-jumps OUTPUT EDGES
 *
 * EDGES: exact counts of OUTPUT (tests/plugin/branches.c, edges=). OUTPUT needs its symbols. Prints lines `NAME COUNT`,
 * executions of the file's own code:
 *  taken		taken conditional branches and direct jumps
 *  jumps		direct jumps from a copy of a function to the entry of the copy of another one
 *  branches		the same by conditional branches
 *  neighbours		of the jumps: each function falls into one other, each is fallen into by one other
 * and one line for each place of the first two, by the originals' addresses: `site KIND FROM TO COUNT FUNCTION FUNCTION'.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/note/map.h"
#include "tests/support/counted_tool.h"

struct function {
	uint64_t vaddr, size; /* of the original */
	const char *name;
	size_t name_len; /* without suffixes that say which part it is */
};

struct site {
	uint64_t from, to, count; /* addresses of the original */
	const struct function *source, *target;
	bool conditional;
};

struct tail_jumps {
	const struct mp_map *map;
	struct function *functions; /* ascending vaddr */
	size_t nr_functions;
	struct site *sites;
	size_t nr_sites;
	uint64_t taken;
};

static int compare_functions(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static size_t length_of_name(const char *name)
{
	static const char *const suffixes[] = {".morph.old", ".cold"};
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		size_t n = strlen(suffixes[i]);

		if (len > n && !strcmp(name + len - n, suffixes[i]))
			return len - n;
		if (len > n && !strncmp(name + len - n, suffixes[i], n))
			len -= n;
	}
	return len;
}

/* Functions where the original has them: symbols of moved functions name their old code. */
static int find_functions(const struct mp_elf *elf, struct tail_jumps *t)
{
	t->functions = calloc((size_t)elf->nr_symbols + 1, sizeof(*t->functions));
	if (!t->functions)
		return -1;
	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *symbol = &elf->symbols[i];

		if (symbol->dynamic || symbol->type != STT_FUNC || !symbol->size ||
		    mp_map_piece_at(t->map, symbol->vaddr) < t->map->nr_pieces)
			continue;
		t->functions[t->nr_functions++] = (struct function){
			symbol->vaddr, symbol->size, symbol->name, length_of_name(symbol->name)};
	}
	qsort(t->functions, t->nr_functions, sizeof(*t->functions), compare_functions);
	return 0;
}

static const struct function *function_at(const struct tail_jumps *t, uint64_t vaddr)
{
	size_t low = 0, high = t->nr_functions;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->functions[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || vaddr - t->functions[low - 1].vaddr >= t->functions[low - 1].size)
		return NULL;
	return &t->functions[low - 1];
}

static bool is_same(const struct function *a, const struct function *b)
{
	return a == b || (a->name_len == b->name_len && !memcmp(a->name, b->name, a->name_len));
}

static void add_edge(struct tail_jumps *t, const struct exact_edge *edge)
{
	struct site site = {.count = edge->count, .conditional = edge->kind == EXACT_TAKEN};

	if (edge->kind != EXACT_TAKEN && edge->kind != EXACT_JUMP)
		return;
	t->taken += edge->count;
	if (edge->to == EXACT_ELSEWHERE ||
	    mp_map_piece_at(t->map, edge->from) == t->map->nr_pieces ||
	    mp_map_piece_at(t->map, edge->to) == t->map->nr_pieces ||
	    mp_map_call_at(t->map, edge->to))
		return;
	site.from = mp_map_original(t->map, edge->from);
	site.to = mp_map_original(t->map, edge->to);
	site.source = function_at(t, site.from);
	site.target = function_at(t, site.to);
	if (site.source && site.target && site.to == site.target->vaddr &&
	    !is_same(site.source, site.target))
		t->sites[t->nr_sites++] = site;
}

static int compare_counts(const void *a, const void *b)
{
	const struct site *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* The function at the end of the chain of functions that fall into one another, from @i on. */
static size_t end_of_chain(const size_t *next, size_t i)
{
	while (next[i] != SIZE_MAX)
		i = next[i];
	return i;
}

/* Executions of jumps that are left out if functions are put behind one another, the best first. */
static uint64_t neighbours(const struct tail_jumps *t)
{
	size_t *next = malloc((t->nr_functions + 1) * sizeof(*next));
	bool *has_one_before = calloc(t->nr_functions + 1, sizeof(*has_one_before));
	uint64_t count = 0;

	for (size_t i = 0; next && i < t->nr_functions; i++)
		next[i] = SIZE_MAX;
	for (size_t i = 0; next && has_one_before && i < t->nr_sites; i++) {
		const struct site *site = &t->sites[i];
		size_t from = (size_t)(site->source - t->functions);
		size_t to = (size_t)(site->target - t->functions);

		if (site->conditional || next[from] != SIZE_MAX || has_one_before[to] ||
		    end_of_chain(next, to) == from)
			continue;
		next[from] = to;
		has_one_before[to] = true;
		count += site->count;
	}
	free(next);
	free(has_one_before);
	return count;
}

static void print(const struct tail_jumps *t)
{
	uint64_t counts[2] = {0};

	for (size_t i = 0; i < t->nr_sites; i++)
		counts[t->sites[i].conditional] += t->sites[i].count;
	printf("taken %" PRIu64 "\njumps %" PRIu64 "\nbranches %" PRIu64 "\nneighbours %" PRIu64
	       "\n",
	       t->taken, counts[0], counts[1], neighbours(t));
	for (size_t i = 0; i < t->nr_sites; i++) {
		const struct site *site = &t->sites[i];

		printf("site %s %#" PRIx64 " %#" PRIx64 " %" PRIu64 " %.*s %.*s\n",
		       site->conditional ? "branch" : "jump", site->from, site->to, site->count,
		       (int)site->source->name_len, site->source->name, (int)site->target->name_len,
		       site->target->name);
	}
}

static int analyse(const struct mp_elf *elf, const struct exact_counts *counts, struct mp_err *err)
{
	struct tail_jumps t = {0};
	struct mp_map *map = NULL;
	int rc = mp_map_read(elf, &map, err);

	if (rc)
		return rc == -ENOENT ? mp_err_set(err, ENOENT, "not an output of morph-optimize")
				     : rc;
	t.map = map;
	t.sites = calloc(counts->nr_edges + 1, sizeof(*t.sites));
	if (!t.sites || find_functions(elf, &t)) {
		rc = mp_err_set(err, ENOMEM, "out of memory");
		goto out;
	}
	for (size_t i = 0; i < counts->nr_edges; i++)
		add_edge(&t, &counts->edges[i]);
	qsort(t.sites, t.nr_sites, sizeof(*t.sites), compare_counts);
	print(&t);
	rc = 0;
out:
	free(t.sites);
	free(t.functions);
	mp_map_free(map);
	return rc;
}

int main(int argc, char **argv)
{
	return counted_tool(argc, argv, "tail-jumps", MP_ELF_SYMBOLS, analyse);
}
