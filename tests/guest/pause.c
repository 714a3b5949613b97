// SPDX-License-Identifier: Apache-2.0
/*
 * pause - on each processor a process that does nothing but say that it waits, until it is killed.
 *
 * An emulator that runs all processors in one thread goes on to the next one after a tenth of a
 * second, and wherever one says that it waits. While all are busy each word from one to another
 * takes that tenth: a module is loaded with about ten. With this, far less.
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
