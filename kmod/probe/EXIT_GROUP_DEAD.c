// SPDX-License-Identifier: GPL-2.0
/* The tracepoint sched_process_exit also tells whether the process ends with the thread. */
#include <linux/sched.h>
#include <trace/events/sched.h>

static void on_exit(void *data, struct task_struct *task, bool group_dead)
{
}

void probe(void);
void probe(void)
{
	check_trace_callback_type_sched_process_exit(on_exit);
}
