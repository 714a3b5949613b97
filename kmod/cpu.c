// SPDX-License-Identifier: GPL-2.0
/*
 * cpu - a ring and a timer for each CPU; the timer runs while the CPU is online and busy.
 *
 * The timer measures busy time. When the CPU becomes idle, the timer is removed, so that it
 * wakes no CPU. Later it goes on with the rest of its interval: with a new interval, tasks
 * that run for less than one at a time would never be sampled.
 *
 * Removing and restoring sets the hardware's timer twice. That costs more than a sample,
 * and far more under a hypervisor, so it is done once per interval. A CPU that becomes idle
 * again before its next sample keeps its timer: it wakes often anyway, and the timer may
 * wake it once. Called by collect.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <trace/events/sched.h>

#include "kmod/compat.h"
#include "kmod/morphmon.h"

DEFINE_PER_CPU_ALIGNED(struct morph_cpu, morph_cpus);

static enum cpuhp_state state;
static bool is_starting;

/* ---- idle and busy ---- */

static void arm(struct morph_cpu *cpu)
{
	hrtimer_start(&cpu->timer, ns_to_ktime(cpu->remaining_ns), HRTIMER_MODE_REL_PINNED_HARD);
	cpu->is_armed = true;
}

static void disarm(struct morph_cpu *cpu)
{
	s64 left = ktime_to_ns(hrtimer_get_remaining(&cpu->timer));

	/* The timer cannot be running: it belongs to this CPU, and interrupts are off. */
	hrtimer_try_to_cancel(&cpu->timer);
	cpu->remaining_ns = left > 0 ? left : 0;
	cpu->is_armed = false;
	cpu->was_paused = true;
}

/* Context: the run queue's lock is held, interrupts are off. It writes no record. */
void morph_cpu_on_switch(void *data, bool preempt, struct task_struct *prev,
			 struct task_struct *next, unsigned int prev_state)
{
	struct morph_cpu *cpu;

	if (likely(!((prev->flags | next->flags) & PF_IDLE)))
		return;
	cpu = this_cpu_ptr(&morph_cpus);
	if (!cpu->on)
		return;
	if (is_idle_task(next)) {
		if (cpu->is_armed && !cpu->was_paused)
			disarm(cpu);
	} else if (!cpu->is_armed) {
		arm(cpu);
	}
}

/* ---- online and offline ---- */

static void set_interval(struct morph_cpu *cpu, u32 rate_hz)
{
	u32 period_ns = NSEC_PER_SEC / rate_hz;
	u32 span_ns = (u64)period_ns * morph_settings.jitter / 100;

	WRITE_ONCE(cpu->span_ns, span_ns);
	WRITE_ONCE(cpu->base_ns, period_ns - span_ns / 2);
}

static int prepare(struct morph_cpu *cpu, u32 id)
{
	char *path;
	int ret;

	if (!cpu->files) {
		cpu->files = kcalloc_node(MORPH_NR_FILES, sizeof(cpu->files[0]), GFP_KERNEL,
					  cpu_to_node(id));
		if (!cpu->files)
			return -ENOMEM;
	}
	if (!cpu->path) {
		path = kmalloc_node(PATH_MAX, GFP_KERNEL, cpu_to_node(id));
		if (!path)
			return -ENOMEM;
		/* Mappings on this CPU may use the path and @files from now on. */
		smp_store_release(&cpu->path, path);
	}
	if (morph_settings.stack_depth && !cpu->stacks) {
		cpu->stacks = kvzalloc_node(sizeof(*cpu->stacks), GFP_KERNEL, cpu_to_node(id));
		if (!cpu->stacks)
			return -ENOMEM;
	}
	if (!cpu->ring.size) {
		ret = morph_ring_init(&cpu->ring, id, morph_settings.ring_bytes);
		if (ret)
			return ret;
	}
	WRITE_ONCE(cpu->ring.wake_bytes, morph_settings.wake_bytes);
	return 0;
}

/* Context: on CPU @id, may sleep. */
static int come_online(unsigned int id)
{
	struct morph_cpu *cpu = per_cpu_ptr(&morph_cpus, id);
	int ret = prepare(cpu, id);

	/* After the start an error would keep the CPU offline. Rather leave it without samples. */
	if (ret && !is_starting) {
		pr_warn("morphmon: no memory: CPU %u is not sampled\n", id);
		return 0;
	}
	if (ret)
		return ret;
	morph_hrtimer_setup(&cpu->timer, morph_sample_on_timer);
	cpu->epoch = morph_epoch(0);
	cpu->user_only = morph_settings.user_only;
	cpu->extra_records = (morph_settings.stack_depth ? MORPH_EXTRA_STACK : 0) |
			     (morph_settings.registers ? MORPH_EXTRA_REGISTERS : 0);
	cpu->seed = get_random_u64();
	set_interval(cpu, morph_settings.rate_hz);
	cpu->remaining_ns = ((u64)get_random_u32() * (cpu->base_ns + cpu->span_ns / 2)) >> 32;
	local_irq_disable();
	cpu->was_paused = false;
	cpu->on = true;
	if (morph_settings.mode == MORPH_MODE_HRTIMER)
		arm(cpu);
	local_irq_enable();
	return 0;
}

static int go_offline(unsigned int id)
{
	struct morph_cpu *cpu = per_cpu_ptr(&morph_cpus, id);

	local_irq_disable();
	cpu->on = false;
	if (cpu->is_armed)
		disarm(cpu);
	morph_ring_close(&cpu->ring);
	local_irq_enable();
	return 0;
}

int morph_cpus_start(void)
{
	int ret;

	is_starting = true;
	ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "morphmon:online", come_online, go_offline);
	is_starting = false;
	if (ret < 0)
		return ret;
	state = ret;
	return 0;
}

void morph_cpus_stop(void)
{
	cpuhp_remove_state(state);
}

void morph_cpus_set_rate(u32 rate_hz)
{
	unsigned int id;

	cpus_read_lock();
	morph_settings.rate_hz = rate_hz;
	for_each_online_cpu(id)
		set_interval(per_cpu_ptr(&morph_cpus, id), rate_hz);
	cpus_read_unlock();
}
