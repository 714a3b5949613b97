// SPDX-License-Identifier: Apache-2.0
/*
 * flags - liveness of the arithmetic flags, backwards over each function's blocks. Calls and returns pass none by the
 * ABI; hand-written code may pass them, also through functions that change none.
 */
#include "editor/evidence/flags/flags.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>

#include "editor/evidence/flags/flags_code.h"
#include "libprof/base/grow.h"

/* The flags that `inc` changes. */
#define STATUS                                                                                     \
	(ZYDIS_CPUFLAG_OF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_AF |               \
	 ZYDIS_CPUFLAG_PF)

/* Effect of one instruction, or of a whole block, on the flags. */
struct effect {
	uint16_t reads;	 /* before it writes them */
	uint16_t writes; /* whatever the operands are */
	uint16_t left; /* of a block: flags that a call in it may have set, and that nothing behind the call writes */
	bool behind; /* of a block: it reads flags that its calls may have left */
};

struct finder {
	const struct mp_cfg *cfg;
	struct me_flags_code code;
	uint16_t status;	  /* STATUS, with the carry if asked for */
	struct effect *effects;	  /* per block */
	uint8_t *sets_for_caller; /* per function: a caller reads flags that it set */
	uint32_t *setters; /* functions that are to be read again, since they have that mark */
	uint32_t nr_setters, max_setters;
	bool pointers_set; /* so do all functions that a pointer may lead to */
	bool no_memory;
	struct me_flags *out;
};

static bool is_call(const struct mp_insn *insn)
{
	return insn->kind == MP_INSN_CALL || insn->kind == MP_INSN_ICALL;
}

/* A call through a cell that only the loader writes leads where the cell does. Return: 0: not known. */
static uint64_t called_by(const struct finder *f, const struct mp_insn *call)
{
	const struct mp_elf *elf = f->cfg->elf;
	const struct mp_reloc *cell;

	if (call->kind == MP_INSN_CALL)
		return call->target;
	cell = call->rip_relative && mp_elf_is_readonly(elf, call->target)
		       ? mp_elf_dyn_reloc_at(elf, call->target)
		       : NULL;
	return cell && cell->type == R_X86_64_RELATIVE ? (uint64_t)cell->addend : 0;
}

/* Code behind a call reads flags that the callee left. */
static struct effect effect_of(struct finder *f, const uint8_t *bytes, size_t avail,
			       const struct mp_insn *insn)
{
	ZydisDecodedInstruction z;

	uint64_t target = is_call(insn) ? called_by(f, insn) : 0;

	if (target) {
		struct me_flags_use use = me_flags_use_at(&f->code, target);

		return (struct effect){.reads = use.reads,
				       .writes = f->status & (uint16_t)~use.passes};
	}
	if (insn->kind == MP_INSN_ICALL)
		return (struct effect){.reads = f->code.by_pointer, .writes = f->status};
	if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&f->code.decoder, NULL, bytes, avail, &z)))
		return (struct effect){.reads = f->status};
	return (struct effect){.reads = z.cpu_flags ? z.cpu_flags->tested & f->status : 0,
			       .writes = me_flags_written(&f->code, &z)};
}

/* ---- functions that set flags for their callers ---------------------------------------------- */

static void mark_function(struct finder *f, uint32_t func)
{
	if (f->sets_for_caller[func] || f->no_memory)
		return;
	f->sets_for_caller[func] = 1;
	f->no_memory = mp_push(f->setters, f->nr_setters, f->max_setters, func);
}

/* Code may return from @at to code that reads flags. 0: from anywhere. */
static void mark_place(void *ctx, uint64_t at)
{
	struct finder *f = ctx;
	uint32_t func = at ? mp_cfg_func_at(f->cfg, at) : MP_NONE;

	if (func != MP_NONE) {
		mark_function(f, func);
		return;
	}
	if (f->pointers_set)
		return;
	f->pointers_set = true;
	for (uint32_t i = 0; i < f->cfg->nr_funcs; i++)
		if (me_flags_has_pointer(&f->cfg->funcs[i]))
			mark_function(f, i);
}

/* Flags are read behind @call: mark the functions that left them. */
static void mark_setter(struct finder *f, const struct mp_insn *call)
{
	uint64_t target = called_by(f, call);
	uint32_t callee = target ? mp_cfg_func_at(f->cfg, target) : MP_NONE;

	/* Code behind a call that does not return belongs to others. */
	if (callee != MP_NONE && f->cfg->funcs[callee].flags & MP_FUNC_NORETURN)
		return;
	if (target)
		me_flags_each_return(&f->code, target, mark_place, f);
	else
		mark_place(f, 0);
}

/* Flags are read behind calls in code of no block: such code is not understood, so that any byte may begin a call. */
static void mark_outside(struct finder *f)
{
	const struct mp_cfg *cfg = f->cfg;
	const struct mp_elf *elf = cfg->elf;

	for (uint32_t s = 0; s < elf->nr_sections; s++) {
		const struct mp_section *sec = &elf->sections[s];
		const uint8_t *bytes;

		if (!(sec->flags & SHF_ALLOC) || !(sec->flags & SHF_EXECINSTR) ||
		    sec->type == SHT_NOBITS || sec->size < 5)
			continue;
		bytes = mp_elf_bytes(elf, sec->vaddr, sec->size);
		for (uint64_t off = 0; bytes && off + 5 <= sec->size; off++) {
			struct mp_insn insn;
			uint32_t func;

			if (bytes[off] != 0xe8 ||
			    mp_insn_decode(bytes + off, 5, sec->vaddr + off, &insn) ||
			    mp_cfg_block_at(cfg, insn.vaddr) != MP_NONE)
				continue;
			func = mp_cfg_func_at(cfg, insn.target);
			if (func != MP_NONE &&
			    (cfg->funcs[func].vaddr == insn.target ||
			     mp_cfg_block_starting(cfg, insn.target) != MP_NONE) &&
			    me_flags_use_at(&f->code, insn.vaddr + 5).reads)
				mark_function(f, func);
		}
	}
}

/* The code in @bytes, of the block, holds calls whose flags are read behind it. */
static void mark_calls(struct finder *f, const struct mp_block *block, const uint8_t *bytes,
		       uint32_t from, uint32_t to)
{
	struct mp_insn insn;

	for (uint32_t off = from; off < to; off += insn.len) {
		if (mp_insn_decode(bytes + off, to - off, block->vaddr + off, &insn))
			return;
		if (is_call(&insn))
			mark_setter(f, &insn);
	}
}

/* The effect of a block. @after: flags that are read behind it. @mark: mark functions whose flags are read. */
static struct effect read_block(struct finder *f, const struct mp_block *block, uint16_t after,
				bool mark)
{
	const uint8_t *bytes = mp_elf_bytes(f->cfg->elf, block->vaddr, block->size);
	struct effect sum = {0};
	struct mp_insn insn;
	uint16_t from_call = 0; /* flags that calls left, from the one at @first on */
	uint32_t first = 0;

	if (!bytes)
		return (struct effect){.reads = f->status};
	for (uint32_t off = 0; off < block->size; off += insn.len) {
		struct effect now;

		if (mp_insn_decode(bytes + off, block->size - off, block->vaddr + off, &insn))
			return (struct effect){.reads = f->status, .behind = sum.behind};
		now = effect_of(f, bytes + off, block->size - off, &insn);
		sum.behind |= (now.reads & from_call) != 0;
		if (mark && now.reads & from_call)
			mark_calls(f, block, bytes, first, off);
		sum.reads |= now.reads & ~sum.writes;
		sum.writes |= now.writes;
		from_call &= ~now.writes;
		if (is_call(&insn)) {
			first = from_call ? first : off;
			from_call = f->status;
		}
	}
	if (mark && after & from_call)
		mark_calls(f, block, bytes, first, block->size);
	sum.left = from_call;
	return sum;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Does a direct branch at the block's end leave the function? */
static bool leaves(const struct mp_block *block)
{
	return block->term == MP_TERM_TAIL || (block->term == MP_TERM_COND && block->nr_edges < 2);
}

/* Flags that are read after the block: by its successors, by code that it jumps to, or by a caller. */
static uint16_t live_after(struct finder *f, const struct mp_block *block)
{
	const struct mp_cfg *cfg = f->cfg;
	bool sets = f->sets_for_caller[block->func];
	uint16_t after = 0;

	for (uint32_t e = 0; e < block->nr_edges; e++)
		after |= f->out->live[cfg->edges[block->first_edge + e].to];
	if (leaves(block)) {
		struct me_flags_use use = me_flags_use_at(&f->code, mp_block_target(block));

		after |= use.reads | (sets ? use.passes : 0);
	} else if (block->term == MP_TERM_INDIRECT_TAIL || block->term == MP_TERM_UNRESOLVED) {
		after |= f->code.by_pointer;
	} else if (block->term == MP_TERM_RET && sets) {
		after |= f->status;
	}
	return after;
}

/* Go backwards until nothing changes: most successors have higher numbers. */
static void spread(struct finder *f, const struct mp_func *func)
{
	const struct mp_cfg *cfg = f->cfg;
	uint16_t *live = f->out->live;
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = func->nr_blocks; i-- > 0;) {
			uint32_t b = func->first_block + i;
			const struct mp_block *block = &cfg->blocks[b];
			uint16_t after, now;

			after = live_after(f, block);
			now = f->effects[b].reads | (after & ~f->effects[b].writes);
			changed |= now != live[b];
			live[b] = now;
		}
	}
}

/* Where the function leads its control to, flags are set for its caller. */
static void mark_successor(struct finder *f, const struct mp_block *block)
{
	if (leaves(block))
		me_flags_each_return(&f->code, mp_block_target(block), mark_place, f);
	else if (block->term == MP_TERM_INDIRECT_TAIL || block->term == MP_TERM_UNRESOLVED)
		mark_place(f, 0);
}

static void read_function(struct finder *f, uint32_t index)
{
	const struct mp_cfg *cfg = f->cfg;
	const struct mp_func *func = &cfg->funcs[index];
	uint32_t end = func->first_block + func->nr_blocks;

	for (uint32_t b = func->first_block; b < end; b++) {
		f->out->live[b] = 0;
		f->effects[b] = read_block(f, &cfg->blocks[b], 0, false);
	}
	spread(f, func);
	for (uint32_t b = func->first_block; b < end; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		uint16_t after = live_after(f, block);

		/* Almost no block reads what a call left, so few are read again. */
		if (f->effects[b].behind || after & f->effects[b].left)
			read_block(f, block, after, true);
		if (f->sets_for_caller[index])
			mark_successor(f, block);
	}
}

/* The results, once all functions were read. */
static void finish(struct finder *f, const uint8_t *wanted)
{
	const struct mp_cfg *cfg = f->cfg;

	for (uint32_t i = 0; i < cfg->nr_funcs; i++) {
		const struct mp_func *func = &cfg->funcs[i];
		uint32_t entry = mp_cfg_block_starting(cfg, func->vaddr);

		for (uint32_t b = 0; b < func->nr_blocks && !wanted[i]; b++)
			f->out->live[func->first_block + b] = f->status;
		f->out->shared[i] = f->sets_for_caller[i] ||
				    (entry != MP_NONE && func->nr_blocks && f->out->live[entry]);
	}
}

int me_flags_find(const struct mp_cfg *cfg, const uint8_t *wanted, bool carry, struct me_flags *out,
		  struct mp_err *err)
{
	struct finder f = {
		.cfg = cfg, .status = STATUS | (carry ? ZYDIS_CPUFLAG_CF : 0), .out = out};
	int rc = me_flags_code_init(&f.code, cfg, f.status);

	out->live = calloc((size_t)cfg->nr_blocks + 1, sizeof(*out->live));
	out->shared = calloc((size_t)cfg->nr_funcs + 1, 1);
	f.effects = calloc((size_t)cfg->nr_blocks + 1, sizeof(*f.effects));
	f.sets_for_caller = calloc((size_t)cfg->nr_funcs + 1, 1);
	if (!out->live || !out->shared || !f.effects || !f.sets_for_caller)
		rc = -ENOMEM;
	for (uint32_t i = 0; !rc && i < cfg->nr_funcs; i++)
		read_function(&f, i);
	if (!rc)
		mark_outside(&f);
	/* Each function is marked once, so that it is read twice at most. */
	for (uint32_t i = 0; !rc && i < f.nr_setters; i++)
		read_function(&f, f.setters[i]);
	if (!rc && f.no_memory)
		rc = -ENOMEM;
	if (!rc)
		finish(&f, wanted);
	free(f.effects);
	free(f.sets_for_caller);
	free(f.setters);
	me_flags_code_fini(&f.code);
	if (!rc)
		return 0;
	me_flags_fini(out);
	return mp_err_code(err, -rc);
}

void me_flags_fini(struct me_flags *flags)
{
	free(flags->live);
	free(flags->shared);
	*flags = (struct me_flags){0};
}
