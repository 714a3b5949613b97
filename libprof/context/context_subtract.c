// SPDX-License-Identifier: Apache-2.0
/*
 * context_subtract - takes a tree out of a sum that contains it; see context_tree.h.
 *
 * Folding moves the samples of a leaf to the "(other)" below its parent, and later perhaps to the one
 * below its grandparent. So the samples of a node of @what are at the same node of @from, or in the
 * "(other)" of a node above it. They are taken from the nearest place: no other order finds more of them,
 * since a place nearer to the leaves has samples of fewer nodes.
 */
#include <errno.h>
#include <stdlib.h>

#include "libprof/context/context_tree.h"

struct demand {
	uint64_t nr, time_ns;
};

static void take(struct mp_context_node *node, struct demand *d)
{
	uint64_t nr = node->self < d->nr ? node->self : d->nr;
	uint64_t time_ns;

	if (!nr)
		return;
	time_ns = nr == d->nr ? d->time_ns : (uint64_t)((unsigned __int128)d->time_ns * nr / d->nr);
	node->self -= nr;
	/* Samples of other rates are folded together: the time of one of them is not known. */
	node->self_ns -= time_ns < node->self_ns && node->self ? time_ns : node->self_ns;
	d->nr -= nr;
	d->time_ns -= time_ns;
}

/*
 * Takes the samples of a node that is at @at, or @is_gone and @at is the nearest node above it.
 * Return: 0, -EINVAL.
 */
static int take_path(struct mp_context_tree *from, uint32_t at, bool is_gone, struct demand d)
{
	static const struct mp_context_key other = {0, 0, MP_CONTEXT_OTHER};
	uint32_t node;

	if (!is_gone) {
		take(&from->nodes[at], &d);
		at = from->nodes[at].parent;
	}
	while (d.nr) {
		node = mp_context_find(from, at, &other);
		if (node)
			take(&from->nodes[node], &d);
		if (!at)
			break;
		at = from->nodes[at].parent;
	}
	return d.nr ? -EINVAL : 0;
}

/* The totals after the samples of nodes have changed. A node's number is above its parent's. */
static void add_up(struct mp_context_tree *tree)
{
	struct mp_context_node *nodes = tree->nodes;

	for (uint32_t i = 0; i < tree->nr_nodes; i++) {
		nodes[i].total = nodes[i].self;
		nodes[i].total_ns = nodes[i].self_ns;
	}
	for (uint32_t i = tree->nr_nodes; i-- > 1;) {
		nodes[nodes[i].parent].total += nodes[i].total;
		nodes[nodes[i].parent].total_ns += nodes[i].total_ns;
	}
	for (uint32_t i = 1; i < tree->nr_nodes; i++)
		if (nodes[i].nr_new > nodes[i].total && nodes[i].kind != MP_CONTEXT_OTHER)
			nodes[i].nr_new = nodes[i].total;
}

int mp_context_settle(struct mp_context_tree *tree)
{
	uint32_t *work = calloc((size_t)tree->nr_nodes + tree->nr_modules, sizeof(*work));
	bool *gone = calloc(tree->nr_nodes, sizeof(*gone));
	int r = work && gone ? 0 : -ENOMEM;

	if (!r) {
		add_up(tree);
		for (uint32_t i = 1; i < tree->nr_nodes; i++)
			gone[i] = !tree->nodes[i].total;
		mp_context_tree_compact(tree, gone, work);
	}
	free(work);
	free(gone);
	return r;
}

int mp_context_subtract(struct mp_context_tree *from, const struct mp_context_tree *what)
{
	uint32_t *at = calloc(what->nr_nodes, sizeof(*at));
	bool *is_gone = calloc(what->nr_nodes, sizeof(*is_gone));
	int r = at && is_gone ? 0 : -ENOMEM;

	for (uint32_t i = 1; i < what->nr_nodes && !r; i++) {
		const struct mp_context_node *node = &what->nodes[i];
		struct mp_context_key key = mp_context_key_of(what, i);
		uint32_t found = 0;

		at[i] = at[node->parent];
		if (!is_gone[node->parent])
			found = mp_context_find(from, at[i], &key);
		is_gone[i] = !found;
		if (found) {
			struct mp_context_node *same = &from->nodes[found];

			at[i] = found;
			same->nr_new -= node->nr_new < same->nr_new ? node->nr_new : same->nr_new;
		}
		if (node->self)
			r = take_path(from, at[i], is_gone[i],
				      (struct demand){node->self, node->self_ns});
	}
	free(at);
	free(is_gone);
	return r ? r : mp_context_settle(from);
}
