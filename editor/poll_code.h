// SPDX-License-Identifier: Apache-2.0
/*
 * poll_code - the instructions that look whether somebody wants to know the path that ends here,
 * and those that write it down (libprof/polls.h).
 *
 * They use the flags, and a register that is free beside the path's, or one that they keep in a vector
 * register meanwhile; no stack, no lock. They may be interrupted, run by several threads at once, and
 * left in the middle: then one path is not written.
 * What the file says is never an address: at worst it makes the program write in a place of the file
 * that is another's.
 */
#ifndef ME_POLL_CODE_H
#define ME_POLL_CODE_H

#include <stdint.h>

#include "editor/plan.h"
#include "libprof/polls.h"

/* Behind the memory that is the file's is a page of the process's own. The runtime puts the address
 * of mp_polls.polls at its beginning. */
#define ME_POLLS_BYTES (sizeof(struct mp_polls) + 4096)

#define ME_POLL_CODE_SIZE 13

uint32_t me_note_code_size(const struct me_stub *stub);
/*
 * Both: @polls: address of the memory; @vaddr: where @out will be. Return: 0, -ERANGE out of reach.
 * @notes: where the code for writing it down is; that jumps to wherever control goes on.
 */
int me_poll_code_write(uint64_t polls, uint64_t notes, uint64_t vaddr, uint8_t *out);
int me_note_code_write(const struct me_stub *stub, uint64_t polls, uint64_t vaddr, uint8_t *out);

#endif
