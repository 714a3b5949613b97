// SPDX-License-Identifier: Apache-2.0
/* call_sites - decodes blocks; see call_sites.h. */
#include "libprof/callgraph/call_sites.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/base/grow.h"
#include "libprof/insn/insn.h"

/* Limit of walks along blocks, for loops without an exit. */
#define STRAIGHT_BLOCKS 32

static uint32_t function_starting(const struct mp_cfg *cfg, uint64_t vaddr)
{
	uint32_t f = mp_cfg_func_at(cfg, vaddr);

	/* One function of the CFG may be a whole PLT. */
	return f != MP_NONE && cfg->funcs[f].vaddr == vaddr &&
			       cfg->funcs[f].problem != MP_PROBLEM_SPECIAL
		       ? f
		       : MP_NONE;
}

/* Return: does this branch, the last instruction of @block, leave the function for another one? */
static bool leaves(const struct mp_cfg *cfg, const struct mp_block *block)
{
	switch (block->term) {
	case MP_TERM_TAIL: return true;
	case MP_TERM_COND:
		return block->nr_edges < 2 &&
		       mp_cfg_func_at(cfg, mp_block_target(block)) != block->func;
	default: return false;
	}
}

static bool classify(const struct mp_cfg *cfg, const struct mp_block *block,
		     const struct mp_insn *insn, struct mp_call_site *site)
{
	*site = (struct mp_call_site){
		.vaddr = insn->vaddr, .next = insn->vaddr + insn->len, .callee = MP_NONE};
	switch (insn->kind) {
	case MP_INSN_CALL: site->kind = MP_CALL_DIRECT; break;
	case MP_INSN_ICALL: site->kind = MP_CALL_INDIRECT; break;
	case MP_INSN_JUMP:
	case MP_INSN_COND:
		if (!leaves(cfg, block))
			return false;
		site->kind = MP_CALL_TAIL;
		break;
	case MP_INSN_IJUMP:
		if (block->term != MP_TERM_INDIRECT_TAIL)
			return false;
		site->kind = MP_CALL_INDIRECT_TAIL;
		break;
	default: return false;
	}
	if (site->kind == MP_CALL_DIRECT || site->kind == MP_CALL_TAIL) {
		site->target = insn->target;
		site->callee = function_starting(cfg, insn->target);
	} else if (insn->rip_relative) {
		site->target = insn->target;
	}
	return true;
}

static int add(struct mp_call_sites *out, const struct mp_call_site *site)
{
	return mp_push(out->sites, out->nr, out->max, *site);
}

static int add_block(const struct mp_cfg *cfg, uint32_t b, struct mp_call_sites *out)
{
	const struct mp_block *block = &cfg->blocks[b];
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	struct mp_call_site site;
	struct mp_insn insn;
	int r = 0;

	for (uint32_t at = 0; bytes && at < block->size && !r; at += insn.len) {
		if (mp_insn_decode(bytes + at, block->size - at, block->vaddr + at, &insn))
			break;
		if (!classify(cfg, block, &insn, &site))
			continue;
		site.block = b;
		r = add(out, &site);
	}
	return r;
}

static int compare_sites(const void *a, const void *b)
{
	const struct mp_call_site *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

int mp_call_sites_find(const struct mp_cfg *cfg, struct mp_call_sites *out)
{
	int r = 0;

	*out = (struct mp_call_sites){0};
	for (uint32_t f = 0; f < cfg->nr_funcs && !r; f++) {
		const struct mp_func *func = &cfg->funcs[f];

		if (func->problem == MP_PROBLEM_SPECIAL)
			continue;
		for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks && !r;
		     b++)
			r = add_block(cfg, b, out);
	}
	if (out->nr)
		qsort(out->sites, out->nr, sizeof(*out->sites), compare_sites);
	if (r) {
		free(out->sites);
		*out = (struct mp_call_sites){0};
	}
	return r;
}

double mp_call_site_count(const struct mp_cfg *cfg, const struct mp_counts *counts,
			  const struct mp_call_site *site)
{
	const struct mp_block *block = &cfg->blocks[site->block];
	double count = counts->block[site->block];

	/* A conditional jump leaves with the executions that do not fall through. */
	if (site->kind == MP_CALL_TAIL && block->term == MP_TERM_COND)
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			count -= counts->edge[e];
	return count > 0 ? count : 0;
}

double mp_call_entries(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t f)
{
	const struct mp_func *func = &cfg->funcs[f];
	uint32_t entry = mp_cfg_block_starting(cfg, func->vaddr);
	double sum = entry != MP_NONE ? counts->block[entry] : 0;

	for (uint32_t b = func->first_block;
	     entry != MP_NONE && b < func->first_block + func->nr_blocks; b++)
		for (uint32_t e = cfg->blocks[b].first_edge;
		     e < cfg->blocks[b].first_edge + cfg->blocks[b].nr_edges; e++)
			if (cfg->edges[e].to == entry)
				sum -= counts->edge[e];
	return sum > 0 ? sum : 0;
}

uint32_t mp_call_first_insns(const struct mp_cfg *cfg, uint32_t f)
{
	uint32_t b = mp_cfg_block_starting(cfg, cfg->funcs[f].vaddr), sum = 0;

	for (uint32_t i = 0; b != MP_NONE && i < STRAIGHT_BLOCKS; i++) {
		const struct mp_block *block = &cfg->blocks[b];

		sum += block->nr_insns;
		b = block->nr_edges == 1 ? cfg->edges[block->first_edge].to : MP_NONE;
	}
	return sum;
}
