// SPDX-License-Identifier: Apache-2.0
/* test_entry_samples - the last call of a context says how the sampled function was entered. */
#include "libprof/callgraph/entry_samples.h"

#include "libprof/callgraph/call_sites.h"
#include "tests/unit/program.h"

#define MODULE UINT64_C(0x1234)
#define OTHER  UINT64_C(0x5678)

static struct mp_call_sites sites;
static struct mp_context_tree tree;
static struct mp_entry_samples samples;

static void setup(void)
{
	program_build("-w -O2 -fPIE -pie -fno-inline -fno-ipa-icf -fno-unroll-loops "
		      "-fcf-protection=none",
		      "tests/data/callgraph.c");
	ck_assert_int_eq(mp_call_sites_find(cfg, &sites), 0);
	ck_assert_int_eq(mp_context_tree_init(&tree), 0);
}

static void teardown(void)
{
	mp_entry_samples_fini(&samples);
	mp_context_tree_fini(&tree);
	free(sites.sites);
	program_free();
}

/* A sample of the function at @vaddr, below a step of this kind. */
static void add(enum mp_context_kind kind, uint64_t module, uint64_t above, uint64_t vaddr,
		uint64_t nr)
{
	const struct mp_context_step steps[] = {{{module, above, kind}, false},
						{{MODULE, vaddr, MP_CONTEXT_FUNCTION}, false}};

	ck_assert_int_eq(mp_context_add(&tree, steps, 2, nr, 0), 0);
}

static void seen_are(uint32_t f, double direct, double other)
{
	mp_entry_samples_fini(&samples);
	ck_assert_int_eq(mp_entry_samples_add(&samples, cfg, MODULE, &tree), 0);
	ck_assert(samples.direct[f] == direct);
	ck_assert(samples.other[f] == other);
}

/* Return: a site of this kind, a direct one of a function of the file. */
static const struct mp_call_site *site_of(enum mp_call_kind kind)
{
	for (uint32_t i = 0; i < sites.nr; i++)
		if (sites.sites[i].kind == kind &&
		    (sites.sites[i].callee != MP_NONE || kind == MP_CALL_INDIRECT))
			return &sites.sites[i];
	ck_abort_msg("no such site");
}

FIXTURE(setup, teardown);

TEST(a_direct_call_is_known_by_its_return_address)
{
	const struct mp_call_site *site = site_of(MP_CALL_DIRECT);

	add(MP_CONTEXT_CALL, MODULE, site->next, cfg->funcs[site->callee].vaddr, 7);
	seen_are(site->callee, 7, 0);
	/* An address inside of the instruction is none; nor is the same address in another file. */
	add(MP_CONTEXT_CALL, MODULE, site->next - 1, cfg->funcs[site->callee].vaddr, 2);
	add(MP_CONTEXT_CALL, OTHER, site->next, cfg->funcs[site->callee].vaddr, 3);
	seen_are(site->callee, 7, 5);
	/* Trees add up. */
	ck_assert_int_eq(mp_entry_samples_add(&samples, cfg, MODULE, &tree), 0);
	ck_assert(samples.direct[site->callee] == 14);
	ck_assert(samples.other[site->callee] == 10);
}

TEST(an_indirect_call_comes_by_pointer)
{
	const struct mp_call_site *site = site_of(MP_CALL_INDIRECT);
	uint32_t f = site_of(MP_CALL_DIRECT)->callee;

	add(MP_CONTEXT_CALL, MODULE, site->next, cfg->funcs[f].vaddr, 5);
	seen_are(f, 0, 5);
}

TEST(a_jump_is_direct_behind_a_direct_call)
{
	const struct mp_call_site *jump = site_of(MP_CALL_TAIL), *call = NULL;

	for (uint32_t i = 0; i < sites.nr && !call; i++)
		if (sites.sites[i].kind == MP_CALL_DIRECT && sites.sites[i].callee != MP_NONE &&
		    sites.sites[i].callee != jump->callee)
			call = &sites.sites[i];
	ck_assert(call != NULL);
	add(MP_CONTEXT_CALL, MODULE, call->next, cfg->funcs[jump->callee].vaddr, 4);
	seen_are(jump->callee, 4, 0);
	add(MP_CONTEXT_CALL, MODULE, site_of(MP_CALL_INDIRECT)->next,
	    cfg->funcs[jump->callee].vaddr, 6);
	seen_are(jump->callee, 4, 6);
}

TEST(without_a_caller_nothing_is_known)
{
	const struct mp_call_site *site = site_of(MP_CALL_DIRECT);
	uint64_t vaddr = cfg->funcs[site->callee].vaddr;
	const struct mp_context_step first = {{MODULE, vaddr, MP_CONTEXT_FUNCTION}, false};

	add(MP_CONTEXT_AT, MODULE, site->next, vaddr, 5);
	add(MP_CONTEXT_TRUNCATED, 0, 1, vaddr, 5);
	/* Addresses outside of the file, and at its end. */
	add(MP_CONTEXT_CALL, MODULE, 0, 0, 5);
	add(MP_CONTEXT_CALL, MODULE, UINT64_MAX, UINT64_MAX, 5);
	seen_are(site->callee, 0, 0);
	/* The kernel calls the first function of a thread by its address. */
	ck_assert_int_eq(mp_context_add(&tree, &first, 1, 3, 0), 0);
	seen_are(site->callee, 0, 3);
	add(MP_CONTEXT_CALL, MODULE, 0, vaddr, 1);
	seen_are(site->callee, 0, 4);
}
