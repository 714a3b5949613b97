// SPDX-License-Identifier: Apache-2.0
/*
 * counts_file - reads files of counts, which may come from anybody. Called by the import of
 * counts.
 */
#include "libprof/note/counts_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH 4096 /* counters */

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

/* *@sets: number of sets of counters that follow; *@bytes: size of each. */
static int read_header(const char *name, int fd, uint64_t table_hash, uint32_t nr, uint64_t *sets,
		       uint64_t *bytes, struct mp_err *err)
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
	if ((h->version != MP_COUNTS_FILE_VERSION && h->version != MP_COUNTS_FILE_VERSION_SETS) ||
	    h->header_bytes != sizeof(u))
		return mp_err_set(err, EBADMSG,
				  "%s: a file of counts of version %" PRIu32
				  ", this program knows versions %d and %d",
				  name, h->version, MP_COUNTS_FILE_VERSION,
				  MP_COUNTS_FILE_VERSION_SETS);
	if (h->table_hash != table_hash)
		return mp_err_set(err, EBADMSG,
				  "%s: these counts are from another instrumented file", name);
	if (h->counters_bytes % 4096 || h->counters_bytes / 8 < nr)
		return mp_err_set(err, EBADMSG, "%s: damaged: too few counters", name);
	*sets = h->version == MP_COUNTS_FILE_VERSION_SETS ? h->nr_sets : 1;
	*bytes = h->counters_bytes;
	if (!*sets || *sets > MP_COUNTS_FILE_MAX_SETS)
		return mp_err_set(err, EBADMSG, "%s: damaged: %" PRIu64 " sets of counters", name,
				  *sets);
	return 0;
}

static int skip(const char *name, int fd, uint64_t bytes, struct mp_err *err)
{
	if (bytes <= INT64_MAX && lseek(fd, (off_t)bytes, SEEK_CUR) >= 0)
		return 0;
	return mp_err_set(err, EBADMSG, "%s: cut short", name);
}

/*
 * True if the next @bytes are a hole in the file. Sets that no thread used take no place on
 * disk.
 */
static bool is_hole(int fd, uint64_t bytes)
{
	off_t here = lseek(fd, 0, SEEK_CUR), data = here < 0 ? -1 : lseek(fd, here, SEEK_DATA);
	bool hole = here >= 0 && (data < 0 ? errno == ENXIO : (uint64_t)(data - here) >= bytes);
	struct stat st;

	if (here >= 0)
		lseek(fd, here, SEEK_SET);
	return hole && !fstat(fd, &st) && (uint64_t)(st.st_size - here) >= bytes;
}

static int add_set(const char *name, int fd, uint64_t *counters, uint32_t nr, struct mp_err *err)
{
	uint64_t batch[BATCH];
	int ret = 0;

	for (uint32_t i = 0; i < nr && !ret; i += BATCH) {
		uint32_t now = nr - i < BATCH ? nr - i : BATCH;

		ret = read_all(name, fd, batch, now * sizeof(*batch), err);
		for (uint32_t k = 0; k < now && !ret; k++)
			if (__builtin_add_overflow(counters[i + k], batch[k], &counters[i + k]))
				ret = mp_err_set(err, EOVERFLOW, "%s: a sum of 2^64 or more", name);
	}
	return ret;
}

int mp_counts_file_add(const char *name, int fd, uint64_t table_hash, uint64_t *counters,
		       uint32_t nr, struct mp_err *err)
{
	uint64_t sets, bytes;
	int ret = read_header(name, fd, table_hash, nr, &sets, &bytes, err);

	for (uint64_t set = 0; !ret && set < sets; set++) {
		if (is_hole(fd, bytes)) {
			ret = skip(name, fd, bytes, err);
			continue;
		}
		ret = add_set(name, fd, counters, nr, err);
		if (!ret && set + 1 < sets)
			ret = skip(name, fd, bytes - 8 * (uint64_t)nr, err);
	}
	return ret;
}
