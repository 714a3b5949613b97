// SPDX-License-Identifier: Apache-2.0
/* text - escapes names for a terminal; see text.h. */
#include "libprof/base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ESCAPE_SIZE 4 /* \xNN */

/* True for characters that control a terminal or the direction of writing. */
static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

/*
 * Bytes of the character at @text, of which @nr are there; 0: they are none. With a beginning of one, it may
 * exceed @nr. *@c: the character.
 */
static size_t decode(const unsigned char *text, size_t nr, uint32_t *c)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t size = text[0] < 0x80			  ? 1
		      : text[0] >= 0xf0 && text[0] < 0xf8 ? 4
		      : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
		      : text[0] >= 0xc0 && text[0] < 0xe0 ? 2
							  : 0;

	*c = text[0];
	if (size > 1)
		*c &= 0x7f >> size;
	for (size_t i = 1; i < size; i++) {
		if (i == nr)
			return size;
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (text[i] & 0x3f);
	}
	if ((size > 1 && *c < least[size]) || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000))
		return 0;
	return size;
}

/* Bytes of the printable character at @text; 0: escape its first byte. */
static size_t printable(const unsigned char *text)
{
	uint32_t c;
	size_t nr = decode(text, SIZE_MAX, &c);

	return nr && !is_control(c) ? nr : 0;
}

size_t mp_text_filter(const char *text, size_t nr, char *out, size_t *taken)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + nr;
	size_t at = 0;

	while (p < end) {
		uint32_t c;
		size_t size = decode(p, (size_t)(end - p), &c);

		if (size > (size_t)(end - p))
			break;
		if (size && (!is_control(c) || c == '\n' || c == '\t')) {
			memcpy(out + at, p, size);
			at += size;
		} else if (size && c >= 0x7f) {
			at += (size_t)sprintf(out + at, "\\u%04x", c);
		} else {
			at += (size_t)sprintf(out + at, "\\x%02x", *p);
			size = 1;
		}
		p += size;
	}
	*taken = (size_t)(p - (const unsigned char *)text);
	return at;
}

char *mp_text_escape(const char *text, char *buf, size_t size)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t at = 0;

	while (*p) {
		size_t nr = printable(p);

		if (at + (nr ? nr : ESCAPE_SIZE) >= size)
			break;
		if (nr) {
			memcpy(buf + at, p, nr);
			at += nr;
			p += nr;
		} else {
			at += (size_t)snprintf(buf + at, size - at, "\\x%02x", *p++);
		}
	}
	if (size)
		buf[at] = '\0';
	return buf;
}

size_t mp_text_put(FILE *out, const char *text)
{
	return mp_text_put_but(out, text, "");
}

size_t mp_text_put_but(FILE *out, const char *text, const char *but)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t columns = 0;

	while (*p) {
		size_t nr = strchr(but, *p) ? 0 : printable(p);

		if (nr) {
			fwrite(p, 1, nr, out);
			p += nr;
			columns++;
		} else {
			fprintf(out, "\\x%02x", *p++);
			columns += ESCAPE_SIZE;
		}
	}
	return columns;
}

char *mp_text_escaped(const char *text)
{
	size_t size = ESCAPE_SIZE * strlen(text) + 1;
	char *buf = malloc(size);

	return buf ? mp_text_escape(text, buf, size) : NULL;
}
