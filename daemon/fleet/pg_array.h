// SPDX-License-Identifier: Apache-2.0
/*
 * pg_array - arrays as parameters of statements, in PostgreSQL's binary form, and numbers in its
 * results. Called by the sending and reading of counts.
 */
#ifndef MD_FLEET_PG_ARRAY_H
#define MD_FLEET_PG_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types' numbers, which PostgreSQL keeps for ever. */
enum md_pg_type {
	MD_PG_BOOL = 16,
	MD_PG_BYTEA = 17,
	MD_PG_INT8 = 20,
	MD_PG_INT2 = 21,
	MD_PG_INT4 = 23,
	MD_PG_TEXT = 25,
	MD_PG_FLOAT8 = 701,
	MD_PG_BOOLS = 1000,
	MD_PG_BYTEAS = 1001,
	MD_PG_INT2S = 1005,
	MD_PG_INT4S = 1007,
	MD_PG_TEXTS = 1009,
	MD_PG_INT8S = 1016,
};

/* An array that grows. Starts as zeros with its @type. Ownership: free(@bytes). */
struct md_pg_array {
	enum md_pg_type type; /* of an element */
	char *bytes;
	size_t size, room;
	uint32_t nr;
	bool failed; /* out of memory, or too large */
};

/* Empties the array, and keeps its memory. */
void md_pg_array_clear(struct md_pg_array *array);
void md_pg_array_add(struct md_pg_array *array, const void *data, size_t size);
void md_pg_array_add_null(struct md_pg_array *array);
/* For elements of 1, 2, 4 or 8 bytes, as the type says. */
void md_pg_array_add_number(struct md_pg_array *array, int64_t value);

/* Writes @value with @size bytes, the highest first. */
void md_pg_put(char *out, int64_t value, size_t size);
/* Reads a signed number of @size bytes. */
int64_t md_pg_get(const char *data, size_t size);

#endif
