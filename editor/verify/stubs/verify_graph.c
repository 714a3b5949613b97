// SPDX-License-Identifier: Apache-2.0
/*
 * verify_graph - divides all code of the original into blocks, and finds the calls that never
 * return.
 *
 * Knows functions only by FDEs, which may be parts of one, and follows every jump wherever it
 * leads. Called by verify_free_registers.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_effect.h"
#include "editor/verify/stubs/verify_block.h"
#include "editor/verify/stubs/verify_graph.h"
#include "editor/verify/stubs/verify_jump.h"
#include "editor/verify/stubs/verify_results.h"
#include "editor/verify/stubs/verify_unwinder.h"
#include "editor/verify/stubs/verify_wants.h"

/* ---- where blocks start -------------------------------------------------------------------- */

static bool ends_block(const struct vf_insn *insn)
{
	return insn->kind != VF_OTHER;
}

struct reader {
	const struct vf *vf;
	const struct mp_section *sec;
	const uint8_t *bytes; /* of the section */
	struct vf_insn insn;
};

/* Call @act for each instruction of all code that the scan decoded. */
static int each_insn(const struct vf *vf, int (*act)(struct reader *r, uint64_t at, void *ctx),
		     void *ctx)
{
	for (uint32_t s = 0; s < vf->o->nr_sections; s++) {
		struct reader r = {.vf = vf, .sec = &vf->o->sections[s]};
		uint64_t end = r.sec->vaddr + r.sec->size;

		if (!(r.sec->flags & SHF_ALLOC) || !(r.sec->flags & SHF_EXECINSTR) ||
		    r.sec->type == SHT_NOBITS || !r.sec->size)
			continue;
		r.bytes = mp_elf_bytes(vf->o, r.sec->vaddr, r.sec->size);
		for (uint64_t at = vf_bits_next(&vf->old.grid, r.sec->vaddr, end);
		     r.bytes && at < end; at = vf_bits_next(&vf->old.grid, at + 1, end)) {
			int ret;

			if (!vf_decode(r.bytes + (at - r.sec->vaddr), end - at, at, &r.insn))
				continue;
			ret = act(&r, at, ctx);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static void set_head(const struct vf *vf, struct vf_bits *head, uint64_t at)
{
	if (vf_bits_get(&vf->old.grid, at))
		vf_bits_set(head, at);
}

static int mark_heads(struct reader *r, uint64_t at, void *ctx)
{
	struct vf_bits *head = ctx;
	uint64_t next = at + r->insn.len;

	if (ends_block(&r->insn))
		set_head(r->vf, head, next);
	/* The scan could not decode what follows, or decoded it in another way. */
	if (!vf_bits_get(&r->vf->old.grid, next) ||
	    vf_bits_next(&r->vf->old.grid, at + 1, next) < next)
		set_head(r->vf, head, vf_bits_next(&r->vf->old.grid, at + 1, r->vf->old.text_end));
	return 0;
}

static int find_heads(const struct vf *vf)
{
	struct vf_graph *g = vf->stubs.graph;
	uint64_t words;
	int ret = vf_bits_init(&g->head, vf->old.text_start, vf->old.text_end);

	if (ret)
		return ret;
	words = g->head.nr / 64 + 1;
	for (uint64_t w = 0; w < words; w++)
		g->head.word[w] = vf->old.target.word[w] & vf->old.grid.word[w];
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++) {
		set_head(vf, &g->head, vf->old.eh.fdes[i].start);
		set_head(vf, &g->head, vf->old.eh.fdes[i].start + vf->old.eh.fdes[i].size);
	}
	for (uint32_t s = 0; s < vf->o->nr_sections; s++)
		if (vf->o->sections[s].flags & SHF_EXECINSTR)
			set_head(vf, &g->head, vf->o->sections[s].vaddr);
	/* Each target of a stub starts a block. */
	for (uint32_t i = 0; vf->map && i < vf->map->nr_pieces; i++)
		set_head(vf, &g->head, vf->map->pieces[i].old_vaddr);
	ret = each_insn(vf, mark_heads, &g->head);
	g->rank = malloc(words * sizeof(*g->rank));
	if (ret || !g->rank)
		return ret ? ret : -ENOMEM;
	for (uint64_t w = 0; w < words; w++) {
		g->rank[w] = g->nr_blocks;
		g->nr_blocks += (uint32_t)__builtin_popcountll(g->head.word[w]);
	}
	return 0;
}

/* ---- labels -------------------------------------------------------------------------------- */

static void set_label(const struct vf *vf, uint64_t vaddr)
{
	if (vf_is_text(vf, vaddr))
		vf_bits_set(&vf->stubs.graph->label, vaddr);
}

/* Take the words behind each address that an operand names for offsets, while they lead to
 * code. */
static void label_offsets(const struct vf *vf, const struct mp_section *sec)
{
	uint64_t end = sec->vaddr + sec->size;
	uint64_t base = vf_bits_next(&vf->old.data_ref, sec->vaddr, end), next;

	for (; base < end; base = next) {
		next = vf_bits_next(&vf->old.data_ref, base + 1, end);
		for (uint64_t at = base; at + 4 <= next; at += 4) {
			const uint8_t *p = mp_elf_bytes(vf->o, at, 4);
			int32_t word;

			if (!p)
				break;
			memcpy(&word, p, 4);
			if (!vf_bits_get(&vf->old.grid, base + (uint64_t)(int64_t)word))
				break;
			set_label(vf, base + (uint64_t)(int64_t)word);
		}
	}
}

/* Places that other than direct branches may lead to: addresses in words and operands. */
static int find_labels(const struct vf *vf)
{
	struct vf_graph *g = vf->stubs.graph;
	const struct mp_elf *o = vf->o;
	int ret = vf_bits_init(&g->label, vf->old.text_start, vf->old.text_end);

	if (ret)
		return ret;
	for (uint64_t w = 0; w < g->label.nr / 64 + 1; w++)
		g->label.word[w] = vf->old.text_ref.word[w] | vf->old.maybe_address.word[w];
	for (uint32_t i = 0; i < o->nr_dyn_relocs; i++)
		set_label(vf, o->dyn_relocs[i].sym_value + (uint64_t)o->dyn_relocs[i].addend);
	for (uint32_t i = 0; i < o->nr_relocs; i++)
		if (!vf_is_text(vf, o->relocs[i].vaddr))
			set_label(vf, o->relocs[i].sym_value + (uint64_t)o->relocs[i].addend);
	for (uint32_t s = 0; s < o->nr_sections; s++)
		if ((o->sections[s].flags & SHF_ALLOC) && o->sections[s].type == SHT_PROGBITS &&
		    !(o->sections[s].flags & SHF_EXECINSTR))
			label_offsets(vf, &o->sections[s]);
	for (uint32_t i = 0; i < o->nr_symbols; i++)
		if (o->symbols[i].dynamic && o->symbols[i].shndx != SHN_UNDEF)
			set_label(vf, o->symbols[i].vaddr);
	set_label(vf, o->ehdr.e_entry);
	return 0;
}

/* ---- what blocks do ------------------------------------------------------------------------ */

/* Registers that one instruction wants. Pushing or spilling a register of @saved is not a use. */
static uint64_t wants_of(const struct vf_effect *e, uint16_t saved)
{
	uint16_t low = e->reads[VF_PART_LOW];
	uint16_t high = e->reads[VF_PART_HIGH] & (uint16_t)~low;

	if (e->flags & VF_EFFECT_PUSH)
		return VF_WANT(low & ~saved & ~VF_REG(4), VF_WANT_PUSH);
	if (e->flags & VF_EFFECT_SPILL) {
		/* The base is always used; it is rsp or rbp. */
		uint16_t base = low & (VF_REG(4) | VF_REG(5));

		return VF_WANT((low | high) & ~saved & ~base, VF_WANT_SPILL) |
		       VF_WANT(base, VF_WANT_LOW);
	}
	return VF_WANT(low, VF_WANT_LOW) | VF_WANT(high, VF_WANT_HIGH);
}

struct filler {
	struct vf_block *block; /* the current block */
	uint64_t expect;	/* where its next instruction must start */
};

/* Is @insn the call of a TLS descriptor, `call *(%rax)`, which changes rax alone? */
static bool asks_descriptor(const uint8_t *bytes, const struct vf_insn *insn)
{
	return insn->len == 2 && bytes[0] == 0xff && bytes[1] == 0x10;
}

static uint8_t end_of(const uint8_t *bytes, const struct vf_insn *insn)
{
	switch (insn->kind) {
	case VF_JCC:
	case VF_ODD: return insn->rel_size == 2 ? VF_END_BAD : VF_END_JCC;
	case VF_JMP: return VF_END_JMP;
	case VF_CALL: return VF_END_CALL;
	case VF_ICALL: return VF_END_ICALL;
	case VF_IJMP_REG:
	case VF_IJMP_MEM: return VF_END_IJMP;
	case VF_STOP:
		switch (bytes[0]) {
		case 0xcf: return VF_END_BAD; /* iret */
		case 0xf4:
		case 0x0f: return VF_END_STOP;
		default: return VF_END_RET; /* perhaps with prefixes */
		}
	default: return VF_END_FALL;
	}
}

static void end_block(struct reader *r, struct vf_block *b, const uint8_t *bytes)
{
	const struct vf_insn *insn = &r->insn;
	const struct vf *vf = r->vf;

	b->kind = end_of(bytes, insn);
	b->returns = true;
	b->to = VF_NONE;
	if (insn->rel_size && vf_is_text(vf, insn->target)) {
		b->to = vf_block_at(vf, insn->target);
		if (b->to == VF_NONE)
			b->kind = VF_END_BAD; /* target between two instructions */
	}
	if (insn->kind == VF_IJMP_MEM && insn->disp_off) {
		b->through_memory = true;
		b->filled_by_loader = mp_elf_dyn_reloc_at(vf->o, insn->target) != NULL;
		b->returns = !vf_is_noreturn_slot(vf, insn->target);
	}
	if (insn->kind == VF_ICALL && insn->disp_off)
		b->returns = !vf_is_noreturn_slot(vf, insn->target);
	if (b->fde != VF_NONE &&
	    ((insn->kind == VF_ICALL && !asks_descriptor(bytes, insn)) ||
	     (insn->kind == VF_CALL && b->to == VF_NONE) || b->filled_by_loader))
		vf->stubs.graph->changes[b->fde] |= VF_CALLER_SAVED;
}

static int fill_block(struct reader *r, uint64_t at, void *ctx)
{
	struct filler *f = ctx;
	const struct vf *vf = r->vf;
	struct vf_graph *g = vf->stubs.graph;
	const uint8_t *bytes = r->bytes + (at - r->sec->vaddr);
	uint64_t avail = r->sec->vaddr + r->sec->size - at;
	struct vf_effect e;
	struct vf_block *b;

	if (vf_bits_get(&g->head, at)) {
		const struct vf_fde *fde = vf_eh_find(&vf->old.eh, at);

		/* Find the block by address: sections may be in any order, and overlap in a
		 * damaged file. */
		b = f->block = &g->blocks[vf_block_at(vf, at)];
		b->start = (uint32_t)(at - vf->old.text_start);
		b->fde = fde ? (uint32_t)(fde - vf->old.eh.fdes) : VF_NONE;
		b->to = VF_NONE;
	} else if (at != f->expect || !f->block) {
		if (f->block)
			f->block->kind = VF_END_BAD;
		return 0;
	}
	b = f->block;
	f->expect = at + r->insn.len;
	b->last = (uint32_t)(at - vf->old.text_start);
	b->end = (uint32_t)(f->expect - vf->old.text_start);
	e = vf_effect_of(bytes, avail);
	b->want |= vf_want_without(wants_of(&e, b->fde == VF_NONE ? 0 : g->saves[b->fde]), b->kill);
	b->kill[0] |= e.writes[VF_PART_LOW];
	b->kill[1] |= e.writes[VF_PART_HIGH];
	b->sets |= e.sets;
	if (b->fde != VF_NONE)
		g->changes[b->fde] |= e.sets & VF_CALLER_SAVED;
	if (ends_block(&r->insn)) {
		end_block(r, b, bytes);
		f->block = NULL;
	}
	return 0;
}

/* Find the registers that each FDE's rows save for the caller. */
static int find_saved(const struct vf *vf)
{
	struct vf_rows rows = {0};
	int ret = 0;

	for (uint32_t i = 0; i < vf->old.eh.nr_fdes && ret != -ENOMEM; i++) {
		rows.nr = 0;
		ret = vf_rows_build(&vf->old.eh, &vf->old.eh.fdes[i], &rows);
		for (uint32_t k = 0; !ret && k < rows.nr; k++)
			vf->stubs.graph->saves[i] |= vf_row_saves(&rows.row[k]);
	}
	free(rows.row);
	return ret == -ENOMEM ? ret : 0;
}

/* Set @flag for the function that starts at @vaddr. */
static void flag_function(const struct vf *vf, uint64_t vaddr, uint8_t flag)
{
	const struct vf_fde *fde = vf_is_text(vf, vaddr) ? vf_eh_find(&vf->old.eh, vaddr) : NULL;

	if (fde && fde->start == vaddr)
		vf->stubs.graph->flags[fde - vf->old.eh.fdes] |= flag;
}

/*
 * A number in data may only look like an address; one that the loader or an operand uses is
 * one. It may still be that of a part of a function, unless some code calls it.
 */
static void find_known(const struct vf *vf)
{
	const struct vf_graph *g = vf->stubs.graph;
	const struct mp_elf *o = vf->o;

	for (uint32_t i = 0; i < o->nr_dyn_relocs; i++)
		flag_function(vf, o->dyn_relocs[i].sym_value + (uint64_t)o->dyn_relocs[i].addend,
			      VF_FUNC_NAMED);
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++)
		if (vf_bits_get(&vf->old.text_ref, vf->old.eh.fdes[i].start))
			g->flags[i] |= VF_FUNC_NAMED;
	for (uint32_t i = 0; i < g->nr_blocks; i++) {
		uint32_t to = g->blocks[i].kind == VF_END_CALL ? g->blocks[i].to : VF_NONE;
		uint32_t fde = to == VF_NONE ? VF_NONE : g->blocks[to].fde;

		if (fde != VF_NONE && g->flags[fde] & VF_FUNC_NAMED)
			flag_function(vf, vf->old.text_start + g->blocks[to].start, VF_FUNC_KNOWN);
	}
	for (uint32_t i = 0; i < o->nr_symbols; i++)
		if (o->symbols[i].dynamic && o->symbols[i].shndx != SHN_UNDEF)
			flag_function(vf, o->symbols[i].vaddr, VF_FUNC_KNOWN);
	flag_function(vf, o->ehdr.e_entry, VF_FUNC_KNOWN);
}

static void find_entries(const struct vf *vf)
{
	struct vf_graph *g = vf->stubs.graph;

	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++)
		if (vf_bits_get(&g->label, vf->old.eh.fdes[i].start))
			g->flags[i] |= VF_FUNC_CALLED;
	for (uint32_t i = 0; i < g->nr_blocks; i++) {
		const struct vf_block *b = &g->blocks[i];
		uint32_t fde;

		fde = b->to == VF_NONE ? VF_NONE : g->blocks[b->to].fde;
		if (fde == VF_NONE)
			continue;
		if (b->kind == VF_END_CALL)
			g->flags[fde] |= VF_FUNC_CALLED;
		else if (fde != b->fde)
			g->flags[fde] |= VF_FUNC_JUMPED;
	}
}

static bool has_labels(const struct vf *vf, uint32_t i)
{
	const struct vf_fde *fde = &vf->old.eh.fdes[i];
	uint64_t end = fde->start + fde->size;

	return vf_bits_next(&vf->stubs.graph->label, fde->start + 1, end) < end;
}

static int fill_blocks(const struct vf *vf)
{
	struct vf_graph *g = vf->stubs.graph;
	struct filler f = {0};
	int ret;

	g->blocks = calloc((size_t)g->nr_blocks + 1, sizeof(*g->blocks));
	if (!g->blocks)
		return -ENOMEM;
	ret = each_insn(vf, fill_block, &f);
	find_entries(vf);
	find_known(vf);
	if (!ret)
		ret = vf_graph_find_tables(vf);
	for (uint32_t i = 0; !ret && i < g->nr_blocks; i++) {
		struct vf_block *b = &g->blocks[i];

		if (b->kind == VF_END_IJMP && b->fde != VF_NONE && !has_labels(vf, b->fde))
			g->changes[b->fde] |= VF_CALLER_SAVED;
		/* The block that control falls into must follow. */
		if ((b->kind == VF_END_FALL || b->kind == VF_END_JCC) &&
		    (i + 1 == g->nr_blocks || g->blocks[i + 1].start != b->end))
			b->kind = VF_END_BAD;
	}
	return ret;
}

/* ---- calls that never return --------------------------------------------------------------- */

/* May control get from block @i to a return, by what is known in @returns? */
static bool returns_from(const struct vf_graph *g, uint32_t i, const uint8_t *returns)
{
	const struct vf_block *b = &g->blocks[i];

	switch (b->kind) {
	case VF_END_FALL: return returns[i + 1];
	case VF_END_JCC: return returns[i + 1] || b->to == VF_NONE || returns[b->to];
	case VF_END_JMP: return b->to == VF_NONE || returns[b->to];
	case VF_END_CALL:
		return (b->to == VF_NONE || returns[b->to]) && vf_continues_after_call(g, i) &&
		       returns[i + 1];
	case VF_END_ICALL: return vf_continues_after_call(g, i) && returns[i + 1];
	case VF_END_TABLE:
		for (const uint32_t *t = &g->targets[b->to]; *t != VF_NONE; t++)
			if (returns[*t])
				return true;
		return false;
	case VF_END_IJMP: return b->returns;
	case VF_END_STOP: return false;
	default: return true;
	}
}

/* Find calls that never return, from the returns backwards. */
static int find_returns(const struct vf *vf)
{
	struct vf_graph *g = vf->stubs.graph;
	uint8_t *returns = calloc((size_t)g->nr_blocks + 1, 1);
	bool changed = true;

	if (!returns)
		return -ENOMEM;
	while (changed) {
		changed = false;
		for (uint32_t i = g->nr_blocks; i-- > 0;) {
			if (returns[i] || !returns_from(g, i, returns))
				continue;
			returns[i] = 1;
			changed = true;
		}
	}
	for (uint32_t i = 0; i < g->nr_blocks; i++) {
		struct vf_block *b = &g->blocks[i];

		if (b->kind == VF_END_CALL && b->to != VF_NONE && !returns[b->to])
			b->returns = false;
	}
	free(returns);
	return 0;
}

/* ---- the graph ----------------------------------------------------------------------------- */

int vf_graph_build(struct vf *vf)
{
	uint32_t nr = vf->old.eh.nr_fdes + 1;
	struct vf_graph *g = calloc(1, sizeof(*g));
	int ret;

	vf->stubs.graph = g;
	if (!g)
		return -ENOMEM;
	g->first_dynamic = vf->o->nr_symbols;
	while (g->first_dynamic && vf->o->symbols[g->first_dynamic - 1].dynamic)
		g->first_dynamic--;
	g->changes = calloc(nr, sizeof(*g->changes));
	g->not_preserved = calloc(nr, sizeof(*g->not_preserved));
	g->saves = calloc(nr, sizeof(*g->saves));
	g->result_candidates = calloc(nr, sizeof(*g->result_candidates));
	g->results = calloc(nr, sizeof(*g->results));
	g->flags = calloc(nr, sizeof(*g->flags));
	g->live = calloc(nr, sizeof(*g->live));
	if (!g->changes || !g->not_preserved || !g->saves || !g->result_candidates || !g->results ||
	    !g->flags || !g->live)
		return -ENOMEM;
	ret = find_saved(vf);
	if (!ret)
		ret = find_heads(vf);
	if (!ret)
		ret = find_labels(vf);
	if (!ret)
		ret = fill_blocks(vf);
	if (!ret)
		ret = find_returns(vf);
	if (ret)
		return ret;
	vf_find_changes(vf);
	ret = vf_find_result_candidates(vf, g->result_candidates);
	if (ret)
		return ret;
	vf_find_wants(vf);
	vf_find_results(vf);
	vf_find_not_preserved(vf);
	return 0;
}

void vf_graph_free(struct vf *vf)
{
	struct vf_graph *g = vf->stubs.graph;

	if (!g)
		return;
	for (uint32_t i = 0; g->live && i < vf->old.eh.nr_fdes; i++)
		free(g->live[i]);
	vf_bits_fini(&g->head);
	vf_bits_fini(&g->label);
	free(g->rank);
	free(g->blocks);
	free(g->targets);
	free(g->changes);
	free(g->not_preserved);
	free(g->saves);
	free(g->result_candidates);
	free(g->results);
	free(g->flags);
	free(g->live);
	free(g);
	vf->stubs.graph = NULL;
}
