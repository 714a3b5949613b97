// SPDX-License-Identifier: Apache-2.0
/* test_call_sites - each kind of call is found once, at its instruction, and runs as often as its block. */
#include "libprof/callgraph/call_sites.h"

#include <string.h>
#include <unistd.h>

#include "tests/support/compile.h"
#include "tests/unit/suite.h"

static struct mp_elf *elf;
static struct mp_cfg *cfg;
static struct mp_call_sites sites;

static void setup(void)
{
	struct mp_err err = {""};
	char path[256];

	ck_assert_int_eq(compile_run("gcc",
				     "-w -O2 -fPIE -pie -fno-inline -fno-ipa-icf -fno-unroll-loops "
				     "-fcf-protection=none",
				     "tests/data/callgraph.c", path),
			 0);
	ck_assert_msg(!mp_elf_open(path, MP_ELF_ALL, &elf, &err), "%s", err.msg);
	ck_assert_msg(!mp_cfg_build(elf, NULL, &cfg, &err), "%s", err.msg);
	ck_assert_int_eq(mp_call_sites_find(cfg, &sites), 0);
	unlink(path);
}

static void teardown(void)
{
	free(sites.sites);
	mp_cfg_free(cfg);
	mp_elf_close(elf);
}

static uint32_t function(const char *name)
{
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (!strcmp(cfg->funcs[f].name, name))
			return f;
	ck_abort_msg("no function %s", name);
}

/* Return: the only site of this kind in a function. */
static const struct mp_call_site *only(const char *name, enum mp_call_kind kind)
{
	const struct mp_call_site *found = NULL;
	uint32_t f = function(name);

	for (uint32_t i = 0; i < sites.nr; i++) {
		if (cfg->blocks[sites.sites[i].block].func != f || sites.sites[i].kind != kind)
			continue;
		ck_assert_msg(!found, "%s: several sites", name);
		found = &sites.sites[i];
	}
	ck_assert_msg(found != NULL, "%s: no site", name);
	return found;
}

START_TEST(sites_ascend_and_lie_in_their_blocks)
{
	ck_assert_uint_gt(sites.nr, 10);
	for (uint32_t i = 0; i < sites.nr; i++) {
		const struct mp_call_site *s = &sites.sites[i];
		const struct mp_block *block = &cfg->blocks[s->block];

		ck_assert(!i || sites.sites[i - 1].vaddr < s->vaddr);
		ck_assert_uint_ge(s->vaddr, block->vaddr);
		ck_assert_uint_le(s->next, block->vaddr + block->size);
		ck_assert_uint_gt(s->next, s->vaddr);
		if (s->callee != MP_NONE)
			ck_assert_uint_eq(s->target, cfg->funcs[s->callee].vaddr);
	}
}
END_TEST

START_TEST(each_kind_of_call_is_found)
{
	const struct mp_call_site *call = only("dense", MP_CALL_DIRECT);
	uint32_t nr_indirect = 0;

	ck_assert_uint_eq(call->callee, function("work"));
	ck_assert_uint_eq(call->next, call->vaddr + 5);
	ck_assert_uint_eq(only("thunk", MP_CALL_TAIL)->callee, function("slow"));
	/* strlen() is reached through the PLT. */
	call = only("library", MP_CALL_DIRECT);
	ck_assert_uint_eq(call->callee, MP_NONE);
	ck_assert_uint_ne(call->target, 0);
	for (uint32_t i = 0; i < sites.nr; i++)
		nr_indirect += sites.sites[i].kind == MP_CALL_INDIRECT &&
			       cfg->blocks[sites.sites[i].block].func == function("indirect");
	ck_assert_uint_eq(nr_indirect, 2);
}
END_TEST

START_TEST(no_jump_of_a_plt_is_a_site)
{
	for (uint32_t i = 0; i < sites.nr; i++) {
		const struct mp_section *s = mp_elf_section_at(elf, sites.sites[i].vaddr);

		ck_assert(s && strncmp(s->name, ".plt", 4) != 0);
	}
}
END_TEST

START_TEST(a_site_runs_as_often_as_its_block)
{
	const struct mp_call_site *call = only("dense", MP_CALL_DIRECT);
	struct mp_counts counts = {
		.block = calloc(cfg->nr_blocks + 1, sizeof(double)),
		.edge = calloc(cfg->nr_edges + 1, sizeof(double)),
	};
	uint32_t f = function("ends_in_tail_call"), nr = 0;

	ck_assert(counts.block && counts.edge);
	counts.block[call->block] = 42;
	ck_assert_double_eq(mp_call_site_count(cfg, &counts, call), 42);
	/* A conditional tail call: what does not fall through. */
	for (uint32_t i = 0; i < sites.nr; i++) {
		const struct mp_block *block = &cfg->blocks[sites.sites[i].block];

		if (block->func != f || block->term != MP_TERM_COND)
			continue;
		ck_assert_uint_eq(block->nr_edges, 1);
		counts.block[sites.sites[i].block] = 10;
		counts.edge[block->first_edge] = 4;
		ck_assert_double_eq(mp_call_site_count(cfg, &counts, &sites.sites[i]), 6);
		counts.edge[block->first_edge] = 14;
		ck_assert_double_eq(mp_call_site_count(cfg, &counts, &sites.sites[i]), 0);
		nr++;
	}
	ck_assert_uint_le(nr, 1);
	free(counts.block);
	free(counts.edge);
}
END_TEST

START_TEST(loops_to_the_entry_are_no_entries)
{
	uint32_t f = function("work"), entry = mp_cfg_block_starting(cfg, cfg->funcs[f].vaddr);
	struct mp_counts counts = {
		.block = calloc(cfg->nr_blocks + 1, sizeof(double)),
		.edge = calloc(cfg->nr_edges + 1, sizeof(double)),
	};

	ck_assert(counts.block && counts.edge);
	ck_assert_uint_ne(entry, MP_NONE);
	counts.block[entry] = 100;
	ck_assert_double_eq(mp_call_entries(cfg, &counts, f), 100);
	for (uint32_t e = 0; e < cfg->nr_edges; e++)
		if (cfg->edges[e].to == entry)
			counts.edge[e] = 1000;
	ck_assert_double_le(mp_call_entries(cfg, &counts, f), 100);
	ck_assert_double_ge(mp_call_entries(cfg, &counts, f), 0);
	free(counts.block);
	free(counts.edge);
}
END_TEST

START_TEST(a_call_runs_at_least_the_instructions_before_the_first_branch)
{
	ck_assert_uint_ge(mp_call_first_insns(cfg, function("quick")), 3);
	ck_assert_uint_le(mp_call_first_insns(cfg, function("thunk")), 4);
	ck_assert_uint_ge(mp_call_first_insns(cfg, function("thunk")), 1);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("call_sites");
	TCase *t = tcase_create("sites");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, sites_ascend_and_lie_in_their_blocks);
	tcase_add_test(t, each_kind_of_call_is_found);
	tcase_add_test(t, no_jump_of_a_plt_is_a_site);
	tcase_add_test(t, a_site_runs_as_often_as_its_block);
	tcase_add_test(t, loops_to_the_entry_are_no_entries);
	tcase_add_test(t, a_call_runs_at_least_the_instructions_before_the_first_branch);
	suite_add_tcase(s, t);
	return s;
}

MORPH_SUITE_MAIN(suite)
