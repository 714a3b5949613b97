// SPDX-License-Identifier: Apache-2.0
/*
 * free_registers - computes liveness of the general registers, backwards over each function's
 * blocks; and the registers that functions change, take and leave, over the call graph. Decides
 * nothing about numbers. Called by number.
 */
#include "editor/evidence/free_registers.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>

#include "libprof/infer/counts.h"
#include "libprof/insn/insn.h"

#define BIT(n)	     (1u << (n))
#define ALL	     0xffffu
#define CALLEE_SAVED ME_CALLEE_SAVED_REGISTERS
#define CALLER_SAVED (ALL & ~CALLEE_SAVED)
/* rdi, rsi, rdx, rcx, r8, r9; rax with the number of vectors, r10 as the static chain. */
#define ARGUMENTS     (BIT(7) | BIT(6) | BIT(2) | BIT(1) | BIT(8) | BIT(9) | BIT(0) | BIT(10))
#define RESULTS	      (BIT(0) | BIT(2))
#define SYSCALL_READS (BIT(0) | BIT(7) | BIT(6) | BIT(2) | BIT(10) | BIT(8) | BIT(9))
#define NEVER	      (BIT(4) | BIT(5)) /* rsp; rbp, which profilers use to walk stacks */

/* Effect of a block on registers, without the call that it may end with. */
struct effect {
	uint16_t reads;	 /* read before they are overwritten */
	uint16_t kills;	 /* overwritten in every case */
	uint16_t writes; /* written, perhaps in part */
	uint8_t call;	 /* enum call */
	uint32_t callee; /* of a direct call; MP_NONE: unknown */
};

enum call {
	NO_CALL,
	CALL,
	CALL_FOR_TLS, /* may be a TLS descriptor's call: changes only rax */
};

struct finder {
	const struct mp_cfg *cfg;
	ZydisDecoder decoder;
	struct effect *effects; /* per block */
	uint16_t *live;		/* per block: live at its start */
	uint16_t *given;	/* per block: set on all paths to it, here or by all callers */
	/* Per function: */
	uint16_t *changes; /* changed by it or its callees */
	uint16_t *leaves;  /* set at some return */
	uint16_t *passes;  /* set by all its callers */
	uint16_t *takes;   /* of @passes: those that it reads */
	uint16_t *results; /* of @leaves: those that a caller reads */
	uint16_t pads;	   /* current function: read by its landing pads */
	uint16_t assumed;  /* what callees are assumed to read, by the ABI */
};

static bool is_known(const struct mp_func *func)
{
	return func->nr_blocks && func->problem == MP_PROBLEM_NONE;
}

static uint16_t mask_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return 0;
	return BIT(ZydisRegisterGetId(whole));
}

/* `xor %eax, %eax` does not use the old value. */
static bool is_zeroing(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o)
{
	return (z->mnemonic == ZYDIS_MNEMONIC_XOR || z->mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       o[1].type == ZYDIS_OPERAND_TYPE_REGISTER && o[0].reg.value == o[1].reg.value &&
	       z->operand_width >= 32;
}

static void add_operand(struct effect *e, const ZydisDecodedOperand *o)
{
	uint16_t mask;

	if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		e->reads |= mask_of(o->mem.base) | mask_of(o->mem.index);
		return;
	}
	if (o->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	mask = mask_of(o->reg.value);
	if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		e->reads |= mask;
	/* Writing 32 bits clears the upper half; writing 8 or 16 bits keeps the rest. */
	if (!(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	e->writes |= mask;
	if (o->actions & ZYDIS_OPERAND_ACTION_WRITE && o->size >= 32)
		e->kills |= mask;
	else
		e->reads |= mask;
}

static struct effect effect_of_operands(const struct finder *f, const uint8_t *bytes, size_t avail)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	struct effect e = {0};

	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&f->decoder, bytes, avail, &z, operands)))
		return (struct effect){.reads = ALL, .writes = ALL};
	for (uint8_t i = 0; i < z.operand_count; i++)
		add_operand(&e, &operands[i]);
	if (is_zeroing(&z, operands))
		e.reads &= ~mask_of(operands[0].reg.value);
	return e;
}

/* The function that a call or jump to @target enters; MP_NONE: outside of this file, it follows
 * the ABI. */
static uint32_t entered(const struct mp_cfg *cfg, uint64_t target)
{
	uint32_t func = mp_cfg_func_at(cfg, target);

	return func == MP_NONE || cfg->funcs[func].problem == MP_PROBLEM_SPECIAL ? MP_NONE : func;
}

/* Control that enters a function in its middle may pass anything. */
static bool enters_middle(const struct mp_cfg *cfg, uint64_t target)
{
	uint32_t func = entered(cfg, target);

	return func != MP_NONE && cfg->funcs[func].vaddr != target;
}

static struct effect effect_of(const struct finder *f, const uint8_t *bytes, size_t avail,
			       const struct mp_insn *insn)
{
	struct effect e = {0};

	switch (insn->kind) {
	case MP_INSN_CALL:
		return (struct effect){.reads = enters_middle(f->cfg, insn->target) ? ALL : 0,
				       .call = CALL,
				       .callee = entered(f->cfg, insn->target)};
	case MP_INSN_ICALL:
		e = effect_of_operands(f, bytes, avail);
		e.call = insn->len == 2 && bytes[1] == 0x10 ? CALL_FOR_TLS : CALL; /* *(%rax) */
		e.callee = MP_NONE;
		return e;
	case MP_INSN_SYSCALL:
		return (struct effect){.reads = SYSCALL_READS, .kills = BIT(0), .writes = ALL};
	case MP_INSN_RET: return e;
	default: return effect_of_operands(f, bytes, avail);
	}
}

static struct effect effect_of_block(const struct finder *f, const struct mp_block *block)
{
	const uint8_t *bytes = mp_elf_bytes(f->cfg->elf, block->vaddr, block->size);
	struct effect sum = {0};
	struct mp_insn insn;

	for (uint32_t off = 0; off < block->size; off += insn.len) {
		struct effect now;

		if (!bytes || sum.call ||
		    mp_insn_decode(bytes + off, block->size - off, block->vaddr + off, &insn))
			return (struct effect){.reads = ALL, .writes = ALL};
		now = effect_of(f, bytes + off, block->size - off, &insn);
		sum.reads |= now.reads & ~sum.kills;
		sum.kills |= now.kills;
		sum.writes |= now.writes;
		sum.call = now.call;
		sum.callee = now.callee;
	}
	return sum;
}

/* ---- what callees do ------------------------------------------------------------------------ */

/* Functions outside of this file, and unknown ones, follow the ABI. */
static uint16_t changed_by(const struct finder *f, uint32_t callee)
{
	return callee == MP_NONE ? CALLER_SAVED : f->changes[callee];
}

static uint16_t taken_by(const struct finder *f, uint32_t callee)
{
	return f->assumed | (callee == MP_NONE ? 0 : f->takes[callee]);
}

/* Does the jump at the block's end leave the function? *@callee: the function that it enters. */
static bool is_tail(const struct mp_block *block, uint32_t *callee, const struct mp_cfg *cfg)
{
	if (block->term != MP_TERM_TAIL && (block->term != MP_TERM_COND || block->nr_edges == 2))
		return false;
	*callee = entered(cfg, mp_block_target(block));
	return true;
}

static uint16_t changed_at_end(const struct finder *f, uint32_t b)
{
	const struct mp_block *block = &f->cfg->blocks[b];
	const struct effect *e = &f->effects[b];
	uint32_t callee;

	if (is_tail(block, &callee, f->cfg))
		return changed_by(f, callee);
	if (e->call == CALL)
		return changed_by(f, e->callee);
	if (e->call == CALL_FOR_TLS)
		return RESULTS;
	return block->term == MP_TERM_INDIRECT_TAIL ? CALLER_SAVED : 0;
}

/* Repeats @find, which says whether anything changed, for all functions until nothing does. */
static void settle(struct finder *f, bool (*find)(struct finder *f, uint32_t func))
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < f->cfg->nr_funcs; i++)
			if (is_known(&f->cfg->funcs[i]))
				changed |= find(f, i);
	}
}

/* Add the changes of its own blocks and of its callees. */
static bool find_changes(struct finder *f, uint32_t index)
{
	const struct mp_func *func = &f->cfg->funcs[index];
	uint16_t was = f->changes[index];

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		f->changes[index] |= (f->effects[b].writes | changed_at_end(f, b)) & CALLER_SAVED;
	return was != f->changes[index];
}

static uint16_t given_behind(const struct finder *f, uint32_t b)
{
	const struct effect *e = &f->effects[b];
	uint16_t given = f->given[b] | e->writes;

	if (e->call)
		given &= ~changed_at_end(f, b);
	if (e->call && e->callee != MP_NONE)
		given |= f->leaves[e->callee];
	return given;
}

/* A function that may be called from anywhere follows the ABI. */
static bool may_be_called_from_anywhere(const struct mp_func *func)
{
	return func->flags & (MP_FUNC_ADDRESS_TAKEN | MP_FUNC_EXPORTED | MP_FUNC_POINTED);
}

static bool spread_given(struct finder *f, uint32_t b)
{
	const struct mp_block *block = &f->cfg->blocks[b];
	uint16_t given = given_behind(f, b);
	bool changed = false;

	for (uint32_t i = block->first_edge; i < block->first_edge + block->nr_edges; i++) {
		uint32_t to = f->cfg->edges[i].to;

		changed |= (f->given[to] & ~given) != 0;
		f->given[to] &= given;
	}
	return changed;
}

/* Registers that the function sets for its callees, and leaves set. At first all count as set;
 * rounds remove some. */
static bool find_given(struct finder *f, uint32_t index)
{
	const struct mp_cfg *cfg = f->cfg;
	const struct mp_func *func = &cfg->funcs[index];
	uint32_t end = func->first_block + func->nr_blocks;
	uint16_t leaves = 0;
	bool changed = true, any = false;

	for (uint32_t b = func->first_block; b < end; b++)
		f->given[b] = mp_block_enters(&cfg->blocks[b]) ? f->passes[index] : ALL;
	while (changed) {
		changed = false;
		for (uint32_t b = func->first_block; b < end; b++)
			changed |= spread_given(f, b);
	}
	for (uint32_t b = func->first_block; b < end; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		uint32_t callee = MP_NONE;
		uint16_t at_call = f->given[b] | f->effects[b].writes;

		if (is_tail(block, &callee, cfg))
			leaves |= callee == MP_NONE ? 0 : f->leaves[callee];
		else if (block->term == MP_TERM_RET)
			leaves |= given_behind(f, b);
		if (f->effects[b].call)
			callee = f->effects[b].callee;
		if (callee == MP_NONE)
			continue;
		any |= (f->passes[callee] & ~at_call) != 0;
		f->passes[callee] &= at_call;
	}
	leaves &= CALLER_SAVED & ~RESULTS;
	any |= (f->leaves[index] & ~leaves) != 0;
	f->leaves[index] &= leaves;
	return any;
}

/* ---- liveness ------------------------------------------------------------------------------- */

/* Registers read behind block @b. */
static uint16_t read_behind(const struct finder *f, uint32_t b)
{
	const struct mp_cfg *cfg = f->cfg;
	const struct mp_block *block = &cfg->blocks[b];
	uint16_t behind = 0;
	uint32_t callee;

	for (uint32_t e = 0; e < block->nr_edges; e++)
		behind |= f->live[cfg->edges[block->first_edge + e].to];
	if (is_tail(block, &callee, cfg))
		behind |= enters_middle(cfg, mp_block_target(block))
				  ? ALL
				  : taken_by(f, callee) | CALLEE_SAVED | f->results[block->func];
	switch (block->term) {
	case MP_TERM_RET: behind |= RESULTS | CALLEE_SAVED | f->results[block->func]; break;
	/* An exception may leave from here to a caller that relies on registers which were not
	 * saved. */
	case MP_TERM_NORETURN: behind |= CALLEE_SAVED; break;
	case MP_TERM_INDIRECT_TAIL: behind |= f->assumed | CALLEE_SAVED; break;
	case MP_TERM_UNRESOLVED: behind = ALL; break;
	case MP_TERM_FALL:
	case MP_TERM_TABLE:
		if (!block->nr_edges)
			behind = ALL;
		break;
	default: break;
	}
	return behind;
}

/* Calls count as overwriting nothing: not all do, and callers that rely on that read the
 * register. */
static uint16_t live_at(const struct finder *f, uint32_t b)
{
	const struct effect *e = &f->effects[b];
	uint16_t behind = read_behind(f, b);

	if (e->call)
		behind |= taken_by(f, e->callee) | f->pads;
	return e->reads | (behind & ~e->kills);
}

/* Go backwards until nothing changes; most successors lie behind. Any call may lead to a
 * landing pad, with the callee-saved registers as they are at the call. */
static void find_live(struct finder *f, const struct mp_func *func)
{
	uint32_t end = func->first_block + func->nr_blocks;
	bool changed = true;

	f->pads = 0;
	for (uint32_t b = func->first_block; b < end; b++)
		f->live[b] = 0;
	while (changed) {
		changed = false;
		for (uint32_t b = end; b-- > func->first_block;) {
			uint16_t live = live_at(f, b);

			changed |= live != f->live[b];
			f->live[b] = live;
			if (f->cfg->blocks[b].flags & MP_BLOCK_LANDING_PAD) {
				changed |= (live & CALLEE_SAVED & ~f->pads) != 0;
				f->pads |= live & CALLEE_SAVED;
			}
		}
	}
}

/* Find registers passed in addition to the ABI's, by reads. */
static bool find_passed(struct finder *f, uint32_t index)
{
	const struct mp_cfg *cfg = f->cfg;
	const struct mp_func *func = &cfg->funcs[index];
	uint32_t entry = mp_cfg_block_starting(cfg, func->vaddr);
	bool any = false;

	find_live(f, func);
	if (entry != MP_NONE && !may_be_called_from_anywhere(func)) {
		uint16_t takes = f->live[entry] & f->passes[index];

		any |= (takes & ~f->takes[index]) != 0;
		f->takes[index] |= takes;
	}
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		uint16_t read = read_behind(f, b) & CALLER_SAVED & ~RESULTS;
		uint32_t callee = MP_NONE;

		if (f->effects[b].call)
			callee = f->effects[b].callee;
		else if (is_tail(&cfg->blocks[b], &callee, cfg))
			read = f->results[index];
		if (callee == MP_NONE)
			continue;
		read &= f->leaves[callee];
		any |= (read & ~f->results[callee]) != 0;
		f->results[callee] |= read;
	}
	return any;
}

/* Sets in @leads_out the blocks from which control may leave the function. */
static void find_ways_out(const struct finder *f, const struct mp_func *func, uint8_t *leads_out)
{
	const struct mp_cfg *cfg = f->cfg;
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t b = func->first_block + func->nr_blocks; b-- > func->first_block;) {
			const struct mp_block *block = &cfg->blocks[b];
			bool leads = mp_block_leaves(cfg, block) || !block->nr_edges;

			for (uint32_t e = 0; !leads && e < block->nr_edges; e++)
				leads = leads_out[cfg->edges[block->first_edge + e].to];
			changed |= leads && !leads_out[b];
			leads_out[b] = leads;
		}
	}
}

/* In an endless loop callee-saved registers are not saved, and no return shows that callers
 * need them. */
static void find_free(struct finder *f, const uint8_t *wanted, uint8_t *leads_out,
		      struct me_free_registers *out)
{
	f->assumed = ARGUMENTS;
	for (uint32_t i = 0; i < f->cfg->nr_funcs; i++) {
		const struct mp_func *func = &f->cfg->funcs[i];
		uint16_t usable = (f->changes[i] | CALLEE_SAVED) & ~NEVER;

		if (!wanted[i] || !is_known(func))
			continue;
		find_live(f, func);
		find_ways_out(f, func, leads_out);
		for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
			out->dead[b] = (leads_out[b] ? usable : usable & CALLER_SAVED) &
				       ~f->live[b];
			out->free[b] = out->dead[b] & ~(f->effects[b].reads | f->effects[b].writes);
		}
	}
}

/* A function that is not understood may read any register. */
static void assume_worst_of_unknown(struct finder *f)
{
	for (uint32_t i = 0; i < f->cfg->nr_funcs; i++) {
		const struct mp_func *func = &f->cfg->funcs[i];

		f->takes[i] = is_known(func) ? 0 : ALL;
		f->leaves[i] = is_known(func) ? CALLER_SAVED & ~RESULTS : 0;
		f->passes[i] = may_be_called_from_anywhere(func) ? 0 : ALL;
	}
}

/* A caller that is not understood may read every register that its callee leaves. */
static void note_unknown_callers(struct finder *f)
{
	const struct mp_cfg *cfg = f->cfg;

	for (uint32_t i = 0; i < cfg->nr_calls; i++) {
		const struct mp_func *caller = &cfg->funcs[cfg->blocks[cfg->calls[i].block].func];
		uint32_t callee = cfg->calls[i].callee;

		if (callee != MP_NONE && !is_known(caller) && caller->problem != MP_PROBLEM_SPECIAL)
			f->results[callee] = f->leaves[callee];
	}
}

static bool allocate(struct finder *f)
{
	size_t blocks = (size_t)f->cfg->nr_blocks + 1, funcs = (size_t)f->cfg->nr_funcs + 1;

	f->effects = calloc(blocks, sizeof(*f->effects));
	f->live = calloc(blocks, sizeof(*f->live));
	f->given = calloc(blocks, sizeof(*f->given));
	f->changes = calloc(funcs, sizeof(*f->changes));
	f->leaves = calloc(funcs, sizeof(*f->leaves));
	f->passes = calloc(funcs, sizeof(*f->passes));
	f->takes = calloc(funcs, sizeof(*f->takes));
	f->results = calloc(funcs, sizeof(*f->results));
	return f->effects && f->live && f->given && f->changes && f->leaves && f->passes &&
	       f->takes && f->results;
}

static void release(struct finder *f)
{
	free(f->effects);
	free(f->live);
	free(f->given);
	free(f->changes);
	free(f->leaves);
	free(f->passes);
	free(f->takes);
	free(f->results);
}

int me_free_registers_find(const struct mp_cfg *cfg, const uint8_t *wanted,
			   struct me_free_registers *out, struct mp_err *err)
{
	struct finder f = {.cfg = cfg};
	uint8_t *leads_out = calloc((size_t)cfg->nr_blocks + 1, 1);

	ZydisDecoderInit(&f.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	out->free = calloc((size_t)cfg->nr_blocks + 1, sizeof(*out->free));
	out->dead = calloc((size_t)cfg->nr_blocks + 1, sizeof(*out->dead));
	if (!allocate(&f) || !out->free || !out->dead || !leads_out) {
		free(leads_out);
		release(&f);
		me_free_registers_fini(out);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		f.effects[b] = effect_of_block(&f, &cfg->blocks[b]);
	assume_worst_of_unknown(&f);
	settle(&f, find_changes);
	settle(&f, find_given);
	note_unknown_callers(&f);
	settle(&f, find_passed);
	find_free(&f, wanted, leads_out, out);
	free(leads_out);
	release(&f);
	return 0;
}

void me_free_registers_fini(struct me_free_registers *registers)
{
	free(registers->free);
	free(registers->dead);
	*registers = (struct me_free_registers){0};
}
