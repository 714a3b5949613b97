// SPDX-License-Identifier: Apache-2.0
/*
 * memory - what is known of the program's memory: the copy of the stack that came with the sample, constants of the
 * file, and what was stored on the way. Addresses are run-time addresses.
 *
 *	a load of 8 bytes:  | stored on the way | copy of the stack |     all of them known, or the load is unknown
 */
#ifndef MP_FORESEE_MEMORY_PRIVATE_H
#define MP_FORESEE_MEMORY_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/foresee/foresee.h"

enum {
	MP_STORES_MAX = 64
};

struct mp_stored {
	uint64_t address, value;
	uint8_t size; /* bytes, 1 to 64; at most 8 if known */
	bool is_known;
};

struct mp_memory {
	const struct mp_foresee_code *file;
	uint64_t bias; /* link-time address = run-time address + bias */
	const uint64_t *stack;
	uint64_t stack_address;
	size_t stack_size; /* bytes; 0: none */
	struct mp_stored stores[MP_STORES_MAX];
	uint32_t nr_stores;
};

/* Reads @size (1 to 8) bytes. Return: false: not all of them are known. */
bool mp_memory_read(const struct mp_memory *memory, uint64_t address, unsigned int size,
		    uint64_t *value);
/* Stores the low @size (1 to 8) bytes of @value. */
void mp_memory_write(struct mp_memory *memory, uint64_t address, unsigned int size, uint64_t value);
/* Makes @size (1 to 64) bytes unknown. */
void mp_memory_forget(struct mp_memory *memory, uint64_t address, unsigned int size);
/* Something was stored at an unknown address: only constants stay known. */
void mp_memory_forget_all(struct mp_memory *memory);

#endif
