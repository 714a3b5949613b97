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
/*
 * x86's array_index_nospec() compares with an operand of 32 bits if the limit is a constant, as it is in a
 * kernel without pages of five levels. So the limit goes through a register.
 */
static inline u64 morph_user_address(u64 address)
{
	unsigned long end = MORPH_USER_END;

	OPTIMIZER_HIDE_VAR(end);
	return array_index_nospec(address, end);
}

#define morph_user_begin() __uaccess_begin()
#define morph_user_end()   __uaccess_end()
#define morph_user_get(word, address, label)                                                       \
	unsafe_get_user(word, (const u64 __user *)(unsigned long)(address), label)

#endif
