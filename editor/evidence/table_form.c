// SPDX-License-Identifier: Apache-2.0
/*
 * table_form - recognises the forms of table_form.h by their bytes. Called by patch and
 * patch_fit. verify has its own reading.
 */
#include "editor/evidence/table_form.h"

#include <string.h>

#include "libprof/insn/decoder.h"
#include "libprof/insn/insn.h"

/* Most instructions between the load of an offset, or of an address, and the jump. */
#define MAX_APART	 4
#define MAX_APART_LOADED 12

enum {
	REX_B = 1,
	REX_X = 2,
	REX_R = 4,
	REX_W = 8,
	NO_REG = 0xff,
	NOTRACK = 0x3e
};

/* An instruction's opcode, behind its prefixes. */
struct head {
	uint8_t rex;
	const uint8_t *op; /* opcode, modrm, SIB ... */
	uint32_t left;
};

static struct head read_head(const uint8_t *p, uint32_t len)
{
	struct head h = {0, p, len};

	if (h.left && *h.op == NOTRACK)
		h.op++, h.left--;
	if (h.left && (*h.op & 0xf0) == 0x40)
		h.rex = *h.op++ & 15, h.left--;
	return h;
}

static uint8_t reg_field(const struct head *h)
{
	return (h->op[1] >> 3 & 7) | (h->rex & REX_R ? 8 : 0);
}

/* disp32(,%i,8): mod 0 and a SIB byte without a base. */
static bool is_table_operand(const struct head *h)
{
	return h->left == 7 && (h->op[1] & 0xc7) == 0x04 && (h->op[2] & 0xc7) == 0xc5 &&
	       ((h->op[2] >> 3 & 7) != 4 || h->rex & REX_X);
}

/* jmp *%reg: the register, or NO_REG. */
static uint8_t jump_reg(const uint8_t *p, uint32_t len)
{
	struct head h = read_head(p, len);

	if (h.left != 2 || h.op[0] != 0xff || (h.op[1] & 0xf8) != 0xe0)
		return NO_REG;
	return (h.op[1] & 7) | (h.rex & REX_B ? 8 : 0);
}

static uint32_t decode(const uint8_t *p, uint64_t left)
{
	struct mp_insn insn;

	return left && !mp_insn_decode(p, left, 0, &insn) ? insn.len : 0;
}

/* The block that holds @ref's instruction; *@at: the instruction in it. */
static const struct mp_block *block_of(const struct mp_cfg *cfg, const struct mp_table_ref *ref,
				       const uint8_t **at, uint64_t *left)
{
	uint32_t b = mp_cfg_block_at(cfg, ref->insn_vaddr);
	const struct mp_block *block;

	if (b == MP_NONE)
		return NULL;
	block = &cfg->blocks[b];
	*left = block->vaddr + block->size - ref->insn_vaddr;
	*at = mp_elf_bytes(cfg->elf, ref->insn_vaddr, *left);
	return *at ? block : NULL;
}

static bool mentions(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops, uint8_t reg)
{
	const ZydisRegister whole = ZYDIS_REGISTER_RAX + reg;

	for (uint8_t i = 0; i < z->operand_count; i++) {
		const ZydisRegister used[] = {
			ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER ? ops[i].reg.value
								   : ZYDIS_REGISTER_NONE,
			ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY ? ops[i].mem.base
								 : ZYDIS_REGISTER_NONE,
			ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY ? ops[i].mem.index
								 : ZYDIS_REGISTER_NONE,
		};

		for (unsigned int k = 0; k < sizeof(used) / sizeof(used[0]); k++)
			if (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, used[k]) ==
			    whole)
				return true;
	}
	return false;
}

/* Is a jump through @reg its only use from @at on? Follows one path without calls. */
static bool only_jumps(const struct mp_cfg *cfg, uint64_t at, uint8_t reg)
{
	for (unsigned int n = 0; n < MAX_APART_LOADED; n++) {
		uint32_t b = mp_cfg_block_at(cfg, at);
		uint64_t left = b == MP_NONE ? 0 : cfg->blocks[b].vaddr + cfg->blocks[b].size - at;
		const uint8_t *p = left ? mp_elf_bytes(cfg->elf, at, left) : NULL;
		ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction z;
		struct mp_insn insn;

		if (!p || mp_insn_decode(p, left, at, &insn) ||
		    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(mp_decoder(), p, left, &z, ops)))
			return false;
		if (jump_reg(p, insn.len) == reg)
			return true;
		if (mentions(&z, ops, reg))
			return false;
		if (insn.kind == MP_INSN_JUMP)
			at = insn.target;
		else if (insn.kind == MP_INSN_OTHER)
			at += insn.len;
		else
			return false;
	}
	return false;
}

static bool is_absolute_form(const struct mp_cfg *cfg, const struct mp_table_ref *ref)
{
	const uint8_t *p;
	uint64_t left;
	uint32_t len;
	struct head h;

	if (!block_of(cfg, ref, &p, &left) || !(len = decode(p, left)))
		return false;
	h = read_head(p, len);
	if (!is_table_operand(&h))
		return false;
	if (h.op[0] == 0xff)
		return reg_field(&h) % 8 == 4;
	return h.op[0] == 0x8b && h.rex & REX_W &&
	       only_jumps(cfg, ref->insn_vaddr + len, reg_field(&h));
}

/* movslq (%b,%i,4), %x: b, or NO_REG. */
static uint8_t load_base(const uint8_t *p, uint32_t len)
{
	struct head h = read_head(p, len);

	if (h.left < 3 || h.op[0] != 0x63 || !(h.rex & REX_W) || (h.op[1] & 7) != 4 ||
	    (h.op[2] & 0xc0) != 0x80 || ((h.op[2] >> 3 & 7) == 4 && !(h.rex & REX_X)))
		return NO_REG;
	/* A base of %rbp or %r13 needs a displacement: 0. */
	if ((h.op[1] & 0xc0) == 0x40 ? h.left != 4 || h.op[3]
				     : (h.op[1] & 0xc0) || (h.op[2] & 7) == 5)
		return NO_REG;
	return (h.op[2] & 7) | (h.rex & REX_B ? 8 : 0);
}

/* add %r64, %r64 */
static bool is_add(const uint8_t *p, uint32_t len)
{
	struct head h = read_head(p, len);

	return h.left == 2 && (h.op[0] == 0x01 || h.op[0] == 0x03) && h.rex & REX_W &&
	       h.op[1] >= 0xc0;
}

/* Base register of the load that starts the computation of the block's jump. */
static uint8_t relative_base(const struct mp_cfg *cfg, const struct mp_block *block)
{
	const uint8_t *p = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	uint8_t base = NO_REG, since = 0;
	bool added = false;
	uint32_t len;

	for (uint64_t off = 0; p && off < block->size; off += len) {
		uint8_t reg;

		len = decode(p + off, block->size - off);
		if (!len)
			return NO_REG;
		reg = load_base(p + off, len);
		if (reg != NO_REG) {
			base = reg;
			since = 0;
			added = false;
		} else {
			added |= is_add(p + off, len);
			since += since < UINT8_MAX;
		}
		if (off + len == block->size)
			return added && since <= MAX_APART && jump_reg(p + off, len) != NO_REG
				       ? base
				       : NO_REG;
	}
	return NO_REG;
}

static bool is_relative_form(const struct mp_cfg *cfg, const struct mp_table *table,
			     const struct mp_table_ref *ref)
{
	const struct mp_block *jump = &cfg->blocks[table->block];
	const uint8_t *p;
	uint64_t left;
	uint32_t len;
	struct head h;

	if (table->base != table->vaddr || !block_of(cfg, ref, &p, &left) ||
	    !(len = decode(p, left)))
		return false;
	h = read_head(p, len);
	return h.left == 6 && h.op[0] == 0x8d && (h.op[1] & 0xc7) == 0x05 && h.rex & REX_W &&
	       reg_field(&h) == relative_base(cfg, jump);
}

static const struct mp_range *range_at(const struct mp_cfg *cfg, uint32_t func, uint64_t vaddr)
{
	const struct mp_func *f = &cfg->funcs[func];

	for (uint32_t r = f->first_range; r < f->first_range + f->nr_ranges; r++)
		if (vaddr - cfg->ranges[r].start < cfg->ranges[r].size)
			return &cfg->ranges[r];
	return NULL;
}

static bool is_plain(const struct mp_cfg *cfg, const struct mp_table *table,
		     const struct mp_table_ref *ref)
{
	uint64_t jump = cfg->blocks[table->block].vaddr;

	if (table->kind == MP_TABLE_REL32)
		return range_at(cfg, table->func, ref->insn_vaddr) ==
			       range_at(cfg, table->func, jump) &&
		       is_relative_form(cfg, table, ref);
	return cfg->elf->ehdr.e_type != ET_EXEC || is_absolute_form(cfg, ref);
}

bool me_table_form_is_plain(const struct mp_cfg *cfg, const struct mp_table *table)
{
	bool fixed = cfg->elf->ehdr.e_type == ET_EXEC;

	if (table->block == MP_NONE || !table->nr_refs ||
	    table->vaddr % (table->kind == MP_TABLE_REL32 ? 4 : 8) ||
	    (table->kind == MP_TABLE_REL32 && fixed))
		return false;
	for (uint32_t i = 0; i < table->nr_refs; i++)
		if (!is_plain(cfg, table, &cfg->table_refs[table->first_ref + i]))
			return false;
	return true;
}

bool me_table_form_holds(const struct mp_cfg *cfg, const struct mp_table *table, uint64_t vaddr)
{
	const struct mp_range *range = range_at(cfg, table->func, vaddr);

	if (!range || vaddr == range->start)
		return false;
	for (uint32_t i = 0; i < table->nr_refs; i++)
		if (cfg->table_refs[table->first_ref + i].insn_vaddr - range->start < range->size)
			return true;
	return false;
}
