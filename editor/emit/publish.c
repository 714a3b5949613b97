// SPDX-License-Identifier: Apache-2.0
/* publish - writes an output file so that it is never seen half written. Called by optimize. */
#include "editor/emit/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libprof/base/newfile.h"

/*
 * The rename replaces whatever has the output's name. A device or a pipe (-o /dev/null, as
 * root) would be gone for all processes; so would a link like /dev/stdout.
 */
static int check_replaceable(const struct stat *input, const char *output, struct mp_err *err)
{
	struct stat st;

	if (!stat(output, &st) && st.st_dev == input->st_dev && st.st_ino == input->st_ino)
		return mp_err_set(err, EINVAL, "%s: is the input itself; give another name",
				  output);
	if (lstat(output, &st) || S_ISREG(st.st_mode))
		return 0;
	if (S_ISDIR(st.st_mode))
		return mp_err_set(err, EISDIR, "%s: %s", output, strerror(EISDIR));
	return mp_err_set(err, EINVAL, "%s: is %s; give another name", output,
			  S_ISLNK(st.st_mode) ? "a symbolic link" : "not a regular file");
}

int me_publish_check(const char *input, const char *output, struct mp_err *err)
{
	struct stat st;

	if (stat(input, &st))
		return mp_err_set(err, errno, "%s: %s", input, strerror(errno));
	return check_replaceable(&st, output, err);
}

static int make_names(struct me_publish *publish, const char *output)
{
	static unsigned int nr; /* an output and its debug file have two */
	const char *tmp = getenv("TMPDIR");

	if (!output)
		return asprintf(&publish->temporary, "%s/morph-dry-run.XXXXXX",
				tmp && *tmp ? tmp : "/tmp") < 0
			       ? -ENOMEM
			       : 0;
	publish->final = strdup(output);
	return !publish->final || asprintf(&publish->temporary, "%.*s.morph.%d-%u",
					   (int)(basename(output) - output), output, (int)getpid(),
					   nr++) < 0
		       ? -ENOMEM
		       : 0;
}

/* The directory may be another user's, who may exchange its parents meanwhile. Return: a descriptor, -errno. */
static int open_temporary(struct me_publish *publish, struct mp_err *err)
{
	const char *name = basename(publish->temporary);
	int fd, rc;

	if (!publish->final) {
		fd = mkstemp(publish->temporary);
		return fd < 0 ? mp_err_set(err, errno, "%s: %s", publish->temporary,
					   strerror(errno))
			      : fd;
	}
	publish->dir = mp_directory_open(publish->final, err);
	if (publish->dir < 0)
		return publish->dir;
	/* A process with the same number was killed. */
	unlinkat(publish->dir, name, 0);
	fd = openat(publish->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	rc = mp_err_set(err, errno, "%s: %s", publish->final, strerror(errno));
	close(publish->dir);
	publish->dir = -1;
	return rc;
}

static void remove_temporary(const struct me_publish *publish)
{
	if (publish->dir >= 0)
		unlinkat(publish->dir, basename(publish->temporary), 0);
	else
		unlink(publish->temporary);
}

static int begin(struct me_publish *publish, const char *input, const char *output,
		 struct mp_err *err)
{
	struct stat st;
	int rc;

	if (stat(input, &st))
		return mp_err_set(err, errno, "%s: %s", input, strerror(errno));
	rc = output ? check_replaceable(&st, output, err) : 0;
	if (rc)
		return rc;
	if (make_names(publish, output)) {
		publish->temporary = NULL;
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	publish->fd = open_temporary(publish, err);
	if (publish->fd < 0) {
		rc = publish->fd;
		publish->fd = -1;
		free(publish->temporary);
		publish->temporary = NULL;
		return rc;
	}
	publish->mode = st.st_mode & 0777;
	return 0;
}

/* An output and its debug file are written at the same time. */
static struct me_publish *begun[2];

static void note(struct me_publish *from, struct me_publish *to)
{
	for (size_t i = 0; i < sizeof(begun) / sizeof(begun[0]); i++)
		if (begun[i] == from) {
			begun[i] = to;
			return;
		}
}

void me_publish_remove_all(void)
{
	for (size_t i = 0; i < sizeof(begun) / sizeof(begun[0]); i++)
		if (begun[i] && begun[i]->temporary)
			remove_temporary(begun[i]);
}

int me_publish_begin(struct me_publish *publish, const char *input, const char *output,
		     struct mp_err *err)
{
	sigset_t mask;
	int rc;

	*publish = (struct me_publish){.fd = -1, .dir = -1};
	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	/* Blocked, so that a limit on file sizes makes write() fail. */
	sigaddset(&mask, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &mask, &publish->old_mask);
	rc = begin(publish, input, output, err);
	if (rc)
		me_publish_end(publish);
	else
		note(NULL, publish);
	return rc;
}

int me_publish_write(struct me_publish *publish, const struct me_output_parts *output,
		     struct mp_err *err)
{
	int rc = me_output_parts_write(output, publish->fd);

	return rc ? mp_err_set(err, -rc, "%s: %s",
			       publish->final ? publish->final : publish->temporary, strerror(-rc))
		  : 0;
}

int me_publish_commit(struct me_publish *publish, struct mp_err *err)
{
	if (!publish->final)
		return 0;
	/* Only now, so that a killed run leaves no executable file behind. */
	if (fchmod(publish->fd, publish->mode) || fsync(publish->fd))
		return mp_err_set(err, errno, "%s: %s", publish->final, strerror(errno));
	/* No process can execute it while it is open for writing. */
	close(publish->fd);
	publish->fd = -1;
	if (renameat(publish->dir, basename(publish->temporary), publish->dir,
		     basename(publish->final)))
		return mp_err_set(err, errno, "%s: %s", publish->final, strerror(errno));
	free(publish->temporary);
	publish->temporary = NULL;
	return 0;
}

void me_publish_end(struct me_publish *publish)
{
	sigset_t pending;

	/* Discard a SIGXFSZ that write() reported as an error, too. */
	sigemptyset(&pending);
	sigaddset(&pending, SIGXFSZ);
	sigtimedwait(&pending, NULL, &(struct timespec){0});
	if (publish->fd >= 0)
		close(publish->fd);
	if (publish->temporary)
		remove_temporary(publish);
	note(publish, NULL);
	if (publish->dir >= 0)
		close(publish->dir);
	publish->dir = -1;
	free(publish->temporary);
	free(publish->final);
	publish->temporary = publish->final = NULL;
	publish->fd = -1;
	sigprocmask(SIG_SETMASK, &publish->old_mask, NULL);
}
