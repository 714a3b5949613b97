// SPDX-License-Identifier: Apache-2.0
/* signals - morphd's signal handlers; see signals.h. */
#include "daemon/morphd/signals.h"

#include <stddef.h>

volatile sig_atomic_t md_stop_requested, md_reload_requested;

static void on_stop(int sig)
{
	(void)sig;
	md_stop_requested = 1;
}

static void on_reload(int sig)
{
	(void)sig;
	md_reload_requested = 1;
}

void md_signals_catch(void)
{
	struct sigaction stop = {.sa_handler = on_stop};
	struct sigaction reload = {.sa_handler = on_reload};
	struct sigaction now;

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	/* A SIGHUP that nohup ignores stays ignored. */
	if (!sigaction(SIGHUP, NULL, &now) && now.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &reload, NULL);
}
