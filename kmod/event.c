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

void morph_event_fill(struct morph_task *to, u32 type, u32 size, const struct task_struct *task)
{
	*to = (struct morph_task){
		.record = {size, type, smp_processor_id()},
		.time_ns = ktime_get_ns(),
		.tgid = task->tgid,
		.tid = task->pid,
		.exec_id = task->self_exec_id,
	};
}

void morph_event_send(struct morph_cpu *cpu, const struct morph_task *record, u32 bytes,
		      const void *tail, u32 tail_bytes)
{
	u32 size = record->record.size;
	u8 *room = morph_ring_reserve(&cpu->ring, size);

	if (!room) {
		morph_ring_lose(&cpu->ring, record->time_ns, 0, 1);
		return;
	}
	memcpy(room, record, bytes);
	memcpy(room + bytes, tail, tail_bytes);
	memset(room + bytes + tail_bytes, 0, size - bytes - tail_bytes);
	morph_ring_commit(&cpu->ring, size);
}

/* The record is of this CPU and this moment, so both are asked for with interrupts off. */
static void send(struct morph_task *record, u32 type, u32 size, const struct task_struct *task)
{
	struct morph_cpu *cpu;
	unsigned long flags;

	local_irq_save(flags);
	cpu = this_cpu_ptr(&morph_cpus);
	if (cpu->on) {
		morph_event_fill(record, type, size, task);
		morph_event_send(cpu, record, size, NULL, 0);
	}
	local_irq_restore(flags);
}

static void on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	struct morph_fork fork = {.parent_tgid = parent->tgid, .parent_tid = parent->pid};

	if (child->flags & PF_KTHREAD)
		return;
	send(&fork.task, MORPH_REC_FORK, sizeof(fork), child);
	/* Who had this number before may have been sampled while he ended. */
	if (child->tgid == child->pid)
		atomic_inc(morph_epoch(child->tgid));
}

/* Only after the program itself and its interpreter were mapped; their records bear its exec_id. */
static void on_exec(void *data, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	struct morph_exec exec = {.nr_threads = 1};

	send(&exec.task, MORPH_REC_EXEC, sizeof(exec), task);
	atomic_inc(morph_epoch(task->tgid));
}

static void on_exit(void *data, MORPH_EXIT_ARGS)
{
	struct morph_exit exit = {.cpu_time_ns = task->se.sum_exec_runtime};

	/* Who never came does not leave: the process would seem to end before its time. */
	if (task->flags & (PF_KTHREAD | MORPH_PF_WORKER))
		return;
	send(&exit.task, MORPH_REC_EXIT, sizeof(exit), task);
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
