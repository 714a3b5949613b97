// SPDX-License-Identifier: Apache-2.0
/*
 * plt_stub - recognises the stubs of a procedure linkage table (PLT), and the branches to them that
 * may go through the stub's slot instead. Called by rewrite and emit.
 *
 * A stub is `[endbr64] [bnd] jmp *slot(%rip)`, whatever section it lies in. The loader puts the
 * function's address into the slot, or that of the code which looks the function up.
 */
#ifndef ME_PLT_STUB_H
#define ME_PLT_STUB_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/elf/elf.h"

/* Bytes of `call stub` and of `jmp stub`. */
#define ME_PLT_BRANCH_SIZE 5
/* Bytes of `call *slot(%rip)` and of `jmp *slot(%rip)`. */
#define ME_SLOT_BRANCH_SIZE 6

/* Return: the address of the slot that the stub at @vaddr jumps through; 0: not a stub. */
uint64_t me_plt_stub_slot(const struct mp_elf *elf, uint64_t vaddr);
/*
 * Return: the slot of the stub that the branch at @vaddr leads to; 0: it is not a plain call, or
 * jump if @jump, of 5 bytes that leads to a stub.
 */
uint64_t me_plt_branch_slot(const struct mp_elf *elf, uint64_t vaddr, bool jump);

#endif
