// SPDX-License-Identifier: Apache-2.0
/*
 * verify_tables - checks a changed word of data: it must be an entry of a table that only jumps
 * use, and lead to the copy of its old target. Called by verify_diff.
 *
 * The proof is independent and simple: relocations say that every entry is a label; all
 * references to the table are operands of one function that jumps indirectly; nothing points
 * into its middle; no operand takes such a label's address elsewhere.
 *
 * Tables follow one another without a gap, so an operand that names a word between labels begins
 * a further table. Where the words are offsets, it must be clear from which start they count.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_note.h"
#include "editor/verify/code/verify_switch.h"
#include "editor/verify/code/verify_tables.h"
#include "editor/verify/read/verify_piece_index.h"
#include "libprof/base/search.h"

enum vf_table_kind {
	VF_TABLE_REL32 = 4,
	VF_TABLE_ABS64 = 8
}; /* size of an entry in bytes */

static const struct mp_reloc *reloc_at(const struct mp_reloc *rel, uint32_t nr, uint64_t vaddr)
{
	uint32_t lo = mp_search(i, 0, nr, rel[i].vaddr < vaddr);

	return lo < nr && rel[lo].vaddr == vaddr ? &rel[lo] : NULL;
}

/* The address that the word at @vaddr leads to, by its relocation; 0: none. */
static uint64_t target_at(const struct vf *vf, uint64_t vaddr, uint8_t kind, uint64_t base)
{
	const struct mp_elf *o = vf->o;
	const struct mp_reloc *rel = reloc_at(o->relocs, o->nr_relocs, vaddr);
	const struct mp_reloc *dyn = reloc_at(o->dyn_relocs, o->nr_dyn_relocs, vaddr);
	const uint8_t *p = mp_elf_bytes(o, vaddr, kind);
	uint64_t label;

	if (!vf_bits_get(&vf->old.label_word, vaddr) || !p)
		return 0;
	if (kind == VF_TABLE_REL32) {
		int32_t word;

		if (!rel || rel->type != R_X86_64_PC32 || dyn)
			return 0;
		memcpy(&word, p, 4);
		label = base + (uint64_t)(int64_t)word;
		/* The linker's relocation must agree with the word. */
		if (rel->sym_value + (uint64_t)rel->addend - vaddr + base != label)
			return 0;
	} else if (dyn) {
		if (dyn->type != R_X86_64_RELATIVE || (rel && rel->type != R_X86_64_64))
			return 0;
		label = (uint64_t)dyn->addend;
	} else {
		if (!rel || rel->type != R_X86_64_64 || o->ehdr.e_type != ET_EXEC)
			return 0;
		memcpy(&label, p, 8);
		if (rel->sym_value + (uint64_t)rel->addend != label)
			return 0;
	}
	return vf_is_text(vf, label) ? label : 0;
}

/* The label in the word at @vaddr; 0: none. */
static uint64_t label_at(const struct vf *vf, uint64_t vaddr, uint8_t kind, uint64_t base)
{
	uint64_t target = target_at(vf, vaddr, kind, base);

	return target && vf_bits_get(&vf->old.grid, target) ? target : 0;
}

/* May a jump table of @fde's function lead to @label? It may not lead to another function's
 * start. */
static bool may_be_label(const struct vf *vf, const struct vf_fde *fde, uint64_t label)
{
	const struct vf_fde *there = vf_eh_find(&vf->old.eh, label);

	if (!there)
		return false;
	return there == fde || there->start != label || vf_bits_get(&vf->old.cold, label);
}

const struct vf_fde *vf_table_user(const struct vf *vf, uint64_t base)
{
	const struct vf_fde *user = NULL;

	for (size_t i = vf_first_ref(vf, base);
	     i < vf->old.refs.nr && vf->old.refs.list[i].to == base; i++) {
		const struct vf_fde *fde = vf_eh_find(&vf->old.eh, vf->old.refs.list[i].insn);

		if (!fde || (user && fde != user))
			return NULL;
		user = fde;
	}
	return user && (user->flags & VF_FDE_IJMP) ? user : NULL;
}

/* Would all words from @start to @last be labels of @fde's function as offsets from @start? */
static bool are_labels(const struct vf *vf, const struct vf_fde *fde, uint64_t start, uint64_t last)
{
	for (uint64_t at = last;; at -= VF_TABLE_REL32) {
		uint64_t target = target_at(vf, at, VF_TABLE_REL32, start);

		if (!target ||
		    (target != fde->start + fde->size &&
		     (!vf_bits_get(&vf->old.grid, target) || !may_be_label(vf, fde, target))))
			return false;
		if (at == start)
			return true;
	}
}

/*
 * An operand names the word at @named, between others that are offsets to labels. Does it name the middle
 * of a table that starts before? Not if no earlier table can reach that far, or if all
 * instructions that name the word use it as the start of a table.
 */
static bool is_middle(const struct vf *vf, const struct mp_section *sec, uint64_t named)
{
	uint64_t start = named;

	while (start - sec->vaddr >= VF_TABLE_REL32 &&
	       vf_bits_get(&vf->old.label_word, start - VF_TABLE_REL32)) {
		start -= VF_TABLE_REL32;
		for (size_t i = vf_first_ref(vf, start);
		     i < vf->old.refs.nr && vf->old.refs.list[i].to == start; i++) {
			const struct vf_fde *fde =
				vf_eh_find(&vf->old.eh, vf->old.refs.list[i].insn);

			if (fde && are_labels(vf, fde, start, named))
				return !vf_starts_table(vf, named);
		}
	}
	return false;
}

/* Prove the table that holds the word at @at, and remember it for its other words. */
static int prove_table(const struct vf *vf, uint64_t at, uint8_t kind)
{
	/* No array crosses sections, though some linkers leave no gap between them. */
	const struct mp_section *sec = mp_elf_section_at(vf->o, at);
	uint64_t base = at, end = at, label;
	const struct vf_fde *user;

	if (!sec)
		return vf_refuse(vf, at, "data changed outside all sections");
	while (!vf_bits_get(&vf->old.data_ref, base)) {
		if (base - sec->vaddr < kind || !vf_bits_get(&vf->old.label_word, base - kind))
			return vf_refuse(vf, at, "data changed that is no entry of a jump table");
		base -= kind;
	}
	do
		end += kind;
	while (end - sec->vaddr < sec->size && vf_bits_get(&vf->old.label_word, end) &&
	       !vf_bits_get(&vf->old.data_ref, end));
	if (vf_bits_get(&vf->old.word_ref, base) ||
	    vf_bits_next(&vf->old.word_ref, base + 1, end) < end ||
	    vf_bits_next(&vf->old.data_ref, base + 1, end) < end)
		return vf_refuse(vf, at, "the table at %#llx has other references",
				 (unsigned long long)base);
	if (kind == VF_TABLE_REL32 &&
	    (is_middle(vf, sec, base) ||
	     (end - sec->vaddr < sec->size && vf_bits_get(&vf->old.label_word, end) &&
	      is_middle(vf, sec, end))))
		return vf_refuse(vf, at, "an operand names the middle of a table, near %#llx",
				 (unsigned long long)base);
	if (!mp_elf_is_readonly(vf->o, base) || !mp_elf_is_readonly(vf->o, end - 1))
		return vf_refuse(vf, at, "the table at %#llx is writable",
				 (unsigned long long)base);
	user = vf_table_user(vf, base);
	if (!user)
		return vf_refuse(vf, at, "the table at %#llx is not one function's jump table",
				 (unsigned long long)base);
	if (kind == VF_TABLE_ABS64 && user->flags & VF_FDE_COMPUTES)
		return vf_refuse(vf, at, "the function computes with labels of the table at %#llx",
				 (unsigned long long)base);
	for (uint64_t k = base; k < end; k += kind) {
		/* Clang lets a case that it proved impossible lead to the function's end. Such an
		 * entry is no label, so it must stay as it is. */
		if (target_at(vf, k, kind, base) == user->start + user->size)
			continue;
		label = label_at(vf, k, kind, base);
		if (!label || !may_be_label(vf, user, label))
			return vf_refuse(vf, k, "entry of a changed table names no label");
		if (kind == VF_TABLE_ABS64 && vf_bits_get(&vf->old.text_ref, label))
			return vf_refuse(vf, k, "label %#llx is used elsewhere, too",
					 (unsigned long long)label);
	}
	vf->result->table.start = base;
	vf->result->table.end = end;
	vf->result->table.kind = kind;
	return 0;
}

int vf_prove_table(const struct vf *vf, uint64_t start, uint8_t *size, uint64_t *end)
{
	const struct mp_reloc *rel = reloc_at(vf->o->relocs, vf->o->nr_relocs, start);
	bool offsets = vf->o->relinkable ? rel && rel->type == R_X86_64_PC32
					 : vf->o->ehdr.e_type != ET_EXEC;
	int ret;

	*size = offsets ? VF_TABLE_REL32 : VF_TABLE_ABS64;
	ret = vf->o->relinkable ? prove_table(vf, start, *size) : vf_prove_switch(vf, start, *size);
	if (!ret && vf->result->table.start != start)
		ret = vf_refuse(vf, start, "no table starts here");
	*end = vf->result->table.end;
	return ret;
}

static bool in_table(const struct vf *vf, uint64_t at, uint8_t kind)
{
	return at >= vf->result->table.start && at < vf->result->table.end &&
	       kind == vf->result->table.kind;
}

/*
 * A word behind one that is in no table is in none, either, unless a table may begin there. Otherwise a
 * long array of pointers would be read again for each of its words.
 */
bool vf_is_table_word(const struct vf *vf, uint64_t at)
{
	uint64_t *start = &vf->result->no_table.start, *end = &vf->result->no_table.end;

	if (in_table(vf, at, VF_TABLE_ABS64))
		return true;
	if (at >= *start && at <= *end && !vf_bits_get(&vf->old.data_ref, at)) {
		*end = at + VF_TABLE_ABS64 > *end ? at + VF_TABLE_ABS64 : *end;
		return false;
	}
	if (!prove_table(vf, at, VF_TABLE_ABS64))
		return true;
	*start = at;
	*end = at + VF_TABLE_ABS64;
	return false;
}

static int check_entry(const struct vf *vf, uint64_t at, uint8_t kind, uint64_t now)
{
	uint64_t label;

	/* Who writes it into a running process goes by aligned words. */
	if (vf->now.live && at % 4)
		return vf_refuse(vf, at,
				 "for a running process, but an entry of a table is not aligned");
	if (kind == VF_TABLE_ABS64 && (label = label_at(vf, at, kind, 0)) &&
	    vf_note_pointer(vf, label, now))
		return 0;
	if (!in_table(vf, at, kind)) {
		int ret = prove_table(vf, at, kind);

		if (ret)
			return ret;
	}
	label = label_at(vf, at, kind, vf->result->table.start);
	if (kind == VF_TABLE_REL32)
		now += vf->result->table.start;
	if (!label || !vf_is_copy(vf, label, now))
		return vf_refuse(vf, at, "table entry leads to %#llx, which is no copy of %#llx",
				 (unsigned long long)now, (unsigned long long)label);
	vf->result->report.nr_table_entries++;
	return 0;
}

/* Check a word that the loader overwrites with its relocation's addend; with RELR, the word's
 * value. */
static int check_relative_word(const struct vf *vf, const struct mp_reloc *rel)
{
	const struct mp_elf *n = vf->n;
	const uint8_t *old = mp_elf_bytes(vf->o, rel->vaddr, 8);
	const uint8_t *new = mp_elf_bytes(n, rel->vaddr, 8);
	const struct mp_reloc *then = reloc_at(n->dyn_relocs, n->nr_dyn_relocs, rel->vaddr);
	uint64_t now, was;

	if (!old || !new)
		return vf_refuse(vf, rel->vaddr, "data changed outside the file");
	memcpy(&was, old, 8);
	memcpy(&now, new, 8);
	if (was != (uint64_t)rel->addend || !then || then->type != R_X86_64_RELATIVE ||
	    (uint64_t)then->addend != now)
		return vf_refuse(vf, rel->vaddr, "a word and its relocation differ");
	vf->result->nr_abs_changed++;
	return check_entry(vf, rel->vaddr, VF_TABLE_ABS64, now);
}

static int check_relocated_word(const struct vf *vf, const struct mp_reloc *rel)
{
	const uint8_t *new = mp_elf_bytes(vf->n, rel->vaddr, rel->type == R_X86_64_64 ? 8 : 4);
	int32_t w32;
	uint64_t w64;

	if (!new)
		return vf_refuse(vf, rel->vaddr, "data changed outside the file");
	if (rel->type == R_X86_64_PC32) {
		memcpy(&w32, new, 4);
		return check_entry(vf, rel->vaddr, VF_TABLE_REL32, (uint64_t)(int64_t)w32);
	}
	if (rel->type == R_X86_64_32 && vf_note_field(vf, rel->vaddr, new))
		return 0;
	if (rel->type != R_X86_64_64 || vf->o->ehdr.e_type != ET_EXEC)
		return vf_refuse(vf, rel->vaddr, "data changed that is no entry of a jump table");
	memcpy(&w64, new, 8);
	vf->result->nr_abs_changed++;
	return check_entry(vf, rel->vaddr, VF_TABLE_ABS64, w64);
}

/* Tables need not be aligned: the relocation tells where the word starts. */
int vf_check_table_word(const struct vf *vf, uint64_t vaddr, uint64_t *next)
{
	const struct mp_reloc *rel;
	uint64_t from = vaddr < 7 ? 0 : vaddr - 7;
	uint32_t n;

	for (uint64_t at = from; at <= vaddr; at++) {
		rel = reloc_at(vf->o->dyn_relocs, vf->o->nr_dyn_relocs, at);
		if (rel && rel->type == R_X86_64_RELATIVE) {
			*next = at + 8;
			return check_relative_word(vf, rel);
		}
	}
	rel = mp_elf_relocs_in(vf->o, from, vaddr + 1, &n);
	for (; n; n--, rel++) {
		uint64_t size = rel->type == R_X86_64_64 ? 8 : 4;

		if (vaddr - rel->vaddr >= size)
			continue;
		*next = rel->vaddr + size;
		return check_relocated_word(vf, rel);
	}
	if (!vf->o->relinkable)
		return vf_check_switch_word(vf, vaddr, next);
	return vf_refuse(vf, vaddr, "data changed that is no entry of a jump table");
}

int vf_check_table_addend(const struct vf *vf, uint64_t off)
{
	Elf64_Rela a, b;

	if (off + sizeof(a) > vf->old.alloc_end)
		return vf_refuse(vf, 0, "relocation cut off");
	memcpy(&a, vf->o->data + off, sizeof(a));
	memcpy(&b, vf->n->data + off, sizeof(b));
	if (a.r_offset != b.r_offset || a.r_info != b.r_info ||
	    ELF64_R_TYPE(a.r_info) != R_X86_64_RELATIVE)
		return vf_refuse(vf, a.r_offset, "a relocation changed");
	vf->result->nr_abs_changed++;
	return check_entry(vf, a.r_offset, VF_TABLE_ABS64, (uint64_t)b.r_addend);
}

/* A word of data, old and new. */
struct changed {
	uint64_t old, now;
};

static int cmp_changed(const void *a, const void *b)
{
	const struct changed *x = a, *y = b;

	return x->old < y->old ? -1 : x->old > y->old;
}

/* Value of the word at @vaddr when it is loaded. */
static bool value_of(const struct mp_elf *elf, uint64_t vaddr, uint64_t *value)
{
	const struct mp_reloc *dyn = reloc_at(elf->dyn_relocs, elf->nr_dyn_relocs, vaddr);
	const uint8_t *p = mp_elf_bytes(elf, vaddr, 8);

	if (dyn)
		*value = (uint64_t)dyn->addend;
	else if (p)
		memcpy(value, p, 8);
	return dyn || p;
}

/*
 * Programs may compare or keep entries of label tables. All words that hold one label must
 * stay, or all lead to the same copy.
 */
int vf_check_table_values(const struct vf *vf)
{
	uint32_t total = vf->o->nr_relocs + vf->o->nr_dyn_relocs;
	struct changed *words, word;
	size_t nr = 0;
	int ret = 0;

	if (!vf->result->nr_abs_changed && !vf->result->report.nr_pointers)
		return 0;
	words = malloc(((size_t)total + 1) * sizeof(*words));
	if (!words)
		return -ENOMEM;
	for (uint32_t i = 0; i < total; i++) {
		const struct mp_reloc *rel = i < vf->o->nr_relocs
						     ? &vf->o->relocs[i]
						     : &vf->o->dyn_relocs[i - vf->o->nr_relocs];

		if ((rel->type != R_X86_64_64 && rel->type != R_X86_64_RELATIVE) ||
		    !vf_bits_get(&vf->old.label_word, rel->vaddr) ||
		    !value_of(vf->o, rel->vaddr, &word.old) ||
		    !value_of(vf->n, rel->vaddr, &word.now))
			continue;
		vf_note_pointer(vf, word.old, word.now);
		words[nr++] = word;
	}
	if (nr)
		qsort(words, nr, sizeof(*words), cmp_changed);
	for (size_t i = 1; i < nr && !ret; i++)
		if (words[i].old == words[i - 1].old && words[i].now != words[i - 1].now)
			ret = vf_refuse(vf, words[i].old,
					"words that held this address now hold different ones");
	free(words);
	return ret;
}
