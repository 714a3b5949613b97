// SPDX-License-Identifier: Apache-2.0
/*
 * test_context_pack - packed trees: they come back, are small, stay below a limit with exact sums, and what
 * nobody packed is refused without much memory.
 */
#include "libprof/context/context_pack.h"

#include "libprof/base/range_coder.h"
#include "libprof/context/context_codec.h"
#include "libprof/context/context_codec_private.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define DEPTH	10
#define TIME_NS 250000

static struct mp_context_tree tree, again;

static void setup(void)
{
	seed = 5;
	again = (struct mp_context_tree){0};
	ck_assert_int_eq(mp_context_tree_init(&tree), 0);
}

static void teardown(void)
{
	mp_context_tree_fini(&tree);
	mp_context_tree_fini(&again);
}

/* Stacks of functions that call few others. @keys: addresses at each depth. */
static void add_stacks(uint32_t nr, uint32_t keys)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct mp_context_step steps[DEPTH] = {0};
		size_t depth = 2 + random_below(DEPTH - 2);

		for (size_t k = 0; k < depth; k++)
			steps[k] = (struct mp_context_step){
				{1 + random_below(3),
				 0x1000 + 64 * random_below(1 + random_below(keys)),
				 random_below(30) ? MP_CONTEXT_CALL : MP_CONTEXT_AT},
				!random_below(3)};
		if (!random_below(10))
			steps[0].key = (struct mp_context_key){0, 3, MP_CONTEXT_TRUNCATED};
		steps[depth - 1].key.kind = MP_CONTEXT_FUNCTION;
		ck_assert_int_eq(mp_context_add(&tree, steps, depth, 1 + random_below(2), TIME_NS),
				 0);
	}
}

/* Both trees have the same nodes, with the same sums. */
static void check_equal(const struct mp_context_tree *a, const struct mp_context_tree *b)
{
	AUTO_FREE uint32_t *of = calloc(a->nr_nodes, sizeof(*of));

	ck_assert_uint_eq(a->nr_nodes, b->nr_nodes);
	for (uint32_t i = 0; i < a->nr_nodes; i++) {
		const struct mp_context_node *x = &a->nodes[i], *y;
		struct mp_context_key key = mp_context_key_of(a, i);

		if (i)
			of[i] = mp_context_find(b, of[x->parent], &key);
		ck_assert(!i == !of[i]);
		y = &b->nodes[of[i]];
		ck_assert_uint_eq(x->self, y->self);
		ck_assert_uint_eq(x->self_ns, y->self_ns);
		ck_assert_uint_eq(x->total, y->total);
		ck_assert_uint_eq(x->total_ns, y->total_ns);
		ck_assert_uint_eq(x->nr_new, y->nr_new);
	}
}

/* Packs the tree and reads it. Return: the size. */
static size_t pack_and_read(void)
{
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_context_pack(&tree, &bytes, &size), 0);
	mp_context_tree_fini(&again);
	ck_assert_int_eq(mp_context_decode(bytes, size, &again, NULL), 0);
	check_equal(&tree, &again);
	return size;
}

FIXTURE(setup, teardown);

TEST(packed_trees_come_back)
{
	static const uint32_t keys[] = {1, 2, 6, 100, 20000};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		mp_context_tree_clear(&tree);
		add_stacks(3000, keys[i]);
		pack_and_read();
		ck_assert_int_eq(mp_context_fold(&tree, tree.nr_nodes / 3), 0);
		pack_and_read();
	}
}

TEST(small_trees_come_back)
{
	struct mp_context_step steps[] = {{{1, UINT64_MAX, MP_CONTEXT_CALL}, true},
					  {{2, 0, MP_CONTEXT_FUNCTION}, false}};

	ck_assert_uint_lt(pack_and_read(), 20);
	ck_assert_uint_eq(again.nr_nodes, 1);
	ck_assert_int_eq(mp_context_add(&tree, steps + 1, 1, 1, TIME_NS), 0);
	pack_and_read();
	ck_assert_int_eq(mp_context_add(&tree, steps, 2, INT64_MAX / 2, 3), 0);
	pack_and_read();
}

TEST(samples_with_times_of_their_own_come_back)
{
	struct mp_context_step step = {{1, 0x100, MP_CONTEXT_FUNCTION}, false};

	add_stacks(200, 6);
	for (uint32_t i = 0; i < 50; i++) {
		step.key.vaddr = 0x100 + i;
		ck_assert_int_eq(mp_context_add(&tree, &step, 1, 1 + i % 3, random_below(1u << 30)),
				 0);
	}
	pack_and_read();
}

/* More keys behind one key than are remembered, each of them many times. */
TEST(a_site_that_calls_hundreds_of_functions_comes_back)
{
	for (uint32_t i = 0; i < 20000; i++) {
		struct mp_context_step steps[] = {
			{{1, random_below(40), MP_CONTEXT_CALL}, false},
			{{1, 0x500, MP_CONTEXT_CALL}, !random_below(2)},
			{{1, 0x1000 + random_below(300), MP_CONTEXT_FUNCTION}, false}};

		ck_assert_int_eq(mp_context_add(&tree, steps, 3, 1, TIME_NS), 0);
	}
	pack_and_read();
}

TEST(repeated_steps_take_little_room)
{
	AUTO_FREE uint8_t *plain = NULL;
	size_t size;

	add_stacks(20000, 8);
	ck_assert_int_eq(mp_context_encode(&tree, &plain, &size), 0);
	ck_assert_uint_lt(pack_and_read(), size / 2);
}

TEST(packed_trees_stay_below_limits_with_exact_sums)
{
	static const size_t limits[] = {30000, 4096, 1000, 300, 100};
	static const uint32_t nodes[] = {MP_CONTEXT_PACK_NODES_MAX, 5000, 700, 1};
	uint64_t total, time_ns;
	uint8_t *bytes;
	size_t size;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		for (size_t k = 0; k < sizeof(nodes) / sizeof(nodes[0]); k++) {
			mp_context_tree_clear(&tree);
			add_stacks(20000, 100);
			total = tree.nodes[0].total;
			time_ns = tree.nodes[0].total_ns;
			ck_assert_int_eq(mp_context_pack_within(&tree, limits[i], nodes[k], &bytes,
								&size),
					 0);
			ck_assert_uint_le(size, limits[i]);
			ck_assert_uint_le(tree.nr_nodes, nodes[k] > 2 ? nodes[k] : 2);
			/* No more is folded than one of the limits needs. */
			ck_assert(limits[i] < 1000 || size > limits[i] / 2 ||
				  tree.nr_nodes > nodes[k] / 2);
			ck_assert_uint_eq(tree.nodes[0].total, total);
			ck_assert_uint_eq(tree.nodes[0].total_ns, time_ns);
			pack_and_read();
			free(bytes);
		}
}

TEST(damaged_trees_are_refused)
{
	uint8_t *bytes;
	size_t size, refused = 0;

	add_stacks(40, 6);
	ck_assert_int_eq(mp_context_pack(&tree, &bytes, &size), 0);
	for (size_t i = 0; i < size; i++)
		ck_assert_int_eq(mp_context_decode(bytes, i, &again, NULL), -EBADMSG);
	for (size_t i = 0; i < size; i++)
		for (int bit = 0; bit < 8; bit++) {
			bytes[i] ^= 1 << bit;
			if (mp_context_decode(bytes, size, &again, NULL))
				refused++;
			else
				mp_context_tree_fini(&again);
			bytes[i] ^= 1 << bit;
		}
	/* A tree of another shape ends at another byte. */
	ck_assert_uint_gt(refused, size * 8 / 2);
	free(bytes);
	bytes = calloc(1, size + 1);
	ck_assert_int_eq(mp_context_decode(bytes, size, &again, NULL), -EBADMSG);
	free(bytes);
}

/* Few bytes that promise so many nodes. */
static int decode_promise(uint64_t nr_nodes, uint64_t nr_keys)
{
	struct mp_varint_writer w = {0};
	uint8_t zeros[64] = {0};
	int r;

	mp_varint_put(&w, MP_CONTEXT_PACKED);
	mp_varint_put(&w, TIME_NS);
	mp_varint_put(&w, 1);
	mp_varint_put(&w, nr_nodes);
	mp_varint_put(&w, nr_keys);
	mp_varint_put_bytes(&w, zeros, sizeof(zeros));
	r = mp_context_decode(w.bytes, w.size, &again, NULL);
	free(w.bytes);
	return r;
}

TEST(few_bytes_do_not_become_many_nodes)
{
	ck_assert_int_eq(decode_promise(0, 0), -EBADMSG);
	ck_assert_int_eq(decode_promise(100, 0), -EBADMSG);
	ck_assert_int_eq(decode_promise(100, 100), -EBADMSG);
	ck_assert_int_eq(decode_promise(100, 50), -EBADMSG);
	ck_assert_int_eq(decode_promise(MP_CONTEXT_PACK_NODES_MAX, 1), -EBADMSG);
	ck_assert_int_eq(decode_promise(MP_CONTEXT_PACK_NODES_MAX + 1, 1), -EBADMSG);
	ck_assert_int_eq(decode_promise(UINT32_MAX, 5), -EBADMSG);
	ck_assert_int_eq(decode_promise(UINT64_MAX, UINT64_MAX - 1), -EBADMSG);
}

/* A tree may be as deep as in the plain form: readers need no more stack for one form than for the other. */
TEST(trees_that_are_too_deep_are_refused)
{
	static const uint32_t depths[] = {MP_CONTEXT_DEPTH_MAX, MP_CONTEXT_DEPTH_MAX + 1};
	struct mp_context_step *steps = calloc(depths[1], sizeof(*steps));
	uint8_t *bytes;
	size_t size;

	for (int i = 0; i < 2; i++) {
		mp_context_tree_clear(&tree);
		for (uint32_t k = 0; k < depths[i]; k++)
			steps[k].key = (struct mp_context_key){
				1, 0x100,
				k + 1 < depths[i] ? MP_CONTEXT_CALL : MP_CONTEXT_FUNCTION};
		ck_assert_int_eq(mp_context_add(&tree, steps, depths[i], 1, TIME_NS), 0);
		ck_assert_int_eq(mp_context_pack(&tree, &bytes, &size), 0);
		ck_assert_uint_lt(size, 300);
		ck_assert_int_eq(mp_context_decode(bytes, size, &again, NULL), i ? -EBADMSG : 0);
		if (!i)
			mp_context_tree_fini(&again);
		free(bytes);
	}
	free(steps);
}
