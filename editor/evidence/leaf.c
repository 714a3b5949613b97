// SPDX-License-Identifier: Apache-2.0
/* leaf - decodes with all operands, also those that an instruction does not name. */
#include "editor/evidence/leaf.h"

#include <Zydis/Zydis.h>

#include "editor/unwind/unwind.h"
#include "libprof/insn/decoder.h"
#include "libprof/insn/insn.h"

/* Bytes of endbr64. */
#define LANDING 4

static bool is_stack_pointer(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg) ==
	       ZYDIS_REGISTER_RSP;
}

/* Kinds of instructions whose whole effect is on registers, flags and the memory that they name. */
static bool is_known(const ZydisDecodedInstruction *z)
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

/* One instruction with all of its operands. */
struct full {
	ZydisDecodedInstruction z;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode(const uint8_t *bytes, uint64_t avail, struct full *f)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(mp_decoder(), bytes, avail, &f->z, f->op));
}

static bool names_stack_pointer(const struct full *f)
{
	for (int i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && is_stack_pointer(op->reg.value))
			return true;
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (is_stack_pointer(op->mem.base) || is_stack_pointer(op->mem.index)))
			return true;
	}
	return false;
}

bool me_leaf_is_plain(const struct mp_elf *elf, uint64_t vaddr, uint64_t size, uint64_t own,
		      uint64_t own_end)
{
	const uint8_t *bytes = mp_elf_bytes(elf, vaddr, size);
	struct mp_insn insn;
	struct full f;

	for (uint64_t off = 0; off < size; off += insn.len) {
		if (!bytes || mp_insn_decode(bytes + off, size - off, vaddr + off, &insn) ||
		    insn.kind != MP_INSN_OTHER || insn.endbr64 ||
		    !decode(bytes + off, size - off, &f))
			return false;
		if (!is_known(&f.z) || names_stack_pointer(&f))
			return false;
		if (insn.rip_relative &&
		    (f.z.address_width != 64 || (insn.target >= own && insn.target < own_end)))
			return false;
	}
	return bytes;
}

/* Does @block end in a plain return: `ret` or `rep ret`, as recommended for an old processor? */
static bool returns_plainly(const struct mp_cfg *cfg, const struct mp_block *block)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	const uint8_t *ret = bytes ? bytes + block->size - block->term_len : NULL;

	if (!ret || block->term != MP_TERM_RET)
		return false;
	return block->term_len == 1 ? ret[0] == 0xc3
				    : block->term_len == 2 && ret[0] == 0xf3 && ret[1] == 0xc3;
}

bool me_leaf_body(const struct mp_cfg *cfg, uint32_t func, struct me_leaf *leaf)
{
	const struct mp_func *f = &cfg->funcs[func];
	const struct mp_block *block = &cfg->blocks[f->first_block];
	uint64_t start = f->vaddr, size;
	const uint8_t *bytes;
	struct mp_insn insn;

	if (f->problem || f->nr_ranges != 1 || !f->nr_blocks || block->vaddr != start ||
	    f->flags & (MP_FUNC_SYSCALL | MP_FUNC_IFUNC | MP_FUNC_NORETURN | MP_FUNC_GET_PC |
			MP_FUNC_BARE | MP_FUNC_LABELS))
		return false;
	for (uint32_t b = 1; b < f->nr_blocks; b++)
		if (!(block[b].flags & MP_BLOCK_PADDING))
			return false;
	if (!returns_plainly(cfg, block) || block->flags & MP_BLOCK_STAYS)
		return false;
	size = block->size - block->term_len;
	bytes = mp_elf_bytes(cfg->elf, start, block->size);
	if (size >= LANDING && !mp_insn_decode(bytes, size, start, &insn) && insn.endbr64) {
		start += LANDING;
		size -= LANDING;
	}
	if (size > ME_LEAF_BODY_MAX)
		return false;
	*leaf = (struct me_leaf){start, func, (uint8_t)size, block->term_len};
	return true;
}

bool me_leaf_find(const struct mp_cfg *cfg, uint32_t func, struct me_leaf *leaf)
{
	const struct mp_func *f = &cfg->funcs[func];

	if (!me_leaf_body(cfg, func, leaf) ||
	    (leaf->size &&
	     !me_leaf_is_plain(cfg->elf, leaf->vaddr, leaf->size, f->vaddr, f->vaddr + f->size)))
		return false;
	return me_unwind_has_no_frame(cfg, func);
}

bool me_leaf_called(const struct mp_cfg *cfg, uint64_t vaddr, struct me_leaf *leaf)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, vaddr, ME_LEAF_CALL_SIZE);
	struct mp_insn insn;
	uint32_t func;

	if (!bytes || bytes[0] != 0xe8 || mp_insn_decode(bytes, ME_LEAF_CALL_SIZE, vaddr, &insn) ||
	    insn.kind != MP_INSN_CALL)
		return false;
	func = mp_cfg_func_at(cfg, insn.target);
	return func != MP_NONE && cfg->funcs[func].vaddr == insn.target &&
	       me_leaf_body(cfg, func, leaf);
}

/* Does the instruction name memory below the stack pointer, or may it? push and call do not count. */
static bool names_below(const struct full *f)
{
	for (int i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    op->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
		    is_stack_pointer(op->mem.base) &&
		    (op->mem.index != ZYDIS_REGISTER_NONE || op->mem.disp.value < 0))
			return true;
	}
	return false;
}

bool me_leaf_caller(const struct mp_cfg *cfg, uint32_t func)
{
	const struct mp_func *f = &cfg->funcs[func];
	struct full full;

	if (f->problem || f->flags & (MP_FUNC_BARE | MP_FUNC_GET_PC))
		return false;
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);

		if (block->flags & MP_BLOCK_PADDING)
			continue;
		for (uint32_t off = 0; off < block->size; off += full.z.length)
			if (!bytes || !decode(bytes + off, block->size - off, &full) ||
			    names_below(&full))
				return false;
	}
	return true;
}
