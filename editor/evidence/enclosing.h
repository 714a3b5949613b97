// SPDX-License-Identifier: Apache-2.0
/*
 * enclosing - finds functions that a program may look for among the frames of its stack.
 *
 * The unwinder says where the unwind information of a frame's function begins (_Unwind_FindEnclosingFunction(),
 * _Unwind_GetRegionStart()), and programs compare that with the address of a function: Rust's backtraces begin behind
 * the frames of the library that way. A copy's begins elsewhere. So functions whose address such a program takes stay.
 * Called by eligible.
 */
#ifndef ME_ENCLOSING_H
#define ME_ENCLOSING_H

#include "libprof/cfg/cfg.h"

/* me_enclosing_functions - calls @found for each such function, perhaps more than once. */
void me_enclosing_functions(const struct mp_cfg *cfg, void (*found)(void *ctx, uint32_t func),
			    void *ctx);

#endif
