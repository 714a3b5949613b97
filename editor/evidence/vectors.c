// SPDX-License-Identifier: Apache-2.0
/* vectors - finds a vector register that no instruction names. Called by number. */
#include "editor/evidence/vectors.h"

#include <Zydis/Zydis.h>

#define ALL 0xff00u

/* Instructions that save or load the whole state access more registers than their operands
 * name. */
static bool takes_all(const ZydisDecodedInstruction *z)
{
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_XSAVE:
	case ZYDIS_CATEGORY_XSAVEOPT: return true;
	default: break;
	}
	return z->meta.isa_set == ZYDIS_ISA_SET_FXSAVE ||
	       z->meta.isa_set == ZYDIS_ISA_SET_FXSAVE64 ||
	       z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
}

static uint32_t named_by(const ZydisDecoder *decoder, const ZydisDecoderContext *context,
			 const ZydisDecodedInstruction *z)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	uint32_t mask = 0;

	if (takes_all(z))
		return ALL;
	/* Without REX.R or REX.B an instruction cannot name xmm8 to xmm15. */
	if (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT || !(z->raw.rex.R || z->raw.rex.B))
		return 0;
	if (ZYAN_FAILED(
		    ZydisDecoderDecodeOperands(decoder, context, z, operands, z->operand_count)))
		return ALL;
	for (uint8_t i = 0; i < z->operand_count; i++) {
		ZydisRegister reg = operands[i].reg.value;

		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER && reg >= ZYDIS_REGISTER_XMM8 &&
		    reg <= ZYDIS_REGISTER_XMM15)
			mask |= 1u << (8 + (reg - ZYDIS_REGISTER_XMM8));
	}
	return mask;
}

static uint32_t named_in(const ZydisDecoder *decoder, const uint8_t *bytes, uint64_t size)
{
	uint32_t mask = 0;

	for (uint64_t at = 0; at < size && mask != ALL;) {
		ZydisDecoderContext context;
		ZydisDecodedInstruction z;

		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder, &context, bytes + at,
							      size - at, &z)))
			return ALL;
		mask |= named_by(decoder, &context, &z);
		at += z.length;
	}
	return mask;
}

uint8_t me_vectors_unnamed(const struct mp_elf *elf)
{
	ZydisDecoder decoder;
	uint32_t mask = elf->nr_sections ? 0 : ALL;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t i = 0; i < elf->nr_sections; i++) {
		const struct mp_section *s = &elf->sections[i];
		const uint8_t *bytes;

		if (!(s->flags & SHF_EXECINSTR) || s->type != SHT_PROGBITS || !s->size)
			continue;
		bytes = mp_elf_bytes(elf, s->vaddr, s->size);
		mask |= bytes ? named_in(&decoder, bytes, s->size) : ALL;
	}
	for (uint8_t v = 15; v >= 8; v--)
		if (!(mask >> v & 1))
			return v;
	return ME_NO_VECTOR;
}
