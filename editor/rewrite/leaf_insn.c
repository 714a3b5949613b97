// SPDX-License-Identifier: Apache-2.0
/* leaf_insn - what a single instruction of a leaf may be. */
#include "editor/rewrite/leaf_private.h"
#include "libprof/insn/decoder.h"

bool me_leaf_is_stack_pointer(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg) ==
	       ZYDIS_REGISTER_RSP;
}

bool me_leaf_is_known(const ZydisDecodedInstruction *z)
{
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_AVX:
	case ZYDIS_CATEGORY_AVX2:
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_BITBYTE:
	case ZYDIS_CATEGORY_BMI1:
	case ZYDIS_CATEGORY_BMI2:
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_CONVERT:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_LOGICAL_FP:
	case ZYDIS_CATEGORY_LZCNT:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_PREFETCH:
	case ZYDIS_CATEGORY_ROTATE:
	case ZYDIS_CATEGORY_SEMAPHORE:
	case ZYDIS_CATEGORY_SETCC:
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_SSE:
	case ZYDIS_CATEGORY_STRINGOP:
	case ZYDIS_CATEGORY_WIDENOP:
	case ZYDIS_CATEGORY_X87_ALU: return true;
	case ZYDIS_CATEGORY_MISC: return z->mnemonic == ZYDIS_MNEMONIC_LEA;
	default: return false;
	}
}

bool me_leaf_decode(const uint8_t *bytes, uint64_t avail, struct me_leaf_insn *f)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(mp_decoder(), bytes, avail, &f->z, f->op));
}

bool me_leaf_is_simple(const uint8_t *bytes, const struct mp_insn *insn)
{
	struct mp_insn_operands o;

	return mp_insn_operands(bytes, insn, &o) && !(o.registers >> MP_INSN_SP & 1);
}

bool me_leaf_is_own(const struct mp_cfg *cfg, uint32_t func, uint64_t vaddr)
{
	const struct mp_func *f = &cfg->funcs[func];

	for (uint32_t i = f->first_range; i < f->first_range + f->nr_ranges; i++)
		if (vaddr - cfg->ranges[i].start < cfg->ranges[i].size)
			return true;
	return false;
}
