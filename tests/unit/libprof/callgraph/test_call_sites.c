// SPDX-License-Identifier: Apache-2.0
/* test_call_sites - each kind of call is found once, at its instruction, and runs as often as its block. */
#include "libprof/callgraph/call_sites.h"

#include "tests/unit/program.h"

static struct mp_call_sites sites;

static void setup(void)
{
	program_build("-w -O2 -fPIE -pie -fno-inline -fno-ipa-icf -fno-unroll-loops "
		      "-fcf-protection=none",
		      "tests/data/callgraph.c");
	ck_assert_int_eq(mp_call_sites_find(cfg, &sites), 0);
}

static void teardown(void)
{
	free(sites.sites);
	program_free();
}

/* Return: the only site of this kind in a function. */
static const struct mp_call_site *only(const char *name, enum mp_call_kind kind)
{
	const struct mp_call_site *found = NULL;
	uint32_t f = program_func(name);

	for (uint32_t i = 0; i < sites.nr; i++) {
		if (cfg->blocks[sites.sites[i].block].func != f || sites.sites[i].kind != kind)
			continue;
		ck_assert_msg(!found, "%s: several sites", name);
		found = &sites.sites[i];
	}
	ck_assert_msg(found != NULL, "%s: no site", name);
	return found;
}

FIXTURE(setup, teardown);

TEST(sites_ascend_and_lie_in_their_blocks)
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

TEST(each_kind_of_call_is_found)
{
	const struct mp_call_site *call = only("dense", MP_CALL_DIRECT);
	uint32_t nr_indirect = 0;

	ck_assert_uint_eq(call->callee, program_func("work"));
	ck_assert_uint_eq(call->next, call->vaddr + 5);
	ck_assert_uint_eq(only("thunk", MP_CALL_TAIL)->callee, program_func("slow"));
	/* strlen() is reached through the PLT. */
	call = only("library", MP_CALL_DIRECT);
	ck_assert_uint_eq(call->callee, MP_NONE);
	ck_assert_uint_ne(call->target, 0);
	for (uint32_t i = 0; i < sites.nr; i++)
		nr_indirect += sites.sites[i].kind == MP_CALL_INDIRECT &&
			       cfg->blocks[sites.sites[i].block].func == program_func("indirect");
	ck_assert_uint_eq(nr_indirect, 2);
}

TEST(no_jump_of_a_plt_is_a_site)
{
	for (uint32_t i = 0; i < sites.nr; i++) {
		const struct mp_section *s = mp_elf_section_at(elf, sites.sites[i].vaddr);

		ck_assert(s && strncmp(s->name, ".plt", 4) != 0);
	}
}

TEST(a_site_runs_as_often_as_its_block)
{
	const struct mp_call_site *call = only("dense", MP_CALL_DIRECT);
	struct mp_counts counts = {
		.block = calloc(cfg->nr_blocks + 1, sizeof(double)),
		.edge = calloc(cfg->nr_edges + 1, sizeof(double)),
	};
	uint32_t f = program_func("ends_in_tail_call"), nr = 0;

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

TEST(loops_to_the_entry_are_no_entries)
{
	uint32_t f = program_func("work"), entry = mp_cfg_block_starting(cfg, cfg->funcs[f].vaddr);
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

TEST(a_call_runs_at_least_the_instructions_before_the_first_branch)
{
	ck_assert_uint_ge(mp_call_first_insns(cfg, program_func("quick")), 3);
	ck_assert_uint_le(mp_call_first_insns(cfg, program_func("thunk")), 4);
	ck_assert_uint_ge(mp_call_first_insns(cfg, program_func("thunk")), 1);
}
