// SPDX-License-Identifier: Apache-2.0
/* insn_quick - the two halves of mp_insn_decode(), declared here so that tests can compare them. */
#ifndef MP_INSN_QUICK_H
#define MP_INSN_QUICK_H

#include "libprof/insn/insn.h"

/*
 * mp_insn_decode_quick - decodes the forms that compilers emit most.
 * Return: true with *@insn as mp_insn_decode_full() would fill it; false: call that
 * function.
 */
bool mp_insn_decode_quick(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct mp_insn *insn);

/* Decodes any instruction with Zydis. Return: 0, -EILSEQ. */
int mp_insn_decode_full(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct mp_insn *insn);

#endif
