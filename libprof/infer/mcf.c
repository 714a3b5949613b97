// SPDX-License-Identifier: Apache-2.0
/*
 * mcf - minimum-cost circulation by the primal network simplex method.
 * It starts with the zero circulation. Every step conserves flow, so stopping early still
 * gives a circulation. Among equally cheap circulations the order of the arcs decides which
 * one is found. Called by infer and layout_block.
 */
#include "libprof/infer/mcf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define NONE UINT32_MAX

/* Factor of an arc's reduced cost: the product is the gain of one unit more, or less. */
enum arc_state {
	AT_LOWER = -1, /* flow 0: may rise */
	IN_TREE = 0,
	AT_UPPER = 1, /* flow = capacity: may fall */
};

/*
 * The basis is a spanning tree below an artificial root. At the start, arcs lead from every
 * node up to the first node that it reaches. There are as few such tops as possible, and an
 * arc of its own leads from each to the root:
 *               root
 *                ^
 *                0
 *              ^   ^
 *             2     1
 *                   ^
 *                   3
 * Nothing leaves the root, so its arcs never carry flow, and their cost (0) never counts. A
 * start with every node right below the root would be valid, too. But most pivots would
 * then only bring the arcs of this tree in, without moving flow.
 *
 * One list holds all nodes; a node's subtree follows it without a gap: 0 2 1 3 above, or
 * 1 3 0 2. A walk over a subtree therefore needs no lists of children.
 */
struct node {
	uint32_t parent;
	uint32_t arc;  /* arc to the parent; nr_arcs: artificial */
	uint32_t size; /* nodes in the subtree, this one included */
	bool up;       /* the arc points from the node to its parent */
};

/*
 * A node's place in the list. The next node is in an array of its own, since a walk reads
 * only that.
 */
struct place {
	uint32_t prev;
	uint32_t last; /* last node of its subtree; itself for a leaf */
};

struct simplex {
	struct mp_mcf_arc *arcs;
	uint32_t nr_arcs, nr_nodes;
	struct node *nodes; /* nr_nodes + 1, the last is the root */
	struct place *places;
	uint32_t *next; /* circular, through the root */
	/*
	 * Potentials of the nodes. They lie apart because each test of an arc reads two of
	 * them. Only differences count, so all may drift together; unsigned, because the
	 * drift may wrap.
	 */
	uint64_t *potential;
	int8_t *state;
	uint32_t scan, scan_block;
};

static int64_t arc_reduced(const struct mp_mcf_arc *arc, const uint64_t *potential)
{
	return (int64_t)((uint64_t)arc->cost + potential[arc->from] - potential[arc->to]);
}

/*
 * Finds the arc of [@a, @end) with the largest gain above *@best, which becomes that gain. Return:
 * @found: there is none. Half of the solver's time goes by here.
 */
static __attribute__((noinline)) uint32_t best_of(const struct simplex *s, uint32_t a, uint32_t end,
						  int64_t *best, uint32_t found)
{
	const uint64_t *potential = s->potential;
	const struct mp_mcf_arc *arcs = s->arcs;
	const int8_t *state = s->state;
	int64_t most = *best;

	for (; a < end; a++) {
		int64_t gain = state[a] * arc_reduced(&arcs[a], potential);

		if (gain > most) {
			most = gain;
			found = a;
		}
	}
	*best = most;
	return found;
}

/*
 * Finds the arc with the largest gain per unit in the first group of arcs that has any
 * gain. Searching all arcs costs more than it saves; taking the first such arc needs more
 * pivots.
 */
static uint32_t entering_find(struct simplex *s)
{
	int64_t best = 0;
	uint32_t found = NONE;
	uint32_t left = s->nr_arcs, a = s->scan;

	while (left) {
		uint32_t nr = left < s->scan_block ? left : s->scan_block;

		left -= nr;
		while (nr) {
			uint32_t end = nr < s->nr_arcs - a ? a + nr : s->nr_arcs;

			nr -= end - a;
			found = best_of(s, a, end, &best, found);
			a = end == s->nr_arcs ? 0 : end;
		}
		if (found != NONE)
			break;
	}
	s->scan = a;
	return found;
}

/* Flow that may be added from @v to its parent (@upwards) or from the parent to @v. */
static int64_t tree_residual(const struct simplex *s, uint32_t v, bool upwards)
{
	const struct node *node = &s->nodes[v];
	const struct mp_mcf_arc *arc;

	if (node->arc == s->nr_arcs)
		return upwards ? MP_MCF_INFINITE : 0;
	arc = &s->arcs[node->arc];
	if (node->up != upwards)
		return arc->flow;
	return arc->capacity == MP_MCF_INFINITE ? MP_MCF_INFINITE : arc->capacity - arc->flow;
}

static void tree_push(struct simplex *s, uint32_t v, bool upwards, int64_t amount)
{
	const struct node *node = &s->nodes[v];

	if (node->arc != s->nr_arcs)
		s->arcs[node->arc].flow += node->up == upwards ? amount : -amount;
}

static uint32_t tree_join(const struct simplex *s, uint32_t a, uint32_t b)
{
	/* An ancestor's subtree is larger, so the smaller one moves up. */
	while (a != b) {
		if (s->nodes[a].size <= s->nodes[b].size)
			a = s->nodes[a].parent;
		else
			b = s->nodes[b].parent;
	}
	return a;
}

static void list_link(struct simplex *s, uint32_t before, uint32_t after)
{
	s->next[before] = after;
	s->places[after].prev = before;
}

/* @new replaces @old as the last node of the subtrees of @v and its ancestors. */
static void tree_set_last(struct simplex *s, uint32_t v, uint32_t old, uint32_t new)
{
	for (; v != NONE && s->places[v].last == old; v = s->nodes[v].parent)
		s->places[v].last = new;
}

static void tree_add_size(struct simplex *s, uint32_t v, uint32_t end, uint32_t more)
{
	for (; v != end; v = s->nodes[v].parent)
		s->nodes[v].size += more;
}

static void tree_detach(struct simplex *s, uint32_t out, uint32_t join)
{
	const struct node *node = &s->nodes[out];
	const struct place *place = &s->places[out];

	list_link(s, place->prev, s->next[place->last]);
	tree_set_last(s, node->parent, place->last, place->prev);
	tree_add_size(s, node->parent, join, -node->size);
}

/*
 * Makes @in the top of the detached subtree of @out. For each node on the way, the nodes
 * before and behind the child's subtree are joined:
 *     out a in b c   becomes   in b out a c
 * Here b is below in, a and c are below out. Return: the last node of the subtree.
 */
static uint32_t tree_turn(struct simplex *s, uint32_t in, uint32_t out)
{
	struct node below = s->nodes[in]; /* before the change */
	struct place place = s->places[in];
	uint32_t size = s->nodes[out].size, end = place.last, behind = s->next[end], v = in;

	s->nodes[in].size = size;
	while (v != out) {
		uint32_t parent = below.parent;
		struct node was = s->nodes[parent];
		struct place was_at = s->places[parent];

		list_link(s, end, parent);
		end = place.prev;
		if (was_at.last != place.last) {
			list_link(s, end, behind);
			end = was_at.last;
			behind = s->next[end];
		}
		s->nodes[parent] = (struct node){
			.parent = v, .arc = below.arc, .size = size - below.size, .up = !below.up};
		below = was;
		place = was_at;
		v = parent;
	}
	for (; v != in; v = s->nodes[v].parent)
		s->places[v].last = end;
	s->places[in].last = end;
	return end;
}

/*
 * Moves the subtree of @out: @in, one of its nodes, becomes its top, below @parent by @arc.
 * @join: a common ancestor of @out and @parent.
 */
static void tree_rehang(struct simplex *s, uint32_t in, uint32_t out, uint32_t join,
			uint32_t parent, uint32_t arc, bool up)
{
	uint32_t end;

	tree_detach(s, out, join);
	end = tree_turn(s, in, out);
	s->nodes[in].parent = parent;
	s->nodes[in].arc = arc;
	s->nodes[in].up = up;
	tree_add_size(s, parent, join, s->nodes[in].size);
	list_link(s, end, s->next[parent]);
	list_link(s, parent, in);
	tree_set_last(s, parent, parent, end);
}

/*
 * Shifts the potentials of the moved subtree @top; or those of all other nodes, if these
 * are fewer.
 */
static void tree_shift(struct simplex *s, uint32_t top, int64_t shift)
{
	uint64_t by = (uint64_t)shift, *potential = s->potential;
	uint32_t v = top, end = s->next[s->places[top].last];
	const uint32_t *next = s->next;

	if (s->nodes[top].size > s->nr_nodes / 2) {
		v = end;
		end = top;
		by = -by;
	}
	for (; v != end; v = next[v])
		potential[v] += by;
}

/*
 * One pivot: pushes flow along the cycle that @a closes until one of its arcs is full or
 * empty. Among several such arcs the last one, going round from the top, leaves the tree
 * (Cunningham). Every node then stays able to send a little flow to the root. This rules
 * out cycling among pivots that move nothing. Hence `<` on one side and `<=` on the other.
 */
static int pivot(struct simplex *s, uint32_t a)
{
	struct mp_mcf_arc *arc = &s->arcs[a];
	bool rising = s->state[a] == AT_LOWER;
	uint32_t first = rising ? arc->from : arc->to;
	uint32_t second = rising ? arc->to : arc->from;
	uint32_t join = tree_join(s, first, second);
	int64_t amount = arc->capacity;
	int64_t reduced = arc_reduced(arc, s->potential);
	uint32_t out = NONE, in, to;

	for (uint32_t v = first; v != join; v = s->nodes[v].parent) {
		int64_t room = tree_residual(s, v, false);

		if (room < amount) {
			amount = room;
			out = v;
		}
	}
	in = first;
	to = second;
	for (uint32_t v = second; v != join; v = s->nodes[v].parent) {
		int64_t room = tree_residual(s, v, true);

		if (room <= amount && room != MP_MCF_INFINITE) {
			amount = room;
			out = v;
			in = second;
			to = first;
		}
	}
	if (amount == MP_MCF_INFINITE)
		return -ERANGE;
	if (amount > 0) {
		arc->flow += rising ? amount : -amount;
		for (uint32_t v = first; v != join; v = s->nodes[v].parent)
			tree_push(s, v, false, amount);
		for (uint32_t v = second; v != join; v = s->nodes[v].parent)
			tree_push(s, v, true, amount);
	}
	if (out == NONE) {
		s->state[a] = rising ? AT_UPPER : AT_LOWER;
		return 0;
	}
	if (s->nodes[out].arc != s->nr_arcs) {
		uint32_t leaving = s->nodes[out].arc;

		s->state[leaving] = s->arcs[leaving].flow ? AT_UPPER : AT_LOWER;
	}
	s->state[a] = IN_TREE;
	tree_rehang(s, in, out, join, to, a, arc->from == in);
	tree_shift(s, in, arc->from == in ? -reduced : reduced);
	return 0;
}

static int arcs_check(uint32_t nr_nodes, const struct mp_mcf_arc *arcs, uint32_t nr_arcs)
{
	if (nr_nodes >= NONE - 1 || nr_arcs >= NONE - 1)
		return -EINVAL;
	for (uint32_t a = 0; a < nr_arcs; a++)
		if (arcs[a].from >= nr_nodes || arcs[a].to >= nr_nodes || arcs[a].capacity < 0)
			return -EINVAL;
	return 0;
}

/* An arc from a node to itself needs no tree: it is filled if its cost is negative. */
static int self_loop_fill(struct mp_mcf_arc *arc)
{
	if (arc->cost >= 0)
		return 0;
	if (arc->capacity == MP_MCF_INFINITE)
		return -ERANGE;
	arc->flow = arc->capacity;
	return 0;
}

/* Puts @v, which has no children yet, right below @parent. */
static void tree_add(struct simplex *s, uint32_t v, uint32_t parent, uint32_t arc)
{
	struct node *node = &s->nodes[v];

	node->parent = parent;
	node->arc = arc;
	node->up = true;
	list_link(s, v, s->next[parent]);
	list_link(s, parent, v);
}

/*
 * Adds the nodes that reach queue[@nr] and are not in the tree yet. queue[@nr] is in the
 * tree. @first, @next: lists of the arcs into each node. Return: the end of the queue,
 * whose nodes are all in the tree.
 */
static uint32_t tree_grow(struct simplex *s, const uint32_t *first, const uint32_t *next,
			  uint32_t *queue, uint32_t nr)
{
	for (uint32_t i = nr++; i < nr; i++) {
		uint32_t v = queue[i];

		for (uint32_t a = first[v]; a != NONE; a = next[a]) {
			uint32_t u = s->arcs[a].from;

			if (s->nodes[u].parent != NONE)
				continue;
			tree_add(s, u, v, a);
			s->potential[u] = s->potential[v] - (uint64_t)s->arcs[a].cost;
			s->state[a] = IN_TREE;
			queue[nr++] = u;
		}
	}
	return nr;
}

static int tree_init(struct simplex *s)
{
	uint32_t *first = malloc((2 * (size_t)s->nr_nodes + s->nr_arcs + 1) * sizeof(*first));
	uint32_t *queue = first + s->nr_nodes, *next = queue + s->nr_nodes, nr = 0;

	if (!first)
		return -ENOMEM;
	for (uint32_t v = 0; v < s->nr_nodes; v++)
		first[v] = NONE;
	for (uint32_t a = s->nr_arcs; a-- > 0;) {
		if (!s->arcs[a].capacity) /* such an arc cannot send flow to the root */
			continue;
		next[a] = first[s->arcs[a].to];
		first[s->arcs[a].to] = a;
	}
	for (uint32_t v = 0; v < s->nr_nodes; v++) {
		if (s->nodes[v].parent != NONE)
			continue;
		tree_add(s, v, s->nr_nodes, s->nr_arcs);
		queue[nr] = v;
		nr = tree_grow(s, first, next, queue, nr);
	}
	/*
	 * Children come later in the queue than their parent, and the first child stands
	 * last in the list.
	 */
	while (nr-- > 0) {
		uint32_t v = queue[nr], parent = s->nodes[v].parent;

		s->nodes[parent].size += s->nodes[v].size;
		s->places[parent].last = s->places[v].last;
	}
	free(first);
	return 0;
}

static int simplex_init(struct simplex *s)
{
	size_t nr = (size_t)s->nr_nodes + 1;

	s->nodes = malloc(nr * sizeof(*s->nodes));
	s->places = malloc(nr * sizeof(*s->places));
	s->next = malloc(nr * sizeof(*s->next));
	s->potential = calloc(nr, sizeof(*s->potential));
	s->state = malloc((size_t)s->nr_arcs + 1);
	if (!s->nodes || !s->places || !s->next || !s->potential || !s->state)
		return -ENOMEM;
	for (uint32_t v = 0; v < nr; v++) {
		s->nodes[v] = (struct node){.parent = NONE, .arc = NONE, .size = 1};
		s->places[v] = (struct place){.prev = v, .last = v};
		s->next[v] = v;
	}
	for (uint32_t a = 0; a < s->nr_arcs; a++) {
		int ret = 0;

		s->arcs[a].flow = 0;
		s->state[a] = AT_LOWER;
		if (s->arcs[a].from == s->arcs[a].to) {
			ret = self_loop_fill(&s->arcs[a]);
			/*
			 * It never pivots again: its reduced cost is its cost, and the
			 * state fits.
			 */
			if (s->arcs[a].flow)
				s->state[a] = AT_UPPER;
		}
		if (ret)
			return ret;
	}
	s->scan_block = 16;
	while ((uint64_t)s->scan_block * s->scan_block < s->nr_arcs)
		s->scan_block++;
	return tree_init(s);
}

int mp_mcf_solve(uint32_t nr_nodes, struct mp_mcf_arc *arcs, uint32_t nr_arcs, uint64_t max_pivots,
		 uint64_t *pivots)
{
	struct simplex s = {.arcs = arcs, .nr_arcs = nr_arcs, .nr_nodes = nr_nodes};
	uint64_t done = 0;
	int ret;

	ret = arcs_check(nr_nodes, arcs, nr_arcs);
	if (ret)
		return ret;
	ret = simplex_init(&s);
	while (!ret) {
		uint32_t a = entering_find(&s);

		if (a == NONE)
			break;
		if (done == max_pivots) {
			ret = MP_MCF_STOPPED;
			break;
		}
		ret = pivot(&s, a);
		done++;
	}
	if (pivots)
		*pivots = done;
	free(s.nodes);
	free(s.places);
	free(s.next);
	free(s.potential);
	free(s.state);
	return ret;
}
