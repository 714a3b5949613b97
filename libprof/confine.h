// SPDX-License-Identifier: Apache-2.0
/*
 * confine - takes away what a process may do, before it reads files that anybody may have made.
 * Called by morphd's reader and by morph-optimize where a collector started it.
 */
#ifndef MP_CONFINE_H
#define MP_CONFINE_H

/*
 * mp_confine_rights - no capability is left. The user becomes nobody where this process may change
 * users, and where whoever started this process may end it then. Return: 0 or -errno.
 */
int mp_confine_rights(void);
/*
 * mp_confine_calls - from now on this process reads open files, allocates memory, writes to open
 * descriptors, and exits. Any other system call ends it. With a sanitizer nothing is forbidden.
 * Return: 0 or -errno.
 */
int mp_confine_calls(void);

#endif
