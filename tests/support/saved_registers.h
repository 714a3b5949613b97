// SPDX-License-Identifier: Apache-2.0
/*
 * saved_registers - what an instruction does with the registers that a function saves for its caller: rbx,
 * rbp, r12 to r15. Used by tools that say what saves cost.
 */
#ifndef TESTS_SAVED_REGISTERS_H
#define TESTS_SAVED_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NR_REGISTERS 16 /* bit 0 of masks: rax, 3: rbx, 5: rbp, 12: r12 */

enum register_use {
	REGISTER_USE,
	REGISTER_PUSH, /* of the register itself */
	REGISTER_POP,
};

struct saved_registers {
	unsigned int mask; /* registers; 0: none of these */
	uint8_t len;	   /* of the instruction */
	enum register_use use;
};

/* Return: false: the bytes cannot be decoded. */
bool saved_registers_decode(const uint8_t *bytes, size_t avail, struct saved_registers *out);

#endif
