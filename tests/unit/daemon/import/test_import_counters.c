// SPDX-License-Identifier: Apache-2.0
/*
 * test_import_counters - counters translated to the original: the editor moves a program's
 * blocks, an invented table describes counters, and random walks give their values. Every count
 * of an instruction, a block and an edge must result.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/import/import.h"
#include "editor/optimize/optimize.h"
#include "libprof/infer/counts_exact.h"
#include "libprof/note/counts_file.h"
#include "libprof/note/edge_table.h"
#include "libprof/infer/profile.h"
#include "tests/unit/suite.h"
#include "tests/support/compile.h"

#define STEPS_MAX 2000

static char exe[256], out[300], counts_path[2][300];
static struct mp_elf *elf;
static struct mp_cfg *cfg;
static struct mp_map *map;
static struct md_import *import;

static struct mp_edge_table table;
static uint32_t *block_of;   /* per block of the table: the cfg's */
static uint32_t *edge_of;    /* per edge of the table: the cfg's; MP_NONE: to or from the outside */
static uint64_t *true_edge;  /* per edge of the table */
static uint64_t *true_block; /* per block of the cfg */
static bool *counted;	     /* per block of the cfg: it is in the table */
static uint8_t *section;
static size_t section_size;

#define ok(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.msg)

/* ---- the table -------------------------------------------------------------------------------- */

static bool has_piece(uint64_t vaddr)
{
	for (uint32_t i = 0; i < map->nr_pieces; i++)
		if (map->pieces[i].old_size && map->pieces[i].old_vaddr == vaddr)
			return true;
	return false;
}

static bool is_moved(const struct mp_func *func)
{
	bool any = false;

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		if (cfg->blocks[b].flags & MP_BLOCK_STAYS)
			continue;
		if (!has_piece(cfg->blocks[b].vaddr))
			return false;
		any = true;
	}
	return any && func->problem == MP_PROBLEM_NONE;
}

static void add_edge(uint32_t from, uint32_t to, uint8_t kind, uint32_t of)
{
	edge_of[table.nr_edges] = of;
	table.edges[table.nr_edges++] = (struct mp_counted_edge){from, to, MP_NONE, kind, false};
}

/* @number: per block of the cfg, its number in the table. */
static void add_func(const struct mp_func *func, uint32_t *number)
{
	struct mp_counted_func *counted_func = &table.funcs[table.nr_funcs++];

	*counted_func = (struct mp_counted_func){.first_block = table.nr_blocks,
						 .first_edge = table.nr_edges};
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (block->flags & MP_BLOCK_STAYS)
			continue;
		number[b] = table.nr_blocks;
		block_of[table.nr_blocks] = b;
		counted[b] = true;
		table.blocks[table.nr_blocks++] = (struct mp_counted_block){
			block->vaddr, block->size, block->size - block->term_len};
	}
	counted_func->nr_blocks = table.nr_blocks - counted_func->first_block;
	for (uint32_t i = 0; i < counted_func->nr_blocks; i++) {
		uint32_t n = counted_func->first_block + i;
		const struct mp_block *block = &cfg->blocks[block_of[n]];

		if (block->flags & MP_BLOCK_ENTRY)
			add_edge(MP_NONE, n, MP_EDGE_OUTSIDE, MP_NONE);
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			add_edge(n, number[cfg->edges[e].to], cfg->edges[e].kind, e);
		if (!block->nr_edges || (block->term == MP_TERM_COND && block->nr_edges == 1))
			add_edge(n, MP_NONE, MP_EDGE_OUTSIDE, MP_NONE);
	}
	counted_func->nr_edges = table.nr_edges - counted_func->first_edge;
}

static void make_table(void)
{
	size_t max = 2 * (size_t)cfg->nr_blocks + cfg->nr_edges + 1;
	AUTO_FREE uint32_t *number = calloc(cfg->nr_blocks + 1, sizeof(*number));

	table.funcs = calloc(cfg->nr_funcs + 1, sizeof(*table.funcs));
	table.blocks = calloc(cfg->nr_blocks + 1, sizeof(*table.blocks));
	table.edges = calloc(max, sizeof(*table.edges));
	block_of = calloc(cfg->nr_blocks + 1, sizeof(*block_of));
	edge_of = calloc(max, sizeof(*edge_of));
	true_edge = calloc(max, sizeof(*true_edge));
	true_block = calloc(cfg->nr_blocks + 1, sizeof(*true_block));
	counted = calloc(cfg->nr_blocks + 1, sizeof(*counted));
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (is_moved(&cfg->funcs[f]))
			add_func(&cfg->funcs[f], number);
}

/* ---- what was counted ------------------------------------------------------------------------- */

static uint32_t below(uint32_t n)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % n);
}

static uint32_t choose(const struct mp_counted_func *func, uint32_t block)
{
	uint32_t nr = 0, chosen = MP_NONE;

	for (uint32_t e = func->first_edge; e < func->first_edge + func->nr_edges; e++)
		if (table.edges[e].from == block && !below(++nr))
			chosen = e;
	return chosen;
}

/* Walks from an entry to an exit, unless that takes too long. */
static void walk(const struct mp_counted_func *func)
{
	uint32_t steps[STEPS_MAX], nr = 0, block = MP_NONE;

	do {
		if (nr == STEPS_MAX)
			return;
		steps[nr] = choose(func, block);
		if (steps[nr] == MP_NONE)
			return;
		block = table.edges[steps[nr++]].to;
	} while (block != MP_NONE);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t to = table.edges[steps[i]].to;

		true_edge[steps[i]]++;
		if (to != MP_NONE)
			true_block[block_of[to]]++;
	}
}

static uint32_t root_of(uint32_t *parent, uint32_t v)
{
	while (parent[v] != v)
		v = parent[v];
	return v;
}

/* Puts counters on edges that close a cycle, and on every tenth of the others. */
static void put_counters(const struct mp_counted_func *func)
{
	AUTO_FREE uint32_t *parent = calloc(func->nr_blocks + 1, sizeof(*parent));

	for (uint32_t v = 0; v <= func->nr_blocks; v++)
		parent[v] = v;
	for (uint32_t e = func->first_edge; e < func->first_edge + func->nr_edges; e++) {
		struct mp_counted_edge *edge = &table.edges[e];
		uint32_t from = func->nr_blocks, to = from;

		if (edge->from != MP_NONE)
			from = edge->from - func->first_block;
		if (edge->to != MP_NONE)
			to = edge->to - func->first_block;
		from = root_of(parent, from);
		to = root_of(parent, to);
		parent[from] = to;
		if (from != to && below(10))
			continue;
		edge->spare = from != to;
		edge->counter = table.nr_counters++;
	}
}

/* Divides the counts between two files. @hash: of the table. */
static void write_counts(uint64_t hash)
{
	uint64_t bytes = (table.nr_counters * UINT64_C(8) + 4095) & ~UINT64_C(4095);
	uint64_t *counters[2] = {calloc(1, bytes), calloc(1, bytes)};
	char header[MP_COUNTS_FILE_HEADER_BYTES] = {0};

	*(struct mp_counts_file_header *)header = (struct mp_counts_file_header){
		.version = MP_COUNTS_FILE_VERSION,
		.header_bytes = MP_COUNTS_FILE_HEADER_BYTES,
		.counters_bytes = bytes,
		.table_hash = hash,
	};
	memcpy(header, MP_COUNTS_FILE_MAGIC, 8);
	for (uint32_t e = 0; e < table.nr_edges; e++) {
		uint32_t counter = table.edges[e].counter;

		if (counter == MP_NONE)
			continue;
		counters[0][counter] = true_edge[e] / 3;
		counters[1][counter] = true_edge[e] - true_edge[e] / 3;
	}
	for (int i = 0; i < 2; i++) {
		FILE *file = fopen(counts_path[i], "w");

		ck_assert_ptr_nonnull(file);
		ck_assert_uint_eq(fwrite(header, 1, sizeof(header), file), sizeof(header));
		ck_assert_uint_eq(fwrite(counters[i], 1, bytes, file), bytes);
		fclose(file);
		free(counters[i]);
	}
}

static void add_section(void)
{
	char path[320], command[2048];
	FILE *file;

	ok(mp_edge_table_encode(&table, &section, &section_size, &err));
	snprintf(path, sizeof(path), "%s.edges", exe);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(section, 1, section_size, file), section_size);
	fclose(file);
	snprintf(command, sizeof(command), "objcopy --add-section %s=%s %s", MP_EDGE_TABLE_SECTION,
		 path, out);
	ck_assert_int_eq(system(command), 0);
	unlink(path);
}

static void setup(void)
{
	struct me_optimize_options options = {
		.input = exe, .output = out, .all = true, .stress = true, .stress_seed = 7};
	struct me_optimize_report report;

	ck_assert_int_eq(compile_run("gcc", "-O2 -w -fPIE -pie -Wl,--emit-relocs",
				     "tests/data/switches.c", exe),
			 0);
	snprintf(out, sizeof(out), "%s.out", exe);
	snprintf(counts_path[0], sizeof(counts_path[0]), "%s.counts", exe);
	snprintf(counts_path[1], sizeof(counts_path[1]), "%s.more", exe);
	ok(me_optimize(&options, &report, &err));
	me_optimize_report_fini(&report);
	ok(mp_elf_open(exe, MP_ELF_ALL, &elf, &err));
	ok(mp_cfg_build(elf, NULL, &cfg, &err));
	{
		struct mp_elf *copy;

		ok(mp_elf_open(out, MP_ELF_ID, &copy, &err));
		ok(mp_map_read(copy, &map, &err));
		mp_elf_close(copy);
	}
	memset(&table, 0, sizeof(table));
	make_table();
	ck_assert_uint_gt(table.nr_funcs, 5);
	for (uint32_t f = 0; f < table.nr_funcs; f++) {
		for (uint32_t i = below(4) * 30; i > 0; i--)
			walk(&table.funcs[f]);
		put_counters(&table.funcs[f]);
	}
	add_section();
	write_counts(mp_edge_table_hash(section, section_size));
	import = md_import_new();
}

static void teardown(void)
{
	md_import_free(import);
	free(table.funcs);
	free(table.blocks);
	free(table.edges);
	free(block_of);
	free(edge_of);
	free(true_edge);
	free(true_block);
	free(counted);
	free(section);
	mp_map_free(map);
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	unlink(exe);
	unlink(out);
	unlink(counts_path[0]);
	unlink(counts_path[1]);
}

static int import_both(void)
{
	return md_import_counters(import, (const char *const[]){counts_path[0], counts_path[1]}, 2,
				  out, &err);
}

/* ---- tests ------------------------------------------------------------------------------------ */

static uint64_t count_at(const struct md_import_module *m, uint64_t vaddr)
{
	uint64_t count = 0;

	for (size_t i = 0; i < m->nr; i++)
		if (m->counts[i].vaddr == vaddr)
			count += m->counts[i].count;
	return count;
}

FIXTURE(setup, teardown);

TEST(counters_give_the_count_of_every_instruction)
{
	const struct md_import_module *m;
	uint64_t sum = 0;

	ok(import_both());
	ck_assert_uint_eq(import->nr_modules, 1);
	m = &import->modules[0];
	ck_assert(mp_id_equal(&m->id, &elf->id));
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		uint32_t off = 0, nr = 0;

		if (!counted[b])
			continue;
		for (; off < block->size; nr++) {
			const uint8_t *bytes =
				mp_elf_bytes(elf, block->vaddr + off, block->size - off);
			struct mp_insn insn;

			ck_assert_int_eq(mp_insn_decode(bytes, block->size - off,
							block->vaddr + off, &insn),
					 0);
			ck_assert_uint_eq(count_at(m, block->vaddr + off), true_block[b]);
			off += insn.len;
		}
		ck_assert_uint_eq(nr, block->nr_insns);
		sum += nr * true_block[b];
	}
	ck_assert_uint_gt(sum, 10000);
	ck_assert_uint_eq(import->ledger.attributed, sum);
	ck_assert_uint_eq(import->ledger.emitted, sum);
	ck_assert_uint_eq(import->discrepancy.missed, 0);
	ck_assert_uint_eq(import->discrepancy.nr_unequal, 0);
	ck_assert_uint_gt(import->discrepancy.spare, 0);
}

static int compare_vaddr(const void *a, const void *b)
{
	const struct mp_ip_count *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

/* The result as --exact-profile uses it. */
TEST(counters_give_the_count_of_every_edge)
{
	struct mp_counts counts = {0};
	struct mp_profile *profile;
	struct md_import_module *m;
	unsigned int nr_ran = 0, nr_taken = 0;
	size_t n = 0;

	ok(import_both());
	m = &import->modules[0];
	qsort(m->counts, m->nr, sizeof(*m->counts), compare_vaddr);
	for (size_t i = 1; i < m->nr; i++) {
		if (m->counts[i].vaddr == m->counts[n].vaddr)
			m->counts[n].count += m->counts[i].count;
		else
			m->counts[++n] = m->counts[i];
	}
	ok(mp_profile_build(cfg, m->counts, n + 1, &profile, &err));
	md_import_sort_edges(m);
	ok(mp_profile_add_edges(profile, cfg, m->edges, m->nr_edges, &err));
	/* Calls and jumps to other functions are identified by the block that they leave. */
	ck_assert_uint_eq(profile->nr_transfers_outside, 0);
	counts.block = calloc(cfg->nr_blocks + 1, sizeof(*counts.block));
	counts.edge = calloc(cfg->nr_edges + 1, sizeof(*counts.edge));
	mp_counts_take_exact(cfg, profile, &counts);
	for (uint32_t b = 0; b < table.nr_blocks; b++)
		ck_assert(counts.block[block_of[b]] == (double)true_block[block_of[b]]);
	for (uint32_t e = 0; e < table.nr_edges; e++) {
		const struct mp_edge *edge = &cfg->edges[edge_of[e]];

		if (edge_of[e] == MP_NONE)
			continue;
		/* For a branch that leaves the function, exact counts only give a bound. */
		if (cfg->blocks[edge->from].term == MP_TERM_COND &&
		    cfg->blocks[edge->from].nr_edges == 1)
			continue;
		ck_assert(counts.edge[edge_of[e]] == (double)true_edge[e]);
		nr_ran += true_edge[e] > 0;
		nr_taken += true_edge[e] > 0 && edge->kind != MP_EDGE_FALL;
	}
	ck_assert_uint_gt(nr_ran, 50);
	ck_assert_uint_gt(nr_taken, 20);
	free(counts.block);
	free(counts.edge);
	mp_profile_free(profile);
}

/* Calls have the count of their block, and lead to the original. */
TEST(counters_give_the_count_of_every_direct_call)
{
	const struct md_import_module *m;
	unsigned int nr = 0;

	ok(import_both());
	m = &import->modules[0];
	for (uint32_t i = 0; i < cfg->nr_calls; i++) {
		const struct mp_call *call = &cfg->calls[i];
		uint64_t seen = 0;

		if (call->tail || !counted[call->block])
			continue;
		for (size_t k = 0; k < m->nr_edges; k++)
			if (m->edges[k].from == mp_call_insn(cfg, call) &&
			    m->edges[k].to == mp_call_target(cfg, call))
				seen += m->edges[k].count;
		ck_assert_uint_eq(seen, true_block[call->block]);
		nr += seen > 0;
	}
	ck_assert_uint_gt(nr, 0);
}

static void refused(int code, const char *message)
{
	md_import_free(import);
	import = md_import_new();
	err.msg[0] = '\0';
	ck_assert_int_eq(import_both(), code);
	ck_assert_msg(strstr(err.msg, message) != NULL, "'%s' is not '%s'", err.msg, message);
	ck_assert_int_eq(import->ledger.emitted > 0, code == 0);
}

/* Overwrites bytes of the second file at @off. */
static void overwrite(off_t off, const void *data, size_t size)
{
	int fd = open(counts_path[1], O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, data, size, off), (ssize_t)size);
	close(fd);
}

TEST(counters_of_another_file_are_refused)
{
	uint64_t hash = mp_edge_table_hash(section, section_size), number;
	char binary[300];

	refused(0, "");
	number = 1;
	overwrite(16, &number, 8);
	refused(-EBADMSG, "too few counters");
	number = 4096 + 8;
	overwrite(16, &number, 8);
	refused(-EBADMSG, "too few counters");
	write_counts(hash);
	overwrite(8, "\3", 1);
	refused(-EBADMSG, "version 3");
	write_counts(hash);
	overwrite(8, "\2", 1);
	refused(-EBADMSG, "0 sets");
	number = 129;
	overwrite(32, &number, 8);
	refused(-EBADMSG, "129 sets");
	number = 2;
	overwrite(32, &number, 8);
	refused(-EBADMSG, "cut short");
	write_counts(hash);
	overwrite(0, "X", 1);
	refused(-EBADMSG, "not a file of counts");
	write_counts(hash);
	ck_assert_int_eq(truncate(counts_path[1], 4096 + 8), 0);
	refused(-EBADMSG, "cut short");
	ck_assert_int_eq(truncate(counts_path[1], 100), 0);
	refused(-EBADMSG, "cut short");
	write_counts(hash);
	overwrite(4096 * 3, "\0", 1);
	refused(-EBADMSG, "damaged: 12289 bytes, and not 8192");
	write_counts(hash);
	number = UINT64_MAX / 4096 * 4096;
	overwrite(16, &number, 8);
	refused(-EBADMSG, "cut short");
	/* as a program leaves it that was killed before it had written the header */
	number = 0;
	overwrite(0, &number, 8);
	refused(-ENODATA, "no program has begun");
	ck_assert_int_eq(truncate(counts_path[1], 0), 0);
	refused(-ENODATA, "no program has begun");
	unlink(counts_path[1]);
	ck_assert_int_eq(mkdir(counts_path[1], 0755), 0);
	refused(-EISDIR, "");
	ck_assert_int_eq(rmdir(counts_path[1]), 0);
	write_counts(hash);
	unlink(counts_path[1]);
	refused(-ENOENT, "No such file");
	write_counts(hash + 1);
	refused(-EBADMSG, "another instrumented file");
	write_counts(hash);
	number = UINT64_MAX;
	overwrite(4096, &number, 8);
	number = 1;
	strcpy(binary, counts_path[1]);
	strcpy(counts_path[1], counts_path[0]);
	overwrite(4096, &number, 8);
	strcpy(counts_path[1], binary);
	refused(-EOVERFLOW, "2^64");
	/* One such count does not overflow, but those of its instructions do. */
	write_counts(hash);
	number = UINT64_MAX / 2;
	for (uint32_t i = 0; i < table.nr_counters; i++)
		overwrite(4096 + 8 * i, &number, 8);
	md_import_free(import);
	import = md_import_new();
	ck_assert_int_eq(import_both(), -EOVERFLOW);
	write_counts(hash);
	strcpy(binary, out);
	strcpy(out, exe);
	refused(-ENOENT, "not instrumented");
	strcpy(out, "/no/such/file");
	refused(-ENOENT, "/no/such/file");
	strcpy(out, binary);
	refused(0, "");
}

TEST(counters_files_are_recognised)
{
	int fd = open(counts_path[0], O_RDONLY | O_CLOEXEC);

	ck_assert(mp_counts_file_is(fd));
	/* The check does not move the file position. */
	ck_assert(mp_counts_file_is(fd));
	close(fd);
	fd = open(exe, O_RDONLY | O_CLOEXEC);
	ck_assert(!mp_counts_file_is(fd));
	close(fd);
}
