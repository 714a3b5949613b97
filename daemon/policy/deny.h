// SPDX-License-Identifier: Apache-2.0
/*
 * deny - the files that Morph never replaces by itself, whatever a rule says: files without which
 * the machine does not start, nobody can log in, or a mistake could not be repaired; files that run
 * with other rights than their caller; signed files; kernels. Reads names and attributes, not contents;
 * morph-optimize refuses more when it reads the file. Called by the worker and by explain.
 */
#ifndef MD_DENY_H
#define MD_DENY_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/policy/policy.h"

/*
 * md_deny - is the file at @path (absolute, without links) left alone? @why gets the reason in
 * words of a user. A file that cannot be looked at is denied, too.
 */
bool md_deny(const struct md_policy *policy, const char *path, char *why, size_t size);
/* The same by the path alone; the file need not exist. */
bool md_deny_path(const struct md_policy *policy, const char *path, char *why, size_t size);
/*
 * The same for the processes of the program at @path, into which a version of a library would go: also one that `only'
 * in the policy does not name, since it is not replaced.
 */
bool md_deny_processes(const struct md_policy *policy, const char *path, char *why, size_t size);

#endif
