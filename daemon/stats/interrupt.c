// SPDX-License-Identifier: Apache-2.0
/* interrupt - the signal handler and the files that it removes; see interrupt.h. */
#include "daemon/stats/interrupt.h"
#include "libprof/base/defaults.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static const char *const suffixes[] = {"", "-journal", "-wal", "-shm"};

#define NR_SIGNALS  (sizeof(signals) / sizeof(signals[0]))
#define NR_SUFFIXES (sizeof(suffixes) / sizeof(suffixes[0]))

/*
 * Complete names, since the handler cannot build them. Changed only while the signals are
 * blocked.
 */
static char names[NR_SUFFIXES][MP_PATH_ROOM];

void md_interrupt_hold(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < NR_SIGNALS; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, before);
}

void md_interrupt_release(const sigset_t *before)
{
	sigprocmask(SIG_SETMASK, before, NULL);
}

void md_interrupt_remove(void)
{
	for (size_t i = 0; i < NR_SUFFIXES; i++)
		if (names[i][0])
			unlink(names[i]);
}

/* SA_RESETHAND restored the default action, so raise() ends the program. */
static void on_signal(int sig)
{
	md_interrupt_remove();
	raise(sig);
}

void md_interrupt_unlinks(const char *path)
{
	struct sigaction action = {.sa_handler = on_signal,
				   .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
	struct sigaction now;
	sigset_t before;

	md_interrupt_hold(&before);
	for (size_t i = 0; i < NR_SUFFIXES; i++)
		names[i][0] = '\0';
	for (size_t i = 0; path && i < NR_SUFFIXES; i++)
		if (snprintf(names[i], sizeof(names[i]), "%s%s", path, suffixes[i]) >=
		    (int)sizeof(names[i]))
			names[i][0] = '\0';
	action.sa_handler = path ? on_signal : SIG_DFL;
	for (size_t i = 0; i < NR_SIGNALS; i++) {
		/* A signal that nohup ignores stays ignored. */
		if (!sigaction(signals[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
	md_interrupt_release(&before);
}
