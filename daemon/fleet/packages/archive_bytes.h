// SPDX-License-Identifier: Apache-2.0
/*
 * archive_bytes - gives libarchive the bytes of an open file by pread(), which is all that a confined process may
 * call. Called by the readers of packages and of their indexes.
 */
#ifndef MD_FLEET_ARCHIVE_BYTES_H
#define MD_FLEET_ARCHIVE_BYTES_H

#include <archive.h>
#include <stdint.h>
#include <sys/types.h>

struct md_archive_bytes {
	int fd;
	off_t off; /* of the next bytes */
	uint8_t buf[1 << 16];
};

/* Accepts the compressions of Debian's files. No program is run for any of them. Return: ARCHIVE_OK or not. */
int md_archive_allow_filters(struct archive *a);
/* Opens @a, whose formats are set. Return: ARCHIVE_OK or not. */
int md_archive_open(struct archive *a, struct md_archive_bytes *bytes);

#endif
