// SPDX-License-Identifier: Apache-2.0
/*
 * test_paths - registers of samples, from a recording into the store. In a program that numbers
 * its paths they give the path, translated to the original; others are counted by the reason
 * why they give none.
 */
#include "libprof/store/store_paths.h"
#include "tests/unit/recording.h"

static struct mp_ledger ledger; /* of the last replay */

/* ---- the program ---------------------------------------------------------------------------- */

/*
 *	original				copy, at 0x403000
 *	A 1000..1010  starts, no register	A' 3000..3010
 *	B 1010..1020  r11, 0			   3010..3018  added: lea 1(%r11), %r11
 *	C 1020..1030  r11, 0			B' 3018..3028
 *	D 1030..1040  r11 - 5: ACD 0, ABD 1	C' 3028..3038
 *	E 1040..1050  has no number		D' 3038..3048
 *						E' 3048..3058
 */
enum {
	A = 0x401000,
	B = 0x401010,
	C = 0x401020,
	D = 0x401030,
	E = 0x401040
};

#define SHIFT	5
#define MAPPED	0x10000000
#define COPY(x) (MAPPED + 0x2000 + (x))

static struct mp_path_block blocks[] = {
	{.vaddr = A, .size = 16, .term_off = 16, .reg = MP_NO_REGISTER, .starts = true},
	{.vaddr = B, .size = 16, .term_off = 16, .reg = 11},
	{.vaddr = C, .size = 16, .term_off = 16, .reg = 11},
	{.vaddr = D, .size = 16, .term_off = 16, .reg = 11, .shift = SHIFT},
};
static struct mp_path_edge edges[] = {
	{.from = MP_NONE, .to = 0, .kind = MP_PATH_EDGE_OUTSIDE},
	{.from = 0, .to = 1, .kind = MP_EDGE_FALL, .carries = true},
	{.from = 0, .to = 2, .kind = MP_EDGE_TAKEN, .carries = true},
	{.from = 2, .to = 3, .kind = MP_EDGE_FALL, .carries = true},
	{.from = 1, .to = 3, .kind = MP_EDGE_JUMP, .carries = true, .value = 1},
};
static struct mp_path_func func = {.nr_blocks = 4, .nr_edges = 5};
static const struct mp_path_table table = {.funcs = &func,
					   .nr_funcs = 1,
					   .blocks = blocks,
					   .nr_blocks = 4,
					   .edges = edges,
					   .nr_edges = 5};

static const struct morph_piece pieces[] = {{0x403000, A, 16, 16}, {0x403010, B, 8, 0},
					    {0x403018, B, 16, 16}, {0x403028, C, 16, 16},
					    {0x403038, D, 16, 16}, {0x403048, E, 16, 16}};

/* Adds @nr bytes of the encoded table @t from @off on; 0: all. */
static void add_table(uint32_t n, const struct mp_path_table *t, uint32_t off, uint32_t nr)
{
	struct morph_module_paths *r;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_path_table_encode(t, &bytes, &size, NULL), 0);
	if (!nr)
		nr = (uint32_t)size - off;
	r = md_record_add(&buf, MORPH_REC_MODULE_PATHS, sizeof(*r) + nr);
	r->module = n;
	r->table_size = (uint32_t)size;
	r->off = off;
	r->nr = nr;
	memcpy(r->bytes, bytes + off, nr);
}

static void add_program(void)
{
	begin();
	add_module(1, 0xaa, 6);
	add_pieces(1, 0xbb, pieces, 6);
	add_output(1);
	add_table(1, &table, 0, 0);
	add_map(MAPPED, 1);
}

/* Adds @times samples of process 1, in each of which all @registers hold @value. */
static void add_samples_with(uint64_t ip, uint16_t registers, uint64_t value, uint32_t times)
{
	struct morph_samples *s =
		md_record_add_task(&buf, MORPH_REC_SAMPLES, sizeof(*s) + times * 8, 3, 1, 1);
	struct morph_registers *r;
	uint32_t words, i, k;

	for (i = 0; i < times; i++)
		s->ips[i] = ip;
	words = 1 + __builtin_popcount(registers);
	r = md_record_add_task(&buf, MORPH_REC_REGISTERS, sizeof(*r) + times * words * 8, 3, 1, 1);
	r->registers = registers;
	for (i = 0; i < times; i++) {
		r->entries[i * words] = ip;
		for (k = 1; k < words; k++)
			r->entries[i * words + k] = value;
	}
}

#define R11 (1 << 11)

static void add_samples(uint64_t ip, uint64_t value, uint32_t times)
{
	add_samples_with(ip, R11, value, times);
}

/* ---- replay --------------------------------------------------------------------------------- */

static void replay(uint32_t nr_repeats)
{
	struct md_pipeline *pl = open_replay(nr_repeats);

	ck_assert_msg(!md_pipeline_run(pl, &err), "%s", err.msg);
	ledger = pl->total;
	close_replay(pl);
}

struct want {
	uint64_t count;
	uint32_t nr;
	uint64_t vaddrs[4];
};

/* Expects exactly these paths of the module. */
static void expect(uint64_t text_hash, const struct want *want, size_t nr_want)
{
	struct mp_id id = {.text_hash = text_hash};
	AUTO_FREE struct mp_path_count *have = NULL;
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];
	struct mp_module module;
	struct mp_store *store;
	size_t nr, i, k;

	ck_assert_msg(!mp_store_open(db, MP_STORE_READ, &store, &err), "%s", err.msg);
	ck_assert_msg(!mp_store_find_module(store, &id, &module, &err), "%s", err.msg);
	ck_assert_msg(!mp_store_read_paths(store, module.key, 0, &have, &nr, &err), "%s", err.msg);
	free(module.path);
	ck_assert_uint_eq(nr, nr_want);
	for (i = 0; i < nr; i++) {
		uint32_t n = mp_path_key_decode(have[i].key, have[i].key_size, vaddrs, NULL);

		for (k = 0; k < nr_want; k++)
			if (n == want[k].nr && !memcmp(vaddrs, want[k].vaddrs, n * 8))
				break;
		ck_assert_uint_lt(k, nr_want);
		ck_assert_uint_eq(have[i].count, want[k].count);
	}
	mp_store_close(store);
}

FIXTURE(setup, teardown);

TEST(registers_tell_the_way_in_the_original)
{
	const struct want want[] = {{2, 1, {A}},
				    {6, 2, {A, B}},
				    {8, 2, {A, C}},
				    {10, 3, {A, C, D}},
				    {12, 3, {A, B, D}}};

	add_program();
	add_samples(COPY(0x4), 1234, 1);
	add_samples(COPY(0x18), 0, 3);
	add_samples(COPY(0x37), 0, 4);
	add_samples(COPY(0x38), SHIFT, 5);
	add_samples_with(COPY(0x40), MORPH_REGS_PATHS, SHIFT + 1, 6);
	replay(2);
	expect(0xbb, want, 5);
	ck_assert_uint_eq(ledger.attributed, 38);
	ck_assert_uint_eq(ledger.paths[MP_PATH_DECODED], 38);
	/* A second replay is added. */
	unlink(recording);
	replay(1);
	ck_assert_uint_eq(ledger.paths[MP_PATH_DECODED], 19);
}

TEST(registers_that_tell_nothing_are_counted_by_why)
{
	const struct want want[] = {{1, 3, {A, C, D}}};

	add_program();
	add_module(2, 0xcc, 0);
	add_map(0x20000000, 2);
	add_samples(COPY(0x38), SHIFT, 1);
	add_samples(COPY(0x38), SHIFT + 2, 2); /* D has two paths */
	add_samples(COPY(0x38), SHIFT - 1, 4);
	add_samples(COPY(0x18), 1, 8);		     /* and B has one */
	add_samples(COPY(0x12), 0, 16);		     /* added code */
	add_samples(COPY(0x48), 0, 32);		     /* a copy without a number */
	add_samples(MAPPED + 0x30, SHIFT, 64);	     /* code that was not moved */
	add_samples(COPY(0x58), SHIFT, 128);	     /* nothing was moved to this address */
	add_samples_with(COPY(0x38), 1, SHIFT, 256); /* rax holds no number */
	add_samples(0x20000030, SHIFT, 512);	     /* a module without paths */
	add_samples(0x30000000, SHIFT, 1024);	     /* no module */
	replay(1);
	expect(0xbb, want, 1);
	ck_assert_uint_eq(ledger.emitted, 2047);
	ck_assert_uint_eq(ledger.attributed, 1023);
	ck_assert_uint_eq(ledger.paths[MP_PATH_DECODED], 1);
	ck_assert_uint_eq(ledger.paths[MP_PATH_UNDECODABLE], 2 + 4 + 8);
	ck_assert_uint_eq(ledger.paths[MP_PATH_STUB], 16);
	ck_assert_uint_eq(ledger.paths[MP_PATH_OUTSIDE], 32 + 64 + 128 + 256);
	ck_assert_uint_eq(ledger.paths[MP_PATH_NO_MEMORY], 0);
}

TEST(registers_of_a_kernel_or_an_unknown_process_are_nothing)
{
	struct morph_registers *r;

	add_program();
	add_samples(UINT64_C(0xffffffff81000000), SHIFT, 1);
	r = md_record_add_task(&buf, MORPH_REC_REGISTERS, sizeof(*r) + 16, 3, 77, 77);
	r->registers = R11;
	r->entries[0] = COPY(0x38);
	r->entries[1] = SHIFT;
	add_samples(COPY(0x38), SHIFT, 1);
	replay(1);
	ck_assert_uint_eq(ledger.emitted, 2);
	ck_assert_uint_eq(ledger.paths[MP_PATH_DECODED], 1);
}

TEST(table_in_parts_is_known_once_it_is_whole)
{
	begin();
	add_module(1, 0xaa, 6);
	add_pieces(1, 0xbb, pieces, 6);
	add_output(1);
	add_map(MAPPED, 1);
	add_table(1, &table, 0, 16);
	add_samples(COPY(0x38), SHIFT, 1);
	add_table(1, &table, 24, 0); /* not the next part */
	add_samples(COPY(0x38), SHIFT, 2);
	add_table(1, &table, 0, 16); /* again from the start */
	add_table(1, &table, 16, 8);
	add_samples(COPY(0x38), SHIFT, 4);
	add_table(1, &table, 24, 0);
	add_samples(COPY(0x38), SHIFT, 8);
	/* A table that is known is not replaced. */
	add_table(1, &table, 0, 16);
	add_samples(COPY(0x38), SHIFT, 16);
	replay(1);
	ck_assert_uint_eq(ledger.attributed, 31);
	ck_assert_uint_eq(ledger.paths[MP_PATH_DECODED], 24);
	ck_assert_uint_eq(ledger.paths[MP_PATH_OUTSIDE], 0);
}

TEST_EACH(table_that_is_none_costs_the_paths_alone, 5)
{
	struct morph_module_paths *r;
	size_t at;

	begin();
	add_module(1, 0xaa, 6);
	add_pieces(1, 0xbb, pieces, 6);
	add_output(1);
	at = buf.size;
	add_table(1, &table, 0, 0);
	r = (void *)(buf.data + at);
	switch (_i) {
	case 0: r->bytes[5] ^= 1; break;
	case 1: r->table_size = UINT32_MAX; break;
	case 2: r->module = 77; break;
	case 3: r->off = 1, r->nr--; break;
	case 4: memset(r->bytes, 0xff, r->nr); break;
	}
	add_map(MAPPED, 1);
	add_samples(COPY(0x38), SHIFT, 1);
	replay(1);
	ck_assert_uint_eq(ledger.attributed, 1);
	ck_assert_uint_eq(ledger.paths[MP_PATH_DECODED], 0);
	expect(0xbb, NULL, 0);
}

TEST(paths_are_kept_until_the_store_takes_them)
{
	const struct want want[] = {{3, 3, {A, C, D}}};
	struct md_pipeline *pl;
	char path[256];

	add_program();
	add_samples(COPY(0x38), SHIFT, 3);
	pl = open_replay(1);
	snprintf(path, sizeof(path), "%s/elsewhere", dir);
	/* A store that cannot be written. */
	mp_store_close(pl->store);
	ck_assert_int_eq(rename(db, path), 0);
	ck_assert_msg(!mp_store_open(path, MP_STORE_READ, &pl->store, &err), "%s", err.msg);
	pl->flush.store = pl->store;
	ck_assert_int_eq(md_pipeline_run(pl, &err), -EROFS);
	ck_assert_uint_eq(pl->at.ledger.paths[MP_PATH_DECODED], 3);
	mp_store_close(pl->store);
	ck_assert_int_eq(rename(path, db), 0);
	ck_assert_msg(!mp_store_open(db, MP_STORE_WRITE, &pl->store, &err), "%s", err.msg);
	pl->flush.store = pl->store;
	ck_assert_msg(!md_flush_write(&pl->flush, &pl->at, 1700000000, &err), "%s", err.msg);
	ck_assert_uint_eq(pl->at.ledger.paths[MP_PATH_DECODED], 0);
	ck_assert_uint_eq(md_paths_sum(&pl->at.paths), 0);
	ledger = pl->total;
	close_replay(pl);
	expect(0xbb, want, 1);
}

TEST(table_is_recorded_with_the_module)
{
	enum {
		NR = 30000
	};
	struct mp_path_block *many = calloc(NR, sizeof(*many));
	struct mp_path_edge *in = calloc(NR, sizeof(*in));
	struct mp_path_func one = {.nr_blocks = NR, .nr_edges = NR};
	struct mp_path_table large = {.funcs = &one,
				      .nr_funcs = 1,
				      .blocks = many,
				      .nr_blocks = NR,
				      .edges = in,
				      .nr_edges = NR};
	struct md_modcache *mc = md_modcache_new(), *again = md_modcache_new();
	struct md_buf said = {0};
	const struct md_module *m;
	uint32_t i, off;
	uint8_t *bytes;
	size_t size;

	for (i = 0; i < NR; i++) {
		many[i] = (struct mp_path_block){.vaddr = A + 40000 * i,
						 .size = 16,
						 .term_off = 16,
						 .reg = MP_NO_REGISTER,
						 .starts = true};
		in[i] = (struct mp_path_edge){
			.from = MP_NONE, .to = i, .kind = MP_PATH_EDGE_OUTSIDE};
	}
	add_module(1, 0xaa, 6);
	add_pieces(1, 0xbb, pieces, 6);
	add_output(1);
	ck_assert_int_eq(mp_path_table_encode(&large, &bytes, &size, NULL), 0);
	ck_assert_uint_gt(size, 3 * 65528); /* several records */
	for (off = 0; off < size; off += 50000)
		add_table(1, &large, off, size - off < 50000 ? 0 : 50000);
	take_modules(mc, &buf);
	ck_assert_int_eq(md_modcache_write_records(mc, md_modcache_file(mc, 1), &said), 0);
	ck_assert_uint_ge(take_modules(again, &said), 4);
	m = md_modcache_module(again, md_modcache_file(again, 1)->module);
	ck_assert_ptr_nonnull(m->paths);
	ck_assert_uint_eq(m->paths->nr_blocks, NR);
	ck_assert_uint_eq(m->paths->hash, mp_path_table_hash(bytes, size));
	md_buf_fini(&said);
	md_modcache_free(mc);
	md_modcache_free(again);
	free(bytes);
	free(many);
	free(in);
}
