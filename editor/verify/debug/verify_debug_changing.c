// SPDX-License-Identifier: Apache-2.0
/*
 * verify_debug_changing - which registers the code in place of calls changes, if only for a while. The instructions are
 * the original's, as verify_pieces proves.
 */
#include <errno.h>

#include "editor/verify/debug/verify_debug_private.h"

#define VECTORS (UINT64_C(0xffff) << 17)
/* Registers that a called function need not keep: rax, rdx, rcx, rsi, rdi, r8 to r11, vectors. */
#define NOT_KEPT      (UINT64_C(0xf37) | VECTORS)
#define STACK_POINTER (UINT64_C(1) << 7)

/* The bit of a register, by the numbers of the System V ABI; 0: none that is told apart. */
static uint64_t bit_of(ZydisRegister reg)
{
	static const struct {
		ZydisRegister reg;
		unsigned int number;
	} numbers[] = {
		{ZYDIS_REGISTER_RAX, 0},  {ZYDIS_REGISTER_RDX, 1},  {ZYDIS_REGISTER_RCX, 2},
		{ZYDIS_REGISTER_RBX, 3},  {ZYDIS_REGISTER_RSI, 4},  {ZYDIS_REGISTER_RDI, 5},
		{ZYDIS_REGISTER_RBP, 6},  {ZYDIS_REGISTER_RSP, 7},  {ZYDIS_REGISTER_R8, 8},
		{ZYDIS_REGISTER_R9, 9},	  {ZYDIS_REGISTER_R10, 10}, {ZYDIS_REGISTER_R11, 11},
		{ZYDIS_REGISTER_R12, 12}, {ZYDIS_REGISTER_R13, 13}, {ZYDIS_REGISTER_R14, 14},
		{ZYDIS_REGISTER_R15, 15},
	};
	static const ZydisRegister vectors[] = {ZYDIS_REGISTER_XMM0, ZYDIS_REGISTER_YMM0,
						ZYDIS_REGISTER_ZMM0};
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].reg == whole)
			return UINT64_C(1) << numbers[i].number;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		if (whole >= vectors[i] && whole < vectors[i] + 16)
			return UINT64_C(1) << (17 + (whole - vectors[i]));
	return 0;
}

static uint64_t changed_by(const struct vf_full *f)
{
	uint64_t changed = 0;

	if (f->z.meta.category == ZYDIS_CATEGORY_CALL)
		return NOT_KEPT | STACK_POINTER;
	if (f->z.meta.category == ZYDIS_CATEGORY_STRINGOP)
		changed = bit_of(ZYDIS_REGISTER_RAX) | bit_of(ZYDIS_REGISTER_RCX) |
			  bit_of(ZYDIS_REGISTER_RSI) | bit_of(ZYDIS_REGISTER_RDI);
	if (f->z.mnemonic == ZYDIS_MNEMONIC_VZEROALL)
		changed = VECTORS;
	for (int i = 0; i < f->z.operand_count; i++)
		if (f->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    f->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			changed |= bit_of(f->op[i].reg.value);
	return changed;
}

/* The registers that the original of @p changes. *@size: its bytes up to a return. */
static uint64_t changed_in(const struct vf *vf, const struct mp_map_piece *p, uint64_t *size)
{
	uint64_t changed = 0;
	struct vf_full f;

	for (uint64_t k = 0; k < p->old_size; k += f.z.length) {
		*size = k;
		if (!vf_decode_full(vf, p->old_vaddr + k, p->old_vaddr + p->old_size, &f))
			return UINT64_MAX;
		/* The copy has no return. */
		if (f.z.meta.category == ZYDIS_CATEGORY_RET)
			return changed;
		changed |= changed_by(&f);
	}
	*size = p->old_size;
	return changed;
}

/* Find out about the code that begins with piece @first. */
static void find_code(struct vd *vd, uint32_t first)
{
	const struct vf *vf = vd->code;
	const struct mp_map_piece *pieces = vf->map->pieces;
	uint64_t changed = VD_OTHER_REGISTERS, size = 0;

	if (vf_lowers(vf, vf_inlined_caller(vf, &pieces[first])))
		changed |= STACK_POINTER;
	for (uint32_t i = first; i; i = vf->index.inlined[i].next)
		changed |= changed_in(vf, &pieces[i], &size) |
			   (vf_leaves(vf, &pieces[i]) ? NOT_KEPT : 0);
	for (uint32_t i = first; i; i = vf->index.inlined[i].next) {
		struct vd_changing *now = &vd->changing[i];

		*now = (struct vd_changing){changed, pieces[i].new_vaddr + pieces[i].new_size};
		if (!vf_is_last_part(vf, &pieces[i]) || vf_leaves(vf, &pieces[i]))
			continue;
		/* At its return, the called function has given all registers back that calls keep: the code ends there. */
		changed_in(vf, &pieces[i], &size);
		if (vf_raises(vf, &pieces[i], size))
			size += VF_RAISE_SIZE;
		now->end = pieces[i].new_vaddr + size;
	}
}

int vd_find_changing(struct vd *vd)
{
	const struct vf *vf = vd->code;
	bool any = false;

	for (uint32_t i = 1; i < vf->map->nr_pieces && !any; i++)
		any = vf->index.inlined[i].behind;
	if (!any)
		return 0;
	vd->changing = calloc((size_t)vf->map->nr_pieces + 1, sizeof(*vd->changing));
	if (!vd->changing)
		return -ENOMEM;
	for (uint32_t i = 1; i < vf->map->nr_pieces; i++)
		if (vf->index.inlined[i].behind == i)
			find_code(vd, i);
	return 0;
}

bool vd_any_changing(const struct vd *vd, uint64_t start, uint64_t end, uint64_t registers)
{
	const struct mp_map *map = vd->code->map;
	uint32_t i;

	if (!vd->changing || start >= end || !registers)
		return false;
	i = vf_first_piece(vd->code, start);
	/* The piece before may extend to @start, and so may those before empty ones. */
	while (i && map->pieces[i - 1].new_vaddr + map->pieces[i - 1].new_size > start &&
	       vd_spend(vd->work, 1))
		i--;
	for (; i < map->nr_pieces && map->pieces[i].new_vaddr < end && vd_spend(vd->work, 1); i++)
		if (vd->changing[i].registers & registers && vd->changing[i].end > start &&
		    vd->changing[i].end > map->pieces[i].new_vaddr)
			return true;
	return false;
}
