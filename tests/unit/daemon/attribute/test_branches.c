// SPDX-License-Identifier: Apache-2.0
/*
 * test_branches - branch stacks of a recording in the store: taken branches inside a module
 * become its edges, other entries are counted by kind, and branches in moved code are
 * translated to the original.
 */
#include "daemon/module/copy_transfers.h"
#include "libprof/note/map_calls.h"
#include "tests/unit/recording.h"

static struct md_branch_ledger ledger; /* of the last replay */

/* ---- recordings ---------------------------------------------------------------------------- */

static void add_branches(const struct morph_branch *branches, size_t nr)
{
	struct morph_branches *r = md_record_add_task(&buf, MORPH_REC_BRANCHES,
						      sizeof(*r) + nr * sizeof(*branches), 3, 1, 1);

	memcpy(r->branches, branches, nr * sizeof(*branches));
}

static void replay(uint32_t nr_repeats)
{
	struct md_pipeline *pl = open_replay(nr_repeats);

	ck_assert_msg(!md_pipeline_run(pl, &err), "%s", err.msg);
	ledger = pl->at.branches;
	ck_assert_uint_eq(ledger.seen, ledger.kernel + ledger.unmapped + ledger.cross_module +
					       ledger.table_full + ledger.counted);
	close_replay(pl);
}

static void expect(uint64_t text_hash, const struct mp_edge_count *want, size_t nr_want)
{
	struct mp_id id = {.text_hash = text_hash};
	AUTO_FREE struct mp_edge_count *have = NULL;
	struct mp_module module;
	struct mp_store *store;
	size_t nr;

	ck_assert_msg(!mp_store_open(db, MP_STORE_READ, &store, &err), "%s", err.msg);
	ck_assert_msg(!mp_store_find_module(store, &id, &module, &err), "%s", err.msg);
	ck_assert_msg(!mp_store_read_edges(store, module.key, 0, &have, &nr, &err), "%s", err.msg);
	free(module.path);
	ck_assert_uint_eq(nr, nr_want);
	for (size_t i = 0; i < nr; i++) {
		ck_assert_uint_eq(have[i].from, want[i].from);
		ck_assert_uint_eq(have[i].to, want[i].to);
		ck_assert_uint_eq(have[i].count, want[i].count);
		ck_assert_uint_eq(have[i].mispredicted, 0);
	}
	mp_store_close(store);
}

FIXTURE(setup, teardown);

TEST(branches_inside_a_module_become_its_edges)
{
	const struct morph_branch stack[] = {{0x10000010, 0x10000100},
					     {0x10000180, 0x10000000},
					     {0x10000010, 0x10000100},
					     {0x10000180, 0x10000008}};
	const struct mp_edge_count want[] = {{LINKED + 0x10, LINKED + 0x100, 6, 0},
					     {LINKED + 0x180, LINKED, 3, 0},
					     {LINKED + 0x180, LINKED + 8, 3, 0}};

	begin();
	add_module(1, 0xaa, 0);
	add_map(0x10000000, 1);
	add_branches(stack, 4);
	/* There are no samples: edges alone must be flushed too. */
	replay(3);
	expect(0xaa, want, 3);
	ck_assert_uint_eq(ledger.seen, 12);
	ck_assert_uint_eq(ledger.counted, 12);
}

TEST(branches_that_are_no_edge_of_a_module_are_counted_as_what_they_are)
{
	const uint64_t kernel = UINT64_C(0xffffffff81000000);
	const struct morph_branch stack[] = {{0x10000010, 0x20000000}, /* a call of a library */
					     {0x20000040, 0x10000014}, /* and back */
					     {0x10000020, kernel},     /* a system call */
					     {kernel + 8, 0x10000022}, /* and back */
					     {kernel, kernel + 4},
					     {0x10000030, 0x30000000}, /* no mapping there */
					     {0x30000000, 0x10000000},
					     {0x10000040, 0x10000050}};
	const struct mp_edge_count want[] = {{LINKED + 0x40, LINKED + 0x50, 1, 0}};

	begin();
	add_module(1, 0xaa, 0);
	add_module(2, 0xbb, 0);
	add_map(0x10000000, 1);
	add_map(0x20000000, 2);
	add_branches(stack, 8);
	replay(1);
	expect(0xaa, want, 1);
	ck_assert_uint_eq(ledger.cross_module, 2);
	ck_assert_uint_eq(ledger.kernel, 3);
	ck_assert_uint_eq(ledger.unmapped, 2);
	ck_assert_uint_eq(ledger.counted, 1);
}

TEST(branches_of_a_process_never_seen_are_in_no_module)
{
	const struct morph_branch stack[] = {{0x10000010, 0x10000020}};
	struct morph_samples *s;

	add_branches(stack, 1);
	s = md_record_add_task(&buf, MORPH_REC_SAMPLES, sizeof(*s) + 8, 4, 1, 1);
	s->ips[0] = 0x1000;
	replay(1);
	ck_assert_uint_eq(ledger.unmapped, 1);
}

/*
 *	original (linked at 0x401000)		copy, at 0x403000
 *	A 1000..1010  jcc C	2 bytes		A' 3000..3010  jncc B'	2 bytes: falls into C'
 *	B 1010..1020  falls			C' 3010..301e  its jump to A left out: falls into A2'
 *	C 1020..1030  jmp D	2 bytes		D' 301e..3032  falls; a jump to E was added
 *	D 1060..1070  falls			B' 3040..3050  is before nothing
 */
static void add_optimised(void)
{
	const struct morph_piece pieces[] = {{0x403000, 0x401000, 0x10, 0x10},
					     {0x403010, 0x401020, 0x0e, 0x10},
					     {0x40301e, 0x401060, 0x15, 0x10},
					     {0x403040, 0x401010, 0x10, 0x10}};

	begin();
	add_module(1, 0xaa, 4);
	add_pieces(1, 0xbb, pieces, 4);
	add_output(1);
	add_map(0x10000000, 1);
}

static void add_ends(uint32_t first, uint32_t nr, const uint32_t *ends)
{
	struct morph_module_ends *r =
		md_record_add(&buf, MORPH_REC_MODULE_ENDS, sizeof(*r) + nr * sizeof(*ends));

	r->module = 1;
	r->first = first;
	r->nr = nr;
	memcpy(r->ends, ends, nr * sizeof(*ends));
}

TEST(branches_of_moved_code_whose_ends_are_known_lack_none)
{
	const struct morph_branch straight[] = {{0x1000202e, 0x10000070}, {0x10000000, 0x10002000}};
	const struct mp_edge_count want[] = {{0x40100e, 0x401020, 1, 0},
					     {0x40102e, 0x401060, 1, 0}};
	const uint32_t first[] = {0xe, 0xe, 0x10}, last[] = {0x10}, beyond[] = {1, 1};

	add_optimised();
	add_ends(0, 3, first);
	add_ends(3, 1, last);
	add_ends(3, 2, beyond); /* an end for a piece that does not exist is ignored */
	add_branches(straight, 2);
	replay(1);
	expect(0xbb, want, 2);
	/* D' to E, and the patch. */
	ck_assert_uint_eq(ledger.untranslated, 2);
}

TEST(ends_are_recorded_with_the_module)
{
	const uint32_t ends[] = {0xe, 0xe, 0x10, 0x10};
	struct md_modcache *mc = md_modcache_new(), *again = md_modcache_new();
	const struct md_module *m;
	AUTO(md_buf_fini) struct md_buf said = {0};

	add_optimised();
	add_ends(0, 4, ends);
	take_modules(mc, &buf);
	ck_assert_int_eq(md_modcache_write_records(mc, md_modcache_file(mc, 1), &said), 0);
	take_modules(again, &said);
	m = md_modcache_module(again, md_modcache_file(again, 1)->module);
	ck_assert_ptr_nonnull(m->map_ends);
	ck_assert_int_eq(memcmp(m->map_ends, ends, sizeof(ends)), 0);
	md_modcache_free(mc);
	md_modcache_free(again);
}

/* @calls: of module 1, whose map has four pieces. Return: how many of them are believed. */
static uint32_t take_calls(const struct morph_module_call *calls, uint32_t first, uint32_t nr,
			   int ret)
{
	struct md_modcache *mc = md_modcache_new(), *again = md_modcache_new();
	struct morph_module_calls *r;
	const struct mp_map *one, *two;
	AUTO(md_buf_fini) struct md_buf said = {0};

	buf.size = 0;
	add_optimised();
	take_modules(mc, &buf);
	r = md_record_add(&said, MORPH_REC_MODULE_CALLS, sizeof(*r) + nr * sizeof(*calls));
	r->module = 1;
	r->first = first;
	r->nr = nr;
	memcpy(r->calls, calls, nr * sizeof(*calls));
	ck_assert_int_eq(md_modcache_add_calls_record(mc, r), ret);
	/* A module with a believed map is written with its calls, and reading them gives the same calls. */
	said.size = 0;
	ck_assert_int_eq(md_modcache_write_records(mc, md_modcache_file(mc, 1), &said), 0);
	take_modules(again, &said);
	one = md_modcache_module(mc, md_modcache_file(mc, 1)->module)->map;
	two = md_modcache_module(again, md_modcache_file(again, 1)->module)->map;
	ck_assert(mp_map_same_calls(one, two));
	nr = one->nr_calls;
	md_modcache_free(mc);
	md_modcache_free(again);
	return nr;
}

TEST(replaced_calls_are_recorded_with_the_module)
{
	static const struct morph_module_call good[] = {{0x401020, 0x401060, 1, 1},
							{0x401010, 0x401060, 3, 1}};
	static const struct morph_module_call bad[][2] = {
		{{1, 1, 1, 1}, {1, 1, 1, 1}}, /* one piece twice */
		{{1, 1, 3, 2}, {1, 1, 3, 1}}, /* behind the last piece */
		{{1, 1, 1, 0}, {1, 1, 3, 1}}, /* no piece */
		{{UINT64_C(1) << 47, 1, 1, 1}, {1, 1, 3, 1}},
		{{1, UINT64_MAX, 1, 1}, {1, 1, 3, 1}},
	};
	const struct morph_module_call five[] = {
		{1, 1, 0, 1}, {1, 1, 1, 1}, {1, 1, 2, 1}, {1, 1, 3, 1}, {1, 1, 4, 1}};

	ck_assert_uint_eq(take_calls(good, 0, 2, 0), 2);
	ck_assert_uint_eq(take_calls(good, 1, 2, -EBADMSG), 0);
	ck_assert_uint_eq(take_calls(five, 0, 4, 0), 4);
	ck_assert_uint_eq(take_calls(five, 0, 5, -EBADMSG), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_uint_eq(take_calls(bad[i], 0, 2, -EBADMSG), !i);
}

TEST(branches_of_moved_code_are_those_of_the_original)
{
	const struct morph_branch stack[] = {
		{0x1000202e, 0x10000070}, /* D' to the old E: falls through in the original */
		{0x1000200e, 0x10002040}, /* A' to B': falls through in the original */
		{0x10002008, 0x10002000}, /* a call from A' to A' */
		{0x10000000, 0x10002000}, /* the patch at A */
		{0x10000400, 0x10000000}, /* unmoved code calls A */
		{0x10000500, 0x10002010}, /* unmoved code jumps to C' */
	};
	/*
	 * The straight run from A' to the branch of D': the branch from A to C can only be
	 * located in the code; C to D is the dropped jump.
	 */
	const struct mp_edge_count want[] = {{0x401008, 0x401000, 1, 0},
					     {0x40102e, 0x401060, 1, 0},
					     {0x401400, 0x401000, 1, 0},
					     {0x401500, 0x401020, 1, 0}};
	const struct morph_branch straight[] = {{0x1000202e, 0x10000070}, {0x10000000, 0x10002000}};

	add_optimised();
	add_branches(stack, 6);
	add_branches(straight, 2);
	replay(1);
	expect(0xbb, want, 4);
	ck_assert_uint_eq(ledger.counted, 8);
	/* D' to E twice, A' to B', the patch twice, and A to C, which is not known. */
	ck_assert_uint_eq(ledger.untranslated, 6);
}

/* ---- moved, with its code ------------------------------------------------------------------ */

/* As above; the ends are those that md_copy_branch_offsets() reads from the code. */
static const struct mp_map_piece pieces[] = {{0x3000, 0x10, 0x10, 0x1000},
					     {0x3010, 0x0e, 0x10, 0x1020},
					     {0x301e, 0x15, 0x10, 0x1060},
					     {0x3040, 0x10, 0x10, 0x1010},
					     /* jcc followed by a jump: neither successor is next */
					     {0x3050, 0x15, 0x10, 0x1100},
					     {0x3070, 0, 2, 0x1200},
					     {0x3070, 0x10, 0x10, 0x1300}};
static const uint32_t ends[] = {0xe, 0xe, 0x10, 0x10, 0xe, 0, 0x10};
static const struct mp_map map = {.pieces = (struct mp_map_piece *)pieces, .nr_pieces = 7};

static struct mp_edge_count seen[8];
static size_t nr_seen;

static void see(void *arg, uint64_t from, uint64_t to)
{
	(void)arg;
	ck_assert_uint_lt(nr_seen, 8);
	seen[nr_seen++] = (struct mp_edge_count){from, to, 1, 0};
}

TEST(straight_run_through_copies_tells_what_the_original_takes)
{
	nr_seen = 0;
	ck_assert_uint_eq(md_copy_translate_run(&map, ends, 0x3004, 0x3020, see, NULL), 0);
	ck_assert_uint_eq(nr_seen, 2);
	ck_assert_uint_eq(seen[0].from, 0x100e);
	ck_assert_uint_eq(seen[0].to, 0x1020);
	ck_assert_uint_eq(seen[1].from, 0x102e);
	ck_assert_uint_eq(seen[1].to, 0x1060);
	/* Across padding, and through a block that was only a jump. */
	nr_seen = 0;
	ck_assert_uint_eq(md_copy_translate_run(&map, ends, 0x3050, 0x3074, see, NULL), 0);
	ck_assert_uint_eq(nr_seen, 2);
	ck_assert_uint_eq(seen[0].from, 0x110e);
	ck_assert_uint_eq(seen[0].to, 0x1200);
	ck_assert_uint_eq(seen[1].from, 0x1200);
	ck_assert_uint_eq(seen[1].to, 0x1300);
	/* A run cannot leave the moved code or go backward. */
	nr_seen = 0;
	ck_assert_uint_eq(md_copy_translate_run(&map, ends, 0x3004, 0x9000, see, NULL), 1);
	ck_assert_uint_eq(md_copy_translate_run(&map, ends, 0x3040, 0x3000, see, NULL), 1);
	ck_assert_uint_eq(md_copy_translate_run(&map, ends, 0x1000, 0x1020, see, NULL), 0);
	ck_assert_uint_eq(nr_seen, 0);
}

/* The code of a function stands where the call of it was, without the function's endbr64. */
TEST(run_into_code_in_place_of_a_call_enters_the_function)
{
	static const struct mp_map_piece parts[] = {{0x3000, 0x0b, 0x10, 0x1000},
						    {0x300b, 0x08, 0x09, 0x5004},
						    {0x3013, 0x10, 0x10, 0x1010}};
	static const uint32_t part_ends[] = {0x0b, 0x08, 0x10};
	static const struct mp_map_call call = {1, 1, 0x1010, 0x5000};
	const struct mp_map inlined = {.pieces = (struct mp_map_piece *)parts,
				       .nr_pieces = 3,
				       .calls = (struct mp_map_call *)&call,
				       .nr_calls = 1};

	nr_seen = 0;
	ck_assert_uint_eq(md_copy_translate_run(&inlined, part_ends, 0x3004, 0x3020, see, NULL), 0);
	ck_assert_uint_eq(nr_seen, 2);
	ck_assert_uint_eq(seen[0].from, 0x100b);
	ck_assert_uint_eq(seen[0].to, 0x5000);
	ck_assert_uint_eq(seen[1].from, 0x500c);
	ck_assert_uint_eq(seen[1].to, 0x1010);
}

static void expect_moved(uint64_t from, uint64_t to, enum md_copy_translation how,
			 uint64_t old_from, uint64_t old_to)
{
	ck_assert_int_eq(md_copy_translate_branch(&map, ends, &from, &to), how);
	if (how != MD_COPY_TAKEN)
		return;
	ck_assert_uint_eq(from, old_from);
	ck_assert_uint_eq(to, old_to);
}

TEST(either_branch_of_a_copy_is_the_originals_one)
{
	expect_moved(0x305e, 0x3040, MD_COPY_TAKEN, 0x110e, 0x1010);
	expect_moved(0x3060, 0x3000, MD_COPY_TAKEN, 0x110e, 0x1000);
	expect_moved(0x3060, 0x1110, MD_COPY_FALLS, 0, 0);
	expect_moved(0x3054, 0x3000, MD_COPY_TAKEN, 0x1104, 0x1000);
	/* A jump that was added to a block leads to its old fall-through. */
	expect_moved(0x302e, 0x1070, MD_COPY_FALLS, 0, 0);
	expect_moved(0x302e, 0x1400, MD_COPY_NO_COUNTERPART, 0, 0);
	/* Code that was not moved. */
	expect_moved(0x1400, 0x1408, MD_COPY_TAKEN, 0x1400, 0x1408);
	expect_moved(0x1000, 0x3000, MD_COPY_NO_COUNTERPART, 0, 0);
	expect_moved(0x1400, 0x1400, MD_COPY_TAKEN, 0x1400, 0x1400);
}

TEST(table_of_edges_grows_to_its_limit_and_not_beyond)
{
	AUTO(md_edges_fini) struct md_edges edges = {0};
	uint64_t nr = 0, sum = 0;

	while (!md_edges_reserve(&edges, 1000))
		for (int i = 0; i < 1000; i++, nr++)
			md_edges_add(&edges, md_sample_table_key(1 + nr % 3, nr), nr * 7,
				     1 + nr % 2);
	ck_assert_uint_gt(nr, MD_EDGES_MAX);
	ck_assert_uint_eq(edges.nr_used, nr);
	for (size_t i = 0; i < edges.nr_slots; i++)
		sum += edges.slots[i].nr;
	ck_assert_uint_eq(sum, nr + nr / 2);
	md_edges_clear(&edges);
	ck_assert_int_eq(md_edges_reserve(&edges, 1000), 0);
	md_edges_add(&edges, md_sample_table_key(1, 1), 7, 5);
	md_edges_add(&edges, md_sample_table_key(1, 1), 7, 5);
	md_edges_add(&edges, md_sample_table_key(1, 1), 8, 5);
	ck_assert_uint_eq(edges.nr_used, 2);
}
