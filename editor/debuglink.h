// SPDX-License-Identifier: Apache-2.0
/*
 * debuglink - the section .gnu_debuglink: the name of a file of debug information, and a checksum
 * of it, by which debuggers know that it is the right one.
 */
#ifndef ME_DEBUGLINK_H
#define ME_DEBUGLINK_H

#include <stddef.h>
#include <stdint.h>

#include "editor/image.h"
#include "libprof/elf.h"

#define ME_DEBUGLINK_SECTION ".gnu_debuglink"

struct me_debuglink {
	const char *name; /* in the file that was read; no path */
	uint32_t crc;
};

/* me_debuglink_read - Return: 0; -ENOENT @elf has none; -EBADMSG it is damaged. */
int me_debuglink_read(const struct mp_elf *elf, struct me_debuglink *out);
/* The section's content. Return: NULL: out of memory. Ownership: the caller's, by free(). */
uint8_t *me_debuglink_make(const char *name, uint32_t crc, size_t *size);

uint32_t me_debuglink_crc(const uint8_t *data, size_t size);
/* The same of the file that @image will be. */
uint32_t me_debuglink_crc_image(const struct me_image *image);

#endif
