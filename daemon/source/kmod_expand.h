// SPDX-License-Identifier: Apache-2.0
/*
 * kmod_expand - expands the kernel module's short records into those that all sources use.
 *
 * Decides which EXEC and MMAP records replace a SPACE record, or go before samples that only
 * name their program. Called by kmod_merge, in the order of time.
 */
#ifndef MD_KMOD_EXPAND_H
#define MD_KMOD_EXPAND_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/record/record.h"

/* The files that one ring's numbers stand for. All zero: none known yet. */
struct md_kmod_files {
	struct morph_file *files[MORPH_NR_FILES];
};

void md_kmod_files_fini(struct md_kmod_files *files);
/*
 * From now on, the number in @file, which was checked, means @file in this ring. Return: 0 or
 * -ENOMEM.
 */
int md_kmod_files_put(struct md_kmod_files *files, const struct morph_file *file);

/* Adds an EXEC and MMAPs in place of @space. Return: 0 or -ENOMEM. */
int md_kmod_expand_space(const struct md_kmod_files *files, const struct morph_space *space,
			 struct md_buf *out);
/* Adds them for samples whose flags name a program; the program's address is not known. */
int md_kmod_expand_program(const struct md_kmod_files *files, const struct morph_task *samples,
			   struct md_buf *out);

#endif
