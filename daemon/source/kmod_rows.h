// SPDX-License-Identifier: Apache-2.0
/*
 * kmod_rows - asks the kernel module for stacks, and gives it the unwind rows of files. Called by
 * source_kmod.
 */
#ifndef MD_KMOD_ROWS_H
#define MD_KMOD_ROWS_H

#include "daemon/source/source.h"

/*
 * md_kmod_rows_ask - from the next START on, samples come with stacks. @fd: the device. @abi_minor:
 * the module's. Return: 0, -ENOTSUP, -EPERM, -errno.
 */
int md_kmod_rows_ask(int fd, uint32_t abi_minor, struct mp_err *err);
/* Return: 0, -EFBIG (more segments than the module takes), -ENOSPC, -errno. */
int md_kmod_rows_give(int fd, const struct md_source_rows *rows);

#endif
