// SPDX-License-Identifier: Apache-2.0
/*
 * perf_stack - registers and copies of the user stack in perf's samples: how to ask for them, and
 * where they are in a sample. Called by perf_event and perf_decode.
 */
#ifndef MD_PERF_STACK_H
#define MD_PERF_STACK_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmod/uapi/morph_abi.h"

/*
 * Bytes of the stack that a sample copies. Of 8 KiB the stacks of compilers often need more; a
 * ring of an ordinary user has room for 31 samples with 16 KiB.
 */
#define MD_PERF_STACK_BYTES 16384

/* Bytes that a sample copies beside its registers, if rsp is among them. */
#define MD_PERF_STACK_TOP 256

/* Return: words of the stack, from rsp on, that come with @registers. */
uint32_t md_perf_stack_words(uint32_t registers);
/* Return: perf's set of user registers for @registers, and for walking if @stacks. */
uint64_t md_perf_user_mask(uint32_t registers, bool stacks);
/* Return: index of register @reg among those of @mask in a sample. */
uint32_t md_perf_reg_index(uint64_t mask, uint32_t reg);

/* Asks for @registers (bit n: register n), and with @stacks for all that a walk needs. */
void md_perf_ask_for_stack(struct perf_event_attr *attr, uint32_t registers, bool stacks);

/* User registers and stack of one sample. */
struct md_perf_user {
	uint64_t ip;
	uint64_t registers[MORPH_NR_REGS];
	const uint8_t *stack;
	size_t size;
};

/*
 * Reads what a sample that was asked for with stacks has behind its branches. Return: false if
 * there is none, as for threads of the kernel and for 32-bit code.
 */
bool md_perf_read_user(const uint8_t *data, size_t room, uint64_t mask, struct md_perf_user *out);

#endif
