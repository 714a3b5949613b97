// SPDX-License-Identifier: GPL-2.0
/*
 * stack - writes a sample's callers in user code, and how many of them look as they did at
 * the thread's last walk; off unless requested. Called by sample.
 */
#include <linux/build_bug.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>

#include "kmod/morphmon.h"
#include "kmod/stack.h"

#define IS_PLACE(reg, place)                                                                       \
	static_assert(offsetof(struct pt_regs, reg) == (place) * sizeof(unsigned long))
IS_PLACE(r15, 0);
IS_PLACE(r12, 3);
IS_PLACE(bp, 4);
IS_PLACE(bx, 5);
IS_PLACE(r11, 6);
IS_PLACE(r8, 9);
IS_PLACE(ax, 10);
IS_PLACE(cx, 11);
IS_PLACE(dx, 12);
IS_PLACE(si, 13);
IS_PLACE(di, 14);
IS_PLACE(ip, 16);
IS_PLACE(sp, 19);
static_assert(sizeof(struct pt_regs) == MORPH_NR_PT_REGS * sizeof(unsigned long));

/* Return: the answers about current's mappings, empty if these may have changed. */
static struct morph_codes *codes_of_current(struct morph_stacks *stacks)
{
	struct morph_codes *codes = &stacks->codes[current->tgid % MORPH_NR_SPACES];
	u32 generation = morph_row_files_generation();
	u32 epoch = atomic_read_acquire(morph_epoch(current->tgid));

	if (codes->tgid != (u32)current->tgid || codes->exec_id != (u32)current->self_exec_id ||
	    codes->epoch != epoch || codes->generation != generation) {
		codes->tgid = current->tgid;
		codes->exec_id = current->self_exec_id;
		codes->epoch = epoch;
		codes->generation = generation;
		codes->nr = 0;
		codes->next = 0;
		codes->is_by_rows = morph_settings.is_by_rows;
	}
	return codes;
}

static enum morph_stack_stop walk(struct morph_stacks *stacks, struct pt_regs *regs, u64 *ips,
				  u32 max)
{
	struct morph_codes *codes = codes_of_current(stacks);
	struct morph_last *last = morph_last_get(current);
	struct morph_walk *w = &stacks->walk;
	enum morph_stack_stop stop;

	w->regs = (const u64 *)regs;
	w->codes = codes;
	w->last = last;
	w->is_same_code = last && last->epoch == codes->epoch &&
			  last->generation == codes->generation;
	w->ips = ips;
	w->max = max;
	pagefault_disable();
	stop = morph_walk(w);
	pagefault_enable();
	if (last) {
		last->epoch = codes->epoch;
		last->generation = codes->generation;
	}
	morph_last_put(last);
	stacks->nr_walks++;
	stacks->nr_frames += w->nr;
	stacks->nr_read += w->nr_read;
	stacks->stops[stop]++;
	return stop;
}

void morph_stack_add(struct morph_cpu *cpu, struct pt_regs *regs)
{
	u32 max = min_t(u32, morph_settings.stack_depth, MORPH_STACK_MAX), size, flags = 0;
	struct morph_stacks *stacks = cpu->stacks;
	struct morph_stack *stack;
	u64 *ips;

	/* The mappings of a task during an exec are not those of its registers. */
	if (!current->mm || current->flags & PF_KTHREAD || current->in_execve)
		return;
	if (!user_mode(regs)) {
		/*
		 * The batch began during an exec, so the mappings are not reported, and a
		 * stack would be useless.
		 */
		if (cpu->has_unreported_maps)
			return;
		regs = task_pt_regs(current);
		flags = morph_settings.is_by_rows ? MORPH_STACK_USER_IP : 0;
	}
	if (regs->cs != __USER_CS)
		return; /* 32-bit code has other frames */
	/*
	 * Room for the largest one; the walk writes to the ring itself. If there is none, the
	 * sample has no stack; that is no other loss.
	 */
	size = sizeof(*stack) + max * sizeof(ips[0]);
	stack = morph_record_begin(cpu, MORPH_REC_STACK, size, current);
	if (!stack) {
		stacks->nr_no_room++;
		return;
	}
	ips = stack->ips;
	if (flags) {
		*ips++ = regs->ip;
		max--;
	}
	flags |= walk(stacks, regs, ips, max);
	if (stacks->walk.is_aged)
		flags |= MORPH_STACK_AGED | stacks->walk.nr_old << MORPH_STACK_OLD_SHIFT;
	ips += stacks->walk.nr;
	/* Readers of frame pointers know no reasons. */
	if (ips == stack->ips && !morph_settings.is_by_rows)
		return;
	size = (u8 *)ips - (u8 *)stack;
	stack->task.record.size = size;
	stack->task.flags = flags;
	morph_ring_commit(&cpu->ring, size);
}

void morph_stacks_count(struct morph_walks *to)
{
	const struct morph_stacks *stacks;
	unsigned int id, i;

	for_each_possible_cpu(id) {
		stacks = per_cpu_ptr(&morph_cpus, id)->stacks;
		if (!stacks)
			continue;
		to->walks += READ_ONCE(stacks->nr_walks);
		to->no_room += READ_ONCE(stacks->nr_no_room);
		to->frames += READ_ONCE(stacks->nr_frames);
		to->read_again += READ_ONCE(stacks->nr_read);
		for (i = 0; i < MORPH_NR_STACK_STOP; i++)
			to->stops[i] += READ_ONCE(stacks->stops[i]);
		for (i = 0; i < MORPH_NR_SPACES; i++)
			to->busy += READ_ONCE(stacks->codes[i].nr_busy);
	}
}
