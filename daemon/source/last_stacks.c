// SPDX-License-Identifier: Apache-2.0
/* last_stacks - one table, direct-mapped by thread; see last_stacks.h. */
#include "daemon/source/last_stacks.h"

#include <stdlib.h>
#include <string.h>

struct frame {
	uint64_t slot, ip;
};

struct thread {
	uint32_t tid;
	uint32_t nr; /* 0: nothing is known */
	bool is_complete;
	struct frame *frames; /* innermost first */
	size_t max;
};

struct md_last_stacks {
	struct thread threads[MD_LAST_STACKS_THREADS];
	size_t bytes; /* of all frames */
};

struct md_last_stacks *md_last_stacks_new(void)
{
	return calloc(1, sizeof(struct md_last_stacks));
}

static void forget(struct md_last_stacks *last, struct thread *thread)
{
	last->bytes -= thread->max * sizeof(*thread->frames);
	free(thread->frames);
	*thread = (struct thread){0};
}

void md_last_stacks_free(struct md_last_stacks *last)
{
	for (size_t i = 0; last && i < MD_LAST_STACKS_THREADS; i++)
		free(last->threads[i].frames);
	free(last);
}

static void remember(struct md_last_stacks *last, struct thread *thread, uint32_t tid,
		     const struct md_stack *stack)
{
	if (thread->max < stack->nr || thread->max > 4 * stack->nr + 64) {
		forget(last, thread);
		if (stack->nr * sizeof(*thread->frames) > MD_LAST_STACKS_BYTES - last->bytes)
			return;
		thread->frames = calloc(stack->nr, sizeof(*thread->frames));
		thread->max = thread->frames ? stack->nr : 0;
		last->bytes += thread->max * sizeof(*thread->frames);
		if (!thread->frames)
			return;
	}
	thread->tid = tid;
	thread->nr = (uint32_t)stack->nr;
	thread->is_complete = stack->is_complete;
	for (size_t i = 0; i < stack->nr; i++)
		thread->frames[i] = (struct frame){stack->slots[i], stack->ips[i]};
}

/* Return: index + 1 of the frame with this slot; 0: none. Slots ascend but for a change of stacks. */
static size_t find_slot(const struct thread *thread, uint64_t slot)
{
	size_t i = thread->nr;

	while (i && thread->frames[i - 1].slot != slot)
		i--;
	return i;
}

/*
 * Finds the frame of the last stack that the outermost frame of @stack is to be compared with.
 * *@at: its index + 1; 0: that frame is certainly new. Return: false if nothing is known.
 */
static bool align(const struct thread *thread, const struct md_stack *stack, size_t *at)
{
	uint64_t slot = stack->slots[stack->nr - 1];

	*at = find_slot(thread, slot);
	if (stack->is_complete && thread->is_complete)
		return *at == thread->nr;
	/* Frames that a walk did not reach are not known to be missing. */
	return *at ||
	       (slot >= thread->frames[0].slot && slot < thread->frames[thread->nr - 1].slot);
}

bool md_last_stacks_compare(struct md_last_stacks *last, uint32_t tid, const struct md_stack *stack,
			    size_t *nr_old)
{
	uint32_t hash = tid * 0x9e3779b1u;
	struct thread *thread = &last->threads[hash >> 22];
	bool known = false;
	size_t at = 0, i;

	_Static_assert(MD_LAST_STACKS_THREADS == 1u << (32 - 22), "one slot for each hash");
	*nr_old = 0;
	if (!stack->nr) {
		/* The next stack must not be compared with the one before this. */
		if (thread->tid == tid)
			thread->nr = 0;
		return false;
	}
	if (thread->nr && thread->tid == tid)
		known = align(thread, stack, &at);
	for (i = stack->nr; known && i && at; i--, at--) {
		if (thread->frames[at - 1].slot != stack->slots[i - 1] ||
		    thread->frames[at - 1].ip != stack->ips[i - 1])
			break;
		(*nr_old)++;
	}
	remember(last, thread, tid, stack);
	return known;
}
