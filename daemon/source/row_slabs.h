// SPDX-License-Identifier: Apache-2.0
/*
 * row_slabs - lays the unwind rows of files into slabs of memory, as bpf/wire_rows.h describes, where
 * the BPF programs find them. Decides the places; who owns the memory of a slab decides its caller,
 * bpf_rows. Nothing is moved or freed before the end.
 */
#ifndef MD_ROW_SLABS_H
#define MD_ROW_SLABS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/source/bpf/wire_rows.h"
#include "libprof/unwind/rows.h"

struct md_row_slabs {
	/*
	 * Puts the memory of slab @nr, MD_WIRE_SLAB zeroed bytes, at @at. Return: 0, -errno. It is
	 * called with 0, 1, 2, ..., and with a number again only if it failed.
	 */
	int (*add)(void *arg, uint32_t nr, uint8_t *at);
	void *arg;
	uint8_t *memory;   /* addresses for all MD_WIRE_SLABS slabs, one behind the other */
	uint32_t nr, used; /* slabs, and bytes from the start of the first one */
};

/*
 * md_row_slabs_add - adds rows of the form of rows_laid, which were checked. Sets the members of @file that
 * describe them. *@out: the rows where they lie now; without rows, nothing. @uses_up: @rows lie in memory
 * from malloc(), which is given back while it is copied. After success, they must not be read again.
 * Return: 0, -ENOSPC, -errno of add().
 */
int md_row_slabs_add(struct md_row_slabs *slabs, const struct mp_rows *rows, bool uses_up,
		     struct md_wire_file *file, struct mp_rows *out);
/*
 * md_row_slabs_find - sets the members of @file that describe the rows if @rows lie in these slabs.
 * Return: false: they do not.
 */
bool md_row_slabs_find(const struct md_row_slabs *slabs, const struct mp_rows *rows,
		       struct md_wire_file *file);

#endif
