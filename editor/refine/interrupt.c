// SPDX-License-Identifier: Apache-2.0
/* interrupt - the flag and the wait; see interrupt.h. */
#include "editor/refine/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "editor/audit/run/audit_run.h"

static atomic_bool interrupted;

static void on_signal(int sig)
{
	(void)sig;
	atomic_store(&interrupted, true);
	me_run_cancel();
}

void me_interrupt_catch(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

bool me_interrupted(void)
{
	return atomic_load(&interrupted);
}

int me_interrupt_check(struct mp_err *err)
{
	return me_interrupted() ? mp_err_set(err, EINTR, "interrupted") : 0;
}

int me_interrupt_wait(pid_t pid, int *status)
{
	bool signalled = false;

	for (;;) {
		if (me_interrupted() && !signalled) {
			kill(pid, SIGTERM);
			signalled = true;
		}
		if (waitpid(pid, status, 0) >= 0)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}
