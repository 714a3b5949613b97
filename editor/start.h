// SPDX-License-Identifier: Apache-2.0
/*
 * start - how an instrumented output comes by its counters: it runs the runtime first, which maps
 * the file of counts over them (runtime.h).
 */
#ifndef ME_START_H
#define ME_START_H

#include <stdint.h>

#include "editor/plan.h"
#include "libprof/elf.h"
#include "libprof/err.h"

/* The word that says what runs first, and what it says in the original. */
struct me_start {
	uint64_t off;	/* in the file: e_entry, or a dynamic entry's tag */
	bool program;	/* e_entry; else DT_INIT */
	uint64_t vaddr; /* what ran first so far; 0: nothing did */
};

/*
 * me_start_find - a program starts at its entry, a library at DT_INIT, or where a DT_INIT has room.
 * Return: 0, -EPERM there is neither.
 */
int me_start_find(const struct mp_elf *elf, struct me_start *out, struct mp_err *err);

/* Bytes of the counters in memory, and of what the runtime keeps behind them. */
uint64_t me_start_counters_size(const struct me_plan *plan);
/* Bytes of the runtime with its parameters. */
uint64_t me_start_size(void);
/*
 * me_start_write - the runtime, to lie at @vaddr, into @body, and into the file's first bytes, @head,
 * the word that leads there. @counters: address of them; @counters_bytes: in whole pages.
 * Return: 0, -EINVAL the path of the counts is too long.
 */
int me_start_write(const struct me_start *start, const struct me_plan *plan, uint64_t vaddr,
		   uint64_t counters, uint64_t counters_bytes, uint8_t *body, uint8_t *head,
		   struct mp_err *err);

#endif
