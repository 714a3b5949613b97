// SPDX-License-Identifier: GPL-2.0
/*
 * mapping - executable memory as it is mapped: which file, which part of it, where.
 *
 * perf_event_mmap() is called for every mapping and every mprotect(), those of exec included,
 * before the program can use it. There is no tracepoint there; a kprobe would cost every mapping
 * of any kind three times as much as the hook of function tracing does.
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

/* What is mapped without a file, in the words of /proc/PID/maps and of perf. */
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
	/* With preemption off it does not go away. */
	program = rcu_dereference_sched(current->mm->exe_file);
	if (program && file_inode(program) == inode)
		mmap->task.flags |= MORPH_MMAP_PROGRAM;
	/* init_task's is process 1's too, unless that one has left it. */
	if (current->nsproxy && current->nsproxy->mnt_ns != init_task.nsproxy->mnt_ns)
		mmap->task.flags |= MORPH_MMAP_NAMESPACE;
	mmap->build_id_len = morph_build_id_read(file, mmap->build_id);
}

/* @mmap: of its task the flags only. */
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
		/* The NUL and the padding are among the last eight. */
		*(u64 *)((u8 *)record + size - sizeof(u64)) = 0;
		memcpy(record->path, path, len);
		morph_ring_commit(&cpu->ring, size);
	}
	local_irq_restore(flags);
	atomic_inc(morph_epoch(current->tgid));
}

static void lose(struct morph_cpu *cpu)
{
	unsigned long flags;

	local_irq_save(flags);
	morph_ring_lose(&cpu->ring, ktime_get_ns(), 0, 1);
	local_irq_restore(flags);
}

static void tell(struct morph_cpu *cpu, struct vm_area_struct *vma)
{
	struct morph_mmap mmap = {
		.start = vma->vm_start,
		.len = vma->vm_end - vma->vm_start,
	};
	enum morph_saying saying;
	const char *path;
	u32 len;

	if (!vma->vm_file) {
		path = nameless(vma);
		len = strlen(path);
	} else {
		mmap.off = (u64)vma->vm_pgoff << PAGE_SHIFT;
		describe_file(&mmap, vma->vm_file);
		/* It is put at the end of the room for it. */
		path = d_path(morph_file_path(vma->vm_file), cpu->path, PATH_MAX);
		len = IS_ERR(path) ? 0 : cpu->path + PATH_MAX - 1 - path;
	}
	saying = morph_space_map(cpu, &mmap, path, len);
	if (saying == MORPH_SAY && cpu->on)
		send(cpu, &mmap, path, len);
	else if (saying == MORPH_SAY_LOST)
		lose(cpu);
}

/* Any context: interrupts and preemption as the caller of perf_event_mmap() had them. */
static void on_mapping(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		       struct ftrace_regs *regs)
{
	struct vm_area_struct *vma = (void *)morph_ftrace_argument(regs, 0);
	struct morph_cpu *cpu;

	if (!(vma->vm_flags & VM_EXEC) || vma->vm_mm != current->mm)
		return;
	/* What a program gets from the kernel is its [vdso], which space says with the rest. */
	if (!vma->vm_file && vma->vm_ops && current->in_execve && morph_spaces_are_on())
		return;
	/* The CPU, and its room for a path, are ours until the record is sent. */
	preempt_disable_notrace();
	cpu = this_cpu_ptr(&morph_cpus);
	if (cpu->path)
		tell(cpu, vma);
	else if (morph_spaces_are_on())
		lose(cpu);
	preempt_enable_notrace();
}

/*
 * While it is there the kernel's tracing cannot be switched off as a whole, or mappings would be
 * missed in silence. It needs no guard against itself: nothing that it calls maps memory.
 */
static struct ftrace_ops hook = {
	.func = on_mapping,
	.flags = FTRACE_OPS_FL_PERMANENT,
};

/* Never registered. Its filter is the one of an ops without any. */
static struct ftrace_ops unfiltered;

/*
 * Where the kernel had no memory for the name's entry it says that all is well, and the filter is
 * empty, which means every function there is: their arguments are no mappings.
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
 * Once only: Linux 6.1 keeps the pointer to the filter that was freed, and setting the next
 * one would free it again.
 */
void morph_mappings_exit(void)
{
	ftrace_free_filter(&hook);
}
