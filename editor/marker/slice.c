// SPDX-License-Identifier: Apache-2.0
/*
 * slice - liveness of registers, flags and markers over all functions, twice: once as if markers
 * were read, once as if they were not. The difference serves only markers.
 */
#include "editor/marker/slice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/marker/effect.h"
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

/*
 * Places whose values are wanted: @weak as arguments or results, so that no total counts; @call as
 * arguments of calls of which no more is known than the ABI.
 */
struct wants {
	uint64_t sure, weak, call;
};

struct insn {
	struct me_effect e;
	uint64_t vaddr;
	uint32_t callee;   /* of a call: function index, or MP_NONE */
	uint8_t len, kind; /* enum mp_insn_kind */
	bool outside;	   /* a call of a function that is known by the ABI alone */
	bool tls;	   /* perhaps a call that changes only rax */
	bool needed, needed_with_markers;
	bool barred;  /* verify wants it to stay */
	bool derived; /* what it sets is computed from a marker's total */
};

struct finder {
	const struct mp_cfg *cfg;
	const struct me_markers *markers;
	struct insn *insns;   /* of all blocks, in their order */
	uint32_t *first;      /* per block, and one more: its first instruction */
	struct wants *live;   /* per block: at its start */
	struct wants *behind; /* per function: wanted behind its returns */
	uint64_t *changes;    /* per function: what it or its callees may change */
	bool preserving;      /* functions outside may keep all registers: profilers' hooks */
	uint64_t *derived;    /* per block: places that hold totals of markers at its start */
	uint64_t *pads;	      /* per function: wanted by its landing pads */
	bool *marker_live;    /* per marker */
	bool *marker_listed;  /* per marker: .morph.markers names it */
	bool changed;
};

static bool is_known(const struct mp_func *func)
{
	return func->nr_blocks && func->problem == MP_PROBLEM_NONE;
}

/* The function whose entry is @target; MP_NONE: it is not known what is there. */
static uint32_t function_entered(const struct mp_cfg *cfg, uint64_t target)
{
	uint32_t func = mp_cfg_func_at(cfg, target);

	return func != MP_NONE && cfg->funcs[func].vaddr == target && is_known(&cfg->funcs[func])
		       ? func
		       : MP_NONE;
}

/* Does a jump to @target enter what is no function of this file: a stub of the linker? */
static bool is_stub(const struct mp_cfg *cfg, uint64_t target)
{
	uint32_t func = mp_cfg_func_at(cfg, target);

	return func == MP_NONE || cfg->funcs[func].problem == MP_PROBLEM_SPECIAL;
}

/* ---- reading the code ----------------------------------------------------------------------- */

static int decode_all(struct finder *f)
{
	const struct mp_cfg *cfg = f->cfg;
	ZydisDecoder decoder;
	uint32_t nr = 0, cap = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		cap += cfg->blocks[b].nr_insns + 1;
	f->insns = calloc((size_t)cap + 1, sizeof(*f->insns));
	if (!f->insns)
		return -ENOMEM;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);

		f->first[b] = nr;
		for (uint32_t off = 0; off < block->size && nr < cap;) {
			struct insn *insn = &f->insns[nr++];
			struct mp_insn m = {0};

			insn->vaddr = block->vaddr + off;
			insn->callee = MP_NONE;
			me_effect_of(&decoder, cfg->elf, f->markers, bytes ? bytes + off : NULL,
				     block->size - off, insn->vaddr, &insn->e);
			if (!bytes ||
			    mp_insn_decode(bytes + off, block->size - off, insn->vaddr, &m)) {
				insn->e.reads = ME_PLACES_ALL;
				insn->e.pure = false;
				insn->len = (uint8_t)(block->size - off);
				break;
			}
			insn->len = m.len;
			insn->kind = m.kind;
			if (m.kind == MP_INSN_CALL)
				insn->callee = function_entered(cfg, m.target);
			insn->outside = m.kind == MP_INSN_ICALL ||
					(m.kind == MP_INSN_CALL && is_stub(cfg, m.target));
			insn->tls = m.kind == MP_INSN_ICALL && m.len == 2 && bytes[off + 1] == 0x10;
			off += m.len;
		}
	}
	f->first[cfg->nr_blocks] = nr;
	return 0;
}

static uint32_t insn_at(const struct finder *f, uint64_t vaddr)
{
	uint32_t b = mp_cfg_block_at(f->cfg, vaddr);

	for (uint32_t i = b == MP_NONE ? 0 : f->first[b]; b != MP_NONE && i < f->first[b + 1]; i++)
		if (vaddr - f->insns[i].vaddr < f->insns[i].len)
			return i;
	return MP_NONE;
}

static void note_read(struct finder *f, uint64_t vaddr, uint64_t size)
{
	for (uint64_t at = vaddr; at < vaddr + size; at++) {
		uint32_t marker = me_marker_at(f->markers, at, 1);

		if (marker != UINT32_MAX)
			f->marker_live[marker] = true;
	}
}

/*
 * A wrong guess of an instruction's length may lead from the byte behind a marker, as that of the C
 * library's start-up code, into its last bytes. No code reads these alone.
 */
static void note_part_read(struct finder *f, uint64_t vaddr)
{
	uint32_t marker = me_marker_at(f->markers, vaddr, 1);

	if (marker != UINT32_MAX && (vaddr - f->markers->list[marker].vaddr) % 4 == 0)
		f->marker_live[marker] = true;
}

/* A reference that is no access of an instruction makes its marker one that is read. */
static void judge_reloc(struct finder *f, const struct mp_reloc *rel)
{
	uint64_t to = rel->sym_value + (uint64_t)rel->addend;
	uint32_t i;

	if (!me_marker_touches(f->markers, to, 16))
		return;
	i = insn_at(f, rel->vaddr);
	if (i != MP_NONE && f->insns[i].e.marker != UINT32_MAX)
		return;
	switch (rel->type) {
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
	case R_X86_64_GOTPCREL:
	case R_X86_64_GOTPCRELX:
	case R_X86_64_REX_GOTPCRELX:
		/* The field counts from the instruction's end: 4 bytes further on, and as many more
		 * as an immediate has. Of a known instruction the operand itself was looked at. */
		for (int k = 0; i == MP_NONE && k < 4; k++)
			note_part_read(f, to + (const uint8_t[]){4, 5, 6, 8}[k]);
		return;
	default: note_read(f, to, ME_MARKER_BYTES);
	}
}

static void find_other_references(struct finder *f)
{
	const struct mp_elf *elf = f->cfg->elf;

	for (uint32_t i = 0; i < elf->nr_relocs; i++)
		judge_reloc(f, &elf->relocs[i]);
	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++)
		note_read(f, elf->dyn_relocs[i].sym_value + (uint64_t)elf->dyn_relocs[i].addend,
			  ME_MARKER_BYTES);
}

/* The function that the jump at the end of @block enters; *@leaves: it leaves this one. */
static uint32_t tail_of(const struct mp_cfg *cfg, const struct mp_block *block, bool *leaves)
{
	*leaves = block->term == MP_TERM_TAIL ||
		  (block->term == MP_TERM_COND && block->nr_edges < 2);
	return *leaves ? function_entered(cfg, block->term_target) : MP_NONE;
}

/* ---- what calls change ---------------------------------------------------------------------- */

/* Nobody can rely on a register that a call may change. */
static uint64_t changed_by(const struct finder *f, const struct insn *call)
{
	if (call->callee != MP_NONE)
		return f->changes[call->callee];
	if (call->tls)
		return ME_PLACES_WHOLE(BIT(0));
	return call->outside && !f->preserving ? CALLER_SAVED : 0;
}

static bool add_changes(struct finder *f, uint32_t b)
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

static void find_changes(struct finder *f)
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

/* Whatever a function reads of what its caller left is an argument to it, or of no use. */
static struct wants wanted_by(const struct finder *f, uint32_t callee)
{
	uint32_t entry = callee == MP_NONE
				 ? MP_NONE
				 : mp_cfg_block_starting(f->cfg, f->cfg->funcs[callee].vaddr);

	if (entry == MP_NONE)
		return (struct wants){0, 0, ARGUMENTS};
	return (struct wants){0, f->live[entry].sure | f->live[entry].weak, f->live[entry].call};
}

static void add(struct wants *to, struct wants more)
{
	to->sure |= more.sure;
	to->weak |= more.weak;
	to->call |= more.call;
}

static bool adds(const struct wants *to, struct wants more)
{
	return more.sure & ~to->sure || more.weak & ~to->weak || more.call & ~to->call;
}

/* What follows a call of @callee wants @live. */
static void pass_behind(struct finder *f, uint32_t callee, struct wants live)
{
	live = (struct wants){0, live.sure | live.weak, live.call};
	if (callee == MP_NONE || !adds(&f->behind[callee], live))
		return;
	add(&f->behind[callee], live);
	f->changed = true;
}

static void need_marker(struct finder *f, uint32_t marker)
{
	if (f->marker_live[marker])
		return;
	f->marker_live[marker] = true;
	f->changed = true;
}

/* A total of a marker is no argument and no result: the program's source cannot name it. */
static bool is_needed(const struct finder *f, uint32_t func, const struct insn *insn,
		      struct wants live)
{
	const struct me_effect *e = &insn->e;

	return !e->pure || insn->barred || live.sure & e->sets ||
	       ((live.weak | live.call) & e->sets && !insn->derived) ||
	       (e->writes_marker && f->marker_live[e->marker]) || !is_known(&f->cfg->funcs[func]);
}

static struct wants live_before(struct finder *f, uint32_t func, struct insn *insn,
				struct wants live)
{
	const struct me_effect *e = &insn->e;

	if (!insn->needed && is_needed(f, func, insn, live)) {
		insn->needed = true;
		f->changed = true;
	}
	if (insn->needed && e->reads_marker)
		need_marker(f, e->marker);
	if (insn->kind == MP_INSN_CALL || insn->kind == MP_INSN_ICALL) {
		/* A later call gets nothing from this one but its results: no other register that a
		 * call changes holds anything that its caller knows. */
		pass_behind(f, insn->callee,
			    (struct wants){live.sure, live.weak, live.call & RESULTS});
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

static struct wants live_behind(struct finder *f, uint32_t b)
{
	const struct mp_cfg *cfg = f->cfg;
	const struct mp_block *block = &cfg->blocks[b];
	const struct wants all = {ME_PLACES_ALL, 0, 0};
	struct wants live = {0};
	bool leaves;
	uint32_t callee = tail_of(cfg, block, &leaves);

	for (uint32_t e = 0; e < block->nr_edges; e++)
		add(&live, f->live[cfg->edges[block->first_edge + e].to]);
	if (leaves) {
		if (callee == MP_NONE && !is_stub(cfg, block->term_target))
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

static void visit_block(struct finder *f, uint32_t b)
{
	const struct mp_block *block = &f->cfg->blocks[b];
	struct wants live = live_behind(f, b);

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
static uint64_t derive(const struct finder *f, struct insn *insn, uint64_t held)
{
	const struct me_effect *e = &insn->e;

	if (insn->kind == MP_INSN_CALL || insn->kind == MP_INSN_ICALL)
		return held & CALLEE_SAVED;
	insn->derived = e->pure && ((e->reads_marker && f->marker_listed[e->marker]) ||
				    e->reads & held & ~ME_PLACES_FLAGS);
	held &= ~e->sets;
	return insn->derived ? held | (e->kills & ~ME_PLACES_FLAGS) : held;
}

/* On all paths to a place: at first every place counts as holding a total; rounds remove some. */
static void find_derived(struct finder *f)
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
static void assume_callers(struct finder *f)
{
	const struct wants anything = {ME_PLACES_ALL & ~ME_PLACES_FLAGS, 0, 0},
			   abi = {0, RESULTS, 0};
	const struct mp_cfg *cfg = f->cfg;

	for (uint32_t i = 0; i < cfg->nr_funcs; i++)
		f->behind[i] = cfg->funcs[i].flags & (MP_FUNC_ADDRESS_TAKEN | MP_FUNC_EXPORTED |
						      MP_FUNC_POINTED | MP_FUNC_IFUNC)
				       ? abi
				       : (struct wants){0};
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		if (cfg->blocks[b].flags & MP_BLOCK_OTHER_ENTRY &&
		    !(cfg->blocks[b].flags & MP_BLOCK_ENTRY))
			f->behind[cfg->blocks[b].func] = anything;
	for (uint32_t i = 0; i < cfg->nr_calls; i++) {
		uint32_t callee = cfg->calls[i].callee;

		if (callee != MP_NONE &&
		    !is_known(&cfg->funcs[cfg->blocks[cfg->calls[i].block].func]))
			f->behind[callee] = anything;
	}
}

/* @with_markers: as if all markers were read. */
static void settle(struct finder *f, bool with_markers)
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

static enum me_slice_stay why_stays(const struct finder *f, uint32_t func, const struct insn *insn)
{
	if (!insn->needed)
		return ME_SLICE_GOES;
	if (!is_known(&f->cfg->funcs[func]))
		return ME_SLICE_FUNCTION;
	if (insn->barred)
		return ME_SLICE_UNPROVED;
	return insn->e.pure ? ME_SLICE_READ : ME_SLICE_FORM;
}

static int collect(struct finder *f, struct me_slices *out)
{
	uint32_t nr = f->first[f->cfg->nr_blocks];

	out->insns = calloc((size_t)nr + 1, sizeof(*out->insns));
	out->accesses = calloc((size_t)nr + 1, sizeof(*out->accesses));
	if (!out->insns || !out->accesses)
		return -ENOMEM;
	for (uint32_t b = 0; b < f->cfg->nr_blocks; b++) {
		for (uint32_t i = f->first[b]; i < f->first[b + 1]; i++) {
			const struct insn *insn = &f->insns[i];

			if (!insn->needed && insn->needed_with_markers)
				out->insns[out->nr_insns++] =
					(struct me_slice_insn){insn->vaddr, insn->len};
			if (insn->e.marker != UINT32_MAX)
				out->accesses[out->nr_accesses++] = (struct me_slice_access){
					insn->vaddr, insn->e.marker,
					why_stays(f, f->cfg->blocks[b].func, insn)};
		}
	}
	return 0;
}

static bool allocate(struct finder *f)
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

static int analyse(struct finder *f, const struct me_slice_barred *barred, struct me_slices *out)
{
	int rc = decode_all(f);
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
		uint32_t at = insn_at(f, barred->vaddrs[i]);

		if (at != MP_NONE)
			f->insns[at].barred = true;
	}
	memset(f->marker_live, !f->cfg->elf->relinkable, f->markers->nr);
	find_other_references(f);
	for (uint32_t i = 0; i < nr; i++)
		if (f->insns[i].e.touches) /* in a way that is not understood */
			note_read(f, f->insns[i].e.touches, 16);
	settle(f, false);
	return collect(f, out);
}

int me_slices_find(const struct mp_cfg *cfg, const struct me_markers *markers,
		   const struct me_slice_barred *barred, struct me_slices *out, struct mp_err *err)
{
	struct finder f = {.cfg = cfg, .markers = markers};
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

int me_slice_barred_add(struct me_slice_barred *barred, const uint64_t *vaddrs, uint32_t nr,
			struct mp_err *err)
{
	uint64_t *more = reallocarray(barred->vaddrs, (size_t)barred->nr + nr, sizeof(*more));

	if (!more)
		return mp_err_set(err, ENOMEM, "out of memory");
	memcpy(more + barred->nr, vaddrs, nr * sizeof(*more));
	barred->vaddrs = more;
	barred->nr += nr;
	return 0;
}

void me_slices_fini(struct me_slices *slices)
{
	free(slices->insns);
	free(slices->accesses);
	*slices = (struct me_slices){0};
}

const char *me_slice_stay_name(enum me_slice_stay stay)
{
	static const char *const names[] = {
		[ME_SLICE_GOES] = "left out",
		[ME_SLICE_FUNCTION] = "its function is not understood",
		[ME_SLICE_UNPROVED] = "not proved to serve only markers",
		[ME_SLICE_FORM] = "an instruction of another kind",
		[ME_SLICE_READ] = "something else reads the marker, perhaps a spill",
	};

	return stay < ME_NR_SLICE_STAYS ? names[stay] : "?";
}
