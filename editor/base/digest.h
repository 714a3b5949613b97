// SPDX-License-Identifier: Apache-2.0
/*
 * digest - XXH3-128 of a file's bytes. Finds damage and duplicates, but is no
 * protection against malice: backup only uses a directory that others cannot write.
 * Called by backup, inplace and optimize.
 */
#ifndef ME_DIGEST_H
#define ME_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct me_digest {
	char hex[33];
};

void me_digest_memory(const void *bytes, size_t size, struct me_digest *out);
/*
 * me_digest_copy - digest @in from its start to its end, and append the bytes to @to
 * (-1: to nothing). Return: 0 or -errno; *@size, if not NULL, is the number of bytes.
 */
int me_digest_copy(int in, int to, struct me_digest *out, uint64_t *size);
bool me_digest_equal(const struct me_digest *a, const struct me_digest *b);

#endif
