// SPDX-License-Identifier: Apache-2.0
/*
 * foresee - which ways the next conditional branches go, by the registers of a sample.
 *
 * What follows from registers, immediates, constants of the file and a copy of the stack is known, and what was stored on
 * the way; nothing else that is read from memory. Every way that is given is certain, as long as registers and stack are
 * those of the moment before the first instruction.
 */
#ifndef MP_FORESEE_H
#define MP_FORESEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MP_FORESEE_WAYS 8 /* most branches from one sample */

struct mp_foreseen_way {
	uint64_t vaddr; /* link-time address of the conditional branch instruction */
	bool taken;
};

struct mp_foresee_code {
	/* Gives the bytes of code at @vaddr, and at least min(15, what there is) of them; NULL: none. */
	const uint8_t *(*bytes)(void *data, uint64_t vaddr, size_t *avail);
	/* Copies @size (1 to 8) bytes at @vaddr that no program ever changes to @to. Return: false: they are no such. */
	bool (*constant)(void *data, uint64_t vaddr, void *to, size_t size);
	void *data;
};

#define MP_FORESEE_FLAGS 16 /* the index of rflags among the registers */
#define MP_FORESEE_RSP	 4

struct mp_foresee_sample {
	uint64_t vaddr; /* link-time address of the first instruction */
	uint64_t bias;	/* link-time address = run-time address + bias, modulo 2^64 */
	const uint64_t *
		registers; /* by x86's numbers (rax rcx rdx rbx rsp rbp rsi rdi r8 to r15), then rflags */
	uint32_t known;	       /* bit n: register n is known; others are not read */
	const uint64_t *stack; /* words from rsp on, which is known then */
	uint32_t nr_stack;
};

/*
 * mp_foresee - executes code from @sample on. Ends before the first branch that is not decided, at jumps, calls and
 * returns of which the target is not known or is no code of the file, at system calls, and after 100 instructions. The code
 * may be anything: this takes constant memory, no more than 100 calls of bytes(), and few of constant() for each. Return:
 * number of @ways, 0 to MP_FORESEE_WAYS, in the order of execution.
 */
uint32_t mp_foresee(const struct mp_foresee_code *code, const struct mp_foresee_sample *sample,
		    struct mp_foreseen_way ways[MP_FORESEE_WAYS]);

#endif
