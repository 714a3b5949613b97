// SPDX-License-Identifier: Apache-2.0
/*
 * err - the message of a parser of untrusted input: what went wrong, and where.
 * Set by libprof, daemon and editor; printed by main() only.
 */
#ifndef MP_ERR_H
#define MP_ERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for the longest path and the reason. */
#define MP_ERR_SIZE 4608

struct mp_err {
	char msg[MP_ERR_SIZE]; /* one line; see mp_err_set() */
};

/*
 * mp_err_set - sets the message. A second call overwrites the first, so do not call it
 * again with a vaguer cause. @err may be NULL. @code is a positive errno. Control
 * characters in paths and names are escaped (text.h). A message that is too long loses its
 * middle, never its end.
 * Return: -@code, so that a parser can write `return mp_err_set(err, EINVAL, "...")`.
 */
int mp_err_set(struct mp_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* mp_err_code - the same, with what @code itself means as the message. Return: -@code. */
int mp_err_code(struct mp_err *err, int code);

/*
 * mp_err_is_failure - is @r, 0 or -errno, a failure of the machine: no memory, a failed read, no more
 * descriptors? It then says nothing about the file that was looked at, and is no reason to do without it.
 */
bool mp_err_is_failure(int r);

#endif
