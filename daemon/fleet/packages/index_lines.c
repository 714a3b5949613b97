// SPDX-License-Identifier: Apache-2.0
/* index_lines - see index_lines.h. */
#include "daemon/fleet/packages/index_lines.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/fleet/packages/archive_bytes.h"
#include "daemon/fleet/confined.h"

/* The largest window of xz and zstd, and a line. */
#define MEMORY	(UINT64_C(256) << 20)
#define SECONDS 300
/* A package of a kernel's debug information has some thousand build-ids in one line. */
#define LINE_MAX_BYTES (4u << 20)

struct lines {
	md_index_see *see;
	void *arg;
	char *line;
	size_t size, max;
};

/* ---- in the confined process --------------------------------------------------------------- */

static bool append(struct lines *l, const char *bytes, size_t size)
{
	if (l->size + size >= l->max) {
		size_t max = 2 * (l->size + size) + 4096;
		char *line = realloc(l->line, max);

		if (!line)
			return false;
		l->line = line;
		l->max = max;
	}
	memcpy(l->line + l->size, bytes, size);
	l->size += size;
	l->line[l->size] = '\0';
	return true;
}

static enum md_index_outcome end_line(struct lines *l)
{
	enum md_index_outcome r;

	while (l->size && strchr(" \t\r", l->line[l->size - 1]))
		l->line[--l->size] = '\0';
	r = l->see(l->arg, l->line, l->size);
	l->size = 0;
	return r;
}

static enum md_index_outcome see_bytes(struct lines *l, const char *bytes, size_t size)
{
	enum md_index_outcome r = MD_INDEX_DONE;

	while (size && r == MD_INDEX_DONE) {
		const char *end = memchr(bytes, '\n', size);
		size_t n = end ? (size_t)(end - bytes) : size;

		if (l->size + n >= LINE_MAX_BYTES || memchr(bytes, '\0', n))
			return MD_INDEX_DAMAGED;
		if (!append(l, bytes, n))
			return MD_INDEX_TOO_LARGE;
		if (!end)
			break;
		r = end_line(l);
		bytes = end + 1;
		size -= n + 1;
	}
	return r;
}

static enum md_index_outcome see_file(struct lines *l, struct archive *a)
{
	struct archive_entry *entry;
	enum md_index_outcome r = MD_INDEX_DONE;
	const void *bytes;
	la_int64_t off;
	size_t size;
	int next = archive_read_next_header(a, &entry);

	/* An empty index is one. */
	if (next == ARCHIVE_EOF)
		return MD_INDEX_DONE;
	while (next == ARCHIVE_OK && r == MD_INDEX_DONE) {
		next = archive_read_data_block(a, &bytes, &size, &off);
		if (next == ARCHIVE_OK)
			r = see_bytes(l, bytes, size);
	}
	if (r != MD_INDEX_DONE)
		return r;
	/* The last line has an end, too. */
	return next == ARCHIVE_EOF && !l->size ? MD_INDEX_DONE : MD_INDEX_DAMAGED;
}

enum md_index_outcome md_index_lines(md_index_see *see, void *arg)
{
	static struct md_archive_bytes bytes = {.fd = MD_CONFINED_IN};
	struct lines l = {.see = see, .arg = arg};
	struct archive *a = archive_read_new();
	enum md_index_outcome r = MD_INDEX_DAMAGED;

	if (!a)
		return MD_INDEX_TOO_LARGE;
	if (md_archive_allow_filters(a) == ARCHIVE_OK &&
	    archive_read_support_format_raw(a) == ARCHIVE_OK &&
	    archive_read_support_format_empty(a) == ARCHIVE_OK &&
	    md_archive_open(a, &bytes) == ARCHIVE_OK)
		r = see_file(&l, a);
	archive_read_free(a);
	free(l.line);
	return r;
}

/* ---- the caller ---------------------------------------------------------------------------- */

int md_index_run(const char *path, int (*work)(const void *arg), const void *arg, int out_fd,
		 const struct md_package_look *look, struct mp_err *err)
{
	struct md_confined c = {.in_fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY),
				.out_fd = out_fd,
				.work = work,
				.arg = arg,
				.memory = MEMORY,
				.seconds = SECONDS,
				.look = look->look,
				.look_arg = look->arg};
	struct mp_err why = {""};
	int r;

	if (c.in_fd < 0)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	r = md_confined_run(&c, &why);
	close(c.in_fd);
	if (r < 0)
		return mp_err_set(err, -r, "%s: %s", path, why.msg);
	if (r == MD_INDEX_TOO_LARGE)
		return mp_err_set(err, ENOSPC,
				  "%s: reading it needs more memory or disk than there is", path);
	return r == MD_INDEX_DONE ? 0
				  : mp_err_set(err, EBADMSG, "%s: is damaged or cut short", path);
}
