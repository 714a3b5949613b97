// SPDX-License-Identifier: Apache-2.0
/*
 * slice - liveness of registers, flags and markers over all functions, twice: once as if markers
 * were read, once as if they were not. The difference serves only markers.
 */
#include "editor/marker/slice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/marker/slice_private.h"
#include "libprof/base/grow.h"
#include "libprof/infer/counts.h"
#include "libprof/insn/insn.h"

#define BIT(n)	     (UINT64_C(1) << (n))
#define VECTORS(n)   ((BIT(n) - 1) << ME_PLACE_VECTOR)
#define CALLEE_SAVED ME_PLACES_WHOLE(0xf038) /* rbx, rsp, rbp, r12 to r15 */
#define RESULTS	     (ME_PLACES_WHOLE(BIT(0) | BIT(2)) | VECTORS(2))
/* rdi, rsi, rdx, rcx, r8, r9, al with the number of vectors, r10 as the static chain. */
#define ARGUMENTS    (ME_PLACES_WHOLE(0x07c7) | VECTORS(8))
#define CALLER_SAVED (ME_PLACES_WHOLE(0x0fc7) | VECTORS(16))
#define FRAME	     ME_PLACES_WHOLE(BIT(4) | BIT(5)) /* rsp; rbp, by which unwinders may find the frame */

/* The function that the jump at the end of @block enters; *@leaves: it leaves this one. */
static uint32_t tail_of(const struct mp_cfg *cfg, const struct mp_block *block, bool *leaves)
{
	*leaves = block->term == MP_TERM_TAIL ||
		  (block->term == MP_TERM_COND && block->nr_edges < 2);
	return *leaves ? me_slice_function_at(cfg, mp_block_target(block)) : MP_NONE;
}

/* ---- what calls change ---------------------------------------------------------------------- */

/* No code can rely on a register that a call may change. */
static uint64_t changed_by(const struct me_slice_finder *f, const struct me_slice_decoded *call)
{
	if (call->callee != MP_NONE)
		return f->changes[call->callee];
	if (call->tls)
		return ME_PLACES_WHOLE(BIT(0));
	return call->outside && !f->preserving ? CALLER_SAVED : 0;
}

static bool add_changes(struct me_slice_finder *f, uint32_t b)
{
	const struct mp_block *block = &f->cfg->blocks[b];
	uint64_t *sum = &f->changes[block->func], was = *sum;
	bool leaves;
	uint32_t tail = tail_of(f->cfg, block, &leaves);

	for (uint32_t i = f->first[b]; i < f->first[b + 1]; i++)
		*sum |= (f->insns[i].e.sets | changed_by(f, &f->insns[i])) & CALLER_SAVED;
	if (tail != MP_NONE)
		*sum |= f->changes[tail];
	return *sum != was;
}

static void find_changes(struct me_slice_finder *f)
{
	static const char *const hooks[] = {"mcount", "_mcount", "__fentry__"};
	bool changed = true;

	for (uint32_t i = 0; i < f->cfg->elf->nr_symbols; i++)
		for (size_t n = 0; n < sizeof(hooks) / sizeof(hooks[0]); n++)
			if (f->cfg->elf->symbols[i].name &&
			    !strcmp(f->cfg->elf->symbols[i].name, hooks[n]))
				f->preserving = true;
	while (changed) {
		changed = false;
		for (uint32_t b = 0; b < f->cfg->nr_blocks; b++)
			changed |= add_changes(f, b);
	}
}

/* ---- liveness ------------------------------------------------------------------------------- */

/* A value of the caller that a function reads is an argument, or of no use. */
static struct me_slice_wants wanted_by(const struct me_slice_finder *f, uint32_t callee)
{
	uint32_t entry = callee == MP_NONE
				 ? MP_NONE
				 : mp_cfg_block_starting(f->cfg, f->cfg->funcs[callee].vaddr);

	if (entry == MP_NONE)
		return (struct me_slice_wants){0, 0, ARGUMENTS};
	return (struct me_slice_wants){0, f->live[entry].sure | f->live[entry].weak,
				       f->live[entry].call};
}

static void add(struct me_slice_wants *to, struct me_slice_wants more)
{
	to->sure |= more.sure;
	to->weak |= more.weak;
	to->call |= more.call;
}

static bool adds(const struct me_slice_wants *to, struct me_slice_wants more)
{
	return more.sure & ~to->sure || more.weak & ~to->weak || more.call & ~to->call;
}

/* The code behind a call of @callee wants @live. */
static void pass_behind(struct me_slice_finder *f, uint32_t callee, struct me_slice_wants live)
{
	live = (struct me_slice_wants){0, live.sure | live.weak, live.call};
	if (callee == MP_NONE || !adds(&f->behind[callee], live))
		return;
	add(&f->behind[callee], live);
	f->changed = true;
}

static void need_marker(struct me_slice_finder *f, uint32_t marker)
{
	if (f->marker_live[marker])
		return;
	f->marker_live[marker] = true;
	f->changed = true;
}

/* A total of a marker is no argument and no result: the program's source cannot name it. */
static bool is_needed(const struct me_slice_finder *f, uint32_t func,
		      const struct me_slice_decoded *insn, struct me_slice_wants live)
{
	const struct me_effect *e = &insn->e;

	return !e->pure || insn->barred || live.sure & e->sets ||
	       ((live.weak | live.call) & e->sets && !insn->derived) ||
	       (e->writes_marker && f->marker_live[e->marker]) ||
	       !me_slice_is_known(&f->cfg->funcs[func]);
}

static struct me_slice_wants live_before(struct me_slice_finder *f, uint32_t func,
					 struct me_slice_decoded *insn, struct me_slice_wants live)
{
	const struct me_effect *e = &insn->e;

	if (!insn->needed && is_needed(f, func, insn, live)) {
		insn->needed = true;
		f->changed = true;
	}
	if (insn->needed && e->reads_marker)
		need_marker(f, e->marker);
	if (insn->kind == MP_INSN_CALL || insn->kind == MP_INSN_ICALL) {
		/*
		 * A later call gets nothing from this call but its results: the caller does not
		 * know the values of other registers that a call changes.
		 */
		pass_behind(f, insn->callee,
			    (struct me_slice_wants){live.sure, live.weak, live.call & RESULTS});
		live.sure &= ~(changed_by(f, insn) | ME_PLACES_FLAGS);
		live.weak &= ~changed_by(f, insn);
		live.call &= ~changed_by(f, insn);
		add(&live, wanted_by(f, insn->callee));
		live.sure |= e->reads | f->pads[func];
		return live;
	}
	if (insn->needed) {
		live.sure = (live.sure & ~e->kills) | e->reads;
		live.weak &= ~e->kills;
		live.call &= ~e->kills;
	} else if (insn->derived) {
		live.weak &= ~e->kills;
		live.call &= ~e->kills;
	}
	return live;
}

static struct me_slice_wants live_behind(struct me_slice_finder *f, uint32_t b)
{
	const struct mp_cfg *cfg = f->cfg;
	const struct mp_block *block = &cfg->blocks[b];
	const struct me_slice_wants all = {ME_PLACES_ALL, 0, 0};
	struct me_slice_wants live = {0};
	bool leaves;
	uint32_t callee = tail_of(cfg, block, &leaves);

	for (uint32_t e = 0; e < block->nr_edges; e++)
		add(&live, f->live[cfg->edges[block->first_edge + e].to]);
	if (leaves) {
		if (callee == MP_NONE && !me_slice_is_stub(cfg, mp_block_target(block)))
			return all;
		pass_behind(f, callee, f->behind[block->func]);
		add(&live, wanted_by(f, callee));
		add(&live, f->behind[block->func]);
		live.sure |= CALLEE_SAVED;
	}
	switch (block->term) {
	case MP_TERM_INDIRECT_TAIL: live.call |= ARGUMENTS;   /* fall through */
	case MP_TERM_RET: add(&live, f->behind[block->func]); /* fall through */
	case MP_TERM_NORETURN: live.sure |= CALLEE_SAVED; return live;
	case MP_TERM_UNRESOLVED: return all;
	case MP_TERM_FALL:
	case MP_TERM_TABLE: return block->nr_edges ? live : all;
	default: return live;
	}
}

static void visit_block(struct me_slice_finder *f, uint32_t b)
{
	const struct mp_block *block = &f->cfg->blocks[b];
	struct me_slice_wants live = live_behind(f, b);

	for (uint32_t i = f->first[b + 1]; i-- > f->first[b];) {
		live.sure |= FRAME;
		live = live_before(f, block->func, &f->insns[i], live);
	}
	live.sure |= FRAME;
	if (adds(&f->live[b], live)) {
		add(&f->live[b], live);
		f->changed = true;
	}
	if (block->flags & MP_BLOCK_LANDING_PAD)
		f->pads[block->func] |= f->live[b].sure & CALLEE_SAVED;
}

/* ---- values computed from totals ----------------------------------------------------------- */

/* @held: places that hold totals in front of @insn. Return: behind it. */
static uint64_t derive(const struct me_slice_finder *f, struct me_slice_decoded *insn,
		       uint64_t held)
{
	const struct me_effect *e = &insn->e;

	if (insn->kind == MP_INSN_CALL || insn->kind == MP_INSN_ICALL)
		return held & CALLEE_SAVED;
	insn->derived = e->pure && ((e->reads_marker && f->marker_listed[e->marker]) ||
				    e->reads & held & ~ME_PLACES_FLAGS);
	held &= ~e->sets;
	return insn->derived ? held | (e->kills & ~ME_PLACES_FLAGS) : held;
}

/* A register holds a total if it does on all paths. At first all count as holding one; rounds remove
 * those that do not. */
static void find_derived(struct me_slice_finder *f)
{
	const struct mp_cfg *cfg = f->cfg;
	bool changed = true;

	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		f->derived[b] = mp_block_enters(&cfg->blocks[b]) ? 0 : ME_PLACES_ALL;
	while (changed) {
		changed = false;
		for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
			const struct mp_block *block = &cfg->blocks[b];
			uint64_t held = f->derived[b];

			for (uint32_t i = f->first[b]; i < f->first[b + 1]; i++)
				held = derive(f, &f->insns[i], held);
			for (uint32_t e = 0; e < block->nr_edges; e++) {
				uint32_t to = cfg->edges[block->first_edge + e].to;

				changed |= (f->derived[to] & ~held) != 0;
				f->derived[to] &= held;
			}
		}
	}
}

/* Functions that unknown code may call return what the ABI says; parts of functions that other
 * ones enter in the middle may return anything. */
static void assume_callers(struct me_slice_finder *f)
{
	const struct me_slice_wants anything = {ME_PLACES_ALL & ~ME_PLACES_FLAGS, 0, 0},
				    abi = {0, RESULTS, 0};
	const struct mp_cfg *cfg = f->cfg;

	for (uint32_t i = 0; i < cfg->nr_funcs; i++)
		f->behind[i] = cfg->funcs[i].flags & (MP_FUNC_ADDRESS_TAKEN | MP_FUNC_EXPORTED |
						      MP_FUNC_POINTED | MP_FUNC_IFUNC)
				       ? abi
				       : (struct me_slice_wants){0};
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		if (cfg->blocks[b].flags & MP_BLOCK_OTHER_ENTRY &&
		    !(cfg->blocks[b].flags & MP_BLOCK_ENTRY))
			f->behind[cfg->blocks[b].func] = anything;
	for (uint32_t i = 0; i < cfg->nr_calls; i++) {
		uint32_t callee = cfg->calls[i].callee;

		if (callee != MP_NONE &&
		    !me_slice_is_known(&cfg->funcs[cfg->blocks[cfg->calls[i].block].func]))
			f->behind[callee] = anything;
	}
}

/* @with_markers: as if all markers were read. */
static void settle(struct me_slice_finder *f, bool with_markers)
{
	const struct mp_cfg *cfg = f->cfg;

	memset(f->live, 0, ((size_t)cfg->nr_blocks + 1) * sizeof(*f->live));
	memset(f->pads, 0, ((size_t)cfg->nr_funcs + 1) * sizeof(*f->pads));
	assume_callers(f);
	if (with_markers)
		memset(f->marker_live, true, f->markers->nr);
	for (uint32_t i = 0; i < f->first[cfg->nr_blocks]; i++)
		f->insns[i].needed = false;
	do {
		f->changed = false;
		for (uint32_t b = cfg->nr_blocks; b-- > 0;)
			visit_block(f, b);
	} while (f->changed);
}

/* ---- result --------------------------------------------------------------------------------- */

static enum me_slice_stay why_stays(const struct me_slice_finder *f, uint32_t func,
				    const struct me_slice_decoded *insn)
{
	if (!insn->needed)
		return ME_SLICE_GOES;
	if (!me_slice_is_known(&f->cfg->funcs[func]))
		return ME_SLICE_FUNCTION;
	if (insn->barred)
		return ME_SLICE_UNPROVED;
	return insn->e.pure ? ME_SLICE_READ : ME_SLICE_FORM;
}

static int compare_insns(const void *a, const void *b)
{
	const struct me_slice_insn *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int compare_accesses(const void *a, const void *b)
{
	const struct me_slice_access *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int collect(struct me_slice_finder *f, struct me_slices *out)
{
	uint32_t nr = f->first[f->cfg->nr_blocks];

	out->insns = calloc((size_t)nr + 1, sizeof(*out->insns));
	out->accesses = calloc((size_t)nr + 1, sizeof(*out->accesses));
	if (!out->insns || !out->accesses)
		return -ENOMEM;
	for (uint32_t b = 0; b < f->cfg->nr_blocks; b++) {
		for (uint32_t i = f->first[b]; i < f->first[b + 1]; i++) {
			const struct me_slice_decoded *insn = &f->insns[i];

			if (!insn->needed && insn->needed_with_markers)
				out->insns[out->nr_insns++] =
					(struct me_slice_insn){insn->vaddr, insn->len};
			if (insn->e.marker != UINT32_MAX)
				out->accesses[out->nr_accesses++] = (struct me_slice_access){
					insn->vaddr, insn->e.marker,
					why_stays(f, f->cfg->blocks[b].func, insn)};
		}
	}
	/* A function's blocks follow each other, but its cold part may lie before other functions. */
	qsort(out->insns, out->nr_insns, sizeof(*out->insns), compare_insns);
	qsort(out->accesses, out->nr_accesses, sizeof(*out->accesses), compare_accesses);
	return 0;
}

static bool allocate(struct me_slice_finder *f)
{
	size_t blocks = (size_t)f->cfg->nr_blocks + 1, funcs = (size_t)f->cfg->nr_funcs + 1;

	f->first = calloc(blocks + 1, sizeof(*f->first));
	f->live = calloc(blocks, sizeof(*f->live));
	f->behind = calloc(funcs, sizeof(*f->behind));
	f->pads = calloc(funcs, sizeof(*f->pads));
	f->changes = calloc(funcs, sizeof(*f->changes));
	f->derived = calloc(blocks, sizeof(*f->derived));
	f->marker_live = calloc((size_t)f->markers->nr + 1, sizeof(*f->marker_live));
	f->marker_listed = calloc((size_t)f->markers->nr + 1, sizeof(*f->marker_listed));
	return f->first && f->live && f->changes && f->behind && f->pads && f->derived &&
	       f->marker_live && f->marker_listed;
}

static int analyse(struct me_slice_finder *f, const struct me_slice_barred *barred,
		   struct me_slices *out)
{
	int rc = me_slice_decode(f);
	uint32_t nr = rc ? 0 : f->first[f->cfg->nr_blocks];

	if (rc)
		return rc;
	for (uint32_t i = 0; i < f->markers->nr; i++) {
		struct me_marker_place place;

		f->marker_listed[i] =
			me_marker_find_place(f->cfg->elf, f->markers->list[i].name, &place);
	}
	find_changes(f);
	find_derived(f);
	settle(f, true);
	for (uint32_t i = 0; i < nr; i++)
		f->insns[i].needed_with_markers = f->insns[i].needed;
	for (uint32_t i = 0; barred && i < barred->nr; i++) {
		uint32_t at = me_slice_insn_at(f, barred->vaddrs[i]);

		if (at != MP_NONE)
			f->insns[at].barred = true;
	}
	memset(f->marker_live, !f->cfg->elf->relinkable, f->markers->nr);
	me_slice_find_references(f);
	for (uint32_t i = 0; i < nr; i++)
		if (f->insns[i].e.touches) /* in a way that is not understood */
			me_slice_note_read(f, f->insns[i].e.touches, 16);
	settle(f, false);
	return collect(f, out);
}

int me_slices_find(const struct mp_cfg *cfg, const struct me_markers *markers,
		   const struct me_slice_barred *barred, struct me_slices *out, struct mp_err *err)
{
	struct me_slice_finder f = {.cfg = cfg, .markers = markers};
	int rc;

	*out = (struct me_slices){0};
	rc = !markers->nr ? 0 : allocate(&f) ? analyse(&f, barred, out) : -ENOMEM;
	free(f.insns);
	free(f.first);
	free(f.live);
	free(f.behind);
	free(f.pads);
	free(f.changes);
	free(f.derived);
	free(f.marker_live);
	free(f.marker_listed);
	if (!rc)
		return 0;
	me_slices_fini(out);
	return mp_err_set(err, ENOMEM, "out of memory");
}
