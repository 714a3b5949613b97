// SPDX-License-Identifier: Apache-2.0
/*
 * poll_code - the instructions of a polling point, which test whether a collector asks for paths,
 * and those that write the number of the present path down (libprof/note/polls.h). Called by
 * stub_code.
 *
 * They use the flags and a second register: a free one, or one that a vector register saves
 * meanwhile. They use no stack and no lock. They may be interrupted, run in several threads at
 * once, and be left in the middle; then one path is not noted. The file's contents are never used
 * as an address: at worst the program writes to another place of the file.
 */
#ifndef ME_POLL_CODE_H
#define ME_POLL_CODE_H

#include <stdint.h>

#include "editor/instrumentation.h"
#include "libprof/note/polls.h"

/* A private page of the process follows the memory that maps the file. The runtime writes the
 * address of mp_polls.polls to its start. */
#define ME_POLLS_BYTES (sizeof(struct mp_polls) + 4096)

#define ME_POLL_CODE_SIZE 13

uint32_t me_note_code_size(const struct me_stub *stub);
/*
 * Write the poll, and the code that notes. @polls: address of the memory; @vaddr: of @out in
 * the output; @notes: of the code that notes, which continues where the block is.
 * Return: 0, -ERANGE out of reach.
 */
int me_poll_code_write(uint64_t polls, uint64_t notes, uint64_t vaddr, uint8_t *out);
int me_note_code_write(const struct me_stub *stub, uint64_t polls, uint64_t vaddr, uint8_t *out);

#endif
