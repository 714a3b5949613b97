// SPDX-License-Identifier: Apache-2.0
/*
 * kernel - the identity of the running kernel, and where its text lies.
 *
 * The build-id comes from /sys/kernel/notes. Addresses become link-time addresses if
 * /proc/kallsyms may be read. Called by modcache.
 */
#ifndef MD_KERNEL_H
#define MD_KERNEL_H

#include "kmod/uapi/morph_abi.h"
#include "libprof/elf/id.h"

/*
 * Link-time address of _text on x86-64. Address randomisation shifts the whole image by one
 * distance.
 */
#define MD_KERNEL_LINK_TEXT UINT64_C(0xffffffff81000000)

struct md_kernel {
	struct mp_id id;
	char name[80];		   /* "[kernel 6.1.0-56-amd64]" */
	struct morph_segment text; /* run-time address, link-time address, size; all 0: not known */
	uint64_t text_size;	   /* 0: not known, even if @text is */
	const char *remark;	   /* NULL, or a message about what is missing */
};

/*
 * @base: address of _text in samples that carry no run-time addresses; 0: they do. With a
 * @base, no permission to read kernel addresses is needed.
 */
void md_kernel_read(uint64_t base, struct md_kernel *out);

#endif
