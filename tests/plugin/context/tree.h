// SPDX-License-Identifier: Apache-2.0
/*
 * tree - the calling context tree, and the numbers of call sites and functions in it.
 *
 * A node is a path of (call site, callee) from a thread's first function. Each thread has a tree of
 * its own; tree_fold() adds them up. Numbers of sites and functions hold for the whole process.
 */
#ifndef MORPH_TESTS_TREE_H
#define MORPH_TESTS_TREE_H

#include "tests/plugin/objects.h"

#define CHUNK_BITS 10
#define CHUNK_SIZE (1u << CHUNK_BITS)

enum site_kind {
	SITE_START, /* the first function of a thread */
	SITE_SIGNAL,
	SITE_STACK, /* the first function of a stack that a program made itself */
	SITE_DIRECT,
	SITE_INDIRECT,
	SITE_JUMP, /* makes tail calls only */
	SITE_INTERRUPTED,
	NR_SITE_KINDS
};

/* A call site or a function: link-time address in a file. */
struct place {
	const struct object *object;
	uint64_t vaddr;
	uint32_t owner; /* a function: it is a part of this one; 0: a function of its own */
	uint8_t kind, size;
};

struct places {
	struct place *v; /* number 0 is no place */
	uint32_t nr, *slots, nr_slots;
};

struct node {
	uint32_t parent, site, function;
	uint64_t activations; /* all */
	uint64_t tails;	      /* of them: by a jump of the function that the site called */
	uint64_t plt;	      /* of them: through a procedure linkage table */
	uint64_t self;	      /* instructions */
};

struct tree {
	struct node **chunks; /* node 0 is the parent of first functions */
	uint32_t nr, *slots, nr_slots;
};

/* A tail call, or a call whose site is not on the stack any more. */
struct jump {
	uint32_t site, function, plt; /* site 0: a free slot */
	uint64_t count;
};

struct jumps {
	struct jump *v;
	uint32_t nr, nr_slots;
};

static void *need(void *memory)
{
	if (!memory) {
		fputs("contexts: out of memory\n", stderr);
		_exit(1);
	}
	return memory;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 32) * 0x9e3779b97f4a7c15;
	return x ^ x >> 29;
}

/* ---- places ---- */

static uint32_t *place_slot(const struct places *p, const struct object *object, uint64_t vaddr,
			    uint8_t kind)
{
	uint32_t mask = p->nr_slots - 1;
	uint32_t i = (uint32_t)mix(vaddr + mix(object ? object->index + 1 : 0) + kind) & mask;

	for (; p->slots[i]; i = (i + 1) & mask) {
		const struct place *place = &p->v[p->slots[i]];

		if (place->vaddr == vaddr && place->object == object && place->kind == kind)
			break;
	}
	return &p->slots[i];
}

static void places_grow(struct places *p)
{
	uint32_t i;

	if (!p->nr) {
		p->v = grow(p->v, 0, sizeof(*p->v));
		p->v[p->nr++] = (struct place){0};
	}
	free(p->slots);
	p->nr_slots = p->nr_slots ? 2 * p->nr_slots : 4096;
	p->slots = need(calloc(p->nr_slots, sizeof(*p->slots)));
	for (i = 1; i < p->nr; i++)
		*place_slot(p, p->v[i].object, p->v[i].vaddr, p->v[i].kind) = i;
}

/* Return: number of the place. */
static uint32_t place_get(struct places *p, const struct object *object, uint64_t vaddr,
			  uint8_t kind, uint8_t size)
{
	uint32_t *slot;

	if (2 * p->nr >= p->nr_slots)
		places_grow(p);
	slot = place_slot(p, object, vaddr, kind);
	if (!*slot) {
		*slot = p->nr;
		p->v = grow(p->v, p->nr, sizeof(*p->v));
		p->v[p->nr++] = (struct place){object, vaddr, 0, kind, size};
	}
	return *slot;
}

/* ---- nodes ---- */

static struct node *tree_node(const struct tree *t, uint32_t id)
{
	return &t->chunks[id >> CHUNK_BITS][id & (CHUNK_SIZE - 1)];
}

static uint32_t *tree_slot(const struct tree *t, uint32_t parent, uint32_t site, uint32_t function)
{
	uint32_t mask = t->nr_slots - 1;
	uint32_t i = (uint32_t)mix(((uint64_t)parent << 32 | site) ^ mix(function)) & mask;

	for (; t->slots[i]; i = (i + 1) & mask) {
		const struct node *node = tree_node(t, t->slots[i]);

		if (node->parent == parent && node->site == site && node->function == function)
			break;
	}
	return &t->slots[i];
}

static struct node *tree_add(struct tree *t, uint32_t parent, uint32_t site, uint32_t function)
{
	struct node *node;

	if (!(t->nr & (CHUNK_SIZE - 1))) {
		t->chunks = grow(t->chunks, t->nr >> CHUNK_BITS, sizeof(*t->chunks));
		t->chunks[t->nr >> CHUNK_BITS] = need(calloc(CHUNK_SIZE, sizeof(struct node)));
	}
	node = tree_node(t, t->nr++);
	*node = (struct node){.parent = parent, .site = site, .function = function};
	return node;
}

static void tree_grow(struct tree *t)
{
	uint32_t i;

	if (!t->nr)
		tree_add(t, 0, 0, 0);
	free(t->slots);
	t->nr_slots = t->nr_slots ? 2 * t->nr_slots : 1024;
	t->slots = need(calloc(t->nr_slots, sizeof(*t->slots)));
	for (i = 1; i < t->nr; i++) {
		const struct node *node = tree_node(t, i);

		*tree_slot(t, node->parent, node->site, node->function) = i;
	}
}

/* Return: number of the child of @parent by that call. */
static uint32_t tree_get(struct tree *t, uint32_t parent, uint32_t site, uint32_t function)
{
	uint32_t *slot;

	if (3 * (uint64_t)t->nr >= 2 * (uint64_t)t->nr_slots)
		tree_grow(t);
	slot = tree_slot(t, parent, site, function);
	if (!*slot) {
		*slot = t->nr;
		tree_add(t, parent, site, function);
	}
	return *slot;
}

static void tree_free(struct tree *t)
{
	uint32_t i;

	for (i = 0; i < t->nr; i += CHUNK_SIZE)
		free(t->chunks[i >> CHUNK_BITS]);
	free(t->chunks);
	free(t->slots);
	*t = (struct tree){0};
}

/* Return: the function that @function is a part of, or itself. */
static uint32_t function_whole(const struct places *functions, uint32_t function)
{
	int i;

	for (i = 0; i < 8 && functions->v[function].owner; i++)
		function = functions->v[function].owner;
	return function;
}

/*
 * Adds @from to @to. Nodes of a part of a function become those of the function: they are no
 * activations.
 */
static void tree_fold(struct tree *to, const struct tree *from, const struct places *functions)
{
	uint32_t *map = need(calloc((size_t)from->nr + 1, sizeof(*map))), i;

	for (i = 1; i < from->nr; i++) {
		const struct node *node = tree_node(from, i);
		uint32_t whole = function_whole(functions, node->function);
		struct node *sum;

		map[i] = tree_get(to, map[node->parent], node->site, whole);
		sum = tree_node(to, map[i]);
		sum->self += node->self;
		if (whole != node->function)
			continue;
		sum->activations += node->activations;
		sum->tails += node->tails;
		sum->plt += node->plt;
	}
	free(map);
}

/* ---- jumps ---- */

static struct jump *jump_slot(const struct jumps *j, uint32_t site, uint32_t function, uint32_t plt)
{
	uint32_t mask = j->nr_slots - 1;
	uint32_t i = (uint32_t)mix(((uint64_t)site << 32 | function) + plt) & mask;

	for (; j->v[i].site; i = (i + 1) & mask)
		if (j->v[i].site == site && j->v[i].function == function && j->v[i].plt == plt)
			break;
	return &j->v[i];
}

static void jump_add(struct jumps *j, uint32_t site, uint32_t function, uint32_t plt,
		     uint64_t count)
{
	struct jump *jump;

	if (2 * j->nr >= j->nr_slots) {
		struct jumps old = *j;
		uint32_t i;

		j->nr_slots = old.nr_slots ? 2 * old.nr_slots : 256;
		j->v = need(calloc(j->nr_slots, sizeof(*j->v)));
		for (i = 0; i < old.nr_slots; i++)
			if (old.v[i].site)
				*jump_slot(j, old.v[i].site, old.v[i].function, old.v[i].plt) =
					old.v[i];
		free(old.v);
	}
	jump = jump_slot(j, site, function, plt);
	if (!jump->site) {
		*jump = (struct jump){site, function, plt, 0};
		j->nr++;
	}
	jump->count += count;
}

static void jumps_fold(struct jumps *to, const struct jumps *from, const struct places *functions)
{
	uint32_t i;

	for (i = 0; i < from->nr_slots; i++)
		if (from->v[i].site && !functions->v[from->v[i].function].owner)
			jump_add(to, from->v[i].site, from->v[i].function, from->v[i].plt,
				 from->v[i].count);
}

#endif
