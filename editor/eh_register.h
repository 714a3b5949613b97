// SPDX-License-Identifier: Apache-2.0
/*
 * eh_register - where a static program's start-up code hands its .eh_frame to the unwinder.
 *
 * For files without relocations, which would name those places. Called by patch.
 */
#ifndef ME_EH_REGISTER_H
#define ME_EH_REGISTER_H

#include <stdint.h>

#include "libprof/elf.h"

struct me_eh_register {
	uint64_t fields[2]; /* addresses of the 32-bit operands: to register, to take it back */
	uint64_t label;	    /* what both hold: an address inside .eh_frame */
};

/* Return: 0, -ENOENT there is no such code, or it is not what compilers' start-up files have. */
int me_eh_register_find(const struct mp_elf *elf, struct me_eh_register *out);

#endif
