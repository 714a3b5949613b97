// SPDX-License-Identifier: Apache-2.0
/* err - keeps one message; used by every parser, printed by main() only. */
#include "libprof/err.h"

#include <stdarg.h>
#include <stdio.h>

int mp_err_set(struct mp_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		va_start(ap, fmt);
		vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
		va_end(ap);
	}
	return -code;
}
