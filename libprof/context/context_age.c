// SPDX-License-Identifier: Apache-2.0
/*
 * context_age - rates from the sums of a tree; see context_age.h.
 *
 * Siblings in the same function are call sites of the same activations. Of such a group below the node M:
 *  seen: samples in which the caller's activation, at M, looks old
 *  old:  of them, those in which the group's activation looks old as well
 */
#include "libprof/context/context_age.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct sibling {
	uint64_t module, function;
	uint32_t node;
};

/* Calls that return to the same address, on all paths. */
struct length {
	uint64_t module, vaddr, total;
};

struct group {
	double total; /* samples */
	double old, seen;
};

static double looks_old(const struct mp_context_node *node)
{
	return node->nr_new < node->total ? (double)(node->total - node->nr_new) : 0;
}

/* ---- mean lengths --------------------------------------------------------------------------- */

static int compare_lengths(const void *a, const void *b)
{
	const struct length *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

/* Adds up the samples of all nodes with the same return address. Return: NULL: no memory. */
static struct length *sum_lengths(const struct mp_context_tree *tree, size_t *nr_out)
{
	struct length *v = calloc(tree->nr_nodes, sizeof(*v));
	size_t nr = 0, kept = 0;

	if (!v)
		return NULL;
	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		const struct mp_context_node *n = &tree->nodes[i];

		if (n->kind == MP_CONTEXT_CALL)
			v[nr++] = (struct length){tree->modules[n->module], n->vaddr, n->total};
	}
	qsort(v, nr, sizeof(*v), compare_lengths);
	for (size_t i = 0; i < nr; i++) {
		if (kept && !compare_lengths(&v[kept - 1], &v[i]))
			v[kept - 1].total += v[i].total;
		else
			v[kept++] = v[i];
	}
	*nr_out = kept;
	return v;
}

/* ---- rates ---------------------------------------------------------------------------------- */

static int compare_siblings(const void *a, const void *b)
{
	const struct sibling *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Collects the children of @parent, those in the same function one after the other. */
static size_t collect_children(const struct mp_context_tree *tree,
			       const struct mp_context_facts *facts, uint32_t parent,
			       struct sibling *v)
{
	size_t nr = 0;

	for (uint32_t i = tree->nodes[parent].first; i; i = tree->nodes[i].next) {
		struct mp_context_key key = mp_context_key_of(tree, i);

		v[nr] = (struct sibling){key.module, 0, i};
		if (key.kind == MP_CONTEXT_FUNCTION)
			v[nr].function = key.vaddr;
		else if (key.kind == MP_CONTEXT_CALL && facts->function)
			v[nr].function = facts->function(facts->arg, &key);
		nr++;
	}
	if (facts->function)
		qsort(v, nr, sizeof(*v), compare_siblings);
	return nr;
}

/*
 * Without knowledge of functions, all siblings are one group. A sibling whose function is not known is a
 * group of its own.
 */
static bool is_same_group(const struct mp_context_facts *facts, const struct sibling *a,
			  const struct sibling *b)
{
	return !facts->function ||
	       (a->function && a->function == b->function && a->module == b->module);
}

/* @above: samples in which the activation that made the call looks old. */
static struct mp_context_rate rate_of(const struct group *g, double above, double length)
{
	struct mp_context_rate r = {0};
	double ended = fmax(0, g->seen - g->old);

	if (g->seen <= 0 || above <= 0)
		return (struct mp_context_rate){.least = 1, .most = 1, .highest = 1, .ends = 1};
	r.same = fmin(1, g->seen / above);
	r.least = fmin(1, fmax(0, 1 - g->old / g->seen));
	/* Samples show only the endings after which the stack looks different. Adding one keeps few samples harmless. */
	r.most = fmin(1, fmax(r.least, r.least * g->seen / (g->seen * (1 - r.same) + 1)));
	/* The numbers of endings that were seen varies; so few that none was seen may have been three. */
	r.highest = fmin(1, (ended + 2 * sqrt(ended) + 3) / fmax(g->seen * (1 - r.same), 1));
	r.highest = fmax(r.highest, r.most);
	r.ends = sqrt(r.least * r.most);
	if (length > 0)
		r.ends = fmin(r.most, fmax(r.least, 1 / (1 + length)));
	return r;
}

/* The tree and what is known of its nodes: those up to the one whose children are looked at. */
struct rates {
	const struct mp_context_tree *tree;
	const struct mp_context_facts *facts;
	struct mp_context_rate *v;
	double *old; /* of each node: samples in which its group looks old */
	struct sibling *siblings;
	struct length *lengths;
	size_t nr_lengths;
};

/* Return: mean length of the calls that return to @node, in distances of samples; 0: not known. */
static double length_of(const struct rates *r, uint32_t node)
{
	struct mp_context_key key = mp_context_key_of(r->tree, node);
	struct length wanted = {key.module, key.vaddr, 0}, *found;
	double calls;

	if (key.kind != MP_CONTEXT_CALL || !r->facts->calls)
		return 0;
	calls = r->facts->calls(r->facts->arg, &key);
	found = bsearch(&wanted, r->lengths, r->nr_lengths, sizeof(*r->lengths), compare_lengths);
	return found && calls > 0 ? (double)found->total / calls : 0;
}

static void add_sibling(const struct mp_context_node *node, struct group *g)
{
	g->total += (double)node->total;
	g->old += looks_old(node);
}

static void rate_children(struct rates *r, uint32_t parent)
{
	const struct mp_context_node *nodes = r->tree->nodes, *p = &nodes[parent];
	double length = parent ? length_of(r, parent) : 0;
	size_t nr = collect_children(r->tree, r->facts, parent, r->siblings), end;
	const struct sibling *v = r->siblings;

	for (size_t i = 0; i < nr; i = end) {
		struct group g = {0};
		struct mp_context_rate rate = {.same = 1};

		add_sibling(&nodes[v[i].node], &g);
		for (end = i + 1; end < nr && is_same_group(r->facts, &v[i], &v[end]); end++)
			add_sibling(&nodes[v[end].node], &g);
		/* The outermost function of a thread does not end before the thread. */
		if (parent) {
			g.seen = fmax(g.old, g.total * looks_old(p) / (double)p->total);
			rate = rate_of(&g, r->old[parent], length);
		}
		for (size_t k = i; k < end; k++) {
			r->v[v[k].node] = rate;
			r->old[v[k].node] = g.old;
		}
	}
}

int mp_context_rates(const struct mp_context_tree *tree, const struct mp_context_facts *facts,
		     struct mp_context_rate **out)
{
	struct rates r = {
		.tree = tree,
		.facts = facts,
		.v = calloc(tree->nr_nodes, sizeof(*r.v)),
		.old = calloc(tree->nr_nodes, sizeof(*r.old)),
		.siblings = calloc(tree->nr_nodes, sizeof(*r.siblings)),
	};
	int ret;

	r.lengths = sum_lengths(tree, &r.nr_lengths);
	ret = r.v && r.old && r.siblings && r.lengths ? 0 : -ENOMEM;
	/* A node's number is above its parent's. */
	for (uint32_t i = 0; i < tree->nr_nodes && !ret; i++)
		if (tree->nodes[i].total)
			rate_children(&r, i);
	free(r.old);
	free(r.siblings);
	free(r.lengths);
	if (ret)
		free(r.v);
	else
		*out = r.v;
	return ret;
}

/* ---- all samples ---------------------------------------------------------------------------- */

/*
 * Samples of @node whose activation looks old but is new. @above: the same of the parent, which looks old
 * in @seen samples of the parent.
 */
static double hidden(const struct mp_context_node *node, const struct mp_context_rate *rate,
		     double ends, double above)
{
	/* The samples in which the caller looks old; of them, those that do not look old have ended. */
	double old = looks_old(node), seen = rate->least < 1 ? old / (1 - rate->least) : 0;

	return fmin(old, seen * rate->same * ((1 - above) * ends + above));
}

int mp_context_entries(const struct mp_context_tree *tree, const struct mp_context_rate *rates,
		       struct mp_context_entries **out)
{
	struct mp_context_entries *entries = calloc(tree->nr_nodes, sizeof(*entries));
	/* The share of new activations among a node's samples that look old. */
	double *likely = calloc(tree->nr_nodes, sizeof(*likely));
	double *highest = calloc(tree->nr_nodes, sizeof(*highest));

	if (!entries || !likely || !highest) {
		free(entries);
		free(likely);
		free(highest);
		return -ENOMEM;
	}
	/* A node's number is above its parent's. */
	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		const struct mp_context_node *n = &tree->nodes[i];
		double old = looks_old(n), nr = (double)n->nr_new, some, all;

		some = hidden(n, &rates[i], rates[i].ends, likely[n->parent]);
		all = hidden(n, &rates[i], rates[i].highest, highest[n->parent]);
		likely[i] = old > 0 ? some / old : 0;
		highest[i] = old > 0 ? all / old : 0;
		/* Numbers of samples vary as drawn ones do. */
		all = fmin(old, all + 2 * sqrt(all) + 1);
		entries[i] = (struct mp_context_entries){nr, nr + some, nr + all};
	}
	free(likely);
	free(highest);
	*out = entries;
	return 0;
}
