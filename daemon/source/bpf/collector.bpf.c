// SPDX-License-Identifier: GPL-2.0
/*
 * collector - the BPF programs: they send samples and process events through one ring buffer.
 *
 * on_sample, on_sample_with_registers or on_sample_with_stack runs from a perf event on each CPU;
 * flush_stage is called by source_bpf; the other programs are tracepoints. Decides what is written and
 * when. source_bpf decides the rate, the processes and the order of events.
 * Mappings do not come from here, but from the perf event's own ring.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "daemon/source/bpf/kernel_types.h"
#include "daemon/source/bpf/wire.h"

#define barrier() asm volatile("" ::: "memory")
/* Makes the compiler forget the value range of @x, so that the following check is not removed. */
#define hide(x) asm volatile("" : "+r"(x))

#include "daemon/source/bpf/copy.bpf.h"
#include "daemon/source/bpf/registers.bpf.h"
#include "daemon/source/bpf/walk.bpf.h"

/* A batch is flushed when a sample comes that is this much younger than the batch's first one. */
#define BATCH_MAX_NS 50000000

#define PF_KTHREAD 0x200000

const volatile bool only_tracked; /* for a command: record only processes in @tracked */
const volatile __u64 wakeup_bytes;
const volatile bool copy_always;    /* for tests: each stack comes with a copy, too */
const volatile bool with_registers; /* samples with stacks come with registers, too */
bool reader_sleeps; /* the reader sleeps longer than usual; the next exec wakes it */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19); /* set by source_bpf */
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by source_bpf */
	__type(key, __u32);
	__type(value, struct md_wire_stage);
} stages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MD_WIRE_MAX_TRACKED);
	__type(key, __u32);
	__type(value, __u32); /* number of threads */
} tracked SEC(".maps");

/* The reader polls on a timer. Wake it only if the ring would fill up before. */
static __u64 wakeup(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > wakeup_bytes ? BPF_RB_FORCE_WAKEUP
									  : BPF_RB_NO_WAKEUP;
}

static struct md_wire_stage *enter(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct md_wire_stage *stage = bpf_map_lookup_elem(&stages, &cpu);

	if (stage)
		__sync_fetch_and_add(&stage->entered, 1);
	return stage;
}

static void leave(struct md_wire_stage *stage)
{
	__sync_fetch_and_add(&stage->left, 1);
}

/* ---- samples ------------------------------------------------------------------------------ */

static void flush(struct md_wire_stage *stage)
{
	__u64 nr = stage->nr, flags = wakeup(), size;

	hide(nr);
	if (!nr || nr > MD_WIRE_BATCH)
		return;
	size = sizeof(struct morph_task) + nr * sizeof(struct md_wire_sample);
	stage->batch.task.record.size = size;
	if (bpf_ringbuf_output(&ring, &stage->batch, size, flags))
		__sync_fetch_and_add(&stage->nr_lost, nr);
	stage->nr = 0;
	barrier(); /* publish the batch before the stage counts as empty */
	stage->first_ns = 0;
}

static void stage_sample(struct md_wire_stage *stage, __u64 now_ns, __u64 id, __u64 ip)
{
	struct morph_task *task = &stage->batch.task;
	__u64 nr;

	if (stage->nr >= MD_WIRE_BATCH || task->tid != (__u32)id || task->tgid != id >> 32 ||
	    now_ns - stage->first_ns > BATCH_MAX_NS)
		flush(stage);
	if (!stage->nr) {
		task->record.type = MD_WIRE_SAMPLES;
		task->record.cpu = bpf_get_smp_processor_id();
		task->time_ns = now_ns;
		task->tgid = id >> 32;
		task->tid = id;
		stage->first_ns = now_ns;
	}
	nr = stage->nr;
	hide(nr);
	if (nr >= MD_WIRE_BATCH)
		return;
	stage->batch.samples[nr].time_ns = now_ns;
	stage->batch.samples[nr].ip = ip;
	stage->nr = nr + 1;
}

/* The interrupted code is changing the stage: write this sample straight to the ring. */
static void send_sample(struct md_wire_stage *stage, __u64 now_ns, __u64 id, __u64 ip)
{
	struct {
		struct morph_task task;
		struct md_wire_sample sample;
	} one = {
		.task = {{sizeof(one), MD_WIRE_SAMPLES, bpf_get_smp_processor_id()},
			 now_ns,
			 id >> 32,
			 id,
			 0,
			 0},
		.sample = {now_ns, ip},
	};

	if (bpf_ringbuf_output(&ring, &one, sizeof(one), wakeup()))
		__sync_fetch_and_add(&stage->nr_lost, 1);
}

static __always_inline void add_sample(struct md_wire_stage *stage, __u64 now_ns, __u64 id,
				       __u64 ip)
{
	if (stage->busy) {
		send_sample(stage, now_ns, id, ip);
	} else {
		stage->busy = 1;
		barrier();
		stage_sample(stage, now_ns, id, ip);
		barrier();
		stage->busy = 0;
	}
}

/* Return: false: this is no 64-bit user code, or the ring has no room for registers. */
static __always_inline bool send_registers(const struct bpf_perf_event_data *ctx, __u64 now_ns,
					   __u64 id)
{
	struct md_wire_registers *record;

	if (ctx->regs.cs != USER_CS)
		return false;
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record)
		return false;
	record->task.record.size = sizeof(*record);
	record->task.record.type = MD_WIRE_REGISTERS;
	record->task.record.cpu = bpf_get_smp_processor_id();
	record->task.time_ns = now_ns;
	record->task.tgid = id >> 32;
	record->task.tid = id;
	record->task.exec_id = 0;
	record->task.flags = 0;
	record->ip = ctx->regs.rip;
	copy_registers(record->values, ctx);
	bpf_ringbuf_submit(record, wakeup());
	return true;
}

/* @registers: send them with the sample, where this is possible. */
static __always_inline int take_sample(const struct bpf_perf_event_data *ctx, bool registers)
{
	__u64 id = bpf_get_current_pid_tgid(), now_ns;
	struct md_wire_stage *stage;

	if (!(id >> 32))
		return 0; /* the idle task */
	stage = enter();
	if (!stage)
		return 0;
	now_ns = bpf_ktime_get_ns();
	__sync_fetch_and_add(&stage->nr_samples, 1);
	if (!registers || !send_registers(ctx, now_ns, id))
		add_sample(stage, now_ns, id, ctx->regs.rip);
	leave(stage);
	return 0;
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	return take_sample(ctx, false);
}

SEC("perf_event")
int on_sample_with_registers(struct bpf_perf_event_data *ctx)
{
	return take_sample(ctx, true);
}

/* ---- samples with stacks ------------------------------------------------------------------ */

/* Copies the interrupted code's registers. The context is read at fixed places only. */
static __always_inline void copy_context(__u64 *to, const struct bpf_perf_event_data *ctx)
{
	to[0] = ctx->regs.r15;
	to[1] = ctx->regs.r14;
	to[2] = ctx->regs.r13;
	to[3] = ctx->regs.r12;
	to[4] = ctx->regs.rbp;
	to[5] = ctx->regs.rbx;
	to[6] = ctx->regs.r11;
	to[7] = ctx->regs.r10;
	to[8] = ctx->regs.r9;
	to[9] = ctx->regs.r8;
	to[10] = ctx->regs.rax;
	to[11] = ctx->regs.rcx;
	to[12] = ctx->regs.rdx;
	to[13] = ctx->regs.rsi;
	to[14] = ctx->regs.rdi;
	to[16] = ctx->regs.rip;
	to[17] = ctx->regs.cs;
	to[19] = ctx->regs.rsp;
}

/*
 * Gets the registers of the user code, which may have entered the kernel. Return: false: there is
 * no 64-bit user code. During an exec the mappings are not those of its registers; until its end the
 * address space has no start of code.
 */
static __always_inline bool start_walk(struct walk *w, const struct bpf_perf_event_data *ctx)
{
	/* The verifier knows these pointers: what they point to is read without a call. */
	const struct task_struct *task = bpf_get_current_task_btf();
	const struct mm_struct *mm = task->mm;

	w->mm = (__u64)mm;
	w->nr = 0;
	w->max = MD_WIRE_STACK_MAX;
	w->record.task.flags = 0;
	if (!mm || task->flags & PF_KTHREAD || !mm->start_code)
		return false;
	enter_space(w, mm);
	if ((ctx->regs.cs & 3) == 3) {
		copy_context(w->pt_regs, ctx);
	} else {
		bpf_probe_read_kernel(w->pt_regs, sizeof(w->pt_regs),
				      (const void *)bpf_task_pt_regs((void *)task));
		w->record.task.flags = MORPH_STACK_USER_IP;
		w->record.frames[0].ip = w->pt_regs[16];
		w->record.frames[0].slot = 0;
		w->nr = 1;
	}
	return w->pt_regs[17] == USER_CS;
}

/* @flags: MD_WIRE_AGAIN, or 0. */
static __always_inline void send_stack(struct md_wire_stage *stage, struct walk *w, __u32 flags)
{
	__u64 nr = w->nr, size;

	hide(nr);
	if (nr > MD_WIRE_STACK_MAX)
		return;
	size = offsetof(struct md_wire_stack, frames) + nr * sizeof(w->record.frames[0]);
	w->record.task.record.size = size;
	w->record.task.flags |= flags;
	if (bpf_ringbuf_output(&ring, &w->record, size, wakeup()) && !flags)
		__sync_fetch_and_add(&stage->nr_lost, 1);
}

static __always_inline void send_copy(struct md_wire_stage *stage, struct walk *w, __u32 flags)
{
	__u32 first = 0;
	struct copy *copy = bpf_map_lookup_elem(&copies, &first);
	__u64 size;

	if (!copy)
		return;
	copy_stack(copy, w);
	copy->record.task.flags |= flags;
	size = (copy->record.nr + 7) & ~7ULL;
	hide(size);
	if (size > MD_WIRE_COPY_BYTES)
		return;
	size += offsetof(struct md_wire_copy, bytes);
	copy->record.task.record.size = size;
	if (bpf_ringbuf_output(&ring, &copy->record, size,
			       w->is_new ? BPF_RB_FORCE_WAKEUP : wakeup()) &&
	    !flags)
		__sync_fetch_and_add(&stage->nr_lost, 1);
}

/*
 * True if morphd can walk further than @w did: it gets a file's rows before it gets the sample. Copies
 * must not take the room of samples.
 */
static __always_inline bool is_too_early(const struct walk *w)
{
	return w->stop == MORPH_STACK_NO_ROWS && w->is_asked &&
	       w->codes[w->code & (NR_CODES - 1)].kind == CODE_ASKED &&
	       bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < 2 * wakeup_bytes;
}

SEC("perf_event")
int on_sample_with_stack(struct bpf_perf_event_data *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), now_ns;
	struct md_wire_stage *stage;
	__u32 first = 0, again = 0;
	struct walk *w = bpf_map_lookup_elem(&walks, &first);

	if (!(id >> 32) || !w)
		return 0; /* the idle task */
	stage = enter();
	if (!stage)
		return 0;
	now_ns = bpf_ktime_get_ns();
	__sync_fetch_and_add(&stage->nr_samples, 1);
	if (start_walk(w, ctx)) {
		w->record.task.record.type = MD_WIRE_STACK;
		w->record.task.record.cpu = bpf_get_smp_processor_id();
		w->record.task.time_ns = now_ns;
		w->record.task.tgid = id >> 32;
		w->record.task.tid = id;
		w->record.ip = ctx->regs.rip;
		walk(w);
		w->record.task.flags |= w->stop;
		if (with_registers && send_registers(ctx, now_ns, id))
			again = MD_WIRE_AGAIN;
		if (is_too_early(w) && !copy_always)
			send_copy(stage, w, again);
		else
			send_stack(stage, w, again);
		if (copy_always)
			send_copy(stage, w, MD_WIRE_AGAIN);
	} else if (!with_registers || !send_registers(ctx, now_ns, id)) {
		add_sample(stage, now_ns, id, ctx->regs.rip);
	}
	leave(stage);
	return 0;
}

/* source_bpf runs this on a CPU whose stage has waited long enough. */
SEC("raw_tp")
int flush_stage(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct md_wire_stage *stage = bpf_map_lookup_elem(&stages, &cpu);

	(void)ctx;
	if (!stage || stage->busy)
		return 0;
	stage->busy = 1;
	barrier();
	flush(stage);
	barrier();
	stage->busy = 0;
	return 0;
}

/* ---- events ------------------------------------------------------------------------------- */

static void fill(struct morph_task *task, __u16 type, __u16 size, const struct task_struct *of)
{
	task->record.size = size;
	task->record.type = type;
	task->record.cpu = bpf_get_smp_processor_id();
	task->time_ns = bpf_ktime_get_ns();
	task->tgid = BPF_CORE_READ(of, tgid);
	task->tid = BPF_CORE_READ(of, pid);
}

static bool wanted(__u32 tgid)
{
	const __u32 *nr;

	if (!only_tracked)
		return true;
	nr = bpf_map_lookup_elem(&tracked, &tgid);
	return nr && *nr;
}

static void send(struct md_wire_stage *stage, void *record, __u64 size, __u64 flags)
{
	if (bpf_ringbuf_output(&ring, record, size, flags))
		__sync_fetch_and_add(&stage->nr_lost_events, 1);
}

/* A program that is executed now may be gone before the reader's next poll. */
static __u64 wakeup_exec(void)
{
	if (!reader_sleeps)
		return wakeup();
	reader_sleeps = false;
	return BPF_RB_FORCE_WAKEUP;
}

/*
 * execve() renames the task after the old address space is gone and before anything is mapped
 * in the new one. sched_process_exec fires only after the program was mapped, which is too
 * late. Other renames differ: only during execve() does the address space have no code yet.
 */
SEC("raw_tp/task_rename")
int on_rename(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct *of = (const void *)ctx->args[0];
	const struct mm_struct *mm = BPF_CORE_READ(of, mm);
	struct md_wire_stage *stage;
	struct morph_exec exec = {};
	struct morph_comm comm = {};

	if (!mm || !wanted(BPF_CORE_READ(of, tgid)))
		return 0;
	stage = enter();
	if (!stage)
		return 0;
	if (!BPF_CORE_READ(mm, start_code)) {
		fill(&exec.task, MORPH_REC_EXEC, sizeof(exec), of);
		exec.nr_threads = 1;
		send(stage, &exec, sizeof(exec), wakeup_exec());
	}
	fill(&comm.task, MORPH_REC_COMM, sizeof(comm), of);
	bpf_probe_read_kernel_str(comm.comm, sizeof(comm.comm), (const void *)ctx->args[1]);
	send(stage, &comm, sizeof(comm), wakeup());
	leave(stage);
	return 0;
}

SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct *parent = (const void *)ctx->args[0];
	const struct task_struct *child = (const void *)ctx->args[1];
	__u32 parent_tgid = BPF_CORE_READ(parent, tgid), one = 1, tgid, *nr;
	struct md_wire_stage *stage;
	struct morph_fork fork = {};

	if (!BPF_CORE_READ(child, mm) || !wanted(parent_tgid))
		return 0;
	stage = enter();
	if (!stage)
		return 0;
	fill(&fork.task, MORPH_REC_FORK, sizeof(fork), child);
	fork.parent_tgid = parent_tgid;
	fork.parent_tid = BPF_CORE_READ(parent, pid);
	if (only_tracked) {
		tgid = fork.task.tgid;
		nr = tgid == parent_tgid ? bpf_map_lookup_elem(&tracked, &tgid) : NULL;
		if (nr)
			__sync_fetch_and_add(nr, 1);
		else
			bpf_map_update_elem(&tracked, &tgid, &one, BPF_ANY);
	}
	send(stage, &fork, sizeof(fork), wakeup());
	leave(stage);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct *of = (const void *)ctx->args[0];
	__u32 tgid = BPF_CORE_READ(of, tgid), *nr;
	struct md_wire_stage *stage;
	struct morph_exit exit = {};

	if (!wanted(tgid))
		return 0;
	stage = enter();
	if (!stage)
		return 0;
	fill(&exit.task, MORPH_REC_EXIT, sizeof(exit), of);
	exit.cpu_time_ns = BPF_CORE_READ(of, se.sum_exec_runtime);
	exit.task.flags = MORPH_EXIT_WITH_SIGNAL((__u32)BPF_CORE_READ(of, exit_code));
	if (only_tracked) {
		nr = bpf_map_lookup_elem(&tracked, &tgid);
		if (nr)
			__sync_fetch_and_add(nr, -1);
		if (nr && !*(volatile __u32 *)nr)
			bpf_map_delete_elem(&tracked, &tgid);
	}
	send(stage, &exit, sizeof(exit), wakeup());
	leave(stage);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
