/* SPDX-License-Identifier: GPL-2.0 */
/*
 * file - what is mapped, one for all who map it, by all that tells it from another.
 *
 * It stays for a while when nobody has it mapped any more: the next one who runs the same program
 * has the same file, and its reader knows it already.
 */
#ifndef MORPH_FILE_H
#define MORPH_FILE_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/types.h>

#include "kmod/uapi/morph_abi.h"

struct morph_mapped {
	struct hlist_node node;
	atomic_t nr_users;
	u32 path_len;
	u64 serial; /* 1, 2, ...; never of another one */
	/* As it is said, but for its time, number and CPU. */
	struct morph_file file;
	/* and its path */
};

/*
 * morph_mapped_get - the file of @mmap, with @path of @len bytes; morph_mapped_put() it.
 * Return: NULL where there is no memory.
 * Context: any but interrupts; does not sleep.
 */
struct morph_mapped *morph_mapped_get(const struct morph_mmap *mmap, const char *path, u32 len);

static inline void morph_mapped_put(struct morph_mapped *mapped)
{
	if (mapped)
		atomic_fetch_dec_release(&mapped->nr_users);
}

/* Context: nobody uses any of them. */
void morph_mapped_free_all(void);

#endif
