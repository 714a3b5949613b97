// SPDX-License-Identifier: Apache-2.0
/*
 * verify_free_registers - decides whether a register is dead at an address of the original: on
 * every path it is replaced as a whole before it is read. The result is computed once per
 * function and its parts.
 *
 * Control is followed wherever it leads. If any part of a register is wanted, all of it is
 * live. Called by verify_paths, from several threads.
 */
#include <errno.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_effect.h"
#include "editor/verify/read/verify_lsda.h"
#include "editor/verify/stubs/verify_block.h"
#include "editor/verify/stubs/verify_free_registers.h"
#include "editor/verify/stubs/verify_graph.h"
#include "editor/verify/stubs/verify_unwinder.h"
#include "editor/verify/stubs/verify_vectors.h"

/* Limit on parts of functions that jump into one another. */
#define MAX_PARTS 64

/* All three parts of the registers in @mask. */
#define PARTS(mask) ((uint64_t)(mask) | (uint64_t)(mask) << 16 | (uint64_t)(mask) << 32)

struct node {
	uint64_t reads, writes, live;
	uint32_t pad;		     /* block of the landing pad; VF_NONE: none */
	bool return_address_written; /* may return to an address that it has written */
};

struct part {
	uint32_t fde, first, nr; /* blocks */
	uint32_t base;		 /* index of its first node */
	struct vf_rows rows;
	struct vf_lsda lsda;
	bool readable;
};

struct body {
	const struct vf *vf;
	struct part part[MAX_PARTS];
	uint32_t nr_parts;
	struct node *nodes;
	uint32_t nr_nodes;
	uint16_t results, arguments; /* further ones that find_extra() found */
	uint16_t saved;		     /* registers that its callees save */
	bool whole;		     /* all parts are known */
};

/* ---- unwind rows --------------------------------------------------------------------------- */

/* ---- parts --------------------------------------------------------------------------------- */

static struct node *node_of(struct body *body, uint32_t block)
{
	for (uint32_t i = 0; i < body->nr_parts; i++) {
		struct part *p = &body->part[i];

		if (block - p->first < p->nr)
			return &body->nodes[p->base + (block - p->first)];
	}
	return NULL;
}

static bool is_part(const struct body *body, uint32_t fde)
{
	for (uint32_t i = 0; i < body->nr_parts; i++)
		if (body->part[i].fde == fde)
			return true;
	return false;
}

static void add_part(struct body *body, uint32_t fde)
{
	const struct vf *vf = body->vf;
	const struct vf_graph *g = vf->stubs.graph;
	const struct vf_fde *f = &vf->old.eh.fdes[fde];
	struct part *p = &body->part[body->nr_parts];
	uint32_t end;

	if (is_part(body, fde))
		return;
	if (body->nr_parts == MAX_PARTS || (f->flags & (VF_FDE_BAD | VF_FDE_OFF_GRID))) {
		body->whole = false;
		return;
	}
	*p = (struct part){.fde = fde, .first = vf_block_at(vf, f->start), .base = body->nr_nodes};
	if (p->first == VF_NONE) {
		body->whole = false;
		return;
	}
	for (end = p->first; end < g->nr_blocks && g->blocks[end].fde == fde;)
		end++;
	p->nr = end - p->first;
	body->nr_nodes += p->nr;
	body->nr_parts++;
}

/* Control leads to @block: add its FDE as a part, unless it is another function. */
static void add_target(struct body *body, uint32_t block)
{
	const struct vf *vf = body->vf;
	const struct vf_graph *g = vf->stubs.graph;
	const struct vf_block *b = block == VF_NONE ? NULL : &g->blocks[block];

	if (!b || b->fde == VF_NONE || b->filled_by_loader)
		return;
	if (vf->old.text_start + b->start == vf->old.eh.fdes[b->fde].start &&
	    g->flags[b->fde] & VF_FUNC_CALLED)
		return;
	add_part(body, b->fde);
}

static void add_targets(struct body *body, const struct part *p)
{
	const struct vf_graph *g = body->vf->stubs.graph;

	for (uint32_t i = p->first; i < p->first + p->nr; i++) {
		const struct vf_block *b = &g->blocks[i];

		if (b->kind == VF_END_JMP || b->kind == VF_END_JCC)
			add_target(body, b->to);
		if (b->kind == VF_END_JCC || b->kind == VF_END_FALL)
			add_target(body, i + 1);
		for (uint32_t t = b->kind == VF_END_TABLE ? b->to : VF_NONE;
		     t != VF_NONE && g->targets[t] != VF_NONE; t++)
			add_target(body, g->targets[t]);
	}
}

static int read_part(struct body *body, struct part *p)
{
	const struct vf *vf = body->vf;
	const struct vf_fde *fde = &vf->old.eh.fdes[p->fde];
	int ret = vf_rows_build(&vf->old.eh, fde, &p->rows);

	p->readable = !ret;
	if (ret != -ENOMEM)
		ret = vf_lsda_read(vf->o, fde->lsda, fde->start, &p->lsda);
	p->readable &= !ret;
	if (ret == -ENOMEM)
		return ret;
	for (uint32_t k = 0; k < p->lsda.nr; k++)
		if (p->lsda.site[k].pad && vf_is_text(vf, p->lsda.site[k].pad))
			add_target(body, vf_block_at(vf, p->lsda.site[k].pad));
	add_targets(body, p);
	return 0;
}

static int find_parts(struct body *body, uint32_t root)
{
	body->whole = true;
	add_part(body, root);
	for (uint32_t i = 0; i < body->nr_parts; i++) {
		int ret = read_part(body, &body->part[i]);

		if (ret)
			return ret;
	}
	body->nodes = calloc((size_t)body->nr_nodes + 1, sizeof(*body->nodes));
	return body->nodes ? 0 : -ENOMEM;
}

/* ---- instructions -------------------------------------------------------------------------- */

static uint64_t parts_of(const uint16_t parts[VF_NR_PARTS])
{
	return parts[VF_PART_LOW] | (uint64_t)parts[VF_PART_HIGH] << 16 |
	       (uint64_t)parts[VF_PART_REST] << 32;
}

static uint16_t whole_of(uint64_t parts)
{
	return (uint16_t)(parts | parts >> 16 | parts >> 32);
}

/* Remove saves from @want: a push may only move the stack pointer, and variables are saved
 * before they have a value. */
static uint64_t unsaved(uint64_t want)
{
	return want &
	       ~((uint64_t)VF_ALL_REGS << VF_WANT_PUSH | (uint64_t)VF_ALL_REGS << VF_WANT_SPILL);
}

static uint16_t saved_by(uint64_t want)
{
	return (uint16_t)(want >> VF_WANT_PUSH | want >> VF_WANT_SPILL);
}

/* Registers that the unwinder and callees want at the instruction at @at, besides its operands. */
static uint16_t wanted_at(const struct body *body, const struct part *p, const struct vf_block *b,
			  uint64_t at)
{
	const struct vf_graph *g = body->vf->stubs.graph;
	const struct vf_row *row = p->readable ? vf_rows_at(&p->rows, at) : NULL;
	uint16_t want;

	if (!row)
		return VF_ALL_REGS;
	want = vf_named_by_row(row);
	if (at != body->vf->old.text_start + b->last ||
	    (b->kind != VF_END_CALL && b->kind != VF_END_ICALL))
		return want;
	/* An exception that passes through needs unsaved callee-saved registers unchanged. */
	want |= VF_ARGUMENT_REGS | vf_row_rules(row, false);
	if (b->kind == VF_END_CALL && b->to != VF_NONE)
		want |= vf_wanted_any(unsaved(vf_wanted_of_callers(g, b->to)));
	return want | body->arguments;
}

struct visit {
	struct node *node;
	const struct vf_block *block;
	const struct vf_effect *e;
	uint16_t want;
	bool last;
};

/* Call @act for each instruction of block @i. */
static void each_insn(struct body *body, const struct part *p, uint32_t i,
		      void (*act)(struct body *body, const struct visit *v))
{
	const struct vf *vf = body->vf;
	const struct vf_block *b = &vf->stubs.graph->blocks[i];
	struct visit v = {.node = &body->nodes[p->base + (i - p->first)], .block = b};
	uint64_t end = vf->old.text_start + b->end;

	for (uint64_t at = vf->old.text_start + b->start; at < end;
	     at = vf_bits_next(&vf->old.grid, at + 1, end)) {
		const uint8_t *bytes = mp_elf_bytes(vf->o, at, end - at);
		struct vf_effect e = vf_effect_of(bytes, end - at);

		v.e = &e;
		v.last = at == vf->old.text_start + b->last;
		v.want = wanted_at(body, p, b, at);
		act(body, &v);
	}
}

static void sum_up(struct body *body, const struct visit *v)
{
	struct node *node = v->node;
	if (v->last && v->block->to != VF_NONE && v->block->kind != VF_END_TABLE)
		body->saved |= saved_by(vf_wanted_of_callers(body->vf->stubs.graph, v->block->to));
	node->reads |= (parts_of(v->e->reads) | PARTS(v->want)) & ~node->writes;
	node->writes |= parts_of(v->e->writes);
	/* The last instruction is the return itself. */
	if (!v->last)
		node->return_address_written = v->e->flags & VF_EFFECT_TOP;
}

static void read_block(struct body *body, const struct part *p, uint32_t i)
{
	const struct vf *vf = body->vf;
	const struct vf_block *b = &vf->stubs.graph->blocks[i];
	struct node *node = &body->nodes[p->base + (i - p->first)];
	const struct vf_call_site *site;

	*node = (struct node){.pad = VF_NONE, .live = node->live};
	each_insn(body, p, i, sum_up);
	if (b->kind != VF_END_CALL && b->kind != VF_END_ICALL)
		return;
	site = vf_lsda_at(&p->lsda, vf->old.text_start + b->end - 1);
	if (!site || !site->pad)
		return;
	node->pad = vf_is_text(vf, site->pad) ? vf_block_at(vf, site->pad) : VF_NONE;
	if (node->pad == VF_NONE || !node_of(body, node->pad))
		node->reads |= PARTS(VF_ALL_REGS);
}

/* ---- what follows a block ------------------------------------------------------------------- */

/* Registers that another function wants, or code of which only this is known. */
static uint64_t wanted_by_other_function(struct body *body, uint32_t block, uint32_t from)
{
	const struct vf_graph *g = body->vf->stubs.graph;
	uint16_t want = VF_ARGUMENT_REGS | VF_RESULT_REGS | VF_CALLEE_SAVED | body->arguments |
			body->results;

	if (from != VF_NONE)
		want |= vf_wanted_any(unsaved(g->results[from]));
	if (block != VF_NONE)
		want |= vf_wanted_any(unsaved(vf_wanted_of_callers(g, block)));
	return PARTS(want);
}

static uint64_t live_at(struct body *body, uint32_t block, uint32_t from)
{
	const struct node *node = block == VF_NONE ? NULL : node_of(body, block);

	return node ? node->live : wanted_by_other_function(body, block, from);
}

/* Live registers at all places of the body that an indirect jump may reach. */
static uint64_t live_at_labels(struct body *body)
{
	const struct vf *vf = body->vf;
	uint64_t live = 0;

	for (uint32_t i = 0; i < body->nr_parts; i++) {
		const struct part *p = &body->part[i];

		for (uint32_t k = p->first; k < p->first + p->nr; k++)
			if (vf_bits_get(&vf->stubs.graph->label,
					vf->old.text_start + vf->stubs.graph->blocks[k].start))
				live |= body->nodes[p->base + (k - p->first)].live;
	}
	return live;
}

static uint64_t wanted_after(struct body *body, const struct node *node, uint32_t i)
{
	const struct vf_graph *g = body->vf->stubs.graph;
	const struct vf_block *b = &g->blocks[i];
	uint64_t live = 0;

	switch (b->kind) {
	case VF_END_FALL: return live_at(body, i + 1, b->fde);
	case VF_END_JCC: return live_at(body, i + 1, b->fde) | live_at(body, b->to, b->fde);
	case VF_END_JMP: return live_at(body, b->to, b->fde);
	case VF_END_CALL:
	case VF_END_ICALL:
		if (node->pad != VF_NONE && node_of(body, node->pad))
			live = node_of(body, node->pad)->live & PARTS(VF_CALLEE_SAVED);
		return live | (vf_continues_after_call(g, i) ? live_at(body, i + 1, b->fde) : 0);
	case VF_END_TABLE:
		for (const uint32_t *t = &g->targets[b->to]; *t != VF_NONE; t++)
			live |= live_at(body, *t, b->fde);
		return live;
	case VF_END_IJMP:
		live = wanted_by_other_function(body, VF_NONE, b->fde);
		return b->filled_by_loader ? live : live | live_at_labels(body);
	case VF_END_RET:
		if (node->return_address_written)
			return PARTS(VF_ALL_REGS);
		return PARTS(VF_RESULT_REGS | VF_CALLEE_SAVED | body->results |
			     vf_wanted_any(unsaved(g->results[b->fde])));
	case VF_END_STOP: return 0;
	default: return PARTS(VF_ALL_REGS);
	}
}

static void spread(struct body *body)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t k = 0; k < body->nr_parts; k++) {
			const struct part *p = &body->part[k];

			for (uint32_t i = p->nr; i-- > 0;) {
				struct node *node = &body->nodes[p->base + i];
				uint64_t live = wanted_after(body, node, p->first + i) &
						~node->writes;

				live |= node->reads | node->live;
				changed |= live != node->live;
				node->live = live;
			}
		}
	}
}

/* ---- further results ----------------------------------------------------------------------- */

/*
 * Find registers that block @i sets by an explicit operand and that the body does not read:
 * *@unread; those that it restores from the stack: *@restored. Goes backwards, instruction by
 * instruction.
 */
static void find_unread(struct body *body, const struct part *p, uint32_t i, uint16_t *unread,
			uint16_t *restored)
{
	const struct vf *vf = body->vf;
	const struct vf_block *b = &vf->stubs.graph->blocks[i];
	uint64_t live = wanted_after(body, &body->nodes[p->base + (i - p->first)], i);
	uint64_t at = vf->old.text_start + b->end, start = vf->old.text_start + b->start;

	while (at > start) {
		uint64_t end = vf->old.text_start + b->end;
		struct vf_effect e;
		uint16_t now;

		do
			at--;
		while (at > start && !vf_bits_get(&vf->old.grid, at));
		e = vf_effect_of(mp_elf_bytes(vf->o, at, end - at), end - at);
		now = e.named & e.writes[VF_PART_LOW] & e.writes[VF_PART_REST] &
		      (uint16_t)~whole_of(live);
		/* A subtraction may only set flags. */
		if (b->kind != VF_END_RET)
			now &= (uint16_t)~e.reads[VF_PART_LOW];
		/* A pop may only move the stack pointer. */
		if (!(e.flags & VF_EFFECT_POP))
			*unread |= now;
		else if (b->kind == VF_END_RET || b->kind == VF_END_JMP)
			*restored |= now;
		live &= ~parts_of(e.writes);
		live |= parts_of(e.reads) | PARTS(wanted_at(body, p, b, at));
	}
}

/*
 * No compiler sets a register without use: if callers or callees save it, they may want its
 * value. A function that saves and restores a caller-saved register keeps it for its callers.
 */
static bool find_extra(struct body *body)
{
	const struct vf_graph *g = body->vf->stubs.graph;
	uint16_t unread = 0, restored = 0, callers = 0, own = 0;

	for (uint32_t k = 0; k < body->nr_parts; k++) {
		const struct part *p = &body->part[k];

		own |= saved_by(g->blocks[p->first].in);
		callers |= saved_by(g->results[p->fde]);
		for (uint32_t i = p->first; i < p->first + p->nr; i++)
			find_unread(body, p, i, &unread, &restored);
	}
	body->results = ((unread & callers) | (restored & own)) & VF_CALLER_SAVED;
	body->arguments = unread & body->saved;
	return body->results || body->arguments;
}

static void read_blocks(struct body *body)
{
	for (uint32_t k = 0; k < body->nr_parts; k++)
		for (uint32_t i = 0; i < body->part[k].nr; i++)
			read_block(body, &body->part[k], body->part[k].first + i);
}

static int find_live(const struct vf *vf, uint32_t root, uint16_t *out)
{
	struct body body = {.vf = vf};
	struct part *p = &body.part[0];
	int ret = find_parts(&body, root);

	if (!ret && body.whole) {
		read_blocks(&body);
		spread(&body);
		if (find_extra(&body)) {
			read_blocks(&body);
			spread(&body);
		}
	}
	for (uint32_t i = 0; !ret && i < p->nr; i++)
		out[i] = body.whole ? whole_of(body.nodes[p->base + i].live) : VF_ALL_REGS;
	for (uint32_t k = 0; k < body.nr_parts; k++) {
		free(body.part[k].rows.row);
		vf_lsda_fini(&body.part[k].lsda);
	}
	free(body.nodes);
	return ret;
}

/* ---- public functions ----------------------------------------------------------------------- */

int vf_read_registers(struct vf *vf)
{
	if (!vf->stubs.path_section)
		return 0;
	if (vf->stubs.counters)
		vf->stubs.named_vectors = vf_named_vectors(vf);
	return vf_graph_build(vf);
}

void vf_registers_fini(struct vf *vf)
{
	vf_graph_free(vf);
}

/* Live registers of the FDE's blocks, computed on first use. Two threads may do this at once:
 * one result is kept. Return: NULL: out of memory. */
static const uint16_t *live_in(const struct vf *vf, uint32_t fde, uint32_t nr)
{
	uint16_t **slot = &vf->stubs.graph->live[fde], *none = NULL, *live;

	/* Pairs with the exchange below. */
	live = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	if (live)
		return live;
	live = malloc(((size_t)nr + 1) * sizeof(*live));
	if (!live || find_live(vf, fde, live)) {
		free(live);
		return NULL;
	}
	if (__atomic_compare_exchange_n(slot, &none, live, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return live;
	free(live);
	return none;
}

int vf_register_is_dead(const struct vf *vf, uint64_t vaddr, unsigned int reg)
{
	const struct vf_graph *g = vf->stubs.graph;
	uint32_t block = vf_block_at(vf, vaddr), fde, first;
	const uint16_t *live;
	uint32_t nr = 0;

	if (block == VF_NONE || reg > 15 || reg == 4 || reg == 5)
		return 0;
	fde = g->blocks[block].fde;
	if (fde == VF_NONE || vf->old.eh.fdes[fde].flags & (VF_FDE_BAD | VF_FDE_OFF_GRID))
		return 0;
	if (!((VF_CALLEE_SAVED | g->not_preserved[fde]) >> reg & 1))
		return 0;
	first = vf_block_at(vf, vf->old.eh.fdes[fde].start);
	if (first == VF_NONE)
		return 0;
	while (first + nr < g->nr_blocks && g->blocks[first + nr].fde == fde)
		nr++;
	live = live_in(vf, fde, nr);
	return live ? !(live[block - first] >> reg & 1) : -ENOMEM;
}
