// SPDX-License-Identifier: Apache-2.0
/* stdio - opens closed standard descriptors, filters what is printed, and checks the output of --help; see stdio.h. */
#include "libprof/cli/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "libprof/base/text.h"

static const char *program_name;

/* ---- what names could do to a terminal ------------------------------------------------------ */

#define PIECE 4096

static struct filter {
	int fd;
	bool raw;
	size_t nr_kept;
	char kept[4]; /* the beginning of a character */
} filters[] = {{STDOUT_FILENO, false, 0, {0}}, {STDERR_FILENO, false, 0, {0}}};

static int put(int fd, const char *bytes, size_t nr)
{
	while (nr) {
		ssize_t done = write(fd, bytes, nr);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return -1;
		bytes += done;
		nr -= (size_t)done;
	}
	return 0;
}

static int put_filtered(struct filter *f, const char *bytes, size_t nr)
{
	char in[PIECE + sizeof(f->kept)], out[sizeof(in) * MP_TEXT_FILTER_MAX];
	size_t taken, size;

	memcpy(in, f->kept, f->nr_kept);
	memcpy(in + f->nr_kept, bytes, nr);
	nr += f->nr_kept;
	size = mp_text_filter(in, nr, out, &taken);
	f->nr_kept = nr - taken;
	memcpy(f->kept, in + taken, f->nr_kept);
	return put(f->fd, out, size);
}

/* fopencookie() asks for 0, not -1, after an error. */
static ssize_t on_write(void *cookie, const char *bytes, size_t nr)
{
	struct filter *f = cookie;

	for (size_t at = 0, piece; at < nr; at += piece) {
		piece = nr - at < PIECE ? nr - at : PIECE;
		if (f->raw ? put(f->fd, bytes + at, piece) : put_filtered(f, bytes + at, piece))
			return 0;
	}
	return (ssize_t)nr;
}

static FILE *open_filter(struct filter *f, int mode, FILE *instead)
{
	FILE *file = fopencookie(f, "w", (cookie_io_functions_t){.write = on_write});

	if (!file)
		return instead;
	setvbuf(file, NULL, mode, 0);
	return file;
}

void mp_stdio_raw(bool raw)
{
	fflush(stdout);
	filters[0].raw = raw;
}

/* ---- standard descriptors ------------------------------------------------------------------- */

static void check_stdout(void)
{
	if (!program_name || (!fflush(stdout) && !ferror(stdout)))
		return;
	fprintf(stderr, "%s: standard output: %s\n", program_name, strerror(errno));
	_exit(EXIT_FAILURE);
}

static void no_action(int signal)
{
	(void)signal;
}

/* Programs that this one executes get the default action, as if nothing was caught here. */
static void catch_size_limit(void)
{
	struct sigaction now;

	if (!sigaction(SIGXFSZ, NULL, &now) && now.sa_handler == SIG_DFL)
		sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = no_action}, NULL);
}

void mp_stdio_init(const char *program)
{
	/*
	 * Open them in the wrong direction, so that using them fails as it would on a
	 * closed one.
	 */
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC) != fd)
			abort(); /* not even /dev/null: give up */
	stdout = open_filter(&filters[0], isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, stdout);
	stderr = open_filter(&filters[1], _IOLBF, stderr);
	catch_size_limit();
	program_name = program;
	atexit(check_stdout);
}

void mp_stdio_parsed(void)
{
	program_name = NULL;
}
