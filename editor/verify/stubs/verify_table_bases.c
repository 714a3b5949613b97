// SPDX-License-Identifier: Apache-2.0
/*
 * verify_table_bases - finds the tables whose address other blocks set before an indirect jump
 * reads them. Searches all paths to the jump backwards. Called by verify_jump.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_effect.h"
#include "editor/verify/stubs/verify_block.h"
#include "editor/verify/stubs/verify_table_bases.h"

/* Give up on functions with more edges. */
#define MAX_EDGES (1U << 20)

/* ---- predecessors of blocks ---------------------------------------------------------------- */

void vf_predecessors_fini(struct vf_predecessors *predecessors)
{
	free(predecessors->start);
	free(predecessors->from);
	free(predecessors->seen);
	free(predecessors->stack);
	*predecessors = (struct vf_predecessors){.fde = VF_NONE};
}

/* Call @act for each block of the FDE that control may reach from block @i. */
static void each_successor(const struct vf *vf, const struct vf_predecessors *predecessors,
			   uint32_t i,
			   void (*act)(const struct vf_predecessors *predecessors, uint32_t to,
				       uint32_t from, void *ctx),
			   void *ctx)
{
	const struct vf_graph *g = vf->stubs.graph;
	const struct vf_block *b = &g->blocks[i];

	switch (b->kind) {
	case VF_END_JCC: act(predecessors, b->to, i, ctx); break;
	case VF_END_JMP: act(predecessors, b->to, i, ctx); return;
	case VF_END_TABLE:
		for (const uint32_t *t = &g->targets[b->to]; *t != VF_NONE; t++)
			act(predecessors, *t, i, ctx);
		return;
	case VF_END_IJMP:
		if (b->pending)
			return; /* not known yet; looked at again when it is */
		for (uint32_t k = predecessors->first; k < predecessors->first + predecessors->nr;
		     k++)
			if (vf_bits_get(&g->label, vf->old.text_start + g->blocks[k].start))
				act(predecessors, k, i, ctx);
		return;
	case VF_END_CALL:
	case VF_END_ICALL:
	case VF_END_FALL: break;
	default: return;
	}
	act(predecessors, i + 1, i, ctx);
}

static void count_predecessor(const struct vf_predecessors *predecessors, uint32_t to,
			      uint32_t from, void *ctx)
{
	uint32_t *total = ctx;

	(void)from;
	if (to - predecessors->first >= predecessors->nr)
		return;
	predecessors->start[to - predecessors->first + 1]++;
	(*total)++;
}

/* Fill each list from its end on; when it is full, @start is its start. */
static void put_predecessor(const struct vf_predecessors *predecessors, uint32_t to, uint32_t from,
			    void *ctx)
{
	(void)ctx;
	if (to - predecessors->first < predecessors->nr)
		predecessors->from[--predecessors->start[to - predecessors->first]] = from;
}

static int find_predecessors(const struct vf *vf, uint32_t fde,
			     struct vf_predecessors *predecessors)
{
	const struct vf_graph *g = vf->stubs.graph;
	uint32_t total = 0, jumps = 0;

	vf_predecessors_fini(predecessors);
	predecessors->fde = fde;
	predecessors->first = vf_block_at(vf, vf->old.eh.fdes[fde].start);
	if (predecessors->first == VF_NONE)
		return 0;
	while (predecessors->first + predecessors->nr < g->nr_blocks &&
	       g->blocks[predecessors->first + predecessors->nr].fde == fde)
		jumps += g->blocks[predecessors->first + predecessors->nr++].kind == VF_END_IJMP;
	if ((uint64_t)jumps * predecessors->nr > MAX_EDGES)
		return 0;
	predecessors->start = calloc((size_t)predecessors->nr + 2, sizeof(*predecessors->start));
	predecessors->seen = calloc((size_t)predecessors->nr + 1, sizeof(*predecessors->seen));
	predecessors->stack =
		malloc(((size_t)predecessors->nr * 16 + 1) * sizeof(*predecessors->stack));
	if (!predecessors->start || !predecessors->seen || !predecessors->stack)
		return -ENOMEM;
	for (uint32_t i = 0; i < predecessors->nr; i++)
		each_successor(vf, predecessors, predecessors->first + i, count_predecessor,
			       &total);
	predecessors->from = malloc(((size_t)total + 1) * sizeof(*predecessors->from));
	if (!predecessors->from)
		return -ENOMEM;
	/* Make @start the end of each list; put_predecessor() counts it down to the start. */
	for (uint32_t i = 0; i <= predecessors->nr; i++)
		predecessors->start[i + 1] += predecessors->start[i];
	memmove(predecessors->start, predecessors->start + 1,
		(size_t)(predecessors->nr + 1) * sizeof(*predecessors->start));
	for (uint32_t i = 0; i < predecessors->nr; i++)
		each_successor(vf, predecessors, predecessors->first + i, put_predecessor, NULL);
	predecessors->start[predecessors->nr] = total;
	predecessors->complete = true;
	return 0;
}

/* ---- addresses of tables ------------------------------------------------------------------- */

static void add_base(struct vf_bases *bases, uint64_t start)
{
	for (uint32_t i = 0; i < bases->nr; i++)
		if (bases->start[i] == start)
			return;
	if (bases->nr == VF_MAX_BASES)
		bases->unknown = true;
	else
		bases->start[bases->nr++] = start;
}

/* Find the instruction in [@start, @end) that sets @reg, following moves between registers.
 * Return: the register to look for before @start; 16: found, or cannot be found. */
static unsigned int find_setter(const struct vf *vf, const struct vf_fde *fde, uint64_t start,
				uint64_t end, unsigned int reg, struct vf_bases *bases)
{
	for (;;) {
		uint64_t set = 0;
		struct vf_step s;

		for (uint64_t at = start; at < end; at = vf_bits_next(&vf->old.grid, at + 1, end)) {
			const uint8_t *p = mp_elf_bytes(vf->o, at, fde->start + fde->size - at);

			if (p && vf_effect_of(p, fde->start + fde->size - at).sets & VF_REG(reg))
				set = at;
		}
		if (!set)
			return reg;
		if (!vf_decode_step(vf, fde, set, &s)) {
			bases->unknown = true;
			return 16;
		}
		if (s.z.mnemonic == ZYDIS_MNEMONIC_LEA && s.op[1].mem.base == ZYDIS_REGISTER_RIP) {
			add_base(bases, set + s.z.length + (uint64_t)s.op[1].mem.disp.value);
			return 16;
		}
		if (s.z.mnemonic == ZYDIS_MNEMONIC_MOV &&
		    s.op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			add_base(bases, (uint64_t)s.op[1].imm.value.s);
			return 16;
		}
		if (s.z.mnemonic != ZYDIS_MNEMONIC_MOV || s.op[0].size != 64 ||
		    s.op[1].type != ZYDIS_OPERAND_TYPE_REGISTER) {
			bases->unknown = true;
			return 16;
		}
		reg = (unsigned int)ZydisRegisterGetId(s.op[1].reg.value);
		end = set;
	}
}

/* Search backwards on all paths from the jump at the end of @block. */
static void find_bases(const struct vf *vf, struct vf_predecessors *predecessors, uint32_t block,
		       unsigned int reg, struct vf_bases *bases)
{
	const struct vf_graph *g = vf->stubs.graph;
	const struct vf_fde *fde = &vf->old.eh.fdes[predecessors->fde];
	uint32_t depth = 0, end = g->blocks[block].last;

	memset(predecessors->seen, 0, (size_t)predecessors->nr * sizeof(*predecessors->seen));
	predecessors->stack[depth++] = (block - predecessors->first) << 4 | reg;
	while (depth && !bases->unknown) {
		uint32_t top = predecessors->stack[--depth], i = top >> 4;
		const struct vf_block *b = &g->blocks[predecessors->first + i];

		reg = find_setter(vf, fde, vf->old.text_start + b->start, vf->old.text_start + end,
				  top & 15, bases);
		for (uint32_t k = predecessors->start[i];
		     reg < 16 && k < predecessors->start[i + 1]; k++) {
			uint32_t from = predecessors->from[k] - predecessors->first;

			if (predecessors->seen[from] & VF_REG(reg))
				continue;
			predecessors->seen[from] |= VF_REG(reg);
			predecessors->stack[depth++] = from << 4 | reg;
		}
		end = depth ? g->blocks[predecessors->first + (predecessors->stack[depth - 1] >> 4)]
				      .end
			    : 0;
	}
}

int vf_find_table_bases(const struct vf *vf, struct vf_predecessors *predecessors, uint32_t block,
			ZydisRegister reg, struct vf_bases *bases)
{
	uint32_t fde = vf->stubs.graph->blocks[block].fde;
	int ret = 0;

	memset(bases, 0, sizeof(*bases));
	if (predecessors->fde != fde)
		ret = find_predecessors(vf, fde, predecessors);
	if (!ret && predecessors->complete && reg >= ZYDIS_REGISTER_RAX &&
	    reg <= ZYDIS_REGISTER_R15)
		find_bases(vf, predecessors, block, (unsigned int)ZydisRegisterGetId(reg), bases);
	return ret;
}

bool vf_decode_step(const struct vf *vf, const struct vf_fde *fde, uint64_t at, struct vf_step *s)
{
	uint64_t avail = fde->start + fde->size - at;
	const uint8_t *p = mp_elf_bytes(vf->o, at, avail);

	s->at = at;
	return p && ZYAN_SUCCESS(ZydisDecoderDecodeFull(vf_full_decoder(), p, avail, &s->z, s->op));
}
