// SPDX-License-Identifier: Apache-2.0
/* memory - looks each byte of a load up; see memory_private.h. Called by operand. */
#include "libprof/foresee/memory_private.h"

/* Return: the newest store to @address; NULL: none. */
static const struct mp_stored *stored_at(const struct mp_memory *memory, uint64_t address)
{
	for (uint32_t i = memory->nr_stores; i > 0; i--)
		if (address - memory->stores[i - 1].address < memory->stores[i - 1].size)
			return &memory->stores[i - 1];
	return NULL;
}

/* Reads a byte that is no constant. */
static bool byte_read(const struct mp_memory *memory, uint64_t address, uint8_t *byte)
{
	const struct mp_stored *stored = stored_at(memory, address);
	uint64_t off = address - memory->stack_address;

	if (stored) {
		*byte = (uint8_t)(stored->value >> (address - stored->address) % 8 * 8);
		return stored->is_known;
	}
	if (off >= memory->stack_size)
		return false;
	*byte = (uint8_t)(memory->stack[off / 8] >> off % 8 * 8);
	return true;
}

static bool constant_read(const struct mp_memory *memory, uint64_t address, unsigned int size,
			  uint64_t *value)
{
	uint8_t bytes[8];

	if (!memory->file->constant ||
	    !memory->file->constant(memory->file->data, address + memory->bias, bytes, size))
		return false;
	*value = 0;
	for (unsigned int i = 0; i < size; i++)
		*value |= (uint64_t)bytes[i] << i * 8;
	return true;
}

bool mp_memory_read(const struct mp_memory *memory, uint64_t address, unsigned int size,
		    uint64_t *value)
{
	uint64_t read = 0;
	uint8_t byte;

	for (unsigned int i = 0; i < size; i++) {
		if (!byte_read(memory, address + i, &byte))
			return !i && !stored_at(memory, address) &&
			       constant_read(memory, address, size, value);
		read |= (uint64_t)byte << i * 8;
	}
	*value = read;
	return true;
}

static void add(struct mp_memory *memory, struct mp_stored stored)
{
	if (memory->nr_stores == MP_STORES_MAX)
		mp_memory_forget_all(memory);
	memory->stores[memory->nr_stores++] = stored;
}

void mp_memory_write(struct mp_memory *memory, uint64_t address, unsigned int size, uint64_t value)
{
	add(memory, (struct mp_stored){address, value, (uint8_t)size, true});
}

void mp_memory_forget(struct mp_memory *memory, uint64_t address, unsigned int size)
{
	add(memory, (struct mp_stored){address, 0, (uint8_t)size, false});
}

void mp_memory_forget_all(struct mp_memory *memory)
{
	memory->nr_stores = 0;
	memory->stack_size = 0;
}
