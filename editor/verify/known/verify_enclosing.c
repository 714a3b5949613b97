// SPDX-License-Identifier: Apache-2.0
/*
 * verify_enclosing - marks functions that a program may look for among the frames of its stack.
 *
 * It asks the unwinder where a frame's unwind information begins, and compares the answer with a function's address.
 * For a frame of a copy, this is another address. So in a file that asks, functions whose address operands or words
 * hold have no copies, unless the output answers for copies (verify_answers). Personality routines ask as well, but to read their own tables. Called by verify_scan.
 */
#include <dwarf.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/known/verify_answers.h"
#include "editor/verify/known/verify_enclosing.h"

#define CALLERS_MAX 64

/* Functions that branch to one of a static program's functions. */
struct callers {
	const struct vf_fde *fde[CALLERS_MAX];
	uint32_t nr;
	bool too_many;
};

static void add_caller(struct callers *c, const struct vf_fde *fde)
{
	if (c->nr && c->fde[c->nr - 1] == fde)
		return;
	if (c->nr == CALLERS_MAX)
		c->too_many = true;
	else
		c->fde[c->nr++] = fde;
}

/* Does an instruction of @fde that starts in [@at, @end) branch to @to? */
static bool branches(const struct vf *vf, const struct vf_fde *fde, uint64_t at, uint64_t end,
		     uint64_t to)
{
	uint64_t behind = fde->start + fde->size;
	const uint8_t *p = mp_elf_bytes(vf->o, fde->start, fde->size);

	for (at = vf_bits_next(&vf->old.grid, at, end); p && at < end;
	     at = vf_bits_next(&vf->old.grid, at + 1, end)) {
		struct vf_insn insn;

		if (vf_decode(p + (at - fde->start), behind - at, at, &insn) && insn.rel_size &&
		    insn.target == to)
			return true;
	}
	return false;
}

#define FIELDS 16

typedef uint32_t four_fields __attribute__((vector_size(16)));

static inline four_fields fields_at(const uint8_t *p)
{
	four_fields fields;

	memcpy(&fields, p, sizeof(fields));
	return fields;
}

/* Does one of the FIELDS fields of 4 bytes from @p on, of which each begins a byte behind the one before, lead to
 * @distance from @p? */
static inline bool may_lead(const uint8_t *p, uint64_t distance)
{
	four_fields want = (uint32_t)distance - (four_fields){4, 8, 12, 16}, found;
	uint64_t any[2];

	found = (four_fields)(fields_at(p) == want) | (four_fields)(fields_at(p + 1) == want - 1) |
		(four_fields)(fields_at(p + 2) == want - 2) |
		(four_fields)(fields_at(p + 3) == want - 3);
	memcpy(any, &found, sizeof(any));
	return any[0] | any[1];
}

/* Offsets of two bytes reach so far, with the instruction. */
#define SHORT_REACH (0x8000 + 15)

/* The same for all of @fde. From farther away, an instruction can branch to @to by a field of 4 bytes only. */
static bool function_branches(const struct vf *vf, const struct vf_fde *fde, uint64_t to)
{
	uint64_t end = fde->start + fde->size;
	const uint8_t *p = mp_elf_bytes(vf->o, fde->start, fde->size);

	if (to + SHORT_REACH >= fde->start && to < end + SHORT_REACH)
		return branches(vf, fde, fde->start, end, to);
	for (uint64_t k = 0, next; p && k + 4 <= fde->size; k = next) {
		uint64_t at = fde->start + k, first = k > 15 ? at - 15 : fde->start;

		next = k + FIELDS;
		if ((next + 3 > fde->size || may_lead(p + k, to - at)) &&
		    branches(vf, fde, first, next < fde->size ? fde->start + next : end, to))
			return true;
	}
	return false;
}

static void find_callers(const struct vf *vf, const struct vf_fde *callee, struct callers *c)
{
	*c = (struct callers){.nr = 0};
	/* The scan marks what code branches to. */
	if (vf_is_text(vf, callee->start) && !vf_bits_get(&vf->old.sure_target, callee->start) &&
	    !vf_bits_get(&vf->old.maybe_target, callee->start))
		return;
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++)
		if (&vf->old.eh.fdes[i] != callee &&
		    function_branches(vf, &vf->old.eh.fdes[i], callee->start))
			add_caller(c, &vf->old.eh.fdes[i]);
}

static uint64_t routine_of(const struct vf *vf, const struct vf_cie *cie)
{
	const struct mp_reloc *rel;
	const uint8_t *p;
	uint64_t to = 0;

	if (!cie->personality || !(cie->personality_enc & DW_EH_PE_indirect))
		return cie->personality;
	rel = mp_elf_dyn_reloc_at(vf->o, cie->personality);
	if (rel)
		return rel->sym && rel->sym_shndx == SHN_UNDEF
			       ? 0
			       : rel->sym_value + (uint64_t)rel->addend;
	p = mp_elf_bytes(vf->o, cie->personality, sizeof(to));
	if (p)
		memcpy(&to, p, sizeof(to));
	return to;
}

/* Is the function at @vaddr a personality routine? */
static bool is_routine(const struct vf *vf, uint64_t vaddr)
{
	for (uint32_t i = 0; i < vf->old.eh.nr_cies; i++)
		if (routine_of(vf, &vf->old.eh.cies[i]) == vaddr)
			return true;
	return false;
}

static const struct mp_symbol *defined(const struct mp_elf *o, const char *name)
{
	for (uint32_t i = 0; i < o->nr_symbols; i++)
		if (o->symbols[i].shndx != SHN_UNDEF && o->symbols[i].type == STT_FUNC &&
		    o->symbols[i].name && !strcmp(o->symbols[i].name, name))
			return &o->symbols[i];
	return NULL;
}

static bool is_named_routine(const struct vf *vf, uint64_t vaddr)
{
	for (uint32_t i = 0; i < vf->o->nr_symbols; i++)
		if (vf->o->symbols[i].vaddr == vaddr && vf->o->symbols[i].name &&
		    strstr(vf->o->symbols[i].name, "personality"))
			return true;
	return false;
}

/* Does @fde belong to a routine: is it one, or does one call it, perhaps through another such function? */
static bool is_for_tables(const struct vf *vf, const struct vf_fde *fde, int depth)
{
	struct callers c;
	bool called = false;

	if (is_routine(vf, fde->start) || is_named_routine(vf, fde->start))
		return true;
	if (!depth)
		return false;
	find_callers(vf, fde, &c);
	for (uint32_t i = 0; !called && i < c.nr; i++)
		called = is_for_tables(vf, c.fde[i], depth - 1);
	return called;
}

/* _Unwind_GetRegionStart() of libgcc: [endbr64] mov 0xb8(%rdi), %rax; ret. */
static bool loads_region(const struct vf *vf, const struct vf_fde *fde)
{
	static const char code[] = "\x48\x8b\x87\xb8\0\0\0\xc3";
	uint64_t off = fde->size == 12 ? 4 : 0;
	const uint8_t *p = fde->size == 8 + off ? mp_elf_bytes(vf->o, fde->start, 8 + off) : NULL;

	return p && (!off || !memcmp(p, "\xf3\x0f\x1e\xfa", 4)) && !memcmp(p + off, code, 8);
}

static bool contains_asking(const struct vf *vf)
{
	const struct mp_symbol *sym = defined(vf->o, "_Unwind_GetRegionStart"),
			       *to = defined(vf->o, "_Unwind_FindEnclosingFunction");
	struct vf_fde *region = sym ? vf_eh_find(&vf->old.eh, sym->vaddr) : NULL,
		      *find = to ? vf_eh_find(&vf->old.eh, to->vaddr) : NULL;
	struct callers c;

	for (uint32_t i = 0; !region && i + 1 < vf->old.eh.nr_fdes; i++)
		if (loads_region(vf, &vf->old.eh.fdes[i])) {
			region = &vf->old.eh.fdes[i];
			find = region + 1;
		}
	if (!region || (sym && sym->dynamic))
		return false;
	for (uint32_t i = 0; i < vf->o->nr_symbols; i++)
		if (vf->o->symbols[i].dynamic && vf->o->symbols[i].vaddr == region->start)
			return false;
	if (find && (vf_bits_get(&vf->old.text_ref, find->start)))
		return true;
	if (find) {
		find_callers(vf, find, &c);
		if (c.nr)
			return true;
	}
	find_callers(vf, region, &c);
	for (uint32_t i = 0; i < c.nr; i++)
		if (!is_for_tables(vf, c.fde[i], 2))
			return true;
	return c.too_many;
}

/* Does the program ask in other functions than those that read tables? If it imports nothing, it may contain the unwinder. */
static bool asks_region(const struct vf *vf)
{
	struct vf_uses uses;

	vf_find_uses(vf, "_Unwind_GetRegionStart", &uses);
	if (!uses.nr_slots && !uses.unknown && !vf->old.asking.nr_slots)
		return contains_asking(vf);
	for (uint32_t i = 0; i < uses.nr_users; i++)
		if (!is_for_tables(vf, uses.users[i], 2))
			return true;
	return uses.unknown || uses.elsewhere;
}

static bool imports_asking(const struct vf *vf)
{
	static const char *const names[] = {"_Unwind_Find_FDE", "unw_get_proc_info",
					    "_ULx86_64_get_proc_info", "_Ux86_64_get_proc_info"};

	for (uint32_t i = 0; i < vf->o->nr_symbols; i++) {
		const struct mp_symbol *sym = &vf->o->symbols[i];

		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (sym->dynamic && sym->shndx == SHN_UNDEF && sym->name &&
			    !strcmp(sym->name, names[k]))
				return true;
	}
	return asks_region(vf);
}

/* Does the program ask in a way for which the output has no answers? Functions that ask stay in any case. */
static bool asks_for_itself(struct vf *vf)
{
	vf_find_uses(vf, "_Unwind_FindEnclosingFunction", &vf->old.asking);
	for (uint32_t i = 0; i < vf->old.asking.nr_users; i++)
		vf->old.asking.users[i]->flags |= VF_FDE_ASKED;
	if (!vf->old.asking.unknown && !vf->old.asking.unsure && vf->old.asking.nr_sites)
		vf->now.answers = vf_answers(vf);
	return (vf->old.asking.nr_slots || vf->old.asking.unknown) && !vf->now.answers;
}

static void mark(const struct vf *vf, uint64_t vaddr)
{
	struct vf_fde *fde = vf_is_text(vf, vaddr) ? vf_eh_find(&vf->old.eh, vaddr) : NULL;

	if (fde && fde->start == vaddr)
		fde->flags |= VF_FDE_ASKED;
}

/* Words of data. Rust's are called, but not compared; those of .got stand for operands. */
static void mark_words(const struct vf *vf)
{
	bool rust = memmem(vf->o->data, vf->o->size, "library/std/src/", 16) ||
		    memmem(vf->o->data, vf->o->size, "library/core/src/", 17);
	const struct mp_section *got = mp_elf_section(vf->o, ".got");

	for (uint32_t i = 0; i < vf->o->nr_dyn_relocs; i++) {
		const struct mp_reloc *rel = &vf->o->dyn_relocs[i];

		if (rel->type != R_X86_64_JUMP_SLOT &&
		    (!rust || (got && rel->vaddr - got->vaddr < got->size)))
			mark(vf, rel->sym_value + (uint64_t)rel->addend);
	}
	if (rust)
		return;
	for (uint32_t i = 0; i < vf->o->nr_relocs; i++)
		if (vf->o->relocs[i].type == R_X86_64_64 && !vf_is_text(vf, vf->o->relocs[i].vaddr))
			mark(vf, vf->o->relocs[i].sym_value + (uint64_t)vf->o->relocs[i].addend);
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++)
		if (vf_bits_get(&vf->old.maybe_address, vf->old.eh.fdes[i].start))
			vf->old.eh.fdes[i].flags |= VF_FDE_ASKED;
}

void vf_find_asked(struct vf *vf)
{
	if (!asks_for_itself(vf) && !imports_asking(vf))
		return;
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++)
		if (vf_bits_get(&vf->old.text_ref, vf->old.eh.fdes[i].start))
			vf->old.eh.fdes[i].flags |= VF_FDE_ASKED;
	mark_words(vf);
}
