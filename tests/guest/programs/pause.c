// SPDX-License-Identifier: Apache-2.0
/*
 * pause - runs a process on each CPU that executes only the pause instruction, until it is
 * killed.
 *
 * An emulator that runs all CPUs in one thread switches to the next CPU after a tenth of a
 * second, or when a CPU executes pause. While all CPUs are busy, each message between two CPUs
 * takes that long, and loading a module needs about ten messages. With this program it is much
 * faster.
 */
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	long nr = sysconf(_SC_NPROCESSORS_ONLN), i;
	cpu_set_t set;

	for (i = 0; i < nr; i++) {
		if (fork())
			continue;
		CPU_ZERO(&set);
		CPU_SET(i, &set);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (sched_setaffinity(0, sizeof(set), &set))
			_exit(1);
		for (;;)
			__builtin_ia32_pause();
	}
	while (wait(NULL) > 0)
		;
	return 1;
}
