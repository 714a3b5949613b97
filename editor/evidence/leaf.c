// SPDX-License-Identifier: Apache-2.0
/* leaf - decodes with all operands, also those that an instruction does not name. */
#include <string.h>

#include "editor/evidence/leaf_private.h"
#include "editor/unwind/unwind.h"
#include "libprof/insn/decoder.h"
#include "libprof/insn/insn.h"

/* Bytes of endbr64. */
#define LANDING 4

enum { /* bytes */
	SHORT_BRANCH = 2,
	LONG_BRANCH = 6,
	SHORT_JUMP = 2,
	LONG_JUMP = 5,
};

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

static bool names_stack_pointer(const struct me_leaf_insn *f)
{
	for (int i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    me_leaf_is_stack_pointer(op->reg.value))
			return true;
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (me_leaf_is_stack_pointer(op->mem.base) ||
		     me_leaf_is_stack_pointer(op->mem.index)))
			return true;
	}
	return false;
}

bool me_leaf_is_plain(const struct mp_elf *elf, uint64_t vaddr, uint64_t size, uint64_t own,
		      uint64_t own_end)
{
	const uint8_t *bytes = mp_elf_bytes(elf, vaddr, size);
	struct mp_insn insn;
	struct me_leaf_insn f;

	for (uint64_t off = 0; off < size; off += insn.len) {
		if (!bytes || mp_insn_decode(bytes + off, size - off, vaddr + off, &insn) ||
		    insn.kind != MP_INSN_OTHER || insn.endbr64 ||
		    !me_leaf_decode(bytes + off, size - off, &f))
			return false;
		if (!me_leaf_is_known(&f.z) || names_stack_pointer(&f))
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

/* Return: the number of the part that begins at @vaddr; ME_LEAF_PARTS_MAX: none. */
static uint8_t part_at(const struct me_leaf *leaf, uint64_t vaddr)
{
	for (uint8_t i = 0; i < leaf->nr_parts; i++)
		if (leaf->parts[i].vaddr == vaddr)
			return i;
	return ME_LEAF_PARTS_MAX;
}

/* Fills @part, but for where control goes. Return: false: @block has another form. */
static bool read_part(const struct mp_cfg *cfg, const struct mp_block *block, bool entry,
		      struct me_leaf_part *part)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	uint32_t size = block->size - block->term_len, landing = 0;
	struct mp_insn insn;

	if (!bytes || block->flags & MP_BLOCK_STAYS)
		return false;
	if (entry && size >= LANDING && !mp_insn_decode(bytes, size, block->vaddr, &insn) &&
	    insn.endbr64)
		landing = LANDING;
	if (size - landing > ME_LEAF_CODE_MAX)
		return false;
	*part = (struct me_leaf_part){.vaddr = block->vaddr + landing,
				      .size = (uint16_t)(size - landing),
				      .end_size = block->term_len};
	switch (block->term) {
	case MP_TERM_RET: part->returns = true; return returns_plainly(cfg, block);
	case MP_TERM_JUMP:
	case MP_TERM_FALL: return true;
	case MP_TERM_COND:
		if (mp_insn_decode(bytes + size, block->term_len, block->vaddr + size, &insn) ||
		    insn.kind != MP_INSN_COND)
			return false;
		part->branches = true;
		part->condition = insn.cc;
		return true;
	default: return false;
	}
}

/* Finds where control goes behind part @i. Return: false: out of the function. */
static bool link_part(const struct mp_block *block, struct me_leaf *leaf, uint8_t i)
{
	struct me_leaf_part *part = &leaf->parts[i];

	part->next = block->term == MP_TERM_RET
			     ? leaf->nr_parts
			     : part_at(leaf, block->term == MP_TERM_JUMP
						     ? mp_block_target(block)
						     : block->vaddr + block->size);
	part->taken = part->branches ? part_at(leaf, mp_block_target(block)) : part->next;
	return part->next <= leaf->nr_parts && part->taken <= leaf->nr_parts;
}

/* Is each part reached? */
static bool is_reached(const struct me_leaf *leaf)
{
	bool seen[ME_LEAF_PARTS_MAX + 1] = {[0] = true};
	uint8_t todo[ME_LEAF_PARTS_MAX] = {0}, nr = 1;

	/* This number stands for the code behind the call, which is no part. */
	seen[leaf->nr_parts] = true;
	for (uint8_t done = 0; done < nr; done++) {
		const struct me_leaf_part *part = &leaf->parts[todo[done]];

		if (!seen[part->next]) {
			seen[part->next] = true;
			todo[nr++] = part->next;
		}
		if (!seen[part->taken]) {
			seen[part->taken] = true;
			todo[nr++] = part->taken;
		}
	}
	return nr == leaf->nr_parts;
}

/* The branch and the jump behind a part. */
struct end {
	bool raise; /* the stack pointer, at the end of the code beside the call */
	bool branch, jump;
	uint8_t condition;
	uint8_t branch_to, jump_to;
	uint8_t branch_size, jump_size, size; /* bytes; @size: of all */
};

/* Does control run from part @i into part @to? */
static bool is_next(const struct me_leaf *leaf, uint8_t i, uint8_t to)
{
	if (i + 1 == leaf->nr_near)
		return to == leaf->nr_parts;
	return to == i + 1 && to < leaf->nr_parts;
}

/*
 * The jump behind the branch is the branch's other way, where control does not run on. Where it runs on to neither,
 * the likelier way gets the branch, and needs no jump.
 */
static bool inverts(const struct me_leaf *leaf, uint8_t i)
{
	const struct me_leaf_part *part = &leaf->parts[i];

	if (!part->branches || is_next(leaf, i, part->next))
		return false;
	return is_next(leaf, i, part->taken) || part->favour_next;
}

static struct end find_end(const struct me_leaf *leaf, uint8_t i)
{
	const struct me_leaf_part *part = &leaf->parts[i];
	bool invert = inverts(leaf, i);
	struct end end = {
		.raise = leaf->lowers && i + 1 == leaf->nr_near,
		.branch = part->branches,
		.condition = part->condition ^ invert,
		.branch_to = invert ? part->next : part->taken,
		.jump_to = invert ? part->taken : part->next,
	};

	end.jump = !is_next(leaf, i, end.jump_to);
	if (end.branch)
		end.branch_size = part->long_branch ? LONG_BRANCH : SHORT_BRANCH;
	if (end.jump)
		end.jump_size = part->long_jump ? LONG_JUMP : SHORT_JUMP;
	end.size = end.branch_size + end.jump_size + (end.raise ? ME_LEAF_ADJUST_SIZE : 0);
	return end;
}

/* Does part @i, or with the number of parts what lies behind the call, lie apart? */
static bool is_apart(const struct me_leaf *leaf, uint8_t i)
{
	return i >= leaf->nr_near && i < leaf->nr_parts;
}

static int64_t place_of(const struct me_leaf *leaf, uint8_t part, int64_t apart)
{
	/* From behind the call, control goes on; before that, the stack pointer is raised. */
	if (part == leaf->nr_parts)
		return leaf->size - (leaf->lowers ? ME_LEAF_ADJUST_SIZE : 0);
	return leaf->parts[part].off + (is_apart(leaf, part) ? apart : 0);
}

/* Does a branch of part @i, which ends at @from, need the long form to lead to part @to? */
static bool is_far(const struct me_leaf *leaf, uint8_t i, int64_t from, uint8_t to)
{
	int64_t distance = place_of(leaf, to, 0) - from;

	return is_apart(leaf, i) != is_apart(leaf, to) || distance < INT8_MIN ||
	       distance > INT8_MAX;
}

/* Gives part @i the long forms that it needs. Return: it had shorter ones. */
static bool lengthen(struct me_leaf *leaf, uint8_t i)
{
	struct me_leaf_part *part = &leaf->parts[i];
	struct end end = find_end(leaf, i);
	int64_t at = part->off + part->size + end.branch_size;
	bool had_branch = part->long_branch, had_jump = part->long_jump;

	if (end.branch && is_far(leaf, i, at, end.branch_to))
		part->long_branch = true;
	if (end.jump && is_far(leaf, i, at + end.jump_size, end.jump_to))
		part->long_jump = true;
	return part->long_branch != had_branch || part->long_jump != had_jump;
}

/* Places the parts [@first, @end). Return: their bytes, or more than ME_LEAF_CODE_MAX. */
static uint32_t place_piece(struct me_leaf *leaf, uint8_t first, uint8_t end)
{
	uint32_t off = leaf->lowers && !first ? ME_LEAF_ADJUST_SIZE : 0;

	for (uint8_t i = first; i < end && off <= ME_LEAF_CODE_MAX; i++) {
		leaf->parts[i].off = (uint16_t)off;
		off += leaf->parts[i].size + find_end(leaf, i).size;
	}
	return off;
}

/* Places the parts. Sizes only grow, so this ends. Return: false: the code is too large. */
static bool place_parts(struct me_leaf *leaf)
{
	bool again = true;

	for (uint8_t i = 0; i < leaf->nr_parts; i++)
		leaf->parts[i].long_branch = leaf->parts[i].long_jump = false;
	while (again) {
		uint32_t near = place_piece(leaf, 0, leaf->nr_near);
		uint32_t apart = place_piece(leaf, leaf->nr_near, leaf->nr_parts);

		if (near > ME_LEAF_CODE_MAX || apart > ME_LEAF_CODE_MAX)
			return false;
		leaf->size = (uint16_t)near;
		leaf->apart_size = (uint16_t)apart;
		again = false;
		for (uint8_t i = 0; i < leaf->nr_parts; i++)
			again |= lengthen(leaf, i);
	}
	return true;
}

/* Return: false: it is too large. */
static bool put_displacement(uint8_t *out, int64_t value, bool is_long)
{
	for (unsigned int i = 0; i < (is_long ? 4 : 1); i++)
		out[i] = (uint8_t)((uint64_t)value >> 8 * i);
	return is_long ? value == (int32_t)value : value == (int8_t)value;
}

void me_leaf_put_lower(uint8_t out[ME_LEAF_ADJUST_SIZE])
{
	memcpy(out, "\x48\x8d\x64\x24\xf8", ME_LEAF_ADJUST_SIZE);
}

/* `lea 8(%rsp), %rsp`, which leaves the flags as they are */
static void put_raise(uint8_t out[ME_LEAF_ADJUST_SIZE])
{
	memcpy(out, "\x48\x8d\x64\x24\x08", ME_LEAF_ADJUST_SIZE);
}

uint8_t me_leaf_end(const struct me_leaf *leaf, uint8_t i, int64_t apart,
		    uint8_t out[ME_LEAF_END_MAX])
{
	const struct me_leaf_part *part = &leaf->parts[i];
	struct end end = find_end(leaf, i);
	int64_t at = place_of(leaf, i, apart) + part->size + end.branch_size;
	uint8_t *p = out;

	if (end.branch) {
		if (part->long_branch)
			*p++ = 0x0f;
		*p++ = (part->long_branch ? 0x80 : 0x70) | end.condition;
		if (!put_displacement(p, place_of(leaf, end.branch_to, apart) - at,
				      part->long_branch))
			return 0;
	}
	if (end.jump) {
		p = out + end.branch_size;
		at += end.jump_size;
		*p++ = part->long_jump ? 0xe9 : 0xeb;
		if (!put_displacement(p, place_of(leaf, end.jump_to, apart) - at, part->long_jump))
			return 0;
	}
	if (end.raise)
		put_raise(out + end.branch_size + end.jump_size);
	return end.size;
}

/* Another order that ends in the last part that returns. Return: false: none returns, but perhaps the entry. */
static bool order_return_last(const struct me_leaf *leaf, uint8_t *order)
{
	uint8_t nr = 0, last = leaf->nr_parts - 1;

	while (last && !leaf->parts[last].returns)
		last--;
	if (!leaf->parts[last].returns || (!last && leaf->nr_parts > 1))
		return false;
	for (uint8_t i = 0; i < leaf->nr_parts; i++)
		if (i != last)
			order[nr++] = i;
	order[nr] = last;
	return true;
}

bool me_leaf_arrange(struct me_leaf *leaf, const uint8_t *order, uint8_t nr_near)
{
	struct me_leaf_part parts[ME_LEAF_PARTS_MAX];
	uint8_t now[ME_LEAF_PARTS_MAX + 1];

	now[leaf->nr_parts] = leaf->nr_parts;
	for (uint8_t i = 0; i < leaf->nr_parts; i++) {
		now[order[i]] = i;
		parts[i] = leaf->parts[order[i]];
	}
	for (uint8_t i = 0; i < leaf->nr_parts; i++) {
		parts[i].next = now[parts[i].next];
		parts[i].taken = now[parts[i].taken];
		leaf->parts[i] = parts[i];
	}
	leaf->nr_near = nr_near;
	return place_parts(leaf);
}

/* Does not look at the instructions. */
static bool read_body(const struct mp_cfg *cfg, uint32_t func, struct me_leaf *leaf)
{
	const struct mp_func *f = &cfg->funcs[func];
	const struct mp_block *block = &cfg->blocks[f->first_block];
	const struct mp_block *of_part[ME_LEAF_PARTS_MAX];
	uint8_t order[ME_LEAF_PARTS_MAX];

	if (f->problem || f->nr_ranges != 1 || !f->nr_blocks || block->vaddr != f->vaddr ||
	    f->flags & (MP_FUNC_SYSCALL | MP_FUNC_IFUNC | MP_FUNC_NORETURN | MP_FUNC_GET_PC |
			MP_FUNC_BARE | MP_FUNC_LABELS))
		return false;
	*leaf = (struct me_leaf){.func = func};
	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		if (block[b].flags & MP_BLOCK_PADDING && b)
			continue;
		if (leaf->nr_parts == ME_LEAF_PARTS_MAX ||
		    !read_part(cfg, &block[b], !b, &leaf->parts[leaf->nr_parts]))
			return false;
		of_part[leaf->nr_parts++] = &block[b];
	}
	for (uint8_t i = 0; i < leaf->nr_parts; i++)
		if (!link_part(of_part[i], leaf, i))
			return false;
	return order_return_last(leaf, order) && is_reached(leaf) &&
	       me_leaf_arrange(leaf, order, leaf->nr_parts);
}

/* Does no instruction use the stack? */
static bool is_plain(const struct mp_cfg *cfg, const struct me_leaf *leaf)
{
	const struct mp_func *f = &cfg->funcs[leaf->func];

	for (uint8_t i = 0; i < leaf->nr_parts; i++) {
		const struct me_leaf_part *part = &leaf->parts[i];

		if (part->size && !me_leaf_is_plain(cfg->elf, part->vaddr, part->size, f->vaddr,
						    f->vaddr + f->size))
			return false;
	}
	return me_unwind_has_no_frame(cfg, leaf->func);
}

bool me_leaf_find(const struct mp_cfg *cfg, uint32_t func, struct me_leaf *leaf)
{
	if (!read_body(cfg, func, leaf))
		return false;
	return is_plain(cfg, leaf) || (me_leaf_find_stack(cfg, leaf) && place_parts(leaf));
}

/* Does the instruction name memory below the stack pointer, or may it? push and call do not count. */
static bool names_below(const struct me_leaf_insn *f)
{
	for (int i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    op->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
		    me_leaf_is_stack_pointer(op->mem.base) &&
		    (op->mem.index != ZYDIS_REGISTER_NONE || op->mem.disp.value < 0))
			return true;
	}
	return false;
}

bool me_leaf_caller(const struct mp_cfg *cfg, uint32_t func)
{
	const struct mp_func *f = &cfg->funcs[func];
	struct me_leaf_insn full;

	if (f->problem || f->flags & (MP_FUNC_BARE | MP_FUNC_GET_PC))
		return false;
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);

		if (block->flags & MP_BLOCK_PADDING)
			continue;
		for (uint32_t off = 0; off < block->size; off += full.z.length)
			if (!bytes || !me_leaf_decode(bytes + off, block->size - off, &full) ||
			    names_below(&full))
				return false;
	}
	return true;
}
