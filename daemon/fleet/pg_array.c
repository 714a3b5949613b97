// SPDX-License-Identifier: Apache-2.0
/* pg_array - PostgreSQL's binary arrays; see pg_array.h. */
#include "daemon/fleet/pg_array.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* dimensions, are there NULLs, type, elements, index of the first */
#define HEADER 20

void md_pg_put(char *out, int64_t value, size_t size)
{
	uint64_t bits = (uint64_t)value;

	for (size_t i = size; i-- > 0; bits >>= 8)
		out[i] = (char)(bits & 0xff);
}

int64_t md_pg_get(const char *data, size_t size)
{
	uint64_t bits = size && data[0] & 0x80 ? UINT64_MAX : 0;

	for (size_t i = 0; i < size; i++)
		bits = bits << 8 | (uint8_t)data[i];
	return (int64_t)bits;
}

static bool reserve(struct md_pg_array *array, size_t more)
{
	size_t room = array->room ? array->room : 256;
	char *bigger;

	if (array->failed || more > INT_MAX || array->size > INT_MAX - more) {
		array->failed = true;
		return false;
	}
	while (room < array->size + more)
		room *= 2;
	if (room == array->room)
		return true;
	bigger = realloc(array->bytes, room);
	if (!bigger) {
		array->failed = true;
		return false;
	}
	array->bytes = bigger;
	array->room = room;
	return true;
}

void md_pg_array_clear(struct md_pg_array *array)
{
	array->size = 0;
	array->nr = 0;
	array->failed = false;
	if (!reserve(array, HEADER))
		return;
	memset(array->bytes, 0, HEADER);
	md_pg_put(array->bytes, 1, 4);
	md_pg_put(array->bytes + 8, array->type, 4);
	md_pg_put(array->bytes + 16, 1, 4);
	array->size = HEADER;
}

/* Room for an element of @size bytes behind its length; -1: a NULL, without bytes. */
static char *add(struct md_pg_array *array, int64_t size)
{
	char *at;

	if (!reserve(array, 4 + (size > 0 ? (size_t)size : 0)))
		return NULL;
	at = array->bytes + array->size;
	md_pg_put(at, size, 4);
	array->size += 4 + (size > 0 ? (size_t)size : 0);
	md_pg_put(array->bytes + 12, ++array->nr, 4);
	return at + 4;
}

void md_pg_array_add(struct md_pg_array *array, const void *data, size_t size)
{
	char *at = size <= INT_MAX ? add(array, (int64_t)size) : NULL;

	if (at && size)
		memcpy(at, data, size);
	array->failed |= !at;
}

void md_pg_array_add_null(struct md_pg_array *array)
{
	if (add(array, -1))
		md_pg_put(array->bytes + 4, 1, 4);
}

void md_pg_array_add_number(struct md_pg_array *array, int64_t value)
{
	size_t size = array->type == MD_PG_BOOL	  ? 1
		      : array->type == MD_PG_INT2 ? 2
		      : array->type == MD_PG_INT4 ? 4
						  : 8;
	char *at = add(array, (int64_t)size);

	if (at)
		md_pg_put(at, value, size);
}
