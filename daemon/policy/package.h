// SPDX-License-Identifier: Apache-2.0
/*
 * package - the files of an installed Debian package, as dpkg-query lists them. Decides nothing.
 * Called by policy, for rules that name packages, and by program.
 */
#ifndef MD_PACKAGE_H
#define MD_PACKAGE_H

/*
 * md_package_list - the paths of @package's files, one a line. @admin_dir: dpkg's directory; NULL:
 * the usual one. Ownership: free(*@out).
 * Return: 0; -ENOENT: no such package is installed, or there is no dpkg-query; -errno.
 */
int md_package_list(const char *admin_dir, const char *package, char **out);

/*
 * md_package_next - the next line of a list, and where to go on. @*rest starts as the list, which is
 * changed. Return: NULL at the end.
 */
char *md_package_next(char **rest);

#endif
