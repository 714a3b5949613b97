// SPDX-License-Identifier: Apache-2.0
/*
 * test_context_tree - trees of calling contexts against plain lists of stacks: totals, order of
 * children, addition, folding with exact sums, and the bytes.
 */
#include "libprof/context/context_tree.h"

#include "libprof/context/context_codec.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define DEPTH	  9
#define NR_STACKS 3000
#define TIME_NS	  250000

/* One stack of the plain list. */
struct stack {
	struct mp_context_step steps[DEPTH];
	size_t nr;
	uint64_t count;
};

static struct mp_context_tree tree, other;
static struct stack stacks[NR_STACKS];

static void setup(void)
{
	seed = 7;
	ck_assert_int_eq(mp_context_tree_init(&tree), 0);
	ck_assert_int_eq(mp_context_tree_init(&other), 0);
}

static void teardown(void)
{
	mp_context_tree_fini(&tree);
	mp_context_tree_fini(&other);
}

/* Stacks that share beginnings: few sites at each depth, small numbers most often. */
static void make_stack(struct stack *s)
{
	bool truncated = !random_below(10);

	*s = (struct stack){.nr = 2 + random_below(DEPTH - 2), .count = 1 + random_below(3)};
	for (size_t i = 0; i < s->nr; i++)
		s->steps[i] = (struct mp_context_step){
			{1 + random_below(3), 0x1000 + 8 * i + random_below(1 + random_below(5)),
			 random_below(30) ? MP_CONTEXT_CALL : MP_CONTEXT_AT},
			!random_below(3)};
	if (truncated)
		s->steps[0] = (struct mp_context_step){{0, 3, MP_CONTEXT_TRUNCATED}, false};
	s->steps[s->nr - 1].key.kind = MP_CONTEXT_FUNCTION;
}

static void add_stacks(struct mp_context_tree *to, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++)
		ck_assert_int_eq(mp_context_add(to, stacks[i].steps, stacks[i].nr, stacks[i].count,
						stacks[i].count * TIME_NS),
				 0);
}

static void make_tree(void)
{
	for (size_t i = 0; i < NR_STACKS; i++)
		make_stack(&stacks[i]);
	add_stacks(&tree, 0, NR_STACKS);
}

static bool same_key(const struct mp_context_key *a, const struct mp_context_key *b)
{
	return a->module == b->module && a->vaddr == b->vaddr && a->kind == b->kind;
}

/* The path of @node, outermost first. Return: its length. */
static size_t path_of(const struct mp_context_tree *t, uint32_t node, struct mp_context_key *path)
{
	size_t nr = node ? path_of(t, t->nodes[node].parent, path) : 0;

	if (node)
		path[nr++] = mp_context_key_of(t, node);
	return nr;
}

/* Compares a node with the sums over all stacks that begin with its path. */
static void check_node(const struct mp_context_tree *t, uint32_t node)
{
	struct mp_context_key path[DEPTH];
	size_t nr = path_of(t, node, path), k;
	uint64_t total = 0, nr_new = 0, self = 0;

	for (size_t i = 0; i < NR_STACKS; i++) {
		const struct stack *s = &stacks[i];

		for (k = 0; k < nr && k < s->nr && same_key(&path[k], &s->steps[k].key); k++)
			;
		if (k < nr)
			continue;
		total += s->count;
		nr_new += nr && s->steps[nr - 1].is_new;
		self += nr == s->nr ? s->count : 0;
	}
	ck_assert_uint_eq(t->nodes[node].total, total);
	ck_assert_uint_eq(t->nodes[node].total_ns, total * TIME_NS);
	ck_assert_uint_eq(t->nodes[node].nr_new, nr_new);
	ck_assert_uint_eq(t->nodes[node].self, self);
}

/* Checks the links, the order of the children and the sums of any tree. */
static void check_shape(const struct mp_context_tree *t)
{
	uint64_t self = 0, nr_seen = 0;

	for (uint32_t i = 0; i < t->nr_nodes; i++) {
		const struct mp_context_node *n = &t->nodes[i];
		uint64_t sum = n->self, sum_ns = n->self_ns, nr_others = 0;
		uint32_t before = 0;

		self += n->self;
		for (uint32_t c = n->first; c; before = c, c = t->nodes[c].next) {
			ck_assert_uint_eq(t->nodes[c].parent, i);
			ck_assert_uint_eq(t->nodes[c].prev, before);
			ck_assert(!before || t->nodes[before].total >= t->nodes[c].total);
			nr_others += t->nodes[c].kind == MP_CONTEXT_OTHER;
			sum += t->nodes[c].total;
			sum_ns += t->nodes[c].total_ns;
			nr_seen++;
		}
		ck_assert_uint_eq(n->last, before);
		ck_assert_uint_eq(n->total, sum);
		ck_assert_uint_eq(n->total_ns, sum_ns);
		ck_assert_uint_le(nr_others, 1);
		ck_assert(!n->self || !n->first);
	}
	ck_assert_uint_eq(nr_seen, t->nr_nodes - 1);
	ck_assert_uint_eq(self, t->nodes[0].total);
}

static uint64_t sum_new(const struct mp_context_tree *t)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < t->nr_nodes; i++)
		sum += t->nodes[i].nr_new;
	return sum;
}

static uint32_t follow(const struct mp_context_tree *t, const struct mp_context_key *path,
		       size_t nr)
{
	uint32_t node = 0;

	for (size_t i = 0; i < nr; i++) {
		uint32_t c = t->nodes[node].first;

		for (; c; c = t->nodes[c].next) {
			struct mp_context_key key = mp_context_key_of(t, c);

			if (same_key(&key, &path[i]))
				break;
		}
		ck_assert_uint_ne(c, 0);
		node = c;
	}
	return node;
}

static void check_equal(const struct mp_context_tree *a, const struct mp_context_tree *b)
{
	struct mp_context_key path[DEPTH + 1];

	ck_assert_uint_eq(a->nr_nodes, b->nr_nodes);
	for (uint32_t i = 0; i < a->nr_nodes; i++) {
		uint32_t k = follow(b, path, path_of(a, i, path));

		ck_assert_uint_eq(a->nodes[i].self, b->nodes[k].self);
		ck_assert_uint_eq(a->nodes[i].total, b->nodes[k].total);
		ck_assert_uint_eq(a->nodes[i].total_ns, b->nodes[k].total_ns);
		ck_assert_uint_eq(a->nodes[i].nr_new, b->nodes[k].nr_new);
	}
}

FIXTURE(setup, teardown);

TEST(tree_equals_the_sums_over_its_stacks)
{
	make_tree();
	check_shape(&tree);
	ck_assert_uint_gt(tree.nr_nodes, 500);
	for (uint32_t i = 0; i < tree.nr_nodes; i += 7)
		check_node(&tree, i);
}

TEST(trees_of_parts_add_up_to_the_tree_of_all)
{
	struct mp_context_tree parts;

	make_tree();
	ck_assert_int_eq(mp_context_tree_init(&parts), 0);
	add_stacks(&other, 0, NR_STACKS / 3);
	add_stacks(&parts, NR_STACKS / 3, NR_STACKS);
	ck_assert_int_eq(mp_context_add_tree(&other, 0, &parts, NULL, NULL), 0);
	mp_context_tree_fini(&parts);
	check_shape(&other);
	check_equal(&tree, &other);
}

static bool halve(void *arg, struct mp_context_key *key, struct mp_context_key *above)
{
	(void)arg;
	(void)above;
	key->vaddr &= ~UINT64_C(1);
	return false;
}

/* Above a function at an odd address stands a call from 0x300. */
static bool add_call(void *arg, struct mp_context_key *key, struct mp_context_key *above)
{
	(void)arg;
	*above = (struct mp_context_key){1, 0x300, MP_CONTEXT_CALL};
	return key->kind == MP_CONTEXT_FUNCTION && key->vaddr & 1;
}

TEST(node_that_becomes_two_keeps_its_samples_in_the_lower_one)
{
	struct mp_context_step steps[2] = {{{1, 0x100, MP_CONTEXT_CALL}, false},
					   {{1, 0x201, MP_CONTEXT_FUNCTION}, true}};
	const struct mp_context_key call = {1, 0x300, MP_CONTEXT_CALL};
	uint32_t above, first;

	ck_assert_int_eq(mp_context_add(&tree, steps, 2, 3, 30), 0);
	steps[1].key.vaddr = 0x203;
	ck_assert_int_eq(mp_context_add(&tree, steps, 2, 5, 50), 0);
	steps[1].key.vaddr = 0x204;
	ck_assert_int_eq(mp_context_add(&tree, steps, 2, 7, 70), 0);
	ck_assert_int_eq(mp_context_add_tree(&other, 0, &tree, add_call, NULL), 0);
	/* the call from 0x100, that from 0x300 below it, and three functions */
	ck_assert_uint_eq(other.nr_nodes, 6);
	ck_assert_uint_eq(other.nodes[0].total, 15);
	first = other.nodes[0].first;
	ck_assert_uint_eq(other.nodes[first].total, 15);
	above = mp_context_find(&other, first, &call);
	ck_assert_uint_ne(above, 0);
	ck_assert_uint_eq(other.nodes[above].self, 0);
	ck_assert_uint_eq(other.nodes[above].self_ns, 0);
	ck_assert_uint_eq(other.nodes[above].total, 8);
	ck_assert_uint_eq(other.nodes[above].total_ns, 80);
	ck_assert_uint_eq(other.nodes[above].nr_new, 2);
	/* Its children and those of its parent are in the order of their totals. */
	ck_assert_uint_eq(other.nodes[first].first, above);
	ck_assert_uint_eq(other.nodes[other.nodes[above].first].vaddr, 0x203);
	ck_assert_uint_eq(other.nodes[other.nodes[above].first].self, 5);
	ck_assert_uint_eq(other.nodes[other.nodes[above].last].vaddr, 0x201);
	check_shape(&other);
}

TEST(translated_keys_that_become_equal_share_a_node)
{
	struct mp_context_step steps[2] = {{{1, 0x100, MP_CONTEXT_CALL}, true},
					   {{1, 0x200, MP_CONTEXT_FUNCTION}, false}};

	ck_assert_int_eq(mp_context_add(&tree, steps, 2, 1, 10), 0);
	steps[0].key.vaddr++;
	ck_assert_int_eq(mp_context_add(&tree, steps, 2, 2, 20), 0);
	ck_assert_uint_eq(tree.nr_nodes, 5);
	ck_assert_int_eq(mp_context_add_tree(&other, 0, &tree, halve, NULL), 0);
	ck_assert_uint_eq(other.nr_nodes, 3);
	ck_assert_uint_eq(other.nodes[1].total, 3);
	ck_assert_uint_eq(other.nodes[1].nr_new, 2);
}

TEST(fold_keeps_sums_and_the_totals_of_what_is_left)
{
	static const uint32_t sizes[] = {1000, 400, 90, 12, 3, 2, 1};
	struct mp_context_key path[DEPTH];
	uint64_t nr_new, total;

	make_tree();
	nr_new = sum_new(&tree);
	total = tree.nodes[0].total;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		ck_assert_int_eq(mp_context_fold(&tree, sizes[k]), 0);
		ck_assert_uint_le(tree.nr_nodes, sizes[k] > 2 ? sizes[k] : 2);
		check_shape(&tree);
		ck_assert_uint_eq(tree.nodes[0].total, total);
		ck_assert_uint_eq(tree.nodes[0].total_ns, total * TIME_NS);
		ck_assert_uint_eq(sum_new(&tree), nr_new);
		for (uint32_t i = 0; i < tree.nr_nodes; i++)
			if (tree.nodes[i].kind != MP_CONTEXT_OTHER && path_of(&tree, i, path))
				check_node(&tree, i);
	}
}

TEST(fold_takes_the_smallest_leaves)
{
	uint64_t least = UINT64_MAX, most = 0;

	make_tree();
	ck_assert_int_eq(mp_context_add_tree(&other, 0, &tree, NULL, NULL), 0);
	ck_assert_int_eq(mp_context_fold(&tree, tree.nr_nodes / 2), 0);
	for (uint32_t i = 1; i < tree.nr_nodes; i++)
		if (tree.nodes[i].kind == MP_CONTEXT_FUNCTION && tree.nodes[i].total < least)
			least = tree.nodes[i].total;
	/* No node that was folded into "(other)" was larger than a leaf that stayed. */
	for (uint32_t i = 1; i < other.nr_nodes; i++) {
		struct mp_context_key path[DEPTH];
		size_t nr = path_of(&other, i, path), k;
		uint32_t node = 0, c = 1;

		for (k = 0; k < nr && c; k++) {
			for (c = tree.nodes[node].first; c; c = tree.nodes[c].next) {
				struct mp_context_key key = mp_context_key_of(&tree, c);

				if (same_key(&key, &path[k]))
					break;
			}
			node = c ? c : node;
		}
		if (!c && other.nodes[i].total > most)
			most = other.nodes[i].total;
	}
	ck_assert_uint_gt(most, 0);
	ck_assert_uint_le(most, least);
}

/* Paths of one call and one sample: the first ones are folded, the last ones may still grow. */
TEST(fold_takes_the_older_of_equal_leaves)
{
	struct mp_context_step steps[2] = {{{1, 0, MP_CONTEXT_CALL}, false},
					   {{1, 7, MP_CONTEXT_FUNCTION}, false}};

	for (uint32_t i = 0; i < 100; i++) {
		steps[0].key.vaddr = 1000 + i;
		ck_assert_int_eq(mp_context_add(&tree, steps, 2, 1, TIME_NS), 0);
	}
	ck_assert_int_eq(mp_context_fold(&tree, 101), 0);
	for (uint32_t i = 1; i < tree.nr_nodes; i++)
		if (tree.nodes[i].kind == MP_CONTEXT_CALL)
			ck_assert_uint_ge(tree.nodes[i].vaddr, 1050);
	ck_assert_uint_eq(tree.nodes[0].total, 100);
}

TEST(folded_trees_still_add_up)
{
	make_tree();
	add_stacks(&other, 0, NR_STACKS);
	ck_assert_int_eq(mp_context_fold(&tree, 100), 0);
	ck_assert_int_eq(mp_context_add_tree(&tree, 0, &other, NULL, NULL), 0);
	check_shape(&tree);
	ck_assert_uint_eq(tree.nodes[0].total, 2 * other.nodes[0].total);
	ck_assert_uint_eq(sum_new(&tree), 2 * sum_new(&other));
}

TEST(tree_refuses_what_it_cannot_count)
{
	struct mp_context_step steps[2] = {{{1, 0x100, MP_CONTEXT_CALL}, true},
					   {{1, 0x200, MP_CONTEXT_FUNCTION}, false}};

	ck_assert_int_eq(mp_context_add(&tree, steps, 1, 1, 1), -EINVAL);
	ck_assert_int_eq(mp_context_add(&tree, steps, 0, 1, 1), -EINVAL);
	ck_assert_int_eq(mp_context_add(&tree, steps, 2, INT64_MAX, 1), 0);
	ck_assert_int_eq(mp_context_add(&tree, steps, 2, 1, 1), -EOVERFLOW);
	ck_assert_int_eq(mp_context_add_tree(&tree, 0, &tree, NULL, NULL), -EOVERFLOW);
	ck_assert_uint_eq(tree.nodes[0].total, INT64_MAX);
}

TEST(bytes_give_the_tree_back)
{
	uint8_t *bytes, *again;
	size_t size, size_again;

	make_tree();
	/* A sample with a time of its own. */
	ck_assert_int_eq(mp_context_add(&tree, stacks[5].steps, stacks[5].nr, 1, 123), 0);
	ck_assert_int_eq(mp_context_encode(&tree, &bytes, &size), 0);
	mp_context_tree_fini(&other);
	ck_assert_int_eq(mp_context_decode(bytes, size, &other, NULL), 0);
	check_shape(&other);
	check_equal(&tree, &other);
	ck_assert_uint_lt(size, 8 * tree.nr_nodes);
	ck_assert_int_eq(mp_context_encode(&other, &again, &size_again), 0);
	ck_assert_uint_eq(size, size_again);
	free(bytes);
	free(again);
}

TEST(bytes_of_an_empty_tree_are_read)
{
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_context_encode(&tree, &bytes, &size), 0);
	mp_context_tree_fini(&other);
	ck_assert_int_eq(mp_context_decode(bytes, size, &other, NULL), 0);
	ck_assert_uint_eq(other.nr_nodes, 1);
}

TEST(bytes_stay_below_a_limit)
{
	static const size_t limits[] = {4096, 1000, 200, 64};
	uint64_t total;
	uint8_t *bytes;
	size_t size;

	make_tree();
	total = tree.nodes[0].total;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		ck_assert_int_eq(mp_context_encode_within(&tree, limits[i], &bytes, &size), 0);
		ck_assert_uint_le(size, limits[i]);
		/* No more is folded than the limit needs. */
		ck_assert(limits[i] < 1000 || size > limits[i] * 3 / 4);
		ck_assert_uint_eq(tree.nodes[0].total, total);
		check_shape(&tree);
		free(bytes);
	}
}

TEST(damaged_bytes_are_refused)
{
	struct mp_context_tree read;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size, refused = 0;

	for (size_t i = 0; i < 40; i++)
		make_stack(&stacks[i]);
	add_stacks(&tree, 0, 40);
	ck_assert_int_eq(mp_context_encode(&tree, &bytes, &size), 0);
	for (size_t i = 0; i < size; i++)
		ck_assert_int_eq(mp_context_decode(bytes, i, &read, NULL), -EBADMSG);
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= 0x40;
		if (mp_context_decode(bytes, size, &read, NULL))
			refused++;
		else
			mp_context_tree_fini(&read);
		bytes[i] ^= 0x40;
	}
	/* Only addresses and counts are free. */
	ck_assert_uint_gt(refused, size / 4);
}

TEST(merged_trees_are_added_trees)
{
	struct mp_context_tree part, raw = {0};
	uint8_t *bytes;
	size_t size;

	make_tree();
	for (size_t from = 0; from < NR_STACKS; from += NR_STACKS / 4) {
		ck_assert_int_eq(mp_context_tree_init(&part), 0);
		add_stacks(&part, from, from + NR_STACKS / 4);
		ck_assert_int_eq(mp_context_encode(&part, &bytes, &size), 0);
		/* The memory of a tree that was refused is used again. */
		ck_assert_int_eq(mp_context_decode_raw(bytes, size - 1, &raw, NULL), -EBADMSG);
		ck_assert_int_eq(mp_context_decode_raw(bytes, size, &raw, NULL), 0);
		ck_assert_uint_eq(raw.nr_nodes, part.nr_nodes);
		ck_assert_int_eq(mp_context_merge(&other, &raw), 0);
		mp_context_tree_fini(&part);
		free(bytes);
	}
	mp_context_tree_fini(&raw);
	ck_assert_int_eq(mp_context_settle(&other), 0);
	check_shape(&other);
	check_equal(&tree, &other);
}
