// SPDX-License-Identifier: Apache-2.0
/*
 * svg - writes text and numbers to SVG files, and estimates text widths. Called by the
 * code that draws, in the daemon and the editor.
 *
 * Any user may choose a file's symbol names. Whatever they contain, the picture stays
 * well-formed and shows them truthfully.
 */
#ifndef MP_SVG_H
#define MP_SVG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * mp_svg_put_text - write @text as element content or in a double-quoted attribute. Escapes
 * markup, writes control characters as \xNN, and replaces invalid UTF-8, characters that XML
 * forbids, and characters that change the writing direction by U+FFFD.
 */
void mp_svg_put_text(FILE *out, const char *text);

/*
 * Writes a coordinate: at most two decimals, no trailing zeros, no "-0", independent of the
 * locale.
 */
void mp_svg_put_number(FILE *out, double value);

/*
 * printf() for markup: %n writes a double with mp_svg_put_number(), %t a const char * with
 * mp_svg_put_text(), %s a const char * unchanged, %% a percent sign. There are no other
 * conversions.
 */
void mp_svg_put(FILE *out, const char *format, ...);

/* Writes a <text> element; the style sheet defines @class. */
void mp_svg_put_words(FILE *out, double x, double y, int size, const char *class, const char *text);

/* Return: estimated width of @text in a sans-serif font of @size, rarely too small. */
double mp_svg_text_width(const char *text, double size);

/*
 * Return: @text, cut with an ellipsis to fit @width; NULL: nothing fits, or no memory.
 * Ownership: free().
 */
char *mp_svg_fit_text(const char *text, double size, double width);

/* Return: for instance "12,345,678". */
const char *mp_svg_format_count(uint64_t n, char buf[static 32]);
/* Return: for instance "12.3 %", "0.04 %", "<0.01 %" or "0 %". */
const char *mp_svg_format_share(double share, char buf[static 32]);

#endif
