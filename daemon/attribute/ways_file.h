// SPDX-License-Identifier: Apache-2.0
/*
 * ways_file - code and constants of the file that a worker executes: what its program headers say is loaded and never
 * written. Read page by page, with pread() alone, since the file may be anybody's. Called by ways_work.
 */
#ifndef MD_WAYS_FILE_H
#define MD_WAYS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct md_ways_file;

/*
 * md_ways_file_open - reads the program headers of @fd, which must stay open. Return: 0, -ENOMEM; -EBADMSG: it is no
 * program or library of this processor. Ownership: md_ways_file_close(*@out), which takes NULL.
 */
int md_ways_file_open(int fd, struct md_ways_file **out);
void md_ways_file_close(struct md_ways_file *file);

/* For struct mp_foresee_code; @data: the file. bytes() is valid until its next call. */
const uint8_t *md_ways_file_bytes(void *data, uint64_t vaddr, size_t *avail);
bool md_ways_file_constant(void *data, uint64_t vaddr, void *to, size_t size);

#endif
