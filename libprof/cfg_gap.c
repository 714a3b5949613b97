// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_gap - what code that belongs to no function may refer to.
 *
 * Nobody knows where its instructions start; constants stand among them. So it is read from its
 * start and from every place that something leads to. Where a branch or operand of that leads
 * between two instructions of a function, the function is left alone; where it leads to an
 * instruction, nothing may be put there. It starts no block: nearly all of it is chance. Called by
 * cfg, once all instructions are known.
 */
#include "libprof/cfg_private.h"

static bool is_text(const struct mp_cfg_build *b, uint32_t at)
{
	return at != MP_NONE && mp_space_is_text(b->index, at);
}

static void note(struct mp_cfg_build *b, uint64_t vaddr)
{
	uint32_t at = mp_space_at(b->index, vaddr);

	if (is_text(b, at))
		mp_bit_set(b->strays, at);
}

/* An operand, not a branch: a table may start there. */
static void note_operand(struct mp_cfg_build *b, uint64_t vaddr)
{
	uint32_t at = mp_space_at(b->index, vaddr);

	if (at == MP_NONE)
		return;
	mp_bit_set(b->stray_refs, at);
	if (is_text(b, at))
		mp_bit_set(b->strays, at);
}

/* An address as it stands, or a number that happens to be one: nothing may be put there. */
static void note_number(struct mp_cfg_build *b, uint64_t vaddr)
{
	uint32_t at = mp_space_at(b->index, vaddr);

	if (at == MP_NONE)
		return;
	mp_bit_set(b->stray_refs, at);
	if (is_text(b, at))
		mp_bit_set(b->index->chances, at);
}

/* The instruction of a second reading, at @at: as if it were one of the function's. */
static void read_insn(struct mp_cfg_build *b, const struct mp_insn *insn, const uint8_t *bytes)
{
	uint64_t value = 0;
	int32_t v32;

	if (insn->rip_relative)
		note_operand(b, insn->target);
	else if (insn->disp_size)
		note(b, insn->target);
	if (!b->moves && insn->mem_disp_off) {
		memcpy(&v32, bytes + insn->mem_disp_off, 4);
		note_number(b, (uint64_t)(int64_t)v32);
	}
	if (insn->imm_size == 8 || (!b->moves && insn->imm_size == 4)) {
		memcpy(&value, bytes + insn->imm_off, insn->imm_size);
		note_number(b, value);
	}
}

/* Decode from @at on, until bytes that were read before. */
static void read_run(struct mp_cfg_build *b, uint32_t at, uint32_t end)
{
	const struct mp_span *span = mp_space_span(b->index, at);

	while (at < end && !mp_bit(b->scratch, at)) {
		const uint8_t *bytes = span->bytes + (at - span->at);
		struct mp_insn insn;

		mp_bit_set(b->scratch, at);
		if (mp_insn_decode(bytes, end - at, mp_space_vaddr(b->index, at), &insn)) {
			at++;
			continue;
		}
		read_insn(b, &insn, bytes);
		at += insn.len;
	}
}

static void read_gap(struct mp_cfg_build *b, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < b->index->nr_text; i++) {
		const struct mp_text *text = &b->index->text[i];
		uint32_t at = text->at > from ? text->at : from;
		uint32_t end = text->end < to ? text->end : to;

		if (at >= end)
			continue;
		read_run(b, at, end);
		for (at++; at < end; at++)
			if (mp_bit(b->index->targets, at) || mp_bit(b->index->chances, at) ||
			    mp_bit(b->strays, at))
				read_run(b, at, end);
	}
}

/* Return: true if something was found that was not known. */
static bool read_again(struct mp_cfg_build *b, const struct mp_part *part, uint32_t at)
{
	bool found = false;

	while (at < part->end && !mp_bit(b->starts, at) && !mp_bit(b->scratch, at)) {
		const struct mp_span *span = mp_space_span(b->index, at);
		const uint8_t *bytes = span->bytes + (at - span->at);
		struct mp_insn insn;

		mp_bit_set(b->scratch, at);
		found = true;
		if (mp_insn_decode(bytes, part->end - at, mp_space_vaddr(b->index, at), &insn))
			break;
		read_insn(b, &insn, bytes);
		at += insn.len;
	}
	return found;
}

static bool read_off_grid(struct mp_cfg_build *b, const mp_bits bits)
{
	bool found = false;

	for (uint32_t p = 0; p < b->index->nr_parts; p++) {
		const struct mp_part *part = &b->index->parts[p];
		uint32_t at = mp_bits_next(bits, part->at, part->end);

		for (; at < part->end; at = mp_bits_next(bits, at + 1, part->end))
			if (!mp_bit(b->starts, at) && read_again(b, part, at))
				found = true;
	}
	return found;
}

void mp_cfg_read_gaps(struct mp_cfg_build *b)
{
	const uint32_t nr_words = b->index->nr_bytes / 64 + 1;
	uint32_t at = 0;

	for (uint32_t i = 0; i < b->index->nr_parts; i++) {
		read_gap(b, at, b->index->parts[i].at);
		at = b->index->parts[i].end;
	}
	read_gap(b, at, b->index->nr_bytes);
	/* The bytes between two instructions that somebody arrives at have a second reading, with
	 * targets of its own. */
	read_off_grid(b, b->index->targets);
	while (read_off_grid(b, b->strays))
		;
	mp_bits_clear_all(b->scratch, nr_words);
	mp_bits_or_common(b->index->chances, b->strays, b->starts, nr_words);
}
