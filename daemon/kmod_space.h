// SPDX-License-Identifier: Apache-2.0
/*
 * kmod_space - what the module says of a process late and in short, in the words of everybody else.
 *
 * Decides which EXEC and MMAP records stand for a SPACE, and for samples that only name their
 * program. Called by kmod_merge, in the order of time.
 */
#ifndef MD_KMOD_SPACE_H
#define MD_KMOD_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/pidmap.h"
#include "daemon/record.h"

/* What the numbers of one ring mean. All zero: nothing yet. */
struct md_kmod_files {
	struct morph_file *files[MORPH_NR_FILES];
};

void md_kmod_files_fini(struct md_kmod_files *files);
/* From here on in this ring, its number means @file, which was checked. Return: 0 or -ENOMEM. */
int md_kmod_files_put(struct md_kmod_files *files, const struct morph_file *file);

/* EXEC and MMAPs in place of @space. Return: 0 or -ENOMEM. */
int md_kmod_space_add(const struct md_kmod_files *files, const struct morph_space *space,
		      struct md_buf *out);
/* The same in front of samples whose flags name a program: it is mapped nowhere. */
int md_kmod_program_add(const struct md_kmod_files *files, const struct morph_task *samples,
			struct md_buf *out);

#endif
