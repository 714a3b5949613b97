// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_taken - finds code addresses that stand somewhere else than in a recognised jump
 * table.
 * From these it decides which indirect jumps can only leave their function. Called by cfg.
 */
#include "libprof/cfg/cfg_words.h"

/*
 * True if compilers put labels' addresses in the section at @where. Sections with other
 * names are a program's own tables of places in its code, such as faulting or restartable
 * instructions.
 */
static bool may_hold_labels(const struct mp_cfg_build *b, uint64_t where)
{
	static const char *const names[] = {".data", ".rodata", ".ldata", ".lrodata"};
	const struct mp_section *sec = mp_elf_section_at(b->elf, where);

	/* Operands in code are judged elsewhere. */
	if (sec && (sec->flags & SHF_EXECINSTR))
		return true;
	for (size_t i = 0; sec && i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		if (!strncmp(sec->name, names[i], len) &&
		    (!sec->name[len] || sec->name[len] == '.'))
			return true;
	}
	return false;
}

static void word(void *ctx, uint64_t where, uint64_t value, enum mp_word_kind kind)
{
	struct mp_cfg_build *b = ctx;
	uint32_t at = mp_space_at(b->index, value), from;

	if (kind == MP_WORD_CHANCE || at == MP_NONE || !mp_space_is_text(b->index, at))
		return;
	from = where ? mp_space_at(b->index, where) : MP_NONE;
	if (from != MP_NONE && mp_bit(b->in_table, from))
		return;
	mp_bit_set(b->address_taken, at);
	if (!may_hold_labels(b, where))
		mp_bit_set(b->non_label_words, at);
}

/* Symbols in the middle of a function are entries that other code may use. */
static void inner_symbols(struct mp_cfg_build *b)
{
	const struct mp_elf *elf = b->elf;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];
		uint32_t at, part;

		if (sym->shndx == SHN_UNDEF ||
		    (sym->type != STT_FUNC && sym->type != STT_GNU_IFUNC))
			continue;
		at = mp_space_at(b->index, sym->vaddr);
		part = at == MP_NONE ? MP_NONE : mp_part_at(b->index, at);
		if (part == MP_NONE || b->index->parts[part].at == at)
			continue;
		mp_bit_set(b->address_taken, at);
		mp_bit_set(b->non_label_words, at);
	}
}

/* True if the address of an instruction in the middle of the function stands anywhere. */
static bool has_taken_middle(const struct mp_cfg_build *b, uint32_t func)
{
	const struct mp_func *f = &b->cfg->funcs[func];

	for (uint32_t r = 0; r < f->nr_ranges; r++) {
		const struct mp_part *part = &b->index->parts[b->part_of_range[f->first_range + r]];
		uint32_t at = mp_bits_next(b->address_taken, part->at + (r == 0), part->end);

		if (at < part->end)
			return true;
	}
	return false;
}

/*
 * A jump through a pointer goes to an address that a pointer may hold. If no pointer holds
 * an address in the function's middle and the frame is torn down, the jump is a tail call.
 */
static void find_tails(struct mp_cfg_build *b)
{
	for (uint32_t p = 0; p < b->index->nr_parts; p++) {
		const struct mp_part *part = &b->index->parts[p];
		const struct mp_range *range = &b->cfg->ranges[part->range];

		for (uint32_t i = 0; i < part->nr_flows; i++) {
			const struct mp_flow *f = &b->flows[part->first_flow + i];

			if (f->kind != MP_INSN_IJUMP || !mp_bit(b->pointer_jumps, f->at) ||
			    range->fde == MP_NONE)
				continue;
			if (!mp_cfa_is_entry_row(b->index, &b->elf->fdes[range->fde],
						 mp_space_vaddr(b->index, f->at)))
				continue;
			if (!has_taken_middle(b, part->func))
				mp_bit_set(b->tails, f->at);
		}
	}
}

void mp_cfg_find_taken(struct mp_cfg_build *b)
{
	mp_words_walk(b, word, b);
	inner_symbols(b);
	find_tails(b);
}

static void offset(void *ctx, uint64_t where, uint64_t value, enum mp_word_kind kind)
{
	struct mp_cfg_build *b = ctx;
	uint32_t at = mp_space_at(b->index, value), from = mp_space_at(b->index, where);
	const struct mp_part *part;

	if (kind != MP_WORD_CHANCE || at == MP_NONE || from == MP_NONE ||
	    mp_bit(b->in_table, from) || !mp_bit(b->starts, at) || mp_bit(b->entries, at) ||
	    mp_part_at(b->index, at) == MP_NONE)
		return;
	part = &b->index->parts[mp_part_at(b->index, at)];
	mp_func_problem(&b->cfg->funcs[part->func], MP_PROBLEM_MID_ESCAPE, value);
}

void mp_cfg_find_offsets(struct mp_cfg_build *b)
{
	if (b->elf->relinkable)
		mp_words_walk(b, offset, b);
}
