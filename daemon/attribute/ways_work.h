// SPDX-License-Identifier: Apache-2.0
/*
 * ways_work - which ways branches went after samples, by the samples' registers. The code that is
 * executed for this may be anybody's, so it happens in a worker of sandbox. ways makes the batch
 * that the worker reads, and takes its reply.
 */
#ifndef MD_WAYS_WORK_H
#define MD_WAYS_WORK_H

#include <stdint.h>

#include "daemon/record/record.h"

#define MD_WAYS_PAGE	    4096
#define MD_WAYS_SAMPLES_MAX 8192 /* in a batch */
#define MD_WAYS_PAGES_MAX   4096

/* A batch is one of these, the samples, the pages (ascending vaddr), and each page's bytes. */
struct md_ways_batch {
	char magic[8]; /* MD_WAYS_MAGIC */
	uint32_t nr_samples, nr_pages;
};
#define MD_WAYS_MAGIC "waysof1" /* with its zero */

struct md_ways_sample {
	uint64_t vaddr; /* link-time address */
	uint64_t known; /* bit n: register n is known */
	uint64_t registers[MORPH_REG_FLAGS + 1];
};

/* Code within MD_WAYS_PAGE bytes from a multiple of it on. */
struct md_ways_page {
	uint64_t vaddr; /* of the first byte */
	uint32_t size;	/* in bytes, at most MD_WAYS_PAGE */
	uint32_t pad;
};

/* One way in a reply. */
struct md_ways_reply {
	uint64_t vaddr; /* of the branch */
	uint64_t taken; /* 0 or 1 */
};

/*
 * md_ways_work - fills @reply from the batch @fd of @size bytes; see md_sandbox_work. Another file, as
 * sandbox uses to test itself, gets an empty reply. Return: 0, -EBADMSG: a malformed batch, -ENOMEM,
 * -EIO.
 */
int md_ways_work(int fd, uint64_t size, struct md_buf *reply);

#endif
