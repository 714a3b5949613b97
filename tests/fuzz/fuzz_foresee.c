// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_foresee - any bytes as code behind a sample.
 *
 * The first bytes are what is known of the registers, their values, and the top of the stack. The code itself serves as
 * constants. The branches lie in the code, and nothing is read behind it. With fewer known registers and a smaller stack
 * the same branches are found, or the first of them.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/foresee/foresee.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define START	    0x401000
#define STACK_WORDS 8

struct code {
	const uint8_t *bytes;
	size_t size;
	unsigned int nr_calls;
};

struct input {
	uint16_t known[2];
	uint8_t nr_stack[2];
	uint64_t bias, registers[16], stack[STACK_WORDS];
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

static bool constant_at(void *data, uint64_t vaddr, void *to, size_t size)
{
	const struct code *code = data;

	if (!size || size > 8)
		abort();
	if (vaddr - START >= code->size || code->size - (vaddr - START) < size)
		return false;
	memcpy(to, code->bytes + (vaddr - START), size);
	return true;
}

static uint32_t foresee(const uint8_t *data, size_t size, const struct input *input, uint16_t known,
			uint32_t nr_stack, struct mp_foreseen_way ways[MP_FORESEE_WAYS])
{
	struct code code = {data, size, 0};
	struct mp_foresee_code given = {code_at, constant_at, &code};
	/* A copy of exactly the words that must be there. */
	uint64_t *stack = malloc(nr_stack * sizeof(*stack) + 1);
	struct mp_foresee_sample sample = {START, input->bias, input->registers,
					   known, stack,       nr_stack};
	uint32_t nr;

	if (!stack)
		return 0;
	memcpy(stack, input->stack, nr_stack * sizeof(*stack));
	nr = mp_foresee(&given, &sample, ways);
	free(stack);

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
	struct input input;
	uint32_t nr, nr_fewer, nr_stack;

	if (size < sizeof(input))
		return 0;
	memcpy(&input, data, sizeof(input));
	data += sizeof(input);
	size -= sizeof(input);
	nr_stack = input.nr_stack[0] % (STACK_WORDS + 1);
	nr = foresee(data, size, &input, input.known[0], nr_stack, ways);
	nr_fewer = foresee(data, size, &input, input.known[0] & input.known[1],
			   input.nr_stack[1] % (nr_stack + 1), fewer);
	if (nr_fewer > nr)
		abort();
	for (uint32_t i = 0; i < nr_fewer; i++)
		if (ways[i].vaddr != fewer[i].vaddr || ways[i].taken != fewer[i].taken)
			abort();
	return 0;
}
