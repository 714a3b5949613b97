// SPDX-License-Identifier: Apache-2.0
/*
 * whole_file - all bytes of a file, mapped for reading, and their SHA-256. Called by the making and
 * the installing of builds.
 */
#ifndef MD_FLEET_WHOLE_FILE_H
#define MD_FLEET_WHOLE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/base/sha256.h"

#define MD_SHA256_SIZE MP_SHA256_BYTES

struct md_whole_file {
	const uint8_t *bytes;
	size_t size;
	uint8_t hash[MD_SHA256_SIZE];
};

/*
 * Maps the regular file at @path. A file that another process cuts short while it is mapped ends this
 * process by SIGBUS. Return: 0, -EINVAL (empty, or no regular file), -errno. Ownership:
 * md_whole_file_close(), after an error too.
 */
int md_whole_file_open(const char *path, struct md_whole_file *out, struct mp_err *err);
void md_whole_file_close(struct md_whole_file *file);

#endif
