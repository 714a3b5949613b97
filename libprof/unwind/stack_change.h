// SPDX-License-Identifier: Apache-2.0
/*
 * stack_change - finds instructions that move a thread to another stack. Functions that do so, such
 * as swapcontext(), often have unwind information that is silent about it: from there on, the stack
 * pointer is not the one that the FDE's program speaks of. Called by rows_compile.
 */
#ifndef MP_STACK_CHANGE_H
#define MP_STACK_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/elf.h"

/* The code of a file. @bytes: gives [vaddr, vaddr + size), up to its next call; NULL: not there. */
struct mp_code_bytes {
	const uint8_t *(*bytes)(void *arg, uint64_t vaddr, uint64_t size);
	void *arg;
};

/* The code of @elf, which must stay open. */
struct mp_code_bytes mp_code_bytes_of(const struct mp_elf *elf);

/* Return: false: there is no such instruction in the @size bytes at @code. Tells that fast. */
bool mp_stack_may_change(const uint8_t *code, size_t size);

/*
 * mp_stack_change - looks for instructions in [@from, @to) of the @size bytes at @code that set rsp to
 * a word of memory, or to a value that another register has. @code begins with an instruction.
 * Return: the offset behind the first of them; @to: there is none, or it ends there.
 */
size_t mp_stack_change(const uint8_t *code, size_t size, size_t from, size_t to);

#endif
