// SPDX-License-Identifier: Apache-2.0
/*
 * debug - the debug information (DWARF 2 to 5) of an output: lines, functions, inlined calls and
 * variables of the copies are those of the original code.
 *
 * Nothing here can make the rewriting fail but a lack of memory: what is not understood is left as
 * it was, counted, and true of the old code still.
 */
#ifndef ME_DEBUG_H
#define ME_DEBUG_H

#include <stdint.h>

#include "editor/image.h"
#include "editor/place.h"
#include "editor/sections.h"
#include "libprof/err.h"

struct me_debug_report {
	bool present;		 /* the file has .debug_info */
	bool elsewhere;		 /* it has none, but names a file that does (.gnu_debuglink) */
	uint32_t nr_units;	 /* of .debug_info */
	uint32_t nr_extended;	 /* units with copied code, done */
	uint32_t nr_left;	 /* units left as they were */
	uint32_t nr_scopes;	 /* functions, inlined calls and blocks that got their copies */
	uint32_t nr_scopes_left; /* those of units done that could not */
	const char *why;	 /* static: the first of nr_left; NULL: none */
	double seconds, cpu_seconds;
};

struct me_debug; /* opaque */

/*
 * me_debug_build - the new sections, from those of @elf: the original or its debug file. A section
 * that was not there before is added to @sections.
 * Return: 0, -ENOMEM. Ownership: me_debug_free(*@out), which takes NULL.
 */
int me_debug_build(const struct mp_cfg *cfg, const struct me_placement *placement,
		   const struct mp_elf *elf, struct me_sections *sections, struct me_debug **out,
		   struct me_debug_report *report, struct mp_err *err);
/*
 * me_debug_put - put new section @index (of the output) into @image, if it is one of @debug's, and
 * set what changed of its @header.
 * Return: 1 done, 0 not ours or unchanged, -ENOMEM.
 */
int me_debug_put(struct me_debug *debug, uint32_t index, Elf64_Shdr *header,
		 struct me_image *image);
void me_debug_free(struct me_debug *debug);

#endif
