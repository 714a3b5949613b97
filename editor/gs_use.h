/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gs_use - does a file use the segment register %gs for something of its own?
 */
#ifndef ME_GS_USE_H
#define ME_GS_USE_H

#include <stdbool.h>

#include "libprof/elf.h"

/*
 * me_gs_is_used - an instruction of @elf names memory relative to %gs, or something in it may change
 * the base of %gs. What libraries do is not known here.
 */
bool me_gs_is_used(const struct mp_elf *elf);

#endif
