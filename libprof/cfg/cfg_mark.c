// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_mark - packs the facts about single places before blocks are made.
 *
 * A bitmap over the image is quick to fill in any order. But its few bits are spread over the whole
 * text, so that it takes memory for all of it. Blocks and edges need that memory. Called by
 * cfg_block.
 */
#include <errno.h>

#include "libprof/cfg/cfg_private.h"

static void drop(mp_bits *bits)
{
	free(*bits);
	*bits = NULL;
}

/* Only indirect jumps have these facts. */
static void pack_jumps(struct mp_cfg_build *b)
{
	for (uint32_t i = 0; i < b->nr_flows; i++) {
		struct mp_flow *f = &b->flows[i];

		if (f->kind != MP_INSN_IJUMP)
			continue;
		f->tabled = mp_bit(b->tabled, f->at);
		f->tail = mp_bit(b->tails, f->at);
		f->may_miss_table = mp_bit(b->may_miss_table, f->at);
	}
	drop(&b->tabled);
	drop(&b->tails);
	drop(&b->may_miss_table);
}

static uint8_t mark_of(const struct mp_cfg_build *b, uint32_t at)
{
	uint8_t mark = 0;

	if (mp_bit(b->pads, at))
		mark |= MP_BLOCK_LANDING_PAD;
	if (mp_bit(b->table_targets, at))
		mark |= MP_BLOCK_TABLE_TARGET;
	if (mp_bit(b->address_taken, at))
		mark |= MP_BLOCK_ADDRESS_TAKEN;
	if (mp_bit(b->named, at))
		mark |= MP_BLOCK_NAMED;
	if (mp_bit(b->entered, at))
		mark |= MP_BLOCK_OTHER_ENTRY;
	return mark;
}

static int fill(const struct mp_cfg_build *b, struct mp_marks *marks)
{
	const uint32_t end = b->index->first_word + b->index->nr_words;
	uint32_t first = b->index->first_word, nr = 0, n = 0;

	marks->rank = malloc(((size_t)end + 1) * sizeof(*marks->rank));
	if (!marks->rank)
		return -ENOMEM;
	for (uint32_t i = first; i < end; i++) {
		marks->rank[i] = nr;
		for (uint64_t w = marks->known[i]; w; w &= w - 1) /* few bits of a word are set */
			nr++;
	}
	marks->mark = malloc((size_t)nr + 1);
	if (!marks->mark)
		return -ENOMEM;
	for (uint32_t i = first; i < end; i++)
		for (uint64_t w = marks->known[i]; w; w &= w - 1)
			marks->mark[n++] = mark_of(b, i * 64 + (uint32_t)__builtin_ctzll(w));
	return 0;
}

int mp_marks_pack(struct mp_cfg_build *b)
{
	mp_bits *const facts[] = {&b->pads, &b->table_targets, &b->address_taken, &b->named,
				  &b->entered};
	const size_t nr = sizeof(facts) / sizeof(facts[0]);
	struct mp_marks *marks = &b->marks;
	uint32_t first = b->index->first_word;

	pack_jumps(b);
	marks->known = mp_space_bitmap(b->index);
	if (!marks->known)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		mp_bits_or(marks->known + first, *facts[i] + first, b->index->nr_words);
	if (fill(b, marks))
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		drop(facts[i]);
	return 0;
}

uint8_t mp_marks_at(const struct mp_marks *marks, uint32_t at)
{
	uint32_t n;

	if (!mp_bit(marks->known, at))
		return 0;
	n = marks->rank[at >> 6];
	for (uint64_t w = marks->known[at >> 6] & ((1ull << (at & 63)) - 1); w; w &= w - 1)
		n++;
	return marks->mark[n];
}

void mp_marks_fini(struct mp_marks *marks)
{
	free(marks->known);
	free(marks->rank);
	free(marks->mark);
}
