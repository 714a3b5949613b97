// SPDX-License-Identifier: Apache-2.0
/*
 * text - makes names from files safe to print. Anybody may have chosen the name of a
 * function, a path or a process: control characters could move a terminal's cursor or hide
 * a line. Called by code that prints names as text, and by mp_err_set(). JSON has its own
 * escapes.
 */
#ifndef MP_TEXT_H
#define MP_TEXT_H

#include <stddef.h>
#include <stdio.h>

/*
 * mp_text_escape - escapes @text into @buf of @size bytes. Printable characters in valid
 * UTF-8 stay; any other byte becomes \xNN. If @buf is too small, the text is cut behind a
 * whole character.
 * Return: @buf.
 */
char *mp_text_escape(const char *text, char *buf, size_t size);
/* Prints the escaped @text to @out. Return: number of columns, one per character. */
size_t mp_text_put(FILE *out, const char *text);
/*
 * mp_text_filter - for output as a whole, whose lines and tabs stay: @nr bytes into @out, which has room for
 * MP_TEXT_FILTER_MAX bytes for each. Characters that control a terminal or the direction of writing become \uNNNN,
 * as JSON writes them, and other bytes that are no text \xNN. A character that is not complete at the end is left.
 * Return: bytes of @out; *@taken: bytes of @text.
 */
#define MP_TEXT_FILTER_MAX 6
size_t mp_text_filter(const char *text, size_t nr, char *out, size_t *taken);
/* The same, for a format that has a meaning for the characters @but: they are escaped, too. */
size_t mp_text_put_but(FILE *out, const char *text, const char *but);
/* The escaped @text in new memory. Return: NULL if out of memory. Ownership: free(). */
char *mp_text_escaped(const char *text);

#endif
