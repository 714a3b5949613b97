// SPDX-License-Identifier: Apache-2.0
/* kmod_request - one ioctl() of the kernel module's device. Called by source_kmod and kmod_rows. */
#ifndef MD_KMOD_REQUEST_H
#define MD_KMOD_REQUEST_H

#include <errno.h>
#include <sys/ioctl.h>

/* md_kmod_request - @what: MORPH_IOC_... of kmod/uapi/morph_dev.h. Return: 0 or -errno. */
static inline int md_kmod_request(int fd, unsigned long what, void *arg)
{
	int ret;

	do {
		ret = ioctl(fd, what, arg);
	} while (ret && errno == EINTR);
	return ret ? -errno : 0;
}

#endif
