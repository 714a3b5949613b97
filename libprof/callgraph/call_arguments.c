// SPDX-License-Identifier: Apache-2.0
/* call_arguments - follows addresses through the registers of a block; see call_arguments.h. */
#include "libprof/callgraph/call_arguments.h"

#include <string.h>

#include "libprof/insn/insn.h"

#define NR_REGISTERS 16

/* rdi, rsi, rdx, rcx, r8, r9 */
static const uint8_t arguments[] = {7, 6, 2, 1, 8, 9};

/* rbx, rbp, r12 to r15: compilers keep values of other blocks in them. */
#define PRESERVED UINT32_C(0xf028)

/* What a register holds. */
struct value {
	uint64_t vaddr; /* an address; 0: none that is known */
	uint8_t from; /* what this register held at the beginning of the block; NR_REGISTERS: not */
};

struct search {
	const struct mp_cfg *cfg;
	struct value held[NR_REGISTERS];
	uint8_t called; /* the register that the call reads its target from; NR_REGISTERS: none */
	uint32_t *functions, nr;
};

enum move_kind {
	MOVE_NONE,
	MOVE_ADDRESS,  /* lea address(%rip), register; mov $address, register */
	MOVE_REGISTER, /* mov register, register */
};

struct move {
	enum move_kind kind;
	uint8_t to, from;
	uint64_t vaddr;
};

static uint64_t immediate(const uint8_t *bytes, const struct mp_insn *insn)
{
	uint64_t value = 0;

	memcpy(&value, bytes + insn->imm_off, insn->imm_size <= 8 ? insn->imm_size : 8);
	return value;
}

/* Decodes the forms of `mov` and `lea` that compilers use for addresses and arguments. */
static struct move decode(const uint8_t *bytes, const struct mp_insn *insn)
{
	uint8_t rex = (bytes[0] & 0xf0) == 0x40 ? bytes[0] : 0;
	const uint8_t *op = bytes + (rex != 0);
	size_t left = insn->len - (size_t)(rex != 0);
	uint8_t modrm = left > 1 ? op[1] : 0;
	uint8_t reg = (uint8_t)((modrm >> 3 & 7) | (rex & 4) << 1);
	uint8_t rm = (uint8_t)((modrm & 7) | (rex & 1) << 3);
	struct move move = {MOVE_NONE, 0, 0, 0};

	if (left < 2 || insn->kind != MP_INSN_OTHER)
		return move;
	if (op[0] == 0x8d && insn->rip_relative)
		return (struct move){MOVE_ADDRESS, reg, 0, insn->target};
	if ((op[0] & 0xf8) == 0xb8 && insn->imm_size >= 4)
		return (struct move){MOVE_ADDRESS, (uint8_t)((op[0] & 7) | (rex & 1) << 3), 0,
				     immediate(bytes, insn)};
	if (op[0] == 0xc7 && modrm >= 0xc0 && insn->imm_size == 4)
		return (struct move){MOVE_ADDRESS, rm, 0, immediate(bytes, insn)};
	if (op[0] == 0x89 && modrm >= 0xc0)
		return (struct move){MOVE_REGISTER, rm, reg, 0};
	if (op[0] == 0x8b && modrm >= 0xc0)
		return (struct move){MOVE_REGISTER, reg, rm, 0};
	return move;
}

/* Return: the register that an indirect call or jump reads its target from; NR_REGISTERS: none. */
static uint8_t called_register(const uint8_t *bytes, const struct mp_insn *insn)
{
	uint8_t modrm = insn->len > 1 ? bytes[insn->len - 1] : 0;
	uint8_t rex = insn->len > 2 ? bytes[insn->len - 3] : 0;

	if ((insn->kind != MP_INSN_ICALL && insn->kind != MP_INSN_IJUMP) || insn->len < 2 ||
	    bytes[insn->len - 2] != 0xff || modrm < 0xc0)
		return NR_REGISTERS;
	return (uint8_t)((modrm & 7) | ((rex & 0xf0) == 0x40 && rex & 1 ? 8 : 0));
}

/* Return: the function that starts at @vaddr, or MP_NONE. */
static uint32_t function_starting(const struct mp_cfg *cfg, uint64_t vaddr)
{
	uint32_t f = vaddr ? mp_cfg_func_at(cfg, vaddr) : MP_NONE;

	return f != MP_NONE && cfg->funcs[f].vaddr == vaddr ? f : MP_NONE;
}

static void note(struct search *s, uint32_t f)
{
	if (f == MP_NONE || s->nr == MP_CALL_ARGUMENTS_MAX)
		return;
	for (uint32_t i = 0; i < s->nr; i++)
		if (s->functions[i] == f)
			return;
	s->functions[s->nr++] = f;
}

/* A call leaves nothing in the registers that the called function need not preserve. */
static void forget(struct search *s)
{
	for (uint8_t i = 0; i < NR_REGISTERS; i++)
		if (!(PRESERVED >> i & 1))
			s->held[i] = (struct value){0, NR_REGISTERS};
}

/* Compilers know which registers a function of the same file leaves alone, and keep values there. */
static bool is_local(const struct mp_cfg *cfg, const struct mp_insn *insn)
{
	uint32_t f = insn->kind == MP_INSN_CALL ? function_starting(cfg, insn->target) : MP_NONE;

	return f != MP_NONE && cfg->funcs[f].problem != MP_PROBLEM_SPECIAL;
}

static void step(struct search *s, const uint8_t *bytes, const struct mp_insn *insn)
{
	struct move move = decode(bytes, insn);

	if (is_local(s->cfg, insn))
		return;
	if (insn->kind == MP_INSN_CALL || insn->kind == MP_INSN_ICALL)
		forget(s);
	else if (move.kind == MOVE_ADDRESS)
		s->held[move.to] = (struct value){move.vaddr, NR_REGISTERS};
	else if (move.kind == MOVE_REGISTER)
		s->held[move.to] = s->held[move.from];
}

/* Follows the block up to the call. Return: false if the call cannot be decoded. */
static bool follow(struct search *s, const struct mp_call_site *site)
{
	const struct mp_block *block = &s->cfg->blocks[site->block];
	const uint8_t *bytes = mp_elf_bytes(s->cfg->elf, block->vaddr, block->size);
	struct mp_insn insn;

	for (uint8_t i = 0; i < NR_REGISTERS; i++)
		s->held[i] = (struct value){0, i};
	for (uint32_t at = 0; bytes && at < block->size; at += insn.len) {
		if (mp_insn_decode(bytes + at, block->size - at, block->vaddr + at, &insn))
			return false;
		if (insn.vaddr == site->vaddr) {
			s->called = called_register(bytes + at, &insn);
			return true;
		}
		step(s, bytes + at, &insn);
	}
	return false;
}

static void add_load(const struct mp_cfg *cfg, const struct move *move, struct mp_call_loads *loads)
{
	uint32_t f = MP_NONE;

	if (move->kind == MOVE_ADDRESS && PRESERVED >> move->to & 1)
		f = function_starting(cfg, move->vaddr);
	if (f == MP_NONE || loads->nr == MP_CALL_LOADS_MAX)
		return;
	loads->functions[loads->nr] = f;
	loads->registers[loads->nr++] = move->to;
}

static void add_loads(const struct mp_cfg *cfg, const struct mp_block *block,
		      struct mp_call_loads *loads)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	struct mp_insn insn;

	for (uint32_t at = 0; bytes && at < block->size; at += insn.len) {
		struct move move;

		if (mp_insn_decode(bytes + at, block->size - at, block->vaddr + at, &insn))
			return;
		move = decode(bytes + at, &insn);
		add_load(cfg, &move, loads);
	}
}

static void fill(const struct mp_cfg *cfg, uint32_t f, struct mp_call_loads *loads)
{
	const struct mp_func *func = &cfg->funcs[f];

	loads->func = f;
	loads->nr = 0;
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		add_loads(cfg, &cfg->blocks[b], loads);
}

uint32_t mp_call_arguments(const struct mp_cfg *cfg, struct mp_call_loads *loads,
			   const struct mp_call_site *site,
			   uint32_t functions[MP_CALL_ARGUMENTS_MAX])
{
	struct search s = {.cfg = cfg, .called = NR_REGISTERS, .functions = functions};
	uint32_t f = cfg->blocks[site->block].func;
	uint32_t kept = 0; /* registers whose values at the beginning of the block are arguments */

	if (!follow(&s, site))
		return 0;
	for (size_t i = 0; i < sizeof(arguments); i++) {
		const struct value *value = &s.held[arguments[i]];

		if (arguments[i] == s.called)
			continue;
		note(&s, function_starting(cfg, value->vaddr));
		if (value->from < NR_REGISTERS && PRESERVED >> value->from & 1)
			kept |= UINT32_C(1) << value->from;
	}
	if (kept && loads->func != f)
		fill(cfg, f, loads);
	for (uint32_t i = 0; kept && i < loads->nr; i++)
		if (kept >> loads->registers[i] & 1)
			note(&s, loads->functions[i]);
	return s.nr;
}

bool mp_call_passes(const struct mp_cfg *cfg, const struct mp_call_site *site, uint32_t function)
{
	struct mp_call_loads loads = {.func = MP_NONE};
	uint32_t functions[MP_CALL_ARGUMENTS_MAX];
	uint32_t nr = mp_call_arguments(cfg, &loads, site, functions);

	for (uint32_t i = 0; i < nr; i++)
		if (functions[i] == function)
			return true;
	return false;
}

bool mp_call_is_by_register(const struct mp_cfg *cfg, const struct mp_call_site *site)
{
	size_t size = (size_t)(site->next - site->vaddr);
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, site->vaddr, size);
	struct mp_insn insn;

	return bytes && !mp_insn_decode(bytes, size, site->vaddr, &insn) &&
	       called_register(bytes, &insn) != NR_REGISTERS;
}
