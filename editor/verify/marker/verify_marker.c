// SPDX-License-Identifier: Apache-2.0
/*
 * verify_marker - finds the instructions of the original that a copy may lack: those that serve
 * only code markers, the variables __morph_marker_NAME. Computed over all code at once.
 *
 * An instruction may be missing if it only writes the memory of markers that nothing reads, and
 * registers and flags whose values are not wanted. The set of needed instructions is the smallest
 * possible: an instruction is needed only if it has another effect, or if a needed instruction
 * wants a value that it writes. Called by verify, before the copies.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/marker/verify_marker.h"
#include "editor/verify/marker/verify_marker_private.h"
#include "editor/verify/read/verify_effect.h"
#include "editor/verify/read/verify_lsda.h"
#include "editor/verify/read/verify_piece_index.h"
#include "editor/verify/stubs/verify_block.h"
#include "editor/verify/stubs/verify_graph.h"
#include "editor/verify/stubs/verify_unwinder.h"
#include "libprof/base/grow.h"

#define ARGUMENTS (VF_MARKER_REGS(VF_ARGUMENT_REGS) | VF_MARKER_VECTORS(8))
#define RESULTS	  (VF_MARKER_REGS(VF_RESULT_REGS) | VF_MARKER_VECTORS(2))
#define KEPT	  VF_MARKER_REGS(VF_CALLEE_SAVED)
#define FRAME	  VF_MARKER_REGS(VF_REG(4) | VF_REG(5))
#define ANYTHING  (VF_MARKER_ALL & ~VF_MARKER_FLAGS)

/*
 * Values that are wanted; @abi: only by code of which no more is known than the ABI; @call: only
 * as arguments of calls of such code.
 */
struct want {
	uint64_t sure, abi, call;
};

struct line {
	struct vf_marker_step step;
	uint64_t at;
	bool needed, total; /* @total: what it sets is computed from a marker's total */
};

struct pad {
	uint32_t fde, block;
};

struct search {
	struct vf *vf;
	struct line *lines;
	uint32_t *first;     /* per block, and one more */
	struct want *in;     /* per block */
	struct want *behind; /* per FDE: wanted behind its returns */
	uint64_t *in_pads;   /* per FDE: wanted by its landing pads */
	uint64_t *totals;    /* per block: registers that hold a marker's total */
	struct pad *pads;
	uint32_t nr_pads, cap_pads;
	struct vf_marker *markers;
	uint32_t nr_markers;
	bool changed, preserving;
};

static bool add(struct want *to, struct want more)
{
	if (!(more.sure & ~to->sure) && !(more.abi & ~to->abi) && !(more.call & ~to->call))
		return false;
	to->sure |= more.sure;
	to->abi |= more.abi;
	to->call |= more.call;
	return true;
}

/* ---- reading ------------------------------------------------------------------------------- */

static int read_lines(struct search *s)
{
	const struct vf *vf = s->vf;
	const struct vf_graph *g = vf->stubs.graph;
	uint64_t nr = 0;

	for (uint64_t w = 0; w < vf->old.grid.nr / 64 + 1; w++)
		nr += (uint64_t)__builtin_popcountll(vf->old.grid.word[w]);
	s->lines = calloc(nr + 1, sizeof(*s->lines));
	if (!s->lines)
		return -ENOMEM;
	nr = 0;
	for (uint32_t i = 0; i < g->nr_blocks; i++) {
		uint64_t end = vf->old.text_start + g->blocks[i].end;

		s->first[i] = (uint32_t)nr;
		for (uint64_t at = vf->old.text_start + g->blocks[i].start; at < end;
		     at = vf_bits_next(&vf->old.grid, at + 1, end)) {
			struct line *l = &s->lines[nr++];

			l->at = at;
			vf_marker_step_read(vf, s->markers, s->nr_markers, at, end, &l->step);
		}
	}
	s->first[g->nr_blocks] = (uint32_t)nr;
	return 0;
}

static int add_pad(struct search *s, uint32_t fde, uint64_t at)
{
	uint32_t block = vf_is_text(s->vf, at) ? vf_block_at(s->vf, at) : VF_NONE;

	if (block == VF_NONE)
		return 0;
	return mp_push(s->pads, s->nr_pads, s->cap_pads, (struct pad){fde, block});
}

static int read_pads(struct search *s)
{
	const struct vf *vf = s->vf;
	struct vf_lsda lsda = {0};
	int ret = 0;

	for (uint32_t f = 0; !ret && f < vf->old.eh.nr_fdes; f++) {
		const struct vf_fde *fde = &vf->old.eh.fdes[f];

		if (!fde->lsda)
			continue;
		ret = vf_lsda_read(vf->o, fde->lsda, fde->start, &lsda);
		if (ret == -EBADMSG) { /* may lead anywhere */
			s->in_pads[f] = VF_MARKER_ALL;
			ret = 0;
			continue;
		}
		for (uint32_t k = 0; !ret && k < lsda.nr; k++)
			if (lsda.site[k].pad)
				ret = add_pad(s, f, lsda.site[k].pad);
	}
	vf_lsda_fini(&lsda);
	return ret;
}

/* ---- totals: forwards, on all paths ----------------------------------------------------------- */

static bool arrive(struct search *s, uint32_t to, uint64_t totals)
{
	if (to == VF_NONE || to >= s->vf->stubs.graph->nr_blocks || !(s->totals[to] & ~totals))
		return false;
	s->totals[to] &= totals;
	return true;
}

static uint64_t total_behind(struct search *s, uint32_t i)
{
	uint64_t held = s->totals[i];

	for (uint32_t k = s->first[i]; k < s->first[i + 1]; k++) {
		struct line *l = &s->lines[k];
		const struct vf_marker_step *e = &l->step;

		l->total = e->may_go && ((e->reads_marker && s->markers[e->marker].listed) ||
					 (e->reads & held & ~VF_MARKER_FLAGS));
		held &= ~e->sets;
		if (l->total)
			held |= e->replaces & ~VF_MARKER_FLAGS;
	}
	return held;
}

static void find_totals(struct search *s)
{
	const struct vf *vf = s->vf;
	const struct vf_graph *g = vf->stubs.graph;
	bool changed = true;

	for (uint32_t i = 0; i < g->nr_blocks; i++) {
		uint64_t at = vf->old.text_start + g->blocks[i].start;
		uint32_t fde = g->blocks[i].fde;

		s->totals[i] = fde == VF_NONE || at == vf->old.eh.fdes[fde].start ||
					       vf_bits_get(&g->label, at)
				       ? 0
				       : VF_MARKER_ALL;
	}
	for (uint32_t p = 0; p < s->nr_pads; p++)
		s->totals[s->pads[p].block] = 0;
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < g->nr_blocks; i++) {
			const struct vf_block *b = &g->blocks[i];
			uint64_t held = total_behind(s, i);

			switch (b->kind) {
			case VF_END_JCC: changed |= arrive(s, b->to, held); /* fall through */
			case VF_END_FALL: changed |= arrive(s, i + 1, held); break;
			case VF_END_JMP: changed |= arrive(s, b->to, held); break;
			case VF_END_CALL: changed |= arrive(s, b->to, 0); /* fall through */
			case VF_END_ICALL: changed |= arrive(s, i + 1, held & KEPT); break;
			case VF_END_TABLE:
				for (const uint32_t *t = &g->targets[b->to]; *t != VF_NONE; t++)
					changed |= arrive(s, *t, held);
				break;
			default: break;
			}
		}
	}
}

/* ---- wanting: backwards ------------------------------------------------------------------------ */

/* An argument or a result: no total of a marker is one. */
static struct want by_abi(struct want want)
{
	return (struct want){0, want.sure | want.abi, want.call};
}

/*
 * The values that a function may leave to code behind a call of it. A caller does not know the
 * value of a register that a call changes, unless the register is a result. So no later call gets
 * such a register as an argument, except a result.
 */
static struct want by_return(struct want want)
{
	want = by_abi(want);
	want.call &= RESULTS;
	return want;
}

static struct want wanted_at(const struct search *s, uint32_t block)
{
	return block < s->vf->stubs.graph->nr_blocks ? s->in[block]
						     : (struct want){VF_MARKER_ALL, 0, 0};
}

/* Control goes on from @b to block @to, perhaps of another FDE, which then returns for @b's. */
static void go_on(struct search *s, const struct vf_block *b, uint32_t to, struct want *live)
{
	const struct vf_graph *g = s->vf->stubs.graph;
	uint32_t fde = to < g->nr_blocks ? g->blocks[to].fde : VF_NONE;

	if (to == VF_NONE) { /* outside of the known code */
		live->sure |= ANYTHING;
		return;
	}
	if (fde != b->fde && fde != VF_NONE && g->flags[fde] & VF_FUNC_CALLED &&
	    s->vf->old.text_start + g->blocks[to].start == s->vf->old.eh.fdes[fde].start)
		add(live, by_abi(s->in[to])); /* a tail call */
	else
		add(live, wanted_at(s, to));
	if (fde == b->fde || b->fde == VF_NONE)
		return;
	live->sure |= KEPT;
	add(live, s->behind[b->fde]);
	if (fde != VF_NONE)
		s->changed |= add(&s->behind[fde], s->behind[b->fde]);
}

static void add_labels(struct search *s, const struct vf_block *b, struct want *live)
{
	const struct vf *vf = s->vf;
	const struct vf_fde *fde = &vf->old.eh.fdes[b->fde];
	uint64_t end = fde->start + fde->size;

	for (uint64_t at = vf_bits_next(&vf->stubs.graph->label, fde->start + 1, end); at < end;
	     at = vf_bits_next(&vf->stubs.graph->label, at + 1, end)) {
		uint32_t to = vf_block_at(vf, at);

		if (to != VF_NONE)
			add(live, s->in[to]);
	}
}

/* The places that the call at the end of block @i may change: no code behind it relies on them. */
static uint64_t changed_by_call(const struct search *s, uint32_t i)
{
	const struct vf *vf = s->vf;
	const struct vf_graph *g = vf->stubs.graph;
	const struct vf_block *b = &g->blocks[i], *to = b->kind == VF_END_CALL && b->to != VF_NONE
								? &g->blocks[b->to]
								: NULL;
	const uint8_t *last = mp_elf_bytes(vf->o, vf->old.text_start + b->last, b->end - b->last);

	if (b->kind == VF_END_ICALL && last && b->end - b->last == 2 && last[1] == 0x10)
		return VF_MARKER_REGS(VF_REG(0)); /* perhaps that of a TLS descriptor */
	if (b->kind == VF_END_ICALL || (to && to->filled_by_loader))
		return s->preserving ? 0 : VF_MARKER_REGS(VF_CALLER_SAVED) | VF_MARKER_VECTORS(16);
	return to && to->fde != VF_NONE ? VF_MARKER_REGS(g->changes[to->fde] & VF_CALLER_SAVED) : 0;
}

/* Do functions outside keep all registers? Hooks of profilers do. */
static bool are_preserving(const struct mp_elf *o)
{
	for (uint32_t i = 0; i < o->nr_symbols; i++) {
		const char *name = o->symbols[i].name;

		if (name && (!strcmp(name, "__fentry__") || !strcmp(name, "mcount") ||
			     !strcmp(name, "_mcount")))
			return true;
	}
	return false;
}

static void add_call(struct search *s, uint32_t i, struct want *live)
{
	const struct vf_graph *g = s->vf->stubs.graph;
	const struct vf_block *b = &g->blocks[i];
	uint32_t to = b->kind == VF_END_CALL ? b->to : VF_NONE;
	uint32_t fde = to == VF_NONE ? VF_NONE : g->blocks[to].fde;

	if (vf_continues_after_call(g, i)) {
		add(live, wanted_at(s, i + 1));
		if (fde != VF_NONE && !g->blocks[to].filled_by_loader)
			s->changed |= add(&s->behind[fde], by_return(wanted_at(s, i + 1)));
	}
	live->sure &= ~(changed_by_call(s, i) | VF_MARKER_FLAGS);
	live->abi &= ~changed_by_call(s, i);
	live->call &= ~changed_by_call(s, i);
	if (to != VF_NONE)
		add(live, by_abi(s->in[to]));
	else
		live->call |= ARGUMENTS;
	live->sure |= KEPT & (b->fde == VF_NONE ? VF_MARKER_ALL : s->in_pads[b->fde]);
}

static struct want wanted_behind(struct search *s, uint32_t i)
{
	const struct vf_graph *g = s->vf->stubs.graph;
	const struct vf_block *b = &g->blocks[i];
	struct want live = {0};

	switch (b->kind) {
	case VF_END_JCC: go_on(s, b, b->to, &live); /* fall through */
	case VF_END_FALL: go_on(s, b, i + 1, &live); return live;
	case VF_END_JMP: go_on(s, b, b->to, &live); return live;
	case VF_END_CALL:
	case VF_END_ICALL: add_call(s, i, &live); return live;
	case VF_END_TABLE:
		for (const uint32_t *t = &g->targets[b->to]; *t != VF_NONE; t++)
			go_on(s, b, *t, &live);
		return live;
	case VF_END_STOP: return live;
	case VF_END_IJMP:
		live.call = ARGUMENTS;
		if (b->filled_by_loader)
			return live;
		if (b->fde != VF_NONE)
			add_labels(s, b, &live);
		/* fall through */
	case VF_END_RET:
		live.sure |= KEPT;
		add(&live, b->fde == VF_NONE ? (struct want){ANYTHING, 0, 0} : s->behind[b->fde]);
		return live;
	default: return (struct want){VF_MARKER_ALL, 0, 0};
	}
}

static void need_marker(struct search *s, uint32_t marker)
{
	if (s->markers[marker].read)
		return;
	s->markers[marker].read = true;
	s->changed = true;
}

static void pass(struct search *s, const struct vf_block *b, struct line *l, struct want *live)
{
	const struct vf_marker_step *e = &l->step;
	const struct vf_fde *fde = b->fde == VF_NONE ? NULL : &s->vf->old.eh.fdes[b->fde];
	bool known = fde && !(fde->flags & (VF_FDE_BAD | VF_FDE_OFF_GRID | VF_FDE_SYMBOL_ONLY));

	if (!l->needed && (!known || !e->may_go || e->sets & live->sure ||
			   (e->sets & (live->abi | live->call) && !l->total) ||
			   (e->writes_marker && s->markers[e->marker].read))) {
		l->needed = true;
		s->changed = true;
	}
	if (l->needed) {
		if (e->reads_marker)
			need_marker(s, e->marker);
		live->sure = (live->sure & ~e->replaces) | e->reads;
		live->abi &= ~e->replaces;
		live->call &= ~e->replaces;
	} else if (l->total) {
		/* A total is no argument and no result: no source can name it. */
		live->abi &= ~e->replaces;
		live->call &= ~e->replaces;
	}
	live->sure |= FRAME;
}

static void settle(struct search *s)
{
	const struct vf_graph *g = s->vf->stubs.graph;

	do {
		s->changed = false;
		for (uint32_t i = g->nr_blocks; i-- > 0;) {
			struct want live = wanted_behind(s, i);

			live.sure |= FRAME;
			for (uint32_t k = s->first[i + 1]; k-- > s->first[i];)
				pass(s, &g->blocks[i], &s->lines[k], &live);
			s->changed |= add(&s->in[i], live);
		}
		for (uint32_t p = 0; p < s->nr_pads; p++)
			s->in_pads[s->pads[p].fde] |= s->in[s->pads[p].block].sure;
	} while (s->changed);
}

/* Callers that are not in the file's known code rely on the results of the ABI. */
static void start_behind(struct search *s)
{
	const struct vf_graph *g = s->vf->stubs.graph;

	for (uint32_t f = 0; f < s->vf->old.eh.nr_fdes; f++) {
		if (g->flags[f] & (VF_FUNC_NAMED | VF_FUNC_KNOWN) || !g->flags[f])
			s->behind[f].abi = RESULTS;
		if (s->vf->old.eh.fdes[f].flags & (VF_FDE_BAD | VF_FDE_OFF_GRID))
			s->behind[f].sure = ANYTHING;
	}
}

/* ---- result ------------------------------------------------------------------------------------ */

/* Does the unwinder read a register that the instruction sets? It must find the same frame. Return: 1, 0, -ENOMEM. */
static int serves_unwinder(const struct vf *vf, const struct line *l)
{
	int reads = 0;

	for (unsigned int reg = 0; reg < 16 && !reads; reg++)
		if (l->step.sets & VF_MARKER_REGS(VF_REG(reg)))
			reads = vf_unwinder_reads(vf, l->at, reg);
	return reads;
}

static int note_missing(struct search *s)
{
	struct vf *vf = s->vf;
	int ret = vf_bits_init(&vf->old.may_lack, vf->old.text_start, vf->old.text_end);
	uint32_t nr = ret ? 0 : s->first[vf->stubs.graph->nr_blocks];

	for (uint32_t k = 0; k < nr; k++)
		if (!s->lines[k].needed)
			vf_bits_set(&vf->old.may_lack, s->lines[k].at);
	/* Only those that a copy lacks matter, and rows are slow to build. */
	for (uint32_t k = 0; k < nr && !ret; k++) {
		const struct mp_map_piece *p =
			s->lines[k].needed ? NULL : vf_piece_holding(vf, s->lines[k].at);
		int serves = p && p->new_size < p->old_size ? serves_unwinder(vf, &s->lines[k]) : 0;

		ret = serves < 0 ? serves : 0;
		if (serves > 0)
			vf->old.may_lack.word[(s->lines[k].at - vf->old.may_lack.base) / 64] &=
				~(1ULL << ((s->lines[k].at - vf->old.may_lack.base) % 64));
	}
	return ret;
}

/* Does the copy lack the first instruction of the original? */
static bool lacks(const struct vf *vf, const struct mp_map_piece *p)
{
	const uint8_t *old = p->old_size ? mp_elf_bytes(vf->o, p->old_vaddr, p->old_size) : NULL;
	const uint8_t *new = mp_elf_bytes(vf->n, p->new_vaddr, p->new_size);
	struct vf_insn a, b;

	return old && vf_decode(old, p->old_size, p->old_vaddr, &a) && a.kind == VF_OTHER &&
	       (p->new_size < a.len ||
		(new &&vf_decode(new, p->new_size, p->new_vaddr, &b) && b.kind == VF_JMP));
}

/* Report all of them at once, so that the next attempt can do without. */
static void note_needed(const struct vf *vf)
{
	struct me_verify_report *r = &vf->result->report;

	for (uint32_t i = 0; i < vf->map->nr_pieces; i++) {
		const struct mp_map_piece *p = &vf->map->pieces[i];
		uint64_t end = p->old_vaddr + p->old_size;

		if (!lacks(vf, p))
			continue;
		for (uint64_t at = p->old_vaddr; at < end && r->nr_needed < ME_MAX_UNPROVED;
		     at = vf_bits_next(&vf->old.grid, at + 1, end))
			if (!vf_bits_get(&vf->old.may_lack, at))
				r->needed[r->nr_needed++] = at;
	}
}

static int search(struct search *s)
{
	const struct vf *vf = s->vf;
	size_t blocks = (size_t)vf->stubs.graph->nr_blocks + 2,
	       fdes = (size_t)vf->old.eh.nr_fdes + 1;
	int ret;

	s->first = calloc(blocks, sizeof(*s->first));
	s->in = calloc(blocks, sizeof(*s->in));
	s->totals = calloc(blocks, sizeof(*s->totals));
	s->behind = calloc(fdes, sizeof(*s->behind));
	s->in_pads = calloc(fdes, sizeof(*s->in_pads));
	if (!s->first || !s->in || !s->totals || !s->behind || !s->in_pads)
		return -ENOMEM;
	ret = read_lines(s);
	if (!ret)
		ret = read_pads(s);
	if (ret)
		return ret;
	vf_markers_find_references(s->vf, s->markers, s->nr_markers);
	s->preserving = are_preserving(vf->o);
	find_totals(s);
	start_behind(s);
	settle(s);
	ret = note_missing(s);
	if (!ret)
		note_needed(s->vf);
	return ret;
}

int vf_find_markers(struct vf *vf)
{
	struct search s = {.vf = vf};
	int ret = vf->o->relinkable ? vf_markers_read(vf, &s.markers, &s.nr_markers) : 0;

	if (!ret && s.nr_markers) {
		if (!vf->stubs.graph)
			ret = vf_graph_build(vf);
		if (!ret)
			ret = search(&s);
	}
	free(s.lines);
	free(s.first);
	free(s.in);
	free(s.behind);
	free(s.in_pads);
	free(s.totals);
	free(s.pads);
	free(s.markers);
	return ret;
}
