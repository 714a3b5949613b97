// SPDX-License-Identifier: GPL-2.0
/*
 * stack - reads return addresses of user code by its frame pointers; off unless requested.
 * Called by sample.
 */
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>

#include "kmod/morphmon.h"

/* The two words at a function's frame pointer. */
struct frame {
	u64 caller; /* the caller's frame pointer */
	u64 ip;	    /* return address */
};

/*
 * The program may have put anything there. Each frame must lie above the one before. An
 * address that is not mapped, or not in memory right now, ends the walk.
 */
static u32 walk(struct pt_regs *regs, u64 *ips, u32 max)
{
	u64 fp = regs->bp, above = regs->sp;
	struct frame frame;
	u32 nr = 0;

	while (nr < max && fp >= above && IS_ALIGNED(fp, sizeof(u64)) &&
	       !copy_from_user_nofault(&frame, (const void __user *)fp, sizeof(frame))) {
		if (!frame.ip || (s64)frame.ip < 0)
			break;
		ips[nr++] = frame.ip;
		above = fp + sizeof(frame);
		fp = frame.caller;
	}
	return nr;
}

void morph_stack_add(struct morph_cpu *cpu, struct pt_regs *regs)
{
	u64 ips[MORPH_STACK_MAX];
	struct morph_stack *stack;
	u32 nr, size;

	if (!user_mode(regs)) {
		/*
		 * The batch began during an exec, so the mappings are not reported, and a
		 * stack would be useless.
		 */
		if (!current->mm || current->flags & PF_KTHREAD || cpu->has_unreported_maps)
			return;
		regs = task_pt_regs(current);
	}
	if (regs->cs != __USER_CS)
		return; /* 32-bit code has other frames */
	nr = walk(regs, ips, min_t(u32, morph_settings.stack_depth, MORPH_STACK_MAX));
	if (!nr)
		return;
	size = sizeof(struct morph_stack) + nr * sizeof(ips[0]);
	stack = morph_event_begin(cpu, MORPH_REC_STACK, size, current);
	if (!stack)
		return;
	memcpy(stack->ips, ips, nr * sizeof(ips[0]));
	morph_ring_commit(&cpu->ring, size);
}
