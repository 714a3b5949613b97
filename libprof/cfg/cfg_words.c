// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_words - walks every place outside of instructions that holds an address: relocations
 * (static and dynamic), and plain data in files without better evidence. Called by
 * cfg_target and cfg_taken.
 */
#include "libprof/cfg/cfg_words.h"

/* Limits, sets of bits and pairs of small numbers are multiples of this. */
#define ROUND 4096
/* '@' stands in few strings, but in the addresses of all small programs: 0x40.... */
#define FIRST_PAGES '@'

bool mp_is_other_word(uint64_t word)
{
	if (!(word % ROUND))
		return true;
	for (; word & 0xff; word >>= 8)
		if ((word & 0xff) < ' ' || (word & 0xff) > '~' || (word & 0xff) == FIRST_PAGES)
			return false;
	return !word;
}

/* Unwind tables refer to code by design; other passes read them. */
static bool is_unwind_section(const struct mp_section *sec)
{
	return sec && (!strncmp(sec->name, ".eh_frame", 9) ||
		       !strncmp(sec->name, ".gcc_except_table", 17));
}

bool mp_is_word_section(const struct mp_section *sec)
{
	if (!(sec->flags & SHF_ALLOC) || (sec->flags & SHF_EXECINSTR) || is_unwind_section(sec))
		return false;
	switch (sec->type) {
	case SHT_NULL:
	case SHT_NOBITS:
	case SHT_SYMTAB:
	case SHT_DYNSYM:
	case SHT_STRTAB:
	case SHT_RELA:
	case SHT_REL:
	case SHT_RELR:
	case SHT_HASH:
	case SHT_GNU_HASH:
	case SHT_DYNAMIC:
	case SHT_GNU_versym:
	case SHT_GNU_verdef:
	case SHT_GNU_verneed: return false;
	default: return true; /* a program may give its sections types of its own */
	}
}

static void static_relocs(const struct mp_cfg_build *b, mp_word_fn *fn, void *ctx)
{
	const struct mp_elf *elf = b->elf;
	const struct mp_section *sec = NULL;
	bool text = false, unwind = false;

	for (uint32_t i = 0; i < elf->nr_relocs; i++) {
		const struct mp_reloc *rel = &elf->relocs[i];
		uint64_t value = rel->sym_value + (uint64_t)rel->addend;

		if (!rel->sym || rel->sym_shndx == SHN_UNDEF)
			continue;
		if (!sec || rel->vaddr - sec->vaddr >= sec->size) {
			sec = mp_elf_section_at(elf, rel->vaddr);
			text = sec && (sec->flags & SHF_EXECINSTR);
			unwind = is_unwind_section(sec);
		}
		if (unwind)
			continue;
		switch (rel->type) {
		case R_X86_64_64:
		case R_X86_64_32:
		case R_X86_64_32S: fn(ctx, rel->vaddr, value, MP_WORD_SURE); break;
		case R_X86_64_PC32:
		case R_X86_64_PC64:
		case R_X86_64_PLT32:
			/*
			 * In code the decoded operand is better evidence. In data the value
			 * may be relative to its own address or to a table's start.
			 */
			if (!text)
				fn(ctx, rel->vaddr, value, MP_WORD_CHANCE);
			break;
		default: break;
		}
	}
}

/* A section of the program's own: the program finds its bounds by __start_NAME and __stop_NAME. */
static bool is_own_section(const struct mp_section *sec)
{
	const char *name = sec->name;

	return mp_is_word_section(sec) &&
	       (*name == '_' || (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z'));
}

/*
 * A section of the program's own may be a table of places in code. Each word holds the distance
 * from the word to the place.
 */
static void own_sections(const struct mp_cfg_build *b, mp_word_fn *fn, void *ctx)
{
	for (uint32_t i = 0; i < b->elf->nr_sections; i++) {
		const struct mp_section *sec = &b->elf->sections[i];
		const uint8_t *p;

		p = is_own_section(sec) ? mp_elf_bytes(b->elf, sec->vaddr, sec->size) : NULL;
		for (uint64_t off = -sec->vaddr & 3; p && off + 4 <= sec->size; off += 4) {
			uint64_t where = sec->vaddr + off, value;
			int32_t word;
			uint32_t at;

			memcpy(&word, p + off, sizeof(word));
			value = where + (uint64_t)(int64_t)word;
			at = mp_space_at(b->index, value);
			if (word && at != MP_NONE && mp_space_is_text(b->index, at))
				fn(ctx, where, value, MP_WORD_LIKELY);
		}
	}
}

static void dynamic_relocs(const struct mp_cfg_build *b, mp_word_fn *fn, void *ctx)
{
	const struct mp_elf *elf = b->elf;

	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++) {
		const struct mp_reloc *rel = &elf->dyn_relocs[i];

		switch (rel->type) {
		case R_X86_64_RELATIVE:
		case R_X86_64_IRELATIVE:
			fn(ctx, rel->vaddr, (uint64_t)rel->addend, MP_WORD_SURE);
			break;
		case R_X86_64_64:
		case R_X86_64_GLOB_DAT:
		case R_X86_64_JUMP_SLOT:
			if (rel->sym && rel->sym_shndx != SHN_UNDEF)
				fn(ctx, rel->vaddr, rel->sym_value + (uint64_t)rel->addend,
				   MP_WORD_SURE);
			break;
		default: break;
		}
	}
}

/* True for one or two small numbers. */
static bool is_small(uint64_t word)
{
	return word + 0x10000 < 0x20000 || !(word & UINT64_C(0xffff0000ffff0000));
}

/* Number of preceding words that must look like pointers or small numbers. */
#define NEIGHBOURS 4

/*
 * True if the words before @off look like pointers or small numbers. Short strings look like an address, but the
 * words before those do not.
 */
static bool follows_words(const struct mp_cfg_build *b, const uint8_t *p, uint64_t off)
{
	for (unsigned int n = 1; n <= NEIGHBOURS && n * 8 <= off; n++) {
		uint64_t word;

		memcpy(&word, p + off - n * 8, sizeof(word));
		if (!is_small(word) && mp_space_at(b->index, word) == MP_NONE)
			return false;
	}
	return true;
}

static void plain_bytes(const struct mp_cfg_build *b, const uint8_t *p, uint64_t vaddr,
			uint64_t size, mp_word_fn *fn, void *ctx)
{
	uint64_t lo = UINT64_MAX, hi = 0, range;
	bool low;

	for (uint32_t i = 0; i < b->index->nr_text; i++) {
		uint64_t start = mp_space_vaddr(b->index, b->index->text[i].at);
		uint64_t end = start + (b->index->text[i].end - b->index->text[i].at);

		lo = start < lo ? start : lo;
		hi = end > hi ? end : hi;
	}
	if (lo >= hi)
		return;
	range = hi - lo;
	low = hi <= UINT64_C(1) << 32; /* as in all programs with fixed addresses */
	for (uint64_t off = -vaddr & 3; off + 4 <= size; off += 4) {
		uint32_t value;

		memcpy(&value, p + off, 4);
		if (value - lo < range)
			fn(ctx, vaddr + off, value, MP_WORD_CHANCE);
	}
	for (uint64_t off = 0; off + 8 <= size; off++) {
		uint64_t value;

		/* This byte is in the upper half of four words, so none of them is an address. */
		if (low && p[off + 7]) {
			off += 3;
			continue;
		}
		memcpy(&value, p + off, 8);
		if (value - lo >= range)
			continue;
		fn(ctx, vaddr + off, value,
		   (vaddr + off) % 8 || (mp_is_other_word(value) && !follows_words(b, p, off))
			   ? MP_WORD_CHANCE
			   : MP_WORD_LIKELY);
	}
}

/* A file with fixed addresses and without relocations: any number may be an address. */
static void plain_data(const struct mp_cfg_build *b, mp_word_fn *fn, void *ctx)
{
	const struct mp_elf *elf = b->elf;

	for (uint32_t i = 0; i < elf->nr_sections; i++) {
		const struct mp_section *sec = &elf->sections[i];
		const uint8_t *p;

		p = mp_is_word_section(sec) ? mp_elf_bytes(elf, sec->vaddr, sec->size) : NULL;
		if (p)
			plain_bytes(b, p, sec->vaddr, sec->size, fn, ctx);
	}
	if (elf->nr_sections)
		return;
	for (uint32_t i = 0; i < b->index->nr_spans; i++) {
		const struct mp_span *span = &b->index->spans[i];

		if (!span->code)
			plain_bytes(b, span->bytes, span->vaddr, span->size, fn, ctx);
	}
}

void mp_words_walk(const struct mp_cfg_build *b, mp_word_fn *fn, void *ctx)
{
	static_relocs(b, fn, ctx);
	dynamic_relocs(b, fn, ctx);
	own_sections(b, fn, ctx);
	if (!b->moves && !b->elf->relinkable)
		plain_data(b, fn, ctx);
}
