// SPDX-License-Identifier: Apache-2.0
/*
 * last_stacks - remembers the last stack of each thread, to tell which activations are certainly new.
 * Called by stack_walk and bpf_merge.
 *
 * A slot is the address of a return address. An activation keeps its slot and its return address until
 * it ends. So where one of the two differs, the activation is new, and all that it called are. Where
 * both are the same for all frames further out, the activation may be the same: a loop can call the same
 * function again from the same place. No thread's stack is changed, as the marks of Whaley (2000) do.
 */
#ifndef MD_LAST_STACKS_H
#define MD_LAST_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Threads whose hashes collide, and stacks beyond the bytes, are forgotten: nothing is then known. */
#define MD_LAST_STACKS_THREADS 1024
#define MD_LAST_STACKS_BYTES   (1u << 20)

struct md_last_stacks;

/* Return: NULL: no memory. */
struct md_last_stacks *md_last_stacks_new(void);
void md_last_stacks_free(struct md_last_stacks *last);

/* A stack, innermost first. */
struct md_stack {
	const uint64_t *slots, *ips;
	size_t nr;
	bool is_complete; /* the last one is the outermost frame's */
};

/*
 * Compares a stack of thread @tid with its last one, and remembers it. *@nr_old: how many of the
 * outermost addresses look old. Return: false if nothing is known: no earlier stack, or another one,
 * as of a coroutine.
 */
bool md_last_stacks_compare(struct md_last_stacks *last, uint32_t tid, const struct md_stack *stack,
			    size_t *nr_old);

#endif
