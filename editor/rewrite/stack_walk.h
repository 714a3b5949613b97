// SPDX-License-Identifier: Apache-2.0
/*
 * stack_walk - does a file walk stacks itself? Called by inline.
 */
#ifndef ME_STACK_WALK_H
#define ME_STACK_WALK_H

#include <stdbool.h>

#include "libprof/elf/elf.h"

/*
 * me_walks_stack - may code of the file ask for the functions that called it, as backtrace() does? It may count frames
 * then, so that each function keeps its own. By names of symbols; a static file without symbols may.
 */
bool me_walks_stack(const struct mp_elf *elf);

#endif
