// SPDX-License-Identifier: Apache-2.0
/* recfile - writes and reads chunks; see recfile.h. */
#include "daemon/record/recfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "libprof/base/newfile.h"

#define CHUNK_FULL (64u << 10) /* a chunk is written when it holds this much */

_Static_assert(CHUNK_FULL + MORPH_RECORD_SIZE_MAX <= MD_CHUNK_SIZE_MAX, "one more record fits");

struct md_recwriter {
	int fd;
	int failed; /* -errno of the first failed write */
	char *path;
	struct md_chunk_header head;
	struct md_buf buf;
	uint64_t size_bytes;
};

static uint64_t header_sum(const struct md_recfile_header *h)
{
	return XXH3_64bits(h, offsetof(struct md_recfile_header, sum));
}

static uint64_t chunk_head_sum(const struct md_chunk_header *h)
{
	return XXH3_64bits(h, offsetof(struct md_chunk_header, head_sum));
}

static int write_all(struct md_recwriter *w, const void *data, size_t size, struct mp_err *err)
{
	const char *pos = data;
	ssize_t n;

	if (w->failed)
		return w->failed;
	while (size) {
		n = write(w->fd, pos, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			w->failed = mp_err_set(err, errno, "%s: cannot write: %s", w->path,
					       strerror(errno));
			return w->failed;
		}
		pos += n;
		size -= n;
		w->size_bytes += n;
	}
	return 0;
}

int md_recwriter_open(const char *path, const struct md_recfile_info *info,
		      struct md_recwriter **out, struct mp_err *err)
{
	struct md_recfile_header h = {
		.magic = MD_RECFILE_MAGIC,
		.abi_major = MORPH_ABI_MAJOR,
		.abi_minor = MORPH_ABI_MINOR,
		.size = sizeof(h),
		.start_ns = info->start_ns,
		.start_s = info->start_s,
		.rate_hz = info->rate_hz,
		.clock = CLOCK_MONOTONIC,
	};
	struct md_recwriter *w = calloc(1, sizeof(*w));
	int ret;

	if (!w || !(w->path = strdup(path))) {
		free(w);
		return mp_err_set(err, ENOMEM, "%s: out of memory", path);
	}
	/* 0600: a recording reveals which programs ran and which files they used. */
	w->fd = mp_newfile_open(path, 0600, err);
	if (w->fd < 0) {
		ret = w->fd;
		goto fail;
	}
	memcpy(h.collector, info->collector, sizeof(h.collector));
	memcpy(h.event, info->event, sizeof(h.event));
	memcpy(h.why, info->why, sizeof(h.why));
	h.sum = header_sum(&h);
	ret = write_all(w, &h, sizeof(h), err);
	if (ret)
		goto fail;
	*out = w;
	return 0;
fail:
	if (w->fd >= 0)
		close(w->fd);
	free(w->path);
	free(w);
	return ret;
}

static int write_chunk(struct md_recwriter *w, struct mp_err *err)
{
	int ret;

	w->head.magic = MD_CHUNK_MAGIC;
	w->head.size = w->buf.size;
	w->head.sum = XXH3_64bits(w->buf.data, w->buf.size);
	w->head.head_sum = chunk_head_sum(&w->head);
	ret = write_all(w, &w->head, sizeof(w->head), err);
	if (!ret)
		ret = write_all(w, w->buf.data, w->buf.size, err);
	w->head.nr_before += w->head.nr;
	w->head.nr = 0;
	w->buf.size = 0;
	return ret;
}

int md_recwriter_flush(struct md_recwriter *w, struct mp_err *err)
{
	return w->buf.size ? write_chunk(w, err) : w->failed;
}

int md_recwriter_add(struct md_recwriter *w, const struct morph_record *record, struct mp_err *err)
{
	void *room = md_buf_add(&w->buf, record->size);

	if (!room)
		return mp_err_set(err, ENOMEM, "%s: out of memory", w->path);
	memcpy(room, record, record->size);
	w->head.nr += md_record_emitted(record);
	return w->buf.size >= CHUNK_FULL ? write_chunk(w, err) : w->failed;
}

uint64_t md_recwriter_size_bytes(const struct md_recwriter *w)
{
	return w->size_bytes + w->buf.size;
}

int md_recwriter_close(struct md_recwriter *w, struct mp_err *err)
{
	int ret;

	if (!w)
		return 0;
	ret = md_recwriter_flush(w, err);
	if (!ret)
		ret = write_chunk(w, err); /* an empty chunk is the end mark */
	if (close(w->fd) < 0 && !ret)
		ret = mp_err_set(err, errno, "%s: cannot write: %s", w->path, strerror(errno));
	md_buf_fini(&w->buf);
	free(w->path);
	free(w);
	return ret;
}

struct md_recreader {
	int fd;
	char *path;
	struct md_recfile_info info;
	uint32_t header_size;
	uint64_t off;	    /* of the next byte to read */
	uint64_t size;	    /* of the file when it was opened */
	uint64_t nr_before; /* samples accounted for so far */
	bool whole;
	/* The chunk's header lies at an offset that makes the records behind it 8-aligned. */
	uint8_t *buf;
};

#define READ_MAX (sizeof(struct md_chunk_header) + MD_CHUNK_SIZE_MAX)

static ssize_t read_at(struct md_recreader *r, void *buf, size_t size, uint64_t off,
		       struct mp_err *err)
{
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = pread(r->fd, (char *)buf + done, size - done, off + done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return mp_err_set(err, errno, "%s: cannot read: %s", r->path,
					  strerror(errno));
		if (!n)
			break;
		done += n;
	}
	return done;
}

static int read_header(struct md_recreader *r, struct mp_err *err)
{
	struct md_recfile_header h;
	ssize_t n = read_at(r, &h, sizeof(h), 0, err);

	if (n < 0)
		return n;
	if ((size_t)n < sizeof(h.magic) || memcmp(h.magic, MD_RECFILE_MAGIC, sizeof(h.magic)))
		return mp_err_set(err, EBADMSG, "%s: not a Morph recording", r->path);
	if ((size_t)n < sizeof(h))
		return mp_err_set(err, EBADMSG, "%s: cut off in its header", r->path);
	if (h.abi_major != MORPH_ABI_MAJOR)
		return mp_err_set(err, EPROTO, "%s: record format %u.%u, this morphd reads %u.x",
				  r->path, h.abi_major, h.abi_minor, MORPH_ABI_MAJOR);
	/* A later minor version may have a longer header, whose sum is elsewhere. */
	if (h.size < sizeof(h) || h.size > 4096 || h.size % MORPH_RECORD_ALIGN ||
	    (h.size == sizeof(h) && h.sum != header_sum(&h)))
		return mp_err_set(err, EBADMSG, "%s: damaged header", r->path);
	/* Limit the time, so that sums of times cannot overflow. */
	if (h.start_s < 0 || h.start_s > INT64_C(100000000000))
		return mp_err_set(err, EBADMSG, "%s: damaged header: impossible time", r->path);
	r->header_size = h.size;
	r->off = h.size;
	r->info.start_ns = h.start_ns;
	r->info.start_s = h.start_s;
	r->info.rate_hz = h.rate_hz;
	memcpy(r->info.collector, h.collector, sizeof(h.collector));
	memcpy(r->info.event, h.event, sizeof(h.event));
	memcpy(r->info.why, h.why, sizeof(h.why));
	r->info.collector[sizeof(h.collector) - 1] = 0;
	r->info.event[sizeof(h.event) - 1] = 0;
	r->info.why[sizeof(h.why) - 1] = 0;
	return 0;
}

int md_recreader_open(const char *path, struct md_recreader **out, struct mp_err *err)
{
	struct md_recreader *r = calloc(1, sizeof(*r));
	struct stat st;
	int ret;

	if (!r)
		return mp_err_set(err, ENOMEM, "%s: out of memory", path);
	r->fd = -1;
	r->path = strdup(path);
	r->buf = malloc(READ_MAX);
	if (!r->path || !r->buf) {
		ret = mp_err_set(err, ENOMEM, "%s: out of memory", path);
		goto fail;
	}
	r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (r->fd < 0 || fstat(r->fd, &st) < 0) {
		ret = mp_err_set(err, errno, "%s: cannot open: %s", path, strerror(errno));
		goto fail;
	}
	if (!S_ISREG(st.st_mode)) {
		ret = mp_err_set(err, EBADMSG, "%s: not a regular file", path);
		goto fail;
	}
	r->size = st.st_size;
	ret = read_header(r, err);
	if (ret)
		goto fail;
	*out = r;
	return 0;
fail:
	md_recreader_close(r);
	return ret;
}

const struct md_recfile_info *md_recreader_info(const struct md_recreader *r)
{
	return &r->info;
}

static bool is_chunk_head(const struct md_chunk_header *h)
{
	return h->magic == MD_CHUNK_MAGIC && h->size <= MD_CHUNK_SIZE_MAX &&
	       h->size % MORPH_RECORD_ALIGN == 0 && h->head_sum == chunk_head_sum(h);
}

/* Finds the next offset after @off with a valid chunk header, or the file's size. */
static int find_chunk(struct md_recreader *r, uint64_t off, uint64_t *found, struct mp_err *err)
{
	struct md_chunk_header h;
	ssize_t n, i;

	while (off + sizeof(h) <= r->size) {
		n = read_at(r, r->buf, READ_MAX, off, err);
		if (n < 0)
			return n;
		if (n < (ssize_t)sizeof(h))
			break;
		for (i = 0; i + (ssize_t)sizeof(h) <= n; i += MORPH_RECORD_ALIGN) {
			memcpy(&h, r->buf + i, sizeof(h));
			if (is_chunk_head(&h)) {
				*found = off + i;
				return 0;
			}
		}
		off += i;
	}
	*found = r->size;
	return 0;
}

int md_recreader_next(struct md_recreader *r, uint8_t **data, size_t *size, uint64_t *torn,
		      bool *damaged, struct mp_err *err)
{
	struct md_chunk_header h;
	uint64_t unsure = 0; /* samples of a damaged chunk whose header is good */
	ssize_t n;
	int ret;

	*torn = 0;
	*damaged = false;
	*size = 0;
	while (r->off < r->size) {
		n = read_at(r, r->buf, sizeof(h), r->off, err);
		if (n < 0)
			return n;
		memcpy(&h, r->buf, sizeof(h));
		if (n < (ssize_t)sizeof(h) || !is_chunk_head(&h)) {
			*damaged = true;
			ret = find_chunk(r, r->off + MORPH_RECORD_ALIGN, &r->off, err);
			if (ret)
				return ret;
			continue;
		}
		if (h.nr_before > r->nr_before) {
			*torn += h.nr_before - r->nr_before;
			r->nr_before = h.nr_before;
			unsure = 0;
			*damaged = true;
		}
		if (!h.size) {
			r->whole = true;
			r->off = r->size;
			break;
		}
		n = read_at(r, r->buf, h.size, r->off + sizeof(h), err);
		if (n < 0)
			return n;
		if (n < (ssize_t)h.size || XXH3_64bits(r->buf, h.size) != h.sum) {
			/* The next good header, or the end of the file, counts these samples. */
			*damaged = true;
			unsure = h.nr;
			r->off += sizeof(h);
			ret = find_chunk(r, r->off, &r->off, err);
			if (ret)
				return ret;
			continue;
		}
		r->nr_before += h.nr;
		r->off += sizeof(h) + h.size;
		*data = r->buf;
		*size = h.size;
		return 0;
	}
	*torn += unsure;
	r->nr_before += unsure;
	return -ENODATA;
}

bool md_recreader_is_whole(const struct md_recreader *r)
{
	return r->whole;
}

void md_recreader_rewind(struct md_recreader *r)
{
	r->off = r->header_size;
	r->nr_before = 0;
	r->whole = false;
}

void md_recreader_close(struct md_recreader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	free(r->buf);
	free(r->path);
	free(r);
}
