// SPDX-License-Identifier: Apache-2.0
/* err - keeps one message. Every parser sets it; only main() prints it. */
#include "libprof/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/text.h"

static const char gap[] = "[...]";

/*
 * A message is "WHERE: what is wrong". If both do not fit, the middle is cut: that is the
 * middle of a path, and the reason is at the end.
 */
static void keep_ends(const char *text, char *msg, size_t size)
{
	size_t len = strlen(text), head = (size - sizeof(gap)) / 2, tail;

	if (len < size) {
		memcpy(msg, text, len + 1);
		return;
	}
	tail = size - sizeof(gap) - head;
	/* Do not cut inside a character. */
	while (head && (text[head] & 0xc0) == 0x80)
		head--;
	while (tail && (text[len - tail] & 0xc0) == 0x80)
		tail--;
	snprintf(msg, size, "%.*s%s%s", (int)head, text, gap, text + len - tail);
}

int mp_err_set(struct mp_err *err, int code, const char *fmt, ...)
{
	char *text = NULL, *clean = NULL, local[MP_ERR_SIZE];
	va_list ap;
	int n;

	if (!err)
		return -code;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n >= 0)
		clean = mp_text_escaped(text);
	else
		text = NULL;
	if (clean) {
		keep_ends(clean, err->msg, sizeof(err->msg));
	} else {
		/* Without memory a long message loses its end. @fmt's arguments may lie in err->msg. */
		va_start(ap, fmt);
		vsnprintf(local, sizeof(local), fmt, ap);
		va_end(ap);
		mp_text_escape(local, err->msg, sizeof(err->msg));
	}
	free(clean);
	free(text);
	return -code;
}

int mp_err_code(struct mp_err *err, int code)
{
	return mp_err_set(err, code, "%s", code == ENOMEM ? "out of memory" : strerror(code));
}

bool mp_err_is_failure(int r)
{
	return r == -ENOMEM || r == -EIO || r == -EMFILE || r == -ENFILE;
}
