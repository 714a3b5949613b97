/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compat - hides differences between kernels. Each MORPH_HAS_* is a file in probe/ that
 * compiles.
 */
#ifndef MORPH_COMPAT_H
#define MORPH_COMPAT_H

#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/sched.h>

static inline void morph_hrtimer_setup(struct hrtimer *timer,
				       enum hrtimer_restart (*fn)(struct hrtimer *timer))
{
#ifdef MORPH_HAS_HRTIMER_SETUP
	hrtimer_setup(timer, fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer->function = fn;
#endif
}

static inline void morph_vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
#ifdef MORPH_HAS_VM_FLAGS_CLEAR
	vm_flags_clear(vma, flags);
#else
	vma->vm_flags &= ~flags;
#endif
}

static inline const struct path *morph_file_path(struct file *file)
{
#ifdef MORPH_HAS_FILE_USER_PATH
	return file_user_path(file);
#else
	return &file->f_path;
#endif
}

/* The inode that /proc/PID/maps shows for the file. */
static inline const struct inode *morph_file_inode(struct file *file)
{
#ifdef MORPH_HAS_FILE_USER_PATH
	return file_user_inode(file);
#else
	return file_inode(file);
#endif
}

#ifndef CONFIG_DYNAMIC_FTRACE_WITH_ARGS
#error "morphmon needs a kernel with CONFIG_DYNAMIC_FTRACE_WITH_ARGS"
#endif

/* Argument @nr of the traced function. */
static inline unsigned long morph_ftrace_argument(struct ftrace_regs *regs, unsigned int nr)
{
#ifdef MORPH_HAS_FTRACE_ARGUMENT
	return ftrace_regs_get_argument(regs, nr);
#else
	return regs_get_kernel_argument(&regs->regs, nr);
#endif
}

/* Threads that the kernel adds to a process for its own work: no tracepoint reports their start. */
#ifdef PF_USER_WORKER
#define MORPH_PF_WORKER (PF_IO_WORKER | PF_USER_WORKER)
#else
#define MORPH_PF_WORKER PF_IO_WORKER
#endif

#ifdef MORPH_HAS_EXIT_GROUP_DEAD
#define MORPH_EXIT_ARGS struct task_struct *task, bool group_dead
#else
#define MORPH_EXIT_ARGS struct task_struct *task
#endif

#endif
