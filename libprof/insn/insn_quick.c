// SPDX-License-Identifier: Apache-2.0
/*
 * insn_quick - decodes the most common instructions by a table, many times faster than
 * Zydis.
 * It knows simple forms only: at most one of the prefixes 66, f2, f3, then REX, then an
 * opcode of the one-byte or the 0F map. Everything else, valid or not, is left to Zydis.
 * Called by insn.
 */
#include "libprof/insn/insn_quick.h"

#include <string.h>

/* The bytes that follow the opcode, and the prefixes it may have. */
enum form {
	NONE = 0,	/* not in the table */
	PLAIN = 1 << 0, /* without 66, f2, f3 */
	P66 = 1 << 1,
	PF2 = 1 << 2,
	PF3 = 1 << 3,
	MODRM = 1 << 4,
	IMM8 = 1 << 5,
	IMMZ = 1 << 6,	/* 4 bytes; 2 with 66 and without REX.W */
	BARE = 1 << 7,	/* no prefix at all, no REX either */
	GROUP = 1 << 8, /* modrm.reg is part of the opcode: group_form() */
	IMMV = 1 << 9,	/* as IMMZ, but 8 with REX.W */
	REL = 1 << 10,	/* the immediate is a branch displacement */
	LEAD = 1 << 11, /* a prefix, not an opcode: 66, f2, f3, REX, 0f */
	KIND = 12,	/* enum mp_insn_kind from this bit on; MP_INSN_OTHER is none */
	RM = PLAIN | P66 | MODRM,
	SSE = PLAIN | P66 | PF2 | PF3 | MODRM,
};

#define ENDS(kind) (MP_INSN_##kind << KIND)

#define ALU(op)                                                                                    \
	[(op)] = RM, [(op) + 1] = RM, [(op) + 2] = RM, [(op) + 3] = RM,                            \
	[(op) + 4] = PLAIN | P66 | IMM8, [(op) + 5] = PLAIN | P66 | IMMZ

static const uint16_t one_byte[256] = {
	ALU(0x00),
	ALU(0x08),
	ALU(0x10),
	ALU(0x18),
	ALU(0x20),
	ALU(0x28),
	ALU(0x30),
	ALU(0x38),
	[0x0f] = LEAD,
	[0x40 ... 0x4f] = LEAD,
	[0x50 ... 0x5f] = PLAIN, /* push, pop */
	[0x63] = RM,		 /* movsxd */
	[0x66] = LEAD,
	[0x68] = PLAIN | IMMZ,
	[0x69] = RM | IMMZ,
	[0x6a] = PLAIN | IMM8,
	[0x6b] = RM | IMM8,
	[0x70 ... 0x7f] = BARE | IMM8 | REL | ENDS(COND),
	[0x80] = RM | IMM8,
	[0x81] = RM | IMMZ,
	[0x83] = RM | IMM8,
	[0x84 ... 0x8b] = RM, /* test, xchg, mov */
	[0x8d] = RM | GROUP,  /* lea */
	[0x90] = BARE,	      /* nop */
	[0x98 ... 0x99] = PLAIN | P66,
	[0xa8] = PLAIN | P66 | IMM8,
	[0xa9] = PLAIN | P66 | IMMZ,
	[0xb0 ... 0xb7] = PLAIN | IMM8,
	[0xb8 ... 0xbf] = PLAIN | P66 | IMMV,
	[0xc0 ... 0xc1] = RM | IMM8 | GROUP, /* shifts */
	[0xc3] = BARE | ENDS(RET),
	[0xc6] = RM | IMM8 | GROUP,
	[0xc7] = RM | IMMZ | GROUP,
	[0xd0 ... 0xd3] = RM | GROUP, /* shifts */
	[0xe8] = BARE | IMMZ | REL | ENDS(CALL),
	[0xe9] = BARE | IMMZ | REL | ENDS(JUMP),
	[0xeb] = BARE | IMM8 | REL | ENDS(JUMP),
	[0xf2 ... 0xf3] = LEAD,
	[0xf6] = RM | GROUP,
	[0xf7] = RM | GROUP,
	[0xfe] = RM | GROUP,
	[0xff] = PLAIN | MODRM | GROUP,
};

static const uint16_t two_byte[256] = {
	[0x0b] = BARE | ENDS(TRAP), /* ud2 */
	[0x10 ... 0x11] = SSE,
	[0x1f] = RM | GROUP, /* nop */
	[0x28 ... 0x29] = RM,
	[0x2a] = PF2 | PF3 | MODRM, /* cvtsi2ss, cvtsi2sd */
	[0x2c ... 0x2d] = PF2 | PF3 | MODRM,
	[0x2e ... 0x2f] = RM,
	[0x40 ... 0x4f] = RM, /* cmov */
	[0x51] = SSE,
	[0x54 ... 0x57] = RM,
	[0x58 ... 0x59] = SSE,
	[0x5a] = SSE,
	[0x5c ... 0x5f] = SSE,
	[0x60 ... 0x62] = P66 | MODRM,
	[0x6c ... 0x6d] = P66 | MODRM,
	[0x6e] = P66 | MODRM,
	[0x6f] = P66 | PF3 | MODRM,
	[0x70] = P66 | MODRM | IMM8,
	[0x74 ... 0x76] = P66 | MODRM,
	[0x7e] = P66 | PF3 | MODRM,
	[0x7f] = P66 | PF3 | MODRM,
	[0x80 ... 0x8f] = BARE | IMMZ | REL | ENDS(COND),
	[0x90 ... 0x9f] = PLAIN | MODRM, /* set */
	[0xa3] = RM,
	[0xa4] = RM | IMM8,
	[0xa5] = RM,
	[0xab] = RM,
	[0xac] = RM | IMM8,
	[0xad] = RM,
	[0xaf] = RM,
	[0xb3] = RM,
	[0xb6 ... 0xb7] = RM,
	[0xba] = RM | IMM8 | GROUP,
	[0xbb] = RM,
	[0xbc ... 0xbd] = PLAIN | P66 | PF3 | MODRM,
	[0xbe ... 0xbf] = RM,
	[0xc6] = RM | IMM8,
	[0xc8 ... 0xcf] = PLAIN, /* bswap */
	[0xd4] = P66 | MODRM,
	[0xd6] = P66 | MODRM,
	[0xdb] = P66 | MODRM,
	[0xdf] = P66 | MODRM,
	[0xeb] = P66 | MODRM,
	[0xef] = P66 | MODRM,
	[0xf8 ... 0xfe] = P66 | MODRM,
};

/* Form of an opcode that also depends on modrm.reg or modrm.mod; NONE: not in the table. */
static inline uint16_t group_form(bool map_0f, uint8_t op, uint8_t modrm, uint16_t form)
{
	uint8_t reg = modrm >> 3 & 7;
	bool memory = modrm < 0xc0;

	if (map_0f) {
		switch (op) {
		case 0x1f: return reg == 0 ? form : NONE;
		case 0xba: return reg >= 4 ? form : NONE;
		default: return NONE;
		}
	}
	switch (op) {
	case 0x8d: return memory ? form : NONE;
	case 0xc0:
	case 0xc1:
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3: return reg == 6 ? NONE : form;
	case 0xc6:
	case 0xc7:
	case 0xfe: return reg == 0 || (op == 0xfe && reg == 1) ? form : NONE;
	case 0xf6: return reg == 1 ? NONE : reg == 0 ? form | IMM8 : form;
	case 0xf7: return reg == 1 ? NONE : reg == 0 ? form | IMMZ : form;
	case 0xff:
		if (reg == 2 || reg == 4)
			return form | (reg == 2 ? ENDS(ICALL) : ENDS(IJUMP));
		return reg == 3 || reg == 5 || reg == 7 ? NONE : form;
	default: return NONE;
	}
}

/* Bytes of SIB and displacement behind modrm; *@disp_size: 0, 1 or 4 of them are displacement. */
static inline size_t memory_size(const uint8_t *p, uint8_t modrm, uint8_t *disp_size)
{
	uint8_t mod = modrm >> 6, rm = modrm & 7;
	size_t sib = mod != 3 && rm == 4;

	*disp_size = mod == 1 ? 1 : mod == 2 ? 4 : 0;
	if (mod == 0 && (rm == 5 || (sib && (p[0] & 7) == 5)))
		*disp_size = 4;
	return sib + *disp_size;
}

static uint8_t immediate_size(uint16_t form, bool p66, bool wide)
{
	if (!(form & (IMM8 | IMMZ | IMMV)))
		return 0;
	if (form & IMM8)
		return 1;
	if (form & IMMV && wide)
		return 8;
	return p66 && !wide ? 2 : 4;
}

/* The instruction's 32-bit displacement ends at @end. */
static inline void set_displacement(struct mp_insn *insn, const uint8_t *bytes, const uint8_t *end,
				    uint8_t modrm)
{
	int32_t disp;

	if ((modrm & 0xc7) != 0x05) {
		insn->mem_disp_off = (uint8_t)(end - 4 - bytes);
		return;
	}
	insn->rip_relative = true;
	insn->disp_off = (uint8_t)(end - 4 - bytes);
	insn->disp_size = 4;
	memcpy(&disp, end - 4, sizeof(disp));
	insn->target = insn->vaddr + insn->len + (uint64_t)(int64_t)disp;
}

/* Prefixes, opcode and modrm. */
struct head {
	uint16_t prefix, form;
	uint8_t op, modrm, rex;
	bool map_0f;
};

/* Return: what stands behind the head; NULL: it is not in the tables. */
static inline __attribute__((always_inline)) const uint8_t *read_head(const uint8_t *p,
								      struct head *h)
{
	*h = (struct head){.prefix = PLAIN, .form = one_byte[*p]};
	if (h->form & LEAD) {
		if (*p == 0x66 || *p == 0xf2 || *p == 0xf3) {
			h->prefix = *p == 0x66 ? P66 : *p == 0xf2 ? PF2 : PF3;
			p++;
		}
		if ((*p & 0xf0) == 0x40)
			h->rex = *p++;
		h->map_0f = *p == 0x0f;
		p += h->map_0f;
		h->form = h->map_0f ? two_byte[*p] : one_byte[*p];
	}
	h->op = *p++;
	if (h->form & BARE ? h->prefix != PLAIN || h->rex : !(h->form & h->prefix))
		return NULL;
	if (h->form & MODRM) {
		h->modrm = *p++;
		if (h->form & GROUP) {
			h->form = group_form(h->map_0f, h->op, h->modrm, h->form);
			if (h->form == NONE)
				return NULL;
		}
	}
	return p;
}

/* endbr64, with which functions begin */
static bool is_landing(const uint8_t *bytes, uint64_t vaddr, struct mp_insn *insn)
{
	if (memcmp(bytes, "\xf3\x0f\x1e\xfa", 4))
		return false;
	*insn = (struct mp_insn){.vaddr = vaddr, .len = 4, .endbr64 = true};
	return true;
}

static bool decode(const uint8_t *bytes, uint64_t vaddr, struct mp_insn *insn)
{
	uint8_t disp_size = 0, imm_size;
	struct head h;
	const uint8_t *p = read_head(bytes, &h);

	if (!p)
		return is_landing(bytes, vaddr, insn);
	memset(insn, 0, sizeof(*insn));
	if (h.form & MODRM)
		p += memory_size(p, h.modrm, &disp_size);
	imm_size = immediate_size(h.form, h.prefix == P66, h.rex & 8);
	insn->vaddr = vaddr;
	insn->len = (uint8_t)(p + imm_size - bytes);
	insn->kind = (uint8_t)(h.form >> KIND);
	insn->nop = h.op == (h.map_0f ? 0x1f : 0x90);
	if (disp_size == 4)
		set_displacement(insn, bytes, p, h.modrm);
	if (!imm_size)
		return true;
	if (h.form & REL) {
		int32_t rel = (int8_t)*p;

		if (imm_size == 4)
			memcpy(&rel, p, sizeof(rel));
		insn->disp_off = (uint8_t)(p - bytes);
		insn->disp_size = imm_size;
		insn->target = vaddr + insn->len + (uint64_t)(int64_t)rel;
		insn->cc = insn->kind == MP_INSN_COND ? h.op & 15 : 0;
	} else {
		insn->imm_off = (uint8_t)(p - bytes);
		insn->imm_size = imm_size;
	}
	return true;
}

/* More bytes than the tables can describe. */
enum {
	LONGEST = 32
};

static __attribute__((noinline)) const uint8_t *end_padded(const uint8_t *bytes, size_t avail,
							   uint8_t *copy)
{
	memset(copy, 0, LONGEST);
	/*
	 * Half of all calls come here, since blocks are short. So copy 8 bytes twice: copies
	 * of a fixed size take only four instructions.
	 */
	if (avail >= 8) {
		memcpy(copy, bytes, 8);
		memcpy(copy + avail - 8, bytes + avail - 8, 8);
	} else if (avail >= 4) {
		memcpy(copy, bytes, 4);
		memcpy(copy + avail - 4, bytes + avail - 4, 4);
	} else {
		memcpy(copy, bytes, avail);
	}
	return copy;
}

bool mp_insn_decode_quick(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct mp_insn *insn)
{
	uint8_t copy[LONGEST];

	/* 16 bytes hold every form in the tables; at the end of the code, read a padded copy. */
	if (avail < 16)
		bytes = end_padded(bytes, avail, copy);
	return decode(bytes, vaddr, insn) && insn->len <= avail;
}

#define REG(n) ((uint16_t)(1u << (n)))
/* The first four registers of 8 bits, and, without REX, bits 8 to 15 of them. */
#define REG8(n) ((uint16_t)(REG(n) | REG((n)&3)))

/* Registers that an opcode uses without naming them, or names by its own bits. */
static uint16_t opcode_registers(const struct head *h)
{
	uint16_t named = REG((h->op & 7) | (h->rex & 1) << 3);

	if (h->map_0f)
		return (h->op & 0xf8) == 0xc8 ? named : h->op == 0xa5 || h->op == 0xad ? REG(1) : 0;
	switch (h->op) {
	case 0x00 ... 0x3f: return (h->op & 7) >= 4 ? REG(0) : 0;
	case 0x50 ... 0x5f: return named | REG(MP_INSN_SP);
	case 0x68:
	case 0x6a: return REG(MP_INSN_SP);
	case 0x98:
	case 0x99:
	case 0xf6:
	case 0xf7: return REG(0) | REG(2);
	case 0xa8:
	case 0xa9: return REG(0);
	case 0xb0 ... 0xb7: return named | REG8(h->op & 7);
	case 0xb8 ... 0xbf: return named;
	case 0xd2:
	case 0xd3: return REG(1);
	case 0xff: return REG(MP_INSN_SP); /* push */
	default: return 0;
	}
}

/* Does modrm.reg tell operations apart, rather than name a register? */
static bool is_group(const struct head *h)
{
	return h->map_0f ? h->op == 0xba
			 : (h->form & GROUP && h->op != 0x8d) || (h->op & 0xfc) == 0x80;
}

bool mp_insn_operands(const uint8_t *bytes, const struct mp_insn *insn, struct mp_insn_operands *o)
{
	struct head h;
	const uint8_t *p;
	uint8_t disp_size, rm, reg, mod;

	if (insn->kind != MP_INSN_OTHER)
		return false;
	*o = (struct mp_insn_operands){0, MP_INSN_NO_REG, MP_INSN_NO_REG, 0};
	if (insn->endbr64)
		return true;
	p = read_head(bytes, &h);
	if (!p)
		return false;
	o->registers = opcode_registers(&h);
	if (!(h.form & MODRM))
		return true;
	mod = h.modrm >> 6;
	reg = (uint8_t)((h.modrm >> 3 & 7) | (h.rex & 4) << 1);
	rm = (uint8_t)((h.modrm & 7) | (h.rex & 1) << 3);
	if (!is_group(&h))
		o->registers |= h.rex ? REG(reg) : REG(reg) | REG8(reg);
	if (mod == 3) {
		o->registers |= h.rex ? REG(rm) : REG(rm) | REG8(rm);
		return true;
	}
	if ((h.modrm & 7) == 4) {
		uint8_t index = (uint8_t)((*p >> 3 & 7) | (h.rex & 2) << 2);

		o->index = index == MP_INSN_SP ? MP_INSN_NO_REG : index;
		o->base = (*p & 7) == 5 && !mod ? MP_INSN_NO_REG
						: (uint8_t)((*p & 7) | (h.rex & 1) << 3);
	} else if (mod || (h.modrm & 7) != 5) {
		o->base = rm;
	}
	p += memory_size(p, h.modrm, &disp_size);
	if (disp_size == 1)
		o->disp = (int8_t)p[-1];
	else if (disp_size == 4)
		memcpy(&o->disp, p - 4, sizeof(o->disp));
	if (o->base != MP_INSN_NO_REG)
		o->registers |= REG(o->base);
	if (o->index != MP_INSN_NO_REG)
		o->registers |= REG(o->index);
	return true;
}
