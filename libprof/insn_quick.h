// SPDX-License-Identifier: Apache-2.0
/*
 * insn_quick - the two halves of mp_insn_decode(), apart so that tests can compare them.
 */
#ifndef MP_INSN_QUICK_H
#define MP_INSN_QUICK_H

#include "libprof/insn.h"

/*
 * mp_insn_decode_quick - an instruction of a form that compilers emit all the time.
 * Return: true, and *@insn is what mp_insn_decode_full() would say; false: ask that one.
 */
bool mp_insn_decode_quick(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct mp_insn *insn);

/* Any instruction, by Zydis. Return: 0, -EILSEQ. */
int mp_insn_decode_full(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct mp_insn *insn);

#endif
