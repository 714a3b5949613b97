// SPDX-License-Identifier: Apache-2.0
/*
 * redirect - chooses the addresses that change. Called by optimize when the plan's blocks are
 * complete, and before that to predict arrivals at old addresses.
 */
#include "editor/evidence/redirect.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/base/search.h"

enum {
	COPIED = 1,
	ODD_PLACE = 2, /* the plan wants the entry where no pointer may lead */
};

static bool is_entry_of(const struct mp_cfg *cfg, uint32_t func, uint64_t vaddr)
{
	return cfg->funcs[func].vaddr == vaddr;
}

static void choose_sites(const struct mp_cfg *cfg, const struct me_pointers *pointers,
			 struct me_redirects *out)
{
	for (uint32_t s = 0; s < pointers->nr_sites; s++) {
		const struct me_site *site = &pointers->sites[s];
		uint32_t func = mp_cfg_func_at(cfg, site->target);

		if (is_entry_of(cfg, func, site->target)) {
			if (!out->functions[func])
				continue;
		} else if (!out->labels[func]) {
			out->labels[func] = 1;
			out->nr_labels++;
		}
		out->sites[out->nr_sites++] = *site;
	}
}

/* Counts the functions to which some reference leads: a site, or a dynamic symbol. */
static int count_functions(const struct mp_cfg *cfg, const struct me_pointers *pointers,
			   struct me_redirects *out)
{
	uint8_t *named = calloc(cfg->nr_funcs + 1, 1);

	if (!named)
		return -ENOMEM;
	for (uint32_t s = 0; s < out->nr_sites; s++) {
		uint32_t func = mp_cfg_func_at(cfg, out->sites[s].target);

		named[func] |= is_entry_of(cfg, func, out->sites[s].target);
	}
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		if (out->functions[f] &&
		    (named[f] || pointers->functions[f] & ME_POINTERS_EXPORTED))
			out->nr_functions++;
	}
	free(named);
	return 0;
}

int me_redirects_choose(const struct mp_cfg *cfg, const struct me_pointers *pointers,
			const uint8_t *copied, struct me_redirects *out, struct mp_err *err)
{
	*out = (struct me_redirects){
		.functions = calloc(cfg->nr_funcs + 1, 1),
		.labels = calloc(cfg->nr_funcs + 1, 1),
		.sites = malloc((pointers->nr_sites + 1) * sizeof(*out->sites)),
	};
	if (!out->functions || !out->labels || !out->sites)
		goto failed;
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		out->functions[f] = copied[f] && pointers->functions[f] & ME_POINTERS_MAY_CHANGE;
	choose_sites(cfg, pointers, out);
	if (!count_functions(cfg, pointers, out))
		return 0;
failed:
	me_redirects_fini(out);
	return mp_err_set(err, ENOMEM, "out of memory");
}

static bool keeps_align(const struct mp_cfg *cfg, const struct mp_block *entry,
			const struct me_plan_block *planned)
{
	return planned->align_offset % (1u << me_pointer_align_log2(cfg->elf, entry->vaddr)) == 0;
}

int me_redirects_plan(const struct mp_cfg *cfg, const struct me_pointers *pointers,
		      struct me_plan *plan, struct mp_err *err)
{
	uint8_t *copied = calloc(cfg->nr_funcs + 1, 1);
	int rc;

	if (!copied)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		const struct mp_block *block = &cfg->blocks[plan->blocks[i].block];

		/*
		 * A block that is only a tail call may get an empty copy, and so may one whose
		 * instructions are left out. Its function would then have the address of the
		 * next copy.
		 */
		if (block->vaddr != cfg->funcs[block->func].vaddr || plan->blocks[i].left_out ||
		    (block->term == MP_TERM_TAIL && block->term_len == block->size))
			continue;
		copied[block->func] |= COPIED;
		if (!keeps_align(cfg, block, &plan->blocks[i]))
			copied[block->func] |= ODD_PLACE;
	}
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		copied[f] = copied[f] == COPIED;
	me_redirects_fini(&plan->redirects);
	rc = me_redirects_choose(cfg, pointers, copied, &plan->redirects, err);
	free(copied);
	return rc;
}

bool me_redirects_function(const struct me_redirects *redirects, const struct mp_cfg *cfg,
			   uint64_t vaddr)
{
	uint32_t func = redirects->functions ? mp_cfg_func_at(cfg, vaddr) : MP_NONE;

	return func != MP_NONE && is_entry_of(cfg, func, vaddr) && redirects->functions[func];
}

uint32_t me_redirects_lower_bound(const struct me_redirects *redirects, uint64_t vaddr)
{
	return mp_search(i, 0, redirects->nr_sites, redirects->sites[i].vaddr < vaddr);
}
