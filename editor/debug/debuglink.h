// SPDX-License-Identifier: Apache-2.0
/*
 * debuglink - the section .gnu_debuglink: name and checksum of a debug file. Debuggers
 * accept only a file with that checksum. Called by emit, explain and
 * debug_file_find.
 */
#ifndef ME_DEBUGLINK_H
#define ME_DEBUGLINK_H

#include <stddef.h>
#include <stdint.h>

#include "editor/place/output_parts.h"
#include "libprof/elf/elf.h"

#define ME_DEBUGLINK_SECTION ".gnu_debuglink"

struct me_debuglink {
	const char *name; /* without a path; lies in the ELF file that was read */
	uint32_t crc;
};

/* me_debuglink_read - Return: 0; -ENOENT @elf has no such section; -EBADMSG it is damaged. */
int me_debuglink_read(const struct mp_elf *elf, struct me_debuglink *out);
/* me_debuglink_make - the section's contents. Return: NULL if out of memory. Ownership: free(). */
uint8_t *me_debuglink_make(const char *name, uint32_t crc, size_t *size);

/* me_debuglink_crc - checksum of the @size bytes at @data. */
uint32_t me_debuglink_crc(const uint8_t *data, size_t size);
/* me_debuglink_crc_parts - checksum of the file that @output will become. */
uint32_t me_debuglink_crc_parts(const struct me_output_parts *output);

#endif
