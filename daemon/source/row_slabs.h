// SPDX-License-Identifier: Apache-2.0
/*
 * row_slabs - lays the unwind rows of files into slabs of memory, as bpf/wire_rows.h describes, where
 * the BPF programs find them. Decides the places; who owns the memory of a slab decides its caller,
 * bpf_rows. Nothing is moved or freed before the end.
 */
#ifndef MD_ROW_SLABS_H
#define MD_ROW_SLABS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/source/bpf/wire_rows.h"

struct md_row_slabs {
	/*
	 * Gives the memory of slab @nr, MD_WIRE_SLAB_ROOM zeroed bytes. Return: 0, -errno. It is
	 * called with 0, 1, 2, ..., and with a number again only if it failed.
	 */
	int (*add)(void *arg, uint32_t nr, uint8_t **out);
	void *arg;
	uint32_t nr, used; /* slabs, and bytes from the start of the first one */
	uint8_t *slabs[MD_WIRE_SLABS];
};

/*
 * md_row_slabs_add - adds the @size bytes of rows at @bytes (8-aligned), which may be hostile. Sets the
 * members of @file that describe the rows. Return: 0, -EBADMSG (not sound), -E2BIG (more rows in one
 * page than can be described), -ENOSPC, -errno of add().
 */
int md_row_slabs_add(struct md_row_slabs *slabs, const void *bytes, size_t size,
		     struct md_wire_file *file);

#endif
