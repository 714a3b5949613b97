// SPDX-License-Identifier: GPL-2.0
/*
 * sample - one program counter, from the interrupted registers into the ring.
 *
 * Every instruction here is paid for at each sample; tests/guest/cost counts them.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/sched.h>

#include <asm/irq_regs.h>

#include "kmod/morphmon.h"

/* A batch of @task's samples starts with the one that is to come. */
static noinline bool open_batch(struct morph_cpu *cpu, const struct task_struct *task, bool is_user)
{
	struct morph_task header = {
		.tgid = task->tgid,
		.tid = task->pid,
		.exec_id = task->self_exec_id,
	};
	bool is_open;

	cpu->epoch = morph_epoch(task->tgid);
	/* First this, then the time: what happens between ends the batch at the next sample. */
	cpu->epoch_seen = atomic_read_acquire(cpu->epoch);
	/*
	 * A stack is user code's, too. Who has no memory any more has none, nor who is in the middle of
	 * an exec: of his mappings not even the [vdso] may be there yet, which is said once.
	 */
	is_user |= (cpu->more & MORPH_MORE_STACK) && task->mm && !task->in_execve;
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
	if (cpu->more & MORPH_MORE_REGISTERS)
		morph_registers_add(cpu, regs);
	if (cpu->more & MORPH_MORE_STACK)
		morph_stack_add(cpu, regs);
}

static __always_inline void take(struct morph_cpu *cpu, struct pt_regs *regs)
{
	const struct task_struct *task = current;
	u64 ip;

	if (unlikely(!regs))
		return; /* an interrupt that does not say what it interrupted */
	ip = regs->ip;
	if (unlikely((s64)ip < 0)) {
		if (cpu->user_only)
			return;
		ip = morph_text_hide(ip);
	} else if (unlikely(cpu->is_unsaid)) {
		morph_ring_close(&cpu->ring);
	}
	cpu->nr_samples++;
	if (unlikely(task->pid != cpu->pid || task->tgid != cpu->tgid ||
		     atomic_read(cpu->epoch) != cpu->epoch_seen ||
		     cpu->ring.next == cpu->ring.end) &&
	    !open_batch(cpu, task, (s64)regs->ip >= 0))
		return;
	morph_ring_add(&cpu->ring, ip);
	if (unlikely(cpu->more))
		add_more(cpu, regs);
}

/*
 * Half an interval to one and a half, so that nothing stays in step with us. A linear
 * congruential generator is random enough: it is to be unlike the program, not to be secret.
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
		/* A thread that plays idle to cool the CPU ends that without a switch. */
		if (current->pid) {
			hrtimer_forward_now(timer, interval_ns(cpu));
			return HRTIMER_RESTART;
		}
		/* Whoever runs next starts it again. */
		cpu->is_armed = false;
		cpu->remaining_ns = interval_ns(cpu);
		return HRTIMER_NORESTART;
	}
	take(cpu, get_irq_regs());
	hrtimer_forward_now(timer, interval_ns(cpu));
	return HRTIMER_RESTART;
}

/*
 * Other timers of the kernel expire in the same interrupt: of those between two ticks only the
 * first is taken, or work that sets timers would be sampled more than its share.
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
