// SPDX-License-Identifier: Apache-2.0
/* install_output - see install_output.h. */
#include "daemon/fleet/builds/install_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/fleet/builds/delta.h"
#include "daemon/worker/child.h"
#include "libprof/elf/own_output.h"

#define PROOF_LIMIT_S 3600

/* A nameless file beside @path. Return: descriptor, -errno. */
static int nameless(const char *path, struct mp_err *err)
{
	char name[PATH_MAX];
	int fd;

	snprintf(name, sizeof(name), "%.4000s.delta", path);
	unlink(name);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return mp_err_set(err, errno, "%s: %s", name, strerror(errno));
	unlink(name);
	return fd;
}

/* The sizes are what the server says: refuse those that no builder makes. */
static int check_sizes(const struct md_wanted *w, const struct md_whole_file *original,
		       struct mp_err *err)
{
	if (original->size != w->original_size ||
	    memcmp(original->hash, w->original_hash, MD_SHA256_SIZE) != 0)
		return mp_err_set(err, ENOEXEC,
				  "the build was made from a file with the same code but other "
				  "bytes (stripped, perhaps)");
	if (w->output_size > md_delta_output_max(w->original_size))
		return mp_err_set(err, EBADMSG, "the output would be %" PRIu64 " bytes",
				  w->output_size);
	if (w->delta_size > w->output_size + (w->output_size >> 7) + 65536)
		return mp_err_set(err, EBADMSG, "the delta is larger than the output");
	return 0;
}

/* The output's bytes must be those whose hash the server said. */
static int check_hash(int fd, const struct md_wanted *w, struct mp_err *err)
{
	void *bytes = mmap(NULL, w->output_size, PROT_READ, MAP_PRIVATE, fd, 0);
	uint8_t hash[MD_SHA256_SIZE];
	int r;

	if (bytes == MAP_FAILED)
		return mp_err_set(err, errno, "%s", strerror(errno));
	r = md_sha256(bytes, w->output_size, hash);
	munmap(bytes, w->output_size);
	if (r)
		return mp_err_code(err, -r);
	if (memcmp(hash, w->output_hash, MD_SHA256_SIZE) != 0)
		return mp_err_set(err, EBADMSG, "the output has another hash than the build says");
	return 0;
}

static int apply(const struct md_wanted *w, const struct md_whole_file *original, int delta_fd,
		 int out_fd, struct mp_err *err)
{
	void *delta = mmap(NULL, w->delta_size, PROT_READ, MAP_PRIVATE, delta_fd, 0);
	int r;

	if (delta == MAP_FAILED)
		return mp_err_set(err, errno, "%s", strerror(errno));
	r = md_delta_apply(original->bytes, original->size, delta, w->delta_size, out_fd,
			   w->output_size, err);
	munmap(delta, w->delta_size);
	return r;
}

static int make(PGconn *conn, const struct md_wanted *w, const struct md_whole_file *original,
		const char *path, int out_fd, struct mp_err *err)
{
	int delta_fd = nameless(path, err), r;

	if (delta_fd < 0)
		return delta_fd;
	r = md_wanted_fetch(conn, w, delta_fd, err);
	if (!r)
		r = apply(w, original, delta_fd, out_fd, err);
	if (!r)
		r = check_hash(out_fd, w, err);
	if (!r && fsync(out_fd))
		r = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	close(delta_fd);
	return r;
}

int md_install_make(PGconn *conn, const struct md_wanted *w, const char *original_path,
		    const char *path, struct mp_err *err)
{
	struct md_whole_file original;
	int out_fd = -1, r = md_whole_file_open(original_path, &original, err);

	if (!r)
		r = check_sizes(w, &original, err);
	if (!r) {
		unlink(path);
		out_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0755);
		if (out_fd < 0)
			r = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	}
	if (!r) {
		r = make(conn, w, &original, path, out_fd, err);
		if (r)
			unlink(path);
	}
	if (out_fd >= 0)
		close(out_fd);
	md_whole_file_close(&original);
	return r;
}

/* `morph-optimize adopt' of root asks for it. */
static void note_own(const char *output)
{
	int fd = open(output, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return;
	mp_own_output_note(fd, NULL);
	close(fd);
}

int md_install_prove(const char *original, const char *output, struct mp_err *err)
{
	char program[PATH_MAX], messages[PATH_MAX];
	char *argv[] = {program,	  (char *)"verify", (char *)"--report=none",
			(char *)"--kind=layout", (char *)original, (char *)output, NULL};
	struct md_child child = {.argv = argv, .messages = messages, .limit_s = PROOF_LIMIT_S};
	struct md_child_result result;
	int r = md_child_find("morph-optimize", program, err);

	if (r)
		return r;
	snprintf(messages, sizeof(messages), "%.4000s.messages", output);
	unlink(messages);
	r = md_child_run(&child, &result, err);
	unlink(messages);
	if (r)
		return r;
	if (result.end == MD_CHILD_STOPPED)
		return mp_err_set(err, EINTR, "the proof was stopped");
	if (result.end != MD_CHILD_EXITED || result.status)
		return mp_err_set(err, EPERM, "%s",
				  result.reason[0] ? result.reason
						   : "the verifier ended without a message");
	note_own(output);
	return 0;
}
