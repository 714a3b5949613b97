// SPDX-License-Identifier: Apache-2.0
/*
 * registers - liveness of the general registers, backwards over each function's blocks, and what
 * functions change, over the call graph. Decides nothing about numbers. Called by number.
 */
#include "editor/registers.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>

#include "libprof/counts.h"
#include "libprof/insn.h"

#define BIT(n)	     (1u << (n))
#define ALL	     0xffffu
#define CALLEE_SAVED ME_REGISTERS_CALLEE_SAVED
#define CALLER_SAVED (ALL & ~CALLEE_SAVED)
/* rdi, rsi, rdx, rcx, r8, r9; rax says how many vectors, r10 is the static chain. */
#define ARGUMENTS     (BIT(7) | BIT(6) | BIT(2) | BIT(1) | BIT(8) | BIT(9) | BIT(0) | BIT(10))
#define RESULTS	      (BIT(0) | BIT(2))
#define SYSCALL_READS (BIT(0) | BIT(7) | BIT(6) | BIT(2) | BIT(10) | BIT(8) | BIT(9))
#define NEVER	      (BIT(4) | BIT(5)) /* rsp; rbp, by which profilers walk stacks */

/* What one instruction, or a whole block, does with them. */
struct effect {
	uint16_t reads;	  /* before it overwrites them */
	uint16_t kills;	  /* overwrites whatever the operands are */
	uint16_t touches; /* reads or writes, callees apart */
	uint16_t sets;	  /* of one instruction: by an operand that says so */
};

struct finder {
	const struct mp_cfg *cfg;
	ZydisDecoder decoder;
	struct effect *effects; /* per block */
	uint16_t *live;		/* per block: at its start */
	uint16_t *changes;	/* per function: with those it calls, at least */
	uint16_t *passes;  /* per function: what a caller sets and then nobody but it may read */
	uint16_t *takes;   /* per function: of these, what it reads */
	uint16_t *leaves;  /* per function: what it sets and then nobody of it reads */
	uint16_t *results; /* per function: of these, what a caller reads */
	uint16_t *unread;  /* scratch, per block: set before its end and not read since */
	uint16_t pads;	   /* of the function at hand: what its landing pads read */
	uint16_t assumed;  /* what callees are taken to read, as the ABI allows */
	bool noting;	   /* what is read behind calls is looked at */
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

/* `xor %eax, %eax` asks nobody what was in it. */
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
	e->touches |= mask;
	if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		e->reads |= mask;
	/* The upper half of a register goes with the lower, but a byte leaves the rest. */
	if (!(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	if (o->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT)
		e->sets |= mask;
	if (o->actions & ZYDIS_OPERAND_ACTION_WRITE && o->size >= 32)
		e->kills |= mask;
	else
		e->reads |= mask;
}

static struct effect effect_of_insn(const struct finder *f, const uint8_t *bytes, size_t avail)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	struct effect e = {0};

	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&f->decoder, bytes, avail, &z, operands)))
		return (struct effect){.reads = ALL, .touches = ALL};
	for (uint8_t i = 0; i < z.operand_count; i++)
		add_operand(&e, &operands[i]);
	if (is_zeroing(&z, operands))
		e.reads &= ~mask_of(operands[0].reg.value);
	e.touches |= e.reads;
	return e;
}

static uint32_t callee_of(const struct finder *f, const struct mp_insn *call)
{
	return call->kind == MP_INSN_CALL ? mp_cfg_func_at(f->cfg, call->target) : MP_NONE;
}

/* What is not of this file, or who knows what, follows the ABI. */
static uint16_t changed_by(const struct finder *f, uint32_t callee)
{
	if (callee == MP_NONE || f->cfg->funcs[callee].problem == MP_PROBLEM_SPECIAL)
		return CALLER_SAVED;
	return f->changes[callee];
}

/* `call *(%rax)` may ask where a thread's variable is: that changes nothing but rax. */
static bool asks_for_tls(const uint8_t *bytes, const struct mp_insn *insn)
{
	return insn->kind == MP_INSN_ICALL && insn->len == 2 && bytes[0] == 0xff &&
	       bytes[1] == 0x10;
}

static uint16_t taken_by(const struct finder *f, uint32_t callee)
{
	return f->assumed | (callee == MP_NONE ? 0 : f->takes[callee]);
}

static struct effect effect_of(const struct finder *f, const uint8_t *bytes, size_t avail,
			       const struct mp_insn *insn)
{
	switch (insn->kind) {
	case MP_INSN_CALL:
	case MP_INSN_ICALL: {
		struct effect e = {0};
		uint32_t callee = callee_of(f, insn);

		if (insn->kind == MP_INSN_ICALL)
			e = effect_of_insn(f, bytes, avail);
		e.reads |= taken_by(f, callee) | f->pads;
		return e;
	}
	case MP_INSN_SYSCALL:
		return (struct effect){.reads = SYSCALL_READS, .kills = BIT(0), .touches = ALL};
	case MP_INSN_RET: return (struct effect){.reads = RESULTS | CALLEE_SAVED};
	default: return effect_of_insn(f, bytes, avail);
	}
}

static bool is_call(const struct mp_insn *insn)
{
	return insn->kind == MP_INSN_CALL || insn->kind == MP_INSN_ICALL;
}

/* What a caller reads that a call left it: a result, or what the callee does not change. */
static void note_result(struct finder *f, const struct mp_insn *call, uint16_t read)
{
	uint32_t callee = callee_of(f, call);

	read &= CALLER_SAVED & ~RESULTS;
	if (callee != MP_NONE)
		f->results[callee] |= read & f->leaves[callee];
}

/* Over the instructions of the block. @wanted: registers that are read behind it. */
static struct effect read_block(struct finder *f, const struct mp_block *block, uint16_t wanted)
{
	const uint8_t *bytes = mp_elf_bytes(f->cfg->elf, block->vaddr, block->size);
	struct effect sum = {0};
	struct mp_insn insn, call = {0};
	uint16_t from_call = 0; /* not overwritten since */

	for (uint32_t off = 0; off < block->size; off += insn.len) {
		struct effect now;

		if (!bytes ||
		    mp_insn_decode(bytes + off, block->size - off, block->vaddr + off, &insn))
			return (struct effect){.reads = ALL, .touches = ALL};
		now = effect_of(f, bytes + off, block->size - off, &insn);
		if (now.reads & from_call && f->noting)
			note_result(f, &call, now.reads & from_call);
		sum.reads |= now.reads & ~sum.kills;
		sum.kills |= now.kills;
		sum.touches |= now.touches;
		from_call &= ~now.kills;
		if (is_call(&insn)) {
			call = insn;
			from_call = ALL;
		}
	}
	if (wanted & from_call && f->noting)
		note_result(f, &call, wanted & from_call);
	return sum;
}

/* By whoever comes next. */
static uint16_t read_behind(const struct finder *f, const struct mp_block *block)
{
	const struct mp_cfg *cfg = f->cfg;
	uint16_t behind = 0;

	for (uint32_t e = 0; e < block->nr_edges; e++)
		behind |= f->live[cfg->edges[block->first_edge + e].to];
	switch (block->term) {
	case MP_TERM_RET: behind |= RESULTS | CALLEE_SAVED | f->results[block->func]; break;
	case MP_TERM_COND:
		if (block->nr_edges == 2)
			break;
		/* fall through */
	case MP_TERM_TAIL:
		behind |= taken_by(f, mp_cfg_func_at(cfg, block->term_target)) | CALLEE_SAVED;
		break;
	case MP_TERM_FALL:
		if (!block->nr_edges)
			behind = ALL;
		break;
	case MP_TERM_INDIRECT_TAIL: behind |= f->assumed | CALLEE_SAVED; break;
	case MP_TERM_UNRESOLVED: behind = ALL; break;
	case MP_TERM_TABLE:
		if (!block->nr_edges)
			behind = ALL;
		break;
	default: break;
	}
	return behind;
}

/* From the ends backwards until nothing changes; most successors lie behind. */
static void spread(struct finder *f, const struct mp_func *func)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = func->nr_blocks; i-- > 0;) {
			uint32_t b = func->first_block + i;
			uint16_t behind = read_behind(f, &f->cfg->blocks[b]);
			uint16_t now = f->effects[b].reads | (behind & ~f->effects[b].kills);

			changed |= now != f->live[b];
			f->live[b] = now;
		}
	}
}

/* Landing pads come from any call, with callee-saved registers as they were there. */
static void read_function(struct finder *f, uint32_t index)
{
	const struct mp_cfg *cfg = f->cfg;
	const struct mp_func *func = &cfg->funcs[index];
	uint32_t end = func->first_block + func->nr_blocks;
	uint16_t pads;

	f->pads = 0;
	do {
		pads = f->pads;
		for (uint32_t b = func->first_block; b < end; b++) {
			f->effects[b] = read_block(f, &cfg->blocks[b], 0);
			f->live[b] = 0;
		}
		spread(f, func);
		for (uint32_t b = func->first_block; b < end; b++)
			if (cfg->blocks[b].flags & MP_BLOCK_LANDING_PAD)
				f->pads |= f->live[b] & CALLEE_SAVED;
	} while (pads != f->pads);
	for (uint32_t b = func->first_block; b < end; b++)
		read_block(f, &cfg->blocks[b], read_behind(f, &cfg->blocks[b]));
}

static uint16_t changed_in(const struct finder *f, const struct mp_block *block)
{
	const uint8_t *bytes = mp_elf_bytes(f->cfg->elf, block->vaddr, block->size);
	struct mp_insn insn;
	uint16_t changed = 0;

	for (uint32_t off = 0; off < block->size; off += insn.len) {
		struct effect e;

		if (!bytes ||
		    mp_insn_decode(bytes + off, block->size - off, block->vaddr + off, &insn))
			return 0;
		e = effect_of_insn(f, bytes + off, block->size - off);
		changed |= e.kills | e.sets;
		if (insn.kind == MP_INSN_ICALL && !asks_for_tls(bytes + off, &insn))
			changed |= CALLER_SAVED;
	}
	return changed | (block->term == MP_TERM_INDIRECT_TAIL ? CALLER_SAVED : 0);
}

/* What functions change themselves; then what those change whom they call, and so on. */
static void find_changes(struct finder *f)
{
	const struct mp_cfg *cfg = f->cfg;
	bool changed = true;

	for (uint32_t i = 0; i < cfg->nr_funcs; i++) {
		const struct mp_func *func = &cfg->funcs[i];

		for (uint32_t b = 0; is_known(func) && b < func->nr_blocks; b++)
			f->changes[i] |= changed_in(f, &cfg->blocks[func->first_block + b]) &
					 CALLER_SAVED;
	}
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < cfg->nr_calls; i++) {
			uint32_t func = cfg->blocks[cfg->calls[i].block].func;
			uint16_t now = f->changes[func] | changed_by(f, cfg->calls[i].callee);

			if (!is_known(&cfg->funcs[func]) || now == f->changes[func])
				continue;
			f->changes[func] = now;
			changed = true;
		}
	}
}

/* What the block leaves unread at its end, when @unread was so at its start. */
static uint16_t leave_unread(struct finder *f, const struct mp_block *block, uint16_t unread)
{
	const uint8_t *bytes = mp_elf_bytes(f->cfg->elf, block->vaddr, block->size);
	struct mp_insn insn;

	for (uint32_t off = 0; off < block->size; off += insn.len) {
		struct effect e;
		uint32_t callee;

		if (!bytes ||
		    mp_insn_decode(bytes + off, block->size - off, block->vaddr + off, &insn))
			return 0;
		if (!is_call(&insn)) {
			e = effect_of_insn(f, bytes + off, block->size - off);
			unread = (unread & ~e.reads) | e.sets;
			continue;
		}
		callee = callee_of(f, &insn);
		if (callee == MP_NONE)
			continue;
		if (f->noting)
			f->passes[callee] |= unread;
		unread |= f->leaves[callee];
	}
	return unread;
}

static void pass_on(struct finder *f, const struct mp_block *block, uint16_t unread)
{
	uint32_t callee = mp_cfg_func_at(f->cfg, block->term_target);

	if (callee != MP_NONE)
		f->passes[callee] |= unread;
}

/*
 * No compiler sets a register for nobody, on all ways to a return: who does leaves a result there.
 * On some ways one may: what was computed before it was known whether it is needed.
 */
static uint16_t find_left(struct finder *f, const struct mp_func *func)
{
	const struct mp_cfg *cfg = f->cfg;
	uint16_t left = 0;
	bool changed = true;

	for (uint32_t i = 0; i < func->nr_blocks; i++) {
		const struct mp_block *block = &cfg->blocks[func->first_block + i];

		f->unread[func->first_block + i] = mp_block_enters(block) ? 0 : ALL;
	}
	/* Once more when nothing changes any longer: only then it is known who passes what. */
	while (changed || !f->noting) {
		f->noting = !changed;
		changed = false;
		left = 0;
		for (uint32_t i = 0; i < func->nr_blocks; i++) {
			const struct mp_block *block = &cfg->blocks[func->first_block + i];
			uint16_t now = leave_unread(f, block, f->unread[func->first_block + i]);

			if (block->term == MP_TERM_RET)
				left |= now;
			if (f->noting &&
			    (block->term == MP_TERM_TAIL || block->term == MP_TERM_COND))
				pass_on(f, block, now);
			for (uint32_t e = 0; e < block->nr_edges; e++) {
				uint32_t to = cfg->edges[block->first_edge + e].to;

				changed |= (f->unread[to] & ~now) != 0;
				f->unread[to] &= now;
			}
		}
	}
	f->noting = false;
	return left & CALLER_SAVED & ~RESULTS;
}

static void find_leaves(struct finder *f)
{
	const struct mp_cfg *cfg = f->cfg;
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < cfg->nr_funcs; i++) {
			uint16_t left = is_known(&cfg->funcs[i]) ? find_left(f, &cfg->funcs[i]) : 0;

			changed |= (left & ~f->leaves[i]) != 0;
			f->leaves[i] |= left;
		}
		for (uint32_t i = 0; i < cfg->nr_calls; i++) {
			const struct mp_call *call = &cfg->calls[i];
			uint16_t *leaves = &f->leaves[cfg->blocks[call->block].func];

			if (!call->tail || call->callee == MP_NONE)
				continue;
			changed |= (f->leaves[call->callee] & ~*leaves) != 0;
			*leaves |= f->leaves[call->callee];
		}
	}
}

/* Whom one ends with whose results are read may have left them. */
static bool pass_results(struct finder *f)
{
	const struct mp_cfg *cfg = f->cfg;
	bool changed = true, any = false;

	for (; changed; any |= changed) {
		changed = false;
		for (uint32_t i = 0; i < cfg->nr_calls; i++) {
			const struct mp_call *call = &cfg->calls[i];
			uint16_t more;

			if (call->callee == MP_NONE || !call->tail)
				continue;
			more = f->results[cfg->blocks[call->block].func] & f->leaves[call->callee] &
			       ~f->results[call->callee];
			f->results[call->callee] |= more;
			changed |= more != 0;
		}
	}
	return any;
}

/*
 * What functions take and leave beside what the ABI says, by reads that are seen: one round finds more
 * than it knew, the last one nothing.
 */
static void find_passed(struct finder *f)
{
	const struct mp_cfg *cfg = f->cfg;
	bool changed = true;

	f->noting = true;
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < cfg->nr_funcs; i++) {
			uint32_t entry;

			if (!is_known(&cfg->funcs[i]))
				continue;
			read_function(f, i);
			entry = mp_cfg_block_starting(cfg, cfg->funcs[i].vaddr);
			if (entry == MP_NONE || !(f->live[entry] & f->passes[i] & ~f->takes[i]))
				continue;
			f->takes[i] |= f->live[entry] & f->passes[i];
			changed = true;
		}
		changed |= pass_results(f);
	}
	f->noting = false;
}

static void find_free(struct finder *f, const uint8_t *wanted, uint16_t *out)
{
	const struct mp_cfg *cfg = f->cfg;

	f->assumed = ARGUMENTS;
	for (uint32_t i = 0; i < cfg->nr_funcs; i++) {
		const struct mp_func *func = &cfg->funcs[i];
		uint16_t usable = (f->changes[i] | CALLEE_SAVED) & ~NEVER;

		if (!wanted[i] || !is_known(func))
			continue;
		read_function(f, i);
		for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
			out[b] = usable & ~(f->live[b] | f->effects[b].touches);
	}
}

int me_registers_find(const struct mp_cfg *cfg, const uint8_t *wanted, struct me_registers *out,
		      struct mp_err *err)
{
	struct finder f = {.cfg = cfg};
	int rc = 0;

	ZydisDecoderInit(&f.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	out->free = calloc((size_t)cfg->nr_blocks + 1, sizeof(*out->free));
	f.effects = calloc((size_t)cfg->nr_blocks + 1, sizeof(*f.effects));
	f.live = calloc((size_t)cfg->nr_blocks + 1, sizeof(*f.live));
	f.changes = calloc((size_t)cfg->nr_funcs + 1, sizeof(*f.changes));
	f.takes = calloc((size_t)cfg->nr_funcs + 1, sizeof(*f.takes));
	f.leaves = calloc((size_t)cfg->nr_funcs + 1, sizeof(*f.leaves));
	f.unread = calloc((size_t)cfg->nr_blocks + 1, sizeof(*f.unread));
	f.passes = calloc((size_t)cfg->nr_funcs + 1, sizeof(*f.passes));
	f.results = calloc((size_t)cfg->nr_funcs + 1, sizeof(*f.results));
	if (!out->free || !f.effects || !f.live || !f.changes || !f.takes || !f.leaves ||
	    !f.unread || !f.passes || !f.results)
		rc = mp_err_set(err, ENOMEM, "out of memory");
	if (!rc) {
		find_changes(&f);
		find_leaves(&f);
		find_passed(&f);
		find_free(&f, wanted, out->free);
	}
	free(f.effects);
	free(f.live);
	free(f.changes);
	free(f.takes);
	free(f.leaves);
	free(f.unread);
	free(f.passes);
	free(f.results);
	if (rc)
		me_registers_fini(out);
	return rc;
}

void me_registers_fini(struct me_registers *registers)
{
	free(registers->free);
	*registers = (struct me_registers){0};
}
