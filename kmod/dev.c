// SPDX-License-Identifier: GPL-2.0
/* dev - /dev/morphmon, as uapi/morph_dev.h describes it. */
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "kmod/compat.h"
#include "kmod/morphmon.h"

/* Distance between two MORPH_DEV_RING() offsets, in pages. */
#define RING_PAGES (1UL << (32 - PAGE_SHIFT))

DECLARE_WAIT_QUEUE_HEAD(morph_readers);

/* By the reader. Who may only look opens the device beside it. */
static atomic_t is_open = ATOMIC_INIT(0);
/* Serialises starting, stopping and read(): threads may share the file. */
static DEFINE_MUTEX(lock);
static bool is_collecting; /* under lock */
static bool has_kernel;
/* For the next start; under lock. */
static u32 registers;
static u32 stack_depth;
static bool is_by_rows; /* @stack_depth was requested, and replaces the parameter */

/* 0: this CPU has no ring. */
static u64 ring_size(const struct morph_ring *ring)
{
	/* Pairs with the release in morph_ring_init(): the other fields are set. */
	return smp_load_acquire(&ring->size);
}

/* ---- requests ---- */

static int hello(void __user *arg)
{
	struct morph_settings settings;
	struct morph_hello h;
	unsigned int id;
	u32 major;
	int ret;

	if (copy_from_user(&h, arg, sizeof(h)))
		return -EFAULT;
	ret = morph_settings_read(&settings);
	if (ret)
		return ret;
	major = h.abi_major;
	h = (struct morph_hello){
		.abi_major = MORPH_ABI_MAJOR,
		.abi_minor = MORPH_ABI_MINOR,
		.nr_cpu_ids = nr_cpu_ids,
		.ring_bytes = settings.ring_bytes,
		.rate_hz = settings.rate_hz,
		.mode = settings.mode,
		.tick_hz = HZ,
		.has_kernel = has_kernel,
	};
	for_each_possible_cpu(id)
		h.nr_rings += ring_size(&per_cpu_ptr(&morph_cpus, id)->ring) != 0;
	if (copy_to_user(arg, &h, sizeof(h)))
		return -EFAULT;
	return major == MORPH_ABI_MAJOR ? 0 : -EPROTO;
}

static int start(void __user *arg)
{
	struct morph_settings settings;
	struct morph_start s;
	int ret;

	if (copy_from_user(&s, arg, sizeof(s)))
		return -EFAULT;
	ret = morph_settings_read(&settings);
	if (ret)
		return ret;
	if (s.flags & ~(MORPH_START_NO_KERNEL | MORPH_START_MODE | MORPH_START_LAZY))
		return -EINVAL;
	if (s.flags & MORPH_START_MODE) {
		if (s.mode > MORPH_MODE_TICK)
			return -EINVAL;
		settings.mode = s.mode;
	}
	if (s.rate_hz > MORPH_RATE_MAX)
		return -EINVAL;
	if (s.rate_hz)
		settings.rate_hz = s.rate_hz;
	settings.user_only = (s.flags & MORPH_START_NO_KERNEL) || !has_kernel;
	settings.is_lazy = s.flags & MORPH_START_LAZY;
	settings.registers = registers;
	settings.is_by_rows = is_by_rows;
	if (is_by_rows)
		settings.stack_depth = stack_depth;
	/*
	 * A record that does not fit leaves the rest of a ring unused, so a ring may never
	 * hold more than half.
	 */
	settings.wake_bytes = s.wake_bytes ? min_t(u64, s.wake_bytes, settings.ring_bytes / 2)
					   : settings.ring_bytes / 4;
	if (is_collecting)
		return -EALREADY;
	ret = morph_collect_start(&settings);
	is_collecting = !ret;
	return ret;
}

static int stop(void)
{
	if (is_collecting)
		morph_collect_stop();
	is_collecting = false;
	return 0;
}

static int set_rate(void __user *arg)
{
	u32 rate_hz;

	if (get_user(rate_hz, (u32 __user *)arg))
		return -EFAULT;
	if (!rate_hz || rate_hz > MORPH_RATE_MAX)
		return -EINVAL;
	if (!is_collecting)
		return -ENODATA;
	if (morph_settings.mode != MORPH_MODE_HRTIMER)
		return -EOPNOTSUPP;
	morph_cpus_set_rate(rate_hz);
	return 0;
}

static int set_registers(void __user *arg)
{
	u32 mask;

	if (get_user(mask, (u32 __user *)arg))
		return -EFAULT;
	if (mask & ~MORPH_REGS_BRANCHES)
		return -EINVAL;
	/*
	 * Registers hold secrets of all users: CAP_PERFMON is needed, beyond access to the
	 * device.
	 */
	if (mask && !perfmon_capable())
		return -EPERM;
	registers = mask;
	return 0;
}

static int set_stacks(void __user *arg)
{
	u32 depth;

	if (get_user(depth, (u32 __user *)arg))
		return -EFAULT;
	if (depth > MORPH_STACK_MAX)
		return -EINVAL;
	if (depth && !perfmon_capable())
		return -EPERM;
	stack_depth = depth;
	is_by_rows = true;
	return 0;
}

/* Hostile rows would make walks report any word of any program's memory. */
static int add_rows(const void __user *arg)
{
	struct morph_settings settings;
	int ret;

	if (!perfmon_capable())
		return -EPERM;
	ret = morph_settings_read(&settings);
	return ret ? ret : morph_row_file_add(arg, (u64)settings.rows_mib << 20);
}

static int walks(void __user *arg)
{
	struct morph_walks w = {};

	BUILD_BUG_ON(ARRAY_SIZE(w.stops) < MORPH_NR_STACK_STOP);
	morph_row_files_count(&w);
	morph_stacks_count(&w);
	return copy_to_user(arg, &w, sizeof(w)) ? -EFAULT : 0;
}

static int counts(void __user *arg)
{
	struct morph_counts c = {};
	const struct morph_cpu *cpu;
	unsigned int id;

	for_each_possible_cpu(id) {
		cpu = per_cpu_ptr(&morph_cpus, id);
		c.samples += READ_ONCE(cpu->nr_samples);
		c.lost_samples += READ_ONCE(cpu->ring.sum_lost_samples);
		c.events += READ_ONCE(cpu->ring.nr_events);
		c.lost_events += READ_ONCE(cpu->ring.sum_lost_events);
		c.idle += READ_ONCE(cpu->nr_idle);
		c.wakeups += READ_ONCE(cpu->ring.nr_wakeups);
	}
	return copy_to_user(arg, &c, sizeof(c)) ? -EFAULT : 0;
}

static int exec_id(void __user *arg)
{
	struct task_struct *task;
	struct morph_exec_id e;
	int ret = -ESRCH;

	if (copy_from_user(&e, arg, sizeof(e)))
		return -EFAULT;
	rcu_read_lock();
	task = pid_task(find_pid_ns(e.tgid, &init_pid_ns), PIDTYPE_TGID);
	if (task) {
		e.exec_id = task->self_exec_id;
		ret = 0;
	}
	rcu_read_unlock();
	if (!ret && copy_to_user(arg, &e, sizeof(e)))
		ret = -EFAULT;
	return ret;
}

static int sync(void __user *arg)
{
	u64 now_ns = ktime_get_ns();

	/*
	 * A writer has interrupts off from before it reads the time until after it
	 * publishes the record. So all writers with an earlier time have published once the
	 * grace period ends.
	 */
	synchronize_rcu();
	return put_user(now_ns, (u64 __user *)arg);
}

/* The reader may write. Others see nothing that another open could free, and change nothing. */
static bool is_reader(const struct file *file)
{
	return file->f_mode & FMODE_WRITE;
}

static bool changes_nothing(unsigned int request)
{
	return request == MORPH_IOC_HELLO || request == MORPH_IOC_COUNTS ||
	       request == MORPH_IOC_WALKS;
}

static long morph_ioctl(struct file *file, unsigned int request, unsigned long arg)
{
	void __user *to = (void __user *)arg;
	long ret;

	if (!is_reader(file) && !changes_nothing(request))
		return -EBADF;
	switch (request) {
	case MORPH_IOC_HELLO:
		return hello(to);
	case MORPH_IOC_COUNTS:
		return counts(to);
	case MORPH_IOC_EXEC_ID:
		return exec_id(to);
	case MORPH_IOC_SYNC:
		return sync(to);
	}
	if (mutex_lock_interruptible(&lock))
		return -ERESTARTSYS;
	switch (request) {
	case MORPH_IOC_START:
		ret = start(to);
		break;
	case MORPH_IOC_STOP:
		ret = stop();
		break;
	case MORPH_IOC_RATE:
		ret = set_rate(to);
		break;
	case MORPH_IOC_REGISTERS:
		ret = set_registers(to);
		break;
	case MORPH_IOC_STACKS:
		ret = set_stacks(to);
		break;
	case MORPH_IOC_ROWS:
		ret = add_rows(to);
		break;
	case MORPH_IOC_WALKS:
		ret = walks(to);
		break;
	default:
		ret = -ENOTTY;
	}
	mutex_unlock(&lock);
	return ret;
}

/* ---- mapping the rings ---- */

static int morph_mmap_pages(struct file *file, struct vm_area_struct *vma)
{
	unsigned long id = vma->vm_pgoff / RING_PAGES, page = vma->vm_pgoff % RING_PAGES;
	unsigned long nr = vma_pages(vma);
	struct morph_ring *ring;
	u64 size;

	if (!is_reader(file))
		return -EACCES;
	if (id >= nr_cpu_ids || !cpu_possible(id))
		return -ENXIO;
	ring = &per_cpu_ptr(&morph_cpus, id)->ring;
	size = ring_size(ring);
	if (!size)
		return -ENXIO;
	if (page > size / PAGE_SIZE + 1 || nr > size / PAGE_SIZE + 2 - page)
		return -EINVAL;
	if (page == 0) {
		if (nr != 1 || !(vma->vm_flags & VM_MAYSHARE))
			return -EINVAL;
	} else {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		morph_vm_flags_clear(vma, VM_MAYWRITE);
	}
	return remap_vmalloc_range(vma, ring->pages, page);
}

static __poll_t morph_poll(struct file *file, struct poll_table_struct *table)
{
	const struct morph_ring *ring;
	unsigned int id;

	if (!is_reader(file))
		return EPOLLERR;
	poll_wait(file, &morph_readers, table);
	for_each_possible_cpu(id) {
		ring = &per_cpu_ptr(&morph_cpus, id)->ring;
		if (ring_size(ring) && morph_ring_is_due(ring) && morph_ring_has_more(ring))
			return EPOLLIN | EPOLLRDNORM;
	}
	return 0;
}

/* ---- read() ---- */

/* Context: under lock. */
static ssize_t read_rings(char __user *to, size_t room)
{
	static unsigned int first; /* changes each time, so that a small @room is fair */
	unsigned int i, id;
	bool is_full = false;
	size_t done = 0;
	ssize_t ret;

	first = (first + 1) % nr_cpu_ids;
	for (i = 0; i < nr_cpu_ids; i++) {
		id = (first + i) % nr_cpu_ids;
		if (!cpu_possible(id) || !ring_size(&per_cpu_ptr(&morph_cpus, id)->ring))
			continue;
		ret = morph_ring_read(&per_cpu_ptr(&morph_cpus, id)->ring, to + done, room - done);
		if (ret == -ENOSPC) {
			is_full = true;
			continue;
		}
		if (ret < 0)
			return done ? done : ret;
		done += ret;
	}
	/* Not even one record fits: with 0 the caller would try for ever. */
	return !done && is_full ? -EINVAL : done;
}

static bool has_records(void)
{
	unsigned int id;

	for_each_possible_cpu(id) {
		const struct morph_ring *ring = &per_cpu_ptr(&morph_cpus, id)->ring;

		if (ring_size(ring) && morph_ring_has_more(ring))
			return true;
	}
	return false;
}

static ssize_t morph_read(struct file *file, char __user *to, size_t room, loff_t *pos)
{
	ssize_t ret;

	/* What one reads, the other does not get. */
	if (!is_reader(file))
		return -EBADF;
	while (room) {
		if (mutex_lock_interruptible(&lock))
			return -ERESTARTSYS;
		ret = read_rings(to, room);
		mutex_unlock(&lock);
		if (ret)
			return ret;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		/* Few records wake no reader, but they must not wait for ever. */
		ret = wait_event_interruptible_timeout(morph_readers, has_records(), HZ / 10);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* ---- open and close ---- */

static int morph_open(struct inode *inode, struct file *file)
{
	if (is_reader(file) && atomic_cmpxchg(&is_open, 0, 1))
		return -EBUSY;
	return nonseekable_open(inode, file);
}

static int morph_release(struct inode *inode, struct file *file)
{
	if (!is_reader(file))
		return 0;
	mutex_lock(&lock);
	stop();
	morph_collect_free();
	registers = 0;
	stack_depth = 0;
	is_by_rows = false;
	mutex_unlock(&lock);
	/* The next open() finds everything reset. */
	atomic_set_release(&is_open, 0);
	return 0;
}

static const struct file_operations morph_fops = {
	.owner = THIS_MODULE,
	.open = morph_open,
	.release = morph_release,
	.unlocked_ioctl = morph_ioctl,
	.mmap = morph_mmap_pages,
	.poll = morph_poll,
	.read = morph_read,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "morphmon",
	.fops = &morph_fops,
	.mode = 0640,
};

int morph_dev_init(void)
{
	has_kernel = morph_text_init();
	return misc_register(&device);
}

void morph_dev_exit(void)
{
	misc_deregister(&device);
}
