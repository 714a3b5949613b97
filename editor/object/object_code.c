// SPDX-License-Identifier: Apache-2.0
/*
 * object_code - what the references of an object mean, and which functions may be split. Anything
 * that is not understood keeps a function whole, a section in place, or refuses the object.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/object_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

static bool is_pc_relative(uint32_t type)
{
	return type == R_X86_64_PC32 || type == R_X86_64_PLT32;
}

static bool is_absolute(uint32_t type)
{
	return type == R_X86_64_64 || type == R_X86_64_32 || type == R_X86_64_32S;
}

static int compare_bases(const void *a, const void *b)
{
	const struct me_base *x = a, *y = b;

	if (x->section != y->section)
		return x->section < y->section ? -1 : 1;
	return (x->off > y->off) - (x->off < y->off);
}

/*
 * Entries of a table hold distances from its base, so an entry k bytes behind the base has an
 * addend that is k too large. The base is the last address before it that code loads, if all words
 * from there on are entries. Return: false: there is none.
 */
static bool table_bias(const struct me_object *o, uint32_t section, const Elf64_Rela *reloc,
		       int64_t *bias)
{
	const struct mp_relobj_section *s = &o->in->sections[section];
	const struct me_base key = {section, (uint32_t)reloc->r_offset};
	uint32_t low = mp_search(i, 0, o->nr_bases, compare_bases(&o->bases[i], &key) <= 0), first;
	uint64_t distance;

	if (!low || o->bases[low - 1].section != section)
		return false;
	distance = reloc->r_offset - o->bases[low - 1].off;
	first = mp_relobj_reloc_at(s, o->bases[low - 1].off);
	*bias = -(int64_t)distance;
	return distance % 4 == 0 && first < s->nr_relocs &&
	       s->relocs[first].r_offset == o->bases[low - 1].off &&
	       (uint64_t)(reloc - &s->relocs[first]) == distance / 4;
}

struct me_oref me_object_refer(const struct me_object *o, uint32_t section, const Elf64_Rela *reloc,
			       int64_t code_bias)
{
	const struct me_oref keep = {.kind = ME_OREF_KEEP}, unknown = {.kind = ME_OREF_UNKNOWN};
	uint32_t index = ELF64_R_SYM(reloc->r_info), type = ELF64_R_TYPE(reloc->r_info);
	const Elf64_Sym *symbol = &o->in->symbols[index];
	bool named = ELF64_ST_TYPE(symbol->st_info) != STT_SECTION;
	bool in_code = mp_relobj_is_code(&o->in->sections[section]);
	struct me_oref ref = {.kind = ME_OREF_PLACE};
	uint64_t place;

	if (type == R_X86_64_NONE || !mp_relobj_in_code(o->in, index) ||
	    o->codes[o->code_of[symbol->st_shndx]].closed)
		return keep;
	if (type == R_X86_64_SIZE32 || type == R_X86_64_SIZE64)
		return unknown;
	if (is_pc_relative(type) && !in_code) {
		if (named)
			return keep;
		if (!table_bias(o, section, reloc, &ref.bias))
			return unknown;
	} else if (!is_absolute(type)) {
		ref.bias = code_bias;
		if (!in_code && named)
			return keep;
	}
	place = symbol->st_value + (uint64_t)reloc->r_addend + (uint64_t)ref.bias;
	if (named && place == symbol->st_value)
		return keep;
	if ((named && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL) ||
	    (!is_pc_relative(type) && !is_absolute(type)))
		return unknown;
	ref.insn = me_object_insn_at(o, o->code_of[symbol->st_shndx], place);
	if (ref.insn == ME_NONE || o->insns[ref.insn].func == ME_NONE)
		return unknown;
	return ref;
}

/* Finds the tables' bases: what `lea' loads from data. */
static int find_bases(struct me_object *o, struct mp_err *err)
{
	for (uint32_t i = 0; i < o->nr_insns; i++) {
		const struct me_oinsn *insn = &o->insns[i];
		const struct mp_relobj_section *s = &o->in->sections[o->codes[insn->code].section];
		const Elf64_Rela *r;
		const Elf64_Sym *symbol;
		uint64_t off;

		if (insn->reloc == ME_NONE || insn->field < 2 || insn->field_size != 4 ||
		    s->data[insn->off + insn->field - 2] != 0x8d)
			continue;
		r = &s->relocs[insn->reloc];
		symbol = &o->in->symbols[ELF64_R_SYM(r->r_info)];
		off = symbol->st_value + (uint64_t)r->r_addend + (me_oinsn_end(insn) - r->r_offset);
		if (ELF64_R_TYPE(r->r_info) != R_X86_64_PC32 || symbol->st_shndx == SHN_UNDEF ||
		    symbol->st_shndx >= o->in->nr_sections || off > UINT32_MAX)
			continue;
		if (mp_grow(o->bases, o->cap_bases, o->nr_bases + 1))
			return mp_err_set(err, ENOMEM, "out of memory");
		o->bases[o->nr_bases++] = (struct me_base){symbol->st_shndx, (uint32_t)off};
	}
	if (o->nr_bases)
		qsort(o->bases, o->nr_bases, sizeof(*o->bases), compare_bases);
	return 0;
}

static int refuse_reference(const struct me_object *o, uint32_t section, const Elf64_Rela *reloc,
			    struct mp_err *err)
{
	return mp_err_set(err, EPERM,
			  "%s+%#llx refers to code in a way that is not understood (relocation %u)",
			  o->in->sections[section].name, (unsigned long long)reloc->r_offset,
			  (unsigned int)ELF64_R_TYPE(reloc->r_info));
}

/* References of code: those to places lead to instructions from here on. */
static int refer_from_code(struct me_object *o, struct me_oinsn *insn, struct mp_err *err)
{
	uint32_t section = o->codes[insn->code].section, nr = 0, place = ME_NONE;
	const struct mp_relobj_section *s = &o->in->sections[section];
	bool all_places = !o->codes[insn->code].closed;

	for (uint32_t r = insn->reloc;
	     r < s->nr_relocs && s->relocs[r].r_offset < me_oinsn_end(insn); r++, nr++) {
		int64_t bias = (int64_t)me_oinsn_end(insn) - (int64_t)s->relocs[r].r_offset;
		struct me_oref ref = me_object_refer(o, section, &s->relocs[r], bias);

		if (ref.kind == ME_OREF_UNKNOWN)
			return refuse_reference(o, section, &s->relocs[r], err);
		all_places &= ref.kind == ME_OREF_PLACE &&
			      is_pc_relative(ELF64_R_TYPE(s->relocs[r].r_info));
		if (ref.kind != ME_OREF_PLACE)
			continue;
		o->insns[ref.insn].flags |= ME_OINSN_TARGET;
		place = ref.insn;
	}
	/* Relocated operands that hold a distance are written anew, as those without relocation.
	 * Other relocations are translated. */
	if (nr == 1 && all_places) {
		insn->reloc = ME_NONE;
		insn->to = place;
	}
	return 0;
}

static int refer_from_data(struct me_object *o, uint32_t section, struct mp_err *err)
{
	const struct mp_relobj_section *s = &o->in->sections[section];

	for (uint32_t r = 0; r < s->nr_relocs; r++) {
		struct me_oref ref = me_object_refer(o, section, &s->relocs[r], 0);

		if (ref.kind == ME_OREF_UNKNOWN)
			return refuse_reference(o, section, &s->relocs[r], err);
		if (ref.kind == ME_OREF_PLACE)
			o->insns[ref.insn].flags |= ME_OINSN_TARGET;
	}
	return 0;
}

static void keep_whole(struct me_ofunc *func, const char *why)
{
	if (!func->whole)
		func->whole = why;
}

/* Marks what keeps functions in one piece. */
static void find_whole(struct me_object *o)
{
	for (uint32_t i = 0; i < o->nr_insns; i++) {
		const struct me_oinsn *insn = &o->insns[i], *to;
		const struct mp_relobj_section *s = &o->in->sections[o->codes[insn->code].section];

		if (insn->func == ME_NONE)
			continue;
		if (insn->flags & ME_OINSN_FIXED)
			keep_whole(&o->funcs[insn->func],
				   "it has loop, jrcxz or a prefixed branch");
		if (insn->kind == MP_INSN_IJUMP)
			o->funcs[insn->func].computes_jump = true;
		if (insn->kind == MP_INSN_CALL && insn->to != ME_NONE &&
		    o->insns[insn->to].func == insn->func &&
		    insn->to != o->funcs[insn->func].first_insn)
			keep_whole(&o->funcs[insn->func], "it calls a place inside of it");
		if (insn->kind != MP_INSN_OTHER)
			continue;
		to = insn->to != ME_NONE ? &o->insns[insn->to] : NULL;
		for (uint32_t r = insn->reloc;
		     !to && r < s->nr_relocs && s->relocs[r].r_offset < me_oinsn_end(insn); r++) {
			struct me_oref ref = me_object_refer(
				o, o->codes[insn->code].section, &s->relocs[r],
				(int64_t)me_oinsn_end(insn) - (int64_t)s->relocs[r].r_offset);

			if (ref.kind == ME_OREF_PLACE)
				to = &o->insns[ref.insn];
		}
		/* Only the function itself computes with its entry; others call it. */
		if (to && to->func != ME_NONE &&
		    (to->func == insn->func || to->off != o->funcs[to->func].start))
			o->funcs[to->func].takes_label = true;
	}
	/* Distances between labels, which no relocation shows, can be added to this address. */
	for (uint32_t f = 0; f < o->nr_funcs; f++) {
		if (o->funcs[f].computes_jump && o->funcs[f].takes_label)
			keep_whole(&o->funcs[f], "code takes the address of a label in it");
		/* In one piece, it keeps its table. */
		o->funcs[f].rigid |= o->funcs[f].whole && o->funcs[f].lsda;
	}
}

/* Sections that say more about code than relocations do. */
static int check_sections(const struct me_object *o, struct mp_err *err)
{
	for (uint32_t i = 1; i < o->in->nr_sections; i++) {
		const struct mp_relobj_section *s = &o->in->sections[i];

		if (!strncmp(s->name, ".gnu.lto_", 9))
			return mp_err_set(err, EPERM,
					  "holds the compiler's code for link-time "
					  "optimisation");
		if (s->header.sh_type == SHT_LLVM_CALL_GRAPH_PROFILE)
			return mp_err_set(err, EPERM, "has a call graph profile already");
	}
	return 0;
}

int me_object_code(struct me_object *o, struct mp_err *err)
{
	int rc = check_sections(o, err);

	if (!rc)
		rc = me_object_decode(o, err);
	if (!rc && !o->nr_insns)
		rc = mp_err_set(err, ENODATA, "has no code");
	if (!rc)
		rc = me_object_functions(o, err);
	if (!rc)
		rc = find_bases(o, err);
	for (uint32_t i = 0; !rc && i < o->nr_insns; i++)
		if (o->insns[i].reloc != ME_NONE)
			rc = refer_from_code(o, &o->insns[i], err);
	for (uint32_t i = 1; !rc && i < o->in->nr_sections; i++)
		if (i != o->eh_frame && !mp_relobj_is_code(&o->in->sections[i]) &&
		    !me_object_is_debug(&o->in->sections[i]))
			rc = refer_from_data(o, i, err);
	if (!rc)
		find_whole(o);
	return rc;
}
