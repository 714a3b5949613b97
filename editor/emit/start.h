// SPDX-License-Identifier: Apache-2.0
/*
 * start - makes an instrumented output run the runtime first, which maps the file of counts
 * over the counters (runtime.h).
 */
#ifndef ME_START_H
#define ME_START_H

#include <stdint.h>

#include "editor/instrumentation.h"
#include "libprof/elf/elf.h"
#include "libprof/base/err.h"

/* The word in the file that leads to the code that runs first, and its value in the original. */
struct me_start {
	uint64_t off;	/* file offset: of e_entry, or of a dynamic entry */
	bool program;	/* it is e_entry; else DT_INIT */
	uint64_t vaddr; /* code that ran first in the original; 0: none */
};

/*
 * me_start_find - finds this word: a program's entry; a library's DT_INIT, or room for one.
 * Return: 0, -EPERM there is neither.
 */
int me_start_find(const struct mp_elf *elf, struct me_start *out, struct mp_err *err);

/* Return: bytes of the counters in memory, including the runtime's page behind them. */
uint64_t me_start_counters_size(const struct me_instrumentation *added);
/* Return: bytes of the runtime with its parameters. */
uint64_t me_start_size(void);
/*
 * me_start_write - writes the runtime, which will lie at @vaddr, to @body, and the word that
 * leads there to the file's first bytes, @head. @table_hash: of the table's section. @counters:
 * address of the counters; @counters_bytes: in whole pages.
 * Return: 0, -EINVAL the path of the counts is too long.
 */
int me_start_write(const struct me_start *start, const struct me_instrumentation *added,
		   uint64_t table_hash, uint64_t vaddr, uint64_t counters, uint64_t counters_bytes,
		   uint8_t *body, uint8_t *head, struct mp_err *err);

#endif
