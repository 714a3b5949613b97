// SPDX-License-Identifier: Apache-2.0
/* bus_error - the signal handler; see bus_error.h. */
#include "libprof/cli/bus_error.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *name;
static void (*remove_all)(void);

static void on_bus_error(int signal)
{
	static const char what[] =
		": a file became shorter, or could not be read, while it was read\n";

	(void)signal;
	if (remove_all)
		remove_all();
	(void)!write(STDERR_FILENO, name, strlen(name));
	(void)!write(STDERR_FILENO, what, sizeof(what) - 1);
	_exit(EXIT_FAILURE);
}

void mp_bus_error_catch(const char *program, void (*clean)(void))
{
	name = program;
	remove_all = clean;
	sigaction(SIGBUS, &(struct sigaction){.sa_handler = on_bus_error}, NULL);
}
