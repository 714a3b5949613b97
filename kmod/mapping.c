// SPDX-License-Identifier: GPL-2.0
/*
 * mapping - executable memory as it is mapped: which file, which part of it, where.
 *
 * perf_event_mmap() is called for every mapping and every mprotect(), those of exec included,
 * before the program can use it. There is no tracepoint there, hence a kprobe.
 */
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
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
	rcu_read_lock();
	program = rcu_dereference(current->mm->exe_file);
	if (program && file_inode(program) == inode)
		mmap->task.flags |= MORPH_MMAP_PROGRAM;
	rcu_read_unlock();
	/* init_task's is process 1's too, unless that one has left it. */
	if (current->nsproxy && current->nsproxy->mnt_ns != init_task.nsproxy->mnt_ns)
		mmap->task.flags |= MORPH_MMAP_NAMESPACE;
	mmap->build_id_len = morph_build_id_read(file, mmap->build_id);
}

static void send(struct morph_cpu *cpu, struct morph_mmap *mmap, const char *path)
{
	u32 flags = mmap->task.flags, len = strlen(path);
	u32 size = ALIGN(sizeof(*mmap) + len + 1, MORPH_RECORD_ALIGN);
	unsigned long irq_flags;

	local_irq_save(irq_flags);
	morph_event_fill(&mmap->task, MORPH_REC_MMAP, size, current);
	mmap->task.flags = flags;
	morph_event_send(cpu, &mmap->task, sizeof(*mmap), path, len);
	local_irq_restore(irq_flags);
	atomic_inc(morph_epoch(current->tgid));
}

static struct kprobe probe;
static unsigned long nr_missed; /* of probe, already said */

/* A kprobe that another one's handler runs into is passed over, and counted. */
static void account_missed(struct morph_cpu *cpu)
{
	unsigned long nr = READ_ONCE(probe.nmissed), said = READ_ONCE(nr_missed), flags;

	if (likely(nr == said) || cmpxchg(&nr_missed, said, nr) != said)
		return;
	local_irq_save(flags);
	morph_ring_lose(&cpu->ring, ktime_get_ns(), 0, nr - said);
	local_irq_restore(flags);
}

/* Preemption is off, so the CPU and its room for a path are ours; interrupts may be on. */
static int on_mapping(struct kprobe *unused, struct pt_regs *regs)
{
	struct vm_area_struct *vma = (void *)regs_get_kernel_argument(regs, 0);
	struct morph_cpu *cpu = this_cpu_ptr(&morph_cpus);
	struct morph_mmap mmap = {};
	const char *path;

	if (!(vma->vm_flags & VM_EXEC) || !cpu->on || vma->vm_mm != current->mm)
		return 0;
	account_missed(cpu);
	mmap.start = vma->vm_start;
	mmap.len = vma->vm_end - vma->vm_start;
	mmap.off = (u64)vma->vm_pgoff << PAGE_SHIFT;
	if (vma->vm_file) {
		describe_file(&mmap, vma->vm_file);
		path = d_path(morph_file_path(vma->vm_file), cpu->path, PATH_MAX);
		if (IS_ERR(path))
			path = "";
	} else {
		path = nameless(vma);
	}
	send(cpu, &mmap, path);
	return 0;
}

int morph_mappings_start(void)
{
	/* What an earlier start left in it would be taken for an address that was asked for. */
	nr_missed = 0;
	probe = (struct kprobe){.symbol_name = "perf_event_mmap", .pre_handler = on_mapping};
	return register_kprobe(&probe);
}

void morph_mappings_stop(void)
{
	unregister_kprobe(&probe);
}
