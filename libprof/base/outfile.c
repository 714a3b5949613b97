// SPDX-License-Identifier: Apache-2.0
/* outfile - writes a temporary file, then renames it; see outfile.h. */
#include "libprof/base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/newfile.h"

static void tell(const struct mp_outfile *out, const char *temporary)
{
	if (out->note)
		out->note(temporary);
}

static void hold_signals(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, before);
}

/* The temporary file is gone, or has its name. */
static void release_signals(const struct mp_outfile *out)
{
	if (!out->note)
		sigprocmask(SIG_SETMASK, &out->mask, NULL);
}

/* The directory may be another user's, who may exchange its parents meanwhile. */
static int open_temporary(struct mp_outfile *out, struct mp_err *err)
{
	int fd = -1, code = EEXIST;

	out->dir = mp_directory_open(out->path, err);
	if (out->dir < 0)
		return out->dir;
	/* O_EXCL: a symbolic link that somebody placed there is not followed. */
	for (unsigned int i = 0; fd < 0 && code == EEXIST && i < 100; i++) {
		if (snprintf(out->temporary, sizeof(out->temporary), "%s.%d-%u.tmp", out->path,
			     (int)getpid(), i) >= (int)sizeof(out->temporary)) {
			code = ENAMETOOLONG;
			break;
		}
		tell(out, out->temporary);
		fd = openat(out->dir, basename(out->temporary),
			    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		code = fd < 0 ? errno : 0;
	}
	if (fd >= 0)
		return fd;
	close(out->dir);
	out->dir = -1;
	out->temporary[0] = '\0';
	return mp_err_set(err, code, "%s: %s", out->path, strerror(code));
}

/* A device may be an input, too. */
static int check_inputs(const char *path, const char *const *inputs, struct mp_err *err)
{
	struct stat st, input;

	for (bool there = !stat(path, &st); *inputs; inputs++)
		if (there ? !stat(*inputs, &input) && S_ISREG(input.st_mode) &&
				    input.st_dev == st.st_dev && input.st_ino == st.st_ino
			  : !strcmp(path, *inputs))
			return mp_err_set(err, EINVAL,
					  "%s: is the input %s itself; give another name", path,
					  *inputs);
	return 0;
}

int mp_outfile_check(const char *path, const char *const *inputs, struct mp_err *err)
{
	struct mp_outfile probe = {.path = path, .dir = -1};
	struct stat st;
	bool there;
	int fd, rc = path ? check_inputs(path, inputs, err) : 0;

	if (rc || !path)
		return rc;
	if (!*path)
		return mp_err_set(err, ENOENT, "the output's name is empty");
	there = !stat(path, &st);
	if (there && S_ISDIR(st.st_mode))
		return mp_err_set(err, EISDIR, "%s: %s", path, strerror(EISDIR));
	/* A device or a pipe is written to as it is. */
	if (there && !S_ISREG(st.st_mode))
		return 0;
	hold_signals(&probe.mask);
	fd = open_temporary(&probe, err);
	if (fd >= 0) {
		close(fd);
		unlinkat(probe.dir, basename(probe.temporary), 0);
		close(probe.dir);
	}
	release_signals(&probe);
	return fd < 0 ? fd : 0;
}

int mp_outfile_open(const char *path, mp_outfile_note *note, struct mp_outfile *out,
		    struct mp_err *err)
{
	struct stat st;
	int fd;

	*out = (struct mp_outfile){.file = stdout, .path = path, .note = note, .dir = -1};
	if (!path)
		return 0;
	/* Write to a pipe or a device such as /dev/stdout; do not replace it. */
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		fd = mp_newfile_open(path, 0666, err);
		if (fd < 0)
			return fd;
		out->file = fdopen(fd, "w");
		return out->file ? 0 : mp_err_set(err, ENOMEM, "%s: out of memory", path);
	}
	if (!note)
		hold_signals(&out->mask);
	fd = open_temporary(out, err);
	if (fd < 0) {
		release_signals(out);
		return fd;
	}
	out->file = fdopen(fd, "w");
	if (!out->file) {
		fd = errno;
		mp_outfile_abandon(out);
		return mp_err_set(err, fd, "%s: %s", path, strerror(fd));
	}
	return 0;
}

int mp_outfile_commit(struct mp_outfile *out, struct mp_err *err)
{
	bool bad = fflush(out->file) || ferror(out->file);
	int code = bad ? errno : 0;

	if (!bad && out->temporary[0] && fsync(fileno(out->file)))
		code = errno;
	if (out->path && fclose(out->file) && !code)
		code = errno;
	out->file = NULL;
	if (!code && out->temporary[0] &&
	    renameat(out->dir, basename(out->temporary), out->dir, basename(out->path)))
		code = errno;
	if (!code && out->temporary[0]) {
		close(out->dir);
		tell(out, NULL);
		release_signals(out);
		out->temporary[0] = '\0';
	}
	if (!code)
		return 0;
	mp_outfile_abandon(out);
	return mp_err_set(err, code, "%s: %s", out->path ? out->path : "standard output",
			  strerror(code));
}

void mp_outfile_abandon(struct mp_outfile *out)
{
	if (out->file && out->path)
		fclose(out->file);
	out->file = NULL;
	if (out->temporary[0]) {
		unlinkat(out->dir, basename(out->temporary), 0);
		close(out->dir);
		tell(out, NULL);
		release_signals(out);
	}
	out->temporary[0] = '\0';
}
