// SPDX-License-Identifier: GPL-2.0
/*
 * last - keeps the last walk of each thread, in a table of fixed size.
 * A thread that finds no place takes that of the thread that was not sampled for the longest
 * time. Called by stack.
 */
#include <linux/cpumask.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "kmod/stack.h"

#define NR_WAYS	   4
#define NR_PER_CPU 128
#define NR_MIN	   256
#define NR_MAX	   4096

static struct morph_last *table; /* NULL: no memory, nothing is remembered */
static u32 nr_sets;

int morph_last_alloc(void)
{
	u32 nr = roundup_pow_of_two(clamp_t(u32, num_possible_cpus() * NR_PER_CPU, NR_MIN, NR_MAX));

	BUILD_BUG_ON(sizeof(struct morph_last) != 4096);
	if (table)
		return 0;
	table = vzalloc(nr * sizeof(*table));
	nr_sets = nr / NR_WAYS;
	return table ? 0 : -ENOMEM;
}

void morph_last_free(void)
{
	vfree(table);
	table = NULL;
}

static bool try_lock(struct morph_last *last)
{
	/* Pairs with the release in morph_last_put(). */
	return cmpxchg_acquire(&last->owner, 0, 1) == 0;
}

void morph_last_put(struct morph_last *last)
{
	if (last) {
		/* Pairs with the acquire in try_lock(). */
		smp_store_release(&last->owner, 0);
	}
}

struct morph_last *morph_last_get(const struct task_struct *task)
{
	/* An exec leaves the start time as it is. */
	u64 start_ns = task->start_time + task->self_exec_id;
	struct morph_last *set, *last, *oldest;
	u32 now = jiffies;

	if (!table)
		return NULL;
	set = &table[hash_32(task->pid, 32) % nr_sets * NR_WAYS];
	oldest = set;
	for (last = set; last < set + NR_WAYS; last++) {
		if (READ_ONCE(last->tid) == (u32)task->pid && try_lock(last)) {
			if (last->tid == (u32)task->pid && last->start_ns == start_ns) {
				WRITE_ONCE(last->used, now);
				return last;
			}
			morph_last_put(last);
		}
		if (now - READ_ONCE(last->used) > now - READ_ONCE(oldest->used))
			oldest = last;
	}
	if (!try_lock(oldest))
		return NULL;
	WRITE_ONCE(oldest->tid, task->pid);
	oldest->start_ns = start_ns;
	WRITE_ONCE(oldest->used, now);
	oldest->nr = 0;
	oldest->stop = MORPH_STACK_UNSAID;
	oldest->is_back = false;
	return oldest;
}
