// SPDX-License-Identifier: Apache-2.0
/*
 * branch_hint - reads the instructions before a branch and the graph around it.
 * It computes odds only; counts decides how much they weigh beside samples, and calls it.
 */
#include "libprof/infer/branch_hint.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "libprof/infer/branch_odds.h"
#include "libprof/infer/counts.h"
#include "libprof/insn/insn.h"

/* Limits of two kinds of looks, whose odds scripts/bench/fit-hints fits as they are. */
#define FAR_BYTES   256
#define SHORT_INSNS 2

void mp_func_shape_fill(const struct mp_cfg *cfg, const struct mp_func *func,
			struct mp_func_shape *shape)
{
	const struct mp_block *blocks = &cfg->blocks[func->first_block];

	shape->func = func;
	shape->first_call = mp_cfg_call_from(cfg, 0, cfg->nr_calls, func->first_block);
	shape->end_call = mp_cfg_call_from(cfg, shape->first_call, cfg->nr_calls,
					   func->first_block + func->nr_blocks);
	memset(shape->nr_in, 0, (func->nr_blocks + 1) * sizeof(*shape->nr_in));
	memset(shape->depth, 0, (func->nr_blocks + 1) * sizeof(*shape->depth));
	for (uint32_t b = 0; b < func->nr_blocks; b++) {
		shape->nr_in[b] += mp_block_enters(&blocks[b]);
		for (uint32_t e = blocks[b].first_edge;
		     e < blocks[b].first_edge + blocks[b].nr_edges; e++) {
			uint32_t to = cfg->edges[e].to - func->first_block;

			shape->nr_in[to]++;
			/*
			 * A .cold part lies before or behind all other blocks, so its
			 * position does not show a loop.
			 */
			if (to > b || (blocks[to].flags | blocks[b].flags) & MP_BLOCK_COLD_PART)
				continue;
			shape->depth[to]++;
			shape->depth[b + 1]--;
		}
	}
	for (uint32_t b = 1; b < func->nr_blocks; b++)
		shape->depth[b] = (uint16_t)(shape->depth[b] + shape->depth[b - 1]);
}

/* True if @to is the only successor of @from. */
static bool leads_to(const struct mp_cfg *cfg, const struct mp_block *from,
		     const struct mp_block *to)
{
	return from->nr_edges == 1 && (from->term == MP_TERM_FALL || from->term == MP_TERM_JUMP) &&
	       &cfg->blocks[cfg->edges[from->first_edge].to] == to;
}

static bool block_calls(const struct mp_cfg *cfg, const struct mp_func_shape *shape, uint32_t block)
{
	uint32_t call = mp_cfg_call_from(cfg, shape->first_call, shape->end_call, block);

	return call < shape->end_call && cfg->calls[call].block == block && !cfg->calls[call].tail;
}

static uint32_t side_evidence(const struct mp_cfg *cfg, const struct mp_func_shape *shape,
			      uint32_t from, uint32_t to)
{
	const struct mp_block *side = &cfg->blocks[to];
	uint32_t first = shape->func->first_block;
	uint16_t here = shape->depth[from - first], there = shape->depth[to - first];
	uint32_t seen = 0;

	if (side->term == MP_TERM_RET)
		seen |= 1u << MP_EVIDENCE_RETURNS;
	if (block_calls(cfg, shape, to))
		seen |= 1u << MP_EVIDENCE_CALLS;
	if (side->term == MP_TERM_JUMP && mp_block_target(side) <= side->vaddr)
		seen |= 1u << MP_EVIDENCE_LOOPS;
	if (side->term == MP_TERM_TRAP || side->term == MP_TERM_NORETURN ||
	    side->flags & MP_BLOCK_COLD_PART)
		seen |= 1u << MP_EVIDENCE_ENDS_COLD;
	if (shape->nr_in[to - first] > 1)
		seen |= 1u << MP_EVIDENCE_SHARED;
	if (side->nr_insns <= SHORT_INSNS)
		seen |= 1u << MP_EVIDENCE_SHORT;
	if (there < here)
		seen |= 1u << MP_EVIDENCE_LEAVES;
	if (there > here)
		seen |= 1u << MP_EVIDENCE_ENTERS;
	return seen;
}

enum mp_compared mp_insn_compares(const uint8_t *bytes, uint8_t len)
{
	bool wide = false, same;
	uint8_t at = 0, modrm, reg;

	for (; at + 1 < len && (bytes[at] == 0x66 || (bytes[at] & 0xf0) == 0x40); at++)
		wide = (bytes[at] & 0xf8) == 0x48; /* REX.W */
	modrm = at + 1 < len ? bytes[at + 1] : 0;
	reg = modrm >> 3 & 7;
	same = modrm >= 0xc0 && reg == (modrm & 7);
	switch (bytes[at]) {
	case 0x84 ... 0x85: /* test */
		if (!same)
			return MP_COMPARED_BITS;
		return wide ? MP_COMPARED_NULL : MP_COMPARED_ZERO;
	case 0xa8 ... 0xa9: return MP_COMPARED_BITS;
	case 0xf6 ... 0xf7: return reg < 2 ? MP_COMPARED_BITS : MP_COMPARED_RESULT;
	case 0x38 ... 0x3b: return MP_COMPARED_OTHER; /* cmp */
	case 0x3c ... 0x3d:
	case 0x81: return reg == 7 || bytes[at] != 0x81 ? MP_COMPARED_NUMBER : MP_COMPARED_RESULT;
	case 0x80:
	case 0x83:
		if (reg != 7)
			return MP_COMPARED_RESULT;
		if (bytes[len - 1])
			return MP_COMPARED_NUMBER;
		return wide ? MP_COMPARED_NULL : MP_COMPARED_ZERO;
	case 0x00 ... 0x37:
	case 0xc0 ... 0xc1:
	case 0xd0 ... 0xd3:
	case 0xfe ... 0xff: return MP_COMPARED_RESULT;
	default: return MP_COMPARED_UNKNOWN;
	}
}

static void condition_evidence(const struct mp_cfg *cfg, const struct mp_block *block,
			       struct mp_branch_evidence *out)
{
	const uint8_t *bytes = cfg->elf ? mp_elf_bytes(cfg->elf, block->vaddr, block->size) : NULL;
	struct mp_insn insn;

	for (uint32_t at = 0; bytes && at < block->size; at += insn.len) {
		if (mp_insn_decode(bytes + at, block->size - at, block->vaddr + at, &insn))
			return;
		if (insn.kind == MP_INSN_COND)
			out->cc = insn.cc;
		else
			out->compared = (uint8_t)mp_insn_compares(bytes + at, insn.len);
	}
}

struct mp_branch_evidence mp_branch_evidence_find(const struct mp_cfg *cfg,
						  const struct mp_func_shape *shape, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b], *target, *next;
	uint32_t e = block->first_edge;
	struct mp_branch_evidence out = {0};
	uint32_t fall, taken;

	condition_evidence(cfg, block, &out);
	taken = cfg->edges[e].to;
	fall = cfg->edges[e + 1].to;
	if (cfg->edges[e].kind == MP_EDGE_FALL) {
		fall = taken;
		taken = cfg->edges[e + 1].to;
	}
	target = &cfg->blocks[taken];
	next = &cfg->blocks[fall];
	out.seen = side_evidence(cfg, shape, b, taken) | side_evidence(cfg, shape, b, fall) << 1;
	if (target->vaddr <= block->vaddr)
		out.seen |= 1u << MP_EVIDENCE_BACK;
	else if (target->vaddr > block->vaddr + FAR_BYTES)
		out.seen |= 1u << MP_EVIDENCE_FAR;
	if (leads_to(cfg, next, target))
		out.seen |= 1u << MP_EVIDENCE_SKIP;
	if (leads_to(cfg, target, next))
		out.seen |= 1u << MP_EVIDENCE_ASIDE;
	return out;
}

double mp_branch_hint(struct mp_branch_evidence evidence)
{
	double sum = base_odds + compared_odds[evidence.compared][evidence.cc & 15];

	for (uint32_t i = 0; i < MP_NR_EVIDENCE; i++)
		if (evidence.seen >> i & 1)
			sum += evidence_odds[i];
	return sum;
}

bool mp_block_enters(const struct mp_block *block)
{
	return block->flags & (MP_BLOCK_ENTRY | MP_BLOCK_LANDING_PAD | MP_BLOCK_ADDRESS_TAKEN |
			       MP_BLOCK_OTHER_ENTRY);
}
