// SPDX-License-Identifier: Apache-2.0
/* test_table - switches and computed gotos of real compilers, with and without relocations. */

#include "libprof/cfg/cfg.h"
#include "tests/unit/suite.h"
#include "tests/support/compile.h"

static const char *const compilers[] = {"gcc", "clang"};
static const char *const shapes[] = {
	"-O1 -fPIE -pie",
	"-O2 -fPIE -pie",
	"-O2 -fno-pic -no-pie",
	"-Os -fno-pic -no-pie",
	"-O2 -fPIC -shared -Dmain=entry",
	"-O3 -fcf-protection -fPIE -pie",
};
#define NR_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static struct mp_cfg *open_cfg(const char *path)
{
	struct mp_elf *elf;
	struct mp_cfg *cfg;

	ck_assert_msg(!mp_elf_open(path, MP_ELF_ALL, &elf, &err), "%s", err.msg);
	ck_assert_msg(!mp_cfg_build(elf, NULL, &cfg, &err), "%s", err.msg);
	return cfg;
}

static void close_cfg(struct mp_cfg *cfg)
{
	struct mp_elf *elf = (struct mp_elf *)cfg->elf;

	mp_cfg_free(cfg);
	mp_elf_close(elf);
}

static struct mp_cfg *build(const char *cc, const char *flags, const char *source)
{
	struct mp_cfg *cfg;
	char path[256];

	ck_assert_int_eq(compile_run(cc, flags, source, path), 0);
	cfg = open_cfg(path);
	unlink(path);
	return cfg;
}

static const struct mp_func *func_named(const struct mp_cfg *cfg, const char *name)
{
	for (uint32_t i = 0; i < cfg->nr_funcs; i++)
		if (!strcmp(cfg->funcs[i].name, name))
			return &cfg->funcs[i];
	return NULL;
}

static const struct mp_table *table_at(const struct mp_cfg *cfg, uint64_t vaddr)
{
	for (uint32_t i = 0; i < cfg->nr_tables; i++)
		if (cfg->tables[i].vaddr == vaddr)
			return &cfg->tables[i];
	return NULL;
}

static uint32_t tables_of(const struct mp_cfg *cfg, const char *name)
{
	const struct mp_func *func = func_named(cfg, name);
	uint32_t nr = 0;

	for (uint32_t i = 0; func && i < cfg->nr_tables; i++)
		nr += &cfg->funcs[cfg->tables[i].func] == func;
	return nr;
}

static uint32_t terms_of(const struct mp_cfg *cfg, const char *name, enum mp_term term)
{
	const struct mp_func *func = func_named(cfg, name);
	uint32_t nr = 0;

	for (uint32_t i = 0; func && i < func->nr_blocks; i++)
		nr += cfg->blocks[func->first_block + i].term == term;
	return nr;
}

/* Links with and without --emit-relocs: relocations prove what code patterns suggest. */
TEST_EACH(table_is_the_same_with_and_without_relocations, 2 * NR_SHAPES)
{
	const char *cc = compilers[_i / NR_SHAPES];
	char flags[256];
	struct mp_cfg *with, *without;

	if (!compile_has(cc))
		MORPH_SKIP("no %s", cc);
	snprintf(flags, sizeof(flags), "-w %s -Wl,--emit-relocs", shapes[_i % NR_SHAPES]);
	with = build(cc, flags, "tests/data/switches.c");
	snprintf(flags, sizeof(flags), "-w %s -s", shapes[_i % NR_SHAPES]);
	without = build(cc, flags, "tests/data/switches.c");
	ck_assert(with->elf->relinkable);
	ck_assert(!without->elf->relinkable);
	ck_assert_uint_ge(with->nr_tables, 5);
	ck_assert_uint_eq(with->nr_tables, without->nr_tables);
	for (uint32_t i = 0; i < with->nr_tables; i++) {
		const struct mp_table *a = &with->tables[i];
		const struct mp_table *b = table_at(without, a->vaddr);

		ck_assert_ptr_nonnull(b);
		ck_assert_uint_eq(a->kind, b->kind);
		ck_assert_uint_eq(a->base, b->base);
		/*
		 * Without a bound, a table ends where other data begins, so it is never too
		 * short.
		 */
		ck_assert_uint_ge(b->nr_entries, a->nr_entries);
		if (b->exact)
			ck_assert_uint_eq(a->nr_entries, b->nr_entries);
		ck_assert_uint_eq(with->funcs[a->func].vaddr, without->funcs[b->func].vaddr);
	}
	for (int k = 0; k < 3; k++)
		ck_assert_uint_eq(with->nr_indirect_jumps[k], without->nr_indirect_jumps[k]);
	ck_assert_uint_eq(with->nr_indirect_jumps[2], 0);
	close_cfg(with);
	close_cfg(without);
}

TEST_EACH(table_entries_are_private_where_relocations_prove_it, 2 * NR_SHAPES)
{
	const char *cc = compilers[_i / NR_SHAPES];
	char flags[256];
	struct mp_cfg *cfg;

	if (!compile_has(cc))
		MORPH_SKIP("no %s", cc);
	snprintf(flags, sizeof(flags), "-w %s -Wl,--emit-relocs", shapes[_i % NR_SHAPES]);
	cfg = build(cc, flags, "tests/data/switches.c");
	for (uint32_t i = 0; i < cfg->nr_tables; i++) {
		const struct mp_table *t = &cfg->tables[i];

		ck_assert(t->exact);
		ck_assert(t->private_refs);
		ck_assert_uint_ge(t->nr_refs, 1);
		for (uint32_t k = 0; k < t->nr_refs; k++)
			ck_assert_uint_eq(
				mp_cfg_func_at(cfg, cfg->table_refs[t->first_ref + k].insn_vaddr),
				t->func);
		ck_assert_uint_eq(cfg->blocks[t->block].func, t->func);
		ck_assert_uint_eq(cfg->blocks[t->block].term, MP_TERM_TABLE);
	}
	close_cfg(cfg);
}

TEST(table_has_as_many_entries_as_the_switch_has_cases)
{
	struct mp_cfg *cfg = build("gcc", "-w -O2 -fPIE -pie", "tests/data/switches.c");
	static const struct {
		const char *name;
		uint32_t entries;
	} expected[] = {{"dense", 7}, {"loop", 10}, {"threaded", 7}};

	/* dense() and others may have become plain code, but a table's size is exact. */
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		const struct mp_func *func = func_named(cfg, expected[i].name);

		ck_assert_ptr_nonnull(func);
		for (uint32_t t = 0; t < cfg->nr_tables; t++)
			if (&cfg->funcs[cfg->tables[t].func] == func)
				ck_assert_uint_eq(cfg->tables[t].nr_entries, expected[i].entries);
	}
	ck_assert_uint_eq(tables_of(cfg, "loop"), 1);
	ck_assert_uint_eq(tables_of(cfg, "threaded"), 1);
	ck_assert_uint_ge(terms_of(cfg, "threaded", MP_TERM_TABLE), 1);
	close_cfg(cfg);
}

TEST(table_of_labels_says_so)
{
	struct mp_cfg *cfg = build("gcc", "-w -O2 -fPIE -pie", "tests/data/switches.c");
	const struct mp_func *func = func_named(cfg, "threaded");

	for (uint32_t t = 0; t < cfg->nr_tables; t++) {
		if (&cfg->funcs[cfg->tables[t].func] == func) {
			ck_assert(cfg->tables[t].labels);
			ck_assert_uint_eq(cfg->tables[t].kind, MP_TABLE_ABS64);
		} else {
			ck_assert_uint_eq(cfg->tables[t].kind, MP_TABLE_REL32);
		}
	}
	close_cfg(cfg);
}

TEST_EACH(table_of_functions_is_a_tail_call, 4)
{
	static const char *const names[] = {"dispatch", "dispatch_checked", "method"};
	const char *cc = compilers[_i % 2];
	struct mp_cfg *cfg;

	if (!compile_has(cc))
		MORPH_SKIP("no %s", cc);
	cfg = build(cc, _i < 2 ? "-w -O2 -fPIE -pie" : "-w -O2 -fno-pic -no-pie -s",
		    "tests/data/switches.c");
	if (_i < 2)
		for (size_t i = 0; i < 3; i++) {
			ck_assert_ptr_nonnull(func_named(cfg, names[i]));
			ck_assert_uint_eq(tables_of(cfg, names[i]), 0);
			ck_assert_uint_ge(terms_of(cfg, names[i], MP_TERM_INDIRECT_TAIL), 1);
		}
	ck_assert_uint_eq(cfg->nr_indirect_jumps[2], 0);
	close_cfg(cfg);
}

TEST(table_is_not_seen_where_there_is_none)
{
	struct mp_cfg *cfg =
		build("gcc", "-w -O2 -fno-jump-tables -fPIE -pie", "tests/data/switches.c");

	for (uint32_t t = 0; t < cfg->nr_tables; t++)
		ck_assert_str_eq(cfg->funcs[cfg->tables[t].func].name, "threaded");
	close_cfg(cfg);
}

/* A label stored elsewhere may be compared, so its table must not change in place. */
TEST(table_with_a_label_known_elsewhere_is_not_private)
{
	struct mp_cfg *cfg = build("gcc", "-w -O2 -fPIE -pie -Wl,--emit-relocs",
				   "tests/data/labels/label_kept.c");
	uint32_t nr = 0;

	for (uint32_t t = 0; t < cfg->nr_tables; t++) {
		const char *name = cfg->funcs[cfg->tables[t].func].name;

		if (!strcmp(name, "kept")) {
			ck_assert(!cfg->tables[t].private_refs);
			nr++;
		} else if (!strcmp(name, "clean")) {
			ck_assert(cfg->tables[t].private_refs);
			nr++;
		}
	}
	ck_assert_uint_eq(nr, 2);
	ck_assert_uint_eq(func_named(cfg, "clean")->problem, MP_PROBLEM_NONE);
	ck_assert_uint_eq(func_named(cfg, "kept")->problem, MP_PROBLEM_NONE);
	ck_assert(func_named(cfg, "kept")->flags & MP_FUNC_LABELS);
	ck_assert(!(func_named(cfg, "kept")->flags & MP_FUNC_LABEL_SUMS));
	close_cfg(cfg);
}

/* Memory that can be written may lead to any label, so it is no table. */
TEST(table_that_can_be_written_is_none)
{
	struct mp_cfg *cfg = build("gcc", "-w -O2 -fPIE -pie -Wl,--emit-relocs",
				   "tests/data/labels/label_kept.c");

	ck_assert_uint_eq(tables_of(cfg, "writable"), 0);
	ck_assert_uint_ge(terms_of(cfg, "writable", MP_TERM_UNRESOLVED), 1);
	/* Any value written there is a label of the function. */
	ck_assert_uint_eq(func_named(cfg, "writable")->problem, MP_PROBLEM_NONE);
	ck_assert(func_named(cfg, "writable")->flags & MP_FUNC_LABELS);
	close_cfg(cfg);
}

static const char *const many_flags[] = {"-w -no-pie", "-w -no-pie -Wl,--emit-relocs"};

TEST_EACH(table_of_many_jumps_is_understood, 2)
{
	char flags[100];
	struct mp_cfg *cfg;

	snprintf(flags, sizeof(flags), "-DMANY=300 %s", many_flags[_i]);
	cfg = build("gcc", flags, "tests/data/many_jumps.S");
	ck_assert_uint_eq(func_named(cfg, "many")->problem, MP_PROBLEM_NONE);
	ck_assert_uint_eq(terms_of(cfg, "many", MP_TERM_TABLE), 300);
	ck_assert_uint_ge(cfg->nr_edges, 300 * 300);
	close_cfg(cfg);
}

/* 10,000 jumps would have 100 millions of edges. */
TEST_EACH(table_of_too_many_jumps_is_left_alone, 2)
{
	char flags[100];
	struct mp_cfg *cfg;

	snprintf(flags, sizeof(flags), "-DMANY=10000 %s", many_flags[_i]);
	cfg = build("gcc", flags, "tests/data/many_jumps.S");
	ck_assert_uint_eq(func_named(cfg, "many")->problem, MP_PROBLEM_UNRESOLVED_JUMP);
	ck_assert_uint_eq(func_named(cfg, "main")->problem, MP_PROBLEM_NONE);
	ck_assert_uint_lt(cfg->nr_edges, 15000000);
	close_cfg(cfg);
}
