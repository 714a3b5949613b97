// SPDX-License-Identifier: Apache-2.0
/*
 * test_contexts - samples with stacks become paths of a tree: which step an address makes, what is
 * certainly new, where truncated stacks hang, and what counts for an original.
 */
#include "daemon/context/contexts.h"

#include "daemon/attribute/attribute.h"
#include "libprof/unwind/rows_compile.h"
#include "tests/support/frames.h"
#include "tests/unit/suite.h"

#define MAPPED 0x10000000
#define LINKED 0x401000
#define OTHER  0x20000000 /* where a second module is mapped, linked at LINKED, too */
#define KERNEL 0xffffffff81000000

static struct md_attribute at;
static struct md_buf buf;

static void setup(void)
{
	ck_assert_int_eq(md_attribute_init(&at), 0);
	md_contexts_set_period(at.contexts, 250000);
}

static void teardown(void)
{
	md_attribute_fini(&at);
	md_buf_fini(&buf);
	memset(&buf, 0, sizeof(buf));
}

static void feed(void)
{
	struct morph_record *record;
	size_t pos = 0;

	while (!md_record_next(buf.data, buf.size, &pos, &record))
		ck_assert_int_eq(md_attribute_record(&at, record), 0);
	buf.size = 0;
	ck_assert(md_attribute_is_conserved(&at));
}

static void module(uint32_t n, uint64_t text_hash, uint32_t nr_pieces)
{
	struct morph_module *r = md_record_add(&buf, MORPH_REC_MODULE, sizeof(*r) + 24 + 8);

	r->module = n;
	r->nr_segments = 1;
	r->text_hash = text_hash;
	r->text_size = 0x2000;
	r->nr_pieces = nr_pieces;
	r->segments[0] = (struct morph_segment){0x1000, LINKED, 0x2000};
	memcpy(&r->segments[1], "/bin/m", 7);
}

static void map(uint32_t n, uint64_t start)
{
	struct morph_mmap *r = md_record_add_mmap(&buf, 2, 1, 1, "/bin/m");

	r->start = start;
	r->len = 0x2000;
	r->off = 0x1000;
	r->module = n;
}

static void program(void)
{
	struct morph_exec *r = md_record_add_task(&buf, MORPH_REC_EXEC, sizeof(*r), 1, 1, 1);

	r->nr_threads = 1;
	module(1, 0xaa, 0);
	map(1, MAPPED);
	module(2, 0xbb, 0);
	map(2, OTHER);
}

static void sample(uint64_t ip)
{
	struct morph_samples *r;

	r = md_record_add_task(&buf, MORPH_REC_SAMPLES, sizeof(*r) + 8, 3, 1, 1);
	r->ips[0] = ip;
}

static void stack(uint32_t flags, const uint64_t *ips, size_t nr)
{
	struct morph_stack *r;

	r = md_record_add_task(&buf, MORPH_REC_STACK, sizeof(*r) + nr * 8, 3, 1, 1);
	r->task.flags = flags;
	memcpy(r->ips, ips, nr * 8);
}

/* The tree of the only program, as it would be stored. */
static struct mp_context_tree stored(void)
{
	struct mp_context_tree tree;
	uint32_t index;

	feed();
	ck_assert_uint_eq(md_contexts_nr_programs(at.contexts), 1);
	ck_assert_int_eq(md_contexts_tree(at.contexts, 0, at.modcache, &index, NULL, &tree), 0);
	return tree;
}

static uint64_t hash_of(uint64_t text_hash)
{
	return mp_context_module_of(&(struct mp_id){.text_hash = text_hash});
}

/* Checks that the only child of @node, or its first one, has this key. Return: it. */
static uint32_t expect_child(const struct mp_context_tree *tree, uint32_t node, uint64_t module_of,
			     uint64_t vaddr, enum mp_context_kind kind)
{
	uint32_t child = tree->nodes[node].first;
	struct mp_context_key key;

	ck_assert_uint_ne(child, 0);
	key = mp_context_key_of(tree, child);
	ck_assert_uint_eq(key.kind, kind);
	ck_assert_uint_eq(key.vaddr, vaddr);
	ck_assert_uint_eq(key.module, module_of);
	return child;
}

FIXTURE(setup, teardown);

TEST(path_goes_from_the_outermost_call_to_the_function)
{
	const uint64_t ips[] = {OTHER + 0x20, MAPPED + 0x30};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};
	uint32_t n;

	program();
	sample(MAPPED + 0x10);
	stack(MORPH_STACK_BOTTOM, ips, 2);
	tree = stored();
	n = expect_child(&tree, 0, hash_of(0xaa), LINKED + 0x30, MP_CONTEXT_CALL);
	n = expect_child(&tree, n, hash_of(0xbb), LINKED + 0x20, MP_CONTEXT_CALL);
	n = expect_child(&tree, n, hash_of(0xaa), LINKED + 0x10, MP_CONTEXT_FUNCTION);
	ck_assert_uint_eq(tree.nodes[n].self, 1);
	ck_assert_uint_eq(tree.nodes[n].self_ns, 250000);
	ck_assert_uint_eq(at.ledger.contexts, 1);
}

TEST(only_calls_that_are_not_old_are_certainly_new)
{
	const uint64_t ips[] = {MAPPED + 0x20, MAPPED + 0x30, MAPPED + 0x40};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};
	uint32_t outer, middle, inner, function;

	program();
	sample(MAPPED + 0x10);
	stack(MORPH_STACK_BOTTOM, ips, 3); /* nothing is known */
	sample(MAPPED + 0x10);
	stack(MORPH_STACK_BOTTOM | MORPH_STACK_AGED | 1 << MORPH_STACK_OLD_SHIFT, ips, 3);
	sample(MAPPED + 0x10);
	stack(MORPH_STACK_BOTTOM | MORPH_STACK_AGED | 2 << MORPH_STACK_OLD_SHIFT, ips, 3);
	tree = stored();
	outer = tree.nodes[0].first;
	middle = tree.nodes[outer].first;
	inner = tree.nodes[middle].first;
	function = tree.nodes[inner].first;
	ck_assert_uint_eq(tree.nodes[outer].total, 3);
	ck_assert_uint_eq(tree.nodes[outer].nr_new, 0);
	ck_assert_uint_eq(tree.nodes[middle].nr_new, 0);
	ck_assert_uint_eq(tree.nodes[inner].nr_new, 1);
	ck_assert_uint_eq(tree.nodes[function].nr_new, 2);
}

/* ---- functions that calls enter ---- */

#define CALLER 0x100 /* functions, from the module's start; each has 0x100 bytes */
#define FIRST  0x200
#define SECOND 0x300
#define PART   0x400 /* of SECOND: rows begin with its frame */
#define LEAF   0x500

/* Gives the program's module unwind rows. */
static void give_rows(void)
{
	struct morph_module_unwind *r;
	static struct frames frames;
	struct mp_cursor cur;
	void *bytes;
	size_t size;

	memset(&frames, 0, sizeof(frames));
	frames_cie(&frames, false);
	FRAMES_FDE(&frames, LINKED + CALLER, 0x100, 0);
	FRAMES_FDE(&frames, LINKED + FIRST, 0x100, 0);
	FRAMES_FDE(&frames, LINKED + SECOND, 0x100, 0);
	FRAMES_FDE(&frames, LINKED + PART, 0x100, 0x0e, 24);
	FRAMES_FDE(&frames, LINKED + LEAF, 0x100, 0);
	cur = frames_cursor(&frames);
	ck_assert_int_eq(mp_rows_make(&cur, true, 0, NULL, &bytes, &size, NULL), 0);
	feed();
	r = md_record_add(&buf, MORPH_REC_MODULE_UNWIND, sizeof(*r) + size);
	r->module = 1;
	r->table_size = (uint32_t)size;
	r->nr = (uint32_t)size;
	memcpy(r->bytes, bytes, size);
	ck_assert_int_eq(md_modcache_add_unwind_record(at.modcache, r), 0);
	free(bytes);
	buf.size = 0;
}

/*
 * A call in CALLER entered the function at @then, later that at @now; both called LEAF. @flags: of the last
 * stack. Return: samples in which the activation there was certainly new.
 */
static uint64_t new_at(uint32_t flags, uint64_t then, uint64_t now)
{
	uint64_t ips[] = {MAPPED + then, MAPPED + CALLER + 8, MAPPED + CALLER + 32};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};
	uint32_t n;
	uint64_t nr;

	program();
	give_rows();
	sample(MAPPED + LEAF + 4);
	stack(MORPH_STACK_BOTTOM, ips, 3);
	ips[0] = MAPPED + now;
	sample(MAPPED + LEAF + 4);
	stack(flags | MORPH_STACK_AGED | 2 << MORPH_STACK_OLD_SHIFT, ips, 3);
	tree = stored();
	n = tree.nodes[0].last; /* a truncated stack hangs behind the complete one */
	if (flags & MORPH_STACK_STOP & ~MORPH_STACK_BOTTOM)
		n = tree.nodes[n].first;
	n = tree.nodes[tree.nodes[n].first].last;
	ck_assert_uint_eq(tree.nodes[n].vaddr, LINKED + now);
	nr = tree.nodes[n].nr_new;
	return nr;
}

TEST(call_that_enters_another_function_is_certainly_new)
{
	ck_assert_uint_eq(new_at(MORPH_STACK_BOTTOM, FIRST + 8, SECOND + 8), 1);
}

TEST(call_site_of_the_same_function_is_not_known_to_be_new)
{
	ck_assert_uint_eq(new_at(MORPH_STACK_BOTTOM, FIRST + 8, FIRST + 32), 0);
}

/* The last byte of a call may be the last one of its function. */
TEST(return_address_belongs_to_the_call_before_it)
{
	ck_assert_uint_eq(new_at(MORPH_STACK_BOTTOM, FIRST + 8, SECOND), 0);
}

TEST(part_of_a_function_is_not_taken_for_another)
{
	ck_assert_uint_eq(new_at(MORPH_STACK_BOTTOM, SECOND + 8, PART + 8), 0);
}

TEST(truncated_stack_shows_no_other_function)
{
	ck_assert_uint_eq(new_at(MORPH_STACK_COPY, FIRST + 8, SECOND + 8), 0);
}

TEST(stack_of_another_program_shows_no_other_function)
{
	const uint64_t ips[] = {MAPPED + FIRST + 8, MAPPED + CALLER + 8};
	uint64_t other[] = {MAPPED + SECOND + 8, MAPPED + CALLER + 8};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};
	struct morph_exec *exec;
	struct morph_stack *r;

	program();
	give_rows();
	sample(MAPPED + LEAF);
	stack(MORPH_STACK_BOTTOM, ips, 2);
	feed();
	exec = md_record_add_task(&buf, MORPH_REC_EXEC, sizeof(*exec), 4, 1, 1);
	exec->nr_threads = 1;
	exec->task.exec_id = 7;
	map(1, MAPPED);
	((struct morph_mmap *)(void *)(buf.data + sizeof(*exec)))->task.exec_id = 7;
	feed();
	sample(MAPPED + LEAF);
	((struct morph_samples *)(void *)buf.data)->task.exec_id = 7;
	feed();
	stack(MORPH_STACK_BOTTOM | MORPH_STACK_AGED | 1 << MORPH_STACK_OLD_SHIFT, other, 2);
	r = (void *)buf.data;
	r->task.exec_id = 7;
	tree = stored();
	ck_assert_uint_eq(tree.nodes[0].total, 2);
	for (uint32_t i = 1; i < tree.nr_nodes; i++)
		if (tree.nodes[i].vaddr == LINKED + SECOND + 8)
			ck_assert_uint_eq(tree.nodes[i].nr_new, 0);
}

TEST(truncated_stack_hangs_below_its_reason)
{
	const uint64_t ips[] = {MAPPED + 0x20, MAPPED + 0x30};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};
	uint32_t n;

	program();
	sample(MAPPED + 0x10);
	stack(MORPH_STACK_COPY, ips, 2);
	sample(MAPPED + 0x10);
	stack(MORPH_STACK_COPY, ips, 0);
	tree = stored();
	n = expect_child(&tree, 0, 0, MP_WALK_COPY, MP_CONTEXT_TRUNCATED);
	ck_assert_uint_eq(tree.nodes[n].total, 2);
	ck_assert_uint_eq(tree.nodes[n].next, 0);
	ck_assert_uint_eq(tree.nodes[tree.nodes[n].last].total, 1);
}

TEST(kernel_is_entered_at_an_instruction)
{
	const uint64_t ips[] = {MAPPED + 0x20, MAPPED + 0x30};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};
	uint32_t n;

	program();
	sample(KERNEL + 5);
	stack(MORPH_STACK_BOTTOM | MORPH_STACK_USER_IP | MORPH_STACK_AGED, ips, 2);
	tree = stored();
	n = expect_child(&tree, 0, hash_of(0xaa), LINKED + 0x30, MP_CONTEXT_CALL);
	ck_assert_uint_eq(tree.nodes[n].nr_new, 0);
	n = expect_child(&tree, n, hash_of(0xaa), LINKED + 0x20, MP_CONTEXT_AT);
	ck_assert_uint_eq(tree.nodes[n].nr_new, 1);
	n = expect_child(&tree, n, 0, MP_CONTEXT_KERNEL, MP_CONTEXT_FUNCTION);
	ck_assert_uint_eq(tree.nodes[n].nr_new, 0);
}

TEST(call_at_the_end_of_a_mapping_belongs_to_it)
{
	const uint64_t ips[] = {MAPPED + 0x2000, 0x7000000};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};
	uint32_t n;

	program();
	sample(0x6000000);
	stack(MORPH_STACK_BOTTOM, ips, 2);
	tree = stored();
	n = expect_child(&tree, 0, 0, MP_CONTEXT_UNMAPPED, MP_CONTEXT_CALL);
	n = expect_child(&tree, n, hash_of(0xaa), LINKED + 0x2000, MP_CONTEXT_CALL);
	expect_child(&tree, n, 0, MP_CONTEXT_UNMAPPED, MP_CONTEXT_FUNCTION);
}

/* Module 3 is an output of 0xcc: its first 16 bytes and the next 16 were apart there. */
static void output(void)
{
	struct morph_exec *e = md_record_add_task(&buf, MORPH_REC_EXEC, sizeof(*e), 1, 1, 1);
	struct morph_module_map *m;

	e->nr_threads = 1;
	module(3, 0xdd, 2);
	m = md_record_add(&buf, MORPH_REC_MODULE_MAP, sizeof(*m) + 2 * sizeof(m->pieces[0]));
	m->module = 3;
	m->text_hash = 0xcc;
	m->pieces[0] = (struct morph_piece){LINKED, 0x5000, 0x10, 0x10};
	m->pieces[1] = (struct morph_piece){LINKED + 0x10, 0x6000, 0x10, 0x10};
	map(3, MAPPED);
}

static void confirm(void)
{
	struct morph_module_output *r = md_record_add(&buf, MORPH_REC_MODULE_OUTPUT, sizeof(*r));

	r->module = 3;
}

TEST(stack_in_a_copy_counts_for_the_original)
{
	/* The call is the last instruction of the first piece. */
	const uint64_t ips[] = {MAPPED + 0x10};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};
	uint32_t n;

	output();
	sample(MAPPED + 0x14);
	stack(MORPH_STACK_BOTTOM, ips, 1);
	confirm();
	tree = stored();
	n = expect_child(&tree, 0, hash_of(0xcc), 0x5010, MP_CONTEXT_CALL);
	expect_child(&tree, n, hash_of(0xcc), 0x6004, MP_CONTEXT_FUNCTION);
}

TEST(stack_in_a_file_that_claims_to_be_a_copy_counts_for_the_file)
{
	const uint64_t ips[] = {MAPPED + 0x10};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};

	output();
	sample(MAPPED + 0x14);
	stack(MORPH_STACK_BOTTOM, ips, 1);
	tree = stored();
	expect_child(&tree, 0, hash_of(0xdd), LINKED + 0x10, MP_CONTEXT_CALL);
}

/*
 * Module 3 is an output of 0xcc. Block 0x5000 ended in a call of the function at 0x7000, which has the blocks 0x7004,
 * in place of the call, and 0x7020, apart. Block 0x5010 follows the call.
 */
static void inlining_output(void)
{
	const struct morph_piece pieces[] = {{LINKED, 0x5000, 0x0b, 0x10},
					     {LINKED + 0x0b, 0x7004, 0x10, 0x11},
					     {LINKED + 0x1b, 0x5010, 0x10, 0x10},
					     {LINKED + 0x40, 0x7020, 0x10, 0x10}};
	struct morph_exec *e = md_record_add_task(&buf, MORPH_REC_EXEC, sizeof(*e), 1, 1, 1);
	struct morph_module_calls *c;
	struct morph_module_map *m;

	e->nr_threads = 1;
	module(3, 0xdd, 4);
	m = md_record_add(&buf, MORPH_REC_MODULE_MAP, sizeof(*m) + sizeof(pieces));
	m->module = 3;
	m->text_hash = 0xcc;
	memcpy(m->pieces, pieces, sizeof(pieces));
	for (uint32_t i = 0; i < 2; i++) {
		c = md_record_add(&buf, MORPH_REC_MODULE_CALLS, sizeof(*c) + sizeof(c->calls[0]));
		c->module = 3;
		c->first = i;
		c->nr = 1;
		c->calls[0] = (struct morph_module_call){0x5010, 0x7000, i ? 3 : 1, 1};
	}
	map(3, MAPPED);
}

/* The sample hits the called function, in place of the call or apart: both are one node. */
TEST(code_in_place_of_a_call_has_the_frames_of_two_functions)
{
	const uint64_t ips[] = {MAPPED + 0x20};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};
	uint32_t n;

	inlining_output();
	sample(MAPPED + 0x0b);
	stack(MORPH_STACK_BOTTOM | MORPH_STACK_AGED, ips, 1);
	sample(MAPPED + 0x1a);
	stack(MORPH_STACK_BOTTOM, ips, 1);
	sample(MAPPED + 0x44);
	stack(MORPH_STACK_BOTTOM, ips, 1);
	confirm();
	tree = stored();
	ck_assert_uint_eq(tree.nr_nodes, 4);
	n = expect_child(&tree, 0, hash_of(0xcc), 0x5015, MP_CONTEXT_CALL);
	n = expect_child(&tree, n, hash_of(0xcc), 0x5010, MP_CONTEXT_CALL);
	ck_assert_uint_eq(tree.nodes[n].self, 0);
	ck_assert_uint_eq(tree.nodes[n].total, 3);
	ck_assert_uint_eq(tree.nodes[n].total_ns, 750000);
	ck_assert_uint_eq(tree.nodes[n].nr_new, 1);
	n = expect_child(&tree, n, hash_of(0xcc), 0x7000, MP_CONTEXT_FUNCTION);
	ck_assert_uint_eq(tree.nodes[n].self, 3);
	ck_assert_uint_eq(tree.nodes[n].nr_new, 1);
}

TEST(code_around_a_replaced_call_has_one_frame)
{
	const uint64_t at_places[] = {MAPPED,	     MAPPED + 0x0a, MAPPED + 0x1b,
				      MAPPED + 0x2a, MAPPED + 0x3f, MAPPED + 0x50};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};

	inlining_output();
	for (size_t i = 0; i < sizeof(at_places) / sizeof(at_places[0]); i++) {
		sample(at_places[i]);
		stack(MORPH_STACK_BOTTOM, NULL, 0);
	}
	confirm();
	tree = stored();
	for (uint32_t i = 1; i < tree.nr_nodes; i++) {
		ck_assert_uint_eq(tree.nodes[i].parent, 0);
		ck_assert_int_eq(tree.nodes[i].kind, MP_CONTEXT_FUNCTION);
	}
	ck_assert_uint_eq(tree.nodes[0].total, 6);
}

/* The kernel was entered from there; and a call from there, of a function that is not inlined. */
TEST(frames_in_the_middle_of_a_stack_become_two)
{
	const uint64_t entered[] = {MAPPED + 0x0d, MAPPED + 0x20};
	const uint64_t called[] = {MAPPED + 0x1b, MAPPED + 0x20};
	struct mp_context_tree tree;
	uint32_t n, in;

	inlining_output();
	sample(KERNEL + 5);
	stack(MORPH_STACK_BOTTOM | MORPH_STACK_USER_IP, entered, 2);
	sample(KERNEL + 5);
	stack(MORPH_STACK_BOTTOM | MORPH_STACK_USER_IP, entered, 2);
	/* A return address at the end of the code belongs to a call in it, not to what follows. */
	sample(0x6000000);
	stack(MORPH_STACK_BOTTOM, called, 2);
	confirm();
	tree = stored();
	n = expect_child(&tree, 0, hash_of(0xcc), 0x5015, MP_CONTEXT_CALL);
	n = expect_child(&tree, n, hash_of(0xcc), 0x5010, MP_CONTEXT_CALL);
	ck_assert_uint_eq(tree.nodes[n].total, 3);
	in = expect_child(&tree, n, hash_of(0xcc), 0x7006, MP_CONTEXT_AT);
	expect_child(&tree, in, 0, MP_CONTEXT_KERNEL, MP_CONTEXT_FUNCTION);
	in = tree.nodes[n].last;
	ck_assert_int_eq(tree.nodes[in].kind, MP_CONTEXT_CALL);
	ck_assert_uint_eq(tree.nodes[in].vaddr, 0x7014);
	expect_child(&tree, in, 0, MP_CONTEXT_UNMAPPED, MP_CONTEXT_FUNCTION);
	mp_context_tree_fini(&tree);
}

TEST(file_that_only_claims_to_replace_calls_gets_no_frames)
{
	const uint64_t ips[] = {MAPPED + 0x20};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};
	uint32_t n;

	inlining_output();
	sample(MAPPED + 0x10);
	stack(MORPH_STACK_BOTTOM, ips, 1);
	tree = stored();
	ck_assert_uint_eq(tree.nr_nodes, 3);
	n = expect_child(&tree, 0, hash_of(0xdd), LINKED + 0x20, MP_CONTEXT_CALL);
	expect_child(&tree, n, hash_of(0xdd), LINKED + 0x0b, MP_CONTEXT_FUNCTION);
}

TEST(stack_without_its_sample_is_not_counted)
{
	const uint64_t ips[] = {MAPPED + 0x20};

	program();
	stack(MORPH_STACK_BOTTOM, ips, 1);
	sample(MAPPED + 0x10);
	stack(MORPH_STACK_BOTTOM, ips, 1);
	stack(MORPH_STACK_BOTTOM, ips, 1); /* the sample has one already */
	feed();
	ck_assert_uint_eq(at.ledger.contexts, 1);
	ck_assert_uint_eq(at.ledger.stacks[MP_WALK_BOTTOM], 3);
	ck_assert_uint_eq(md_contexts_nr(at.contexts), 1);
}

TEST(trees_stay_within_their_memory)
{
	uint64_t ips[20];
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};

	program();
	ck_assert(!md_contexts_is_nearly_full(at.contexts));
	for (uint32_t i = 0; i < 20000; i++) {
		for (uint32_t k = 0; k < 20; k++)
			ips[k] = MAPPED + (i * (k + 7) * 2654435761u >> 19) + 1;
		sample(MAPPED + i % 512);
		stack(MORPH_STACK_BOTTOM, ips, 20);
	}
	tree = stored();
	ck_assert_uint_le(tree.nr_nodes, MD_CONTEXTS_NODES_MAX);
	ck_assert_uint_gt(tree.nr_nodes, MD_CONTEXTS_NODES_MAX / 4);
	ck_assert_uint_eq(tree.nodes[0].total, 20000);
	ck_assert_uint_eq(at.ledger.contexts, 20000);
	ck_assert(md_contexts_is_nearly_full(at.contexts));
	md_contexts_clear(at.contexts);
	ck_assert(!md_contexts_is_nearly_full(at.contexts));
}
