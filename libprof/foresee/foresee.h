// SPDX-License-Identifier: Apache-2.0
/*
 * foresee - which ways the next conditional branches go, by the registers of a sample.
 *
 * Only what follows from registers and immediates is known: nothing that is read from memory, and no address that an
 * instruction computes from its own place (the code may run elsewhere than at its link-time address). Every way that is
 * given is certain, as long as the registers are those of the moment before the first instruction.
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
	void *data;
};

#define MP_FORESEE_FLAGS 16 /* the index of rflags among the registers */

/*
 * mp_foresee - executes the code from link-time address @vaddr on. @registers: by x86's numbers (rax rcx rdx rbx rsp
 * rbp rsi rdi r8 to r15), then rflags, which is read only if it is known; @known: bit n: register n is known. Ends
 * before the first branch that is not decided, at calls, returns and indirect jumps, where bytes() has no code, and after
 * 100 instructions. The code may be anything: this takes constant memory and no more than 100 calls of bytes(). Return:
 * number of @ways, 0 to MP_FORESEE_WAYS, in the order of execution.
 */
uint32_t mp_foresee(const struct mp_foresee_code *code, uint64_t vaddr, const uint64_t *registers,
		    uint32_t known, struct mp_foreseen_way ways[MP_FORESEE_WAYS]);

#endif
