// SPDX-License-Identifier: Apache-2.0
/*
 * confine - drops the privileges of a process before it reads files of unknown authors.
 * Called by morphd's reader, and by morph-optimize when a collector started it.
 */
#ifndef MP_CONFINE_H
#define MP_CONFINE_H

/*
 * mp_confine_privileges - drops all capabilities. The user becomes nobody if this process may
 * change users and its parent may still end it afterwards. Return: 0 or -errno.
 */
int mp_confine_privileges(void);
/*
 * mp_confine_calls - from now on this process may only read open files, allocate memory,
 * write to open descriptors, and exit. Any other system call ends it. In a build with a
 * sanitizer nothing is forbidden. Return: 0 or -errno.
 */
int mp_confine_calls(void);

#endif
