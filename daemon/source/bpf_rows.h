// SPDX-License-Identifier: Apache-2.0
/*
 * bpf_rows - puts the unwind rows of files into the maps of the BPF programs: slabs for the rows, and
 * a table of files. Both have a fixed limit; a slab takes memory only when it is needed. Called by
 * source_bpf.
 */
#ifndef MD_BPF_ROWS_H
#define MD_BPF_ROWS_H

#include "daemon/source/source.h"

struct md_bpf_rows;

/*
 * md_bpf_rows_new - @slabs, @files: descriptors of the programs' maps, which stay the caller's.
 * Return: NULL: no memory, or built without BPF.
 */
struct md_bpf_rows *md_bpf_rows_new(int slabs, int files);
void md_bpf_rows_free(struct md_bpf_rows *rows);
/*
 * md_bpf_rows_give - from now on, walks use these rows. Return: 0, -EFBIG (more segments than a walk
 * looks at), -ENOSPC (the rows or the files would be too many), -EBADMSG, -errno.
 */
int md_bpf_rows_give(struct md_bpf_rows *rows, const struct md_source_rows *given);

#endif
