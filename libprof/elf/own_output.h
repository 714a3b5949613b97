// SPDX-License-Identifier: Apache-2.0
/*
 * own_output - which outputs may be put in place of their originals. That an output verifies is a proof against
 * mistakes of Morph's, and no reason to install code that somebody else made. So users take only their own
 * outputs, and root takes only those that root's own programs wrote: their hashes are in root's directory of
 * backups. The directory of a user's own backups has the same list.
 *
 * 	DIR/outputs	one line for each output: SHA-256 of the output; if known, SHA-256 of the original that it was
 *			proved against, and its kind. In hexadecimal digits, with spaces between
 *	DIR/outputs.old	what DIR/outputs was before it had MP_OWN_OUTPUTS_MAX lines: so this many are known at least
 *	DIR/locks	empty: its bytes are locked while a file is replaced
 */
#ifndef MP_OWN_OUTPUT_H
#define MP_OWN_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libprof/base/err.h"
#include "libprof/base/sha256.h"

#define MP_OWN_OUTPUTS_MAX 32768
#define MP_OWN_KIND_MAX	   24

/* What was proved of an output. */
struct mp_own_proof {
	uint8_t original[MP_SHA256_BYTES]; /* hash of the original's bytes */
	char kind[MP_OWN_KIND_MAX]; /* a word, as verify calls it; empty: nothing was proved */
};

/*
 * mp_own_output_note - notes the bytes of @fd, which this program has written, and that they were proved (NULL: they
 * were not). Return: 0, -errno with a message.
 */
int mp_own_output_note(int fd, const struct mp_own_proof *proof, struct mp_err *err);
/*
 * mp_own_output_check - was the output written by this user's programs? Of others than root, the owner of the file
 * says it. @copy: its bytes; @fd: the file.
 * @proof: NULL, or with @original set: gets the kind if this user's programs proved these bytes against this very
 * original, else an empty one.
 * Return: 0; -EPERM: no, with a message that begins with @name; -errno with a message.
 */
int mp_own_output_check(int copy, int fd, const char *name, struct mp_own_proof *proof,
			struct mp_err *err);
/*
 * mp_own_file_open - opens the file @name of the directory that holds the list, which this user alone can open. @make:
 * makes both, if they are missing. Return: a descriptor for reading and appending, -errno.
 */
int mp_own_file_open(const char *name, bool make);
/*
 * mp_own_lock - locks the byte of @locks, the file DIR/locks, that stands for this inode, and no other one any more, until
 * the descriptor is closed. Return: 0; an errno, EAGAIN or EACCES if another program of this user has the lock.
 */
int mp_own_lock(int locks, dev_t dev, ino_t ino);
/* mp_own_hash_file - SHA-256 of a regular file that is not empty. Return: 0, -errno. */
int mp_own_hash_file(int fd, uint8_t hash[MP_SHA256_BYTES]);

#endif
