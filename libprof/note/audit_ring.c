// SPDX-License-Identifier: Apache-2.0
/* audit_ring - the reader's side of the file of an audited program; see audit_ring.h. */
#include "libprof/note/audit_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE  4096
#define BATCH 256 /* records that are copied at once */

_Static_assert(!(MP_AUDIT_NR_RECORDS & (MP_AUDIT_NR_RECORDS - 1)), "a power of two");

static off_t function_off(uint32_t function)
{
	return MP_AUDIT_FILE_HEADER_BYTES +
	       (off_t)function * (off_t)sizeof(struct mp_audit_function);
}

static off_t records_off(uint32_t nr_functions)
{
	return (function_off(nr_functions) + PAGE - 1) / PAGE * PAGE;
}

static int read_at(int fd, void *to, size_t size, off_t off, struct mp_err *err)
{
	ssize_t nr;

	do
		nr = pread(fd, to, size, off);
	while (nr < 0 && errno == EINTR);
	if (nr == (ssize_t)size)
		return 0;
	if (nr < 0)
		return mp_err_set(err, errno, "file of an audit: %s", strerror(errno));
	return mp_err_set(err, EBADMSG, "file of an audit: cut short");
}

/* Only the owner can have made the file; root decides which file to name. */
static int check_owner(const char *path, const struct stat *st, struct mp_err *err)
{
	if (!S_ISREG(st->st_mode))
		return mp_err_set(err, EPERM, "%s: not a regular file", path);
	if (geteuid() && st->st_uid != geteuid())
		return mp_err_set(err, EPERM, "%s: belongs to another user", path);
	return 0;
}

static int check_header(const char *path, const struct mp_audit_file_header *h, struct mp_err *err)
{
	static const char none[sizeof(h->magic)];

	/* The program writes the magic last. */
	if (!memcmp(h->magic, none, sizeof(none)))
		return mp_err_set(err, EAGAIN, "%s: the program has not filled it in yet", path);
	if (memcmp(h->magic, MP_AUDIT_FILE_MAGIC, sizeof(h->magic)))
		return mp_err_set(err, EBADMSG, "%s: not a file of an audit", path);
	if (h->version != MP_AUDIT_FILE_VERSION || h->header_bytes != MP_AUDIT_FILE_HEADER_BYTES)
		return mp_err_set(err, EBADMSG,
				  "%s: a file of an audit of version %" PRIu32
				  ", this program knows version %d",
				  path, h->version, MP_AUDIT_FILE_VERSION);
	if (!h->nr_functions || h->nr_functions > MP_AUDIT_MAX_FUNCTIONS)
		return mp_err_set(err, EBADMSG, "%s: damaged: %" PRIu32 " functions", path,
				  h->nr_functions);
	if (h->nr_records != MP_AUDIT_NR_RECORDS)
		return mp_err_set(err, EBADMSG, "%s: damaged: %" PRIu32 " records", path,
				  h->nr_records);
	return 0;
}

static int check_size(const char *path, const struct stat *st, uint32_t nr_functions,
		      struct mp_err *err)
{
	off_t want = records_off(nr_functions) +
		     MP_AUDIT_NR_RECORDS * (off_t)sizeof(struct mp_audit_record);

	if (st->st_size == want)
		return 0;
	return mp_err_set(err, EBADMSG, "%s: damaged: %jd bytes, and not %jd", path,
			  (intmax_t)st->st_size, (intmax_t)want);
}

int mp_audit_ring_open(struct mp_audit_ring *ring, const char *path, enum mp_audit_ring_start start,
		       struct mp_err *err)
{
	struct mp_audit_file_header h;
	struct stat st;
	int ret;

	*ring = (struct mp_audit_ring){.fd = -1};
	ring->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (ring->fd < 0 && errno == ELOOP)
		return mp_err_set(err, EPERM, "%s: a symbolic link", path);
	if (ring->fd < 0)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	ret = fstat(ring->fd, &st) ? mp_err_set(err, errno, "%s: %s", path, strerror(errno))
				   : check_owner(path, &st, err);
	if (!ret && st.st_size < (off_t)sizeof(h))
		ret = mp_err_set(err, st.st_size ? EBADMSG : EAGAIN, "%s: %s", path,
				 st.st_size ? "not a file of an audit" : "empty");
	if (!ret)
		ret = read_at(ring->fd, &h, sizeof(h), 0, err);
	if (!ret)
		ret = check_header(path, &h, err);
	if (!ret)
		ret = check_size(path, &st, h.nr_functions, err);
	if (ret) {
		mp_audit_ring_close(ring);
		return ret;
	}
	ring->table_hash = h.table_hash;
	ring->nr_functions = h.nr_functions;
	ring->dev = st.st_dev;
	ring->ino = st.st_ino;
	if (start == MP_AUDIT_RING_FRESH)
		ring->position = h.next;
	else
		ring->position = h.next > MP_AUDIT_NR_RECORDS ? h.next - MP_AUDIT_NR_RECORDS : 0;
	return 0;
}

void mp_audit_ring_close(struct mp_audit_ring *ring)
{
	if (ring->fd >= 0)
		close(ring->fd);
	ring->fd = -1;
}

static int read_next(const struct mp_audit_ring *ring, uint64_t *next, struct mp_err *err)
{
	int ret = read_at(ring->fd, next, sizeof(*next),
			  offsetof(struct mp_audit_file_header, next), err);

	if (!ret && *next < ring->position)
		ret = mp_err_set(err, EBADMSG, "file of an audit: damaged: its numbers go back");
	return ret;
}

/* Skips the records that were overwritten, or that may be while they are copied. */
static void skip_lost(struct mp_audit_ring *ring, uint64_t next)
{
	uint64_t nr;

	if (next - ring->position <= MP_AUDIT_NR_RECORDS)
		return;
	nr = next - ring->position - MP_AUDIT_NR_RECORDS;
	ring->lost += nr;
	ring->position += nr;
	ring->awaited_ns = 0;
}

/* Copies up to @max records that lie side by side. */
static int copy(const struct mp_audit_ring *ring, struct mp_audit_record *out, size_t max,
		struct mp_err *err)
{
	uint64_t index = ring->position % MP_AUDIT_NR_RECORDS;

	return read_at(ring->fd, out, max * sizeof(*out),
		       records_off(ring->nr_functions) + (off_t)(index * sizeof(*out)), err);
}

/* Return: true if the record at @position will not be finished. */
static bool has_waited(struct mp_audit_ring *ring, int64_t now_ns)
{
	if (!ring->awaited_ns)
		ring->awaited_ns = now_ns ? now_ns : 1;
	return now_ns - ring->awaited_ns >= MP_AUDIT_RING_PATIENCE_NS;
}

/*
 * Keeps those of @nr records at @out that were finished and not overwritten. *@ends: the record at
 * @position is not finished yet. Return: number of records kept.
 */
static size_t sift(struct mp_audit_ring *ring, struct mp_audit_record *out, size_t nr,
		   uint64_t next, int64_t now_ns, bool *ends)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr; i++) {
		/* Its successor in the same place may have been begun while it was copied. */
		if (next - ring->position > MP_AUDIT_NR_RECORDS) {
			ring->lost++;
		} else if (out[i].number == ring->position + 1) {
			out[kept++] = out[i];
		} else if (has_waited(ring, now_ns)) {
			ring->torn++;
		} else {
			*ends = true;
			break;
		}
		ring->position++;
		ring->awaited_ns = 0;
	}
	return kept;
}

int mp_audit_ring_read(struct mp_audit_ring *ring, int64_t now_ns, struct mp_audit_record *out,
		       size_t max, size_t *nr, struct mp_err *err)
{
	bool ends = false;
	uint64_t next;
	int ret = read_next(ring, &next, err);

	*nr = 0;
	while (!ret && !ends && *nr < max && next > ring->position) {
		size_t now = max - *nr < BATCH ? max - *nr : BATCH;
		uint64_t to_end;

		skip_lost(ring, next);
		to_end = MP_AUDIT_NR_RECORDS - ring->position % MP_AUDIT_NR_RECORDS;
		if (now > next - ring->position)
			now = next - ring->position;
		if (now > to_end)
			now = to_end;
		ret = copy(ring, out + *nr, now, err);
		/* Read after the copy: the writer raises @next before it overwrites a record. */
		if (!ret)
			ret = read_next(ring, &next, err);
		if (!ret)
			*nr += sift(ring, out + *nr, now, next, now_ns, &ends);
	}
	return ret;
}

int mp_audit_ring_function(const struct mp_audit_ring *ring, uint32_t function,
			   struct mp_audit_function *out, struct mp_err *err)
{
	if (function >= ring->nr_functions)
		return mp_err_set(err, EINVAL, "file of an audit: no function %" PRIu32, function);
	return read_at(ring->fd, out, sizeof(*out), function_off(function), err);
}

int mp_audit_ring_decide(const struct mp_audit_ring *ring, uint32_t function,
			 enum mp_audit_verdict verdict, struct mp_err *err)
{
	uint32_t word = verdict;
	struct stat st;
	ssize_t nr;

	if (function >= ring->nr_functions)
		return mp_err_set(err, EINVAL, "file of an audit: no function %" PRIu32, function);
	/* A write behind the end would make a file that was cut short longer again. */
	if (fstat(ring->fd, &st))
		return mp_err_set(err, errno, "file of an audit: %s", strerror(errno));
	if (st.st_size < function_off(function + 1))
		return mp_err_set(err, EBADMSG, "file of an audit: cut short");
	nr = pwrite(ring->fd, &word, sizeof(word),
		    function_off(function) + (off_t)offsetof(struct mp_audit_function, verdict));
	if (nr == sizeof(word))
		return 0;
	return mp_err_set(err, nr < 0 ? errno : EIO, "file of an audit: cannot write a verdict: %s",
			  strerror(nr < 0 ? errno : EIO));
}

bool mp_audit_ring_replaced(const struct mp_audit_ring *ring, const char *path)
{
	struct stat st;

	return lstat(path, &st) || st.st_dev != ring->dev || st.st_ino != ring->ino;
}
