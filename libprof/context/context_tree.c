// SPDX-License-Identifier: Apache-2.0
/* context_tree - nodes in one array, found through one hash table; see context_tree.h. */
#include "libprof/context/context_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/base/grow.h"

#define START_NODES 64
#define NODES_MAX   (1u << 24)

uint64_t mp_context_module_of(const struct mp_id *id)
{
	uint64_t hash = XXH3_64bits_withSeed(id->build_id, id->build_id_len, id->text_hash);

	return hash ? hash : 1;
}

void mp_context_tree_fini(struct mp_context_tree *tree)
{
	free(tree->nodes);
	free(tree->modules);
	free(tree->slots);
	*tree = (struct mp_context_tree){0};
}

void mp_context_tree_clear(struct mp_context_tree *tree)
{
	memset(tree->slots, 0, tree->nr_slots * sizeof(*tree->slots));
	tree->nodes[0] = (struct mp_context_node){0};
	tree->nr_nodes = 1;
	tree->nr_modules = 1;
}

int mp_context_tree_init(struct mp_context_tree *tree)
{
	*tree = (struct mp_context_tree){
		.nodes = calloc(START_NODES, sizeof(*tree->nodes)),
		.modules = calloc(8, sizeof(*tree->modules)),
		.slots = calloc(2 * START_NODES, sizeof(*tree->slots)),
		.max_nodes = START_NODES,
		.max_modules = 8,
		.nr_slots = 2 * START_NODES,
		.nr_nodes = 1,
		.nr_modules = 1,
	};
	if (tree->nodes && tree->modules && tree->slots)
		return 0;
	mp_context_tree_fini(tree);
	return -ENOMEM;
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* A tree has few modules. Most calls are about a module that was added lately: the search begins there. */
static int module_index(struct mp_context_tree *tree, uint64_t module, uint32_t *index)
{
	for (uint32_t i = tree->nr_modules; i--;)
		if (tree->modules[i] == module) {
			*index = i;
			return 0;
		}
	if (mp_grow(tree->modules, tree->max_modules, tree->nr_modules + 1))
		return -ENOMEM;
	*index = tree->nr_modules;
	tree->modules[tree->nr_modules++] = module;
	return 0;
}

static uint64_t hash_of(uint32_t parent, uint32_t module, uint64_t vaddr, uint8_t kind)
{
	const uint64_t words[3] = {vaddr, (uint64_t)module << 32 | parent, kind};

	return XXH3_64bits(words, sizeof(words));
}

/* Return: the slot of such a node, or the free one where it belongs. */
static uint32_t *find_slot(const struct mp_context_tree *tree, uint32_t parent, uint32_t module,
			   uint64_t vaddr, uint8_t kind)
{
	uint32_t i = (uint32_t)hash_of(parent, module, vaddr, kind) & (tree->nr_slots - 1);
	const struct mp_context_node *node;

	for (; tree->slots[i]; i = (i + 1) & (tree->nr_slots - 1)) {
		node = &tree->nodes[tree->slots[i]];
		if (node->vaddr == vaddr && node->parent == parent && node->module == module &&
		    node->kind == kind)
			break;
	}
	return &tree->slots[i];
}

/* Fills the hash table, of zeros. */
static void fill_slots(struct mp_context_tree *tree)
{
	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		const struct mp_context_node *n = &tree->nodes[i];

		*find_slot(tree, n->parent, n->module, n->vaddr, n->kind) = i;
	}
}

/* Doubles the array of nodes and the hash table. */
static int grow(struct mp_context_tree *tree)
{
	uint32_t *slots = calloc(2 * (size_t)tree->nr_slots, sizeof(*slots));

	if (!slots || tree->max_nodes >= NODES_MAX ||
	    mp_resize(tree->nodes, 2 * (size_t)tree->max_nodes)) {
		free(slots);
		return -ENOMEM;
	}
	tree->max_nodes *= 2;
	free(tree->slots);
	tree->slots = slots;
	tree->nr_slots *= 2;
	fill_slots(tree);
	return 0;
}

/* Adds a node as the last child of @parent. */
static int add_node(struct mp_context_tree *tree, uint32_t parent, uint32_t module, uint64_t vaddr,
		    uint8_t kind, uint32_t *child)
{
	struct mp_context_node *node;
	uint32_t i;

	if (tree->nr_nodes == tree->max_nodes && grow(tree))
		return -ENOMEM;
	i = tree->nr_nodes++;
	node = &tree->nodes[i];
	*node = (struct mp_context_node){.vaddr = vaddr,
					 .module = module,
					 .kind = kind,
					 .parent = parent,
					 .prev = tree->nodes[parent].last};
	if (node->prev)
		tree->nodes[node->prev].next = i;
	else
		tree->nodes[parent].first = i;
	tree->nodes[parent].last = i;
	*find_slot(tree, parent, module, vaddr, kind) = i;
	*child = i;
	return 0;
}

int mp_context_child(struct mp_context_tree *tree, uint32_t parent,
		     const struct mp_context_key *key, uint32_t *child)
{
	uint32_t module;
	int r = module_index(tree, key->module, &module);

	if (r)
		return r;
	*child = *find_slot(tree, parent, module, key->vaddr, (uint8_t)key->kind);
	if (*child)
		return 0;
	return add_node(tree, parent, module, key->vaddr, (uint8_t)key->kind, child);
}

uint32_t mp_context_find(const struct mp_context_tree *tree, uint32_t parent,
			 const struct mp_context_key *key)
{
	for (uint32_t i = tree->nr_modules; i--;)
		if (tree->modules[i] == key->module)
			return *find_slot(tree, parent, i, key->vaddr, (uint8_t)key->kind);
	return 0;
}

struct mp_context_key mp_context_key_of(const struct mp_context_tree *tree, uint32_t node)
{
	const struct mp_context_node *n = &tree->nodes[node];

	return (struct mp_context_key){tree->modules[n->module], n->vaddr,
				       (enum mp_context_kind)n->kind};
}

/* ---- sums ---------------------------------------------------------------------------------- */

/* Moves a node whose total has grown before its siblings with smaller totals. */
static void move_up(struct mp_context_tree *tree, uint32_t i)
{
	struct mp_context_node *nodes = tree->nodes, *node = &nodes[i], *parent;
	uint32_t before = node->prev;

	parent = &nodes[node->parent];
	while (before && nodes[before].total < node->total)
		before = nodes[before].prev;
	if (before == node->prev)
		return;
	/* Take the node out; it has a predecessor. */
	nodes[node->prev].next = node->next;
	if (node->next)
		nodes[node->next].prev = node->prev;
	else
		parent->last = node->prev;
	node->prev = before;
	node->next = before ? nodes[before].next : parent->first;
	nodes[node->next].prev = i;
	if (before)
		nodes[before].next = i;
	else
		parent->first = i;
}

/* Joins two sorted lists of siblings, by next alone. Return: the first of both. */
static uint32_t merge_siblings(struct mp_context_node *nodes, uint32_t a, uint32_t b)
{
	uint32_t first = 0, last = 0;

	while (a || b) {
		uint32_t *from = !b || (a && nodes[a].total >= nodes[b].total) ? &a : &b;
		uint32_t i = *from;

		*from = nodes[i].next;
		nodes[i].next = 0;
		if (last)
			nodes[last].next = i;
		else
			first = i;
		last = i;
	}
	return first;
}

/* Sorts the children of @parent by their totals; those with equal ones keep their order. */
static void sort_children(struct mp_context_tree *tree, uint32_t parent)
{
	struct mp_context_node *nodes = tree->nodes;
	uint32_t runs[32] = {0}; /* [k]: a sorted list of 2^k siblings; 0: none */
	uint32_t i = nodes[parent].first, last = 0, next;
	bool sorted = true;

	for (; i && sorted; i = nodes[i].next)
		sorted = !nodes[i].prev || nodes[nodes[i].prev].total >= nodes[i].total;
	if (sorted)
		return;
	for (i = nodes[parent].first; i; i = next) {
		uint32_t run = i, k = 0;

		next = nodes[i].next;
		nodes[i].next = 0;
		for (; runs[k]; runs[k++] = 0)
			run = merge_siblings(nodes, runs[k], run);
		runs[k] = run;
	}
	for (uint32_t k = 0; k < 32; k++)
		i = runs[k] ? merge_siblings(nodes, runs[k], i) : i;
	nodes[parent].first = i;
	for (; i; i = nodes[i].next) {
		nodes[i].prev = last;
		last = i;
	}
	nodes[parent].last = last;
}

/* Adds samples to a node and to the totals above it; the root's must not overflow. */
static void context_add_self(struct mp_context_tree *tree, uint32_t node, uint64_t nr,
			     uint64_t time_ns)
{
	tree->nodes[node].self += nr;
	tree->nodes[node].self_ns += time_ns;
	for (;; node = tree->nodes[node].parent) {
		tree->nodes[node].total += nr;
		tree->nodes[node].total_ns += time_ns;
		if (!node)
			break;
		move_up(tree, node);
	}
}

static bool has_room(const struct mp_context_tree *tree, uint64_t nr, uint64_t time_ns)
{
	return nr <= INT64_MAX - tree->nodes[0].total &&
	       time_ns <= INT64_MAX - tree->nodes[0].total_ns;
}

int mp_context_add(struct mp_context_tree *tree, const struct mp_context_step *steps,
		   size_t nr_steps, uint64_t nr, uint64_t time_ns)
{
	uint32_t node = 0;
	int r = 0;

	if (!nr_steps || steps[nr_steps - 1].key.kind != MP_CONTEXT_FUNCTION)
		return -EINVAL;
	if (!has_room(tree, nr, time_ns))
		return -EOVERFLOW;
	for (size_t i = 0; i < nr_steps && !r; i++)
		r = mp_context_child(tree, node, &steps[i].key, &node);
	if (r)
		return r;
	context_add_self(tree, node, nr, time_ns);
	for (size_t i = nr_steps; i--; node = tree->nodes[node].parent)
		tree->nodes[node].nr_new += steps[i].is_new;
	return 0;
}

/* The indices that the modules of one tree have in another one, found when they are met. 0: not met yet. */
struct module_map {
	uint32_t *above; /* each index + 1 */
	mp_context_translate *translate;
	void *arg;
};

/* Adds what @node and all below it have. */
static int add_sums(struct mp_context_node *to, const struct mp_context_node *node)
{
	if (node->nr_new > INT64_MAX - to->nr_new)
		return -EOVERFLOW;
	to->nr_new += node->nr_new;
	to->self += node->self;
	to->self_ns += node->self_ns;
	to->total += node->total;
	to->total_ns += node->total_ns;
	return 0;
}

/* As same_child(), of a node whose key changes. The node that is put above has no samples of its own. */
static int translated_child(struct mp_context_tree *to, uint32_t parent,
			    const struct mp_context_tree *from, uint32_t i,
			    const struct module_map *map, uint32_t *child)
{
	struct mp_context_key key = mp_context_key_of(from, i), above;
	struct mp_context_node sums = from->nodes[i];
	int r = 0;

	if (map->translate(map->arg, &key, &above)) {
		sums.self = sums.self_ns = 0;
		r = mp_context_child(to, parent, &above, &parent);
		if (!r)
			r = add_sums(&to->nodes[parent], &sums);
	}
	return r ? r : mp_context_child(to, parent, &key, child);
}

/* Finds or adds the node of @to, below @parent, that is as the node @i of @from. */
static int same_child(struct mp_context_tree *to, uint32_t parent,
		      const struct mp_context_tree *from, uint32_t i, const struct module_map *map,
		      uint32_t *child)
{
	const struct mp_context_node *node = &from->nodes[i];
	uint32_t *above = &map->above[node->module];
	int r;

	if (map->translate)
		return translated_child(to, parent, from, i, map, child);
	if (!*above) {
		r = module_index(to, from->modules[node->module], above);
		if (r)
			return r;
		++*above;
	}
	*child = *find_slot(to, parent, *above - 1, node->vaddr, node->kind);
	if (*child)
		return 0;
	return add_node(to, parent, *above - 1, node->vaddr, node->kind, child);
}

/* As mp_context_add_tree(), but children stay unsorted. @new_index: where each node of @from went. */
static int merge(struct mp_context_tree *to, uint32_t below, const struct mp_context_tree *from,
		 const struct module_map *map, uint32_t *new_index)
{
	const struct mp_context_node *root = &from->nodes[0];
	int r = has_room(to, root->total, root->total_ns) ? 0 : -EOVERFLOW;

	new_index[0] = below;
	/* A node's number is above its parent's. */
	for (uint32_t i = 0; i < from->nr_nodes && !r; i++) {
		const struct mp_context_node *node = &from->nodes[i];

		if (!node->total)
			continue; /* no memory came for the rest of its path */
		if (i)
			r = same_child(to, new_index[node->parent], from, i, map, &new_index[i]);
		if (!r)
			r = add_sums(&to->nodes[new_index[i]], node);
	}
	while (below && !r) {
		below = to->nodes[below].parent;
		to->nodes[below].total += root->total;
		to->nodes[below].total_ns += root->total_ns;
	}
	return r;
}

static int map_init(struct module_map *map, const struct mp_context_tree *from,
		    uint32_t **new_index)
{
	map->above = calloc(from->nr_modules, sizeof(*map->above));
	*new_index = calloc(from->nr_nodes, sizeof(**new_index));
	return map->above && *new_index ? 0 : -ENOMEM;
}

int mp_context_merge(struct mp_context_tree *to, const struct mp_context_tree *from)
{
	struct module_map map = {0};
	uint32_t *new_index;
	int r = map_init(&map, from, &new_index);

	if (!r)
		r = merge(to, 0, from, &map, new_index);
	free(map.above);
	free(new_index);
	return r;
}

int mp_context_add_tree(struct mp_context_tree *to, uint32_t below,
			const struct mp_context_tree *from, mp_context_translate *translate,
			void *arg)
{
	struct module_map map = {.translate = translate, .arg = arg};
	uint32_t *new_index;
	int r = map_init(&map, from, &new_index);

	if (!r)
		r = merge(to, below, from, &map, new_index);
	/* Sort at the end: a node may have as many children as a tree has nodes. */
	for (uint32_t i = 0; i < from->nr_nodes && !r; i++) {
		if (i && !new_index[i])
			continue;
		if (from->nodes[i].first)
			sort_children(to, new_index[i]);
		/* A node was put above this one. */
		if (i && to->nodes[new_index[i]].parent != new_index[from->nodes[i].parent])
			sort_children(to, to->nodes[new_index[i]].parent);
	}
	for (uint32_t i = below; i && !r; i = to->nodes[i].parent)
		move_up(to, i);
	free(map.above);
	free(new_index);
	return r;
}

/* ---- after changes of nodes ------------------------------------------------------------------ */

/* Makes the links from parents anew. Siblings come in the order of their numbers, then of their totals. */
static void link_nodes(struct mp_context_tree *tree)
{
	struct mp_context_node *nodes = tree->nodes;

	for (uint32_t i = 0; i < tree->nr_nodes; i++)
		nodes[i].first = nodes[i].last = nodes[i].next = nodes[i].prev = 0;
	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		struct mp_context_node *parent = &nodes[nodes[i].parent];

		nodes[i].prev = parent->last;
		*(parent->last ? &nodes[parent->last].next : &parent->first) = i;
		parent->last = i;
	}
	for (uint32_t i = 0; i < tree->nr_nodes; i++)
		sort_children(tree, i);
}

int mp_context_tree_index(struct mp_context_tree *tree)
{
	uint32_t nr_slots = 2 * START_NODES, *slots;

	while (nr_slots < 2 * tree->max_nodes)
		nr_slots *= 2;
	slots = calloc(nr_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(tree->slots);
	tree->slots = slots;
	tree->nr_slots = nr_slots;
	fill_slots(tree);
	link_nodes(tree);
	return 0;
}

/* Moves the nodes that are left together. @number: gets their new numbers. */
static void move_nodes(struct mp_context_tree *tree, const bool *gone, uint32_t *number)
{
	struct mp_context_node *nodes = tree->nodes;
	uint32_t nr = 1;

	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		uint32_t parent = nodes[i].parent;

		if (gone[i] || (parent && !number[parent]))
			continue;
		number[i] = nr;
		nodes[nr] = nodes[i];
		nodes[nr++].parent = number[parent];
	}
	tree->nr_nodes = nr;
}

/* The same for modules. */
static void move_modules(struct mp_context_tree *tree, uint32_t *number)
{
	uint32_t nr = 1;

	for (uint32_t i = 1; i < tree->nr_nodes; i++)
		number[tree->nodes[i].module] = 1;
	for (uint32_t i = 1; i < tree->nr_modules; i++)
		if (number[i]) {
			number[i] = nr;
			tree->modules[nr++] = tree->modules[i];
		}
	tree->nr_modules = nr;
	number[0] = 0;
	for (uint32_t i = 1; i < tree->nr_nodes; i++)
		tree->nodes[i].module = number[tree->nodes[i].module];
}

void mp_context_tree_compact(struct mp_context_tree *tree, const bool *gone, uint32_t *work)
{
	uint32_t nr_before = tree->nr_nodes;

	move_nodes(tree, gone, work);
	move_modules(tree, work + nr_before);
	memset(tree->slots, 0, tree->nr_slots * sizeof(*tree->slots));
	fill_slots(tree);
	link_nodes(tree);
}
