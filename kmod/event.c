// SPDX-License-Identifier: GPL-2.0
/* event - fork, exec and exit, as records. */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/events/sched.h>

#include "kmod/compat.h"
#include "kmod/morphmon.h"

void *morph_event_begin(struct morph_cpu *cpu, u32 type, u32 size, const struct task_struct *task)
{
	u64 now_ns = ktime_get_ns();
	struct morph_task *to;

	to = morph_ring_reserve(&cpu->ring, size);
	if (!to) {
		morph_ring_lose(&cpu->ring, now_ns, 0, 1);
		return NULL;
	}
	*to = (struct morph_task){
		.record = {size, type, smp_processor_id()},
		.time_ns = now_ns,
		.tgid = task->tgid,
		.tid = task->pid,
		.exec_id = task->self_exec_id,
	};
	return to;
}

/* The record is of this CPU and this moment, so both are asked for with interrupts off. */
static struct morph_cpu *enter(unsigned long *flags)
{
	local_irq_save(*flags);
	return this_cpu_ptr(&morph_cpus);
}

static void on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	struct morph_cpu *cpu;
	struct morph_fork *fork;
	unsigned long flags;

	if (child->flags & PF_KTHREAD)
		return;
	cpu = enter(&flags);
	fork = cpu->on ? morph_event_begin(cpu, MORPH_REC_FORK, sizeof(*fork), child) : NULL;
	if (fork) {
		fork->parent_tgid = parent->tgid;
		fork->parent_tid = parent->pid;
		morph_ring_commit(&cpu->ring, sizeof(*fork));
	}
	local_irq_restore(flags);
	/* Who had this number before may have been sampled while he ended. */
	if (child->tgid == child->pid)
		atomic_inc(morph_epoch(child->tgid));
}

/* Only after the program itself and its interpreter were mapped; their records bear its exec_id. */
static void on_exec(void *data, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	struct morph_cpu *cpu;
	struct morph_exec *exec;
	unsigned long flags;

	cpu = enter(&flags);
	exec = cpu->on ? morph_event_begin(cpu, MORPH_REC_EXEC, sizeof(*exec), task) : NULL;
	if (exec) {
		exec->nr_threads = 1;
		exec->pad = 0;
		morph_ring_commit(&cpu->ring, sizeof(*exec));
	}
	local_irq_restore(flags);
	atomic_inc(morph_epoch(task->tgid));
}

static void on_exit(void *data, MORPH_EXIT_ARGS)
{
	struct morph_cpu *cpu;
	struct morph_exit *exit;
	unsigned long flags;

	/* Who never came does not leave: the process would seem to end before its time. */
	if (task->flags & (PF_KTHREAD | MORPH_PF_WORKER))
		return;
	cpu = enter(&flags);
	exit = cpu->on ? morph_event_begin(cpu, MORPH_REC_EXIT, sizeof(*exit), task) : NULL;
	if (exit) {
		exit->cpu_time_ns = task->se.sum_exec_runtime;
		morph_ring_commit(&cpu->ring, sizeof(*exit));
	}
	local_irq_restore(flags);
	atomic_inc(morph_epoch(task->tgid));
}

static struct morph_hook hooks[] = {
	{"sched_process_fork", on_fork},
	{"sched_process_exec", on_exec},
	{"sched_process_exit", on_exit},
};

int morph_events_init(void)
{
	check_trace_callback_type_sched_process_fork(on_fork);
	check_trace_callback_type_sched_process_exec(on_exec);
	check_trace_callback_type_sched_process_exit(on_exit);
	return morph_hooks_find(hooks, ARRAY_SIZE(hooks));
}

int morph_events_start(void)
{
	return morph_hooks_start(hooks, ARRAY_SIZE(hooks));
}

void morph_events_stop(void)
{
	morph_hooks_stop(hooks, ARRAY_SIZE(hooks));
}
