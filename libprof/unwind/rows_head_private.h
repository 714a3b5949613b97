// SPDX-License-Identifier: Apache-2.0
/* rows_head_private - what both forms of a table of rows begin with. Included by rows and rows_check only. */
#ifndef MP_ROWS_HEAD_PRIVATE_H
#define MP_ROWS_HEAD_PRIVATE_H

#include "libprof/unwind/rows.h"

/* Are the numbers in @head within the limits? */
bool mp_rows_head_is_sound(const struct mp_rows_head *head);
/* Fills in @out from @head: numbers, rules and pages. The caller has checked the table's size. */
void mp_rows_head_read(const struct mp_rows_head *head, struct mp_rows *out);
/* Are the rules sound? Return: 0, or -EBADMSG with @err. */
int mp_rows_check_rules(const char *path, const struct mp_rows *rows, struct mp_err *err);

#endif
