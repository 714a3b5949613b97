// SPDX-License-Identifier: Apache-2.0
/*
 * audit_ring - reads the windows out of the file of an audited program (audit_file.h), and writes
 * verdicts into it.
 *
 * The file may come from anybody, and may change or shrink at any time. So it is read and written,
 * never mapped: a file that is cut short gives an error, and not a signal. A record counts only if
 * it was complete before it was copied, and not overwritten until after. Decides what is a
 * readable record; what a record means is up to the caller. Called by the collector's audits.
 */
#ifndef MP_AUDIT_RING_H
#define MP_AUDIT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/note/audit_file.h"

/* A record that its writer has begun and not finished after this time is counted as torn. */
#define MP_AUDIT_RING_PATIENCE_NS 200000000

struct mp_audit_ring {
	int fd;
	uint64_t table_hash;
	uint32_t nr_functions;
	uint64_t dev, ino;
	uint64_t position; /* number of the next record to read */
	/* Records that were never read: */
	uint64_t lost; /* overwritten, because the program was faster than the reader */
	uint64_t torn; /* not finished: its writer was killed */
	/* the time since which record @position is awaited; 0: it is not */
	int64_t awaited_ns;
};

enum mp_audit_ring_start {
	MP_AUDIT_RING_ALL,   /* begin with the oldest record */
	MP_AUDIT_RING_FRESH, /* begin with the next record that the program writes */
};

/*
 * mp_audit_ring_open - opens @path, if it is complete and belongs to the caller; root may open
 * the file of any user. Follows no symbolic link.
 * Return: 0; -ENOENT: there is no file; -EAGAIN: the program has not filled it in yet; -EPERM:
 * another user's, or not a regular file; -EBADMSG: not such a file, or damaged; -errno.
 * Ownership: mp_audit_ring_close().
 */
int mp_audit_ring_open(struct mp_audit_ring *ring, const char *path, enum mp_audit_ring_start start,
		       struct mp_err *err);
/* Accepts a ring that is not open: @fd is -1. */
void mp_audit_ring_close(struct mp_audit_ring *ring);
/*
 * mp_audit_ring_read - copies the next records, at most @max, to @out. @now_ns: of a clock that
 * never goes back. *@nr: 0 if there is none yet. Return: 0; -EBADMSG: the file was cut short, or
 * its numbers went back; -errno.
 */
int mp_audit_ring_read(struct mp_audit_ring *ring, int64_t now_ns, struct mp_audit_record *out,
		       size_t max, size_t *nr, struct mp_err *err);
/* Reads the counts and the verdict of a function. Return: 0, -EBADMSG, -errno. */
int mp_audit_ring_function(const struct mp_audit_ring *ring, uint32_t function,
			   struct mp_audit_function *out, struct mp_err *err);
/* Writes a verdict: from now on the program runs this version. Return: 0, -errno. */
int mp_audit_ring_decide(const struct mp_audit_ring *ring, uint32_t function,
			 enum mp_audit_verdict verdict, struct mp_err *err);
/* True if @path leads to another file now, or to none. */
bool mp_audit_ring_replaced(const struct mp_audit_ring *ring, const char *path);

#endif
