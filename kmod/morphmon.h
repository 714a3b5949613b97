/* SPDX-License-Identifier: GPL-2.0 */
/*
 * morphmon - data that the module's files share: each CPU's state, and the functions that
 * start and stop parts.
 * The Monitor of Morph (SOSP 1997), section 3.2.
 *	dev      the device's requests           collect  starts and stops everything below
 *	cpu      timers, CPUs that come and go   hook     tracepoints by name
 *	sample   one sample                      event    fork, exec, exit
 *	stack    callers of a sample (stack.h)   mapping  executable memory, with build_id
 *	ring     records to the reader           space    mappings not reported yet, with file
 *	text     address of the kernel's code
 *	registers  register values of a sample
 */
#ifndef MORPH_MORPHMON_H
#define MORPH_MORPHMON_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/hrtimer.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "kmod/ring.h"
#include "kmod/space.h"
#include "kmod/stack.h"
#include "kmod/uapi/morph_dev.h"

#define MORPH_RING_KIB_MAX 65536
#define MORPH_ROWS_MIB_MAX 4096

#define MORPH_EXTRA_STACK     1
#define MORPH_EXTRA_REGISTERS 2

/* Written only by its own CPU with interrupts off, except where noted. */
struct morph_cpu {
	/*
	 * First cache line: the fields that a sample in an open batch needs, with the first
	 * fields of @ring.
	 */
	u32 pid, tgid;	       /* of the thread of the open batch */
	const atomic_t *epoch; /* of the process of the open batch */
	u32 epoch_seen;
	bool has_unreported_maps; /* the process has mappings that were not reported to the reader */
	bool user_only;
	u8 extra_records; /* MORPH_EXTRA_*: records that come with a sample */
	bool was_paused;  /* the timer was paused since it last fired */
	u64 nr_samples;
	struct morph_ring ring;
	/* Rarely used. */
	struct hrtimer timer;
	bool on;       /* this CPU collects; events before that are ignored */
	bool is_armed; /* the timer runs */
	/* The interval is @base_ns + random below @span_ns. Written by any CPU. */
	u32 base_ns, span_ns;
	u64 seed;
	u64 remaining_ns; /* rest of the interval when the CPU became idle */
	unsigned long last_jiffies;
	u64 nr_idle;
	char *path; /* buffer of PATH_MAX bytes for a file's name; NULL: this CPU has no ring */
	/* MORPH_NR_FILES elements: serial of the file that each number means in the ring */
	u64 *files;
	struct morph_stacks *stacks; /* NULL: no stacks were requested yet */
} ____cacheline_aligned;

DECLARE_PER_CPU_ALIGNED(struct morph_cpu, morph_cpus);

/* Readers that sleep in poll() or read(). */
extern wait_queue_head_t morph_readers;

/*
 * Epochs, by a hash of the tgid. A process's epoch is incremented after the record of a
 * change of its address space, or of its end, was written. A batch whose epoch has changed
 * takes no further sample. So no batch straddles such a record on any CPU, and batches may
 * be sorted by the time of their first sample.
 */
#define MORPH_NR_EPOCHS 256
extern atomic_t morph_epochs[MORPH_NR_EPOCHS];

static inline atomic_t *morph_epoch(u32 tgid)
{
	return &morph_epochs[tgid % MORPH_NR_EPOCHS];
}

/* ---- parameters and settings (main.c) ---- */

struct morph_settings {
	u32 rate_hz;
	u32 jitter; /* percentage of the interval */
	u32 mode;   /* enum morph_mode */
	u32 stack_depth;
	u32 rows_mib;
	u32 registers;	 /* mask of MORPH_IOC_REGISTERS */
	bool is_by_rows; /* MORPH_IOC_STACKS: walk by rows, not along frame pointers */
	u64 ring_bytes;
	bool user_only;
	bool is_lazy; /* MORPH_START_LAZY */
	u64 wake_bytes;
};

/* Reads the module's parameters. Return: 0, -EINVAL. */
int morph_settings_read(struct morph_settings *out);

/* ---- collect.c: starts and stops everything. Context: may sleep, one caller at a time. ---- */

int morph_collect_start(const struct morph_settings *settings);
void morph_collect_stop(void);
/* Called once, when the module is loaded. Return: 0 or -errno. */
int morph_collect_init(void);
/* Removes the hooks and frees all rings, which must not be mapped any more. */
void morph_collect_free(void);
/* The settings of the last start. */
extern struct morph_settings morph_settings;

/* ---- cpu.c ---- */

/* Gives a ring and a timer to each CPU that is or comes online. Return: 0 or -errno. */
int morph_cpus_start(void);
void morph_cpus_stop(void);
void morph_cpus_set_rate(u32 rate_hz);
void morph_cpu_on_switch(void *data, bool preempt, struct task_struct *prev,
			 struct task_struct *next, unsigned int prev_state);

/* ---- sample.c ---- */

enum hrtimer_restart morph_sample_on_timer(struct hrtimer *timer);
void morph_sample_on_tick(void *data, int vector);

/* ---- stack.c ---- */

/* Adds a STACK record with the callers of the user code that @current was in. */
void morph_stack_add(struct morph_cpu *cpu, struct pt_regs *regs);

/* ---- registers.c ---- */

/* Adds a REGISTERS record for a sample with @regs, if they belong to user code. */
void morph_registers_add(struct morph_cpu *cpu, const struct pt_regs *regs);

/* ---- event.c, mapping.c ---- */

int morph_events_init(void);
int morph_events_start(void);
void morph_events_stop(void);
int morph_mappings_start(void);
void morph_mappings_stop(void);
void morph_mappings_exit(void);

/*
 * morph_event_begin - starts a record about @task, with the current time, in @cpu's ring.
 * The caller must write everything behind struct morph_task before morph_ring_commit().
 * Return: NULL if there is no room, which is counted as a lost event.
 * Context: on @cpu, which collects, interrupts off until the commit.
 */
void *morph_event_begin(struct morph_cpu *cpu, u32 type, u32 size, const struct task_struct *task);
/* The same, but a failure is not counted: nothing is lost, since it can be written later. */
void *morph_record_begin(struct morph_cpu *cpu, u32 type, u32 size, const struct task_struct *task);

/* ---- hook.c: tracepoints by name ---- */

struct tracepoint;

struct morph_hook {
	const char *name;
	void *probe; /* its type is checked at its definition */
	struct tracepoint *tracepoint;
};

/* Return: 0, -ENOENT if the kernel has no such tracepoint. */
int morph_hooks_find(struct morph_hook *hooks, size_t nr);
int morph_hooks_start(struct morph_hook *hooks, size_t nr);
/* No probe runs after this. Context: may sleep. */
void morph_hooks_stop(struct morph_hook *hooks, size_t nr);

/* ---- text.c ---- */

/* Return: false if the text's address cannot be found: kernel code is then not sampled. */
bool morph_text_init(void);
/* The value that is reported for the kernel's address @ip; never @ip itself. */
u64 morph_text_hide(u64 ip);

/* ---- dev.c ---- */

int morph_dev_init(void);
void morph_dev_exit(void);

#endif
