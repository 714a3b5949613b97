// SPDX-License-Identifier: Apache-2.0
/* alternatives - which ways come first; see alternatives.h. */
#include "editor/refine/alternatives.h"

/*
 * A slow place in a cache line most often concerns a loop. Its start comes first, then what differs
 * most from the present layout.
 */
static const struct me_adjust order[] = {
	{.kind = ME_ADJUST_LOOP, .bytes = 0},	{.kind = ME_ADJUST_ORIGINAL},
	{.kind = ME_ADJUST_START, .bytes = 32}, {.kind = ME_ADJUST_END},
	{.kind = ME_ADJUST_LOOP, .bytes = 32},	{.kind = ME_ADJUST_START, .bytes = 16},
	{.kind = ME_ADJUST_LOOP, .bytes = 16},	{.kind = ME_ADJUST_START, .bytes = 48},
};

struct me_levels me_alternatives(uint64_t vaddr, const struct me_wishes *tried)
{
	const struct me_adjust stay = {.vaddr = vaddr, .kind = ME_ADJUST_STAY};
	struct me_levels levels = {.wish = {stay, stay, stay, stay}};
	unsigned int level = 1;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]) && level < 3; i++) {
		struct me_adjust wish = order[i];

		wish.vaddr = vaddr;
		if (!me_wishes_have(tried, &wish))
			levels.wish[level++] = wish;
	}
	return levels;
}
