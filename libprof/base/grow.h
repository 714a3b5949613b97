// SPDX-License-Identifier: Apache-2.0
/*
 * grow - arrays that grow by half, such as the three fields
 *
 *   struct mp_edge *edges;
 *   uint32_t nr_edges, max_edges;
 *
 * where max_edges elements have room and nr_edges are used. All begin as zeros; free() ends the array.
 */
#ifndef MP_GROW_H
#define MP_GROW_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

struct mp_grown {
	void *start;
	uint64_t capacity;
};

/* Slow path of mp_grow(). @most: the largest room: with it, counting one more does not overflow. Return: what it was given, if there is no memory. */
struct mp_grown mp_grow_array(void *array, uint64_t room, uint64_t wanted, uint64_t most,
			      size_t size);

/*
 * mp_grow - @array and @room: a pointer to elements, and a number of any unsigned type: how many have room.
 * Both are evaluated several times. Return: 0: @wanted elements have room now; -ENOMEM: nothing has changed.
 * What is new is not set to zero.
 */
#define mp_grow(array, room, wanted)                                                               \
	({                                                                                         \
		_Static_assert(!__builtin_types_compatible_p(__typeof__(*(array)), void),          \
			       "elements have a size");                                            \
		uint64_t wanted_ = (wanted);                                                       \
                                                                                                   \
		if (__builtin_expect(wanted_ > (room), 0)) {                                       \
			struct mp_grown grown_ = mp_grow_array(                                    \
				(array), (room), wanted_, (__typeof__(room))-2, sizeof(*(array))); \
                                                                                                   \
			(array) = grown_.start;                                                    \
			(room) = (__typeof__(room))grown_.capacity;                                \
		}                                                                                  \
		wanted_ > (room) ? -ENOMEM : 0;                                                    \
	})

/*
 * mp_push - Appends an element, which is the last argument, to the @nr of @array. All but that are evaluated
 * several times. Return: 0 or -ENOMEM.
 */
#define mp_push(array, nr, room, ...)                                                              \
	({                                                                                         \
		int rc_ = mp_grow(array, room, (uint64_t)(nr) + 1);                                \
                                                                                                   \
		if (!rc_)                                                                          \
			(array)[(nr)++] = (__VA_ARGS__);                                           \
		rc_;                                                                               \
	})

#endif
