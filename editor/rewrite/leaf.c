// SPDX-License-Identifier: Apache-2.0
/* leaf - decodes with all operands, also those that an instruction does not name. */

#include "editor/rewrite/leaf_private.h"
#include "editor/unwind/unwind.h"

/* Bytes of endbr64. */
#define LANDING 4

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

/* Does @vaddr lie at the end of a part of @func? */
static bool ends_range(const struct mp_cfg *cfg, const struct mp_func *func, uint64_t vaddr)
{
	for (uint32_t i = func->first_range; i < func->first_range + func->nr_ranges; i++)
		if (vaddr == cfg->ranges[i].start + cfg->ranges[i].size)
			return true;
	return false;
}

/*
 * Are the bytes, of @func, whole instructions that neither transfer control, nor name the stack pointer, nor depend on
 * their address? Operands relative to the program counter are plain unless they lead into @func.
 */
static bool is_plain_code(const struct mp_cfg *cfg, uint32_t func, uint64_t vaddr, uint64_t size)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, vaddr, size);
	struct mp_insn insn;
	struct me_leaf_insn f;

	for (uint64_t off = 0; off < size; off += insn.len) {
		if (!bytes || mp_insn_decode(bytes + off, size - off, vaddr + off, &insn) ||
		    insn.kind != MP_INSN_OTHER || insn.endbr64)
			return false;
		if (!me_leaf_is_simple(bytes + off, &insn) &&
		    (!me_leaf_decode(bytes + off, size - off, &f) || !me_leaf_is_known(&f.z) ||
		     names_stack_pointer(&f) || (insn.rip_relative && f.z.address_width != 64)))
			return false;
		if (insn.rip_relative && me_leaf_is_own(cfg, func, insn.target))
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
	const struct mp_func *func = &cfg->funcs[block->func];
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
	case MP_TERM_TAIL:
		part->tails = true;
		part->callee = block->distance;
		return !mp_insn_decode(bytes + size, block->term_len, block->vaddr + size, &insn) &&
		       insn.kind == MP_INSN_JUMP && !insn.bnd;
	case MP_TERM_NORETURN:
		/* That it does not return is believed where nothing follows. */
		part->stops = ends_range(cfg, func, block->vaddr + block->size);
		return true;
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

	if (part->returns || part->tails)
		part->next = leaf->nr_parts;
	else if (part->stops)
		part->next = i;
	else
		part->next = part_at(leaf, block->term == MP_TERM_JUMP
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

/* Does not look at the instructions. */
static bool read_body(const struct mp_cfg *cfg, uint32_t func, struct me_leaf *leaf)
{
	const struct mp_func *f = &cfg->funcs[func];
	const struct mp_block *of_part[ME_LEAF_PARTS_MAX];
	uint32_t entry = mp_cfg_block_starting(cfg, f->vaddr);
	uint8_t order[ME_LEAF_PARTS_MAX];

	if (f->problem || !f->nr_blocks || entry == MP_NONE || cfg->blocks[entry].func != func ||
	    f->flags & (MP_FUNC_SYSCALL | MP_FUNC_IFUNC | MP_FUNC_NORETURN | MP_FUNC_GET_PC |
			MP_FUNC_BARE | MP_FUNC_LABELS))
		return false;
	*leaf = (struct me_leaf){.func = func};
	/* The entry comes first. Blocks at lower addresses, as of a part for cold code, come last. */
	for (uint32_t i = 0; i < f->nr_blocks; i++) {
		const struct mp_block *block =
			&cfg->blocks[f->first_block + (entry - f->first_block + i) % f->nr_blocks];

		if (block->flags & MP_BLOCK_PADDING && i)
			continue;
		if (leaf->nr_parts == ME_LEAF_PARTS_MAX ||
		    !read_part(cfg, block, !i, &leaf->parts[leaf->nr_parts]))
			return false;
		of_part[leaf->nr_parts++] = block;
	}
	for (uint8_t i = 0; i < leaf->nr_parts; i++)
		if (!link_part(of_part[i], leaf, i))
			return false;
	return me_leaf_order(leaf, order) && is_reached(leaf) &&
	       me_leaf_arrange(leaf, order, leaf->nr_parts);
}

/* Does no instruction use the stack? Return: 1: none does, 0, -ENOMEM. */
static int is_plain(const struct mp_cfg *cfg, const struct me_leaf *leaf)
{
	for (uint8_t i = 0; i < leaf->nr_parts; i++) {
		const struct me_leaf_part *part = &leaf->parts[i];

		if (part->size && !is_plain_code(cfg, leaf->func, part->vaddr, part->size))
			return 0;
	}
	return me_unwind_has_no_frame(cfg, leaf->func);
}

int me_leaf_find(const struct mp_cfg *cfg, uint32_t func, struct me_leaf *leaf)
{
	int is;

	if (!read_body(cfg, func, leaf))
		return 0;
	for (uint8_t i = 0; i < leaf->nr_parts; i++)
		leaf->calls |= leaf->parts[i].tails;
	is = is_plain(cfg, leaf);
	if (is)
		return is;
	is = me_leaf_find_stack(cfg, leaf);
	return is > 0 ? me_leaf_place(leaf) : is;
}

/*
 * Does the instruction name memory below the stack pointer, or may it? push and call do not count. Return: its bytes;
 * 0: it does, or is undecodable.
 */
static uint32_t none_below(const uint8_t *bytes, uint64_t avail)
{
	struct mp_insn_operands o;
	struct me_leaf_insn full, *f = &full;
	struct mp_insn insn;

	if (!mp_insn_decode(bytes, avail, 0, &insn)) {
		if (insn.kind == MP_INSN_COND || insn.kind == MP_INSN_JUMP ||
		    insn.kind == MP_INSN_CALL)
			return insn.len;
		if (mp_insn_operands(bytes, &insn, &o))
			return o.base == MP_INSN_SP && (o.index != MP_INSN_NO_REG || o.disp < 0)
				       ? 0
				       : insn.len;
	}
	if (!me_leaf_decode(bytes, avail, f))
		return 0;
	for (int i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    op->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
		    me_leaf_is_stack_pointer(op->mem.base) &&
		    (op->mem.index != ZYDIS_REGISTER_NONE || op->mem.disp.value < 0))
			return 0;
	}
	return f->z.length;
}

bool me_leaf_caller(const struct mp_cfg *cfg, uint32_t func)
{
	const struct mp_func *f = &cfg->funcs[func];

	if (f->problem || f->flags & (MP_FUNC_BARE | MP_FUNC_GET_PC))
		return false;
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);

		if (block->flags & MP_BLOCK_PADDING)
			continue;
		for (uint32_t off = 0, len; off < block->size; off += len) {
			len = bytes ? none_below(bytes + off, block->size - off) : 0;
			if (!len)
				return false;
		}
	}
	return true;
}
