// SPDX-License-Identifier: Apache-2.0
/* adjust_text - adjustments as users write and read them: start=16, order=original. */
#ifndef ME_ADJUST_TEXT_H
#define ME_ADJUST_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "editor/layout/adjust.h"

/* Enough for the text of any adjustment. */
#define ME_ADJUST_TEXT_MAX 24
/* The syntax that me_adjust_parse() reads, for messages and help. */
#define ME_ADJUST_FORMS "start=N, loop=N (N from 0 to 63), order=original, end, stay or wait=N"

/*
 * me_adjust_parse - reads FUNCTION:HOW. The last colon ends FUNCTION.
 * *@name_len: length of FUNCTION, which begins @text. @out's @vaddr is 0.
 * Return: 0, -EINVAL with a message that names the part that is wrong.
 */
int me_adjust_parse(const char *text, size_t *name_len, struct me_adjust *out, struct mp_err *err);
/* Writes the wish @kind of @adjustment to @buf. Return: @buf. */
char *me_adjust_format(const struct me_adjustment *adjustment, enum me_adjust_kind kind,
		       char buf[ME_ADJUST_TEXT_MAX]);

#endif
