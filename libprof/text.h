// SPDX-License-Identifier: Apache-2.0
/*
 * text - names from files on their way to people. Anybody may have chosen a function's name, a path
 * or a process's name: on a terminal, control characters would move the cursor or hide a line.
 * Called by whatever prints names in text, and by mp_err_set(). JSON has escapes of its own.
 */
#ifndef MP_TEXT_H
#define MP_TEXT_H

#include <stddef.h>
#include <stdio.h>

/*
 * mp_text_escape - @text into @buf, which holds @size bytes. Printable characters in valid UTF-8 stay
 * as they are; any other byte becomes \xNN. Cut behind a whole character where @buf is full.
 * Return: @buf.
 */
char *mp_text_escape(const char *text, char *buf, size_t size);
/* The same to @out. Return: how many columns it takes, each character one. */
size_t mp_text_put(FILE *out, const char *text);
/* The same in memory of its own. Return: NULL: out of memory. Ownership: free(). */
char *mp_text_escaped(const char *text);

#endif
