// SPDX-License-Identifier: Apache-2.0
#include "editor/rewrite/stack_walk.h"

#include <string.h>

static bool is_walker(const char *name)
{
	static const char *const names[] = {"backtrace", "_Unwind_Backtrace", "unw_backtrace",
					    "_Unwind_FindEnclosingFunction",
					    "_Unwind_ForcedUnwind"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	/* libunwind, whose functions have these prefixes, and that of x86-64 has the second one */
	return !strncmp(name, "unw_step", 8) || !strncmp(name, "_ULx86_64_step", 14) ||
	       !strncmp(name, "_Ux86_64_step", 13);
}

bool me_walks_stack(const struct mp_elf *elf)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (elf->symbols[i].name && is_walker(elf->symbols[i].name))
			return true;
	return !elf->nr_symbols;
}
