// SPDX-License-Identifier: Apache-2.0
/*
 * eh_startup - the places where a static program's start-up code passes its .eh_frame to the
 * unwinder. Needed for files without relocations; in other files, relocations name these places.
 * Called by patch and emit.
 */
#ifndef ME_EH_STARTUP_H
#define ME_EH_STARTUP_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/elf.h"

struct me_eh_startup {
	uint64_t fields[2]; /* addresses of the 32-bit operands: to register, to deregister */
	uint64_t label;	    /* value of both operands: an address inside .eh_frame */
};

/*
 * me_eh_startup_find - Return: 0; -ENOENT if there is no such code, or it differs from
 * that of compilers' start-up files.
 */
int me_eh_startup_find(const struct mp_elf *elf, struct me_eh_startup *out);

/*
 * me_eh_startup_offset - where a new .eh_frame must be registered. The program's label lies behind
 * the entries of the files that were linked before the start-up file (_start's, for one). The
 * unwinder of the program does not see these entries, and must not see them in the new section
 * either. @bytes: the new .eh_frame, which begins with the original's entries in their order.
 * Return: offset in @bytes; 0: the program registers all of it, or nothing.
 */
size_t me_eh_startup_offset(const struct mp_elf *elf, const uint8_t *bytes, size_t size);

#endif
