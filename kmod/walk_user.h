/* SPDX-License-Identifier: GPL-2.0 */
/*
 * walk_user - reads words of the interrupted program's memory. Page faults are off, so a word
 * that is not in memory goes to the label. No function may be called between begin and end.
 */
#ifndef MORPH_WALK_USER_H
#define MORPH_WALK_USER_H

#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#define MORPH_USER_END ((u64)TASK_SIZE_MAX)

/* The address for a read after a check that the CPU may not have waited for. */
#define morph_user_address(address) array_index_nospec(address, MORPH_USER_END)

#define morph_user_begin() __uaccess_begin()
#define morph_user_end()   __uaccess_end()
#define morph_user_get(word, address, label)                                                       \
	unsafe_get_user(word, (const u64 __user *)(unsigned long)(address), label)

#endif
