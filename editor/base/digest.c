// SPDX-License-Identifier: Apache-2.0
/* digest - reads each file only once, so that the digest is that of the copied bytes. */
#include "editor/base/digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum {
	CHUNK = 256 << 10
};

static void format(XXH128_hash_t hash, struct me_digest *out)
{
	snprintf(out->hex, sizeof(out->hex), "%016llx%016llx", (unsigned long long)hash.high64,
		 (unsigned long long)hash.low64);
}

void me_digest_memory(const void *bytes, size_t size, struct me_digest *out)
{
	format(XXH3_128bits(bytes, size), out);
}

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

int me_digest_copy(int in, int to, struct me_digest *out, uint64_t *size)
{
	XXH3_state_t *state = XXH3_createState();
	uint8_t *buf = malloc(CHUNK);
	uint64_t off = 0;
	int rc = state && buf ? 0 : -ENOMEM;

	if (!rc)
		XXH3_128bits_reset(state);
	while (!rc) {
		ssize_t n = pread(in, buf, CHUNK, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = -errno;
		if (n <= 0)
			break;
		XXH3_128bits_update(state, buf, (size_t)n);
		if (to >= 0)
			rc = write_all(to, buf, (size_t)n);
		off += (uint64_t)n;
	}
	if (!rc)
		format(XXH3_128bits_digest(state), out);
	if (size)
		*size = off;
	XXH3_freeState(state);
	free(buf);
	return rc;
}

bool me_digest_equal(const struct me_digest *a, const struct me_digest *b)
{
	return !strcmp(a->hex, b->hex);
}
