// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_foresee - any bytes as code behind a sample.
 *
 * The first bytes are what is known of the registers, and their values. The branches lie in the code, and nothing is
 * read behind it. With fewer known registers the same branches are found, or the first of them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/foresee/foresee.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define START 0x401000

struct code {
	const uint8_t *bytes;
	size_t size;
	unsigned int nr_calls;
};

/* Gives a copy of exactly the bytes that must be there. */
static const uint8_t *code_at(void *data, uint64_t vaddr, size_t *avail)
{
	static uint8_t *copy;
	struct code *code = data;

	if (++code->nr_calls > 100)
		abort();
	if (vaddr - START >= code->size)
		return NULL;
	*avail = code->size - (vaddr - START);
	*avail = *avail < 15 ? *avail : 15;
	free(copy);
	copy = malloc(*avail);
	if (copy)
		memcpy(copy, code->bytes + (vaddr - START), *avail);
	return copy;
}

static uint32_t foresee(const uint8_t *data, size_t size, const uint64_t registers[16],
			uint16_t known, struct mp_foreseen_way ways[MP_FORESEE_WAYS])
{
	struct code code = {data, size, 0};
	struct mp_foresee_code given = {code_at, &code};
	uint32_t nr = mp_foresee(&given, START, registers, known, ways);

	if (nr > MP_FORESEE_WAYS)
		abort();
	for (uint32_t i = 0; i < nr; i++)
		if (ways[i].vaddr - START >= size)
			abort();
	return nr;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mp_foreseen_way ways[MP_FORESEE_WAYS], fewer[MP_FORESEE_WAYS];
	uint64_t registers[16];
	uint16_t known[2];
	uint32_t nr, nr_fewer;

	if (size < sizeof(known) + sizeof(registers))
		return 0;
	memcpy(known, data, sizeof(known));
	memcpy(registers, data + sizeof(known), sizeof(registers));
	data += sizeof(known) + sizeof(registers);
	size -= sizeof(known) + sizeof(registers);
	nr = foresee(data, size, registers, known[0], ways);
	nr_fewer = foresee(data, size, registers, known[0] & known[1], fewer);
	if (nr_fewer > nr)
		abort();
	for (uint32_t i = 0; i < nr_fewer; i++)
		if (ways[i].vaddr != fewer[i].vaddr || ways[i].taken != fewer[i].taken)
			abort();
	return 0;
}
