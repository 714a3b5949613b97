// SPDX-License-Identifier: Apache-2.0
/*
 * err - what a parser of untrusted input says went wrong, and where.
 *
 * Filled by libprof, daemon and editor; printed by main() only.
 */
#ifndef MP_ERR_H
#define MP_ERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mp_err {
	char msg[256];
};

/*
 * mp_err_set - keep a message; the first cause wins over later, vaguer ones only if the caller
 * does not call it again. @err may be NULL. @code is a positive errno.
 *
 * Return: -@code, so that a parser can write `return mp_err_set(err, EINVAL, "...")`.
 */
int mp_err_set(struct mp_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
