// SPDX-License-Identifier: Apache-2.0
/*
 * context_fold - folds the smallest leaves of a tree; see context_tree.h. A node is a leaf if nothing
 * but an "(other)" is below it. A heap gives the smallest leaf.
 */
#include "libprof/context/context_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fold {
	struct mp_context_tree *tree;
	uint32_t *heap, nr_heap; /* leaves, the smallest first */
	uint32_t *nr_children;	 /* of each node, without "(other)" */
	uint32_t *other;	 /* the "(other)" below each node; 0: none */
	bool *gone;
	uint32_t nr_left;
};

/*
 * Equal totals: the older node first. A node that was added lately may get more samples soon, as a deep
 * recursion does.
 */
static bool is_before(const struct fold *f, uint32_t a, uint32_t b)
{
	const struct mp_context_node *nodes = f->tree->nodes;

	return nodes[a].total != nodes[b].total ? nodes[a].total < nodes[b].total : a < b;
}

static void push(struct fold *f, uint32_t node)
{
	uint32_t i = f->nr_heap++;

	while (i && is_before(f, node, f->heap[(i - 1) / 2])) {
		f->heap[i] = f->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	f->heap[i] = node;
}

static uint32_t pop(struct fold *f)
{
	uint32_t top = f->heap[0], node = f->heap[--f->nr_heap], i = 0, child;

	while ((child = 2 * i + 1) < f->nr_heap) {
		if (child + 1 < f->nr_heap && is_before(f, f->heap[child + 1], f->heap[child]))
			child++;
		if (!is_before(f, f->heap[child], node))
			break;
		f->heap[i] = f->heap[child];
		i = child;
	}
	f->heap[i] = node;
	return top;
}

static void fold_init(struct fold *f)
{
	const struct mp_context_node *nodes = f->tree->nodes;

	for (uint32_t i = 1; i < f->tree->nr_nodes; i++) {
		if (nodes[i].kind == MP_CONTEXT_OTHER)
			f->other[nodes[i].parent] = i;
		else
			f->nr_children[nodes[i].parent]++;
	}
	for (uint32_t i = 1; i < f->tree->nr_nodes; i++)
		if (nodes[i].kind != MP_CONTEXT_OTHER && !f->nr_children[i])
			push(f, i);
}

/*
 * Adds a leaf to the "(other)" of its parent. Without one, the leaf itself becomes it: the number of
 * nodes never grows. Totals above do not change.
 */
static void fold_leaf(struct fold *f, uint32_t leaf)
{
	struct mp_context_node *nodes = f->tree->nodes, *node = &nodes[leaf];
	uint32_t below = f->other[leaf], parent = node->parent, other = f->other[parent];

	node->self = node->total;
	node->self_ns = node->total_ns;
	if (below) {
		node->nr_new += nodes[below].nr_new;
		f->gone[below] = true;
		f->nr_left--;
	}
	if (other) {
		nodes[other].self += node->self;
		nodes[other].self_ns += node->self_ns;
		nodes[other].total += node->self;
		nodes[other].total_ns += node->self_ns;
		nodes[other].nr_new += node->nr_new;
		f->gone[leaf] = true;
		f->nr_left--;
	} else {
		node->kind = MP_CONTEXT_OTHER;
		node->module = 0;
		node->vaddr = 0;
		f->other[parent] = leaf;
	}
	if (!--f->nr_children[parent] && parent)
		push(f, parent);
}

int mp_context_fold(struct mp_context_tree *tree, uint32_t max)
{
	struct fold f = {.tree = tree, .nr_left = tree->nr_nodes};
	uint32_t *work;
	int r;

	if (tree->nr_nodes <= max)
		return 0;
	work = calloc((size_t)tree->nr_nodes + tree->nr_modules, sizeof(*work));
	f.heap = calloc(tree->nr_nodes, sizeof(*f.heap));
	f.nr_children = calloc(tree->nr_nodes, sizeof(*f.nr_children));
	f.other = calloc(tree->nr_nodes, sizeof(*f.other));
	f.gone = calloc(tree->nr_nodes, sizeof(*f.gone));
	r = work && f.heap && f.nr_children && f.other && f.gone ? 0 : -ENOMEM;
	if (!r) {
		fold_init(&f);
		while (f.nr_left > max && f.nr_heap)
			fold_leaf(&f, pop(&f));
		mp_context_tree_compact(tree, f.gone, work);
	}
	free(work);
	free(f.heap);
	free(f.nr_children);
	free(f.other);
	free(f.gone);
	return r;
}
