// SPDX-License-Identifier: Apache-2.0
#include "editor/rewrite/stack_walk.h"

#include <string.h>

static bool is_walker(const char *name)
{
	/* The last two: an unwinder that is a part of the file, whose own names may be stripped, finds tables by them. */
	static const char *const names[] = {"backtrace",
					    "_Unwind_Backtrace",
					    "unw_backtrace",
					    "_Unwind_FindEnclosingFunction",
					    "_Unwind_ForcedUnwind",
					    "dl_iterate_phdr",
					    "_dl_find_object"};
	/* libunwind's; and runtimes of Fortran, Ada and D, which print a stack when a program fails. */
	static const char *const prefixes[] = {"unw_step",   "_ULx86_64_step", "_Ux86_64_step",
					       "_gfortran_", "__gnat_",	       "_d_throw"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

bool me_walks_stack(const struct mp_elf *elf)
{
	bool names = false;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];

		if (sym->name && is_walker(sym->name))
			return true;
		/* A static file that was stripped has none of these; if it is position-independent, it may have others. */
		names |= !sym->dynamic || (sym->shndx == SHN_UNDEF && sym->bind == STB_GLOBAL);
	}
	return !names;
}
