// SPDX-License-Identifier: Apache-2.0
/*
 * leaf_changed - the registers that a function in place of a call changes, if only for a while. Debug information must
 * not find the calling function's variables in them. Called by debug.
 */
#include "editor/rewrite/leaf_private.h"

enum { /* numbers of registers in DWARF (System V ABI, figure 3.36) */
	STACK_POINTER = 7,
	FIRST_VECTOR = 17,
	NR_VECTORS = 16,
};

#define VECTORS ((UINT64_C(0xffff)) << FIRST_VECTOR)
/* rax, rdx, rcx, rsi, rdi, r8 to r11, and all vectors */
#define NOT_KEPT_BY_CALLS (UINT64_C(0xf37) | VECTORS)
#define CHANGED_BY_CALLS  (NOT_KEPT_BY_CALLS | UINT64_C(1) << STACK_POINTER)
/* rax, rcx, rsi, rdi */
#define STRINGS UINT64_C(0x35)

/* DWARF numbers rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi otherwise than instructions do. */
static const uint8_t number_of[] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

static uint64_t bit_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	ZydisRegisterClass class = ZydisRegisterGetClass(whole);
	ZyanI8 id = ZydisRegisterGetId(whole);

	if (class == ZYDIS_REGCLASS_GPR64 && id >= 0 && id < 16)
		return UINT64_C(1) << number_of[id];
	if ((class == ZYDIS_REGCLASS_XMM || class == ZYDIS_REGCLASS_YMM ||
	     class == ZYDIS_REGCLASS_ZMM) &&
	    id >= 0 && id < NR_VECTORS)
		return UINT64_C(1) << (FIRST_VECTOR + id);
	return 0;
}

static uint64_t changed_by(const struct me_leaf_insn *f)
{
	uint64_t changed = 0;

	switch (f->z.meta.category) {
	case ZYDIS_CATEGORY_RET: return 0; /* it is not in the code in place of the call */
	case ZYDIS_CATEGORY_CALL: return CHANGED_BY_CALLS;
	case ZYDIS_CATEGORY_STRINGOP: changed = STRINGS; break;
	default: break;
	}
	if (f->z.mnemonic == ZYDIS_MNEMONIC_VZEROALL)
		changed = VECTORS;
	for (int i = 0; i < f->z.operand_count; i++)
		if (f->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    f->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			changed |= bit_of(f->op[i].reg.value);
	return changed;
}

uint64_t me_leaf_changed(const struct mp_elf *elf, const struct me_leaf *leaf)
{
	uint64_t changed = ME_CHANGED_OTHERS | (leaf->lowers ? UINT64_C(1) << STACK_POINTER : 0);
	struct me_leaf_insn f;

	for (uint8_t i = 0; i < leaf->nr_parts; i++) {
		const struct me_leaf_part *part = &leaf->parts[i];
		uint32_t size = (uint32_t)part->size + part->end_size;
		const uint8_t *bytes = mp_elf_bytes(elf, part->vaddr, size);

		for (uint32_t off = 0; off < size; off += f.z.length) {
			if (!bytes || !me_leaf_decode(bytes + off, size - off, &f))
				return UINT64_MAX;
			changed |= changed_by(&f);
		}
		if (part->tails)
			changed |= CHANGED_BY_CALLS;
	}
	return changed;
}
