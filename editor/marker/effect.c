// SPDX-License-Identifier: Apache-2.0
/* effect - reads Zydis's operands. What is not certain counts as read and not replaced. Called by
 * slice. */
#include "editor/marker/effect.h"

#include <string.h>

enum {
	RSP = 4,
};

static const ZydisMnemonic pure_mnemonics[] = {
	ZYDIS_MNEMONIC_MOV,	   ZYDIS_MNEMONIC_ADD,	     ZYDIS_MNEMONIC_SUB,
	ZYDIS_MNEMONIC_INC,	   ZYDIS_MNEMONIC_DEC,	     ZYDIS_MNEMONIC_LEA,
	ZYDIS_MNEMONIC_NEG,	   ZYDIS_MNEMONIC_NOT,	     ZYDIS_MNEMONIC_AND,
	ZYDIS_MNEMONIC_OR,	   ZYDIS_MNEMONIC_XOR,	     ZYDIS_MNEMONIC_CMP,
	ZYDIS_MNEMONIC_TEST,	   ZYDIS_MNEMONIC_SHL,	     ZYDIS_MNEMONIC_SHR,
	ZYDIS_MNEMONIC_SAR,	   ZYDIS_MNEMONIC_IMUL,	     ZYDIS_MNEMONIC_MOVZX,
	ZYDIS_MNEMONIC_MOVSX,	   ZYDIS_MNEMONIC_MOVSXD,    ZYDIS_MNEMONIC_CDQE,
	ZYDIS_MNEMONIC_ADC,	   ZYDIS_MNEMONIC_SBB,	     ZYDIS_MNEMONIC_MOVD,
	ZYDIS_MNEMONIC_MOVQ,	   ZYDIS_MNEMONIC_MOVDQA,    ZYDIS_MNEMONIC_MOVAPS,
	ZYDIS_MNEMONIC_PADDQ,	   ZYDIS_MNEMONIC_PADDD,     ZYDIS_MNEMONIC_PSUBQ,
	ZYDIS_MNEMONIC_PSUBD,	   ZYDIS_MNEMONIC_PXOR,	     ZYDIS_MNEMONIC_PSHUFD,
	ZYDIS_MNEMONIC_PSRLDQ,	   ZYDIS_MNEMONIC_PSLLDQ,    ZYDIS_MNEMONIC_PUNPCKLQDQ,
	ZYDIS_MNEMONIC_PUNPCKHQDQ, ZYDIS_MNEMONIC_PUNPCKLDQ, ZYDIS_MNEMONIC_PUNPCKHDQ,
};

/* Does @m replace the whole of a vector register that is its first operand? */
static bool replaces_vector(ZydisMnemonic m)
{
	return m == ZYDIS_MNEMONIC_MOVD || m == ZYDIS_MNEMONIC_MOVQ || m == ZYDIS_MNEMONIC_MOVDQA ||
	       m == ZYDIS_MNEMONIC_MOVDQU || m == ZYDIS_MNEMONIC_MOVAPS ||
	       m == ZYDIS_MNEMONIC_MOVUPS || m == ZYDIS_MNEMONIC_PSHUFD;
}

static bool is_pure(const ZydisDecodedInstruction *z)
{
	if (z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    z->attributes & (ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
			     ZYDIS_ATTRIB_HAS_REPNE | ZYDIS_ATTRIB_HAS_SEGMENT))
		return false;
	if (z->meta.category == ZYDIS_CATEGORY_CMOV || z->meta.category == ZYDIS_CATEGORY_SETCC)
		return true;
	for (size_t i = 0; i < sizeof(pure_mnemonics) / sizeof(pure_mnemonics[0]); i++)
		if (z->mnemonic == pure_mnemonics[i])
			return true;
	return false;
}

static uint64_t place_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15) {
		uint64_t low = UINT64_C(1) << ZydisRegisterGetId(whole);

		if (reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH)
			return low << ME_PLACE_REST;
		return ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_GPR8 ? low
									 : ME_PLACES_WHOLE(low);
	}
	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_ZMM:
		return ZydisRegisterGetId(reg) < 16
			       ? UINT64_C(1) << (ME_PLACE_VECTOR + ZydisRegisterGetId(reg))
			       : 0;
	default: return 0;
	}
}

/* The places that the instruction writes for @op as a whole: they keep nothing of their values. */
static uint64_t replaced_by(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
	uint64_t place = place_of(op->reg.value);

	if (!(op->actions & ZYDIS_OPERAND_ACTION_WRITE) ||
	    z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    z->meta.category == ZYDIS_CATEGORY_CMOV)
		return 0;
	if (place >> ME_PLACE_VECTOR & 0xffff)
		return replaces_vector(z->mnemonic) ? place : 0;
	if (op->size >= 32)
		return place;
	/* The high byte is part of the rest; so is the second byte of 16 bits. */
	return place & 0xffff;
}

static bool is_harmless(ZydisRegister reg)
{
	return place_of(reg) || reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_NONE ||
	       ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_FLAGS;
}

static void add_register(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op,
			 struct me_effect *e)
{
	uint64_t place = place_of(op->reg.value);

	if (!is_harmless(op->reg.value))
		e->pure = false;
	if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		e->reads |= place;
	if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	e->sets |= place;
	e->kills |= replaced_by(z, op);
	/* A conditional move, or a part of a vector, may keep the old value. */
	if (!replaced_by(z, op) && (op->size >= 32 || place >> ME_PLACE_VECTOR & 0xffff))
		e->reads |= place;
}

/* Is this a read that cannot fail: of the file's memory at a fixed address, or of the frame? */
static bool is_safe_read(const struct mp_elf *elf, const ZydisDecodedOperand *op, bool fixed,
			 uint64_t vaddr)
{
	if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
		return false;
	if (fixed)
		return mp_elf_section_at(elf, vaddr) &&
		       mp_elf_section_at(elf, vaddr + op->size / 8 - 1);
	return op->mem.base == ZYDIS_REGISTER_RSP && op->mem.index == ZYDIS_REGISTER_NONE &&
	       op->mem.disp.value >= 0;
}

static void add_memory(const struct mp_elf *elf, const struct me_markers *markers,
		       const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op,
		       uint64_t vaddr, struct me_effect *e)
{
	bool rip = op->mem.base == ZYDIS_REGISTER_RIP;
	bool fixed = (rip || op->mem.base == ZYDIS_REGISTER_NONE) &&
		     op->mem.index == ZYDIS_REGISTER_NONE;
	uint64_t at = (uint64_t)op->mem.disp.value + (rip ? vaddr + z->length : 0);

	e->reads |= place_of(op->mem.base) | place_of(op->mem.index);
	if (op->mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
		if (fixed && me_marker_touches(markers, at, 1))
			e->touches = at;
		return;
	}
	if (fixed && op->mem.segment != ZYDIS_REGISTER_FS && op->mem.segment != ZYDIS_REGISTER_GS) {
		uint32_t marker = me_marker_at(markers, at, op->size / 8);

		if (marker != UINT32_MAX && e->marker == UINT32_MAX) {
			e->marker = marker;
			e->reads_marker = op->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
			e->writes_marker = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
			return;
		}
	}
	if (fixed && me_marker_touches(markers, at, op->size / 8 ? op->size / 8 : 1))
		e->touches = at;
	if (!is_safe_read(elf, op, fixed, at))
		e->pure = false;
}

static uint64_t flags_of(uint32_t flags)
{
	static const uint32_t order[] = {ZYDIS_CPUFLAG_CF, ZYDIS_CPUFLAG_PF, ZYDIS_CPUFLAG_AF,
					 ZYDIS_CPUFLAG_ZF, ZYDIS_CPUFLAG_SF, ZYDIS_CPUFLAG_OF};
	uint64_t places = 0;

	for (int i = 0; i < 6; i++)
		if (flags & order[i])
			places |= UINT64_C(1) << (ME_PLACE_FLAG + i);
	return places;
}

/* Is @z a shift of fixed length that changes flags? A shift by 0 changes none, and what a shift by
 * all bits of a short operand does is undefined. */
static bool is_fixed_shift(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
	uint64_t bits;

	if (z->meta.category != ZYDIS_CATEGORY_SHIFT || z->operand_count_visible != 2 ||
	    op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	bits = op[1].imm.value.u & (op[0].size == 64 ? 0x3f : 0x1f);
	return bits && bits < op[0].size;
}

/* The flags of @changed that @z replaces in every case. */
static uint64_t replaced_flags(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op,
			       uint64_t changed)
{
	/* The manuals leave all other flags undefined, so these flags may keep their old values. */
	static const struct {
		ZydisMnemonic mnemonic;
		uint32_t flags;
	} some[] = {
		{ZYDIS_MNEMONIC_BT, ZYDIS_CPUFLAG_CF},	  {ZYDIS_MNEMONIC_BTS, ZYDIS_CPUFLAG_CF},
		{ZYDIS_MNEMONIC_BTR, ZYDIS_CPUFLAG_CF},	  {ZYDIS_MNEMONIC_BTC, ZYDIS_CPUFLAG_CF},
		{ZYDIS_MNEMONIC_BSF, ZYDIS_CPUFLAG_ZF},	  {ZYDIS_MNEMONIC_BSR, ZYDIS_CPUFLAG_ZF},
		{ZYDIS_MNEMONIC_TZCNT, ZYDIS_CPUFLAG_ZF}, {ZYDIS_MNEMONIC_LZCNT, ZYDIS_CPUFLAG_ZF},
	};

	if (z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return 0;
	if (z->meta.category == ZYDIS_CATEGORY_BINARY || z->meta.category == ZYDIS_CATEGORY_LOGICAL)
		return changed;
	if (is_fixed_shift(z, op))
		return flags_of(ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_ZF |
				ZYDIS_CPUFLAG_SF) &
		       changed;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_COMISS:
	case ZYDIS_MNEMONIC_COMISD:
	case ZYDIS_MNEMONIC_UCOMISS:
	case ZYDIS_MNEMONIC_UCOMISD: return changed;
	default: break;
	}
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		if (z->mnemonic == some[i].mnemonic)
			return flags_of(some[i].flags) & changed;
	return 0;
}

static void add_flags(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op,
		      struct me_effect *e)
{
	const ZydisAccessedFlags *f = z->cpu_flags;
	uint64_t changed;

	if (!f)
		return;
	e->reads |= flags_of(f->tested);
	changed = flags_of(f->modified | f->set_0 | f->set_1 | f->undefined);
	e->sets |= changed;
	e->kills |= replaced_flags(z, op, changed);
}

/* The result of `xor %eax, %eax` does not depend on the old value. */
static void forget_zeroed(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op,
			  struct me_effect *e)
{
	if ((z->mnemonic != ZYDIS_MNEMONIC_XOR && z->mnemonic != ZYDIS_MNEMONIC_SUB &&
	     z->mnemonic != ZYDIS_MNEMONIC_PXOR) ||
	    op[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    op[1].type != ZYDIS_OPERAND_TYPE_REGISTER || op[0].reg.value != op[1].reg.value ||
	    op[0].size < 32 || z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return;
	e->reads &= ~place_of(op[0].reg.value);
	e->kills |= place_of(op[0].reg.value);
}

void me_effect_of(const ZydisDecoder *decoder, const struct mp_elf *elf,
		  const struct me_markers *markers, const uint8_t *bytes, size_t avail,
		  uint64_t vaddr, struct me_effect *out)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;

	*out = (struct me_effect){.marker = UINT32_MAX};
	if (!bytes || ZYAN_FAILED(ZydisDecoderDecodeFull(decoder, bytes, avail, &z, op))) {
		out->reads = ME_PLACES_ALL;
		return;
	}
	if (z.mnemonic == ZYDIS_MNEMONIC_NOP || z.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
		return;
	out->pure = is_pure(&z);
	for (uint8_t i = 0; i < z.operand_count; i++) {
		if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			add_memory(elf, markers, &z, &op[i], vaddr, out);
		else if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
			add_register(&z, &op[i], out);
	}
	forget_zeroed(&z, op, out);
	add_flags(&z, op, out);
	if (out->sets >> RSP & 1)
		out->pure = false;
}
