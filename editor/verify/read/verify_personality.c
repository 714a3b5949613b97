// SPDX-License-Identifier: Apache-2.0
/*
 * verify_personality - decides which personality routines read exception tables as verify_lsda
 * does. Called by verify_unwind.
 *
 * Routines are known by name. In a file without names, the bytes decide. A routine counts as
 * C++'s if it has a move whose operand is the class of C++ exceptions, and as C's if it holds
 * the results that the ABI defines. It counts as Rust's if it reads the slots of five functions
 * of the unwinder, and the file holds paths of Rust's library; such a file has no routine of
 * C's. All tables of a routine must be readable as those of its language.
 */
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_lsda.h"
#include "editor/verify/read/verify_personality.h"

static const char *personality_at(const struct mp_elf *o, uint64_t vaddr)
{
	for (uint32_t i = 0; i < o->nr_symbols; i++) {
		const struct mp_symbol *sym = &o->symbols[i];

		if (sym->vaddr == vaddr && sym->name && sym->type != STT_SECTION &&
		    sym->type != STT_FILE && strstr(sym->name, "personality"))
			return sym->name;
	}
	return NULL;
}

/* Return: the routine in the slot at @slot, which the linker filled, or which the loader fills
 * from this file; 0: a routine of another module, or not known. */
static uint64_t in_slot(const struct mp_elf *o, uint64_t slot)
{
	const uint8_t *p = mp_elf_bytes(o, slot, sizeof(uint64_t));
	uint64_t to;

	for (uint32_t i = 0; i < o->nr_dyn_relocs; i++)
		if (o->dyn_relocs[i].vaddr == slot)
			return o->dyn_relocs[i].type == R_X86_64_RELATIVE
				       ? (uint64_t)o->dyn_relocs[i].addend
				       : 0;
	if (!p || o->ehdr.e_type != ET_EXEC)
		return 0;
	memcpy(&to, p, sizeof(to));
	return to;
}

static const char *personality_name(const struct vf *vf, const struct vf_cie *cie)
{
	const struct mp_elf *o = vf->o;
	const char *name = personality_at(o, cie->personality);

	if (name)
		return name;
	/* The function is reached through a slot that the loader fills, or through the PLT. */
	for (uint32_t i = 0; i < o->nr_dyn_relocs; i++) {
		const struct mp_reloc *rel = &o->dyn_relocs[i];

		if (rel->vaddr != cie->personality || !rel->sym)
			continue;
		for (uint32_t k = 0; k < o->nr_symbols; k++)
			if (o->symbols[k].dynamic && o->symbols[k].index == rel->sym)
				return o->symbols[k].name;
		return NULL;
	}
	if (!(cie->personality_enc & DW_EH_PE_indirect))
		return NULL;
	return personality_at(o, in_slot(o, cie->personality));
}

/* ---- routines without a name --------------------------------------------------------------- */

static bool has_names(const struct mp_elf *o)
{
	for (uint32_t i = 0; i < o->nr_symbols; i++)
		if (!o->symbols[i].dynamic && o->symbols[i].type == STT_FUNC)
			return true;
	return false;
}

static bool holds(const uint8_t *p, uint64_t size, const void *what, size_t len)
{
	return memmem(p, size, what, len) != NULL;
}

/* Does a move of 8 bytes hold the class of a C++ exception, or its negative? */
static bool holds_class(const uint8_t *p, uint64_t size)
{
	static const char *const classes[] = {"++CCUNG", "++CGNLC"};

	for (uint64_t k = 0; k + 10 <= size; k++) {
		uint64_t value, minus;

		if ((p[k] != 0x48 && p[k] != 0x49) || (p[k + 1] & 0xf8) != 0xb8)
			continue;
		memcpy(&value, p + k + 2, sizeof(value));
		minus = -value;
		/* The lowest byte, the first, tells kinds of C++ exceptions apart. */
		for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
			if (!memcmp((const char *)&value + 1, classes[i], 7) ||
			    !memcmp((const char *)&minus + 1, classes[i], 7))
				return true;
	}
	return false;
}

/* Does it test whether the version is 1, and hold the three results: failed, continue, found? */
static bool answers_like_c(const uint8_t *p, uint64_t size)
{
	static const uint8_t version[] = {0x83, 0xff, 0x01};
	static const uint8_t failed[] = {0xb8, 3, 0, 0, 0}, found[] = {0xb8, 7, 0, 0, 0};
	static const uint8_t goes_on[] = {0xb8, 8, 0, 0, 0};
	bool keeps_7_bits = false;

	for (uint64_t k = 0; k + 3 <= size; k++)
		keeps_7_bits |= p[k] == 0x83 && (p[k + 1] & 0xf8) == 0xe0 && p[k + 2] == 0x7f;
	return keeps_7_bits && holds(p, size, version, sizeof(version)) &&
	       holds(p, size, failed, sizeof(failed)) && holds(p, size, found, sizeof(found)) &&
	       holds(p, size, goes_on, sizeof(goes_on));
}

static bool has_rust_library(const struct mp_elf *o)
{
	return holds(o->data, o->size, "library/core/src/", 17) ||
	       holds(o->data, o->size, "library/std/src/", 16) ||
	       holds(o->data, o->size, "library/alloc/src/", 18);
}

static bool slot_is_of(const struct mp_elf *o, uint64_t slot, const char *name)
{
	for (uint32_t i = 0; i < o->nr_dyn_relocs; i++) {
		const struct mp_reloc *rel = &o->dyn_relocs[i];

		if (rel->vaddr != slot || !rel->sym)
			continue;
		for (uint32_t k = 0; k < o->nr_symbols; k++)
			if (o->symbols[k].dynamic && o->symbols[k].index == rel->sym)
				return !strcmp(o->symbols[k].name, name);
	}
	return false;
}

/* Do four bytes of the routine at @vaddr hold the distance to the slot of function @name? */
static bool reads_slot(const struct mp_elf *o, const uint8_t *p, uint64_t size, uint64_t vaddr,
		       const char *name)
{
	for (uint64_t k = 2; k + 4 <= size; k++) {
		int32_t disp;

		if ((p[k - 1] & 0xc7) != 0x05) /* not rip-relative */
			continue;
		memcpy(&disp, p + k, sizeof(disp));
		if (slot_is_of(o, vaddr + k + 4 + (uint64_t)(int64_t)disp, name))
			return true;
	}
	return false;
}

static bool calls_like_rust(const struct mp_elf *o, const uint8_t *p, uint64_t size, uint64_t vaddr)
{
	static const uint8_t version[] = {0x83, 0xff, 0x01};

	return holds(p, size, version, sizeof(version)) &&
	       reads_slot(o, p, size, vaddr, "_Unwind_GetLanguageSpecificData") &&
	       reads_slot(o, p, size, vaddr, "_Unwind_GetIPInfo") &&
	       reads_slot(o, p, size, vaddr, "_Unwind_GetRegionStart") &&
	       reads_slot(o, p, size, vaddr, "_Unwind_SetGR") &&
	       reads_slot(o, p, size, vaddr, "_Unwind_SetIP");
}

/* Are all tables of @cie's routine readable? @plain: and without types and actions. Return: 1, 0, -ENOMEM. */
static int tables_read(const struct vf *vf, const struct vf_cie *cie, bool plain)
{
	struct vf_lsda lsda = {0};
	bool good = true;
	int ret = 0;

	for (uint32_t i = 0; good && i < vf->old.eh.nr_fdes; i++) {
		const struct vf_fde *fde = &vf->old.eh.fdes[i];
		const struct vf_cie *other = &vf->old.eh.cies[fde->cie];

		if (!fde->lsda || !other->personality || other->personality != cie->personality)
			continue;
		ret = vf_lsda_read(vf->o, fde->lsda, fde->start, &lsda);
		good = !ret;
		if (plain && lsda.ttype_enc != DW_EH_PE_omit)
			good = false;
		for (uint32_t k = 0; good && k < lsda.nr; k++)
			good = lsda.site[k].end <= fde->start + fde->size &&
			       (!plain || !lsda.site[k].action) &&
			       (!lsda.site[k].pad || vf_is_text(vf, lsda.site[k].pad));
	}
	vf_lsda_fini(&lsda);
	return ret == -ENOMEM ? ret : good;
}

static int known_by_code(const struct vf *vf, const struct vf_cie *cie, uint8_t *language)
{
	bool indirect = cie->personality_enc & DW_EH_PE_indirect;
	uint64_t vaddr = indirect ? in_slot(vf->o, cie->personality) : cie->personality;
	const struct vf_fde *fde = vf_is_text(vf, vaddr) ? vf_eh_find(&vf->old.eh, vaddr) : NULL;
	const uint8_t *p;
	int known;

	if (!fde || fde->start != vaddr || has_names(vf->o))
		return false;
	p = mp_elf_bytes(vf->o, fde->start, fde->size);
	if (!p)
		return false;
	if (holds_class(p, fde->size))
		return tables_read(vf, cie, false);
	if (has_rust_library(vf->o)) {
		if (!calls_like_rust(vf->o, p, fde->size, vaddr))
			return 0;
		*language = VF_RUST;
		return tables_read(vf, cie, false);
	}
	if (!answers_like_c(p, fde->size))
		return 0;
	known = tables_read(vf, cie, true);
	if (known > 0)
		*language = VF_C;
	return known;
}

int vf_known_personality(const struct vf *vf, const struct vf_cie *cie, uint8_t *language)
{
	static const char *const known[] = {
		[VF_CXX] = "__gxx_personality_v0",
		[VF_C] = "__gcc_personality_v0",
		[VF_RUST] = "rust_eh_personality",
	};
	const char *name = personality_name(vf, cie);

	*language = VF_CXX;
	if (!name)
		return known_by_code(vf, cie, language);
	if (!strncmp(name, "DW.ref.", 7))
		name += 7;
	for (uint8_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t len = strlen(known[i]);

		/* A version may follow. */
		if (!strncmp(name, known[i], len) && (!name[len] || name[len] == '@')) {
			*language = i;
			return true;
		}
	}
	return false;
}
