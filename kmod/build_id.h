/* SPDX-License-Identifier: GPL-2.0 */
/*
 * build_id - a file's GNU build-id, if its first page is in the page cache.
 *
 * build_id_parse() of the kernel is not exported.
 */
#ifndef MORPH_BUILD_ID_H
#define MORPH_BUILD_ID_H

#include <linux/fs.h>
#include <linux/types.h>

/*
 * Return: its length; 0 where there is none, or it cannot be had without waiting.
 * Context: any but NMI; does not sleep. @out: MORPH_BUILD_ID_MAX bytes.
 */
u32 morph_build_id_read(struct file *file, u8 *out);

#endif
