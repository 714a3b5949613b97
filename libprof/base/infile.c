// SPDX-License-Identifier: Apache-2.0
/* infile - tells FIFOs from pipes of a shell, and bounds lines; see infile.h. */
#include "libprof/base/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "libprof/base/grow.h"

/* A FIFO has a name in a file system; the pipes of a shell have none. */
static int check_kind(int fd, const char *path, struct mp_err *err)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st))
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return mp_err_set(err, EISDIR, "%s: %s", path, strerror(EISDIR));
	if (S_ISFIFO(st.st_mode) && !fstatfs(fd, &fs) && fs.f_type != PIPEFS_MAGIC)
		return mp_err_set(err, EINVAL,
				  "%s: a FIFO, which is not waited for; give a file, or a pipe "
				  "of the shell: <(COMMAND)",
				  path);
	return 0;
}

int mp_infile_open(const char *path, struct mp_err *err)
{
	/* O_NONBLOCK: opening a FIFO must not wait for its other end. Reading may wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

	if (fd < 0)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	rc = check_kind(fd, path, err);
	if (!rc && fcntl(fd, F_SETFL, 0))
		rc = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int mp_infile_regular(const char *path, uint64_t *size_bytes, struct mp_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;
	struct stat st;

	if (fd < 0)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st))
		rc = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rc = mp_err_set(err, EINVAL, "%s: not a regular file", path);
	else
		rc = 0;
	*size_bytes = rc ? 0 : (uint64_t)st.st_size;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/*
 * The kernel writes the breakpoints of uprobes into each private mapping of the file, as if that was a program's. A shared one
 * is not possible where a file system serves all reads itself (FUSE with direct_io); no program runs from there.
 */
void *mp_infile_map(int fd, size_t size)
{
	void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	return map == MAP_FAILED && errno == ENODEV
		       ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0)
		       : map;
}

int mp_infile_stream(const char *path, FILE **out, struct mp_err *err)
{
	int fd = mp_infile_open(path, err);

	*out = NULL;
	if (fd < 0)
		return fd;
	*out = fdopen(fd, "r");
	if (*out)
		return 0;
	close(fd);
	return mp_err_set(err, ENOMEM, "out of memory");
}

int mp_infile_line(FILE *in, char **line, size_t *room)
{
	size_t len = 0;
	int c;

	errno = 0;
	flockfile(in);
	while ((c = getc_unlocked(in)) != EOF && c && c != '\n' && len < MP_LINE_MAX) {
		if (mp_grow(*line, *room, len + 2))
			break;
		(*line)[len++] = (char)c;
	}
	funlockfile(in);
	if (c == EOF && ferror(in))
		return errno ? -errno : -EIO;
	if (!c)
		return -EILSEQ;
	if (len >= MP_LINE_MAX)
		return -EFBIG;
	if (c == EOF && !len)
		return 0;
	if ((c != EOF && c != '\n') || mp_grow(*line, *room, 1))
		return -ENOMEM;
	if (len && (*line)[len - 1] == '\r')
		len--;
	(*line)[len] = '\0';
	return 1;
}

const char *mp_infile_why(int rc)
{
	return rc == -EILSEQ ? "not text" : rc == -EFBIG ? "the line is too long" : strerror(-rc);
}
