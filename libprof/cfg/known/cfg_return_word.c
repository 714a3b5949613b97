// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_return_word - finds functions of which data may hold return addresses.
 *
 * Some runtimes find the frames of a stack by tables of return addresses, and the live pointers in
 * each frame (OCaml's frame tables). A copy of such a function has other return addresses, which no
 * table has. So it is left alone. A word of data counts as a return address if it names the
 * place behind a call, and if neither word beside it names a place in a function: labels (GNU C)
 * and a switch's targets stand in arrays, return addresses beside descriptions of frames. Called by
 * cfg, after flows are known.
 */
#include "libprof/base/search.h"
#include "libprof/cfg/cfg_words.h"

const struct mp_flow *mp_call_before(const struct mp_cfg_build *b, const struct mp_part *part,
				     uint32_t at)
{
	const struct mp_flow *f;
	uint32_t lo = mp_search(i, 0, part->nr_flows, b->flows[part->first_flow + i].at < at);

	f = lo ? &b->flows[part->first_flow + lo - 1] : NULL;
	return f && f->at + f->len == at && (f->kind == MP_INSN_CALL || f->kind == MP_INSN_ICALL)
		       ? f
		       : NULL;
}

/* The part of a function in which @at is not the first byte, or MP_NONE. */
static uint32_t part_around(const struct mp_cfg_build *b, uint32_t at)
{
	uint32_t part;

	if (at == MP_NONE || !mp_space_is_text(b->index, at))
		return MP_NONE;
	part = mp_part_at(b->index, at);
	return part != MP_NONE && b->index->parts[part].at != at ? part : MP_NONE;
}

/* Index of the address that the 8 bytes at @where hold once the file is loaded, or MP_NONE. */
static uint32_t word_at(const struct mp_cfg_build *b, uint64_t where)
{
	const struct mp_table word = {.vaddr = where, .kind = MP_TABLE_ABS64};

	return mp_table_entry(b, &word, 0);
}

/* True if the 8 bytes at @where are the end of a text: it looks like an address often. */
static bool ends_text(const struct mp_cfg_build *b, uint64_t where)
{
	const uint8_t *p = mp_elf_bytes(b->elf, where - 8, 16);

	for (int i = 0; p && i < 16; i++)
		if (!(p[i] >= ' ' && p[i] <= '~') && (i < 8 || p[i]))
			return false;
	return p;
}

static void word(void *ctx, uint64_t where, uint64_t value, enum mp_word_kind kind)
{
	struct mp_cfg_build *b = ctx;
	uint32_t at = mp_space_at(b->index, value), from = mp_space_at(b->index, where);
	uint32_t part = part_around(b, at);

	if (part == MP_NONE || from == MP_NONE || mp_space_is_text(b->index, from) ||
	    !mp_bit(b->starts, at) || !mp_call_before(b, &b->index->parts[part], at))
		return;
	/* Without relocations, numbers of 8 bytes at their natural place may be addresses. */
	if (kind != MP_WORD_SURE && (where % 8 || word_at(b, where) != at || ends_text(b, where)))
		return;
	if (part_around(b, word_at(b, where - 8)) != MP_NONE ||
	    part_around(b, word_at(b, where + 8)) != MP_NONE)
		return;
	mp_func_problem(&b->cfg->funcs[b->index->parts[part].func], MP_PROBLEM_RETURN_WORD, value);
}

void mp_cfg_find_return_words(struct mp_cfg_build *b)
{
	mp_words_walk(b, word, b);
}
