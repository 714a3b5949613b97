// SPDX-License-Identifier: Apache-2.0
/*
 * flags_code - reads code forward from a place, instruction by instruction, on all ways. Code without unwind
 * information is read as well, and code in the middle of a function. Called by flags.
 */
#include "editor/evidence/flags/flags_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Limits of one search. Nearly all code writes flags soon. Beyond these, only verify tells whether flags are read. */
#define MAX_WAYS  32
#define MAX_STEPS 512
#define MAX_OUTSIDE                                                                                \
	64 /* steps from code of no function on, of which nothing is remembered: PLT stubs have three */
#define MAX_DEPTH 200 /* of calls in the called code */

struct way {
	uint64_t at;
	uint16_t flags; /* not written yet */
};

struct search {
	struct me_flags_code *code;
	struct me_flags_use use;
	struct way ways[MAX_WAYS];
	unsigned int nr, depth;
	unsigned int *steps; /* of the whole search, called code included */
};

int me_flags_code_init(struct me_flags_code *code, const struct mp_cfg *cfg, uint16_t status)
{
	uint16_t by_pointer = 0;

	*code = (struct me_flags_code){.cfg = cfg, .status = status};
	ZydisDecoderInit(&code->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	code->uses = calloc((size_t)cfg->nr_funcs + 1, sizeof(*code->uses));
	code->known = calloc((size_t)cfg->nr_funcs + 1, sizeof(*code->known));
	if (!code->uses || !code->known)
		return -ENOMEM;
	for (uint32_t i = 0; i < cfg->nr_funcs; i++)
		if (me_flags_has_pointer(&cfg->funcs[i]))
			by_pointer |= me_flags_use_at(code, cfg->funcs[i].vaddr).reads;
	/* What is known so far lacks them. */
	if (by_pointer)
		memset(code->known, 0, cfg->nr_funcs * sizeof(*code->known));
	code->by_pointer = by_pointer;
	return 0;
}

void me_flags_code_fini(struct me_flags_code *code)
{
	free(code->uses);
	free(code->known);
	*code = (struct me_flags_code){0};
}

bool me_flags_has_pointer(const struct mp_func *func)
{
	return func->flags &
	       (MP_FUNC_ADDRESS_TAKEN | MP_FUNC_EXPORTED | MP_FUNC_IFUNC | MP_FUNC_POINTED);
}

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

uint16_t me_flags_written(const struct me_flags_code *code, const ZydisDecodedInstruction *z)
{
	const ZydisAccessedFlags *f = z->cpu_flags;

	switch (z->mnemonic) {
	/* These instructions write the carry; processors differ about the other flags. */
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC:
	case ZYDIS_MNEMONIC_CLC:
	case ZYDIS_MNEMONIC_STC: return code->status & ZYDIS_CPUFLAG_CF;
	default: break;
	}
	if (!f || !writes_listed_flags(z))
		return 0;
	return (f->modified | f->set_0 | f->set_1 | f->undefined) & code->status;
}

/* Decodes the instruction at @at in both ways. */
static bool decode(const struct me_flags_code *code, uint64_t at, struct mp_insn *insn,
		   ZydisDecodedInstruction *z)
{
	size_t avail = ZYDIS_MAX_INSTRUCTION_LENGTH;
	const uint8_t *bytes;

	while (!(bytes = mp_elf_bytes(code->cfg->elf, at, avail)) && --avail)
		;
	return bytes && !mp_insn_decode(bytes, avail, at, insn) &&
	       (!z ||
		ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&code->decoder, NULL, bytes, avail, z)));
}

static void go_on(struct search *s, uint64_t at, uint16_t flags)
{
	if (!mp_elf_is_code(s->code->cfg->elf, at))
		return;
	for (unsigned int i = 0; i < s->nr; i++)
		if (s->ways[i].at == at && !(flags & ~s->ways[i].flags))
			return;
	if (s->nr < MAX_WAYS)
		s->ways[s->nr++] = (struct way){at, flags};
}

static struct me_flags_use use_at(struct me_flags_code *code, uint64_t at, unsigned int depth,
				  unsigned int *steps);

/* The code at @target is called. Return: flags that it may leave as they are. */
static uint16_t call(struct search *s, uint64_t target, uint16_t flags)
{
	struct me_flags_use use = use_at(s->code, target, s->depth + 1, s->steps);

	s->use.reads |= use.reads & flags;
	return use.passes & flags;
}

/* Follow one way to its end; branches add ways. */
static void follow(struct search *s, struct way way)
{
	while (way.flags) {
		ZydisDecodedInstruction z;
		struct mp_insn insn;

		if ((*s->steps)++ >= MAX_STEPS || !decode(s->code, way.at, &insn, &z))
			return;
		s->use.reads |= z.cpu_flags ? z.cpu_flags->tested & way.flags : 0;
		way.flags &= ~me_flags_written(s->code, &z);
		way.at += insn.len;
		switch (insn.kind) {
		case MP_INSN_OTHER:
		case MP_INSN_SYSCALL: break;
		case MP_INSN_COND:
		case MP_INSN_LOOP: go_on(s, insn.target, way.flags); break;
		case MP_INSN_JUMP: go_on(s, insn.target, way.flags); return;
		case MP_INSN_CALL: way.flags = call(s, insn.target, way.flags); break;
		case MP_INSN_ICALL:
		case MP_INSN_IJUMP: s->use.reads |= s->code->by_pointer & way.flags; return;
		case MP_INSN_RET: s->use.passes |= way.flags; return;
		default: return;
		}
	}
}

static struct me_flags_use search_from(struct me_flags_code *code, uint64_t at, unsigned int depth,
				       unsigned int *steps)
{
	struct search s = {.code = code,
			   .depth = depth,
			   .steps = steps,
			   .nr = 1,
			   .ways = {{at, code->status}}};

	for (unsigned int i = 0; i < s.nr; i++)
		follow(&s, s.ways[i]);
	return s.use;
}

/* As me_flags_use_at(), of code that is called at @depth. *@steps: taken so far, for code of no function. */
static struct me_flags_use use_at(struct me_flags_code *code, uint64_t at, unsigned int depth,
				  unsigned int *steps)
{
	uint32_t func = mp_cfg_func_at(code->cfg, at);
	unsigned int own = 0;

	if (!mp_elf_is_code(code->cfg->elf, at) || depth > MAX_DEPTH)
		return (struct me_flags_use){0};
	if (func == MP_NONE || code->cfg->funcs[func].vaddr != at)
		return search_from(code, at, depth, steps);
	if (!code->known[func]) {
		/* A function that calls itself before it touches flags adds nothing. */
		code->known[func] = true;
		code->uses[func] = (struct me_flags_use){0};
		code->uses[func] = search_from(code, at, depth, &own);
	}
	return code->uses[func];
}

struct me_flags_use me_flags_use_at(struct me_flags_code *code, uint64_t at)
{
	unsigned int steps = MAX_STEPS - MAX_OUTSIDE;

	return use_at(code, at, 0, &steps);
}

void me_flags_each_return(const struct me_flags_code *code, uint64_t at,
			  void (*found)(void *ctx, uint64_t at), void *ctx)
{
	uint64_t ways[MAX_WAYS] = {at};
	unsigned int nr = 1, steps = 0;

	for (unsigned int i = 0; i < nr; i++) {
		bool goes_on = true;

		at = ways[i];
		while (goes_on) {
			struct mp_insn insn;
			bool leads = false;

			if (mp_cfg_func_at(code->cfg, at) != MP_NONE) {
				found(ctx, at);
				break;
			}
			if (steps++ == MAX_STEPS || !decode(code, at, &insn, NULL)) {
				found(ctx, 0);
				return;
			}
			switch (insn.kind) {
			case MP_INSN_OTHER:
			case MP_INSN_SYSCALL: break;
			case MP_INSN_COND:
			case MP_INSN_LOOP:
			case MP_INSN_CALL: leads = true; break;
			case MP_INSN_JUMP:
				leads = true;
				goes_on = false;
				break;
			case MP_INSN_ICALL:
			case MP_INSN_IJUMP:
				found(ctx, 0);
				goes_on = insn.kind == MP_INSN_ICALL;
				break;
			default: goes_on = false; break;
			}
			for (unsigned int k = 0; leads && k < nr; k++)
				leads = ways[k] != insn.target;
			if (leads && nr == MAX_WAYS) {
				found(ctx, 0);
				return;
			}
			if (leads)
				ways[nr++] = insn.target;
			at += insn.len;
		}
	}
}
