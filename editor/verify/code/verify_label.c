// SPDX-License-Identifier: Apache-2.0
/*
 * verify_label - for functions that keep addresses inside themselves and jump through a
 * register: decides whether these addresses are labels (GNU C), the only targets of the jumps,
 * or the base of a computation. Reads the instructions before each jump and behind each
 * operand. Called by verify_scan.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/code/verify_label.h"
#include "libprof/base/grow.h"

/* Number of instructions that are read before a jump, and behind an operand. */
#define BEFORE 24
#define BEHIND 64
/* Number of words that are read of a possible table of differences. */
#define DIFFERENCES 8

struct full {
	uint64_t at;
	ZydisDecodedInstruction z;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode(const struct vf *vf, const struct vf_fde *fde, uint64_t at, struct full *f)
{
	uint64_t avail = fde->start + fde->size - at;
	const uint8_t *p = mp_elf_bytes(vf->o, at, avail);

	f->at = at;
	return p && ZYAN_SUCCESS(ZydisDecoderDecodeFull(vf_full_decoder(), p, avail, &f->z, f->op));
}

static ZydisRegister whole(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

static bool sets(const struct full *f, ZydisRegister reg)
{
	for (uint8_t i = 0; i < f->z.operand_count; i++)
		if (f->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    f->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    whole(f->op[i].reg.value) == reg)
			return true;
	return false;
}

/* Address of the instruction before @at; 0: none falls through to @at. */
static uint64_t before(const struct vf *vf, const struct vf_fde *fde, uint64_t at, struct full *f)
{
	for (uint64_t k = at; k-- > fde->start && at - k <= 15;) {
		if (!vf_bits_get(&vf->old.grid, k))
			continue;
		if (!decode(vf, fde, k, f) || f->z.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
		    f->z.meta.category == ZYDIS_CATEGORY_RET)
			return 0;
		return k;
	}
	return 0;
}

/* *@f: the last instruction before @at that sets @reg. Return: false: none was found. */
static bool find_setter(const struct vf *vf, const struct vf_fde *fde, uint64_t at,
			ZydisRegister reg, struct full *f)
{
	for (unsigned int n = 0; n < BEFORE; n++) {
		at = before(vf, fde, at, f);
		if (!at)
			return false;
		if (sets(f, reg))
			return true;
		/* A callee may set it. */
		if (f->z.meta.category == ZYDIS_CATEGORY_CALL)
			return false;
	}
	return false;
}

enum target {
	TARGET_VALUE, /* loaded, kept in a register, or a sum with what was loaded */
	TARGET_COMPUTED,
};

/* Does it load 4 bytes: a difference of labels, or a switch's offset? */
static bool loads_difference(const struct full *f)
{
	return (f->z.mnemonic == ZYDIS_MNEMONIC_MOVSXD || f->z.mnemonic == ZYDIS_MNEMONIC_MOV) &&
	       f->op[1].type == ZYDIS_OPERAND_TYPE_MEMORY && f->op[1].size == 32;
}

static bool is_difference(const struct vf *vf, const struct vf_fde *fde, uint64_t at,
			  ZydisRegister reg, bool *known)
{
	struct full f;

	*known = find_setter(vf, fde, at, reg, &f);
	/* cltq */
	if (*known && f.z.mnemonic == ZYDIS_MNEMONIC_CDQE)
		*known = find_setter(vf, fde, f.at, reg, &f);
	if (*known && f.z.mnemonic == ZYDIS_MNEMONIC_MOVSXD &&
	    f.op[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
		*known = find_setter(vf, fde, f.at, whole(f.op[1].reg.value), &f);
	return *known && loads_difference(&f);
}

static enum target of_sum(const struct vf *vf, const struct vf_fde *fde, uint64_t at,
			  ZydisRegister a, ZydisRegister b)
{
	bool known_a, known_b;

	if (is_difference(vf, fde, at, a, &known_a) || is_difference(vf, fde, at, b, &known_b))
		return TARGET_VALUE;
	/* If not both setters are known, a callee may have set one. */
	return known_a && known_b ? TARGET_COMPUTED : TARGET_VALUE;
}

static enum target target_of(const struct vf *vf, const struct vf_fde *fde, uint64_t at,
			     ZydisRegister reg)
{
	struct full f;

	for (unsigned int n = 0; n < BEFORE; n++) {
		if (!find_setter(vf, fde, at, reg, &f))
			return TARGET_VALUE;
		at = f.at;
		switch (f.z.mnemonic) {
		case ZYDIS_MNEMONIC_ADD:
			if (f.op[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
				return TARGET_COMPUTED;
			return of_sum(vf, fde, at, reg, whole(f.op[1].reg.value));
		case ZYDIS_MNEMONIC_LEA:
			if (f.op[1].mem.base == ZYDIS_REGISTER_RIP)
				return TARGET_VALUE;
			if (f.op[1].mem.index == ZYDIS_REGISTER_NONE || f.op[1].mem.scale != 1 ||
			    f.op[1].mem.base == ZYDIS_REGISTER_NONE || f.op[1].mem.disp.value)
				return TARGET_COMPUTED;
			return of_sum(vf, fde, at, f.op[1].mem.base, f.op[1].mem.index);
		case ZYDIS_MNEMONIC_MOV:
			if (f.op[1].type == ZYDIS_OPERAND_TYPE_REGISTER && f.op[1].size == 64 &&
			    ZydisRegisterGetClass(f.op[1].reg.value) == ZYDIS_REGCLASS_GPR64) {
				reg = f.op[1].reg.value;
				break;
			}
			/* An immediate is no computed address. */
			return f.op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE || f.op[0].size == 64
				       ? TARGET_VALUE
				       : TARGET_COMPUTED;
		default:
			/* cmov chooses one of two values. */
			return f.z.meta.category == ZYDIS_CATEGORY_CMOV ? TARGET_VALUE
									: TARGET_COMPUTED;
		}
	}
	return TARGET_VALUE;
}

/* @lea names a place in its own function. Does code behind it read data there? */
static bool is_read(const struct vf *vf, const struct vf_fde *fde, const struct full *lea)
{
	ZydisRegister reg = whole(lea->op[0].reg.value);
	uint64_t at = lea->at + lea->z.length, end = fde->start + fde->size;
	struct full f;

	for (unsigned int n = 0; n < BEHIND && at < end && decode(vf, fde, at, &f); n++) {
		for (uint8_t i = 0; i < f.z.operand_count; i++) {
			const ZydisDecodedOperand *op = &f.op[i];

			/* A no-op has an operand, but reads nothing. */
			if (f.z.mnemonic != ZYDIS_MNEMONIC_NOP &&
			    op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
			    op->mem.type == ZYDIS_MEMOP_TYPE_MEM &&
			    (op->mem.base == reg || op->mem.index == reg))
				return true;
		}
		if (sets(&f, reg) || f.z.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
		    f.z.meta.category == ZYDIS_CATEGORY_RET)
			return false;
		at += f.z.length;
	}
	return false;
}

/* Are all addresses that @fde takes inside itself labels? Immediates are not looked at. */
static bool keeps_labels(const struct vf *vf, struct vf_fde *fde)
{
	uint64_t end = fde->start + fde->size;

	for (uint64_t at = fde->start; at < end; at = vf_bits_next(&vf->old.grid, at + 1, end)) {
		struct full f;

		if (!decode(vf, fde, at, &f))
			return false;
		if (f.z.mnemonic == ZYDIS_MNEMONIC_LEA && f.op[1].mem.base == ZYDIS_REGISTER_RIP) {
			uint64_t to = at + f.z.length + (uint64_t)f.op[1].mem.disp.value;

			if (to > fde->start && to < end && is_read(vf, fde, &f))
				return false;
		} else if (f.z.mnemonic == ZYDIS_MNEMONIC_JMP &&
			   f.op[0].type == ZYDIS_OPERAND_TYPE_REGISTER) {
			if (target_of(vf, fde, at, whole(f.op[0].reg.value)) == TARGET_COMPUTED)
				return false;
		}
	}
	return true;
}

static bool is_named_inside(const struct vf *vf, const struct vf_fde *fde)
{
	uint64_t end = fde->start + fde->size;

	return vf_bits_next(&vf->old.text_ref, fde->start + 1, end) < end;
}

/* Is @at behind a jump, a return or a trap, perhaps with no-ops between? */
static bool is_alone(const struct vf *vf, const struct vf_fde *fde, uint64_t at)
{
	struct full f;

	for (uint64_t k = at; k-- > fde->start && at - k <= 15;) {
		if (!vf_bits_get(&vf->old.grid, k))
			continue;
		if (!decode(vf, fde, k, &f))
			return true;
		if (f.z.mnemonic != ZYDIS_MNEMONIC_NOP)
			return f.z.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
			       f.z.meta.category == ZYDIS_CATEGORY_RET ||
			       f.z.mnemonic == ZYDIS_MNEMONIC_UD2 ||
			       f.z.mnemonic == ZYDIS_MNEMONIC_HLT ||
			       f.z.mnemonic == ZYDIS_MNEMONIC_INT3;
		at = k;
	}
	return false;
}

/*
 * Do the words at @table, up to the next address that an operand names, lead from @base to labels in @fde? Where @own,
 * the function itself names the table: then two words suffice, and other data may follow.
 */
static bool are_differences(const struct vf *vf, const struct vf_fde *fde, uint64_t table,
			    uint64_t base, bool own)
{
	uint64_t end = vf_bits_next(&vf->old.data_ref, table + 1, vf->old.image_end);
	unsigned int nr = 0, zeros = 0;
	bool differ = false;
	int32_t first = 0, word;

	for (; nr < DIFFERENCES && table + 4 <= end; table += 4, nr++) {
		const uint8_t *p = mp_elf_bytes(vf->o, table, 4);
		uint64_t to;

		if (!p)
			break;
		memcpy(&word, p, 4);
		to = base + (uint64_t)(int64_t)word;
		if (to - fde->start >= fde->size || !vf_bits_get(&vf->old.grid, to) ||
		    !(own || vf_bits_get(&vf->old.target, to) || is_alone(vf, fde, to))) {
			if (own)
				break;
			return false;
		}
		first = nr ? first : word;
		differ |= word != first;
		zeros += !word;
	}
	/* Few entries of a table lead to its base; other data is full of zeros. */
	return nr >= (own ? 2 : 3) && differ && 2 * zeros <= nr;
}

/* Data that operands name, with the first word of each: few of these words lead into one function. */
struct named_data {
	struct named_word {
		uint64_t at;
		int64_t word;
	} * list;
	uint32_t nr, max;
	bool read;
};

static uint64_t next_named(const struct vf *vf, uint64_t at)
{
	return vf_bits_next(&vf->old.data_ref, at, vf->old.image_end);
}

/* Return: 0, -ENOMEM. */
static int read_named_data(const struct vf *vf, struct named_data *data)
{
	size_t nr = 0;

	data->read = true;
	for (uint64_t at = next_named(vf, vf->old.image_start); at < vf->old.image_end;
	     at = next_named(vf, at + 1))
		nr++;
	data->list = malloc((nr + 1) * sizeof(*data->list));
	if (!data->list)
		return -ENOMEM;
	for (uint64_t at = next_named(vf, vf->old.image_start); at < vf->old.image_end;
	     at = next_named(vf, at + 1)) {
		const uint8_t *p = vf_is_text(vf, at) ? NULL : mp_elf_bytes(vf->o, at, 4);
		int32_t word;

		if (!p)
			continue;
		memcpy(&word, p, 4);
		data->list[data->nr++] = (struct named_word){at, word};
	}
	return 0;
}

static int add_data(const struct vf *vf, struct named_data *own, uint64_t to)
{
	const uint8_t *p = vf_bits_get(&vf->old.data_ref, to) && !vf_is_text(vf, to)
				   ? mp_elf_bytes(vf->o, to, 4)
				   : NULL;
	int32_t word;

	if (!p)
		return 0;
	memcpy(&word, p, 4);
	return mp_push(own->list, own->nr, own->max, (struct named_word){to, word});
}

static int by_address(const void *x, const void *y)
{
	const struct named_word *a = x, *b = y;

	return (a->at > b->at) - (a->at < b->at);
}

static void drop_duplicates(struct named_data *data)
{
	uint32_t nr = 0;

	if (data->nr > 1)
		qsort(data->list, data->nr, sizeof(*data->list), by_address);
	for (uint32_t i = 0; i < data->nr; i++)
		if (!nr || data->list[nr - 1].at != data->list[i].at)
			data->list[nr++] = data->list[i];
	data->nr = nr;
}

/* @own: the data that operands of @fde name. Return: 0, -ENOMEM. */
static int read_own_data(const struct vf *vf, const struct vf_fde *fde, struct named_data *own)
{
	uint64_t end = fde->start + fde->size;
	const uint8_t *b = mp_elf_bytes(vf->o, fde->start, fde->size);
	struct vf_insn insn;
	uint64_t to[3];
	int ret = 0;

	own->nr = 0;
	for (uint64_t at = fde->start; !ret && b && at < end; at += insn.len, b += insn.len) {
		if (!vf_decode(b, end - at, at, &insn))
			break;
		for (unsigned int i = vf_may_name(vf, &insn, to); !ret && i--;)
			ret = add_data(vf, own, to[i]);
	}
	drop_duplicates(own);
	return ret;
}

/*
 * Does some data that an operand names look like differences from a label that an operand
 * names? Code that adds both must get both old addresses. @own: the function itself names @data.
 */
static bool has_differences(const struct vf *vf, const struct vf_fde *fde,
			    const struct named_data *data, bool own)
{
	uint64_t end = fde->start + fde->size;

	for (uint64_t base = vf_bits_next(&vf->old.text_ref, fde->start + 1, end); base < end;
	     base = vf_bits_next(&vf->old.text_ref, base + 1, end))
		for (uint32_t i = 0; i < data->nr; i++)
			if (base + (uint64_t)data->list[i].word - fde->start < fde->size &&
			    are_differences(vf, fde, data->list[i].at, base, own))
				return true;
	return false;
}

/* Do the words at @table lead from @base into the function, up to the next address that an operand names? */
static bool leads_inside(const struct vf *vf, const struct vf_fde *fde, uint64_t table,
			 uint64_t base)
{
	uint64_t end = vf_bits_next(&vf->old.data_ref, table + 1, vf->old.image_end);
	uint64_t first = 0;
	bool differ = false;

	for (unsigned int nr = 0; nr < DIFFERENCES && table + 4 <= end; table += 4, nr++) {
		const uint8_t *p = mp_elf_bytes(vf->o, table, 4);
		uint64_t to = p ? vf_displacement_target(p, base) : 0;

		if (to - fde->start >= fde->size || !vf_bits_get(&vf->old.grid, to))
			break;
		first = nr ? first : to;
		differ |= to != first;
	}
	return differ;
}

/* Is each label to which the function adds something the base of a table of differences? Else the target of
 * the sum is not known. */
static bool sums_are_known(const struct vf *vf, const struct vf_fde *fde,
			   const struct named_data *data)
{
	uint64_t end = fde->start + fde->size;

	for (uint64_t base = vf_bits_next(&vf->old.summed, fde->start + 1, end); base < end;
	     base = vf_bits_next(&vf->old.summed, base + 1, end)) {
		bool known = false;

		for (uint32_t i = 0; !known && i < data->nr; i++)
			known = base + (uint64_t)data->list[i].word - fde->start < fde->size &&
				leads_inside(vf, fde, data->list[i].at, base);
		if (!known)
			return false;
	}
	return true;
}

bool vf_label_may_move(const struct vf *vf, uint64_t old)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, old);

	return fde && old != fde->start && (vf->o->relinkable || vf->o->ehdr.e_type == ET_DYN) &&
	       (fde->flags & (VF_FDE_LABELS | VF_FDE_DIFFERENCES | VF_FDE_COMPUTES)) ==
		       VF_FDE_LABELS &&
	       vf_bits_get(&vf->old.grid, old);
}

int vf_find_labels(const struct vf *vf)
{
	struct named_data data = {0};
	struct named_data own = {0}; /* what one function names */
	int ret = 0;

	for (uint32_t i = 0; !ret && i < vf->old.eh.nr_fdes; i++) {
		struct vf_fde *fde = &vf->old.eh.fdes[i];

		if (!(fde->flags & VF_FDE_IJMP) || (fde->flags & (VF_FDE_BAD | VF_FDE_OFF_GRID)) ||
		    (!(fde->flags & VF_FDE_WORD) && !is_named_inside(vf, fde)) ||
		    !keeps_labels(vf, fde))
			continue;
		if (!data.read)
			ret = read_named_data(vf, &data);
		if (ret || !sums_are_known(vf, fde, &data))
			continue;
		fde->flags |= VF_FDE_LABELS;
		ret = read_own_data(vf, fde, &own);
		if (vf_bits_next(&vf->old.summed, fde->start + 1, fde->start + fde->size) <
			    fde->start + fde->size ||
		    has_differences(vf, fde, &data, false) || has_differences(vf, fde, &own, true))
			fde->flags |= VF_FDE_DIFFERENCES;
	}
	free(data.list);
	free(own.list);
	return ret;
}
