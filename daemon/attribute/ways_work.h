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

#define MD_WAYS_SAMPLES_MAX 4096 /* in a batch */
#define MD_WAYS_STACK_WORDS 32	 /* of the stack, with a sample */

/* A batch is one of these, and the samples. */
struct md_ways_batch {
	char magic[8]; /* MD_WAYS_MAGIC */
	uint32_t nr_samples, pad;
};
#define MD_WAYS_MAGIC "waysof2" /* with its zero */

struct md_ways_sample {
	uint64_t vaddr; /* link-time address */
	uint64_t bias;	/* link-time address = run-time address + bias, modulo 2^64 */
	uint64_t registers[MORPH_REG_FLAGS + 1];
	uint32_t known;	      /* bit n: register n is known */
	uint32_t stack_words; /* from rsp on */
	uint32_t module;      /* of morphd's; the worker does not use it */
	uint32_t pad;
	uint64_t stack[MD_WAYS_STACK_WORDS];
};

/* One way in a reply. */
struct md_ways_reply {
	uint64_t vaddr; /* of the branch */
	uint64_t taken; /* 0 or 1 */
};

/*
 * md_ways_work - fills @reply from the batch @fd of @size bytes, whose samples are of the file @beside; see
 * md_sandbox_work. Another file as @fd, as sandbox uses to test itself, gets an empty reply. Return: 0, -EBADMSG: a
 * malformed batch or file, -ENOMEM, -EIO.
 */
int md_ways_work(int fd, uint64_t size, int beside, struct md_buf *reply);

#endif
