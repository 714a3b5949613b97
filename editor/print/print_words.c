// SPDX-License-Identifier: Apache-2.0
/* print_words - words and first lines that the prints of all stages share. */
#include <inttypes.h>

#include "editor/print/print_private.h"
#include "libprof/base/text.h"

/* The name of a function, escaped; its address where it has none. */
static void print_name(FILE *out, const struct mp_cfg *cfg, uint32_t func)
{
	if (*cfg->funcs[func].name)
		mp_text_put(out, cfg->funcs[func].name);
	else
		fprintf(out, "0x%" PRIx64, cfg->funcs[func].vaddr);
}

void me_print_head(FILE *out, const struct me_print *data, uint32_t func)
{
	const struct mp_func *f = &data->cfg->funcs[func];

	fputs("function ", out);
	print_name(out, data->cfg, func);
	fprintf(out, " at 0x%" PRIx64 ": %" PRIu32 " blocks, %" PRIu64 " bytes", f->vaddr,
		f->nr_blocks, f->size);
}

const char *me_print_term(const struct mp_block *block)
{
	static const char *const terms[] = {
		[MP_TERM_FALL] = "falls",
		[MP_TERM_COND] = "branch",
		[MP_TERM_JUMP] = "jump",
		[MP_TERM_TAIL] = "tail call",
		[MP_TERM_TABLE] = "table",
		[MP_TERM_INDIRECT_TAIL] = "indirect tail call",
		[MP_TERM_UNRESOLVED] = "unresolved jump",
		[MP_TERM_RET] = "return",
		[MP_TERM_TRAP] = "trap",
		[MP_TERM_NORETURN] = "no return",
	};

	return block->term < sizeof(terms) / sizeof(terms[0]) ? terms[block->term] : "?";
}

const char *me_print_kind(const struct mp_edge *edge)
{
	static const char *const kinds[] = {
		[MP_EDGE_FALL] = "fall",
		[MP_EDGE_TAKEN] = "taken",
		[MP_EDGE_JUMP] = "jump",
		[MP_EDGE_TABLE] = "table",
	};

	return kinds[edge->kind];
}

void me_print_flags(FILE *out, const struct mp_block *block)
{
	static const struct {
		uint16_t flag;
		const char *name;
	} flags[] = {
		{MP_BLOCK_ENTRY, "entry"},
		{MP_BLOCK_LANDING_PAD, "landing pad"},
		{MP_BLOCK_TABLE_TARGET, "table target"},
		{MP_BLOCK_ADDRESS_TAKEN, "address taken"},
		{MP_BLOCK_OTHER_ENTRY, "other entry"},
		{MP_BLOCK_COLD_PART, "cold part"},
		{MP_BLOCK_NAMED, "named"},
		{MP_BLOCK_PADDING, "padding"},
		{MP_BLOCK_PROBE, "probe"},
	};
	const char *before = "";

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (!(block->flags & flags[i].flag))
			continue;
		fprintf(out, "%s%s", before, flags[i].name);
		before = ", ";
	}
}

const char *me_print_why(const struct me_plan_block *planned)
{
	static const char *const reasons[] = {
		[ME_WHY_ORIGINAL] = "original order",
		[ME_WHY_FLOW] = "runs",
		[ME_WHY_UNSAMPLED] = "unsampled",
		[ME_WHY_TAIL] = "clone of a way out",
		[ME_WHY_STUB] = "stub",
	};

	return planned->why < sizeof(reasons) / sizeof(reasons[0]) ? reasons[planned->why] : "?";
}

const char *me_print_zone(uint8_t zone)
{
	return zone == ME_ZONE_HOT ? "hot" : "warm";
}
