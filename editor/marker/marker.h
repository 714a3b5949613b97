// SPDX-License-Identifier: Apache-2.0
/*
 * marker - the code markers of a file: variables __morph_marker_NAME of 8 bytes, to which only
 * increments refer (Documentation/markers.md). Decides nothing about code.
 */
#ifndef ME_MARKER_H
#define ME_MARKER_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/elf/elf.h"

#define ME_MARKER_PREFIX  "__morph_marker_"
#define ME_MARKER_SECTION ".morph.markers"
#define ME_MARKER_BYTES	  8

struct me_marker {
	uint64_t vaddr;
	const char *name; /* whole symbol; points into the ELF file */
};

struct me_markers {
	struct me_marker *list; /* ascending vaddr */
	uint32_t nr;
};

/*
 * me_markers_find - the markers of @elf, by .symtab; none in a stripped file.
 * Return: 0, -ENOMEM. Ownership: me_markers_fini(@out).
 */
int me_markers_find(const struct mp_elf *elf, struct me_markers *out, struct mp_err *err);
void me_markers_fini(struct me_markers *markers);
/* Return: index of the marker that holds all of [@vaddr, @vaddr + @size), or UINT32_MAX. */
uint32_t me_marker_at(const struct me_markers *markers, uint64_t vaddr, uint64_t size);
/* Does [@vaddr, @vaddr + @size) overlap the memory of any marker? */
bool me_marker_touches(const struct me_markers *markers, uint64_t vaddr, uint64_t size);

/* A marker's place in the source. */
struct me_marker_place {
	const char *file, *function, *kind; /* not ended by 0 */
	int file_len, function_len, kind_len;
	int line;
};

/* me_marker_find_place - what the section .morph.markers says of the symbol @name.
 * Return: false: nothing. */
bool me_marker_find_place(const struct mp_elf *elf, const char *name, struct me_marker_place *out);

#endif
