// SPDX-License-Identifier: GPL-2.0
/*
 * sample - writes one program counter from the interrupted registers to the ring.
 * Each sample pays for every instruction here; tests/guest/cost counts them. Called by the
 * CPU's timer (cpu), or by the kernel's tick.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/sched.h>

#include <asm/irq_regs.h>

#include "kmod/morphmon.h"

/* Starts a batch of @task's samples for the next sample. */
static noinline bool open_batch(struct morph_cpu *cpu, const struct task_struct *task, bool is_user)
{
	struct morph_task header = {
		.tgid = task->tgid,
		.tid = task->pid,
		.exec_id = task->self_exec_id,
	};
	bool is_open;

	cpu->epoch = morph_epoch(task->tgid);
	/*
	 * Read the epoch before the time: a change between the two ends the batch at the
	 * next sample.
	 */
	cpu->epoch_seen = atomic_read_acquire(cpu->epoch);
	/*
	 * A stack needs the mappings of user code, too. A task without memory has no stack.
	 * Neither has a task during an exec: not even its [vdso] may be mapped yet, and
	 * that is reported only once.
	 */
	is_user |= (cpu->extra_records & MORPH_EXTRA_STACK) && task->mm && !task->in_execve;
	is_open = morph_space_open(cpu, is_user, &header.flags);
	header.time_ns = ktime_get_ns();
	if (!is_open || !morph_ring_open(&cpu->ring, &header)) {
		morph_ring_lose(&cpu->ring, header.time_ns, 1, 0);
		cpu->pid = 0;
		return false;
	}
	cpu->pid = task->pid;
	cpu->tgid = task->tgid;
	return true;
}

static noinline void add_more(struct morph_cpu *cpu, struct pt_regs *regs)
{
	if (cpu->extra_records & MORPH_EXTRA_REGISTERS)
		morph_registers_add(cpu, regs);
	if (cpu->extra_records & MORPH_EXTRA_STACK)
		morph_stack_add(cpu, regs);
}

static __always_inline void take(struct morph_cpu *cpu, struct pt_regs *regs)
{
	const struct task_struct *task = current;
	u64 ip;

	if (unlikely(!regs))
		return; /* an interrupt without information on the interrupted code */
	ip = regs->ip;
	if (unlikely((s64)ip < 0)) {
		if (cpu->user_only)
			return;
		ip = morph_text_hide(ip);
	} else if (unlikely(cpu->has_unreported_maps)) {
		morph_ring_close(&cpu->ring);
	}
	cpu->nr_samples++;
	if (unlikely(task->pid != cpu->pid || task->tgid != cpu->tgid ||
		     atomic_read(cpu->epoch) != cpu->epoch_seen ||
		     cpu->ring.next == cpu->ring.end) &&
	    !open_batch(cpu, task, (s64)regs->ip >= 0))
		return;
	morph_ring_add(&cpu->ring, ip);
	if (unlikely(cpu->extra_records))
		add_more(cpu, regs);
}

/*
 * A random interval, with the default jitter half to one and a half of the usual one, so
 * that no program stays in step with it. A linear congruential generator suffices: it need
 * not be secret.
 */
static __always_inline u64 interval_ns(struct morph_cpu *cpu)
{
	cpu->seed = cpu->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return READ_ONCE(cpu->base_ns) + ((cpu->seed >> 32) * READ_ONCE(cpu->span_ns) >> 32);
}

enum hrtimer_restart morph_sample_on_timer(struct hrtimer *timer)
{
	struct morph_cpu *cpu = container_of(timer, struct morph_cpu, timer);

	cpu->was_paused = false;
	if (unlikely(is_idle_task(current))) {
		cpu->nr_idle++;
		/* A thread that plays idle to cool the CPU ends that without a task switch. */
		if (current->pid) {
			hrtimer_forward_now(timer, interval_ns(cpu));
			return HRTIMER_RESTART;
		}
		/* The next task starts it again. */
		cpu->is_armed = false;
		cpu->remaining_ns = interval_ns(cpu);
		return HRTIMER_NORESTART;
	}
	take(cpu, get_irq_regs());
	hrtimer_forward_now(timer, interval_ns(cpu));
	return HRTIMER_RESTART;
}

/*
 * Other timers of the kernel expire in the same interrupt. Only the first one between two
 * ticks counts; otherwise code that sets timers would be sampled more than its share.
 */
void morph_sample_on_tick(void *data, int vector)
{
	struct morph_cpu *cpu = this_cpu_ptr(&morph_cpus);
	unsigned long now = jiffies;

	if (is_idle_task(current) || cpu->last_jiffies == now || !cpu->on)
		return;
	cpu->last_jiffies = now;
	take(cpu, get_irq_regs());
}
