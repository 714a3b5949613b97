// SPDX-License-Identifier: Apache-2.0
/*
 * soname - the name under which the loader looks for a shared library.
 *
 * Called by morph-optimize train and by morph-audit.
 */
#ifndef ME_SONAME_H
#define ME_SONAME_H

/* me_soname - the soname of the file at @path; NULL: it has none. Ownership: free(). */
char *me_soname(const char *path);

#endif
