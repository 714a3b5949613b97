// SPDX-License-Identifier: Apache-2.0
/* stdio - opens closed standard descriptors and checks the output of --help; see stdio.h. */
#include "libprof/cli/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *program_name;

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
	catch_size_limit();
	program_name = program;
	atexit(check_stdout);
}

void mp_stdio_parsed(void)
{
	program_name = NULL;
}
