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

/* Reads from offset @at on. */
static int read_all(const char *name, int fd, void *to, size_t size, uint64_t at,
		    struct mp_err *err)
{
	size_t done = 0;

	while (done < size) {
		ssize_t nr = pread(fd, (char *)to + done, size - done, (off_t)(at + done));

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

/* Sizes of the file as a whole, which the header must fit. */
static int check_size(const char *name, const struct mp_counts_file_header *h, uint64_t size,
		      uint64_t sets, struct mp_err *err)
{
	uint64_t want;

	if (__builtin_mul_overflow(h->counters_bytes, sets, &want) ||
	    __builtin_add_overflow(want, MP_COUNTS_FILE_HEADER_BYTES, &want) || size < want)
		return mp_err_set(err, EBADMSG, "%s: cut short", name);
	if (size > want)
		return mp_err_set(err, EBADMSG, "%s: damaged: %" PRIu64 " bytes, and not %" PRIu64,
				  name, size, want);
	return 0;
}

/* *@sets: number of sets of counters that follow; *@bytes: size of each. */
static int read_header(const char *name, int fd, uint64_t table_hash, uint32_t nr, uint64_t *sets,
		       uint64_t *bytes, struct mp_err *err)
{
	static const char none[sizeof(((struct mp_counts_file_header *)0)->magic)];
	union {
		struct mp_counts_file_header header;
		char bytes[MP_COUNTS_FILE_HEADER_BYTES];
	} u;
	const struct mp_counts_file_header *h = &u.header;
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return mp_err_set(err, errno, "%s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return mp_err_set(err, EINVAL, "%s: not a regular file", name);
	ret = st.st_size ? read_all(name, fd, &u, sizeof(u), 0, err) : 0;
	if (ret)
		return ret;
	if (!st.st_size || !memcmp(h->magic, none, sizeof(none)))
		return mp_err_set(err, ENODATA, "%s: no program has begun to count in it", name);
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
	return check_size(name, h, (uint64_t)st.st_size, *sets, err);
}

/*
 * The next bytes that are on disk, from @at on, below @end: *@data to *@hole. Counters that never counted are holes,
 * and so are most sets: a file has many, and most programs have few threads. Return: false: there are none.
 */
static bool next_data(int fd, uint64_t at, uint64_t end, uint64_t *data, uint64_t *hole)
{
	off_t from = lseek(fd, (off_t)at, SEEK_DATA), to;

	if (from < 0 && errno == ENXIO)
		return false;
	to = from < 0 ? -1 : lseek(fd, from, SEEK_HOLE);
	/* A filesystem that knows no holes, or a file that became shorter: reading tells. */
	*data = from < 0 ? at : (uint64_t)from;
	*hole = to < 0 || (uint64_t)to > end ? end : (uint64_t)to;
	return *data < end;
}

static int add_range(const char *name, int fd, uint64_t at, uint64_t *counters, uint64_t nr,
		     struct mp_err *err)
{
	uint64_t batch[BATCH];
	int ret = 0;

	for (uint64_t i = 0; i < nr && !ret; i += BATCH) {
		uint64_t now = nr - i < BATCH ? nr - i : BATCH;

		ret = read_all(name, fd, batch, now * sizeof(*batch), at + 8 * i, err);
		for (uint64_t k = 0; k < now && !ret; k++)
			if (__builtin_add_overflow(counters[i + k], batch[k], &counters[i + k]))
				ret = mp_err_set(err, EOVERFLOW, "%s: a sum of 2^64 or more", name);
	}
	return ret;
}

/* The set at @at. Holes end where pages end, so counters lie on one side. */
static int add_set(const char *name, int fd, uint64_t at, uint64_t *counters, uint32_t nr,
		   struct mp_err *err)
{
	uint64_t end = at + 8 * (uint64_t)nr, data, hole = at;
	int ret = 0;

	while (!ret && next_data(fd, hole, end, &data, &hole)) {
		uint64_t first = (data - at) / 8, last = (hole - at + 7) / 8;

		hole = at +
		       8 * last; /* no counter is taken in parts, whatever the file system's units are */
		ret = add_range(name, fd, at + 8 * first, counters + first, last - first, err);
	}
	return ret;
}

int mp_counts_file_add(const char *name, int fd, uint64_t table_hash, uint64_t *counters,
		       uint32_t nr, struct mp_err *err)
{
	uint64_t sets, bytes, at = MP_COUNTS_FILE_HEADER_BYTES;
	int ret = read_header(name, fd, table_hash, nr, &sets, &bytes, err);

	for (uint64_t set = 0; !ret && set < sets; set++, at += bytes)
		ret = add_set(name, fd, at, counters, nr, err);
	return ret;
}
