// SPDX-License-Identifier: Apache-2.0
/*
 * call_table - section .morph.calls, which says that an output samples calls by a clock of calls, and
 * how many of its functions count. It is not loaded. Written by the editor, checked by verify.
 */
#ifndef MP_CALL_TABLE_H
#define MP_CALL_TABLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MP_CALL_TABLE_SECTION ".morph.calls"
#define MP_CALL_TABLE_VERSION 1

struct mp_call_table {
	uint32_t version;
	uint32_t nr_functions;
};

/* Return: the section's bytes; NULL: no memory. Ownership: free(). */
static inline uint8_t *mp_call_table_new(uint32_t nr_functions, size_t *size)
{
	const struct mp_call_table table = {MP_CALL_TABLE_VERSION, nr_functions};
	uint8_t *bytes = malloc(sizeof(table));

	*size = sizeof(table);
	return bytes ? memcpy(bytes, &table, sizeof(table)) : NULL;
}

#endif
