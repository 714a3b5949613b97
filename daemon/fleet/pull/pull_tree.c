// SPDX-License-Identifier: Apache-2.0
/* pull_tree - sums of trees; see pull_tree.h. */
#include "daemon/fleet/pull/pull_tree.h"

#include <errno.h>
#include <string.h>

#include "libprof/context/context_codec.h"
#include "libprof/store/contexts/contexts_rows.h"

/* More than a machine samples in a year. Weighted, it still fits. */
#define SAMPLES_MAX (UINT64_C(1) << 40)
/* Time of a sample in ns, or calls that it stands for. */
#define TIME_MAX (UINT64_C(1) << 31)
/* Modules of the sum before another tree is added, as many as one tree may have: they are searched one by one. */
#define MODULES_MAX 4096u

int md_pull_tree_init(struct md_pull_tree *tree, enum mp_fleet_kind kind, struct mp_err *err)
{
	*tree = (struct md_pull_tree){.kind = kind, .last_day = -1};
	return mp_context_tree_init(&tree->sum) ? mp_err_set(err, ENOMEM, "out of memory") : 0;
}

void md_pull_tree_fini(struct md_pull_tree *tree)
{
	mp_context_tree_fini(&tree->sum);
	mp_context_tree_fini(&tree->row);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static uint64_t weigh(uint64_t count, int32_t weight)
{
	return (uint64_t)((unsigned __int128)count * (uint32_t)weight / MD_PULL_WHOLE);
}

/*
 * Multiplies all samples by the weight, in units of 2^-16. *@nr_new: the new activations of all nodes.
 * Return: false: no collector writes such a tree.
 */
static bool weigh_tree(struct mp_context_tree *tree, int32_t weight, uint64_t *nr_new)
{
	struct mp_context_node *nodes = tree->nodes;

	*nr_new = 0;
	if (!nodes[0].total || nodes[0].total > SAMPLES_MAX ||
	    nodes[0].total_ns > (unsigned __int128)nodes[0].total * TIME_MAX)
		return false;
	for (uint32_t i = 0; i < tree->nr_nodes; i++)
		nodes[i].total_ns = 0;
	/* A node's number is above its parent's, so the time is complete when a node's turn comes. */
	for (uint32_t i = tree->nr_nodes; i--;) {
		struct mp_context_node *n = &nodes[i];

		if (__builtin_add_overflow(*nr_new, n->nr_new, nr_new))
			return false;
		n->self *= (uint32_t)weight;
		n->total *= (uint32_t)weight;
		n->self_ns = weigh(n->self_ns, weight);
		n->nr_new = weigh(n->nr_new, weight);
		n->total_ns += n->self_ns;
		if (i)
			nodes[n->parent].total_ns += n->total_ns;
	}
	return true;
}

/* Folds the sum until there is room for another tree. Return: 0, -ENOMEM. */
static int make_room(struct mp_context_tree *sum)
{
	int r = 0;

	if (sum->nr_nodes > MD_PULL_NODES_MAX)
		r = mp_context_fold(sum, MD_PULL_NODES_MAX / 2);
	while (!r && sum->nr_modules > MODULES_MAX && sum->nr_nodes > 2)
		r = mp_context_fold(sum, sum->nr_nodes / 2);
	return r;
}

/* Return: 1: added; 0: not sound; -ENOMEM. */
static int add_tree(struct md_pull_tree *tree, struct mp_context_tree *row, int32_t weight)
{
	const struct mp_context_node *have = &tree->sum.nodes[0], *more = &row->nodes[0];
	uint64_t nr_new;
	int r;

	if (!weigh_tree(row, weight, &nr_new) || nr_new > INT64_MAX - tree->nr_new ||
	    more->total > INT64_MAX - have->total || more->total_ns > INT64_MAX - have->total_ns)
		return 0;
	r = make_room(&tree->sum);
	if (!r)
		r = mp_context_merge(&tree->sum, row);
	tree->nr_new += nr_new;
	return r ? r : 1;
}

int md_pull_tree_add(struct md_pull_tree *tree, const struct md_pull_row *row, struct mp_err *err)
{
	enum mp_context_table table = tree->kind == MP_FLEET_CALLS ? MP_CALLS : MP_CONTEXTS;
	struct mp_context_tree *read = &tree->row;
	int r = 0;

	tree->nr_rows++;
	if (!row->chunk && md_pull_row_is_sound(row, mp_contexts_bytes_max(table))) {
		r = mp_context_decode_raw(row->data, row->size, read, NULL);
		if (!r)
			r = read->nodes[0].total == (uint64_t)row->total
				    ? add_tree(tree, read, row->weight)
				    : 0;
		else if (r == -EBADMSG)
			r = 0;
	}
	if (r < 0)
		return mp_err_set(err, -r, "calling contexts: %s", strerror(-r));
	tree->nr_bad += !r;
	if (r && row->last_day > tree->last_day)
		tree->last_day = row->last_day;
	return 0;
}

/* ---- rounding ------------------------------------------------------------------------------ */

/* Return: the node after @node, where each stands before its children; 0: the end. */
static uint32_t next_node(const struct mp_context_tree *tree, uint32_t node)
{
	if (tree->nodes[node].first)
		return tree->nodes[node].first;
	while (node && !tree->nodes[node].next)
		node = tree->nodes[node].parent;
	return node ? tree->nodes[node].next : 0;
}

int md_pull_tree_finish(struct md_pull_tree *tree, struct mp_err *err)
{
	uint64_t carry = MD_PULL_WHOLE / 2, time_ns = 0;
	int r;

	for (uint32_t i = next_node(&tree->sum, 0); i; i = next_node(&tree->sum, i)) {
		struct mp_context_node *n = &tree->sum.nodes[i];

		if (!n->self)
			continue;
		carry += n->self;
		time_ns += n->self_ns;
		n->self = carry / MD_PULL_WHOLE;
		carry %= MD_PULL_WHOLE;
		/* The time of a node without samples goes to the next one that has some. */
		n->self_ns = n->self ? time_ns : 0;
		time_ns -= n->self_ns;
	}
	mp_context_tree_fini(&tree->row);
	r = mp_context_settle(&tree->sum);
	return r ? mp_err_set(err, -r, "calling contexts: %s", strerror(-r)) : 0;
}
