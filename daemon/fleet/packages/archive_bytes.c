// SPDX-License-Identifier: Apache-2.0
/* archive_bytes - see archive_bytes.h. */
#include "daemon/fleet/packages/archive_bytes.h"

#include <unistd.h>

int md_archive_allow_filters(struct archive *a)
{
	int r = archive_read_support_filter_gzip(a);

	if (r == ARCHIVE_OK)
		r = archive_read_support_filter_xz(a);
	if (r == ARCHIVE_OK)
		r = archive_read_support_filter_lzma(a);
	if (r == ARCHIVE_OK)
		r = archive_read_support_filter_zstd(a);
	return r == ARCHIVE_OK ? archive_read_support_filter_bzip2(a) : r;
}

static la_ssize_t read_more(struct archive *a, void *arg, const void **out)
{
	struct md_archive_bytes *bytes = arg;
	ssize_t n = pread(bytes->fd, bytes->buf, sizeof(bytes->buf), bytes->off);

	(void)a;
	if (n > 0)
		bytes->off += n;
	*out = bytes->buf;
	return n;
}

int md_archive_open(struct archive *a, struct md_archive_bytes *bytes)
{
	return archive_read_open2(a, bytes, NULL, read_more, NULL, NULL);
}
