// SPDX-License-Identifier: GPL-2.0
/*
 * collect - starts and stops collecting, in an order that misses nothing.
 * Start: first the hooks, which ignore CPUs that do not collect yet; then the CPUs one by
 * one. Stop: the CPUs alone, since setting hooks takes time and the reader may only pause.
 * The hooks are removed when the device is closed. Called by dev and main.
 */
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <trace/events/sched.h>

#include <asm/trace/irq_vectors.h>

#include "kmod/morphmon.h"

struct morph_settings morph_settings;
atomic_t morph_epochs[MORPH_NR_EPOCHS] ____cacheline_aligned;

/* Each mode needs one of these hooks. */
static struct morph_hook hooks[] = {
	[MORPH_MODE_HRTIMER] = {"sched_switch", morph_cpu_on_switch},
	[MORPH_MODE_TICK] = {"local_timer_entry", morph_sample_on_tick},
};

/* the mode's hook; events and mappings are hooked with it. NULL: no hooks */
static struct morph_hook *hooked;

int morph_collect_init(void)
{
	int ret;

	check_trace_callback_type_sched_switch(morph_cpu_on_switch);
	check_trace_callback_type_local_timer_entry(morph_sample_on_tick);
	morph_spaces_init();
	ret = morph_hooks_find(hooks, ARRAY_SIZE(hooks));
	return ret ? ret : morph_events_init();
}

static int hook(u32 mode)
{
	int ret;

	ret = morph_events_start();
	if (ret)
		return ret;
	ret = morph_mappings_start();
	if (ret)
		goto stop_events;
	ret = morph_hooks_start(&hooks[mode], 1);
	if (ret)
		goto stop_mappings;
	hooked = &hooks[mode];
	return 0;

stop_mappings:
	morph_mappings_stop();
stop_events:
	morph_events_stop();
	return ret;
}

static void unhook(void)
{
	if (!hooked)
		return;
	morph_hooks_stop(hooked, 1);
	morph_mappings_stop();
	morph_events_stop();
	morph_spaces_stop();
	/* From here on, mappings change unseen. */
	morph_row_files_distrust();
	hooked = NULL;
}

int morph_collect_start(const struct morph_settings *settings)
{
	int ret;

	if (hooked != &hooks[settings->mode] || morph_settings.is_lazy != settings->is_lazy)
		unhook();
	morph_settings = *settings;
	if (!hooked) {
		ret = hook(settings->mode);
		if (ret)
			return ret;
	}
	/* Without memory, every walk goes from row to row. */
	if (settings->stack_depth)
		morph_last_alloc();
	ret = morph_cpus_start();
	if (!ret && settings->is_lazy)
		morph_spaces_start();
	return ret;
}

void morph_collect_stop(void)
{
	morph_cpus_stop();
}

void morph_collect_free(void)
{
	struct morph_cpu *cpu;
	unsigned int id;

	unhook();
	morph_last_free();
	morph_row_files_free();
	for_each_possible_cpu(id) {
		cpu = per_cpu_ptr(&morph_cpus, id);
		morph_ring_fini(&cpu->ring);
		kfree(cpu->path);
		kfree(cpu->files);
		kvfree(cpu->stacks);
		memset(cpu, 0, sizeof(*cpu));
	}
}
