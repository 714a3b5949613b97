// SPDX-License-Identifier: GPL-2.0
/*
 * event - writes fork, exec and exit as records.
 * The kernel's tracepoints call it.
 */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/events/sched.h>

#include "kmod/compat.h"
#include "kmod/morphmon.h"

void *morph_record_begin(struct morph_cpu *cpu, u32 type, u32 size, const struct task_struct *task)
{
	struct morph_task *to = morph_ring_reserve(&cpu->ring, size);

	if (to)
		*to = (struct morph_task){
			.record = {size, type, smp_processor_id()},
			.time_ns = ktime_get_ns(),
			.tgid = task->tgid,
			.tid = task->pid,
			.exec_id = task->self_exec_id,
		};
	return to;
}

void *morph_event_begin(struct morph_cpu *cpu, u32 type, u32 size, const struct task_struct *task)
{
	void *to = morph_record_begin(cpu, type, size, task);

	if (!to)
		morph_ring_lose(&cpu->ring, ktime_get_ns(), 0, 1);
	return to;
}

/* The CPU and interrupt state of a record that is written, or lost. */
struct event {
	struct morph_cpu *cpu;
	unsigned long flags;
};

/* Turns interrupts off until end(). Return: NULL: do not write a record. */
static void *begin(struct event *event, enum morph_event_action action, u32 type, u32 size,
		   const struct task_struct *task)
{
	local_irq_save(event->flags);
	event->cpu = this_cpu_ptr(&morph_cpus);
	if (action == MORPH_EVENT_COUNT_LOST)
		morph_ring_lose(&event->cpu->ring, ktime_get_ns(), 0, 1);
	if (action >= MORPH_EVENT_SKIP || !event->cpu->on)
		return NULL;
	return morph_event_begin(event->cpu, type, size, task);
}

/* @size: 0 if no record was written. */
static void end(struct event *event, u32 size)
{
	if (size)
		morph_ring_commit(&event->cpu->ring, size);
	local_irq_restore(event->flags);
}

static void on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	enum morph_event_action action;
	struct morph_fork *fork;
	struct event event;

	if (child->flags & PF_KTHREAD)
		return;
	action = morph_space_fork(parent, child);
	if (action != MORPH_EVENT_SKIP) {
		fork = begin(&event, action, MORPH_REC_FORK, sizeof(*fork), child);
		if (fork) {
			fork->parent_tgid = parent->tgid;
			fork->parent_tid = parent->pid;
		}
		end(&event, fork ? sizeof(*fork) : 0);
	}
	/* The previous process with this number may have been sampled while it ended. */
	if (child->tgid == child->pid)
		atomic_inc(morph_epoch(child->tgid));
}

/*
 * Runs only after the program and its interpreter were mapped; their records have the new
 * exec_id.
 */
static void on_exec(void *data, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	struct morph_exec *exec;
	struct event event;

	/* The new exec_id of the mappings tells of the exec. */
	if (morph_spaces_are_on())
		return;
	exec = begin(&event, MORPH_EVENT_WRITE, MORPH_REC_EXEC, sizeof(*exec), task);
	if (exec) {
		exec->nr_threads = 1;
		exec->pad = 0;
	}
	end(&event, exec ? sizeof(*exec) : 0);
	atomic_inc(morph_epoch(task->tgid));
}

static void on_exit(void *data, MORPH_EXIT_ARGS)
{
	enum morph_event_action action;
	struct morph_exit *exit;
	struct event event;

	if (task->flags & PF_KTHREAD)
		return;
	action = morph_space_exit(task);
	/*
	 * The start of such a thread had no record. A record of its end would make the
	 * process end too early.
	 */
	if (action == MORPH_EVENT_WRITE && task->flags & MORPH_PF_WORKER)
		action = MORPH_EVENT_SKIP;
	if (action != MORPH_EVENT_SKIP) {
		exit = begin(&event, action, MORPH_REC_EXIT, sizeof(*exit), task);
		if (exit)
			exit->cpu_time_ns = task->se.sum_exec_runtime;
		if (exit)
			exit->task.flags = MORPH_EXIT_WITH_SIGNAL((__u32)task->exit_code);
		if (exit && action == MORPH_EVENT_WRITE_PROCESS_EXIT) {
			exit->task.flags |= MORPH_EXIT_PROCESS;
			exit->cpu_time_ns += READ_ONCE(task->signal->sum_sched_runtime);
		}
		end(&event, exit ? sizeof(*exit) : 0);
	}
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
