// SPDX-License-Identifier: Apache-2.0
/*
 * verify_answers - proves that an output answers for copies when the program asks which function encloses an address.
 *
 * The program asks by calls and jumps through slots of _Unwind_FindEnclosingFunction(). Each of them leads to Morph's
 * code, whose table has all copies with their originals. It asks for the original instead, and then leaves by the same
 * slot. So the answer for a copy is that for its original, as it was; and if all pointers to a function lead to a copy
 * now, the answer for all of it is that for the start of this copy. verify_enclosing calls the part that finds uses of
 * imports.
 */
#include <string.h>

#include "editor/base/enclosing_code.h"
#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/known/verify_answers.h"
#include "editor/verify/read/verify_piece_index.h"
#include "editor/verify/read/verify_plt.h"

#define SECTION ".morph.enclosing"

static bool is_import(const struct mp_symbol *sym, const char *name)
{
	return sym->dynamic && sym->shndx == SHN_UNDEF && sym->name && !strcmp(sym->name, name);
}

/* The same name with two versions would be two imports. */
static void find_slots(const struct vf *vf, const char *name, struct vf_uses *uses)
{
	const struct mp_symbol *sym = NULL;

	for (uint32_t i = 0; i < vf->o->nr_symbols; i++) {
		if (!is_import(&vf->o->symbols[i], name))
			continue;
		uses->unknown |= sym != NULL;
		sym = &vf->o->symbols[i];
	}
	for (uint32_t i = 0; sym && i < vf->o->nr_dyn_relocs; i++) {
		const struct mp_reloc *rel = &vf->o->dyn_relocs[i];

		if (rel->sym != sym->index)
			continue;
		if (uses->nr_slots < VF_USE_SLOTS &&
		    (rel->type == R_X86_64_JUMP_SLOT || rel->type == R_X86_64_GLOB_DAT))
			uses->slots[uses->nr_slots++] = rel->vaddr;
		else
			uses->unknown = true;
	}
}

static void add_user(const struct vf *vf, struct vf_uses *uses, uint64_t vaddr)
{
	struct vf_fde *fde = vf_eh_find(&vf->old.eh, vaddr);

	if (fde && uses->nr_users < VF_USE_SITES)
		uses->users[uses->nr_users++] = fde;
	else
		uses->unknown = true;
}

/* The jump at @at may belong to a PLT's stub, behind endbr64, bnd, or both. */
static uint64_t stub_at(const struct vf *vf, uint64_t at, uint64_t slot)
{
	for (uint64_t before = 0; before <= 5; before++)
		if (before % 4 <= 1 && vf_stub_slot(vf, at - before) == slot)
			return at - before;
	return 0;
}

enum use {
	USE_MAYBE, /* code that verify does not understand */
	USE_NONE,
	USE_OPERAND,
	USE_NUMBER,
};

/* Which part of an instruction of the linear decode are the 4 bytes at @field? */
static enum use use_of(const struct vf *vf, uint64_t field, uint64_t to)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, field);
	uint64_t at = field;
	struct vf_insn insn;

	if (!fde || fde->flags & VF_FDE_BAD)
		return USE_MAYBE;
	while (!vf_bits_get(&vf->old.grid, at))
		if (at-- == fde->start)
			return USE_MAYBE;
	if (!vf_decode(mp_elf_bytes(vf->o, at, 1), fde->start + fde->size - at, at, &insn))
		return USE_MAYBE;
	if (at + insn.len <= field)
		return USE_MAYBE;
	if ((insn.disp_off && at + insn.disp_off == field) ||
	    (insn.rel_size == 4 && at + insn.rel_off == field))
		return insn.target == to ? USE_OPERAND : USE_NONE;
	return (insn.abs_off && at + insn.abs_off == field) ||
			       (insn.imm_size && at + insn.imm_off == field)
		       ? USE_NUMBER
		       : USE_NONE;
}

static bool in_stubs(const struct vf *vf, uint64_t vaddr)
{
	const struct mp_section *sec = mp_elf_section_at(vf->o, vaddr);

	return sec && (!strcmp(sec->name, ".plt") || !strcmp(sec->name, ".plt.sec") ||
		       !strcmp(sec->name, ".plt.got"));
}

static void add_site(const struct vf *vf, struct vf_uses *uses, uint64_t at, uint64_t slot,
		     bool known)
{
	const uint8_t *code = mp_elf_bytes(vf->o, at, 2);
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, at);
	uint64_t stub = stub_at(vf, at, slot);

	if (!code || code[0] != 0xff || (code[1] != 0x15 && code[1] != 0x25) || (!known && !stub) ||
	    uses->nr_sites == VF_USE_SITES || uses->nr_stubs == VF_USE_SLOTS) {
		uses->unknown = true;
		return;
	}
	uses->sites[uses->nr_sites++] = at;
	/* A function may be a stub, too: calls of it may go through the slot. */
	if (stub)
		uses->stubs[uses->nr_stubs++] = stub;
	/* All stubs of a section may share one FDE: its code is the linker's, and does not ask. */
	if (!stub || (fde && !in_stubs(vf, stub)))
		add_user(vf, uses, at);
	if (!stub)
		uses->unsure |= !fde || fde->flags & (VF_FDE_BAD | VF_FDE_OFF_GRID) ||
				!vf_bits_get(&vf->old.grid, at);
}

/* Looks for @to, a slot or a stub, in every 4 bytes of code. */
static void find_fields(const struct vf *vf, const struct mp_section *sec, uint64_t to,
			bool is_slot, struct vf_uses *uses)
{
	const uint8_t *b = mp_elf_bytes(vf->o, sec->vaddr, sec->size);

	for (uint64_t i = 0; b && i + 4 <= sec->size; i++) {
		uint64_t field = sec->vaddr + i;
		uint32_t number;
		enum use use;

		memcpy(&number, b + i, 4);
		/* An immediate may follow the displacement. */
		if (to - vf_displacement_target(b + i, field + 4) > 4 && number != to)
			continue;
		use = use_of(vf, field, to);
		if (use == USE_NUMBER && vf->o->ehdr.e_type != ET_EXEC)
			use = USE_NONE;
		if (is_slot && (use == USE_OPERAND || use == USE_MAYBE))
			add_site(vf, uses, field - 2, to, use == USE_OPERAND);
		else if (!is_slot && (use == USE_OPERAND || use == USE_NUMBER))
			add_user(vf, uses, field);
		else if (use == USE_MAYBE)
			uses->elsewhere = true;
		else
			uses->unknown |= use != USE_NONE;
	}
}

static void find_all(const struct vf *vf, const uint64_t *to, uint32_t nr, bool are_slots,
		     struct vf_uses *uses)
{
	for (uint32_t i = 0; i < vf->o->nr_sections; i++) {
		const struct mp_section *sec = &vf->o->sections[i];

		if (sec->flags & SHF_EXECINSTR && sec->type == SHT_PROGBITS)
			for (uint32_t k = 0; k < nr; k++)
				find_fields(vf, sec, to[k], are_slots, uses);
	}
}

void vf_find_uses(const struct vf *vf, const char *name, struct vf_uses *uses)
{
	*uses = (struct vf_uses){0};
	find_slots(vf, name, uses);
	find_all(vf, uses->slots, uses->nr_slots, true, uses);
	find_all(vf, uses->stubs, uses->nr_stubs, false, uses);
	if (uses->nr_slots && !uses->nr_sites)
		uses->unknown = true;
}

const struct mp_section *vf_answers(const struct vf *vf)
{
	return mp_elf_section(vf->o, SECTION) ? NULL : mp_elf_section(vf->n, SECTION);
}

bool vf_is_answers_section(const struct vf *vf, const struct mp_section *sec)
{
	return sec == vf->now.answers && sec->type == SHT_PROGBITS &&
	       sec->flags == (SHF_ALLOC | SHF_EXECINSTR) && sec->align == 16 &&
	       !(sec->vaddr % 16) && !sec->link && !sec->info && !sec->entsize;
}

bool vf_is_question(const struct vf *vf, uint64_t vaddr, uint64_t *next)
{
	for (uint32_t i = 0; vf->now.answers && i < vf->old.asking.nr_sites; i++) {
		if (vaddr - vf->old.asking.sites[i] >= VF_SLOT_BRANCH)
			continue;
		*next = vf->old.asking.sites[i] + VF_SLOT_BRANCH;
		return true;
	}
	return false;
}

/* Each question leads to the code: `addr32 call` or `jmp; nop`, as long as the call or jump through a slot was. */
static int check_questions(const struct vf *vf)
{
	for (uint32_t i = 0; i < vf->old.asking.nr_sites; i++) {
		uint64_t at = vf->old.asking.sites[i];
		const uint8_t *a = mp_elf_bytes(vf->o, at, VF_SLOT_BRANCH),
			      *b = mp_elf_bytes(vf->n, at, VF_SLOT_BRANCH);
		const struct vf_fde *fde = vf_eh_find(&vf->old.eh, at);
		bool call = a && a[1] == 0x15;

		if (fde && fde->flags & VF_FDE_READ)
			return vf_refuse(vf, at,
					 "the program may read code that asks the unwinder");
		if (!a || !b || !mp_elf_is_readonly(vf->o, at) ||
		    (call ? memcmp(b, "\x67\xe8", 2) : b[0] != 0xe9 || b[5] != 0x90) ||
		    vf_displacement_target(b + 1 + call, at + 5 + call) != vf->now.answers->vaddr)
			return vf_refuse(
				vf, at,
				"asks which function encloses an address, but not for copies");
	}
	return 0;
}

/* Return: the original of @p; NULL: it has no FDE. */
static const struct vf_fde *original_of(const struct vf *vf, const struct mp_map_piece *p)
{
	const struct vf_fde *fde;

	if (vf_is_inlined(vf, p))
		p = vf_inlined_caller(vf, p);
	fde = vf_eh_find(&vf->old.eh, p->old_vaddr);
	return fde && !(fde->flags & VF_FDE_SYMBOL_ONLY) ? fde : NULL;
}

/* Return: the address of the function that begins at @start: its copy's if all pointers changed; 0: not an FDE's start. */
static uint64_t address_now(const struct vf *vf, uint64_t start)
{
	const struct mp_map_piece *copy = vf_piece_from(vf, start);
	const struct vf_fde *fde;
	uint64_t now;

	if (!copy || !vf_bits_get(&vf->marks->pointer_moved, start))
		return start;
	now = vf->marks->pointer_now ? vf->marks->pointer_now[copy - vf->map->pieces] : 0;
	if (!now)
		now = copy->new_vaddr;
	fde = vf_eh_find(&vf->now.eh, now);
	return fde && fde->start == now ? now : 0;
}

/* The table is read from its first entry on. */
struct table {
	const uint8_t *bytes;
	uint64_t vaddr;
	size_t size, nr;
};

static bool has_entry(struct table *t, uint64_t start, uint64_t end, uint64_t function)
{
	const struct me_enclosing_entry want = {(int32_t)(start - t->vaddr),
						(uint32_t)(end - start),
						(int32_t)(function - t->vaddr)};

	return function && (++t->nr + 1) * sizeof(want) <= t->size &&
	       !memcmp(t->bytes + t->nr * sizeof(want), &want, sizeof(want)) &&
	       t->vaddr + (uint64_t)(int64_t)want.start == start &&
	       t->vaddr + (uint64_t)(int64_t)want.function == function;
}

/*
 * The table has an entry for the old code of each function with another address, then one for each run of copies of one
 * original, in their order. The first one is their number.
 */
static int check_table(const struct vf *vf)
{
	struct table t = {.vaddr = vf->now.answers->vaddr + ME_ENCLOSING_CODE_SIZE,
			  .size = vf->now.answers->size - ME_ENCLOSING_CODE_SIZE};
	const struct vf_fde *of = NULL;
	struct me_enclosing_entry first;
	uint64_t start = 0, end = 0;

	t.bytes = mp_elf_bytes(vf->n, t.vaddr, t.size);
	for (uint32_t i = 0; t.bytes && i < vf->old.eh.nr_fdes; i++) {
		const struct vf_fde *fde = &vf->old.eh.fdes[i];
		uint64_t now = address_now(vf, fde->start);

		if (now != fde->start && !(fde->flags & VF_FDE_SYMBOL_ONLY) &&
		    !has_entry(&t, fde->start, fde->start + fde->size, now))
			return vf_refuse(vf, fde->start,
					 "the table of enclosing functions has no entry for this "
					 "function, whose address changed");
	}
	for (uint32_t i = 0; t.bytes && i <= vf->map->nr_pieces; i++) {
		const struct mp_map_piece *p = i < vf->map->nr_pieces ? &vf->map->pieces[i] : NULL;
		const struct vf_fde *now = p ? original_of(vf, p) : NULL;

		if (p && !p->new_size)
			continue;
		if (of && now != of && !has_entry(&t, start, end, address_now(vf, of->start)))
			return vf_refuse(vf, start,
					 "the table of enclosing functions has no entry for this "
					 "copy");
		if (p && now != of)
			start = p->new_vaddr;
		of = now;
		end = p ? p->new_vaddr + p->new_size : 0;
	}
	first = (struct me_enclosing_entry){(int32_t)t.nr, 0, 0};
	if (!t.bytes || (t.nr + 1) * sizeof(first) != t.size ||
	    memcmp(t.bytes, &first, sizeof(first)))
		return vf_refuse(vf, t.vaddr, "the table of enclosing functions has other entries");
	return 0;
}

static int check_code(const struct vf *vf)
{
	uint8_t want[ME_ENCLOSING_CODE_SIZE], frames[ME_ENCLOSING_FRAMES_SIZE];
	const uint8_t *code = mp_elf_bytes(vf->n, vf->now.answers->vaddr, sizeof(want));
	uint64_t at = vf->now.eh.vaddr + vf->now.eh.size - 4 - sizeof(frames);
	const uint8_t *now = mp_elf_bytes(vf->n, at, sizeof(frames));
	uint32_t nr = 0;

	if (!code || vf->now.answers->size < sizeof(want) + sizeof(struct me_enclosing_entry) ||
	    !me_enclosing_code_write(vf->now.answers->vaddr, vf->old.asking.slots[0], want) ||
	    memcmp(code, want, sizeof(want)))
		return vf_refuse(vf, vf->now.answers->vaddr,
				 "the code that answers for copies is not Morph's");
	for (uint32_t i = 0; i < vf->now.eh.nr_fdes; i++)
		nr += vf->now.eh.fdes[i].start - vf->now.answers->vaddr < sizeof(want);
	if (!now || nr != 1 || !me_enclosing_frames_write(vf->now.answers->vaddr, at, frames) ||
	    memcmp(now, frames, sizeof(frames)))
		return vf_refuse(vf, vf->now.answers->vaddr,
				 "the FDE of the code that answers for copies is not Morph's");
	return 0;
}

int vf_check_answers(const struct vf *vf)
{
	int ret;

	if (!vf->now.answers)
		return 0;
	ret = check_code(vf);
	if (!ret)
		ret = check_table(vf);
	if (!ret)
		ret = check_questions(vf);
	vf_own_at(vf, vf->now.answers->vaddr, vf->now.answers->size, ME_OWNER_ANSWERS);
	return ret;
}
