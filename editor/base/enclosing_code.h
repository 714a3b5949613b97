// SPDX-License-Identifier: Apache-2.0
/*
 * enclosing_code - machine code that runs in place of _Unwind_FindEnclosingFunction() where a program asks for the
 * function around an address. For an address in a copy it asks for the copy's original instead.
 *
 * The editor puts it into files; verify compares it. evidence/enclosing says for which files.
 */
#ifndef ME_ENCLOSING_CODE_H
#define ME_ENCLOSING_CODE_H

#include <stdbool.h>
#include <stdint.h>

/* The table follows the code directly: an entry {number of entries, 0, 0}, then those, ascending. */
#define ME_ENCLOSING_CODE_SIZE 92
/* A CIE and the code's FDE. */
#define ME_ENCLOSING_FRAMES_SIZE 44
/* The FDE is at this offset. */
#define ME_ENCLOSING_FDE 24

/* Distances from the table's start: of a run of copies, and of the original's FDE. */
struct me_enclosing_entry {
	int32_t start;
	uint32_t size;
	int32_t function;
};

/* Writes the code for @vaddr, which ends in a jump through @slot. Return: false: @slot is out of reach. */
bool me_enclosing_code_write(uint64_t vaddr, uint64_t slot, uint8_t *out);
/* Writes unwind information, to be loaded at @vaddr, of the code at @code. Return: false: out of reach. */
bool me_enclosing_frames_write(uint64_t code, uint64_t vaddr, uint8_t *out);

#endif
