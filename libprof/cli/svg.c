// SPDX-License-Identifier: Apache-2.0
/* svg - escaping, numbers and text widths; see svg.h. */
#include "libprof/cli/svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- characters ---------------------------------------------------------------------------- */

#define REPLACEMENT 0xfffd

/*
 * Return: the character at @text, REPLACEMENT if it is invalid. *@len gets its length, at least
 * 1.
 */
static uint32_t decode(const unsigned char *text, size_t *len)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t c = text[0];
	size_t nr = c < 0x80	? 1
		    : c >= 0xf8 ? 0
		    : c >= 0xf0 ? 4
		    : c >= 0xe0 ? 3
		    : c >= 0xc0 ? 2
				: 0;

	*len = 1;
	if (nr == 1)
		return c;
	if (!nr)
		return REPLACEMENT;
	c &= 0xffu >> (nr + 1);
	for (size_t i = 1; i < nr; i++) {
		if ((text[i] & 0xc0) != 0x80) /* also at the end of the text */
			return REPLACEMENT;
		c = c << 6 | (text[i] & 0x3f);
	}
	if (c < smallest[nr] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return REPLACEMENT;
	*len = nr;
	return c;
}

/* Return: true if XML forbids the character, or if it changes the writing direction. */
static bool is_unfit(uint32_t c)
{
	return (c >= 0x80 && c < 0xa0) || (c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef) ||
	       c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

void mp_svg_put_text(FILE *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len;

	for (; *p; p += len) {
		uint32_t c = decode(p, &len);

		if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\x%02x", c);
		else if (c == '&')
			fputs("&amp;", out);
		else if (c == '<')
			fputs("&lt;", out);
		else if (c == '>')
			fputs("&gt;", out);
		else if (c == '"')
			fputs("&quot;", out);
		else if (c == REPLACEMENT || is_unfit(c))
			fputs("\xef\xbf\xbd", out);
		else
			fwrite(p, 1, len, out);
	}
}

/* ---- numbers ------------------------------------------------------------------------------- */

void mp_svg_put_number(FILE *out, double value)
{
	int64_t hundredths;

	if (!(fabs(value) < 1e12)) /* beyond anything that is drawn, or NaN */
		value = 0;
	hundredths = (int64_t)llround(value * 100);
	if (hundredths < 0) {
		putc('-', out);
		hundredths = -hundredths;
	}
	if (hundredths >= 100 || hundredths == 0)
		fprintf(out, "%" PRId64, hundredths / 100);
	hundredths %= 100;
	if (hundredths % 10)
		fprintf(out, ".%02d", (int)hundredths);
	else if (hundredths)
		fprintf(out, ".%d", (int)hundredths / 10);
}

void mp_svg_put(FILE *out, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	for (const char *p = format; *p; p++) {
		if (*p != '%') {
			putc(*p, out);
			continue;
		}
		switch (*++p) {
		case 'n': mp_svg_put_number(out, va_arg(ap, double)); break;
		case 't': mp_svg_put_text(out, va_arg(ap, const char *)); break;
		case 's': fputs(va_arg(ap, const char *), out); break;
		case '%': putc('%', out); break;
		default: p--; /* a mistake in the format: show it */
		}
	}
	va_end(ap);
}

void mp_svg_put_words(FILE *out, double x, double y, int size, const char *class, const char *text)
{
	mp_svg_put(out, "<text x=\"%n\" y=\"%n\" font-size=\"%n\" class=\"%s\">%t</text>\n", x, y,
		   (double)size, class, text);
}

const char *mp_svg_format_count(uint64_t n, char buf[static 32])
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n), used = 0;

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[used++] = ',';
		buf[used++] = digits[i];
	}
	buf[used] = '\0';
	return buf;
}

const char *mp_svg_format_share(double share, char buf[static 32])
{
	double percent = 100 * share;

	if (!(percent > 0))
		strcpy(buf, "0 %");
	else if (percent < 0.01)
		strcpy(buf, "<0.01 %");
	else
		snprintf(buf, 32, percent < 0.1 ? "%.2f %%" : "%.1f %%", percent);
	return buf;
}

/* ---- widths -------------------------------------------------------------------------------- */

/*
 * Widths of ' ' to '~' in hundredths of the font size: those of DejaVu Sans, one of the widest
 * sans-serif fonts.
 */
static const unsigned char widths[] = {
	32,  41, 46, 84, 64, 95, 78, 28, 40, 40, 50, 84, 32, 37, 32, 34, /* space to / */
	64,  64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 54, /* 0 to ? */
	100, 69, 69, 70, 77, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79, /* @ to O */
	61,  79, 70, 64, 62, 74, 69, 99, 69, 62, 69, 40, 34, 40, 84, 50, /* P to _ */
	50,  62, 64, 55, 64, 62, 36, 64, 64, 28, 28, 58, 28, 98, 64, 62, /* ` to o */
	64,  64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84,	 /* p to ~ */
};

/* Return: width of the character at @p, as mp_svg_put_text() writes it. */
static double char_width(const unsigned char *p, double size, size_t *len)
{
	uint32_t c = decode(p, len);

	if (c < 0x20 || c == 0x7f)
		return 2.4 * size;
	if (c < 0x7f)
		return widths[c - 0x20] * size / 100;
	return (c >= 0x1100 ? 1.1 : 0.8) * size;
}

double mp_svg_text_width(const char *text, double size)
{
	const unsigned char *p = (const unsigned char *)text;
	double width = 0;
	size_t len;

	for (; *p; p += len)
		width += char_width(p, size, &len);
	return width;
}

char *mp_svg_fit_text(const char *text, double size, double width)
{
	const unsigned char *p = (const unsigned char *)text;
	const double ellipsis = size;
	double used = 0;
	char *cut;
	size_t len;

	if (mp_svg_text_width(text, size) <= width)
		return *text ? strdup(text) : NULL;
	for (; *p; p += len) {
		double one = char_width(p, size, &len);

		if (used + one + ellipsis > width)
			break;
		used += one;
	}
	len = (size_t)(p - (const unsigned char *)text);
	if (!len)
		return NULL;
	cut = malloc(len + 4);
	if (cut) {
		memcpy(cut, text, len);
		strcpy(cut + len, "\xe2\x80\xa6");
	}
	return cut;
}
