// SPDX-License-Identifier: Apache-2.0
/*
 * svg - text and numbers as a picture's file may hold them, and how wide a text will be.
 *
 * Names come from files that anybody made: whatever they hold, the picture stays well-formed and
 * shows what is there. Called by everything that draws; knows no picture.
 */
#ifndef MD_SVG_H
#define MD_SVG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * md_svg_put_text - @text for element content or an attribute in double quotes: markup escaped,
 * control characters as \xNN, anything that is not UTF-8, not allowed in XML, or turns the
 * direction of writing as U+FFFD.
 */
void md_svg_put_text(FILE *out, const char *text);

/* A coordinate: at most two decimals, no trailing zeros, no "-0"; whatever the locale. */
void md_svg_put_number(FILE *out, double value);

/* printf() for markup: %n puts a double as md_svg_put_number(), %t a const char * as
 * md_svg_put_text(), %s a const char * as it is, %% a percent sign; nothing else. */
void md_svg_put(FILE *out, const char *format, ...);

/* A <text> element; @class as the picture's style sheet has it. */
void md_svg_put_words(FILE *out, double x, double y, int size, const char *class, const char *text);

/* About how wide @text is in a sans-serif font of @size: never much too small. */
double md_svg_text_width(const char *text, double size);

/* @text, cut with an ellipsis to fit @width. NULL: not even one character fits, or no memory.
 * Ownership: free(). */
char *md_svg_fit_text(const char *text, double size, double width);

/* "12,345,678". @buf holds 32. */
const char *md_svg_format_count(uint64_t n, char *buf);
/* A share as "12.3 %", "0.04 %", "<0.01 %", "0 %". @buf holds 32. */
const char *md_svg_format_share(double share, char *buf);

#endif
