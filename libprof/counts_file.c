// SPDX-License-Identifier: Apache-2.0
/* counts_file - reads files of counts, which anybody may have made. Called by the import of them. */
#include "libprof/counts_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define BATCH 4096

bool mp_counts_file_is(int fd)
{
	char magic[8];

	return pread(fd, magic, sizeof(magic), lseek(fd, 0, SEEK_CUR)) == sizeof(magic) &&
	       !memcmp(magic, MP_COUNTS_FILE_MAGIC, sizeof(magic));
}

static int read_all(const char *name, int fd, void *to, size_t size, struct mp_err *err)
{
	size_t done = 0;

	while (done < size) {
		ssize_t nr = read(fd, (char *)to + done, size - done);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr < 0)
			return mp_err_set(err, errno, "%s: %s", name, strerror(errno));
		if (!nr)
			return mp_err_set(err, EBADMSG, "%s: cut short", name);
		done += (size_t)nr;
	}
	return 0;
}

static int read_header(const char *name, int fd, uint64_t table_hash, uint32_t nr,
		       struct mp_err *err)
{
	union {
		struct mp_counts_file_header header;
		char bytes[MP_COUNTS_FILE_HEADER_BYTES];
	} u;
	const struct mp_counts_file_header *h = &u.header;
	int ret = read_all(name, fd, &u, sizeof(u), err);

	if (ret)
		return ret;
	if (memcmp(h->magic, MP_COUNTS_FILE_MAGIC, sizeof(h->magic)))
		return mp_err_set(err, EBADMSG, "%s: not a file of counts", name);
	if (h->version != MP_COUNTS_FILE_VERSION || h->header_bytes != sizeof(u))
		return mp_err_set(err, EBADMSG,
				  "%s: a file of counts of version %" PRIu32
				  ", this program knows version %d",
				  name, h->version, MP_COUNTS_FILE_VERSION);
	if (h->table_hash != table_hash)
		return mp_err_set(err, EBADMSG, "%s: counts of another instrumented file", name);
	if (h->counters_bytes % 4096 || h->counters_bytes / 8 < nr)
		return mp_err_set(err, EBADMSG, "%s: damaged: too few counters", name);
	return 0;
}

int mp_counts_file_add(const char *name, int fd, uint64_t table_hash, uint64_t *counters,
		       uint32_t nr, struct mp_err *err)
{
	uint64_t batch[BATCH];
	int ret = read_header(name, fd, table_hash, nr, err);

	for (uint32_t i = 0; i < nr && !ret; i += BATCH) {
		uint32_t now = nr - i < BATCH ? nr - i : BATCH;

		ret = read_all(name, fd, batch, now * sizeof(*batch), err);
		for (uint32_t k = 0; k < now && !ret; k++)
			if (__builtin_add_overflow(counters[i + k], batch[k], &counters[i + k]))
				ret = mp_err_set(err, EOVERFLOW, "%s: a sum of 2^64 or more", name);
	}
	return ret;
}
