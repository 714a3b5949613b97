// SPDX-License-Identifier: Apache-2.0
/* flags - liveness of the arithmetic flags, backwards over each function's blocks. */
#include "editor/evidence/flags.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>

#include "libprof/insn/insn.h"

/* The flags that `inc` changes. */
#define STATUS                                                                                     \
	(ZYDIS_CPUFLAG_OF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_AF |               \
	 ZYDIS_CPUFLAG_PF)

/* Effect of one instruction, or of a whole block, on the flags. */
struct effect {
	uint16_t reads;	 /* before it writes them */
	uint16_t writes; /* whatever the operands are */
};

struct finder {
	const struct mp_cfg *cfg;
	ZydisDecoder decoder;
	uint16_t status;	     /* STATUS, with the carry if asked for */
	struct effect *effects;	     /* per block */
	uint16_t *reads_from_caller; /* per function: flags it reads that its caller set */
	uint8_t *sets_for_caller;    /* per function: a caller reads flags that it set */
	struct me_flags *out;
};

/* Does it shift by at least 1? A shift by 0 changes no flag. */
static bool shifts(const ZydisDecodedInstruction *z)
{
	uint64_t mask = z->operand_width == 64 ? 0x3f : 0x1f;

	switch (z->opcode) {
	case 0xd0:
	case 0xd1: return true;
	case 0xc0:
	case 0xc1:
	case 0xa4:
	case 0xac: return z->raw.imm[0].size && z->raw.imm[0].value.u & mask;
	default: return false;
	}
}

/* Does the instruction write, whatever its operands are, all flags that Zydis lists for it? */
static bool writes_listed_flags(const ZydisDecodedInstruction *z)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD: return shifts(z);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_ADC:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_SBB:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_NEG:
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_MUL:
	case ZYDIS_MNEMONIC_IMUL:
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
	case ZYDIS_MNEMONIC_XADD:
	case ZYDIS_MNEMONIC_CMPXCHG:
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_BSR:
	case ZYDIS_MNEMONIC_TZCNT:
	case ZYDIS_MNEMONIC_LZCNT:
	case ZYDIS_MNEMONIC_POPCNT:
	case ZYDIS_MNEMONIC_COMISS:
	case ZYDIS_MNEMONIC_COMISD:
	case ZYDIS_MNEMONIC_UCOMISS:
	case ZYDIS_MNEMONIC_UCOMISD:
	case ZYDIS_MNEMONIC_VCOMISS:
	case ZYDIS_MNEMONIC_VCOMISD:
	case ZYDIS_MNEMONIC_VUCOMISS:
	case ZYDIS_MNEMONIC_VUCOMISD:
	case ZYDIS_MNEMONIC_FCOMI:
	case ZYDIS_MNEMONIC_FCOMIP:
	case ZYDIS_MNEMONIC_FUCOMI:
	case ZYDIS_MNEMONIC_FUCOMIP:
	case ZYDIS_MNEMONIC_PTEST:
	case ZYDIS_MNEMONIC_VPTEST:
	case ZYDIS_MNEMONIC_SAHF: return true;
	default: return false;
	}
}

/* Flags that the instruction always writes; 0 for instructions that are not listed. */
static uint16_t written(const struct finder *finder, const ZydisDecodedInstruction *z)
{
	const ZydisAccessedFlags *f = z->cpu_flags;

	switch (z->mnemonic) {
	/* These instructions write the carry; processors differ about the other flags. */
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC:
	case ZYDIS_MNEMONIC_CLC:
	case ZYDIS_MNEMONIC_STC: return finder->status & ZYDIS_CPUFLAG_CF;
	default: break;
	}
	if (!f || !writes_listed_flags(z))
		return 0;
	return (f->modified | f->set_0 | f->set_1 | f->undefined) & finder->status;
}

static uint32_t callee_of(const struct finder *f, const struct mp_insn *call)
{
	return call->kind == MP_INSN_CALL ? mp_cfg_func_at(f->cfg, call->target) : MP_NONE;
}

static bool is_call(const struct mp_insn *insn)
{
	return insn->kind == MP_INSN_CALL || insn->kind == MP_INSN_ICALL;
}

/* A call reads no flags and leaves none, except for callees known to read flags. */
static struct effect effect_of(const struct finder *f, const uint8_t *bytes, size_t avail,
			       const struct mp_insn *insn)
{
	ZydisDecodedInstruction z;

	if (is_call(insn)) {
		uint32_t callee = callee_of(f, insn);

		return (struct effect){callee != MP_NONE ? f->reads_from_caller[callee] : 0,
				       f->status};
	}
	if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&f->decoder, NULL, bytes, avail, &z)))
		return (struct effect){f->status, 0};
	return (struct effect){z.cpu_flags ? z.cpu_flags->tested & f->status : 0, written(f, &z)};
}

/*
 * The effect of a block. @wanted: flags that are read after it. *@setter: set to a call
 * if flags that its callee left are read after it.
 */
static struct effect read_block(const struct finder *f, const struct mp_block *block,
				uint16_t wanted, struct mp_insn *setter)
{
	const uint8_t *bytes = mp_elf_bytes(f->cfg->elf, block->vaddr, block->size);
	struct effect sum = {0};
	struct mp_insn insn, call = {0};
	uint16_t from_call = 0; /* flags not written since the last call */

	if (!bytes)
		return (struct effect){f->status, 0};
	for (uint32_t off = 0; off < block->size; off += insn.len) {
		struct effect now;

		if (mp_insn_decode(bytes + off, block->size - off, block->vaddr + off, &insn))
			return (struct effect){f->status, 0};
		now = effect_of(f, bytes + off, block->size - off, &insn);
		if (now.reads & from_call)
			*setter = call;
		sum.reads |= now.reads & ~sum.writes;
		sum.writes |= now.writes;
		from_call &= ~now.writes;
		if (is_call(&insn)) {
			call = insn;
			from_call = f->status;
		}
	}
	if (wanted & from_call)
		*setter = call;
	return sum;
}

/* Flags are read after @call: mark the function that left them. */
static int mark_setter(struct finder *f, const struct mp_insn *call, struct mp_err *err)
{
	uint32_t callee = callee_of(f, call);

	if (callee == MP_NONE)
		return mp_err_set(err, EPERM,
				  "the code behind the call at %#llx reads flags that an "
				  "unknown function set",
				  (unsigned long long)call->vaddr);
	f->sets_for_caller[callee] = 1;
	return 0;
}

/*
 * Flags that are read after the block: by its successors, or by a function that it
 * jumps to. By the ABI, no other code reads them.
 */
static uint16_t live_after(const struct finder *f, const struct mp_block *block)
{
	const struct mp_cfg *cfg = f->cfg;
	uint16_t after = 0;

	for (uint32_t e = 0; e < block->nr_edges; e++)
		after |= f->out->live[cfg->edges[block->first_edge + e].to];
	if (block->term == MP_TERM_TAIL || (block->term == MP_TERM_COND && block->nr_edges < 2)) {
		uint32_t callee = mp_cfg_func_at(cfg, mp_block_target(block));

		after |= callee == MP_NONE ? 0 : f->reads_from_caller[callee];
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

static int read_function(struct finder *f, uint32_t index, struct mp_err *err)
{
	const struct mp_cfg *cfg = f->cfg;
	const struct mp_func *func = &cfg->funcs[index];
	uint32_t end = func->first_block + func->nr_blocks;

	for (uint32_t b = func->first_block; b < end; b++) {
		struct mp_insn ignored;

		f->out->live[b] = 0;
		f->effects[b] = read_block(f, &cfg->blocks[b], 0, &ignored);
	}
	spread(f, func);
	for (uint32_t b = func->first_block; b < end; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		struct mp_insn setter = {0};
		int rc;

		read_block(f, block, live_after(f, block), &setter);
		rc = setter.len ? mark_setter(f, &setter, err) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

static int find(struct finder *f, const uint8_t *wanted, struct mp_err *err)
{
	const struct mp_cfg *cfg = f->cfg;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < cfg->nr_funcs; i++) {
		const struct mp_func *func = &cfg->funcs[i];
		uint32_t entry;

		if (!wanted[i]) {
			for (uint32_t b = 0; b < func->nr_blocks; b++)
				f->out->live[func->first_block + b] = f->status;
			continue;
		}
		rc = read_function(f, i, err);
		entry = mp_cfg_block_starting(cfg, func->vaddr);
		if (entry != MP_NONE && func->nr_blocks)
			f->reads_from_caller[i] = f->out->live[entry];
	}
	return rc;
}

/* If a function leaves flags, the functions that it calls may have set them. */
static void spread_to_callees(struct finder *f)
{
	const struct mp_cfg *cfg = f->cfg;
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < cfg->nr_calls; i++) {
			const struct mp_call *call = &cfg->calls[i];

			if (call->callee == MP_NONE || f->sets_for_caller[call->callee] ||
			    !f->sets_for_caller[cfg->blocks[call->block].func])
				continue;
			f->sets_for_caller[call->callee] = changed = true;
		}
	}
}

int me_flags_find(const struct mp_cfg *cfg, const uint8_t *wanted, bool carry, struct me_flags *out,
		  struct mp_err *err)
{
	struct finder f = {
		.cfg = cfg, .status = STATUS | (carry ? ZYDIS_CPUFLAG_CF : 0), .out = out};
	int rc = 0;

	ZydisDecoderInit(&f.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	out->live = calloc((size_t)cfg->nr_blocks + 1, sizeof(*out->live));
	out->shared = calloc((size_t)cfg->nr_funcs + 1, 1);
	f.effects = calloc((size_t)cfg->nr_blocks + 1, sizeof(*f.effects));
	f.reads_from_caller = calloc((size_t)cfg->nr_funcs + 1, sizeof(*f.reads_from_caller));
	f.sets_for_caller = calloc((size_t)cfg->nr_funcs + 1, 1);
	if (!out->live || !out->shared || !f.effects || !f.reads_from_caller || !f.sets_for_caller)
		rc = mp_err_set(err, ENOMEM, "out of memory");
	/* Two rounds: in the second, it is known which callees read flags at their entry. */
	for (int round = 0; !rc && round < 2; round++)
		rc = find(&f, wanted, err);
	if (!rc)
		spread_to_callees(&f);
	for (uint32_t i = 0; !rc && i < cfg->nr_funcs; i++)
		out->shared[i] = f.reads_from_caller[i] || f.sets_for_caller[i];
	free(f.effects);
	free(f.reads_from_caller);
	free(f.sets_for_caller);
	if (rc)
		me_flags_fini(out);
	return rc;
}

void me_flags_fini(struct me_flags *flags)
{
	free(flags->live);
	free(flags->shared);
	*flags = (struct me_flags){0};
}
