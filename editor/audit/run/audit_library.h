// SPDX-License-Identifier: Apache-2.0
/*
 * audit_library - does a command use the audited library at all? Otherwise nothing would be
 * measured.
 *
 * Watches whether the file is opened, which costs the command nothing. Servers, which live long
 * enough, are also checked by their mappings (audit_tree). Called by audit_stage.
 */
#ifndef ME_AUDIT_LIBRARY_H
#define ME_AUDIT_LIBRARY_H

#include <stdbool.h>

#include "libprof/base/err.h"

/*
 * me_library_watch - begin to watch the file at @path. Return: a descriptor, or -errno with @err
 * set. Ownership: close().
 */
int me_library_watch(const char *path, struct mp_err *err);
/* me_library_opened - was the file opened since? */
bool me_library_opened(int watch);
/*
 * me_library_environment - @envp with @dir as the first directory in which the loader looks for
 * libraries. Return: NULL: no memory. Ownership: me_library_environment_free().
 */
char **me_library_environment(char *const *envp, const char *dir);
void me_library_environment_free(char **envp);

#endif
