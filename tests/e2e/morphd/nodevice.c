// SPDX-License-Identifier: Apache-2.0
/*
 * nodevice - a library for LD_PRELOAD that makes /dev/morphmon unusable.
 *
 * The environment variable NODEVICE is the errno number that open() fails with; or "abi": open()
 * succeeds, but the module reports a later version; or "old": it reports a version without
 * registers; or "flagless": it reports a version that refuses the flags among registers, and refuses
 * other registers by EPERM, as it does without rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kmod/uapi/morph_dev.h"

int open(const char *path, int flags, ...)
{
	const char *what = getenv("NODEVICE");
	mode_t mode = 0;
	va_list args;

	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	if (!what || strcmp(path, MORPH_DEV_PATH))
		return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	if (!strcmp(what, "abi") || !strcmp(what, "old") || !strcmp(what, "flagless"))
		return syscall(SYS_openat, AT_FDCWD, "/dev/null", flags, 0);
	errno = atoi(what);
	return -1;
}

int ioctl(int fd, unsigned long request, ...)
{
	struct morph_hello *hello;
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!getenv("NODEVICE"))
		return syscall(SYS_ioctl, fd, request, arg);
	if (request == MORPH_IOC_EXEC_ID && strcmp(getenv("NODEVICE"), "abi"))
		return 0;
	if (request == MORPH_IOC_REGISTERS && !strcmp(getenv("NODEVICE"), "flagless")) {
		errno = *(const __u32 *)arg == MORPH_REGS_PATHS ? EPERM : EINVAL;
		return -1;
	}
	if (request != MORPH_IOC_HELLO)
		return syscall(SYS_ioctl, fd, request, arg);
	hello = arg;
	if (strcmp(getenv("NODEVICE"), "abi")) {
		*hello = (struct morph_hello){
			.abi_major = 1,
			.abi_minor = !strcmp(getenv("NODEVICE"), "old") ? 3 : 11,
			.nr_cpu_ids = 1,
			.ring_bytes = 4096,
		};
		return 0;
	}
	hello->abi_major = 7;
	hello->abi_minor = 3;
	errno = EPROTO;
	return -1;
}
