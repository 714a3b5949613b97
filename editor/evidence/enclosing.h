// SPDX-License-Identifier: Apache-2.0
/*
 * enclosing - finds functions that a program may look for among the frames of its stack.
 *
 * The unwinder says where the unwind information of a frame's function begins (_Unwind_FindEnclosingFunction(),
 * _Unwind_GetRegionStart()), and programs compare that with the address of a function: Rust's backtraces begin behind
 * the frames of the library that way. A copy's begins elsewhere.
 *
 * If a program only imports the first of these, and calls it or jumps to it, the output answers for copies
 * (base/enclosing_code.h): the functions with these calls stay, and no function gets another address. Otherwise,
 * functions whose address the program takes stay. Called by eligible, pointer and emit.
 */
#ifndef ME_ENCLOSING_H
#define ME_ENCLOSING_H

#include "editor/evidence/import_use.h"
#include "libprof/cfg/cfg.h"

/* me_enclosing_answered - does the output answer for copies? *@use: the instructions that ask. */
bool me_enclosing_answered(const struct mp_cfg *cfg, struct me_import_use *use);
/* me_enclosing_functions - calls @found for each such function, perhaps more than once. */
void me_enclosing_functions(const struct mp_cfg *cfg, void (*found)(void *ctx, uint32_t func),
			    void *ctx);

#endif
