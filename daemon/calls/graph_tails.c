// SPDX-License-Identifier: Apache-2.0
/* graph_tails - follows tail calls forward from a call, and back from a function; see graph_tails.h. */
#include "daemon/calls/graph_tails.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/base/search.h"
#include "libprof/callgraph/call_arguments.h"

/* Tail calls that follow one another are searched so far, and no more jumps than that. */
#define TAIL_DEPTH  4
#define TAIL_VISITS 256

/* Functions whose address may stand in a pointer. */
#define POINTED (MP_FUNC_ADDRESS_TAKEN | MP_FUNC_POINTED)

/* A tail call of a function whose address may stand in a pointer. */
struct thunk {
	struct md_graph_function to, function;
	struct md_graph_site site;
};

struct md_graph_tails {
	const struct md_call_graph *graph;
	struct thunk *thunks; /* by the function that they lead to */
	size_t nr;
};

static bool is_tail(const struct mp_call_site *site)
{
	return site->kind == MP_CALL_TAIL || site->kind == MP_CALL_INDIRECT_TAIL;
}

static bool is_same(const struct md_graph_function *a, const struct md_graph_function *b)
{
	return a->module == b->module && a->function == b->function;
}

static bool is_pointed(const struct md_call_graph *graph, const struct md_graph_function *f)
{
	return graph->modules[f->module].code.cfg->funcs[f->function].flags & POINTED;
}

/* ---- thunks ---------------------------------------------------------------------------------- */

static int compare_functions(const struct md_graph_function *x, const struct md_graph_function *y)
{
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

static int compare_thunks(const void *a, const void *b)
{
	const struct thunk *x = a, *y = b;
	int r = compare_functions(&x->to, &y->to);

	if (!r && x->site.module != y->site.module)
		r = x->site.module < y->site.module ? -1 : 1;
	return r ? r : (x->site.site > y->site.site) - (x->site.site < y->site.site);
}

/* @thunks: NULL: count only. Return: their number. */
static size_t list_thunks(const struct md_call_graph *graph, struct thunk *thunks)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < graph->nr_modules; i++) {
		const struct md_graph_module *m = &graph->modules[i];

		for (uint32_t k = 0; k < m->sites.nr; k++) {
			struct md_graph_function from = {
				i, m->code.cfg->blocks[m->sites.sites[k].block].func};

			if (!is_tail(&m->sites.sites[k]) || m->targets[k].function == MP_NONE ||
			    !is_pointed(graph, &from))
				continue;
			if (thunks)
				thunks[nr] = (struct thunk){m->targets[k], from, {i, k}};
			nr++;
		}
	}
	return nr;
}

int md_graph_tails_new(const struct md_call_graph *graph, struct md_graph_tails **out)
{
	struct md_graph_tails *t = calloc(1, sizeof(*t));

	*out = t;
	if (!t)
		return -ENOMEM;
	t->graph = graph;
	t->nr = list_thunks(graph, NULL);
	t->thunks = calloc(t->nr + 1, sizeof(*t->thunks));
	if (!t->thunks)
		return -ENOMEM;
	list_thunks(graph, t->thunks);
	if (t->nr)
		qsort(t->thunks, t->nr, sizeof(*t->thunks), compare_thunks);
	return 0;
}

void md_graph_tails_free(struct md_graph_tails *tails)
{
	if (tails)
		free(tails->thunks);
	free(tails);
}

/* Return: a thunk that leads to @to, one in @module if there is any; NULL: none. */
static const struct thunk *find_thunk(const struct md_graph_tails *t, struct md_graph_function to,
				      uint32_t module, bool elsewhere)
{
	const struct thunk *found = NULL;
	size_t low = mp_search(i, 0, t->nr, compare_functions(&t->thunks[i].to, &to) < 0);

	for (; low < t->nr && is_same(&t->thunks[low].to, &to); low++) {
		if (t->thunks[low].site.module == module)
			return &t->thunks[low];
		found = found ? found : &t->thunks[low];
	}
	return elsewhere ? found : NULL;
}

/* ---- forward --------------------------------------------------------------------------------- */

struct search {
	const struct md_call_graph *graph;
	struct md_graph_function to;
	uint32_t left;
	/* The tail call to a function that is not known that ran most. */
	struct md_graph_site open;
	double most;
};

/* Steps through the tail calls of a function. *@range, *@site: 0 at first. Return: false at the end. */
static bool next_tail(const struct md_graph_module *m, const struct mp_func *func, uint32_t *range,
		      uint32_t *site)
{
	for (; *range < func->nr_ranges; ++*range, *site = 0) {
		const struct mp_range *r = &m->code.cfg->ranges[func->first_range + *range];
		uint32_t i = *site ? *site : md_graph_first_site(m, r->start);

		for (; i < m->sites.nr && m->sites.sites[i].vaddr - r->start < r->size; i++) {
			*site = i + 1;
			if (is_tail(&m->sites.sites[i]))
				return true;
		}
	}
	return false;
}

static void note_open(struct search *s, const struct md_graph_module *m, struct md_graph_site site)
{
	double count = mp_call_site_count(m->code.cfg, &m->counts, &m->sites.sites[site.site]);

	if (s->open.site == MP_NONE || count > s->most) {
		s->open = site;
		s->most = count;
	}
}

/* Return: the jump to @to that ran most often. */
struct md_graph_site md_graph_tail_to(const struct md_call_graph *graph,
				      struct md_graph_function from, struct md_graph_function to)
{
	const struct md_graph_module *m = &graph->modules[from.module];
	const struct mp_func *func = &m->code.cfg->funcs[from.function];
	struct md_graph_site best = {from.module, MP_NONE};
	uint32_t range = 0, next = 0;
	double most = 0;

	while (next_tail(m, func, &range, &next)) {
		double count;

		if (!is_same(&m->targets[next - 1], &to))
			continue;
		count = mp_call_site_count(m->code.cfg, &m->counts, &m->sites.sites[next - 1]);
		if (best.site == MP_NONE || count > most) {
			best.site = next - 1;
			most = count;
		}
	}
	return best;
}

struct md_graph_site md_graph_tail_by_pointer(const struct md_call_graph *graph,
					      struct md_graph_function from)
{
	const struct md_graph_module *m = &graph->modules[from.module];
	const struct mp_func *func = &m->code.cfg->funcs[from.function];
	uint32_t range = 0, next = 0;

	while (next_tail(m, func, &range, &next)) {
		const struct mp_call_site *site = &m->sites.sites[next - 1];

		if (site->kind == MP_CALL_INDIRECT_TAIL && site->target &&
		    m->targets[next - 1].function == MP_NONE)
			return (struct md_graph_site){from.module, next - 1};
	}
	return (struct md_graph_site){from.module, MP_NONE};
}

struct md_graph_site md_graph_tail_open(const struct md_call_graph *graph,
					struct md_graph_function from)
{
	const struct md_graph_module *m = &graph->modules[from.module];
	const struct mp_func *func = &m->code.cfg->funcs[from.function];
	struct md_graph_site best = {from.module, MP_NONE};
	uint32_t range = 0, next = 0;
	double most = 0;

	while (next_tail(m, func, &range, &next)) {
		const struct mp_call_site *site = &m->sites.sites[next - 1];
		double count;

		if (site->kind != MP_CALL_INDIRECT_TAIL || site->target ||
		    m->targets[next - 1].function != MP_NONE)
			continue;
		count = mp_call_site_count(m->code.cfg, &m->counts, site);
		if (best.site == MP_NONE || count > most) {
			best.site = next - 1;
			most = count;
		}
	}
	return best;
}

bool md_graph_is_pointer(const struct md_call_graph *graph, struct md_graph_site site)
{
	const struct md_graph_module *m = &graph->modules[site.module];
	enum mp_call_kind kind = m->sites.sites[site.site].kind;

	/* A PLT entry is not a pointer that leads to thunks. */
	return m->targets[site.site].function == MP_NONE &&
	       (kind == MP_CALL_INDIRECT || kind == MP_CALL_INDIRECT_TAIL);
}

bool md_graph_passes(const struct md_call_graph *graph, struct md_graph_site site,
		     struct md_graph_function function)
{
	const struct md_graph_module *m = &graph->modules[site.module];

	return function.module == site.module && is_pointed(graph, &function) &&
	       mp_call_passes(m->code.cfg, &m->sites.sites[site.site], function.function);
}

/* Return: the last jump on a way of tail calls from @from to @s->to; .site MP_NONE: there is no way. */
static struct md_graph_site find_tail(struct search *s, struct md_graph_function from,
				      unsigned int depth)
{
	const struct md_graph_module *m = &s->graph->modules[from.module];
	const struct mp_func *func = &m->code.cfg->funcs[from.function];
	struct md_graph_site found = md_graph_tail_to(s->graph, from, s->to);
	uint32_t range = 0, next = 0;

	if (found.site != MP_NONE)
		return found;
	while (next_tail(m, func, &range, &next))
		if (m->targets[next - 1].function == MP_NONE)
			note_open(s, m, (struct md_graph_site){from.module, next - 1});
	range = next = 0;
	while (depth && found.site == MP_NONE && s->left && next_tail(m, func, &range, &next)) {
		const struct md_graph_function *to = &m->targets[next - 1];

		s->left--;
		if (to->function != MP_NONE && !is_same(to, &from))
			found = find_tail(s, *to, depth - 1);
	}
	return found;
}

/* Return: may data of @module point to @function? */
static bool may_point(const struct md_call_graph *graph, uint32_t module,
		      const struct md_graph_function *function)
{
	const struct md_graph_module *m = &graph->modules[module];

	if (function->module == module)
		return is_pointed(graph, function);
	for (uint32_t i = 0; i < m->nr_pointed; i++)
		if (is_same(&m->pointed[i], function))
			return true;
	return false;
}

/*
 * Code that calls through a pointer probably calls a thunk that leads to the function, if data of its
 * module do not point to the function itself.
 */
static void go_through_thunk(const struct md_graph_tails *t, struct md_graph_entry *entry,
			     struct md_graph_function function)
{
	uint32_t module = entry->site.module;
	const struct thunk *thunk;

	if (may_point(t->graph, module, &function))
		return;
	thunk = find_thunk(t, function, module, !is_pointed(t->graph, &function));
	if (!thunk || (thunk->site.module == module && thunk->site.site == entry->site.site))
		return;
	entry->first = entry->site;
	entry->through = thunk->function;
	entry->site = thunk->site;
}

struct md_graph_entry md_graph_entry_find(const struct md_graph_tails *tails,
					  struct md_graph_site site,
					  struct md_graph_function function)
{
	struct md_graph_entry entry = {site, {MP_NONE, MP_NONE}, site};
	struct md_graph_function callee = tails->graph->modules[site.module].targets[site.site];
	struct search s = {tails->graph, function, TAIL_VISITS, {0, MP_NONE}, 0};
	struct md_graph_site found;

	if (callee.function != MP_NONE) {
		if (is_same(&callee, &function))
			return entry;
		found = find_tail(&s, callee, TAIL_DEPTH);
		if (found.site == MP_NONE)
			found = s.open;
		if (found.site == MP_NONE)
			return entry;
		entry.site = found;
	}
	if (md_graph_is_pointer(tails->graph, entry.site))
		go_through_thunk(tails, &entry, function);
	return entry;
}
