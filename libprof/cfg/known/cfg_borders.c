// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_borders - leaves functions alone that lie between two addresses of which the program reads, or compares, what
 * lies between: self tests sum up all code from one function to another. Also two questions about code behind an
 * instruction. Called by cfg_read.
 */
#include <errno.h>
#include <stdlib.h>

#include "libprof/base/search.h"
#include "libprof/cfg/cfg_private.h"
#include "libprof/insn/decoder.h"

/* Bytes between the instructions that name both. */
#define NEAR_BYTES 128
/* Bytes of code that seldom lie between two ends: these must be computed from each other. */
#define FAR_BYTES 65536
/* Moves between a comparison and a condition. */
#define MOVES 4

static int by_at(const void *a, const void *b)
{
	const struct mp_border *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static bool is_start(const struct mp_cfg_build *b, uint32_t target)
{
	uint32_t part = mp_part_at(b->index, target);

	return part != MP_NONE && b->index->parts[part].at == target;
}

/* Index of the first part that ends behind @at (@ends), or begins there or behind. */
static uint32_t first_part(const struct mp_cfg_build *b, uint32_t at, bool ends)
{
	const struct mp_part *parts = b->index->parts;

	return mp_search(i, 0, b->index->nr_parts, ends ? parts[i].end <= at : parts[i].at < at);
}

static bool are_far(const struct mp_cfg_build *b, const struct mp_border *x,
		    const struct mp_border *y)
{
	uint64_t at_x = mp_space_vaddr(b->index, x->target),
		 at_y = mp_space_vaddr(b->index, y->target);

	return (at_x < at_y ? at_y - at_x : at_x - at_y) > FAR_BYTES;
}

/* Is there a loop that reads from @x on, up to @y? */
static bool reads_up_to(const struct mp_border *x, const struct mp_border *y)
{
	return x->read && !x->computed && (y->used || y->equal);
}

/* Near an address that is only read, the program may do anything with another one. */
static bool is_only_read(const struct mp_border *x)
{
	return x->read && !x->computed && !x->ordered;
}

/* Does one function name both as ends? Then what lies between them is read or asked about. */
static bool are_ends(struct mp_cfg_build *b, const struct mp_border *x, const struct mp_border *y,
		     mp_meet meet)
{
	uint32_t part = mp_part_at(b->index, x->at);
	/* Labels outside of functions: the distance of one from the other, or what lies between. */
	bool loop = reads_up_to(x, y) || reads_up_to(y, x), both = x->used && y->used;
	bool outside = (x->computed || y->computed || loop || both) &&
		       mp_part_at(b->index, x->target) == MP_NONE &&
		       mp_part_at(b->index, y->target) == MP_NONE;

	if (x->target == y->target || part == MP_NONE || mp_part_at(b->index, y->at) != part ||
	    mp_part_at(b->index, x->target) == part || mp_part_at(b->index, y->target) == part)
		return false;
	if (outside)
		return true;
	if (!(is_start(b, x->target) || is_start(b, y->target)) ||
	    !((x->used || x->equal) && (y->used || y->equal)))
		return false;
	if (both && !(is_only_read(x) && is_only_read(y)) &&
	    !((x->computed || y->computed) && are_far(b, x, y)))
		return true;
	return meet(b, x, y, both || loop);
}

static void mark(struct mp_cfg_build *b, const int32_t *change)
{
	int32_t inside = 0;

	for (uint32_t i = 0; i < b->index->nr_parts; i++) {
		const struct mp_part *part = &b->index->parts[i];

		inside += change[i];
		if (inside > 0)
			mp_func_problem(&b->cfg->funcs[part->func], MP_PROBLEM_READ,
					mp_space_vaddr(b->index, part->at));
	}
}

int mp_cfg_mark_between(struct mp_cfg_build *b, struct mp_border *list, uint32_t nr, mp_meet meet)
{
	int32_t *change; /* per part: of the number of ranges that hold it */

	if (nr < 2)
		return 0;
	change = calloc((size_t)b->index->nr_parts + 1, sizeof(*change));
	if (!change)
		return -ENOMEM;
	qsort(list, nr, sizeof(*list), by_at);
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t k = i + 1; k < nr && list[k].at - list[i].at <= NEAR_BYTES; k++) {
			uint32_t a = list[i].target, z = list[k].target;

			if (!are_ends(b, &list[i], &list[k], meet))
				continue;
			change[first_part(b, a < z ? a : z, true)]++;
			/* The function at the end keeps its address. */
			change[first_part(b, (a < z ? z : a) + 1, false)]--;
		}
	mark(b, change);
	free(change);
	return 0;
}

/* Control goes on behind the instruction, and it neither tests nor changes a flag. */
static bool passes_flags(const ZydisDecodedInstruction *z)
{
	const ZydisAccessedFlags *flags = z->cpu_flags;

	return z->meta.branch_type == ZYDIS_BRANCH_TYPE_NONE &&
	       z->meta.category != ZYDIS_CATEGORY_RET &&
	       (!flags || !(flags->tested | flags->modified | flags->set_0 | flags->set_1 |
			    flags->undefined));
}

bool mp_cfg_asks_order(const struct mp_cfg_build *b, uint32_t at)
{
	ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	int n = 0;

	do {
		const uint8_t *bytes = mp_space_bytes(b->index, at, 15);

		if (!bytes || ZYAN_FAILED(ZydisDecoderDecodeFull(mp_decoder(), bytes, 15, &z, o)))
			return false;
		at += z.length;
	} while (passes_flags(&z) && ++n < MOVES);
	/* The conditions "below" and "above" test the carry flag. Their numbers are 2, 3, 6 and 7. */
	if (z.meta.category == ZYDIS_CATEGORY_COND_BR || z.meta.category == ZYDIS_CATEGORY_SETCC ||
	    z.meta.category == ZYDIS_CATEGORY_CMOV)
		return (z.opcode & 0x0a) == 2;
	return z.mnemonic == ZYDIS_MNEMONIC_SBB || z.mnemonic == ZYDIS_MNEMONIC_ADC;
}

bool mp_cfg_sums_vectors(const struct mp_cfg_build *b, uint32_t at, int most)
{
	for (int n = 0; n < most; n++) {
		const uint8_t *bytes = mp_space_bytes(b->index, at, 15);
		ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction z;
		const char *name;

		if (!bytes || ZYAN_FAILED(ZydisDecoderDecodeFull(mp_decoder(), bytes, 15, &z, o)))
			return false;
		name = ZydisMnemonicGetString(z.mnemonic);
		name += name[0] == 'v';
		if (!strncmp(name, "padd", 4) || !strncmp(name, "psub", 4))
			return true;
		/* Two equal registers become zero. */
		if (!strcmp(name, "pxor") &&
		    (o[z.operand_count - 1].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		     o[z.operand_count - 1].reg.value != o[0].reg.value))
			return true;
		at += z.length;
	}
	return false;
}
