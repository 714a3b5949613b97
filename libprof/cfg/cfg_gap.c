// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_gap - finds the addresses that code outside of all functions may refer to.
 *
 * Nothing tells where the instructions of such code start, and constants lie between them.
 * The pass reads it from its start and from every place that something leads to. If a
 * branch or operand there leads to an instruction, nothing may be put at that address. It
 * starts no block, since nearly all such finds are chance.
 *
 * A branch or operand may also lead between two instructions of a function. Then either the
 * function has a second reading, or the branch is a constant (a table, a text) that reads
 * like code. Bytes that control reaches from a function, a symbol or a pointer are code,
 * with all that follows; the function is then left alone. Other bytes count only if they
 * lead behind the prefixes of an instruction: programs jump to no other place inside an
 * instruction. Called by cfg after all instructions are known.
 */
#include <errno.h>

#include "libprof/base/grow.h"
#include "libprof/cfg/cfg_private.h"

struct gaps {
	struct mp_cfg_build *b;
	mp_bits reached; /* places outside of functions that control reaches */
	uint32_t *stack; /* places in @reached that are still to be read */
	uint32_t nr_stack, cap_stack;
	bool sure; /* the current instruction is certainly code */
};

static bool is_text(const struct mp_cfg_build *b, uint32_t at)
{
	return at != MP_NONE && mp_space_is_text(b->index, at);
}

/*
 * True if @at lies behind prefixes that the instruction can do without: lock, repeat,
 * branch hints. Before 0f, f2 and f3 belong to the opcode.
 */
static bool is_behind_prefix(const struct mp_cfg_build *b, const struct mp_part *part, uint32_t at)
{
	uint32_t start = at;

	while (start > part->at && at - start < 15 && !mp_bit(b->starts, start))
		start--;
	if (!mp_bit(b->starts, start))
		return false;
	for (; start < at; start++) {
		const uint8_t *p = mp_space_bytes(b->index, start, 2);

		if (!p || (*p != 0xf0 && *p != 0x2e && *p != 0x3e &&
			   ((*p != 0xf2 && *p != 0xf3) || p[1] == 0x0f)))
			return false;
	}
	return true;
}

/* Records a place in the text that the current instruction leads to. */
static void add_gap_target(const struct gaps *g, uint32_t at)
{
	struct mp_cfg_build *b = g->b;
	uint32_t part = g->sure ? MP_NONE : mp_part_at(b->index, at);

	if (part != MP_NONE && !mp_bit(b->starts, at) &&
	    !is_behind_prefix(b, &b->index->parts[part], at))
		return;
	mp_bit_set(b->gap_targets, at);
}

static void note(const struct gaps *g, uint64_t vaddr)
{
	uint32_t at = mp_space_at(g->b->index, vaddr);

	if (is_text(g->b, at))
		add_gap_target(g, at);
}

/* Records an operand that is no branch: a table may start there. */
static void note_operand(const struct gaps *g, uint64_t vaddr)
{
	struct mp_cfg_build *b = g->b;
	uint32_t at = mp_space_at(b->index, vaddr);

	if (at == MP_NONE)
		return;
	mp_bit_set(b->gap_refs, at);
	if (is_text(b, at))
		add_gap_target(g, at);
}

/* Records a number that equals an address, maybe by chance: nothing may be put there. */
static void note_number(struct mp_cfg_build *b, uint64_t vaddr)
{
	uint32_t at = mp_space_at(b->index, vaddr);

	if (at == MP_NONE)
		return;
	mp_bit_set(b->gap_refs, at);
	if (is_text(b, at))
		mp_bit_set(b->index->weak_targets, at);
}

/* Records the operands of an instruction as if it belonged to a function. */
static void read_insn(const struct gaps *g, const struct mp_insn *insn, const uint8_t *bytes)
{
	struct mp_cfg_build *b = g->b;
	uint64_t value = 0;
	int32_t v32;

	if (insn->rip_relative)
		note_operand(g, insn->target);
	else if (insn->disp_size)
		note(g, insn->target);
	if (!b->moves && insn->mem_disp_off) {
		memcpy(&v32, bytes + insn->mem_disp_off, 4);
		note_number(b, (uint64_t)(int64_t)v32);
	}
	if (insn->imm_size == 8 || (!b->moves && insn->imm_size == 4)) {
		memcpy(&value, bytes + insn->imm_off, insn->imm_size);
		note_number(b, value);
	}
}

/* Decodes from @at to bytes that were read before. */
static void read_run(struct gaps *g, uint32_t at, uint32_t end)
{
	struct mp_cfg_build *b = g->b;
	const struct mp_span *span = mp_space_span(b->index, at);

	while (at < end && !mp_bit(b->scratch, at)) {
		const uint8_t *bytes = span->bytes + (at - span->at);
		struct mp_insn insn;

		mp_bit_set(b->scratch, at);
		if (mp_insn_decode(bytes, end - at, mp_space_vaddr(b->index, at), &insn)) {
			at++;
			continue;
		}
		g->sure = mp_bit(g->reached, at);
		read_insn(g, &insn, bytes);
		at += insn.len;
	}
}

static void read_gap(struct gaps *g, uint32_t from, uint32_t to)
{
	struct mp_cfg_build *b = g->b;

	for (uint32_t i = 0; i < b->index->nr_text; i++) {
		const struct mp_text *text = &b->index->text[i];
		uint32_t at = text->at > from ? text->at : from;
		uint32_t end = text->end < to ? text->end : to;

		if (at >= end)
			continue;
		read_run(g, at, end);
		for (at++; at < end; at++)
			if (mp_bit(b->index->targets, at) || mp_bit(b->index->weak_targets, at) ||
			    mp_bit(b->gap_targets, at) || mp_bit(g->reached, at))
				read_run(g, at, end);
	}
}

/* Return: true if bytes were read that were not read before. */
static bool read_again(struct gaps *g, const struct mp_part *part, uint32_t at)
{
	struct mp_cfg_build *b = g->b;
	bool found = false;

	g->sure = true;
	while (at < part->end && !mp_bit(b->starts, at) && !mp_bit(b->scratch, at)) {
		const struct mp_span *span = mp_space_span(b->index, at);
		const uint8_t *bytes = span->bytes + (at - span->at);
		struct mp_insn insn;

		mp_bit_set(b->scratch, at);
		found = true;
		if (mp_insn_decode(bytes, part->end - at, mp_space_vaddr(b->index, at), &insn))
			break;
		read_insn(g, &insn, bytes);
		at += insn.len;
	}
	return found;
}

static bool read_off_grid(struct gaps *g, const mp_bits bits)
{
	struct mp_cfg_build *b = g->b;
	bool found = false;

	for (uint32_t p = 0; p < b->index->nr_parts; p++) {
		const struct mp_part *part = &b->index->parts[p];
		uint32_t at = mp_bits_next(bits, part->at, part->end);

		for (; at < part->end; at = mp_bits_next(bits, at + 1, part->end))
			if (!mp_bit(b->starts, at) && read_again(g, part, at))
				found = true;
	}
	return found;
}

/* Control reaches @at. Addresses in functions are skipped: they were read with the function. */
static int lead_to(struct gaps *g, uint32_t at)
{
	if (!is_text(g->b, at) || mp_bit(g->reached, at) || mp_part_at(g->b->index, at) != MP_NONE)
		return 0;
	if (mp_grow(g->stack, g->cap_stack, g->nr_stack + 1))
		return -ENOMEM;
	mp_bit_set(g->reached, at);
	g->stack[g->nr_stack++] = at;
	return 0;
}

/* Places that branches and calls of functions reach. */
static int lead_from_functions(struct gaps *g)
{
	const struct mp_cfg_build *b = g->b;
	int ret = 0;

	for (uint32_t p = 0; p < b->index->nr_parts; p++) {
		const struct mp_part *part = &b->index->parts[p];

		for (uint32_t i = 0; i < part->nr_flows && !ret; i++)
			ret = lead_to(g, b->flows[part->first_flow + i].target);
	}
	return ret;
}

/* Places that the entry point, a code symbol, or a word of data with the address reaches. */
static int lead_from_data(struct gaps *g)
{
	const struct mp_cfg_build *b = g->b;
	const struct mp_elf *elf = b->elf;
	uint32_t end = b->index->nr_bytes, at;
	int ret = lead_to(g, mp_space_at(b->index, elf->ehdr.e_entry));

	for (uint32_t i = 0; i < elf->nr_symbols && !ret; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];

		if (sym->shndx != SHN_UNDEF && sym->shndx != SHN_ABS &&
		    (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC ||
		     sym->type == STT_NOTYPE))
			ret = lead_to(g, mp_space_at(b->index, sym->vaddr));
	}
	for (at = mp_bits_next(b->pointed, 0, end); at < end && !ret;
	     at = mp_bits_next(b->pointed, at + 1, end))
		ret = lead_to(g, at);
	return ret;
}

/* Follows control from @at. @all: goes on to @end, over jumps and returns as well. */
static int follow(struct gaps *g, uint32_t at, uint32_t end, bool all)
{
	const struct mp_cfg_build *b = g->b;
	const struct mp_span *span = mp_space_span(b->index, at);

	while (at < end) {
		const uint8_t *bytes = span->bytes + (at - span->at);
		struct mp_insn insn;
		int ret = 0;

		if (mp_insn_decode(bytes, end - at, mp_space_vaddr(b->index, at), &insn)) {
			if (!all)
				return 0;
			at++;
			continue;
		}
		mp_bit_set(g->reached, at);
		if (insn.disp_size && !insn.rip_relative)
			ret = lead_to(g, mp_space_at(b->index, insn.target));
		at += insn.len;
		if (ret || (!all && (insn.kind == MP_INSN_JUMP || insn.kind == MP_INSN_IJUMP ||
				     insn.kind == MP_INSN_RET || insn.kind == MP_INSN_TRAP)))
			return ret;
		if (!all && (!is_text(b, at) || mp_bit(g->reached, at) ||
			     mp_part_at(b->index, at) != MP_NONE))
			return 0;
	}
	return 0;
}

/* Sections outside of .text hold stubs of the linker and start-up code: nothing but code. */
static int lead_through_sections(struct gaps *g)
{
	const struct mp_elf *elf = g->b->elf;
	int ret = 0;

	for (uint32_t i = 0; i < elf->nr_sections && !ret; i++) {
		const struct mp_section *sec = &elf->sections[i];
		uint32_t at = mp_space_at(g->b->index, sec->vaddr);

		if ((sec->flags & SHF_EXECINSTR) && strncmp(sec->name, ".text", 5) &&
		    is_text(g->b, at) && mp_space_bytes(g->b->index, at, (uint32_t)sec->size))
			ret = follow(g, at, at + (uint32_t)sec->size, true);
	}
	return ret;
}

static int find_reached(struct gaps *g)
{
	int ret = lead_from_functions(g);

	if (!ret)
		ret = lead_from_data(g);
	if (!ret)
		ret = lead_through_sections(g);
	while (!ret && g->nr_stack) {
		uint32_t at = g->stack[--g->nr_stack];
		const struct mp_span *span = mp_space_span(g->b->index, at);

		ret = follow(g, at, span->at + (uint32_t)span->size, false);
	}
	return ret;
}

int mp_cfg_read_gaps(struct mp_cfg_build *b)
{
	const uint32_t nr_words = b->index->nr_bytes / 64 + 1;
	struct gaps g = {.b = b, .reached = mp_space_bitmap(b->index)};
	int ret = g.reached ? find_reached(&g) : -ENOMEM;
	uint32_t at = 0;

	if (ret)
		goto out;
	for (uint32_t i = 0; i < b->index->nr_parts; i++) {
		read_gap(&g, at, b->index->parts[i].at);
		mp_space_note_read(b, b->index->parts[i].end - at);
		at = b->index->parts[i].end;
	}
	read_gap(&g, at, b->index->nr_bytes);
	/*
	 * If control may arrive between two instructions, these bytes have a second reading
	 * with targets of its own.
	 */
	read_off_grid(&g, b->index->targets);
	while (read_off_grid(&g, b->gap_targets))
		;
	mp_bits_clear_all(b->scratch, nr_words);
	mp_bits_or_common(b->index->weak_targets + b->index->first_word,
			  b->gap_targets + b->index->first_word, b->starts + b->index->first_word,
			  b->index->nr_words);
out:
	free(g.reached);
	free(g.stack);
	return ret;
}
