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

/* Bytes of the printable character at @text; 0: escape its first byte. */
static size_t printable(const unsigned char *text)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t c = text[0];
	size_t nr = c < 0x80		    ? 1
		    : c >= 0xf0 && c < 0xf8 ? 4
		    : c >= 0xe0 && c < 0xf0 ? 3
		    : c >= 0xc0 && c < 0xe0 ? 2
					    : 0;

	if (nr > 1)
		c &= 0x7f >> nr;
	for (size_t i = 1; i < nr; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 0x3f);
	}
	if (!nr || (nr > 1 && c < least[nr]) || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ||
	    is_control(c))
		return 0;
	return nr;
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
