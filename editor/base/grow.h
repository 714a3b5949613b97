// SPDX-License-Identifier: Apache-2.0
/* grow - arrays that grow by half. */
#ifndef ME_GROW_H
#define ME_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * me_grow - @array: address of a pointer to @*room elements of @size bytes. Return:
 * true if there is room for @wanted elements now.
 */
static inline bool me_grow(void *array, uint32_t *room, uint64_t wanted, size_t size)
{
	void **at = array, *bigger;
	uint64_t more = wanted + wanted / 2 + 16;

	if (wanted <= *room)
		return true;
	if (more > UINT32_MAX || !(bigger = reallocarray(*at, more, size)))
		return false;
	*at = bigger;
	*room = (uint32_t)more;
	return true;
}

#endif
