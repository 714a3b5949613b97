// SPDX-License-Identifier: GPL-2.0
/*
 * empty - a timer on each CPU that does nothing: the minimum cost of sampling from a timer.
 *
 * Uses a pinned hard hrtimer whose callback only requests the next period. tests/guest/cost
 * compares morphmon with it.
 */
#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/smp.h>

static unsigned int rate = 1024;
module_param(rate, uint, 0444);
MODULE_PARM_DESC(rate, "interrupts a second on each CPU");

static DEFINE_PER_CPU(struct hrtimer, empty_timer);
static ktime_t period;

static enum hrtimer_restart empty_fn(struct hrtimer *timer)
{
	hrtimer_forward_now(timer, period);
	return HRTIMER_RESTART;
}

static void empty_start(void *unused)
{
	struct hrtimer *timer = this_cpu_ptr(&empty_timer);

#ifdef EMPTY_HRTIMER_SETUP
	hrtimer_setup(timer, empty_fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer->function = empty_fn;
#endif
	hrtimer_start(timer, period, HRTIMER_MODE_REL_PINNED_HARD);
}

static int __init empty_init(void)
{
	if (!rate)
		return -EINVAL;
	period = ns_to_ktime(NSEC_PER_SEC / rate);
	on_each_cpu(empty_start, NULL, 1);
	return 0;
}

static void __exit empty_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) if (per_cpu(empty_timer, cpu).function)
		hrtimer_cancel(per_cpu_ptr(&empty_timer, cpu));
}

module_init(empty_init);
module_exit(empty_exit);

MODULE_DESCRIPTION("A timer that does nothing, for comparison");
MODULE_LICENSE("GPL");
