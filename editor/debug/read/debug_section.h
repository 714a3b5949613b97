// SPDX-License-Identifier: Apache-2.0
/*
 * debug_section - the bytes of one section of debug information, old and new. Called by debug_*.
 *
 * Most bytes stay, so only changes are kept: pieces that replace bytes of the same
 * size, and appended bytes. A section that was compressed (SHF_COMPRESSED, zlib) is
 * written compressed.
 */
#ifndef ME_DEBUG_SECTION_H
#define ME_DEBUG_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/base/bytes.h"
#include "editor/place/output_parts.h"
#include "libprof/elf/elf.h"

struct me_debug_piece {
	uint64_t off;
	uint8_t *bytes; /* owned */
	size_t size;
};

struct me_debug_section {
	uint32_t index;	     /* in the original; 0: it has no such section */
	uint32_t new_index;  /* in the output; 0: the section is unchanged */
	const uint8_t *data; /* uncompressed */
	size_t size;
	uint8_t *inflated;	       /* owned: @data if the section was compressed; else NULL */
	struct me_debug_piece *pieces; /* replaced bytes, ascending, not overlapping */
	uint32_t nr_pieces, cap_pieces;
	struct me_bytes added; /* appended to the old bytes */
	bool replaced;	       /* @added replaces all old bytes */
};

/*
 * me_debug_section_open - find section @name, which may be absent.
 * Return: 0, -ENOMEM, -EPERM it has a form that is not understood. Ownership:
 * me_debug_section_fini(@out).
 */
int me_debug_section_open(const struct mp_elf *elf, const char *name, struct me_debug_section *out);
void me_debug_section_fini(struct me_debug_section *section);

/*
 * me_debug_section_replace - replace the @size bytes at @off; calls come in ascending
 * order. Return: 0, -ENOMEM. Ownership: takes @bytes, after an error too.
 */
int me_debug_section_replace(struct me_debug_section *section, uint64_t off, uint8_t *bytes,
			     size_t size);
/* me_debug_section_changed - must the section be written? */
bool me_debug_section_changed(const struct me_debug_section *section);
/* me_debug_section_has_room - may @more bytes be appended? Offsets have 32 bits. */
bool me_debug_section_has_room(const struct me_debug_section *section, uint64_t more);

/*
 * me_debug_section_put - append the new contents to @output, aligned as @header says;
 * sets its offset and size. Ownership: goes over to @output. Return: 0, -ENOMEM.
 */
int me_debug_section_put(struct me_debug_section *section, Elf64_Shdr *header,
			 struct me_output_parts *output);

#endif
