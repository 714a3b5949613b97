// SPDX-License-Identifier: Apache-2.0
/*
 * flags_code - which arithmetic flags code reads, whatever function it belongs to. Called by flags.
 */
#ifndef ME_FLAGS_CODE_H
#define ME_FLAGS_CODE_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/insn/insn.h"

/* What becomes of flags that were set before some code. */
struct me_flags_use {
	uint16_t reads;	 /* read before they are written */
	uint16_t passes; /* may be unwritten at a return */
};

struct me_flags_code {
	const struct mp_cfg *cfg;
	ZydisDecoder decoder;
	uint16_t status;	   /* the flags of interest */
	uint16_t by_pointer;	   /* read by functions that a pointer may lead to */
	struct me_flags_use *uses; /* of each function from its entry on */
	bool *known;		   /* per function: is its use found? */
};

/* Return: 0, -ENOMEM. @code is freed by me_flags_code_fini() in any case. */
int me_flags_code_init(struct me_flags_code *code, const struct mp_cfg *cfg, uint16_t status);
void me_flags_code_fini(struct me_flags_code *code);

/* Flags of interest that the instruction always writes. */
uint16_t me_flags_written(const struct me_flags_code *code, const ZydisDecodedInstruction *z);
/* What code that begins at @at does with flags. */
struct me_flags_use me_flags_use_at(struct me_flags_code *code, uint64_t at);

/* May a pointer lead to the function? */
bool me_flags_has_pointer(const struct mp_func *func);

/*
 * Flags are read behind a call of code of no function at @at. Calls @found for each place of a function from which the
 * call may return, and with 0 if it may return from anywhere.
 */
void me_flags_each_return(const struct me_flags_code *code, uint64_t at,
			  void (*found)(void *ctx, uint64_t at), void *ctx);

#endif
