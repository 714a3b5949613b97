// SPDX-License-Identifier: Apache-2.0
/* child - finds programs, becomes one, waits for one. What a child may do is its caller's business. */
#ifndef MP_CHILD_H
#define MP_CHILD_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "libprof/base/err.h"

/* Finds one of Morph's programs: beside this one, in ../sbin or ../bin. @out: PATH_MAX bytes. */
int mp_child_find(const char *name, char *out, struct mp_err *err);
/* Finds a program as the shell does. @out: PATH_MAX bytes. */
bool mp_child_find_in_path(const char *name, char *out);
/* Becomes argv[0]: the program beside this one goes before one in PATH. Returns only if there is none. */
void mp_child_exec(char *const *argv);
/* Waits until the child has ended, whatever signals come. @status: may be NULL. Return: 0, -errno. */
int mp_child_wait(pid_t pid, int *status);

#endif
