// SPDX-License-Identifier: GPL-2.0
/*
 * mapping - records executable memory when it is mapped: the file, the part of it, and the
 * address.
 * The kernel calls perf_event_mmap() for every mapping and every mprotect(), including
 * those of exec, before the program can use them. It has no tracepoint. A kprobe there
 * would cost every mapping of any kind three times as much as function tracing does.
 */
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/kdev_t.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/string.h>

#include "kmod/build_id.h"
#include "kmod/compat.h"
#include "kmod/morphmon.h"

/* Name of memory without a file, as in /proc/PID/maps and in perf. */
static const char *nameless(struct vm_area_struct *vma)
{
	const char *name = NULL;

	if (vma->vm_ops && vma->vm_ops->name)
		name = vma->vm_ops->name(vma); /* [vdso] */
	return name ? name : "//anon";
}

static void describe_file(struct morph_mmap *mmap, struct file *file)
{
	const struct inode *inode = morph_file_inode(file);
	struct file *program;

	mmap->dev_major = MAJOR(inode->i_sb->s_dev);
	mmap->dev_minor = MINOR(inode->i_sb->s_dev);
	mmap->ino = inode->i_ino;
	mmap->ino_generation = inode->i_generation;
	mmap->task.flags = MORPH_MMAP_GENERATION;
	/* Preemption is off, so exe_file cannot be freed. */
	program = rcu_dereference_sched(current->mm->exe_file);
	if (program && file_inode(program) == inode)
		mmap->task.flags |= MORPH_MMAP_PROGRAM;
	/* init_task has the namespace of process 1, unless process 1 has left it. */
	if (current->nsproxy && current->nsproxy->mnt_ns != init_task.nsproxy->mnt_ns)
		mmap->task.flags |= MORPH_MMAP_NAMESPACE;
	mmap->build_id_len = morph_build_id_read(file, mmap->build_id);
}

/* @mmap: only the flags of its task are set. */
static void send(struct morph_cpu *cpu, const struct morph_mmap *mmap, const char *path, u32 len)
{
	const size_t body = offsetof(struct morph_mmap, start);
	u32 size = ALIGN(sizeof(*mmap) + len + 1, MORPH_RECORD_ALIGN);
	struct morph_mmap *record;
	unsigned long flags;

	local_irq_save(flags);
	record = morph_event_begin(cpu, MORPH_REC_MMAP, size, current);
	if (record) {
		record->task.flags = mmap->task.flags;
		memcpy((u8 *)record + body, (const u8 *)mmap + body, sizeof(*mmap) - body);
		/* The NUL and the padding lie in the last eight bytes. */
		*(u64 *)((u8 *)record + size - sizeof(u64)) = 0;
		memcpy(record->path, path, len);
		morph_ring_commit(&cpu->ring, size);
	}
	local_irq_restore(flags);
}

static void lose(struct morph_cpu *cpu)
{
	unsigned long flags;

	local_irq_save(flags);
	morph_ring_lose(&cpu->ring, ktime_get_ns(), 0, 1);
	local_irq_restore(flags);
}

static void report_mapping(struct morph_cpu *cpu, struct vm_area_struct *vma)
{
	struct morph_mmap mmap = {
		.start = vma->vm_start,
		.len = vma->vm_end - vma->vm_start,
	};
	enum morph_event_action action;
	const char *path;
	u32 len;

	if (!vma->vm_file) {
		path = nameless(vma);
		len = strlen(path);
	} else {
		mmap.off = (u64)vma->vm_pgoff << PAGE_SHIFT;
		describe_file(&mmap, vma->vm_file);
		/* d_path() puts the name at the end of the buffer. */
		path = d_path(morph_file_path(vma->vm_file), cpu->path, PATH_MAX);
		len = IS_ERR(path) ? 0 : cpu->path + PATH_MAX - 1 - path;
	}
	action = morph_space_map(cpu, &mmap, path, len);
	if (action == MORPH_EVENT_WRITE && cpu->on)
		send(cpu, &mmap, path, len);
	else if (action == MORPH_EVENT_COUNT_LOST)
		lose(cpu);
	/* Also if no record was written: walks remember what is mapped. */
	if (action != MORPH_EVENT_SKIP)
		atomic_inc(morph_epoch(current->tgid));
}

/* Any context: interrupts and preemption are as in the caller of perf_event_mmap(). */
static void on_mapping(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		       struct ftrace_regs *regs)
{
	struct vm_area_struct *vma = (void *)morph_ftrace_argument(regs, 0);
	struct morph_cpu *cpu;

	if (!(vma->vm_flags & VM_EXEC) || vma->vm_mm != current->mm)
		return;
	/*
	 * Memory that the kernel gives to a new program is its [vdso]; space reports it
	 * with the other mappings.
	 */
	if (!vma->vm_file && vma->vm_ops && current->in_execve && morph_spaces_are_on())
		return;
	/* The CPU and its path buffer must stay ours until the record is sent. */
	preempt_disable_notrace();
	cpu = this_cpu_ptr(&morph_cpus);
	if (cpu->path)
		report_mapping(cpu, vma);
	else if (morph_spaces_are_on())
		lose(cpu);
	preempt_enable_notrace();
}

/*
 * PERMANENT: while the hook exists, tracing cannot be disabled as a whole, which would
 * silently lose mappings. The hook needs no guard against recursion: nothing that it calls
 * maps memory.
 */
static struct ftrace_ops hook = {
	.func = on_mapping,
	.flags = FTRACE_OPS_FL_PERMANENT,
};

/* Never registered: its filter shows how an empty filter looks. */
static struct ftrace_ops unfiltered;

/*
 * If the kernel has no memory for the name's entry, it reports success, and the filter is
 * empty. An empty filter matches every function, whose arguments are no mappings. So
 * compare it with an empty one.
 */
int morph_mappings_start(void)
{
	char name[] = "perf_event_mmap";
	int ret = ftrace_set_filter(&unfiltered, NULL, 0, 1);

	if (!ret)
		ret = ftrace_set_filter(&hook, name, strlen(name), 1);
	if (!ret && rcu_access_pointer(hook.func_hash->filter_hash) ==
			    rcu_access_pointer(unfiltered.func_hash->filter_hash))
		ret = -ENOMEM;
	return ret ? ret : register_ftrace_function(&hook);
}

void morph_mappings_stop(void)
{
	unregister_ftrace_function(&hook);
}

/*
 * To be called only once: Linux 6.1 keeps the pointer to the freed filter, and setting the
 * next one would free it again.
 */
void morph_mappings_exit(void)
{
	ftrace_free_filter(&hook);
}
