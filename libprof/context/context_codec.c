// SPDX-License-Identifier: Apache-2.0
/* context_codec - writes and reads trees; see context_codec.h. */
#include "libprof/context/context_codec.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/base/grow.h"
#include "libprof/context/context_codec_private.h"
#include "libprof/context/context_pack.h"

#define DEPTH_MAX MP_CONTEXT_DEPTH_MAX

enum {
	KIND = 7,
	HAS_CHILDREN = 8,
	HAS_NEW = 16,
	HAS_TIME = 32,
	HAS_MODULE = 64,
};

/* ---- write --------------------------------------------------------------------------------- */

struct encoder {
	const struct mp_context_tree *tree;
	struct mp_varint_writer w;
	uint64_t period_ns;
	uint64_t *last;	   /* address of the last node in each module */
	uint32_t *waiting; /* nodes whose turn comes, the next one last */
	uint32_t nr_waiting;
};

static int compare_nodes(const struct mp_context_node *a, const struct mp_context_node *b)
{
	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* The last one first, since the list of waiting nodes is taken from its end. */
static int compare_waiting(const void *a, const void *b, void *nodes)
{
	const struct mp_context_node *n = nodes;

	return compare_nodes(&n[*(const uint32_t *)b], &n[*(const uint32_t *)a]);
}

/* Puts the children of @node on the list. Return: their number. */
static uint32_t add_children(struct encoder *e, const struct mp_context_node *node)
{
	uint32_t from = e->nr_waiting;

	for (uint32_t i = node->first; i; i = e->tree->nodes[i].next)
		if (e->tree->nodes[i].total)
			e->waiting[e->nr_waiting++] = i;
	if (e->nr_waiting - from > 1)
		qsort_r(e->waiting + from, e->nr_waiting - from, sizeof(*e->waiting),
			compare_waiting, e->tree->nodes);
	return e->nr_waiting - from;
}

static void put_node(struct encoder *e, const struct mp_context_node *node)
{
	const struct mp_context_node *parent = &e->tree->nodes[node->parent];
	uint32_t nr = add_children(e, node);
	bool own_module = node->kind != MP_CONTEXT_OTHER && node->module != parent->module;
	bool own_time = mp_context_has_samples(node->kind) &&
			node->self_ns != node->self * e->period_ns;

	mp_varint_put(&e->w, node->kind | (nr ? HAS_CHILDREN : 0) | (node->nr_new ? HAS_NEW : 0) |
				     (own_time ? HAS_TIME : 0) | (own_module ? HAS_MODULE : 0));
	if (own_module)
		mp_varint_put(&e->w, node->module);
	if (node->kind != MP_CONTEXT_OTHER) {
		mp_varint_put_signed(&e->w, (int64_t)(node->vaddr - e->last[node->module]));
		e->last[node->module] = node->vaddr;
	}
	if (mp_context_has_samples(node->kind))
		mp_varint_put(&e->w, node->self);
	if (own_time)
		mp_varint_put(&e->w, node->self_ns);
	if (node->nr_new)
		mp_varint_put(&e->w, node->nr_new);
	if (nr)
		mp_varint_put(&e->w, nr);
}

int mp_context_encode(const struct mp_context_tree *tree, uint8_t **out, size_t *size)
{
	struct encoder e = {
		.tree = tree,
		.last = calloc(tree->nr_modules, sizeof(*e.last)),
		.waiting = calloc(tree->nr_nodes, sizeof(*e.waiting)),
	};

	*out = NULL;
	e.w.failed = !e.last || !e.waiting;
	if (!e.w.failed) {
		e.period_ns = mp_context_put_head(&e.w, MP_CONTEXT_PLAIN, tree);
		mp_varint_put(&e.w, add_children(&e, &tree->nodes[0]));
	}
	while (!e.w.failed && e.nr_waiting)
		put_node(&e, &tree->nodes[e.waiting[--e.nr_waiting]]);
	free(e.last);
	free(e.waiting);
	if (e.w.failed) {
		free(e.w.bytes);
		return -ENOMEM;
	}
	*out = e.w.bytes;
	*size = e.w.size;
	return 0;
}

typedef int (*encode_fn)(const struct mp_context_tree *tree, uint8_t **out, size_t *size);

static int encode_within(struct mp_context_tree *tree, size_t max, encode_fn encode, uint8_t **out,
			 size_t *size)
{
	uint64_t nodes;
	int r = encode(tree, out, size);

	while (!r && (*size > max || tree->nr_modules > MP_CONTEXT_MODULES_MAX) &&
	       tree->nr_nodes > 2) {
		free(*out);
		*out = NULL;
		/* A little fewer than the mean size of a node allows. */
		nodes = *size > max ? (uint64_t)tree->nr_nodes * max / *size : tree->nr_nodes;
		r = mp_context_fold(tree, (uint32_t)(nodes - nodes / 16));
		if (!r)
			r = encode(tree, out, size);
	}
	return r;
}

int mp_context_encode_within(struct mp_context_tree *tree, size_t max, uint8_t **out, size_t *size)
{
	return encode_within(tree, max, mp_context_encode, out, size);
}

int mp_context_pack_within(struct mp_context_tree *tree, size_t max, uint32_t max_nodes,
			   uint8_t **out, size_t *size)
{
	int r = mp_context_fold(tree, max_nodes);

	*out = NULL;
	return r ? r : encode_within(tree, max, mp_context_pack, out, size);
}

/* ---- read ---------------------------------------------------------------------------------- */

struct decoder {
	struct mp_varint_reader r;
	struct mp_context_tree *tree;
	uint64_t period_ns;
	uint64_t *last;
	/* nodes whose children are being read, the innermost last, and how many are still to come */
	uint32_t path[DEPTH_MAX], left[DEPTH_MAX];
	uint32_t depth;
};

/* Begins to read the @nr children of @node. */
static int begin_children(struct decoder *d, uint32_t node, uint64_t nr)
{
	/* A node takes two bytes. */
	if (!nr || nr > (uint64_t)(d->r.end - d->r.p) / 2 || d->depth == DEPTH_MAX)
		return -EBADMSG;
	d->path[d->depth] = node;
	d->left[d->depth++] = (uint32_t)nr;
	return 0;
}

/* Reads the samples and their time. Return: false: none. */
static bool read_samples(struct decoder *d, uint64_t token, struct mp_context_node *node)
{
	if (!mp_context_has_samples(node->kind))
		return !(token & HAS_TIME);
	node->self = mp_varint_get(&d->r);
	if (node->self > INT64_MAX ||
	    __builtin_mul_overflow(node->self, d->period_ns, &node->self_ns))
		return false;
	if (token & HAS_TIME)
		node->self_ns = mp_varint_get(&d->r);
	return node->self && node->self_ns <= INT64_MAX;
}

/* Reads one node into @node, without its children. */
static int read_node(struct decoder *d, uint64_t token, struct mp_context_node *node)
{
	uint64_t module = d->tree->nodes[d->path[d->depth - 1]].module;

	node->kind = token & KIND;
	if (token > (KIND | HAS_CHILDREN | HAS_NEW | HAS_TIME | HAS_MODULE) ||
	    node->kind >= MP_NR_CONTEXT_KIND ||
	    (mp_context_has_samples(node->kind) == !!(token & HAS_CHILDREN)))
		return -EBADMSG;
	if (node->kind == MP_CONTEXT_OTHER)
		module = 0;
	if (token & HAS_MODULE)
		module = mp_varint_get(&d->r);
	if (module >= d->tree->nr_modules || (node->kind == MP_CONTEXT_OTHER && module))
		return -EBADMSG;
	node->module = (uint32_t)module;
	if (node->kind != MP_CONTEXT_OTHER) {
		node->vaddr = d->last[module] + (uint64_t)mp_varint_get_signed(&d->r);
		d->last[module] = node->vaddr;
	}
	if (!read_samples(d, token, node))
		return -EBADMSG;
	if (token & HAS_NEW)
		node->nr_new = mp_varint_get(&d->r);
	return d->r.failed || node->nr_new > INT64_MAX ? -EBADMSG : 0;
}

/* Adds a node behind its siblings. The totals are added up later, and nobody looks for nodes by keys. */
static int add_node(struct decoder *d, const struct mp_context_node *node, uint32_t *added)
{
	struct mp_context_tree *tree = d->tree;
	uint32_t parent = d->path[d->depth - 1], before = tree->nodes[parent].last;
	struct mp_context_node *new;

	if (before && compare_nodes(&tree->nodes[before], node) >= 0)
		return -EBADMSG;
	if (tree->nr_nodes == tree->max_nodes) {
		if (mp_resize(tree->nodes, 2 * (size_t)tree->max_nodes))
			return -ENOMEM;
		tree->max_nodes *= 2;
	}
	*added = tree->nr_nodes++;
	new = &tree->nodes[*added];
	*new = *node;
	new->parent = parent;
	new->prev = before;
	*(before ? &tree->nodes[before].next : &tree->nodes[parent].first) = *added;
	tree->nodes[parent].last = *added;
	return 0;
}

static int read_nodes(struct decoder *d)
{
	struct mp_context_node node;
	uint64_t token;
	uint32_t added;
	int r = 0;

	while (!r && d->depth) {
		if (!d->left[d->depth - 1]) {
			d->depth--;
			continue;
		}
		d->left[d->depth - 1]--;
		node = (struct mp_context_node){0};
		token = mp_varint_get(&d->r);
		r = read_node(d, token, &node);
		if (!r)
			r = add_node(d, &node, &added);
		if (!r && token & HAS_CHILDREN)
			r = begin_children(d, added, mp_varint_get(&d->r));
	}
	return r ? r : d->r.failed || d->r.p != d->r.end ? -EBADMSG : 0;
}

/* A node's number is above its parent's, so the sums are complete when a node's turn comes. */
static int add_up(struct mp_context_tree *tree)
{
	struct mp_context_node *nodes = tree->nodes;

	for (uint32_t i = tree->nr_nodes; i--;) {
		struct mp_context_node *n = &nodes[i], *parent = &nodes[n->parent];

		n->total += n->self;
		n->total_ns += n->self_ns;
		if (n->total > INT64_MAX || n->total_ns > INT64_MAX ||
		    (n->nr_new > n->total && n->kind != MP_CONTEXT_OTHER))
			return -EBADMSG;
		if (!i)
			break;
		if (__builtin_add_overflow(parent->total, n->total, &parent->total) ||
		    __builtin_add_overflow(parent->total_ns, n->total_ns, &parent->total_ns))
			return -EBADMSG;
	}
	return 0;
}

/* Reads what follows the version. */
static int read_plain(struct decoder *d)
{
	uint64_t nr;
	int r;

	d->period_ns = mp_varint_get(&d->r);
	r = mp_context_get_modules(&d->r, d->tree);
	if (r)
		return r;
	d->last = calloc(d->tree->nr_modules, sizeof(*d->last));
	if (!d->last)
		return -ENOMEM;
	nr = mp_varint_get(&d->r);
	if (nr)
		r = begin_children(d, 0, nr);
	return r ? r : read_nodes(d);
}

static int decode_plain(struct mp_varint_reader *reader, struct mp_context_tree *raw)
{
	struct decoder *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->r = *reader;
	d->tree = raw;
	r = read_plain(d);
	free(d->last);
	free(d);
	return r;
}

/* Reads into @raw, which has at least the root. */
static int decode(const uint8_t *data, size_t size, struct mp_context_tree *raw)
{
	struct mp_varint_reader reader = {.p = data, .end = data + size};
	int r = -EBADMSG;

	raw->nodes[0] = (struct mp_context_node){0};
	raw->nr_nodes = 1;
	switch (mp_varint_get(&reader)) {
	case MP_CONTEXT_PLAIN: r = decode_plain(&reader, raw); break;
	case MP_CONTEXT_PACKED: r = mp_context_unpack(&reader, raw); break;
	}
	return r ? r : add_up(raw);
}

static int decoded(int r, struct mp_err *err)
{
	if (r == -EBADMSG)
		return mp_err_set(err, EBADMSG, "not a tree of calling contexts");
	return r ? mp_err_code(err, -r) : 0;
}

int mp_context_decode_raw(const uint8_t *data, size_t size, struct mp_context_tree *raw,
			  struct mp_err *err)
{
	int r = raw->nodes ? 0 : mp_context_tree_init(raw);

	return decoded(r ? r : decode(data, size, raw), err);
}

int mp_context_decode(const uint8_t *data, size_t size, struct mp_context_tree *out,
		      struct mp_err *err)
{
	int r = mp_context_tree_init(out);

	if (!r)
		r = decode(data, size, out);
	if (!r)
		r = mp_context_tree_index(out);
	if (r)
		mp_context_tree_fini(out);
	return decoded(r, err);
}
