// SPDX-License-Identifier: Apache-2.0
/*
 * rows_compile - turns the bytes of .eh_frame into unwind rows. Every byte may be hostile. Called
 * by the daemon's modread, in a sandboxed process.
 */
#ifndef MP_ROWS_COMPILE_H
#define MP_ROWS_COMPILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/elf/eh.h"
#include "libprof/unwind/stack_change.h"

/*
 * mp_rows_compile - the rows of all FDEs at @frames. @sized: the end is known, and zero words
 * before it are no end. @start: where the kernel enters the file (elf->start), or 0; that code
 * has no caller, even if no FDE says so. @code: to see where code changes to another stack and its FDE
 * does not say so; NULL: nobody looks. An FDE that is not understood becomes a row that stops.
 * *@bytes: the table, in the form of row_format.h; @size: its size. A table may have no rows.
 * Return: 0, -ENOMEM, -EBADMSG (an entry beyond the end), -EFBIG (too many rows, or code of more
 * than 4 GiB).
 * Ownership: the caller frees *@bytes.
 */
int mp_rows_compile(const struct mp_cursor *frames, bool sized, uint64_t start,
		    const struct mp_code_bytes *code, void **bytes, size_t *size,
		    struct mp_err *err);
/* mp_rows_make - the same, in the form of rows_laid.h. */
int mp_rows_make(const struct mp_cursor *frames, bool sized, uint64_t start,
		 const struct mp_code_bytes *code, void **bytes, size_t *size, struct mp_err *err);

#endif
