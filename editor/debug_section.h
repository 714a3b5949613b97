// SPDX-License-Identifier: Apache-2.0
/*
 * debug_section - the bytes of one section of debug information, before and after.
 *
 * Most bytes stay, so what is new is kept beside them: pieces that replace others of the same
 * size, and what is appended. What came compressed (SHF_COMPRESSED, zlib) leaves compressed.
 */
#ifndef ME_DEBUG_SECTION_H
#define ME_DEBUG_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/bytes.h"
#include "editor/image.h"
#include "libprof/elf.h"

struct me_debug_piece {
	uint64_t off;
	uint8_t *bytes; /* owned */
	size_t size;
};

struct me_debug_section {
	uint32_t index;	     /* of the original; 0: the original has none */
	uint32_t new_index;  /* of the output; 0: nothing changes */
	const uint8_t *data; /* uncompressed */
	size_t size;
	uint8_t *inflated;	       /* owned: == data where it came compressed */
	struct me_debug_piece *pieces; /* replaced bytes, ascending, not overlapping */
	uint32_t nr_pieces;
	struct me_bytes added; /* behind the old bytes */
	bool replaced;	       /* @added is all there is; no old bytes */
};

/*
 * me_debug_section_open - find section @name, which may be absent.
 * Return: 0, -ENOMEM, -EPERM it is there, but not in a form that is understood.
 * Ownership: me_debug_section_fini(@out).
 */
int me_debug_section_open(const struct mp_elf *elf, const char *name, struct me_debug_section *out);
void me_debug_section_fini(struct me_debug_section *section);

/* Takes @bytes, also when this fails. Pieces come in ascending order. Return: 0, -ENOMEM. */
int me_debug_section_replace(struct me_debug_section *section, uint64_t off, uint8_t *bytes,
			     size_t size);
bool me_debug_section_changed(const struct me_debug_section *section);
/* Offsets are of 32 bits: may @more bytes be appended? */
bool me_debug_section_has_room(const struct me_debug_section *section, uint64_t more);

/*
 * me_debug_section_put - append the new bytes to @image; offset, size and flags go to @header,
 * of which the alignment is minded. Owned bytes go over to @image. Return: 0, -ENOMEM.
 */
int me_debug_section_put(struct me_debug_section *section, Elf64_Shdr *header,
			 struct me_image *image);

#endif
