/* SPDX-License-Identifier: GPL-2.0 */
/*
 * build_id - reads a file's GNU build-id if its first page is in the page cache.
 * The kernel's build_id_parse() is not exported.
 */
#ifndef MORPH_BUILD_ID_H
#define MORPH_BUILD_ID_H

#include <linux/fs.h>
#include <linux/types.h>

/*
 * Return: length of the build-id; 0 if there is none, or reading it would have to wait.
 * Context: any but NMI; does not sleep. @out: MORPH_BUILD_ID_MAX bytes.
 */
u32 morph_build_id_read(struct file *file, u8 *out);

#endif
