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

/* The address at which x86-64 links _text; randomisation moves the whole image by one distance. */
#define MD_KERNEL_LINK_TEXT UINT64_C(0xffffffff81000000)

struct md_kernel {
	struct mp_id id;
	char name[80];		   /* "[kernel 6.1.0-56-amd64]" */
	struct morph_segment text; /* run-time address, link-time address, bytes; all 0: not known */
	uint64_t text_size;	   /* 0: not known, though @text may be */
	const char *remark;	   /* NULL, or what is missing */
};

/*
 * @base: where samples have _text, where they do not tell the run-time address; 0: there. Then
 * nothing needs to be allowed to see addresses.
 */
void md_kernel_read(uint64_t base, struct md_kernel *out);

#endif
