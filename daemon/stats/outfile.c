// SPDX-License-Identifier: Apache-2.0
/* outfile - writes a temporary file, then renames it; see outfile.h. */
#include "daemon/stats/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/stats/interrupt.h"
#include "libprof/base/newfile.h"

static int open_temporary(struct md_outfile *out)
{
	/* O_EXCL: a symbolic link that somebody placed there is not followed. */
	for (unsigned int i = 0; i < 100; i++) {
		int fd;

		if (snprintf(out->temporary, sizeof(out->temporary), "%s.%d-%u.tmp", out->path,
			     (int)getpid(), i) >= (int)sizeof(out->temporary))
			return -ENAMETOOLONG;
		md_interrupt_unlinks(out->temporary);
		fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

int md_outfile_open(const char *path, struct md_outfile *out, struct mp_err *err)
{
	struct stat st;
	int fd;

	*out = (struct md_outfile){.file = stdout, .path = path};
	if (!path)
		return 0;
	/* Write to a pipe or a device such as /dev/stdout; do not replace it. */
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		fd = mp_newfile_open(path, 0666, err);
		if (fd < 0)
			return fd;
		out->file = fdopen(fd, "w");
		return out->file ? 0 : mp_err_set(err, ENOMEM, "%s: no memory", path);
	}
	fd = open_temporary(out);
	if (fd < 0) {
		out->temporary[0] = '\0';
		return mp_err_set(err, -fd, "%s: %s", path, strerror(-fd));
	}
	out->file = fdopen(fd, "w");
	if (!out->file) {
		fd = errno;
		md_outfile_abandon(out);
		return mp_err_set(err, fd, "%s: %s", path, strerror(fd));
	}
	return 0;
}

int md_outfile_commit(struct md_outfile *out, struct mp_err *err)
{
	bool bad = fflush(out->file) || ferror(out->file);
	int code = bad ? errno : 0;

	if (!bad && out->temporary[0] && fsync(fileno(out->file)))
		code = errno;
	if (out->path && fclose(out->file) && !code)
		code = errno;
	out->file = NULL;
	if (!code && out->temporary[0] && rename(out->temporary, out->path))
		code = errno;
	if (!code && out->temporary[0])
		md_interrupt_unlinks(NULL);
	if (!code)
		return 0;
	md_outfile_abandon(out);
	return mp_err_set(err, code, "%s: %s", out->path ? out->path : "standard output",
			  strerror(code));
}

void md_outfile_abandon(struct md_outfile *out)
{
	if (out->file && out->path)
		fclose(out->file);
	out->file = NULL;
	if (out->temporary[0]) {
		unlink(out->temporary);
		md_interrupt_unlinks(NULL);
	}
	out->temporary[0] = '\0';
}
