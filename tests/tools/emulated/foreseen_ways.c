// SPDX-License-Identifier: Apache-2.0
/*
 * foreseen_ways - random snippets of code, by mp_foresee() and on an emulated processor. For tests/e2e.
 *
 *	foreseen-ways [SNIPPETS [SEED]]
 *
 * A snippet is a few instructions, branches, calls and jumps to any of them, values of registers of which mp_foresee()
 * does not know all, a copy of some of the stack, and constants. The branches that it gives must be those that the emulated processor (unicorn) executes, in this order, and go
 * the same ways. Prints what was compared; the first difference ends it with status 1. Once in some million snippets
 * the emulator crashes; that ends it with status 3.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicorn/unicorn.h>
#include <unistd.h>

#include "libprof/foresee/foresee.h"
#include "libprof/insn/decoder.h"

enum {
	INSNS_MAX = 14,
	CODE_SIZE = 0x1000,
	AREA_SIZE = 0x10000,
	CONSTANTS_SIZE = 0x2000, /* at the area's end; writing there faults */
	STACK_WORDS = 64,
	EXECUTED_MAX = 200
};
#define AREA 0x40000000u	       /* code, and data behind it */
#define BIAS (UINT64_C(0x1000) - AREA) /* for mp_foresee(), the code is linked elsewhere */

struct insn {
	uint8_t bytes[16];
	unsigned int len;
	/*
	 * An instruction's number, to which a displacement of 1 byte leads, of 4 bytes if this is a call, or an address
	 * of 4 bytes if @is_address; -1: none
	 */
	int target;
	bool conditional, is_address;
};

struct snippet {
	uint8_t bytes[CODE_SIZE];
	unsigned int len;
	uint8_t branch_len[CODE_SIZE]; /* at the start of a conditional branch; 0: none */
	bool starts[CODE_SIZE];	       /* here an instruction begins */
};

static const int registers[16] = {
	UC_X86_REG_RAX, UC_X86_REG_RCX, UC_X86_REG_RDX, UC_X86_REG_RBX,
	UC_X86_REG_RSP, UC_X86_REG_RBP, UC_X86_REG_RSI, UC_X86_REG_RDI,
	UC_X86_REG_R8,	UC_X86_REG_R9,	UC_X86_REG_R10, UC_X86_REG_R11,
	UC_X86_REG_R12, UC_X86_REG_R13, UC_X86_REG_R14, UC_X86_REG_R15,
};

static uint64_t state;
static volatile sig_atomic_t emulating;
static struct snippet snippet;
static uint8_t data[AREA_SIZE - CODE_SIZE];
static struct mp_foreseen_way ways[MP_FORESEE_WAYS];
static unsigned int nr_ways;
static uint64_t
	branch_behind; /* the instruction before was a branch: where it falls through; 0: none */
static uint64_t branch_at;
static bool is_between; /* control came between two instructions of the snippet */

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "foreseen-ways: %s\n", what);
	exit(1);
}

static void on_crash(int signal)
{
	if (emulating)
		_exit(3);
	_exit(128 + signal);
}

static uint64_t random64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1d;
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)(random64() >> 33) % n;
}

/* Values at which flags change are as frequent as any others. */
static uint64_t random_value(void)
{
	static const uint64_t edges[] = {0,	     1,		 2,	    0x7f,	0x80,
					 0xff,	     0x7fff,	 0x8000,    0xffff,	0x7fffffff,
					 0x80000000, 0xffffffff, INT64_MAX, 1ull << 63, UINT64_MAX};

	switch (below(3)) {
	case 0: return edges[below(sizeof(edges) / sizeof(edges[0]))];
	case 1: return below(300);
	default: return random64();
	}
}

static void put(struct insn *insn, uint64_t value, unsigned int nr)
{
	memcpy(insn->bytes + insn->len, &value, nr);
	insn->len += nr;
}

/* Opcodes: the map 0x0f is bit 8, a prefix before REX is in the bits from 16 on. */
struct form {
	uint32_t opcode;
	uint8_t fixed;	/* 1 + the middle of ModRM, the operation; 0: a register */
	uint8_t imm;	/* bytes of the immediate; 4: 2 with the prefix of 16 bits */
	bool no_modrm;	/* the opcode is all there is */
	bool registers; /* no memory operand */
	bool in_opcode; /* the opcode's low bits are a register */
	bool condition; /* the opcode's low bits are a condition */
};

static const struct form plain[] = {
	{0x01, 0, 0, 0, 0, 0, 0},  {0x00, 0, 0, 0, 0, 0, 0},  {0x03, 0, 0, 0, 0, 0, 0},
	{0x29, 0, 0, 0, 0, 0, 0},  {0x28, 0, 0, 0, 0, 0, 0},  {0x2b, 0, 0, 0, 0, 0, 0},
	{0x11, 0, 0, 0, 0, 0, 0},  {0x19, 0, 0, 0, 0, 0, 0},  {0x21, 0, 0, 0, 0, 0, 0},
	{0x20, 0, 0, 0, 0, 0, 0},  {0x09, 0, 0, 0, 0, 0, 0},  {0x31, 0, 0, 0, 0, 0, 0},
	{0x30, 0, 0, 0, 0, 0, 0},  {0x39, 0, 0, 0, 0, 0, 0},  {0x38, 0, 0, 0, 0, 0, 0},
	{0x3b, 0, 0, 0, 0, 0, 0},  {0x85, 0, 0, 0, 0, 0, 0},  {0x84, 0, 0, 0, 0, 0, 0},
	{0x89, 0, 0, 0, 0, 0, 0},  {0x88, 0, 0, 0, 0, 0, 0},  {0x8b, 0, 0, 0, 0, 0, 0},
	{0x87, 0, 0, 0, 1, 0, 0},  {0x86, 0, 0, 0, 1, 0, 0},  {0x63, 0, 0, 0, 0, 0, 0},
	{0x1b6, 0, 0, 0, 0, 0, 0}, {0x1b7, 0, 0, 0, 0, 0, 0}, {0x1be, 0, 0, 0, 0, 0, 0},
	{0x1bf, 0, 0, 0, 0, 0, 0}, {0x83, 1, 1, 0, 0, 0, 0},  {0x83, 3, 1, 0, 0, 0, 0},
	{0x83, 4, 1, 0, 0, 0, 0},  {0x83, 5, 1, 0, 0, 0, 0},  {0x83, 6, 1, 0, 0, 0, 0},
	{0x83, 8, 1, 0, 0, 0, 0},  {0x81, 8, 4, 0, 0, 0, 0},  {0x81, 5, 4, 0, 0, 0, 0},
	{0x80, 8, 1, 0, 0, 0, 0},  {0x80, 5, 1, 0, 0, 0, 0},  {0x80, 1, 1, 0, 0, 0, 0},
	{0x81, 1, 4, 0, 0, 0, 0},  {0xf7, 1, 4, 0, 0, 0, 0},  {0xf6, 1, 1, 0, 0, 0, 0},
	{0xc7, 1, 4, 0, 0, 0, 0},  {0xc6, 1, 1, 0, 0, 0, 0},  {0xff, 1, 0, 0, 0, 0, 0},
	{0xff, 2, 0, 0, 0, 0, 0},  {0xfe, 1, 0, 0, 0, 0, 0},  {0xfe, 2, 0, 0, 0, 0, 0},
	{0xf7, 3, 0, 0, 0, 0, 0},  {0xf6, 3, 0, 0, 0, 0, 0},  {0xf7, 4, 0, 0, 0, 0, 0},
	{0xf6, 4, 0, 0, 0, 0, 0},  {0xc1, 1, 1, 0, 0, 0, 0},  {0xc1, 2, 1, 0, 0, 0, 0},
	{0xc1, 5, 1, 0, 0, 0, 0},  {0xc1, 6, 1, 0, 0, 0, 0},  {0xc1, 7, 1, 0, 0, 0, 0},
	{0xc1, 8, 1, 0, 0, 0, 0},  {0xc0, 1, 1, 0, 0, 0, 0},  {0xc0, 2, 1, 0, 0, 0, 0},
	{0xc0, 5, 1, 0, 0, 0, 0},  {0xc0, 6, 1, 0, 0, 0, 0},  {0xc0, 8, 1, 0, 0, 0, 0},
	{0xd1, 1, 0, 0, 0, 0, 0},  {0xd1, 2, 0, 0, 0, 0, 0},  {0xd1, 5, 0, 0, 0, 0, 0},
	{0xd1, 6, 0, 0, 0, 0, 0},  {0xd1, 8, 0, 0, 0, 0, 0},  {0xd0, 5, 0, 0, 0, 0, 0},
	{0xd0, 8, 0, 0, 0, 0, 0},  {0xd3, 1, 0, 0, 0, 0, 0},  {0xd3, 2, 0, 0, 0, 0, 0},
	{0xd3, 5, 0, 0, 0, 0, 0},  {0xd3, 6, 0, 0, 0, 0, 0},  {0xd3, 7, 0, 0, 0, 0, 0},
	{0xd3, 8, 0, 0, 0, 0, 0},  {0xd2, 5, 0, 0, 0, 0, 0},  {0xd2, 6, 0, 0, 0, 0, 0},
	{0xd2, 8, 0, 0, 0, 0, 0},  {0x1af, 0, 0, 0, 0, 0, 0}, {0x69, 0, 4, 0, 0, 0, 0},
	{0x6b, 0, 1, 0, 0, 0, 0},  {0x1a3, 0, 0, 0, 1, 0, 0}, {0x1ba, 5, 1, 0, 0, 0, 0},
	{0x140, 0, 0, 0, 0, 0, 1}, {0x140, 0, 0, 0, 0, 0, 1}, {0x190, 1, 0, 0, 0, 0, 1},
	{0x190, 1, 0, 0, 0, 0, 1}, {0x98, 0, 0, 1, 0, 0, 0},  {0x99, 0, 0, 1, 0, 0, 0},
	{0x90, 0, 0, 1, 0, 1, 0},  {0x11f, 1, 0, 0, 0, 0, 0}, {0x04, 0, 1, 1, 0, 0, 0},
	{0x05, 0, 4, 1, 0, 0, 0},  {0x3c, 0, 1, 1, 0, 0, 0},  {0x3d, 0, 4, 1, 0, 0, 0},
	{0xa8, 0, 1, 1, 0, 0, 0},  {0xa9, 0, 4, 1, 0, 0, 0},  {0xb0, 0, 1, 1, 0, 1, 0},
	{0x2c, 0, 1, 1, 0, 0, 0},  {0x50, 0, 0, 1, 0, 1, 0},  {0x50, 0, 0, 1, 0, 1, 0},
	{0x58, 0, 0, 1, 0, 1, 0},  {0x58, 0, 0, 1, 0, 1, 0},  {0x6a, 0, 1, 1, 0, 0, 0},
	{0xff, 7, 0, 0, 0, 0, 0},  {0xf7, 5, 0, 0, 0, 0, 0},  {0xf6, 5, 0, 0, 0, 0, 0},
	{0xf7, 6, 0, 0, 0, 0, 0},  {0xf6, 6, 0, 0, 0, 0, 0},  {0xf7, 7, 0, 0, 0, 0, 0},
	{0xf6, 7, 0, 0, 0, 0, 0},  {0xf6, 8, 0, 0, 0, 0, 0},  {0xd3, 6, 0, 0, 0, 0, 0},
	{0x1bc, 0, 0, 0, 0, 0, 0}, {0x1bd, 0, 0, 0, 0, 0, 0}, {0x1c8, 0, 0, 1, 0, 1, 0},
	{0x89, 0, 0, 0, 0, 0, 0},  {0x8b, 0, 0, 0, 0, 0, 0},  {0xc9, 0, 0, 1, 0, 0, 0},
};

/* Instructions of which mp_foresee() knows only what they write. */
static const struct form others[] = {
	{0x1bc, 0, 0, 0, 0, 0, 0},    {0x1bd, 0, 0, 0, 0, 0, 0},    {0x1c1, 0, 0, 0, 0, 0, 0},
	{0x1c0, 0, 0, 0, 0, 0, 0},    {0x1b1, 0, 0, 0, 0, 0, 0},    {0x1b0, 0, 0, 0, 0, 0, 0},
	{0xf7, 5, 0, 0, 0, 0, 0},     {0xf6, 5, 0, 0, 0, 0, 0},	    {0xf7, 6, 0, 0, 0, 0, 0},
	{0xf7, 7, 0, 0, 0, 0, 0},     {0xf6, 8, 0, 0, 0, 0, 0},	    {0x1c8, 0, 0, 1, 0, 1, 0},
	{0x50, 0, 0, 1, 0, 1, 0},     {0x58, 0, 0, 1, 0, 1, 0},	    {0xf8, 0, 0, 1, 0, 0, 0},
	{0xf9, 0, 0, 1, 0, 0, 0},     {0xf5, 0, 0, 1, 0, 0, 0},	    {0x9e, 0, 0, 1, 0, 0, 0},
	{0xd3, 3, 0, 0, 0, 0, 0},     {0xd1, 4, 0, 0, 0, 0, 0},	    {0xc1, 4, 1, 0, 0, 0, 0},
	{0x1a4, 0, 1, 0, 1, 0, 0},    {0x1ad, 0, 0, 0, 1, 0, 0},    {0x1ab, 0, 0, 0, 1, 0, 0},
	{0x1ba, 7, 1, 0, 0, 0, 0},    {0x1bb, 0, 0, 0, 1, 0, 0},    {0x1a2, 0, 0, 1, 0, 0, 0},
	{0x66017e, 0, 0, 0, 1, 0, 0}, {0x6601d7, 0, 0, 0, 1, 0, 0}, {0x66012e, 0, 0, 0, 1, 0, 0},
	{0xf2012c, 0, 0, 0, 1, 0, 0}, {0xf301b8, 0, 0, 0, 0, 0, 0}, {0x12f, 0, 0, 0, 1, 0, 0},
	{0x9d, 0, 0, 1, 0, 0, 0},     {0x9c, 0, 0, 1, 0, 0, 0},	    {0xc9, 0, 0, 1, 0, 0, 0},
	{0xac, 0, 0, 1, 0, 0, 0},     {0xa6, 0, 0, 1, 0, 0, 0},	    {0x8f, 1, 0, 0, 1, 0, 0},
	{0xd7, 0, 0, 1, 0, 0, 0},     {0xa1, 0, 8, 1, 0, 0, 0},	    {0xff, 3, 0, 0, 0, 0, 0},
	{0xff, 5, 0, 0, 0, 0, 0},     {0xff, 7, 0, 0, 0, 0, 0},	    {0x8f, 1, 0, 0, 0, 0, 0},
	{0x110, 0, 0, 0, 0, 0, 0},    {0x111, 0, 0, 0, 0, 0, 0},    {0x660111, 0, 0, 0, 0, 0, 0},
	{0x1b3, 0, 0, 0, 0, 0, 0},    {0x1ab, 0, 0, 0, 0, 0, 0},    {0x1c3, 0, 0, 0, 0, 0, 0},
};

/* A memory operand lies in the area's data, by its distance from the instruction, or near a register's address. */
static void modrm(struct insn *insn, const struct form *form)
{
	unsigned int middle = form->fixed ? form->fixed - 1u : below(8), rm;

	switch (form->registers ? 0 : below(12)) {
	default: put(insn, 0xc0 | middle << 3 | below(8), 1); return;
	case 9:
		put(insn, middle << 3 | 5, 1);
		put(insn, 2 * CODE_SIZE + below(AREA_SIZE - 3 * CODE_SIZE), 4);
		return;
	case 10: rm = 4; break;
	case 11: rm = below(8);
	}
	put(insn, 0x40 | middle << 3 | rm, 1);
	if (rm == 4)
		put(insn, 0x24, 1);
	put(insn, below(2) ? 8 * below(8) : below(256), 1);
}

static void from_form(struct insn *insn, const struct form *form)
{
	uint32_t prefix = form->opcode >> 16, opcode = form->opcode & 0xff;
	bool is_short = !prefix && !below(6);

	if (prefix)
		put(insn, prefix, 1);
	if (is_short)
		put(insn, 0x66, 1);
	if (below(3))
		put(insn, 0x40 | below(16), 1);
	if (form->opcode & 0x100)
		put(insn, 0x0f, 1);
	if (form->condition)
		opcode |= below(16);
	if (form->in_opcode)
		opcode |= below(8);
	put(insn, opcode, 1);
	if (!form->no_modrm)
		modrm(insn, form);
	if (!form->imm)
		return;
	/* An operation of 64 bits ignores the prefix of 16 bits. */
	put(insn, random_value(),
	    form->imm == 4 && is_short && !(insn->bytes[1] >= 0x48 && insn->bytes[1] < 0x50)
		    ? 2
		    : form->imm);
}

/* lea, of all kinds of addresses, and mov of 8 bytes. */
static void from_address(struct insn *insn)
{
	unsigned int mod = below(3), rm = below(8);

	if (!below(4)) {
		put(insn, 0x48 | below(2), 1);
		put(insn, 0xb8 | below(8), 1);
		put(insn, random_value(), 8);
		return;
	}
	if (!below(8))
		put(insn, 0x67, 1);
	if (!below(8))
		put(insn, 0x66, 1);
	put(insn, 0x40 | below(16), 1);
	put(insn, 0x8d, 1);
	put(insn, mod << 6 | below(8) << 3 | rm, 1);
	if (rm == 4) {
		unsigned int sib = below(256);

		put(insn, sib, 1);
		if (!mod && (sib & 7) == 5)
			put(insn, random_value(), 4);
	}
	if (mod == 1 || mod == 2 || rm == 5)
		put(insn, random_value(), mod == 1 ? 1 : 4);
}

/*
 * What ordinary programs execute. The emulated processor may crash at privileged and rare vector instructions, lets lahf behind a REX
 * prefix write spl, and heeds a REX prefix with other prefixes behind it.
 */
static bool is_ordinary(const struct insn *insn, unsigned int nr_prefixes, unsigned int *len)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction decoded;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(mp_decoder(), insn->bytes, sizeof(insn->bytes),
						 &decoded, operands)))
		return false;
	*len = decoded.length;
	return decoded.raw.prefix_count <= nr_prefixes && decoded.mnemonic != ZYDIS_MNEMONIC_LAHF &&
	       !(decoded.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) &&
	       decoded.meta.category != ZYDIS_CATEGORY_COND_BR &&
	       decoded.meta.category != ZYDIS_CATEGORY_UNCOND_BR &&
	       !(decoded.mnemonic >= ZYDIS_MNEMONIC_PCMPESTRI &&
		 decoded.mnemonic <= ZYDIS_MNEMONIC_PCMPESTRM) &&
	       decoded.meta.category != ZYDIS_CATEGORY_AMD3DNOW &&
	       decoded.meta.category != ZYDIS_CATEGORY_VTX &&
	       decoded.meta.category != ZYDIS_CATEGORY_SYSTEM;
}

/* Any instruction that is no jump, mostly without a memory operand. */
static void from_bytes(struct insn *insn)
{
	static const uint8_t prefixes[] = {0x66, 0xf2, 0xf3};
	unsigned int nr_prefixes;

	do {
		uint8_t *byte = insn->bytes;
		unsigned int map = below(8);

		for (unsigned int i = 0; i < sizeof(insn->bytes); i++)
			insn->bytes[i] = (uint8_t)random64();
		if (!below(3))
			*byte++ = prefixes[below(3)];
		if (below(2))
			*byte++ = (uint8_t)(0x40 | below(16));
		nr_prefixes = (unsigned int)(byte - insn->bytes);
		if (map < 5)
			*byte++ = 0x0f;
		if (map < 2)
			*byte++ = map ? 0x38 : 0x3a;
		if (below(12))
			byte[1] |= 0xc0;
	} while (!is_ordinary(insn, nr_prefixes, &insn->len));
}

/* A call, a return, or a jump to an address that comes from a register or the stack. */
static void from_calls(struct insn *insn, unsigned int nr)
{
	unsigned int reg = below(3);

	insn->target = (int)(below(4) ? nr + 1 + below(3) : below(INSNS_MAX));
	insn->is_address = true;
	switch (below(6)) {
	case 0:
	case 1:
		insn->is_address = false;
		put(insn, 0xe8, 1);
		break;
	case 2: put(insn, 0x68, 1); break;	 /* push */
	case 3: put(insn, 0xb8 | reg, 1); break; /* mov */
	case 4:
		insn->target = -1;
		put(insn, 0xff, 1);
		put(insn, (below(2) ? 0xe0 : 0xd0) | reg, 1);
		return;
	default:
		insn->target = -1;
		put(insn, below(4) ? 0xc3 : 0xc2, 1);
		if (insn->bytes[0] == 0xc2)
			put(insn, 8 * below(3), 2);
		return;
	}
	put(insn, 0, 4);
}

static void insn_make(struct insn *insn, unsigned int nr)
{
	*insn = (struct insn){.target = -1};
	switch (below(15)) {
	case 10: from_calls(insn, nr); break;
	case 0:
	case 1:
	case 2:
		insn->conditional = below(12);
		insn->target = (int)(below(4) ? nr + 1 + below(3) : below(INSNS_MAX));
		put(insn, insn->conditional ? 0x70u | below(16) : 0xebu, 1);
		put(insn, 0, 1);
		break;
	case 3: from_address(insn); break;
	case 4:
		if (below(2)) {
			from_bytes(insn);
			break;
		}
		from_form(insn, &others[below(sizeof(others) / sizeof(others[0]))]);
		break;
	default: from_form(insn, &plain[below(sizeof(plain) / sizeof(plain[0]))]);
	}
}

static void write_target(struct insn *insn, unsigned int target, unsigned int behind)
{
	uint32_t value = insn->is_address ? AREA + target : target - behind;

	memcpy(insn->bytes + 1, &value, insn->is_address || insn->bytes[0] == 0xe8 ? 4 : 1);
}

static void snippet_make(void)
{
	unsigned int nr = 2 + below(INSNS_MAX - 1), at = 0, starts[INSNS_MAX + 2];
	struct insn insns[INSNS_MAX];

	for (unsigned int i = 0; i < nr; i++) {
		insn_make(&insns[i], i);
		starts[i] = at;
		at += insns[i].len;
	}
	starts[nr] = at;
	starts[nr + 1] = at + 1;
	memset(snippet.branch_len, 0, at + 3);
	memset(snippet.starts, 0, at);
	memset(snippet.starts + at, 1, 3);
	for (unsigned int i = 0; i < nr; i++) {
		int target = insns[i].target;

		if (target >= 0) {
			if ((unsigned int)target > nr)
				target = (int)nr;
			/* A branch to what is behind it would not show its way. */
			if (target == (int)i + 1)
				target++;
			write_target(&insns[i], starts[target], starts[i + 1]);
		}
		if (insns[i].conditional)
			snippet.branch_len[starts[i]] = (uint8_t)insns[i].len;
		memcpy(snippet.bytes + starts[i], insns[i].bytes, insns[i].len);
		snippet.starts[starts[i]] = true;
	}
	snippet.bytes[at] = snippet.bytes[at + 1] = 0x90;
	snippet.bytes[at + 2] = 0xc3; /* mostly to where there is no code */
	snippet.len = at + 3;
}

static const uint8_t *code_at(void *unused, uint64_t vaddr, size_t *avail)
{
	uint64_t off = vaddr - BIAS - AREA;

	(void)unused;
	if (off >= snippet.len)
		return NULL;
	*avail = snippet.len - off;
	return snippet.bytes + off;
}

static bool constant_at(void *unused, uint64_t vaddr, void *to, size_t size)
{
	uint64_t off = vaddr - BIAS - AREA - (AREA_SIZE - CONSTANTS_SIZE);

	(void)unused;
	if (off > CONSTANTS_SIZE - size)
		return false;
	memcpy(to, data + sizeof(data) - CONSTANTS_SIZE + off, size);
	return true;
}

static void on_insn(uc_engine *uc, uint64_t vaddr, uint32_t len, void *unused)
{
	(void)len;
	(void)unused;
	if (branch_behind && nr_ways < MP_FORESEE_WAYS)
		ways[nr_ways++] = (struct mp_foreseen_way){branch_at, vaddr != branch_behind};
	branch_behind = 0;
	if (vaddr < AREA || vaddr >= AREA + snippet.len || nr_ways == MP_FORESEE_WAYS) {
		uc_emu_stop(uc);
		return;
	}
	/* An address that an earlier snippet left somewhere. */
	if (!snippet.starts[vaddr - AREA]) {
		is_between = true;
		uc_emu_stop(uc);
		return;
	}
	branch_at = vaddr;
	if (snippet.branch_len[vaddr - AREA])
		branch_behind = vaddr + snippet.branch_len[vaddr - AREA];
}

/* Return: false if the snippet wrote into its own code, or went between its instructions. */
static bool emulate(uc_engine *uc, const uint64_t values[16])
{
	uint8_t bytes[CODE_SIZE];
	uint64_t flags = random64() & 0x8d5;

	uc_mem_write(uc, AREA, snippet.bytes, snippet.len);
	uc_ctl_remove_cache(uc, AREA, AREA + CODE_SIZE);
	for (unsigned int i = 0; i < 16; i++)
		uc_reg_write(uc, registers[i], &values[i]);
	uc_reg_write(uc, UC_X86_REG_EFLAGS, &flags);
	nr_ways = 0;
	branch_behind = 0;
	is_between = false;
	/* Faults end it earlier; what was executed until then is right. */
	emulating = 1;
	uc_emu_start(uc, AREA, AREA + CODE_SIZE, 0, EXECUTED_MAX);
	emulating = 0;
	return !is_between && !uc_mem_read(uc, AREA, bytes, snippet.len) &&
	       !memcmp(bytes, snippet.bytes, snippet.len);
}

__attribute__((noreturn)) static void differs(const uint64_t values[16], uint16_t known,
					      const struct mp_foreseen_way *found, unsigned int n)
{
	fprintf(stderr, "way %u: branch +%#" PRIx64 " %s, emulated +%#" PRIx64 " %s; known %#x\n",
		n, found[n].vaddr - BIAS - AREA, found[n].taken ? "taken" : "not taken",
		ways[n].vaddr - AREA, ways[n].taken ? "taken" : "not taken", known);
	for (unsigned int i = 0; i < snippet.len; i++)
		fprintf(stderr, "%s%02x", i ? " " : "code: ", snippet.bytes[i]);
	for (unsigned int i = 0; i < 16; i++)
		fprintf(stderr, "%s%#" PRIx64, i ? " " : "\nregisters: ", values[i]);
	die("\na difference");
}

/* Numbers, and addresses of the snippet's instructions to return to. */
static void stack_fill(uint64_t *stack)
{
	for (unsigned int i = 0; i < STACK_WORDS; i++) {
		unsigned int at = below(snippet.len);

		stack[i] = random_value();
		while (!snippet.starts[at])
			at = (at + 1) % snippet.len;
		if (!below(4))
			stack[i] = AREA + at;
	}
}

int main(int argc, char **argv)
{
	unsigned long nr = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000, nr_some = 0, nr_all = 0;
	struct mp_foresee_code code = {code_at, constant_at, NULL};
	struct mp_foreseen_way found[MP_FORESEE_WAYS];
	uint64_t values[16], stack[STACK_WORDS];
	uc_engine *uc;
	uc_hook hook;

	state = 0x9e3779b97f4a7c15 * (1 + (argc > 2 ? strtoul(argv[2], NULL, 10) : 0));
	if (uc_open(UC_ARCH_X86, UC_MODE_64, &uc) || uc_mem_map(uc, AREA, AREA_SIZE, UC_PROT_ALL) ||
	    uc_hook_add(uc, &hook, UC_HOOK_CODE, (void *)on_insn, NULL, 1, 0))
		die("no emulator");
	signal(SIGSEGV, on_crash);
	signal(SIGABRT, on_crash);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)random64();
	uc_mem_write(uc, AREA + CODE_SIZE, data, sizeof(data));
	/* Data as code would make the emulator crash. */
	uc_mem_protect(uc, AREA + CODE_SIZE, AREA_SIZE - CODE_SIZE, UC_PROT_READ | UC_PROT_WRITE);
	uc_mem_protect(uc, AREA + AREA_SIZE - CONSTANTS_SIZE, CONSTANTS_SIZE, UC_PROT_READ);
	for (unsigned long k = 0; k < nr; k++) {
		uint16_t known = below(2) ? 0xffff
					  : (uint16_t)(random64() | random64() | random64());
		struct mp_foresee_sample sample = {AREA + BIAS, BIAS, values, known, stack, 0};
		uint32_t nr_found, nr_both;

		snippet_make();
		for (unsigned int i = 0; i < 16; i++)
			values[i] = random_value();
		/* Registers near the stack's top make stores that other loads read. */
		if (below(4)) {
			values[4] = AREA + AREA_SIZE / 2 + (below(4) ? 0 : below(16));
			for (unsigned int i = below(8); i < 16; i += 1 + below(8))
				if (i != 4)
					values[i] = values[4] - 64 + below(256);
			stack_fill(stack);
			uc_mem_write(uc, values[4], stack, sizeof(stack));
			sample.nr_stack = below(STACK_WORDS + 1);
		}
		nr_found = mp_foresee(&code, &sample, found);
		if (!emulate(uc, values))
			continue;
		nr_both = nr_found < nr_ways ? nr_found : nr_ways;
		for (unsigned int i = 0; i < nr_both; i++)
			if (found[i].vaddr - BIAS != ways[i].vaddr ||
			    found[i].taken != ways[i].taken)
				differs(values, known, found, i);
		nr_some += nr_both > 0;
		nr_all += nr_both;
	}
	printf("%lu snippets, %lu with a way, %lu ways, all as emulated\n", nr, nr_some, nr_all);
	uc_close(uc);
	return 0;
}
