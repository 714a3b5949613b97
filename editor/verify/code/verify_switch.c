// SPDX-License-Identifier: Apache-2.0
/*
 * verify_switch - checks a changed word of data without a relocation: it must be an entry of a
 * table that is only read to jump, and lead to the copy of its old target. Called by
 * verify_tables.
 *
 * The instructions are the proof. All that name the table's start have the form of a switch or
 * of a computed goto, so only jumps see the entries' values. No operand names a place between
 * the start and the word, and all words up to it lead to instructions.
 */
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_switch.h"
#include "editor/verify/read/verify_piece_index.h"

/* Most instructions between a load of an offset, or of an address, and its jump. */
#define MAX_APART	 5
#define MAX_APART_LOADED 16

static bool is_fixed(const struct vf *vf)
{
	return vf->o->ehdr.e_type == ET_EXEC;
}

/* Entries are addresses in programs with fixed addresses, otherwise offsets from the start. */
static bool read_entry(const struct mp_elf *elf, uint64_t at, uint64_t start, uint8_t size,
		       uint64_t *leads_to)
{
	const uint8_t *p = mp_elf_bytes(elf, at, size);
	int32_t off;

	if (!p)
		return false;
	if (size == 8) {
		memcpy(leads_to, p, 8);
	} else {
		memcpy(&off, p, 4);
		*leads_to = start + (uint64_t)(int64_t)off;
	}
	return true;
}

bool vf_may_be_switch(const struct vf *vf, uint64_t to)
{
	uint64_t label;

	if (vf->o->relinkable || vf_is_text(vf, to))
		return false;
	return (is_fixed(vf) && read_entry(vf->o, to, to, 8, &label) && vf_is_text(vf, label)) ||
	       (read_entry(vf->o, to, to, 4, &label) && vf_is_text(vf, label));
}

/* ---- the instructions ---------------------------------------------------------------------- */

static bool is_memory(const ZydisDecodedOperand *op, uint8_t scale)
{
	/* %rsp and %rbp use the stack segment, which also covers all of memory. */
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       (op->mem.segment == ZYDIS_REGISTER_DS || op->mem.segment == ZYDIS_REGISTER_SS) &&
	       op->mem.index != ZYDIS_REGISTER_NONE && op->mem.scale == scale;
}

/* Register of jmp *%reg; ZYDIS_REGISTER_NONE for any other instruction. */
static ZydisRegister jump_register(const struct vf_full *f)
{
	return f->z.mnemonic == ZYDIS_MNEMONIC_JMP && f->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER
		       ? f->op[0].reg.value
		       : ZYDIS_REGISTER_NONE;
}

static bool uses(const struct vf_full *f, ZydisRegister reg)
{
	for (uint8_t i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ZydisRegisterGetLargestEnclosing(f->z.machine_mode, op->reg.value) == reg)
			return true;
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (ZydisRegisterGetLargestEnclosing(f->z.machine_mode, op->mem.base) == reg ||
		     ZydisRegisterGetLargestEnclosing(f->z.machine_mode, op->mem.index) == reg))
			return true;
	}
	return false;
}

/* Is the next use of @reg, from @at on, a jump through it? Follows jumps, no branch or call. */
static bool is_jumped_to(const struct vf *vf, uint64_t at, ZydisRegister reg)
{
	struct vf_full f;

	for (unsigned int n = 0; n < MAX_APART_LOADED; n++) {
		const struct vf_fde *fde = vf_eh_find(&vf->old.eh, at);

		if (!fde || !vf_bits_get(&vf->old.grid, at) ||
		    !vf_decode_full(vf, at, fde->start + fde->size, &f))
			return false;
		if (jump_register(&f) == reg)
			return true;
		if (uses(&f, reg))
			return false;
		if (f.z.mnemonic == ZYDIS_MNEMONIC_JMP &&
		    f.op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			at += f.z.length + (uint64_t)f.op[0].imm.value.s;
		else if (f.z.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE)
			at += f.z.length;
		else
			return false;
	}
	return false;
}

/* Is it jmp *@start(,%i,8), or mov @start(,%i,8), %x with only a jump reading %x? */
static bool reads_addresses(const struct vf *vf, uint64_t at, uint64_t end, uint64_t start)
{
	const ZydisDecodedOperand *mem;
	struct vf_full f;

	if (!vf_decode_full(vf, at, end, &f))
		return false;
	mem = f.z.mnemonic == ZYDIS_MNEMONIC_JMP ? &f.op[0] : &f.op[1];
	if (!is_memory(mem, 8) || mem->mem.base != ZYDIS_REGISTER_NONE ||
	    (uint64_t)mem->mem.disp.value != start)
		return false;
	if (f.z.mnemonic == ZYDIS_MNEMONIC_JMP)
		return true;
	return f.z.mnemonic == ZYDIS_MNEMONIC_MOV && f.op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       f.op[0].size == 64 && is_jumped_to(vf, at + f.z.length, f.op[0].reg.value);
}

/* Does it add two registers of 64 bits, as add or lea (%b,%x), %x? */
static bool is_sum(const struct vf_full *f)
{
	const ZydisDecodedOperand *op = &f->op[1];

	if (f->z.operand_count < 2 || f->op[0].size != 64)
		return false;
	if (f->z.mnemonic == ZYDIS_MNEMONIC_LEA)
		return op->mem.base != ZYDIS_REGISTER_NONE &&
		       op->mem.index != ZYDIS_REGISTER_NONE && op->mem.scale == 1 &&
		       !op->mem.disp.value;
	return f->z.mnemonic == ZYDIS_MNEMONIC_ADD && op->type == ZYDIS_OPERAND_TYPE_REGISTER;
}

/* Is the value loaded before @at added to another one and jumped to, within @apart instructions? */
static bool becomes_target(const struct vf *vf, uint64_t at, uint64_t end, unsigned int apart)
{
	bool added = false;
	struct vf_full f;

	for (unsigned int n = 0; n < apart && vf_decode_full(vf, at, end, &f); n++) {
		if (jump_register(&f) != ZYDIS_REGISTER_NONE)
			return added;
		added |= is_sum(&f);
		at += f.z.length;
	}
	return false;
}

/* Answers of loads_offset() about one function, for each register. */
struct loads {
	const struct vf_fde *user;
	uint32_t known, yes;
};

/* Is there a movslq (%b,%i,4) in the function whose value is jumped to? */
static bool loads_offset(const struct vf *vf, const struct vf_fde *user, ZydisRegister base,
			 unsigned int apart)
{
	const uint64_t end = user->start + user->size;
	struct vf_full f;

	for (uint64_t at = user->start; at < end; at = vf_bits_next(&vf->old.grid, at + 1, end)) {
		const uint8_t *p = mp_elf_bytes(vf->o, at, end - at);

		/* Decode only movslq, REX.W 63. */
		if (!p || end - at < 4 || (p[0] & 0xf8) != 0x48 || p[1] != 0x63)
			continue;
		if (vf_decode_full(vf, at, end, &f) && is_memory(&f.op[1], 4) &&
		    f.op[1].mem.base == base && !f.op[1].mem.disp.value &&
		    becomes_target(vf, at + f.z.length, end, apart))
			return true;
	}
	return false;
}

/* Is it lea @start(%rip), %b, with a load by %b that becomes the target of a jump? */
static bool reads_offsets(const struct vf *vf, const struct vf_fde *user, uint64_t at,
			  uint64_t start, unsigned int apart, struct loads *loads)
{
	struct vf_full f;
	uint32_t bit;

	if (!vf_decode_full(vf, at, user->start + user->size, &f) ||
	    f.z.mnemonic != ZYDIS_MNEMONIC_LEA || f.op[1].mem.base != ZYDIS_REGISTER_RIP ||
	    f.op[0].size != 64 || at + f.z.length + (uint64_t)f.op[1].mem.disp.value != start)
		return false;
	if (loads->user != user)
		*loads = (struct loads){.user = user};
	bit = UINT32_C(1) << (ZydisRegisterGetId(f.op[0].reg.value) & 15);
	if (!(loads->known & bit) && loads_offset(vf, user, f.op[0].reg.value, apart))
		loads->yes |= bit;
	loads->known |= bit;
	return loads->yes & bit;
}

static bool replaces(const struct vf_full *f, ZydisRegister reg)
{
	for (uint8_t i = 0; i < f->z.operand_count; i++)
		if (f->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    f->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    ZydisRegisterGetLargestEnclosing(f->z.machine_mode, f->op[i].reg.value) == reg)
			return true;
	return false;
}

/*
 * Is @start added to something and the sum jumped to, soon behind the lea at @at? Compilers that do not
 * optimise name the table twice: to read the entry, and for the sum.
 */
static bool is_added_to_jump(const struct vf *vf, uint64_t at, uint64_t end, uint64_t start)
{
	ZydisRegister base = ZYDIS_REGISTER_NONE, sum = ZYDIS_REGISTER_NONE;
	struct vf_full f;

	for (unsigned int n = 0; n < MAX_APART_LOADED && vf_decode_full(vf, at, end, &f); n++) {
		const ZydisRegister jump = jump_register(&f);

		if (jump != ZYDIS_REGISTER_NONE)
			return jump == sum;
		if (f.z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
			return false;
		at += f.z.length;
		if (is_sum(&f) && base != ZYDIS_REGISTER_NONE && uses(&f, base)) {
			sum = f.op[0].reg.value;
			continue;
		}
		if (replaces(&f, sum))
			sum = ZYDIS_REGISTER_NONE;
		if (replaces(&f, base))
			base = ZYDIS_REGISTER_NONE;
		if (f.z.mnemonic == ZYDIS_MNEMONIC_LEA && f.op[1].mem.base == ZYDIS_REGISTER_RIP &&
		    at + (uint64_t)f.op[1].mem.disp.value == start)
			base = f.op[0].reg.value;
	}
	return false;
}

/* ---- the table ----------------------------------------------------------------------------- */

/* Do all instructions that name @start have one of these forms, in functions that are
 * understood? */
static bool is_read_to_jump(const struct vf *vf, uint64_t start, uint8_t size)
{
	size_t i = vf_first_ref(vf, start);
	struct loads loads = {0};

	if (i == vf->old.refs.nr || vf->old.refs.list[i].to != start)
		return false;
	for (; i < vf->old.refs.nr && vf->old.refs.list[i].to == start; i++) {
		uint64_t at = vf->old.refs.list[i].insn;
		const struct vf_fde *fde = vf_eh_find(&vf->old.eh, at);

		if (!fde || fde->flags & (VF_FDE_BAD | VF_FDE_OFF_GRID))
			return false;
		if (size == 8 ? !reads_addresses(vf, at, fde->start + fde->size, start)
			      : !reads_offsets(vf, fde, at, start, MAX_APART, &loads))
			return false;
	}
	return true;
}

bool vf_starts_table(const struct vf *vf, uint64_t start)
{
	struct loads loads = {0};

	for (size_t i = vf_first_ref(vf, start);
	     i < vf->old.refs.nr && vf->old.refs.list[i].to == start; i++) {
		uint64_t at = vf->old.refs.list[i].insn;
		const struct vf_fde *fde = vf_eh_find(&vf->old.eh, at);

		if (!fde || (!reads_offsets(vf, fde, at, start, MAX_APART_LOADED, &loads) &&
			     !is_added_to_jump(vf, at, fde->start + fde->size, start)))
			return false;
	}
	return true;
}

/* May this entry lead to a copy: is @label inside a function that reads the table? */
static bool is_label(const struct vf *vf, uint64_t start, uint64_t label)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, label);

	if (!fde || label == fde->start || !vf_bits_get(&vf->old.grid, label))
		return false;
	for (size_t i = vf_first_ref(vf, start);
	     i < vf->old.refs.nr && vf->old.refs.list[i].to == start; i++)
		if (vf->old.refs.list[i].insn - fde->start < fde->size)
			return true;
	return false;
}

int vf_prove_switch(const struct vf *vf, uint64_t at, uint8_t size)
{
	const struct mp_section *sec = mp_elf_section_at(vf->o, at);
	uint64_t start = at, label;

	if (!sec)
		return vf_refuse(vf, at, "data changed outside all sections");
	while (!vf_bits_get(&vf->old.data_ref, start)) {
		if (start - sec->vaddr < size)
			return vf_refuse(vf, at, "data changed that is no entry of a jump table");
		start -= size;
	}
	/* A word of data may begin a further array, as an operand may. */
	if (vf_bits_next(&vf->old.data_ref, start + 1, at + size) < at + size ||
	    vf_bits_next(&vf->old.word_ref, start + 1, at + size) < at + size)
		return vf_refuse(vf, at, "the table at %#llx has other references",
				 (unsigned long long)start);
	if (!mp_elf_is_readonly(vf->o, start) || !mp_elf_is_readonly(vf->o, at + size - 1))
		return vf_refuse(vf, at, "the table at %#llx is writable",
				 (unsigned long long)start);
	if (!is_read_to_jump(vf, start, size))
		return vf_refuse(vf, at, "the table at %#llx is not only read for jumps",
				 (unsigned long long)start);
	for (uint64_t k = start; k <= at; k += size)
		if (!read_entry(vf->o, k, start, size, &label) || !vf_is_text(vf, label) ||
		    !vf_bits_get(&vf->old.grid, label))
			return vf_refuse(vf, k, "entry of a changed table leads to no instruction");
	vf->result->table.start = start;
	/* The table ends where words are no such entries any more. Each changed entry is
	 * checked on its own. */
	do
		at += size;
	while (at + size <= sec->vaddr + sec->size &&
	       vf_bits_next(&vf->old.data_ref, at, at + size) == at + size &&
	       vf_bits_next(&vf->old.word_ref, at, at + size) == at + size &&
	       read_entry(vf->o, at, start, size, &label) && vf_is_text(vf, label) &&
	       vf_bits_get(&vf->old.grid, label));
	vf->result->table.end = at;
	vf->result->table.kind = size;
	return 0;
}

/* Does the table that was proved last contain @at? */
static bool goes_on(const struct vf *vf, uint64_t at, uint8_t size)
{
	return size == vf->result->table.kind && at >= vf->result->table.start &&
	       at < vf->result->table.end;
}

int vf_check_switch_word(const struct vf *vf, uint64_t vaddr, uint64_t *next)
{
	const uint8_t size = is_fixed(vf) ? 8 : 4;
	uint64_t at = vaddr & ~(uint64_t)(size - 1), was = 0, now = 0;

	if (!goes_on(vf, at, size)) {
		int ret = vf_prove_switch(vf, at, size);

		if (ret)
			return ret;
	}
	if (!read_entry(vf->o, at, vf->result->table.start, size, &was) ||
	    !read_entry(vf->n, at, vf->result->table.start, size, &now) ||
	    !is_label(vf, vf->result->table.start, was) || !vf_is_copy(vf, was, now))
		return vf_refuse(vf, at, "table entry leads to %#llx, which is no copy of %#llx",
				 (unsigned long long)now, (unsigned long long)was);
	vf->result->report.nr_table_entries++;
	*next = at + size;
	return 0;
}
