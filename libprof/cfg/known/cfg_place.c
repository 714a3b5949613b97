// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_place - finds functions of which data may know a place inside: a table of faulting
 * instructions and where to go on, in any encoding that the linker leaves no relocation for.
 *
 * A handler compares such a place with the address of a fault, so nothing that it names may move.
 * Words count from zero, from their own place, from their table, from the GOT, or from an address
 * that code names together with the table, at any alignment. A single word is chance. So two words
 * side by side must lead to instructions, except in sections of the program's own, which hold
 * nothing but such tables; and where a table begins, an address of 4 bytes counts alone, and so does
 * a distance of 4 bytes from the word's own place. Entries of recognised jump tables do not count
 * otherwise. Called by cfg, after tables are known.
 */
#include <errno.h>

#include "libprof/base/search.h"
#include "libprof/cfg/cfg_words.h"

struct places {
	struct mp_cfg_build *b;
	uint64_t lo, range; /* of the text */
	bool absolute;	    /* numbers may be addresses */
	bool code;	    /* looks at tables among code */
	uint64_t *compared; /* operands that names() has compared so far */
};

/* The part in which @vaddr is an instruction, but not the first; MP_NONE: none. */
static uint32_t inside(const struct places *p, uint64_t vaddr)
{
	uint32_t at = vaddr - p->lo < p->range ? mp_space_at(p->b->index, vaddr) : MP_NONE, part;

	if (at == MP_NONE || !mp_bit(p->b->starts, at))
		return MP_NONE;
	part = mp_part_at(p->b->index, at);
	return part != MP_NONE && p->b->index->parts[part].at != at ? part : MP_NONE;
}

/*
 * Is there an instruction at @vaddr inside function *@func, or in no function? *@func is set if it was MP_NONE.
 */
static bool is_companion(const struct places *p, uint64_t vaddr, uint32_t *func)
{
	uint32_t at = vaddr - p->lo < p->range ? mp_space_at(p->b->index, vaddr) : MP_NONE, part;

	if (at == MP_NONE || !mp_bit(p->b->starts, at))
		return false;
	part = mp_part_at(p->b->index, at);
	if (part == MP_NONE || mp_bit(p->b->entries, at))
		return true;
	if (*func == MP_NONE)
		*func = p->b->index->parts[part].func;
	return p->b->index->parts[part].func == *func;
}

static void take(const struct places *p, uint64_t vaddr)
{
	uint32_t part = inside(p, vaddr);

	if (part != MP_NONE)
		mp_func_problem(&p->b->cfg->funcs[p->b->index->parts[part].func],
				MP_PROBLEM_MID_ESCAPE, vaddr);
}

/*
 * What the word of @width bytes at @bytes says, counted from @base. Offsets of 4 bytes have a sign;
 * addresses (@base is 0) have none.
 */
static uint64_t place_at(const uint8_t *bytes, unsigned int width, uint64_t base)
{
	uint64_t value = 0;

	memcpy(&value, bytes, width);
	if (width == 4 && base)
		value = (uint64_t)(int64_t)(int32_t)value;
	return base + value;
}

/* ---- tables that code names ---- */

static bool jumps_indirectly(const struct mp_cfg_build *b, uint32_t func)
{
	const struct mp_func *f = &b->cfg->funcs[func];

	for (uint32_t r = f->first_range; r < f->first_range + f->nr_ranges; r++) {
		const struct mp_part *part = &b->index->parts[b->part_of_range[r]];

		for (uint32_t i = 0; i < part->nr_flows; i++)
			if (b->flows[part->first_flow + i].kind == MP_INSN_IJUMP)
				return true;
	}
	return false;
}

/* Operands that names() compares at most: no honest file needs so many. */
#define MAX_COMPARED (UINT64_C(1) << 28)

/* Does an operand of the function name the byte at @data? */
static bool names(const struct places *p, uint32_t func, uint32_t data)
{
	const struct mp_cfg_build *b = p->b;
	const struct mp_func *f = &b->cfg->funcs[func];
	const struct mp_ref *list = p->code ? b->code_refs : b->ref_list;
	uint32_t nr = p->code ? b->nr_code_refs : b->nr_refs;

	for (uint32_t r = f->first_range; r < f->first_range + f->nr_ranges; r++) {
		const struct mp_part *part = &b->index->parts[b->part_of_range[r]];

		for (uint32_t i = mp_search(k, 0, nr, list[k].at < part->at);
		     i < nr && list[i].at < part->end; i++) {
			if (++*p->compared > MAX_COMPARED)
				return false; /* the function stays */
			if (list[i].target == data)
				return true;
		}
	}
	return false;
}

/* A base that is the word's own place. */
#define OWN_PLACE UINT64_MAX
/* A table may begin with other fields, and its words may be packed; with a head of whole fields it may begin later. */
#define MAX_PACKED 8
#define MAX_HEAD   64
/* Bytes from one row of a table to the next. */
#define MAX_GAP 64

/*
 * Do relocations tell whether the word at @vaddr leads from @base to code? Not if @base is the start of its table @table:
 * relocations count from the word.
 */
static bool is_told(const struct places *p, uint64_t vaddr, uint64_t base, uint32_t table)
{
	if (!p->b->elf->relinkable || p->code)
		return false;
	return table == MP_NONE || base != mp_space_vaddr(p->b->index, table) ||
	       !mp_elf_reloc_at(p->b->elf, vaddr);
}

/* Here is a table of places: whatever follows at multiples of @align may belong to it. */
static void take_table(const struct places *p, uint64_t vaddr, uint64_t base, unsigned int width,
		       unsigned int align)
{
	uint32_t from = base == OWN_PLACE ? MP_NONE : mp_space_at(p->b->index, base);
	/* The assembler computes distances within the code; the linker has all others. */
	bool has_reloc = p->b->elf->relinkable && !p->code &&
			 (from == MP_NONE || !mp_space_is_text(p->b->index, from));

	for (uint64_t where = vaddr, last = vaddr; where - last < MAX_GAP; where += align) {
		const uint8_t *bytes = mp_elf_bytes(p->b->elf, where, width);
		uint64_t value;

		if (!bytes)
			break;
		value = place_at(bytes, width, base == OWN_PLACE ? where : base);
		if (inside(p, value) == MP_NONE ||
		    (has_reloc && !mp_elf_reloc_at(p->b->elf, where)))
			continue;
		take(p, value);
		last = where;
	}
}

/*
 * Do two words at @vaddr lead from @base to instructions of one function, or one of them to another
 * function's entry or to code outside of functions? A function with an indirect jump has differences
 * of labels there: cfg_label judges them. It has no entries of a switch in a table at @table that only
 * others name; MP_NONE: the words may be something else.
 */
static void look_at_words(const struct places *p, uint64_t vaddr, uint64_t base, unsigned int width,
			  uint32_t table)
{
	const struct mp_cfg_build *b = p->b;
	unsigned int nr = width == 2 ? 4 : 2;
	uint32_t func = MP_NONE;
	uint64_t value[4], low = 0;

	for (unsigned int i = 0; i < nr; i++) {
		uint64_t where = vaddr + i * width;
		const uint8_t *bytes = mp_elf_bytes(b->elf, where, width);
		uint32_t at = mp_space_at(b->index, where);

		if (!bytes || at == MP_NONE)
			return;
		value[i] = place_at(bytes, width, base == OWN_PLACE ? where : base);
		if (value[i] - p->lo >= p->range || value[i] == base || mp_bit(b->in_table, at) ||
		    mp_space_is_text(b->index, at) != p->code || !is_companion(p, value[i], &func))
			return;
		for (unsigned int k = 0; k < i; k++)
			if (value[k] == value[i])
				return;
		low |= value[i] & 0xff;
	}
	/* Small numbers look like addresses if they are read a byte too early. */
	if (func == MP_NONE || !low ||
	    (mp_elf_reloc_at(b->elf, vaddr) && is_told(p, vaddr, base, table)) ||
	    (jumps_indirectly(b, func) && (table == MP_NONE || names(p, func, table))))
		return;
	take_table(p, vaddr, base, width, 1);
}

/*
 * A place may have no other one beside it, but the length of the instruction there, or what to do. Few numbers of 4
 * bytes lead to an instruction from their own place.
 */
static void look_at_place(const struct places *p, uint64_t vaddr, uint64_t base, uint32_t table)
{
	const struct mp_cfg_build *b = p->b;
	uint32_t at = mp_space_at(b->index, vaddr);
	const uint8_t *bytes = mp_elf_bytes(b->elf, vaddr, 4);
	uint64_t value = bytes ? place_at(bytes, 4, base == OWN_PLACE ? vaddr : base) : 0;
	uint32_t part = bytes ? inside(p, value) : MP_NONE, func;

	/* Constants among code are small numbers. */
	if (part == MP_NONE || mp_bit(b->in_table, at) ||
	    mp_space_is_text(b->index, at) != p->code || is_told(p, vaddr, base, table) ||
	    (p->code && value - vaddr < UINT16_MAX))
		return;
	func = b->index->parts[part].func;
	if (!jumps_indirectly(b, func) || !names(p, func, table))
		take_table(p, vaddr, base, 4, 4);
}

/* At most so many words of a table are read. */
#define MAX_WORDS 8

/* Do the words at @table lead to instructions, up to zeros or to what an operand names? */
static bool leads_on(const struct places *p, uint64_t table, uint64_t base, unsigned int width)
{
	const struct mp_cfg_build *b = p->b;

	for (unsigned int i = 0; i < MAX_WORDS; i++) {
		const uint8_t *bytes = mp_elf_bytes(b->elf, table + i * width, width);
		uint32_t func = MP_NONE;
		uint64_t value;

		if (!bytes || (i && mp_bit(b->refs, mp_space_at(b->index, table + i * width))))
			break;
		value = place_at(bytes, width, base);
		if (value == base)
			break;
		if (value - p->lo >= p->range || !is_companion(p, value, &func))
			return false;
	}
	return true;
}

/* Does the word at @bytes lead into the text? Few do, so this is asked first. @bytes: NULL: it may. */
static bool may_lead(const struct places *p, const uint8_t *bytes, unsigned int width,
		     uint64_t base)
{
	return !bytes || place_at(bytes, width, base) - p->lo < p->range;
}

/* may_lead() from any of the bases that look_at_table() tries for the word at @at. */
static inline bool may_lead_anywhere(const struct places *p, const uint8_t *word,
				     unsigned int width, uint64_t at, uint64_t table)
{
	uint64_t number, value;
	int32_t half;

	if (!word)
		return true;
	memcpy(&number, word, sizeof(number));
	memcpy(&half, word, sizeof(half));
	value = (width == 4 ? (uint64_t)half : number) - p->lo;
	number = (width == 4 ? (uint32_t)half : number) - p->lo;
	return number < p->range || value + at < p->range || value + table < p->range ||
	       value + p->b->got < p->range;
}

/*
 * In 4 bytes no compiler keeps an address that a jump goes to. So a number there that leads inside a function is a
 * place, unless it is round or a string. A word of 8 bytes at a multiple of 8 is judged by cfg_words.
 */
static void look_at_half(const struct places *p, uint64_t at)
{
	const uint8_t *bytes = mp_elf_bytes(p->b->elf, at, 8);
	uint64_t whole, half;

	if (!p->absolute || !bytes)
		return;
	memcpy(&whole, bytes, sizeof(whole));
	half = whole & UINT32_MAX;
	if (!mp_is_other_word(half) && (whole != half || at % 8) && inside(p, half) != MP_NONE)
		take_table(p, at, 0, 4, 4);
}

/* @first: index of @table. */
static void look_at_table(const struct places *p, uint64_t table, uint32_t first)
{
	const struct mp_cfg_build *b = p->b;
	const uint8_t *head = mp_elf_bytes(b->elf, table, MAX_HEAD + 8);
	uint64_t end = table + MAX_HEAD + 1;

	/* The next address that something names is another table. */
	if (head)
		end = table + (mp_bits_next(b->refs, first + 1, first + MAX_HEAD + 1) - first);
	for (uint64_t at = table; at < end; at += at - table < MAX_PACKED ? 1 : 4) {
		const uint8_t *word = head ? head + (at - table) : NULL;
		uint32_t place = head ? first : mp_space_at(b->index, at);

		if (place == MP_NONE || (!head && at != table && mp_bit(b->refs, place)))
			break;
		/* Constants among code are small numbers, which lead to what is beside them if they are read too early. */
		if (p->code && (at - table) % 4)
			continue;
		for (unsigned int width = 4; width <= 8; width *= 2) {
			bool alone = width == 4 && (at == table || at == table + 4);

			if (!may_lead_anywhere(p, word, width, at, table))
				continue;
			if (p->absolute && may_lead(p, word, width, 0))
				look_at_words(p, at, 0, width, width == 4 ? first : MP_NONE);
			if ((!b->elf->relinkable || p->code) && may_lead(p, word, width, at)) {
				look_at_words(p, at, OWN_PLACE, width, first);
				if (alone)
					look_at_place(p, at, OWN_PLACE, first);
			}
			if (may_lead(p, word, width, table)) {
				look_at_words(p, at, table, width, first);
				if (alone)
					look_at_place(p, at, table, first);
			}
			if (b->got && may_lead(p, word, width, b->got))
				look_at_words(p, at, b->got, width, MP_NONE);
		}
	}
	look_at_half(p, table);
	/* Small numbers lead into the functions behind a base, constants among code to those beside them. */
	for (unsigned int width = 2; width <= 8 && !p->code; width *= 2)
		for (uint32_t k = 0; k < b->nr_bases; k++)
			if (may_lead(p, head, width, b->bases[k]) &&
			    leads_on(p, table, b->bases[k], width))
				look_at_words(p, table, b->bases[k], width, MP_NONE);
}

/*
 * Hand-written code has tables beside it: outside of functions, or behind the code of another function. Operands name few
 * such places.
 */
static void look_at_code(struct places p)
{
	const struct mp_cfg_build *b = p.b;

	p.code = true;
	for (uint32_t i = 0; i < b->nr_code_refs; i++) {
		uint32_t target = b->code_refs[i].target, part = mp_part_at(b->index, target);

		/* Many operands may name one table. */
		if (!mp_space_is_text(b->index, target) || mp_bit(b->entries, target) ||
		    mp_bit(b->scratch, target) ||
		    (part != MP_NONE && part == mp_part_at(b->index, b->code_refs[i].at)))
			continue;
		mp_bit_set(b->scratch, target);
		look_at_table(&p, mp_space_vaddr(b->index, target), target);
	}
	for (uint32_t i = 0; i < b->nr_code_refs; i++)
		mp_bit_clear(b->scratch, b->code_refs[i].target);
}

static void look_at_named(const struct places *p)
{
	const struct mp_cfg_build *b = p->b;
	uint32_t end = b->index->nr_bytes;
	const struct mp_section *sec = NULL;
	bool words = false;

	for (uint32_t at = mp_bits_next(b->refs, 0, end); at < end;
	     at = mp_bits_next(b->refs, at + 1, end)) {
		uint64_t table = mp_space_vaddr(b->index, at);

		/* Most lie in the section of the one before. */
		if (!sec || table - sec->vaddr >= sec->size) {
			sec = mp_elf_section_at(b->elf, table);
			words = sec ? mp_is_word_section(sec) : !b->elf->nr_sections;
		}
		if (words)
			look_at_table(p, table, at);
	}
}

/* ---- sections of the program's own ---- */

/*
 * True for a section that neither compilers nor linkers make of themselves: the program gave it its name,
 * to find what lies in it.
 */
static bool is_own_section(const struct mp_section *sec)
{
	static const char *const known[] = {
		".rodata", ".data",    ".ldata",    ".lrodata",	   ".got",     ".dyn",
		".gnu",	   ".tdata",   ".init_arr", ".fini_",	   ".preinit", ".ctors",
		".dtors",  ".jcr",     ".tm_",	    ".interp",	   ".note.g",  ".hash",
		".rel",	   ".stapsdt", ".eh_frame", ".gcc_except", ".debug",   ".sframe",
		".qt",	   ".comment", ".note.ABI", ".note.pack",
	};

	if (!mp_is_word_section(sec))
		return false;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strncmp(sec->name, known[i], strlen(known[i])))
			return false;
	return true;
}

/* Any word of such a section may be a place. */
static void look_at_constants(const struct places *p, const struct mp_section *sec,
			      const uint8_t *bytes)
{
	const struct mp_cfg_build *b = p->b;

	/* Notes are texts as well, of which pairs of characters lead anywhere. */
	const unsigned int least = sec->type == SHT_NOTE ? 4 : 2;

	for (uint64_t off = 0; off < sec->size; off++) {
		for (unsigned int width = least; width <= 8 && off + width <= sec->size;
		     width *= 2) {
			const uint8_t *word = bytes + off;

			if (width > 2) {
				take(p, place_at(word, width, sec->vaddr + off));
				take(p, p->absolute ? place_at(word, width, 0) : 0);
			}
			take(p, place_at(word, width, sec->vaddr));
			take(p, b->got ? place_at(word, width, b->got) : 0);
			for (uint32_t k = 0; k < b->nr_bases; k++)
				take(p, place_at(word, width, b->bases[k]));
		}
	}
}

/*
 * May a number in the section be an address? In a writable one that programs find by __start_NAME and __stop_NAME, which
 * need a C name; others may be large and hold texts, as Python's.
 */
static bool holds_addresses(const struct places *p, const struct mp_section *sec)
{
	return p->absolute && (!(sec->flags & SHF_WRITE) || *sec->name != '.');
}

/* In a writable section, only words at multiples of 4 that hold an address count. */
static void look_at_variables(const struct places *p, const struct mp_section *sec,
			      const uint8_t *bytes)
{
	for (uint64_t off = -sec->vaddr & 3; holds_addresses(p, sec) && off + 4 <= sec->size;
	     off += 4) {
		take(p, place_at(bytes + off, 4, 0));
		if (off + 8 <= sec->size)
			take(p, place_at(bytes + off, 8, 0));
	}
}

static void take_entry(const struct places *p, uint64_t vaddr)
{
	uint32_t at = vaddr - p->lo < p->range ? mp_space_at(p->b->index, vaddr) : MP_NONE, part;

	if (at == MP_NONE || !mp_bit(p->b->entries, at))
		return;
	part = mp_part_at(p->b->index, at);
	if (part != MP_NONE)
		mp_func_problem(&p->b->cfg->funcs[p->b->index->parts[part].func],
				MP_PROBLEM_MID_ESCAPE, vaddr);
}

/* The linker or the loader puts addresses into these words of a section. Return: is one of them a place? */
static bool look_at_relocs(const struct places *p, const struct mp_reloc *rel, uint32_t nr,
			   bool entries)
{
	bool found = false;

	for (; nr; nr--, rel++) {
		uint64_t value = rel->sym_value + (uint64_t)rel->addend;

		found |= inside(p, value) != MP_NONE;
		if (entries)
			take_entry(p, value);
	}
	return found;
}

/*
 * A section that holds addresses of places is a table of these: of code that the program overwrites or that may fault. An
 * address of a function's entry is such a place there, too, and no pointer.
 */
static void look_at_entries(const struct places *p, const struct mp_section *sec,
			    const uint8_t *bytes)
{
	const struct mp_elf *elf = p->b->elf;
	uint64_t end = sec->vaddr + sec->size;
	bool found = false;
	uint32_t nr;

	for (int entries = 0; entries <= (found ? 1 : 0); entries++) {
		const struct mp_reloc *rel = mp_elf_relocs_in(elf, sec->vaddr, end, &nr);

		found |= look_at_relocs(p, rel, nr, entries);
		rel = mp_elf_dyn_relocs_in(elf, sec->vaddr, end, &nr);
		found |= look_at_relocs(p, rel, nr, entries);
		for (uint64_t off = -sec->vaddr & 3;
		     holds_addresses(p, sec) && off + 8 <= sec->size; off += 4) {
			uint64_t value = place_at(bytes + off, 8, 0);

			found |= inside(p, value) != MP_NONE;
			if (entries)
				take_entry(p, value);
		}
	}
}

static void look_at_own(const struct places *p, const struct mp_section *sec)
{
	const uint8_t *bytes = is_own_section(sec) ? mp_elf_bytes(p->b->elf, sec->vaddr, sec->size)
						   : NULL;

	if (!bytes)
		return;
	if (sec->flags & SHF_WRITE)
		look_at_variables(p, sec, bytes);
	else
		look_at_constants(p, sec, bytes);
	look_at_entries(p, sec, bytes);
}

/* A dynamic symbol inside a function: other files know the place, or a table there, by it. */
static void look_at_symbols(const struct places *p)
{
	const struct mp_elf *elf = p->b->elf;

	for (uint32_t i = p->b->first_dynsym; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];

		if (sym->shndx != SHN_UNDEF && sym->shndx != SHN_ABS && sym->type != STT_SECTION &&
		    sym->type != STT_FILE && sym->type != STT_TLS)
			take(p, sym->vaddr);
	}
}

void mp_cfg_find_places(struct mp_cfg_build *b)
{
	uint64_t hi = 0, compared = 0;
	struct places p = {
		.b = b, .absolute = !b->moves && !b->elf->relinkable, .compared = &compared};

	p.lo = UINT64_MAX;
	for (uint32_t i = 0; i < b->index->nr_text; i++) {
		uint64_t start = mp_space_vaddr(b->index, b->index->text[i].at);
		uint64_t end = start + (b->index->text[i].end - b->index->text[i].at);

		p.lo = start < p.lo ? start : p.lo;
		hi = end > hi ? end : hi;
	}
	if (hi <= p.lo)
		return;
	p.range = hi - p.lo;
	for (uint32_t i = 0; i < b->elf->nr_sections; i++)
		look_at_own(&p, &b->elf->sections[i]);
	look_at_symbols(&p);
	look_at_named(&p);
	look_at_code(p);
}
