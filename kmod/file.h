/* SPDX-License-Identifier: GPL-2.0 */
/*
 * file - a mapped file, stored once for all processes that map it, with all facts that
 * distinguish it.
 * It stays for a while after its last mapping ends: the next process that runs the program
 * uses the same entry, and the reader knows that file already.
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
	u64 serial; /* 1, 2, ...; never reused */
	/* The FILE record, except its time, number and CPU. */
	struct morph_file file;
	/* and the path */
};

/*
 * morph_mapped_get - the file of @mmap, with @path of @len bytes. Release it with
 * morph_mapped_put().
 * Return: NULL if out of memory.
 * Context: any but interrupts; does not sleep.
 */
struct morph_mapped *morph_mapped_get(const struct morph_mmap *mmap, const char *path, u32 len);

static inline void morph_mapped_put(struct morph_mapped *mapped)
{
	if (mapped)
		atomic_fetch_dec_release(&mapped->nr_users);
}

/* Context: none of the files is in use. */
void morph_mapped_free_all(void);

#endif
