// SPDX-License-Identifier: Apache-2.0
/*
 * digest - XXH3-128 over all bytes of a file: finds damage and duplicates, proves nothing
 * against malice (backup trusts its directory for that). Called by backup and inplace.
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
 * me_digest_copy - digest @in from its beginning to its end, and append what was read to @to (-1:
 * read only). Return: 0 or -errno; *@size, if not NULL, is the number of bytes.
 */
int me_digest_copy(int in, int to, struct me_digest *out, uint64_t *size);
bool me_digest_equal(const struct me_digest *a, const struct me_digest *b);

#endif
