// SPDX-License-Identifier: Apache-2.0
/*
 * own_output - which outputs may be put in place of their originals. That an output verifies is a proof against
 * mistakes of Morph's, and no reason to install code that somebody else made. So users take only their own
 * outputs, and root takes only those that root's own programs wrote: their hashes are in root's directory of
 * backups.
 *
 * 	DIR/written	SHA-256 of each output, in hexadecimal digits, one a line; the latest 4,096
 */
#ifndef MP_OWN_OUTPUT_H
#define MP_OWN_OUTPUT_H

#include "libprof/base/err.h"

#define MP_OWN_OUTPUTS_MAX 4096

/*
 * mp_own_output_note - for root, notes the bytes of @fd, which this program has written. For other users, the owner
 * of the file says it. Return: 0, -errno with a message.
 */
int mp_own_output_note(int fd, struct mp_err *err);
/*
 * mp_own_output_check - was the output written by this user's programs? @copy: its bytes, for root; @fd: the file.
 * Return: 0; -EPERM: no, with a message that begins with @name; -errno with a message.
 */
int mp_own_output_check(int copy, int fd, const char *name, struct mp_err *err);

#endif
