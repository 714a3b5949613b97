// SPDX-License-Identifier: Apache-2.0
/*
 * verify_marker_step - the markers of the original and all references to them, and what single
 * instructions do with them. Called by verify_marker.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/marker/verify_marker_private.h"
#include "editor/verify/read/verify_effect.h"
#include "libprof/base/search.h"

#define PREFIX	"__morph_marker_"
#define SECTION ".morph.markers"

/* ---- markers ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct vf_marker *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

/* Does a line of the section begin with the name? Link-time optimisation appends .lto_priv.0 to
 * symbols. */
static bool is_listed(const struct mp_elf *elf, const char *symbol)
{
	const struct mp_section *sec = mp_elf_section(elf, SECTION);
	const char *name = symbol + strlen(PREFIX);
	size_t len = strcspn(name, ".");
	const uint8_t *text = sec ? mp_elf_bytes(elf, sec->vaddr, sec->size) : NULL;

	for (uint64_t i = 0; text && i + len < sec->size; i++)
		if ((!i || text[i - 1] == '\n' || !text[i - 1]) && text[i + len] == '\t' &&
		    !memcmp(text + i, name, len))
			return true;
	return false;
}

int vf_markers_read(const struct vf *vf, struct vf_marker **markers, uint32_t *nr)
{
	const struct mp_elf *o = vf->o;

	*nr = 0;
	*markers = calloc((size_t)o->nr_symbols + 1, sizeof(**markers));
	if (!*markers)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->nr_symbols; i++) {
		const struct mp_symbol *s = &o->symbols[i];

		if (s->dynamic || s->bind != STB_LOCAL || s->type != STT_OBJECT ||
		    s->size != VF_MARKER_SIZE || s->shndx == SHN_UNDEF ||
		    s->shndx >= SHN_LORESERVE || !s->name ||
		    strncmp(s->name, PREFIX, strlen(PREFIX)))
			continue;
		(*markers)[(*nr)++] = (struct vf_marker){s->vaddr, is_listed(o, s->name), false};
	}
	qsort(*markers, *nr, sizeof(**markers), compare);
	return 0;
}

/* The first marker that ends behind @vaddr; its neighbours follow. */
static uint32_t first_marker(const struct vf_marker *markers, uint32_t nr, uint64_t vaddr)
{
	return mp_search(i, 0, nr, markers[i].vaddr + VF_MARKER_SIZE <= vaddr);
}

static void note_read(struct vf_marker *markers, uint32_t nr, uint64_t vaddr, uint64_t size)
{
	for (uint32_t i = first_marker(markers, nr, vaddr);
	     i < nr && markers[i].vaddr < vaddr + size; i++)
		markers[i].read = true;
}

/* ---- references ----------------------------------------------------------------------------- */

static uint64_t insn_holding(const struct vf *vf, uint64_t vaddr)
{
	for (uint64_t at = vaddr; at + 15 > vaddr; at--)
		if (vf_bits_get(&vf->old.grid, at))
			return at;
	return 0;
}

/* Every relocation that leads to a marker must stand in an instruction that was read as access. */
void vf_markers_find_references(const struct vf *vf, struct vf_marker *markers, uint32_t nr)
{
	const struct mp_elf *o = vf->o;

	for (uint32_t i = 0; i < o->nr_relocs; i++) {
		const struct mp_reloc *rel = &o->relocs[i];
		uint64_t to = rel->sym_value + (uint64_t)rel->addend;
		bool relative = rel->type != R_X86_64_64 && rel->type != R_X86_64_32 &&
				rel->type != R_X86_64_32S;
		uint32_t k = first_marker(markers, nr, to);
		struct vf_marker_step step;
		uint64_t at;

		if (k == nr || markers[k].vaddr >= to + (relative ? 12 : 1))
			continue;
		at = vf_is_text(vf, rel->vaddr) ? insn_holding(vf, rel->vaddr) : 0;
		if (at) {
			vf_marker_step_read(vf, markers, nr, at, vf->old.text_end, &step);
			if (step.marker != VF_NONE || relative)
				continue; /* another operand's real target was looked at */
		}
		if (!relative)
			note_read(markers, nr, to, 1);
		/* The field counts from the end of an instruction, which an immediate may end. */
		for (int imm = 0; relative && imm <= 4; imm++)
			note_read(markers, nr, to + 4 + (uint64_t)imm, 1);
	}
	for (uint32_t i = 0; i < o->nr_dyn_relocs; i++)
		note_read(markers, nr,
			  o->dyn_relocs[i].sym_value + (uint64_t)o->dyn_relocs[i].addend, 1);
}

/* ---- one instruction ------------------------------------------------------------------------ */

static bool is_vector(uint64_t value)
{
	return value & VF_MARKER_VECTORS(16);
}

static uint64_t value_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	ZydisRegisterClass class = ZydisRegisterGetClass(reg);

	if (whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15) {
		uint64_t both = VF_MARKER_REGS(VF_REG(ZydisRegisterGetId(whole)));

		if (class != ZYDIS_REGCLASS_GPR8)
			return both;
		return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH
			       ? both & ~UINT64_C(0xffff)
			       : both & 0xffff;
	}
	if ((class == ZYDIS_REGCLASS_XMM || class == ZYDIS_REGCLASS_YMM ||
	     class == ZYDIS_REGCLASS_ZMM) &&
	    ZydisRegisterGetId(reg) < 16)
		return UINT64_C(1) << (32 + ZydisRegisterGetId(reg));
	return 0;
}

/* Instructions that only compute: no trap for any operand, no state but registers and flags. */
static bool only_computes(const ZydisDecodedInstruction *z)
{
	if (z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    z->attributes & ZYDIS_ATTRIB_HAS_LOCK)
		return false;
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_SETCC: return true;
	default: break;
	}
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_CDQE:
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_ADC:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_SBB:
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_NEG:
	case ZYDIS_MNEMONIC_NOT:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_IMUL:
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_MOVDQA:
	case ZYDIS_MNEMONIC_MOVAPS:
	case ZYDIS_MNEMONIC_PADDD:
	case ZYDIS_MNEMONIC_PADDQ:
	case ZYDIS_MNEMONIC_PSUBD:
	case ZYDIS_MNEMONIC_PSUBQ:
	case ZYDIS_MNEMONIC_PXOR:
	case ZYDIS_MNEMONIC_PSHUFD:
	case ZYDIS_MNEMONIC_PSLLDQ:
	case ZYDIS_MNEMONIC_PSRLDQ:
	case ZYDIS_MNEMONIC_PUNPCKLDQ:
	case ZYDIS_MNEMONIC_PUNPCKHDQ:
	case ZYDIS_MNEMONIC_PUNPCKLQDQ:
	case ZYDIS_MNEMONIC_PUNPCKHQDQ: return true;
	default: return false;
	}
}

static void read_register(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op,
			  struct vf_marker_step *step)
{
	uint64_t value = value_of(op->reg.value);
	bool whole_vector =
		z->mnemonic == ZYDIS_MNEMONIC_MOVD || z->mnemonic == ZYDIS_MNEMONIC_MOVQ ||
		z->mnemonic == ZYDIS_MNEMONIC_MOVDQA || z->mnemonic == ZYDIS_MNEMONIC_MOVAPS ||
		z->mnemonic == ZYDIS_MNEMONIC_PSHUFD;

	if (!value && op->reg.value != ZYDIS_REGISTER_RIP &&
	    ZydisRegisterGetClass(op->reg.value) != ZYDIS_REGCLASS_FLAGS)
		step->may_go = false;
	if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		step->reads |= value;
	if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	step->sets |= value;
	if (op->actions & ZYDIS_OPERAND_ACTION_WRITE && z->meta.category != ZYDIS_CATEGORY_CMOV &&
	    z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && (!is_vector(value) || whole_vector))
		/* 16 bits replace more than the low byte, but not all of the rest. */
		step->replaces |= is_vector(value) || op->size >= 32 ? value : value & 0xffff;
	else
		step->reads |= value;
}

static void read_memory(const struct vf *vf, struct vf_marker *markers, uint32_t nr,
			const ZydisDecodedOperand *op, uint64_t end, struct vf_marker_step *step)
{
	uint64_t size = op->mem.type == ZYDIS_MEMOP_TYPE_AGEN || op->size < 8 ? 1 : op->size / 8;
	bool rip = op->mem.base == ZYDIS_REGISTER_RIP;
	bool fixed = (rip || op->mem.base == ZYDIS_REGISTER_NONE) &&
		     op->mem.index == ZYDIS_REGISTER_NONE && op->mem.segment != ZYDIS_REGISTER_FS &&
		     op->mem.segment != ZYDIS_REGISTER_GS;
	uint64_t at = (uint64_t)op->mem.disp.value + (rip ? end : 0);
	uint32_t k = fixed ? first_marker(markers, nr, at) : nr;

	step->reads |= value_of(op->mem.base) | value_of(op->mem.index);
	if (k < nr && markers[k].vaddr < at + size) {
		if (op->mem.type != ZYDIS_MEMOP_TYPE_AGEN && step->marker == VF_NONE &&
		    at >= markers[k].vaddr && at + size <= markers[k].vaddr + VF_MARKER_SIZE) {
			step->marker = k;
			step->reads_marker = op->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
			step->writes_marker = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
			return;
		}
		note_read(markers, nr, at, size); /* its address is taken, or a part of it */
	}
	if (op->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
		return;
	if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
		step->may_go = false;
	else if (fixed)
		step->may_go &= mp_elf_section_at(vf->o, at) &&
				mp_elf_section_at(vf->o, at + size - 1);
	else if (op->mem.base != ZYDIS_REGISTER_RSP || op->mem.index != ZYDIS_REGISTER_NONE ||
		 op->mem.disp.value < 0)
		step->may_go = false;
}

static uint64_t flags_of(uint32_t zydis)
{
	static const uint32_t flags[] = {ZYDIS_CPUFLAG_CF, ZYDIS_CPUFLAG_PF, ZYDIS_CPUFLAG_AF,
					 ZYDIS_CPUFLAG_ZF, ZYDIS_CPUFLAG_SF, ZYDIS_CPUFLAG_OF};
	uint64_t values = 0;

	for (unsigned int i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		values |= zydis & flags[i] ? UINT64_C(1) << (16 + i) : 0;
	return values;
}

/* The flags among @set that get new values whatever the operands are. */
static uint64_t flags_given(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op,
			    uint64_t set)
{
	const uint64_t carry = flags_of(ZYDIS_CPUFLAG_CF), zero = flags_of(ZYDIS_CPUFLAG_ZF),
		       by_result = zero | flags_of(ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_PF);
	uint64_t bits;

	if (z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return 0;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_UCOMISD: /* ZF, PF and CF by the comparison; OF, SF, AF become 0 */
	case ZYDIS_MNEMONIC_UCOMISS:
	case ZYDIS_MNEMONIC_COMISD:
	case ZYDIS_MNEMONIC_COMISS: return set;
	case ZYDIS_MNEMONIC_BT: /* ZF stays; OF, SF, AF, PF are undefined, so they may stay */
	case ZYDIS_MNEMONIC_BTC:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTS: return set & carry;
	case ZYDIS_MNEMONIC_BSF: /* older processors run tzcnt as bsf, which need not set CF */
	case ZYDIS_MNEMONIC_BSR:
	case ZYDIS_MNEMONIC_LZCNT:
	case ZYDIS_MNEMONIC_TZCNT: return set & zero;
	case ZYDIS_MNEMONIC_SAR: /* by fewer bits than there are, but not 0; AF, OF may be undefined */
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
		if (op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return 0;
		bits = op[1].imm.value.u % (op[0].size == 64 ? 64 : 32);
		return bits > 0 && bits < op[0].size ? set & (carry | by_result) : 0;
	default: break;
	}
	return z->meta.category == ZYDIS_CATEGORY_BINARY ||
			       z->meta.category == ZYDIS_CATEGORY_LOGICAL
		       ? set
		       : 0;
}

static void read_flags(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op,
		       struct vf_marker_step *step)
{
	const ZydisAccessedFlags *f = z->cpu_flags;
	uint64_t set;

	if (!f)
		return;
	set = flags_of(f->modified | f->set_0 | f->set_1 | f->undefined);
	step->reads |= flags_of(f->tested);
	step->sets |= set;
	step->replaces |= flags_given(z, op, set);
}

void vf_marker_step_read(const struct vf *vf, struct vf_marker *markers, uint32_t nr, uint64_t at,
			 uint64_t end, struct vf_marker_step *step)
{
	const uint8_t *bytes = mp_elf_bytes(vf->o, at, end - at);
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;

	if (!bytes)
		bytes = mp_elf_bytes(vf->o, at, 1);
	*step = (struct vf_marker_step){.marker = VF_NONE};
	if (!bytes ||
	    ZYAN_FAILED(ZydisDecoderDecodeFull(vf_full_decoder(), bytes, end - at, &z, op))) {
		step->reads = VF_MARKER_ALL;
		return;
	}
	if (z.mnemonic == ZYDIS_MNEMONIC_NOP || z.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
		return;
	step->may_go = only_computes(&z);
	for (uint8_t i = 0; i < z.operand_count; i++) {
		if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
			read_register(&z, &op[i], step);
		else if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			read_memory(vf, markers, nr, &op[i], at + z.length, step);
	}
	/* Zero does not depend on what was there. */
	if ((z.mnemonic == ZYDIS_MNEMONIC_XOR || z.mnemonic == ZYDIS_MNEMONIC_SUB ||
	     z.mnemonic == ZYDIS_MNEMONIC_PXOR) &&
	    z.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && op[0].size >= 32 &&
	    op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    op[1].type == ZYDIS_OPERAND_TYPE_REGISTER && op[0].reg.value == op[1].reg.value) {
		step->reads &= ~value_of(op[0].reg.value);
		step->replaces |= value_of(op[0].reg.value);
	}
	read_flags(&z, op, step);
	if (step->sets & VF_MARKER_REGS(VF_REG(4)))
		step->may_go = false;
}
