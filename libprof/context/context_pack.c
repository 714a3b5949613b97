// SPDX-License-Identifier: Apache-2.0
/*
 * context_pack - writes and reads packed trees; see context_pack.h. The functions code_* do both: the
 * coder ignores the value that they give when it reads, and returns the one that it has read.
 */
#include "libprof/context/context_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/base/grow.h"
#include "libprof/base/range_coder.h"
#include "libprof/context/context_codec_private.h"

/* Keys that are remembered behind a key. A tree that has more of them is larger, but not slower to read. */
#define FOLLOWERS_MAX 64u
#define KEY_BITS      7 /* high bits of a key's number that a model learns */

struct key {
	uint64_t vaddr;
	uint32_t module;
	uint32_t number; /* writing: in the order in which keys were met */
	uint8_t kind;
};

/* A key that a child of another key had. */
struct follower {
	uint32_t key, next;
	uint8_t nr_hits, nr_misses; /* nodes that had such a child, and that had none */
};

struct followers {
	uint32_t first, last, nr;
};

struct models {
	struct mp_number_model nr_keys, distance;
	struct mp_bit_model kind[MP_NR_CONTEXT_KIND][8];
	struct mp_number_model nr_children[4], nr_new_keys[9][7], sibling;
	struct mp_bit_model follows[7][7][4];
	struct mp_bit_model key[17][1 << KEY_BITS];
	struct mp_number_model self[2], time, nr_new[5][7];
	struct mp_bit_model has_time, is_new[MP_NR_CONTEXT_KIND][4][4];
};

struct pack {
	struct mp_range_coder rc;
	struct models *models;
	struct mp_context_tree *tree; /* writing: is not changed */
	uint64_t period_ns;
	uint32_t nr_nodes; /* with the root */
	struct key *keys;  /* ascending by module, address and kind */
	uint32_t nr_keys;
	uint32_t *key_of; /* of each node */
	/* By key. Writing: the children of a node that are not written yet; reading: those that were read. */
	uint32_t *child_of;
	uint32_t *queue, nr_queue; /* nodes in the order of the bytes */
	/* Writing: the children of a node, by key; reading: how deep each node is. */
	uint32_t *children;
	struct followers *followers; /* of each key, and last of the root */
	struct follower *pool;	     /* [0] is not used */
	uint32_t nr_pool;
	bool failed; /* reading: no tree has this */
};

static uint32_t at_most(uint64_t value, uint32_t max)
{
	return value < max ? (uint32_t)value : max;
}

static uint32_t bits_of(uint64_t value)
{
	return value ? 64 - (uint32_t)__builtin_clzll(value) : 0;
}

/* ---- keys ---------------------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->kind - y->kind;
}

static struct key key_of(const struct mp_context_node *node)
{
	if (node->kind == MP_CONTEXT_OTHER)
		return (struct key){.kind = MP_CONTEXT_OTHER};
	return (struct key){.vaddr = node->vaddr, .module = node->module, .kind = node->kind};
}

/* Numbers the keys of all nodes as they are met. @slots: @nr_slots zeros, a power of 2 above the nodes. */
static void number_keys(struct pack *p, uint32_t *slots, uint32_t nr_slots)
{
	for (uint32_t i = 1; i < p->tree->nr_nodes; i++) {
		struct key key = key_of(&p->tree->nodes[i]);
		const uint64_t words[2] = {key.vaddr, (uint64_t)key.module << 8 | key.kind};
		uint32_t at = (uint32_t)XXH3_64bits(words, sizeof(words)) & (nr_slots - 1);

		if (!p->tree->nodes[i].total)
			continue;
		while (slots[at] && compare_keys(&p->keys[slots[at] - 1], &key))
			at = (at + 1) & (nr_slots - 1);
		if (!slots[at]) {
			key.number = p->nr_keys;
			p->keys[p->nr_keys++] = key;
			slots[at] = p->nr_keys;
		}
		p->key_of[i] = slots[at] - 1;
		p->nr_nodes++;
	}
}

/* Makes the list of keys. Return: 0, -ENOMEM. */
static int find_keys(struct pack *p)
{
	uint32_t nr_slots = 2u << bits_of(p->tree->nr_nodes);
	uint32_t *slots = calloc(nr_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	number_keys(p, slots, nr_slots);
	if (p->nr_keys)
		qsort(p->keys, p->nr_keys, sizeof(*p->keys), compare_keys);
	for (uint32_t i = 0; i < p->nr_keys; i++)
		slots[p->keys[i].number] = i;
	for (uint32_t i = 1; i < p->tree->nr_nodes; i++)
		p->key_of[i] = slots[p->key_of[i]];
	free(slots);
	return 0;
}

/* @last: the key before in the same module; NULL: none. */
static void code_key(struct pack *p, struct key *key, const struct key *last)
{
	struct mp_bit_model *model = p->models->kind[last ? last->kind : 0];
	uint64_t from = last ? last->vaddr : 0;
	uint32_t kind = 1;

	p->failed |= __builtin_add_overflow(
		from, mp_range_number(&p->rc, &p->models->distance, key->vaddr - from),
		&key->vaddr);
	for (uint32_t i = 3; i--;)
		kind = kind << 1 | mp_range_bit(&p->rc, &model[kind], key->kind >> i & 1);
	key->kind = kind & 7;
	p->failed |= key->kind >= MP_NR_CONTEXT_KIND || (last && compare_keys(last, key) >= 0) ||
		     (key->kind == MP_CONTEXT_OTHER && (key->module || key->vaddr));
}

static void code_keys(struct pack *p)
{
	uint32_t at = 0;

	for (uint32_t module = 0; module < p->tree->nr_modules && !p->failed; module++) {
		uint32_t from = at, end = at;
		uint64_t nr;

		while (!p->rc.reading && end < p->nr_keys && p->keys[end].module == module)
			end++;
		nr = mp_range_number(&p->rc, &p->models->nr_keys, end - at);
		p->failed |= nr > p->nr_keys - at;
		for (; nr && !p->failed; nr--, at++) {
			p->keys[at].module = module;
			code_key(p, &p->keys[at], at > from ? &p->keys[at - 1] : NULL);
		}
	}
	p->failed |= at != p->nr_keys;
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* Codes how many samples, how much time, and how many new activations a node has. */
static void code_sums(struct pack *p, const struct mp_context_node *parent,
		      struct mp_context_node *node)
{
	struct models *m = p->models;
	uint64_t time_ns = node->self * p->period_ns;

	if (mp_context_has_samples(node->kind)) {
		bool has_time = node->self_ns != time_ns;

		node->self = 1 + mp_range_number(&p->rc, &m->self[node->kind == MP_CONTEXT_OTHER],
						 node->self - 1);
		p->failed |= __builtin_mul_overflow(node->self, p->period_ns, &time_ns);
		if (mp_range_bit(&p->rc, &m->has_time, has_time))
			time_ns = mp_range_number(&p->rc, &m->time, node->self_ns);
		node->self_ns = time_ns;
		p->failed |= !node->self || node->self > INT64_MAX || time_ns > INT64_MAX;
	}
	if (mp_range_bit(&p->rc,
			 &m->is_new[node->kind][at_most(node->self, 3)][at_most(parent->nr_new, 3)],
			 node->nr_new))
		node->nr_new = 1 + mp_range_number(&p->rc,
						   &m->nr_new[at_most(node->self, 4)]
							     [at_most(bits_of(parent->nr_new), 6)],
						   node->nr_new - 1);
	p->failed |= node->nr_new > INT64_MAX;
}

/* Adds a node with the key behind its siblings. */
static uint32_t add_node(struct pack *p, uint32_t parent, uint32_t key)
{
	struct mp_context_node *nodes = p->tree->nodes;
	uint32_t i = p->tree->nr_nodes++, before = nodes[parent].last;

	nodes[i] = (struct mp_context_node){.vaddr = p->keys[key].vaddr,
					    .module = p->keys[key].module,
					    .kind = p->keys[key].kind,
					    .parent = parent,
					    .prev = before};
	*(before ? &nodes[before].next : &nodes[parent].first) = i;
	nodes[parent].last = i;
	p->key_of[i] = key;
	p->children[i] = p->children[parent] + 1;
	p->failed |= p->children[i] > MP_CONTEXT_DEPTH_MAX;
	return i;
}

/* Codes a child of which the key is known. There is room for it. */
static void code_child(struct pack *p, uint32_t parent, uint32_t key)
{
	struct mp_context_node copy, *node = &copy;
	uint32_t child = p->child_of[key];

	if (p->rc.reading) {
		p->failed |= child != 0;
		child = p->child_of[key] = add_node(p, parent, key);
		node = &p->tree->nodes[child];
	} else {
		p->child_of[key] = 0;
		copy = p->tree->nodes[child];
	}
	code_sums(p, &p->tree->nodes[parent], node);
	p->queue[p->nr_queue++] = child;
}

/* Codes which @left of the followers are children of @node. */
static void code_followers(struct pack *p, uint32_t node, const struct followers *followers,
			   uint64_t left)
{
	struct follower *before = NULL, *f, moved;

	for (uint32_t i = followers->first; i && left && !p->failed; i = f->next, before = f) {
		f = &p->pool[i];
		if (!mp_range_bit(&p->rc,
				  &p->models->follows[at_most(f->nr_hits, 6)]
						     [at_most(f->nr_misses, 6)][at_most(left, 3)],
				  p->child_of[f->key])) {
			f->nr_misses += f->nr_misses < UINT8_MAX;
			continue;
		}
		f->nr_hits += f->nr_hits < UINT8_MAX;
		code_child(p, node, f->key);
		left--;
		/* Those that come often are asked for first. */
		if (before && f->nr_hits > before->nr_hits) {
			moved = *f;
			*f = (struct follower){before->key, f->next, before->nr_hits,
					       before->nr_misses};
			*before = (struct follower){moved.key, before->next, moved.nr_hits,
						    moved.nr_misses};
		}
	}
	p->failed |= left != 0;
}

static void add_follower(struct pack *p, struct followers *followers, uint32_t key)
{
	struct follower *last = &p->pool[followers->last];

	if (followers->nr == FOLLOWERS_MAX) {
		*last = (struct follower){.key = key, .nr_hits = 1};
		return;
	}
	p->pool[++p->nr_pool] = (struct follower){.key = key, .nr_hits = 1};
	*(followers->nr++ ? &last->next : &followers->first) = p->nr_pool;
	followers->last = p->nr_pool;
}

/* Codes the number of a key. @parent: that of the parent's; nr_keys: the root's. */
static uint32_t code_key_number(struct pack *p, uint32_t parent, uint32_t key)
{
	uint32_t nr_bits = bits_of(p->nr_keys - 1), seen = 1, nr = at_most(nr_bits, KEY_BITS);
	uint32_t about = parent == p->nr_keys ? 16 : nr_bits > 4 ? parent >> (nr_bits - 4) : parent;

	for (uint32_t i = 0; i < nr; i++)
		seen = seen << 1 | mp_range_bit(&p->rc, &p->models->key[about][seen],
						key >> (nr_bits - 1 - i) & 1);
	seen -= 1u << nr;
	return seen << (nr_bits - nr) | (uint32_t)mp_range_bits(&p->rc, nr_bits - nr, key);
}

/* Codes @nr children that are no followers, ascending by key. */
static void code_others(struct pack *p, uint32_t node, uint32_t parent, uint64_t nr)
{
	uint32_t next = 0;
	uint64_t key = 0, last;

	for (uint64_t i = 0; i < nr && !p->failed; i++) {
		last = key;
		while (!p->rc.reading && !p->child_of[p->key_of[p->children[next]]])
			next++;
		if (!p->rc.reading)
			key = p->key_of[p->children[next]];
		if (i)
			p->failed |= __builtin_add_overflow(
				last + 1,
				mp_range_number(&p->rc, &p->models->sibling, key - last - 1), &key);
		else
			key = code_key_number(p, parent, (uint32_t)key);
		p->failed |= key >= p->nr_keys;
		if (p->failed)
			break;
		add_follower(p, &p->followers[parent], (uint32_t)key);
		code_child(p, node, (uint32_t)key);
	}
}

static int compare_children(const void *a, const void *b, void *key_of)
{
	const uint32_t *keys = key_of;
	uint32_t x = keys[*(const uint32_t *)a], y = keys[*(const uint32_t *)b];

	return (x > y) - (x < y);
}

/* Writing: lists the children of @node. *@nr_others: those that are no followers. Return: all. */
static uint32_t list_children(struct pack *p, uint32_t node, const struct followers *followers,
			      uint32_t *nr_others)
{
	uint32_t nr = 0;

	for (uint32_t i = p->tree->nodes[node].first; i; i = p->tree->nodes[i].next)
		if (p->tree->nodes[i].total) {
			p->children[nr++] = i;
			p->child_of[p->key_of[i]] = i;
		}
	if (nr > 1)
		qsort_r(p->children, nr, sizeof(*p->children), compare_children, p->key_of);
	*nr_others = nr;
	for (uint32_t i = followers->first; i; i = p->pool[i].next)
		*nr_others -= p->child_of[p->pool[i].key] != 0;
	return nr;
}

static void code_children(struct pack *p, uint32_t node)
{
	uint32_t parent = node ? p->key_of[node] : p->nr_keys, nr_others = 0, from = p->nr_queue;
	const struct followers *followers = &p->followers[parent];
	uint64_t nr = p->rc.reading ? 0 : list_children(p, node, followers, &nr_others), others;

	nr = mp_range_number(&p->rc, &p->models->nr_children[at_most(followers->nr, 3)], nr - 1);
	p->failed |= p->rc.failed || nr >= p->nr_nodes - p->nr_queue;
	if (p->failed)
		return;
	others = ++nr;
	if (followers->nr)
		others = mp_range_number(
			&p->rc, &p->models->nr_new_keys[at_most(followers->nr, 8)][at_most(nr, 6)],
			nr_others);
	p->failed |= others > nr;
	if (p->failed)
		return;
	code_followers(p, node, followers, nr - others);
	code_others(p, node, parent, others);
	for (uint32_t i = from; p->rc.reading && i < p->nr_queue; i++)
		p->child_of[p->key_of[p->queue[i]]] = 0;
}

static void code_nodes(struct pack *p)
{
	p->nr_queue = 1;
	for (uint32_t i = 0; i < p->nr_queue && !p->failed; i++)
		if (!mp_context_has_samples(p->tree->nodes[p->queue[i]].kind) || !p->queue[i])
			code_children(p, p->queue[i]);
	p->failed |= p->nr_queue != p->nr_nodes;
}

/* ---- whole trees --------------------------------------------------------------------------- */

/* Memory for @max_nodes nodes and as many keys, of which pages that are not used take none. */
static int pack_init(struct pack *p, struct mp_context_tree *tree, uint32_t max_nodes,
		     uint32_t max_keys)
{
	*p = (struct pack){.tree = tree, .nr_nodes = 1};
	p->models = malloc(sizeof(*p->models));
	p->keys = calloc(max_keys + 1, sizeof(*p->keys));
	p->key_of = calloc(max_nodes, sizeof(*p->key_of));
	p->child_of = calloc(max_keys + 1, sizeof(*p->child_of));
	p->queue = calloc(max_nodes, sizeof(*p->queue));
	p->children = calloc(max_nodes, sizeof(*p->children));
	p->followers = calloc(max_keys + 1, sizeof(*p->followers));
	p->pool = calloc(max_nodes + 1, sizeof(*p->pool));
	if (!p->models || !p->keys || !p->key_of || !p->child_of || !p->queue || !p->children ||
	    !p->followers || !p->pool)
		return -ENOMEM;
	mp_bit_models_init((struct mp_bit_model *)p->models,
			   sizeof(*p->models) / sizeof(struct mp_bit_model));
	return 0;
}

static void pack_fini(struct pack *p)
{
	free(p->models);
	free(p->keys);
	free(p->key_of);
	free(p->child_of);
	free(p->queue);
	free(p->children);
	free(p->followers);
	free(p->pool);
}

int mp_context_pack(const struct mp_context_tree *tree, uint8_t **out, size_t *size)
{
	struct mp_varint_writer w = {0};
	struct pack p;
	int r = pack_init(&p, (struct mp_context_tree *)tree, tree->nr_nodes, tree->nr_nodes);

	if (!r)
		r = find_keys(&p);
	if (!r) {
		p.period_ns = mp_context_put_head(&w, MP_CONTEXT_PACKED, tree);
		mp_varint_put(&w, p.nr_nodes);
		mp_varint_put(&w, p.nr_keys);
		mp_range_write(&p.rc, &w);
		code_keys(&p);
		if (p.nr_keys)
			code_nodes(&p);
		mp_range_finish(&p.rc);
	}
	pack_fini(&p);
	*out = w.bytes;
	*size = w.size;
	if (!r && !w.failed)
		return 0;
	free(w.bytes);
	*out = NULL;
	return -ENOMEM;
}

/* Makes room for all nodes of @raw. */
static int make_room(struct mp_context_tree *raw, uint32_t nr_nodes)
{
	if (nr_nodes <= raw->max_nodes)
		return 0;
	if (mp_resize(raw->nodes, nr_nodes))
		return -ENOMEM;
	raw->max_nodes = nr_nodes;
	return 0;
}

int mp_context_unpack(struct mp_varint_reader *r, struct mp_context_tree *raw)
{
	uint64_t period_ns = mp_varint_get(r), nr_nodes, nr_keys;
	struct pack p;
	int ret = mp_context_get_modules(r, raw);

	if (ret)
		return ret;
	nr_nodes = mp_varint_get(r);
	nr_keys = mp_varint_get(r);
	if (r->failed || !nr_nodes || nr_nodes > MP_CONTEXT_PACK_NODES_MAX || nr_keys >= nr_nodes ||
	    (nr_nodes > 1 && !nr_keys))
		return -EBADMSG;
	ret = make_room(raw, (uint32_t)nr_nodes);
	if (!ret)
		ret = pack_init(&p, raw, (uint32_t)nr_nodes, (uint32_t)nr_keys);
	else
		return ret;
	if (!ret) {
		p.period_ns = period_ns;
		p.nr_nodes = (uint32_t)nr_nodes;
		p.nr_keys = (uint32_t)nr_keys;
		mp_range_read(&p.rc, r->p, (size_t)(r->end - r->p));
		code_keys(&p);
		if (nr_keys)
			code_nodes(&p);
		ret = mp_range_finish(&p.rc) && !p.failed ? 0 : -EBADMSG;
	}
	pack_fini(&p);
	return ret;
}

uint64_t mp_context_put_head(struct mp_varint_writer *w, unsigned int version,
			     const struct mp_context_tree *tree)
{
	const struct mp_context_node *root = &tree->nodes[0];
	uint64_t period_ns = root->total ? root->total_ns / root->total : 0;

	mp_varint_put(w, version);
	mp_varint_put(w, period_ns);
	mp_varint_put(w, tree->nr_modules);
	mp_varint_put_bytes(w, tree->modules + 1, (tree->nr_modules - 1) * sizeof(*tree->modules));
	return period_ns;
}

int mp_context_get_modules(struct mp_varint_reader *r, struct mp_context_tree *raw)
{
	uint64_t nr = mp_varint_get(r);
	const uint8_t *bytes;

	if (!nr || nr > MP_CONTEXT_MODULES_MAX)
		return -EBADMSG;
	bytes = mp_varint_get_bytes(r, (nr - 1) * sizeof(*raw->modules));
	if (!bytes)
		return -EBADMSG;
	free(raw->modules);
	raw->modules = calloc(nr, sizeof(*raw->modules));
	if (!raw->modules)
		return -ENOMEM;
	memcpy(raw->modules + 1, bytes, (nr - 1) * sizeof(*raw->modules));
	raw->nr_modules = raw->max_modules = (uint32_t)nr;
	for (uint32_t i = 1; i < nr; i++)
		for (uint32_t k = 0; k < i; k++)
			if (raw->modules[i] == raw->modules[k])
				return -EBADMSG;
	return 0;
}
