/* SPDX-License-Identifier: Apache-2.0 */
/* gs_use - does a file use the segment register %gs itself? Called by optimize. */
#ifndef ME_GS_USE_H
#define ME_GS_USE_H

#include <stdbool.h>

#include "libprof/elf/elf.h"

/*
 * me_gs_is_used - true if an instruction of @elf addresses memory by %gs, or code of
 * @elf may change the base of %gs. Libraries are not examined.
 */
bool me_gs_is_used(const struct mp_elf *elf);

#endif
