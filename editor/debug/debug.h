// SPDX-License-Identifier: Apache-2.0
/*
 * debug - extends the debug information (DWARF 2 to 5) to the copies: lines, functions,
 * inlined calls and variables are those of the original code. Called by emit.
 *
 * Only a lack of memory is an error. Information that is not understood is left
 * unchanged and counted; it still describes the old code correctly.
 */
#ifndef ME_DEBUG_H
#define ME_DEBUG_H

#include <stdint.h>

#include "editor/place/output_parts.h"
#include "editor/place/place.h"
#include "editor/place/sections.h"
#include "libprof/base/err.h"

struct me_debug_report {
	bool present;		  /* the file has .debug_info */
	bool elsewhere;		  /* no .debug_info, but .gnu_debuglink names another file */
	uint32_t nr_units;	  /* units of .debug_info */
	uint32_t nr_extended;	  /* units with copied code that were extended */
	uint32_t nr_left;	  /* units left unchanged */
	uint32_t nr_scopes;	  /* functions, inlined calls and blocks that now cover copies */
	uint32_t nr_scopes_left;  /* the same that could not be extended, in extended units */
	uint32_t nr_inlined;	  /* calls replaced by the called function that have an entry */
	uint32_t nr_inlined_left; /* those that have none */
	const char *why;	  /* static text: why the first unit was left; NULL: none was */
	double seconds, cpu_seconds;
};

struct me_debug;

/*
 * me_debug_build - build the new sections from those of @elf: the original or its debug
 * file. Adds a section to @sections if the file lacks one that is needed.
 * Return: 0, -ENOMEM. Ownership: me_debug_free(*@out), which takes NULL.
 */
int me_debug_build(const struct mp_cfg *cfg, const struct me_placement *placement,
		   const struct mp_elf *elf, struct me_sections *sections, struct me_debug **out,
		   struct me_debug_report *report, struct mp_err *err);
/*
 * me_debug_put - if section @index of the output was changed by debug, put it into
 * @output and update its @header. Return: 1 done, 0 not changed, -ENOMEM.
 */
int me_debug_put(struct me_debug *debug, uint32_t index, Elf64_Shdr *header,
		 struct me_output_parts *output);
void me_debug_free(struct me_debug *debug);

#endif
