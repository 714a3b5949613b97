// SPDX-License-Identifier: Apache-2.0
/*
 * noevents - a library for LD_PRELOAD: perf_event_open fails, as on Debian's kernels, until a
 * file exists.
 *
 * The environment variable NOEVENTS names the file. A seccomp filter, as in deny.c, could not be
 * removed again.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...)
{
	const char *allowed = getenv("NOEVENTS");
	long a[6], ret;
	va_list args;
	int i;

	va_start(args, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_perf_event_open && allowed && access(allowed, F_OK)) {
		errno = EACCES;
		return -1;
	}
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	register long r9 __asm__("r9") = a[5];

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (ret < 0 && ret > -4096) {
		errno = (int)-ret;
		return -1;
	}
	return ret;
}
