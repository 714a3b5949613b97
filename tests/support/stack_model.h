// SPDX-License-Identifier: Apache-2.0
/*
 * stack_model - a program made up from bytes: it calls, returns, jumps, takes signals and changes
 * stacks, in functions with unwind rules of each kind. At each sample, the kernel module's walk,
 * which remembers, must be the reference's, which does not, and what it calls certainly new must
 * be new. Used by a unit test and a fuzzer.
 */
#ifndef TESTS_STACK_MODEL_H
#define TESTS_STACK_MODEL_H

#include <stddef.h>
#include <stdint.h>

struct stack_model_totals {
	uint64_t samples, frames, read_again, aged;
	uint64_t new_frames;  /* calls since the last sample, among the frames of aged walks */
	uint64_t said_new;    /* of them: said to be certainly new */
	uint64_t complete;    /* walks to the bottom */
	uint64_t wrong, lied; /* another walk than the reference's; an old call said to be new */
};

/* Runs the program that @bytes are. Adds to @totals. */
void stack_model_run(const uint8_t *bytes, size_t size, struct stack_model_totals *totals);

#endif
