// SPDX-License-Identifier: Apache-2.0
/*
 * verify_place - marks functions of which data may know places inside, without relocations that tell:
 * tables of faulting instructions and of where to go on.
 *
 * A handler compares these with the address of a fault, so no copy of such a function may exist. The
 * words may be at any alignment, and hold addresses or distances: from their own place, their
 * table, the GOT, or an address in code with which code computes. A table begins where an operand
 * names data, and has two such words side by side; in a section of the program's own, any word counts.
 * Called by verify_scan.
 */
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/known/verify_place.h"
#include "editor/verify/read/verify_eh.h"

/* Other fields may stand before the first word. */
#define HEAD 8
/* Bytes from one row of a table to the next. */
#define ROW 64
/* Number of words that must lead to instructions if they count from an address in code. */
#define RUN 8

enum count {
	FROM_ZERO,
	FROM_WORD,
	FROM_BASE
};

struct word {
	uint64_t at, base;
	uint8_t size;
	enum count count;
};

static bool numbers_are_addresses(const struct vf *vf)
{
	return vf->o->ehdr.e_type == ET_EXEC && !vf->o->relinkable;
}

/* Where the word with the bytes @p leads. */
static uint64_t meant(const struct word *w, const uint8_t *p)
{
	uint64_t value = 0;

	memcpy(&value, p, w->size);
	if (w->size == 4 && w->count != FROM_ZERO)
		value = (uint64_t)(int64_t)(int32_t)value;
	return value + (w->count == FROM_WORD ? w->at : w->count == FROM_BASE ? w->base : 0);
}

/* *@place: where the word leads. Return: false if that is no instruction. */
static bool leads(const struct vf *vf, const struct word *w, uint64_t *place)
{
	const uint8_t *p = mp_elf_bytes(vf->o, w->at, w->size);

	if (!p)
		return false;
	*place = meant(w, p);
	return *place >= vf->old.text_start && *place < vf->old.text_end &&
	       vf_bits_get(&vf->old.grid, *place);
}

/* The function inside which @place lies, behind its start. */
static struct vf_fde *around(const struct vf *vf, uint64_t place)
{
	struct vf_fde *fde = vf_eh_find(&vf->old.eh, place);

	return fde && fde->start != place ? fde : NULL;
}

/* Mark the function of which the words from @w on know places, if they know some. */
static void look_at(const struct vf *vf, struct word w)
{
	uint64_t place[4], low = 0, start = w.at;
	struct vf_fde *fde = NULL;
	int nr = w.size == 2 ? 4 : 2;

	if (vf->o->relinkable && mp_elf_reloc_at(vf->o, w.at))
		return;
	for (int i = 0; i < nr; i++, w.at += w.size) {
		struct vf_fde *in;

		if (!leads(vf, &w, &place[i]) || (w.count == FROM_BASE && place[i] == w.base))
			return;
		in = around(vf, place[i]);
		if (in && fde && in != fde)
			return;
		fde = in ? in : fde;
		for (int k = 0; k < i; k++)
			if (place[k] == place[i])
				return;
		low |= place[i] & 0xff;
	}
	/* Bytes of small numbers that are read too early end in zero. Differences of labels, and entries of
	 * switches, are other checks' matter. */
	if (!fde || !low || (fde->flags & VF_FDE_IJMP))
		return;
	/* Further rows follow. */
	for (uint64_t last = start; start - last < ROW; start++) {
		w.at = start;
		fde = leads(vf, &w, &place[0]) ? around(vf, place[0]) : NULL;
		if (!fde)
			continue;
		fde->flags |= VF_FDE_PLACE;
		last = start;
	}
}

/* Do the words from @w on lead to instructions, up to a zero or to the next address that is named? */
static bool is_run(const struct vf *vf, struct word w)
{
	uint64_t place;

	for (int i = 0; i < RUN; i++, w.at += w.size) {
		if (i &&
		    (vf_bits_get(&vf->old.data_ref, w.at) || vf_bits_get(&vf->old.word_ref, w.at)))
			break;
		if (!leads(vf, &w, &place)) {
			const uint8_t *p = mp_elf_bytes(vf->o, w.at, w.size);

			return !p;
		}
		if (place == w.base)
			break;
	}
	return true;
}

/* Does a switch's table start at @vaddr, by the function that names it? Its entries may lead to parts of the
 * function that jump nowhere. */
static bool has_switch(const struct vf *vf, uint64_t vaddr)
{
	for (size_t i = vf_first_ref(vf, vaddr);
	     i < vf->old.refs.nr && vf->old.refs.list[i].to == vaddr; i++) {
		const struct vf_fde *fde = vf_eh_find(&vf->old.eh, vf->old.refs.list[i].insn);

		if (fde && (fde->flags & VF_FDE_IJMP))
			return true;
	}
	return false;
}

/* May the word of @size bytes at @p lead into the text from any of the places that it may count from? Few do. */
static inline bool may_lead(const struct vf *vf, const uint8_t *p, uint8_t size, uint64_t at,
			    uint64_t table)
{
	uint64_t span = vf->old.text_end - vf->old.text_start, whole, place;
	uint32_t part;

	memcpy(&whole, p, sizeof(whole));
	part = (uint32_t)whole;
	place = size == 4 ? (uint64_t)(int64_t)(int32_t)part : whole;
	place -= vf->old.text_start;
	return place + at < span || place + table < span || place + vf->old.got_base < span ||
	       (size == 4 ? part : whole) - vf->old.text_start < span;
}

static void look_at_words(const struct vf *vf, uint64_t table)
{
	const uint8_t *head = mp_elf_bytes(vf->o, table, HEAD + 8);
	uint64_t end = vf_bits_next(&vf->old.data_ref, table + 1, table + HEAD + 1);

	for (uint64_t at = table; at < end; at++) {
		for (uint8_t size = 4; size <= 8; size *= 2) {
			if (head && !may_lead(vf, head + (at - table), size, at, table))
				continue;
			if (numbers_are_addresses(vf))
				look_at(vf, (struct word){at, 0, size, FROM_ZERO});
			if (!vf->o->relinkable)
				look_at(vf, (struct word){at, 0, size, FROM_WORD});
			look_at(vf, (struct word){at, table, size, FROM_BASE});
			if (vf->old.got_base)
				look_at(vf, (struct word){at, vf->old.got_base, size, FROM_BASE});
		}
	}
}

static void look_at_table(const struct vf *vf, uint64_t table)
{
	if (has_switch(vf, table))
		return;
	look_at_words(vf, table);
	for (uint8_t size = 2; size <= 8; size *= 2) {
		for (uint32_t k = 0; k < vf->old.nr_bases; k++) {
			struct word w = {table, vf->old.bases[k], size, FROM_BASE};

			if (is_run(vf, w))
				look_at(vf, w);
		}
	}
}

/* Names that compilers, linkers and the C library give to sections of data. */
static bool is_usual(const char *name)
{
	static const char *const usual[] = {
		".rodata", ".data",	".ldata",    ".lrodata",    ".got",   ".dyn",
		".gnu",	   ".tdata",	".tm_",	     ".interp",	    ".note",  ".hash",
		".rel",	   ".init_arr", ".fini_",    ".preinit",    ".ctors", ".dtors",
		".jcr",	   ".stapsdt",	".eh_frame", ".gcc_except", ".debug", ".sframe",
		".qt",	   ".comment",
	};

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (!strncmp(name, usual[i], strlen(usual[i])))
			return true;
	return false;
}

static void take(const struct vf *vf, struct word w)
{
	uint64_t place;
	struct vf_fde *fde = leads(vf, &w, &place) ? around(vf, place) : NULL;

	if (fde)
		fde->flags |= VF_FDE_PLACE;
}

static void look_at_own(const struct vf *vf, const struct mp_section *sec)
{
	for (uint64_t at = sec->vaddr; at < sec->vaddr + sec->size; at++) {
		for (uint8_t size = 2; size <= 8 && at + size <= sec->vaddr + sec->size;
		     size *= 2) {
			if (size > 2)
				take(vf, (struct word){at, 0, size, FROM_WORD});
			if (size > 2 && numbers_are_addresses(vf))
				take(vf, (struct word){at, 0, size, FROM_ZERO});
			take(vf, (struct word){at, sec->vaddr, size, FROM_BASE});
			if (vf->old.got_base)
				take(vf, (struct word){at, vf->old.got_base, size, FROM_BASE});
			for (uint32_t k = 0; k < vf->old.nr_bases; k++)
				take(vf, (struct word){at, vf->old.bases[k], size, FROM_BASE});
		}
	}
}

/*
 * A word that the linker or the loader fills in leads inside a function that jumps nowhere by itself: it is no label,
 * unless it belongs to a switch, of which the function is the part for cold code.
 */
static void look_at_relocs(const struct vf *vf, const struct mp_reloc *rel, uint32_t nr)
{
	uint64_t table = 0, last = 0;
	bool labels = false; /* of a switch's table at @table */

	for (; nr; nr--, rel++) {
		uint64_t to = rel->sym_value + (uint64_t)rel->addend;
		struct vf_fde *fde;

		if (rel->type == R_X86_64_PC32 || !vf_bits_get(&vf->old.label_word, rel->vaddr))
			continue;
		if (vf_bits_get(&vf->old.data_ref, rel->vaddr) || rel->vaddr != last + 8) {
			table = rel->vaddr;
			labels = has_switch(vf, table);
		}
		last = rel->vaddr;
		fde = vf_is_text(vf, to) ? around(vf, to) : NULL;
		if (!fde || fde->flags & VF_FDE_PLACE)
			continue;
		/* Between instructions is no label: the program adds flags to the function's address. */
		if (!vf_bits_get(&vf->old.grid, to) || (!(fde->flags & VF_FDE_IJMP) && !labels))
			fde->flags |= VF_FDE_PLACE;
	}
}

void vf_find_places(const struct vf *vf)
{
	look_at_relocs(vf, vf->o->relocs, vf->o->nr_relocs);
	look_at_relocs(vf, vf->o->dyn_relocs, vf->o->nr_dyn_relocs);
	for (uint32_t i = 0; i < vf->o->nr_sections; i++) {
		const struct mp_section *sec = &vf->o->sections[i];
		uint64_t end = sec->vaddr + sec->size;

		if (!vf_holds_words(vf, sec) || (sec->flags & SHF_EXECINSTR))
			continue;
		if (sec->type == SHT_PROGBITS && !(sec->flags & SHF_WRITE) && !is_usual(sec->name))
			look_at_own(vf, sec);
		for (uint64_t at = vf_bits_next(&vf->old.data_ref, sec->vaddr, end); at < end;
		     at = vf_bits_next(&vf->old.data_ref, at + 1, end))
			look_at_table(vf, at);
	}
}
