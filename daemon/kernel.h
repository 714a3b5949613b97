// SPDX-License-Identifier: Apache-2.0
/*
 * kernel - what the running kernel is called, and where its text lies.
 *
 * Its build-id comes from /sys/kernel/notes; addresses are turned into link-time
 * ones where /proc/kallsyms may be read. Called by modcache.
 */
#ifndef MD_KERNEL_H
#define MD_KERNEL_H

#include "kmod/uapi/morph_abi.h"
#include "libprof/id.h"

struct md_kernel {
	struct mp_id id;
	char name[80];		   /* "[kernel 6.1.0-56-amd64]" */
	struct morph_segment text; /* run-time address, link-time address, bytes; all 0: not known */
	const char *remark;	   /* NULL, or what is missing */
};

void md_kernel_read(struct md_kernel *out);

#endif
