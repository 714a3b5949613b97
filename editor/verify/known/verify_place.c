// SPDX-License-Identifier: Apache-2.0
/*
 * verify_place - marks functions of which data may know places inside, without relocations that tell:
 * tables of faulting instructions and of where to go on.
 *
 * A handler compares these with the address of a fault, so no copy of such a function may exist. The
 * words may be at any alignment, and hold addresses or distances: from their own place, their
 * table, the GOT, or an address in code with which code computes. A table begins where an operand
 * names data, and has two such words side by side; in a section of the program's own, any word counts.
 * So does a single word of 8 bytes that is an address, and neither a switch's nor a label's, and one of 4 bytes,
 * or a distance from itself, where a table begins.
 * Called by verify_scan.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/known/verify_place.h"

#include <errno.h>
#include "editor/verify/read/verify_eh.h"

/* Other fields may stand before the first word: packed ones, or more of whole words. */
#define PACKED 8
#define HEAD   64
/* Bytes before a place that has no other one beside it. */
#define BEFORE_ONE 4
/* Bytes from one row of a table to the next. */
#define ROW 64
/* Bytes from an address that an operand names to a word that belongs to it, where numbers may be addresses. */
#define NEAR_NAME 1024
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
	uint64_t table; /* words of a switch only if its function names this; 0: it need not */
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

/* Bytes of code to read for words that may be labels. */
#define MAX_READ (UINT64_C(1) << 30)

/* Does an operand of @fde name a place from @from to @to? *@read: bytes of code that were read so far; this adds. */
static bool names_any(const struct vf *vf, const struct vf_fde *fde, uint64_t from, uint64_t to,
		      uint64_t *read)
{
	const uint8_t *b = mp_elf_bytes(vf->o, fde->start, fde->size);
	uint64_t named[3];
	struct vf_insn insn;

	/* No honest file has so many words between the functions' own. */
	if (*read > MAX_READ)
		return false;
	*read += fde->size;
	for (uint64_t k = 0; b && k < fde->size; k += insn.len) {
		if (!vf_decode(b + k, fde->size - k, fde->start + k, &insn))
			return false;
		for (unsigned int i = vf_may_name(vf, &insn, named); i--;)
			if (named[i] - from <= to - from)
				return true;
	}
	return false;
}

/* May @w lead to labels of @fde, by a switch's table or as differences? Those are other checks' matter. */
static bool may_be_switch(const struct vf *vf, const struct word *w, const struct vf_fde *fde,
			  uint64_t *read)
{
	return fde->flags & VF_FDE_IJMP &&
	       (!w->table || names_any(vf, fde, w->table, w->table, read));
}

/*
 * Relocations tell of words of data, but count distances from the table's start from the word. Those among code are taken
 * for operands.
 */
static bool is_told(const struct vf *vf, const struct word *w)
{
	return vf->o->relinkable && !vf_is_text(vf, w->at) &&
	       (w->count != FROM_BASE || w->base != w->table || !mp_elf_reloc_at(vf->o, w->at));
}

/* Further rows follow at multiples of @align from @w. Marks the functions to which they lead. */
static void mark_rows(const struct vf *vf, struct word w, unsigned int align)
{
	/* A distance from a place in code needs no relocation, if it leads to code of the same section. */
	bool is_reloc = vf->o->relinkable && !vf_is_text(vf, w.at) &&
			!(w.count == FROM_BASE && vf_is_text(vf, w.base));

	for (uint64_t last = w.at, place; w.at - last < ROW; w.at += align) {
		struct vf_fde *fde = leads(vf, &w, &place) ? around(vf, place) : NULL;

		if (!fde || (is_reloc && !mp_elf_reloc_at(vf->o, w.at)))
			continue;
		fde->flags |= VF_FDE_PLACE;
		last = w.at;
	}
}

/* Mark the function of which the words from @w on know places, if they know some. */
static void look_at(const struct vf *vf, struct word w, uint64_t *read)
{
	uint64_t place[4], low = 0, start = w.at;
	struct vf_fde *fde = NULL;
	int nr = w.size == 2 ? 4 : 2;

	if (mp_elf_reloc_at(vf->o, w.at) && is_told(vf, &w))
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
	/* Bytes of small numbers that are read too early end in zero. */
	w.at = start;
	if (!fde || !low || may_be_switch(vf, &w, fde, read))
		return;
	mark_rows(vf, w, 1);
}

/*
 * The same for one word of 4 bytes that counts from itself: few numbers lead to an instruction in this way. Rows of such
 * a table have the length of the instruction beside its place, or what a handler is to do.
 */
static void look_at_one(const struct vf *vf, struct word w, uint64_t *read)
{
	uint64_t place;
	struct vf_fde *fde = leads(vf, &w, &place) ? around(vf, place) : NULL;

	/* Constants among code are small numbers. */
	if (!fde || is_told(vf, &w) || (vf_is_text(vf, w.at) && place - w.at < UINT16_MAX))
		return;
	if (!may_be_switch(vf, &w, fde, read))
		mark_rows(vf, w, 4);
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

static void look_at_words(const struct vf *vf, uint64_t table, uint64_t *read)
{
	const uint8_t *head = mp_elf_bytes(vf->o, table, HEAD + 8);
	/* Small numbers among code lead to what is beside them if they are read too early. */
	const uint64_t align = vf_is_text(vf, table) ? 4 : 1;
	uint64_t end = vf_bits_next(&vf->old.data_ref, table + 1, table + HEAD + 1);

	for (uint64_t at = table; at < end; at += at < table + PACKED ? 1 : 4) {
		for (uint8_t size = 4; size <= 8; size *= 2) {
			if ((at - table) % align ||
			    (head && !may_lead(vf, head + (at - table), size, at, table)))
				continue;
			if (numbers_are_addresses(vf))
				look_at(vf,
					(struct word){at, 0, size, FROM_ZERO,
						      size == 4 ? table : 0},
					read);
			if (!vf->o->relinkable || vf_is_text(vf, table))
				look_at(vf, (struct word){at, 0, size, FROM_WORD, table}, read);
			look_at(vf, (struct word){at, table, size, FROM_BASE, table}, read);
			if (vf->old.got_base)
				look_at(vf, (struct word){at, vf->old.got_base, size, FROM_BASE, 0},
					read);
		}
	}
	for (uint64_t at = table; at < end && at <= table + BEFORE_ONE; at += 4) {
		look_at_one(vf, (struct word){at, 0, 4, FROM_WORD, table}, read);
		look_at_one(vf, (struct word){at, table, 4, FROM_BASE, table}, read);
	}
}

static void take(const struct vf *vf, struct word w)
{
	uint64_t place;
	struct vf_fde *fde = leads(vf, &w, &place) ? around(vf, place) : NULL;

	if (fde)
		fde->flags |= VF_FDE_PLACE;
}

/* May the word be a text of up to 7 characters, or a limit, or a set of bits? */
static bool is_common(uint64_t word)
{
	if (!(word & 0xfff))
		return true;
	/* Addresses of small programs are 0x40...., which has a rare character. */
	while ((uint8_t)word >= ' ' && (uint8_t)word <= '~' && (uint8_t)word != '@')
		word >>= 8;
	return !word;
}

/* An address of 4 bytes is no label: jumps load 8. A word of 8 bytes at a multiple of 8 is judged by look_at_address(). */
static void look_at_half(const struct vf *vf, uint64_t at)
{
	const uint8_t *p = mp_elf_bytes(vf->o, at, 8);
	struct word w = {at, 0, 4, FROM_ZERO, 0};
	uint32_t half[2];
	uint64_t place;

	if (!p || !numbers_are_addresses(vf))
		return;
	memcpy(half, p, sizeof(half));
	if ((half[1] || at % 8) && !is_common(half[0]) && leads(vf, &w, &place) &&
	    around(vf, place))
		mark_rows(vf, w, 4);
}

static void look_at_table(const struct vf *vf, uint64_t table, uint64_t *read)
{
	if (has_switch(vf, table))
		return;
	look_at_words(vf, table, read);
	look_at_half(vf, table);
	/* Numbers among code lead to what is beside them. */
	for (uint8_t size = 2; size <= 8 && !vf_is_text(vf, table); size *= 2) {
		for (uint32_t k = 0; k < vf->old.nr_bases; k++) {
			struct word w = {table, vf->old.bases[k], size, FROM_BASE, 0};

			if (is_run(vf, w))
				look_at(vf, w, read);
		}
	}
}

/* Names that compilers, linkers and the C library give to sections of data. */
static bool is_usual(const char *name)
{
	static const char *const usual[] = {
		".rodata", ".data",	".ldata",    ".lrodata",    ".got",    ".dyn",
		".gnu",	   ".tdata",	".tm_",	     ".interp",	    ".note.g", ".hash",
		".rel",	   ".init_arr", ".fini_",    ".preinit",    ".ctors",  ".dtors",
		".jcr",	   ".stapsdt",	".eh_frame", ".gcc_except", ".debug",  ".sframe",
		".qt",	   ".comment",	".note.ABI", ".note.pack",
	};

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (!strncmp(name, usual[i], strlen(usual[i])))
			return true;
	return false;
}

static void look_at_own(const struct vf *vf, const struct mp_section *sec)
{
	/* Two characters of a note lead anywhere. */
	const uint8_t least = sec->type == SHT_NOTE ? 4 : 2;

	for (uint64_t at = sec->vaddr; at < sec->vaddr + sec->size; at++) {
		for (uint8_t size = least; size <= 8 && at + size <= sec->vaddr + sec->size;
		     size *= 2) {
			if (size > 2)
				take(vf, (struct word){at, 0, size, FROM_WORD, 0});
			if (size > 2 && numbers_are_addresses(vf))
				take(vf, (struct word){at, 0, size, FROM_ZERO, 0});
			take(vf, (struct word){at, sec->vaddr, size, FROM_BASE, 0});
			if (vf->old.got_base)
				take(vf, (struct word){at, vf->old.got_base, size, FROM_BASE, 0});
			for (uint32_t k = 0; k < vf->old.nr_bases; k++)
				take(vf, (struct word){at, vf->old.bases[k], size, FROM_BASE, 0});
		}
	}
}

/* Words that may hold addresses, in ascending order, and what is known of the tables that the last one belongs to. */
struct words {
	uint64_t last, run; /* @run: from here on words stand side by side, up to @last */
	bool labels; /* of a switch's table, which begins where an operand names a word from @run on */
	uint64_t named, next; /* the last address up to @last that an operand names; the next one */
	const struct vf_fde *owner; /* of which function names_between() was asked last */
	uint64_t from, to;
	bool owns;
	uint64_t *read; /* bytes of functions that names_between() has read, for all sections */
};

static void go_to(const struct vf *vf, struct words *w, uint64_t at)
{
	while (w->next <= at) {
		w->named = w->next;
		w->next = vf_bits_next(&vf->old.data_ref, w->next + 1, vf->old.image_end);
	}
	if (at != w->last + 8) {
		w->run = at;
		w->labels = has_switch(vf, at);
	} else if (w->named == at) {
		/* If numbers may be addresses, some operand equals an address in the middle of a table by chance. */
		w->labels = (w->labels && numbers_are_addresses(vf)) || has_switch(vf, at);
	}
	w->last = at;
}

/* Does an operand of @fde name a place from @from to @to? */
static bool names_between(const struct vf *vf, struct words *w, const struct vf_fde *fde,
			  uint64_t from, uint64_t to)
{
	/* The words of a large table follow each other. */
	if (w->owner == fde && w->from == from && (w->owns ? w->to <= to : w->to == to))
		return w->owns;
	w->owner = fde;
	w->from = from;
	w->to = to;
	w->owns = names_any(vf, fde, from, to, w->read);
	return w->owns;
}

/*
 * May a number in the section be an address? Programs find a writable section of their own by its bounds, for which it needs
 * a C name; one without may be large, and hold texts.
 */
static bool holds_addresses(const struct vf *vf, const struct mp_section *sec)
{
	return numbers_are_addresses(vf) && (sec->name[0] != '.' || !(sec->flags & SHF_WRITE));
}

/* In a writable section, only words at multiples of 4 that hold an address count. */
static void look_at_variables(const struct vf *vf, const struct mp_section *sec)
{
	uint64_t end = sec->vaddr + sec->size;

	for (uint64_t at = (sec->vaddr + 3) & ~3ULL; holds_addresses(vf, sec) && at + 4 <= end;
	     at += 4) {
		take(vf, (struct word){at, 0, 4, FROM_ZERO, 0});
		if (at + 8 <= end)
			take(vf, (struct word){at, 0, 8, FROM_ZERO, 0});
	}
}

/* Return: 1: @to is an instruction inside a function; 2: it is a function's start; 0: neither. *@fde: the function. */
static unsigned int kind_of(const struct vf *vf, uint64_t to, struct vf_fde **fde)
{
	*fde = to >= vf->old.text_start && to < vf->old.text_end && vf_bits_get(&vf->old.grid, to)
		       ? vf_eh_find(&vf->old.eh, to)
		       : NULL;
	return !*fde ? 0 : (*fde)->start == to ? 2 : 1;
}

/*
 * All addresses in the section @sec: the kinds of which there are some. @mark: functions that start at one of them have no
 * copies.
 */
static unsigned int kinds_in(const struct vf *vf, const struct mp_section *sec, bool mark)
{
	uint64_t end = sec->vaddr + sec->size;
	unsigned int kinds = 0, kind;
	struct vf_fde *fde;

	for (int k = 0; k < 2; k++) {
		uint32_t nr;
		const struct mp_reloc *rel = k ? mp_elf_dyn_relocs_in(vf->o, sec->vaddr, end, &nr)
					       : mp_elf_relocs_in(vf->o, sec->vaddr, end, &nr);

		for (; nr; nr--, rel++) {
			kind = kind_of(vf, rel->sym_value + (uint64_t)rel->addend, &fde);
			if (mark && kind == 2)
				fde->flags |= VF_FDE_PLACE;
			kinds |= kind;
		}
	}
	for (uint64_t at = (sec->vaddr + 3) & ~3ULL; holds_addresses(vf, sec) && at + 8 <= end;
	     at += 4) {
		const uint8_t *p = mp_elf_bytes(vf->o, at, 8);
		uint64_t word;

		if (!p)
			break;
		memcpy(&word, p, sizeof(word));
		kind = kind_of(vf, word, &fde);
		if (mark && kind == 2)
			fde->flags |= VF_FDE_PLACE;
		kinds |= kind;
	}
	return kinds;
}

/*
 * May the last word be a label of @fde, which jumps indirectly? Then it stands in what the function itself names, or in
 * what only data names: the function may find that by a pointer. Where numbers are addresses, some operands name the
 * middle of a table by chance, and tables of numbers lead to instructions by chance: there, the word counts near the
 * address that an operand names.
 */
static bool may_be_label(const struct vf *vf, struct words *w, const struct vf_fde *fde)
{
	const struct mp_section *sec = mp_elf_section_at(vf->o, w->last);
	uint64_t from = sec && w->named < sec->vaddr ? sec->vaddr : w->named;

	if (numbers_are_addresses(vf))
		return w->last - from > NEAR_NAME ||
		       names_between(vf, w, fde, w->run < from ? w->run : from, w->last);
	if (vf_bits_next(&vf->old.word_ref, from + (from == w->named), w->last + 1) <= w->last)
		return true;
	return from == w->named && (names_between(vf, w, fde, from, from) || has_switch(vf, from));
}

/*
 * The last word of @w holds the address @to. If this leads inside a function, it is no label of that unless the function
 * jumps indirectly, or the word belongs to a switch of which the function is the part for cold code.
 */
static void look_at_address(const struct vf *vf, struct words *w, uint64_t to)
{
	struct vf_fde *fde = vf_is_text(vf, to) ? around(vf, to) : NULL;

	if (!fde || fde->flags & VF_FDE_PLACE)
		return;
	/* Between instructions is no label: the program adds flags to the function's address. */
	if (!vf_bits_get(&vf->old.grid, to) ||
	    (!w->labels && !(fde->flags & VF_FDE_IJMP && may_be_label(vf, w, fde))))
		fde->flags |= VF_FDE_PLACE;
}

/* Words that the linker or the loader fills in. */
static void look_at_relocs(const struct vf *vf, const struct mp_reloc *rel, uint32_t nr,
			   uint64_t *read)
{
	struct words w = {.read = read};

	for (; nr; nr--, rel++) {
		if (rel->type == R_X86_64_PC32 || !vf_bits_get(&vf->old.label_word, rel->vaddr))
			continue;
		go_to(vf, &w, rel->vaddr);
		look_at_address(vf, &w, rel->sym_value + (uint64_t)rel->addend);
	}
}

/* A number is taken for an address if so many words before it are like words, too: texts contain any number. */
#define BEFORE 4

/* May the word be an address of the file, or one or two small numbers? */
static bool is_like_word(const struct vf *vf, uint64_t word)
{
	return mp_elf_bytes(vf->o, word, 1) || word + (1 << 16) < 1 << 17 ||
	       !(word & 0xffff0000ffff0000);
}

/* Does the number of 8 bytes at @at lead into code, but between two instructions? Then no address stands beside it. */
static bool is_odd(const struct vf *vf, const struct mp_section *sec, uint64_t at)
{
	const uint8_t *p = at - sec->vaddr < sec->size ? mp_elf_bytes(vf->o, at, 8) : NULL;
	uint64_t word;

	if (!p)
		return false;
	memcpy(&word, p, sizeof(word));
	return vf_is_text(vf, word) && !vf_bits_get(&vf->old.grid, word);
}

/* With fixed addresses and without relocations, a number among others may be an address. */
static void look_at_numbers(const struct vf *vf, const struct mp_section *sec, uint64_t *read)
{
	const uint8_t *p = mp_elf_bytes(vf->o, sec->vaddr, sec->size);
	unsigned int like = BEFORE; /* such words before this one */
	struct words w = {.read = read,
			  .next = vf_bits_next(&vf->old.data_ref, sec->vaddr, vf->old.image_end)};

	for (uint64_t k = -sec->vaddr & 7; p && k + 8 <= sec->size; k += 8) {
		uint64_t at = sec->vaddr + k, word;

		memcpy(&word, p + k, sizeof(word));
		if (vf_is_text(vf, word) && vf_bits_get(&vf->old.grid, word)) {
			go_to(vf, &w, at);
			if ((like >= BEFORE || !is_common(word)) && !is_odd(vf, sec, at - 8) &&
			    !is_odd(vf, sec, at + 8))
				look_at_address(vf, &w, word);
		}
		like = is_like_word(vf, word) ? like + 1 : 0;
	}
}

/* Other files know a place inside a function by a dynamic symbol. */
static void look_at_symbols(const struct vf *vf)
{
	for (uint32_t i = vf->o->nr_symbols; i && vf->o->symbols[i - 1].dynamic; i--) {
		const struct mp_symbol *sym = &vf->o->symbols[i - 1];
		struct vf_fde *fde =
			sym->shndx != SHN_UNDEF && sym->shndx != SHN_ABS &&
					sym->type != STT_SECTION && sym->type != STT_FILE &&
					sym->type != STT_TLS && vf_is_text(vf, sym->vaddr) &&
					vf_bits_get(&vf->old.grid, sym->vaddr)
				? around(vf, sym->vaddr)
				: NULL;

		if (fde)
			fde->flags |= VF_FDE_PLACE;
	}
}

/* Tables among code, which another function names: outside of functions, or behind the code of one. */
static int look_at_code(const struct vf *vf, uint64_t *read)
{
	struct vf_bits seen = {0}; /* many operands may name one table */
	int ret = vf_bits_init(&seen, vf->old.text_start, vf->old.text_end);

	for (size_t i = 0; !ret && i < vf->old.names.nr; i++) {
		const struct vf_ref *name = &vf->old.names.list[i];
		const struct vf_fde *fde =
			vf_is_text(vf, name->to) ? vf_eh_find(&vf->old.eh, name->to) : NULL;

		if (!vf_is_text(vf, name->to) || vf_bits_get(&seen, name->to) ||
		    (fde && (fde->start == name->to || name->insn - fde->start < fde->size)))
			continue;
		vf_bits_set(&seen, name->to);
		look_at_table(vf, name->to, read);
	}
	vf_bits_fini(&seen);
	return ret;
}

int vf_find_places(const struct vf *vf)
{
	/* Bytes of functions that names_any() has read for tables, and for words. */
	uint64_t read = 0, words = 0;

	if (look_at_code(vf, &read))
		return -ENOMEM;
	look_at_symbols(vf);
	look_at_relocs(vf, vf->o->relocs, vf->o->nr_relocs, &words);
	look_at_relocs(vf, vf->o->dyn_relocs, vf->o->nr_dyn_relocs, &words);
	for (uint32_t i = 0; i < vf->o->nr_sections; i++) {
		const struct mp_section *sec = &vf->o->sections[i];
		uint64_t end = sec->vaddr + sec->size;

		if (!vf_holds_words(vf, sec) || (sec->flags & SHF_EXECINSTR))
			continue;
		if (!is_usual(sec->name)) {
			if (sec->flags & SHF_WRITE)
				look_at_variables(vf, sec);
			else
				look_at_own(vf, sec);
			/* In a table of places, a function's start is one, too, and no pointer. */
			if (kinds_in(vf, sec, false) == 3)
				kinds_in(vf, sec, true);
		}
		if (numbers_are_addresses(vf))
			look_at_numbers(vf, sec, &words);
		for (uint64_t at = vf_bits_next(&vf->old.data_ref, sec->vaddr, end); at < end;
		     at = vf_bits_next(&vf->old.data_ref, at + 1, end))
			look_at_table(vf, at, &read);
	}
	return 0;
}
