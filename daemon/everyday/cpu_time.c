// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_time - adds up threads by executed file; see cpu_time.h.
 *
 * A thread that runs is remembered with what it took when it was last looked at. When it ends, the kernel tells all
 * it took since its start, and the file's sum grows by the difference. So nothing is counted twice.
 */
#include "daemon/everyday/cpu_time.h"
#include "daemon/everyday/taskstats.h"
#include "libprof/base/clock.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define PF_EXITING	    0x4u	    /* in the flags of /proc/PID/stat, in every kernel */
#define LOOK_NS		    (20 * 1000000u) /* as long a look is good: several files are read at once */
#define LINKS_OF_ONE_THREAD 3		    /* of the directory /proc/PID/task */

struct file {
	dev_t dev;
	ino_t ino;
	struct md_cpu_sum sum; /* nr_live is not used */
};

/* A running thread that executes a file that is watched. */
struct thread {
	struct md_task task; /* what is counted so far, and for which file */
	int file;
	uint32_t look; /* the last look that found it */
};

struct md_cpu_time {
	struct md_taskstats stats;
	struct file *files;
	uint32_t *by_number; /* indexes of files, by inode and device */
	uint32_t nr_files, max_files, max_numbers;
	struct thread *threads; /* by tid */
	uint32_t nr_threads, max_threads, look;
	uint64_t looked_ns; /* when the last look ended */
};

struct md_cpu_time *md_cpu_time_open(struct mp_err *err)
{
	struct md_cpu_time *ct = calloc(1, sizeof(*ct));

	if (!ct) {
		mp_err_code(err, ENOMEM);
		return NULL;
	}
	if (!md_taskstats_open(&ct->stats, err))
		return ct;
	free(ct);
	return NULL;
}

void md_cpu_time_close(struct md_cpu_time *ct)
{
	if (!ct)
		return;
	md_taskstats_close(&ct->stats);
	free(ct->files);
	free(ct->by_number);
	free(ct->threads);
	free(ct);
}

static bool is_before(const struct file *file, dev_t dev, ino_t ino)
{
	return file->ino != ino ? file->ino < ino : file->dev < dev;
}

/* The index in by_number at which the file stands, or would stand. A trial watches hundreds of files. */
static uint32_t find_number(const struct md_cpu_time *ct, dev_t dev, ino_t ino)
{
	return mp_search(i, 0, ct->nr_files, is_before(&ct->files[ct->by_number[i]], dev, ino));
}

/* Return: its index, or -1. */
static int find_file(const struct md_cpu_time *ct, dev_t dev, ino_t ino)
{
	uint32_t at = find_number(ct, dev, ino);
	const struct file *file = at < ct->nr_files ? &ct->files[ct->by_number[at]] : NULL;

	return file && file->ino == ino && file->dev == dev ? (int)ct->by_number[at] : -1;
}

/* The device of the file system that is mounted there, which stat() may hide. Return: false: no such mount. */
static bool device_of_mount(uint64_t id, dev_t *dev)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	unsigned long long at;
	unsigned int major, minor;
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (mounts && !found && getline(&line, &room, mounts) > 0)
		found = sscanf(line, "%llu %*u %u:%u", &at, &major, &minor) == 3 && at == id;
	if (found)
		*dev = makedev(major, minor);
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

int md_cpu_time_number(const char *path, dev_t *dev, ino_t *ino)
{
	struct statx st;

	if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_MNT_ID, &st))
		return -errno;
	*ino = st.stx_ino;
	if (!(st.stx_mask & STATX_MNT_ID) || !device_of_mount(st.stx_mnt_id, dev))
		*dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	return 0;
}

int md_cpu_time_watch(struct md_cpu_time *ct, dev_t dev, ino_t ino)
{
	int index = find_file(ct, dev, ino);
	uint32_t at = find_number(ct, dev, ino), nr = ct->nr_files;

	if (index >= 0)
		return index;
	if (mp_grow(ct->by_number, ct->max_numbers, (uint64_t)nr + 1) ||
	    mp_push(ct->files, ct->nr_files, ct->max_files, (struct file){.dev = dev, .ino = ino}))
		return -ENOMEM;
	memmove(ct->by_number + at + 1, ct->by_number + at, (nr - at) * sizeof(*ct->by_number));
	ct->by_number[at] = nr;
	ct->looked_ns = 0;
	return (int)nr;
}

static uint32_t find_thread(const struct md_cpu_time *ct, pid_t tid)
{
	return mp_search(i, 0, ct->nr_threads, ct->threads[i].task.tid < tid);
}

static bool is_thread(const struct md_cpu_time *ct, uint32_t at, pid_t tid)
{
	return at < ct->nr_threads && ct->threads[at].task.tid == tid;
}

static void forget(struct md_cpu_time *ct, uint32_t at)
{
	ct->nr_threads--;
	memmove(ct->threads + at, ct->threads + at + 1,
		(ct->nr_threads - at) * sizeof(*ct->threads));
}

static void note_loss(struct md_cpu_time *ct)
{
	for (uint32_t i = 0; i < ct->nr_files; i++)
		ct->files[i].sum.incomplete = true;
}

static uint64_t growth(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

/* Adds what @now took more than @before, which is zeros or the same thread. */
static void add(struct md_cpu_time *ct, int file, const struct md_task *before,
		const struct md_task *now)
{
	struct md_cpu_sum *sum;

	if (file < 0)
		return;
	sum = &ct->files[file].sum;
	sum->user_ns += growth(before->user_ns, now->user_ns);
	sum->system_ns += growth(before->system_ns, now->system_ns);
	sum->cpu_ns += growth(before->cpu_ns, now->cpu_ns);
}

static bool is_crash(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGABRT ||
	       signal == SIGFPE || signal == SIGSYS;
}

static void take_ended(struct md_cpu_time *ct, const struct md_task *task)
{
	static const struct md_task nothing;
	uint32_t at = find_thread(ct, task->tid);
	int file = find_file(ct, task->dev, task->ino);
	bool known = is_thread(ct, at, task->tid);

	add(ct, file, known ? &ct->threads[at].task : &nothing, task);
	if (known)
		forget(ct, at);
	if (file < 0 || !task->is_last)
		return;
	ct->files[file].sum.nr_exited++;
	ct->files[file].sum.nr_killed += is_crash(task->signal);
}

int md_cpu_time_poll(struct md_cpu_time *ct)
{
	struct md_task task;
	int ret;

	for (;;) {
		ret = md_taskstats_next(&ct->stats, &task);
		if (ret == -ENOBUFS)
			note_loss(ct);
		else if (ret <= 0)
			return ret;
		else
			take_ended(ct, &task);
	}
}

/*
 * A thread that has begun to end may have been told already, and would be counted again. One that has not begun
 * will be told after this look.
 */
static bool has_begun_to_end(pid_t pid, pid_t tid)
{
	char path[64], line[512], *rest;
	unsigned int flags = PF_EXITING;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	file = fopen(path, "re");
	if (!file)
		return true;
	/* The name may contain anything, so the last bracket counts. */
	if (fgets(line, sizeof(line), file) && (rest = strrchr(line, ')')) &&
	    sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		flags = PF_EXITING;
	fclose(file);
	return flags & PF_EXITING;
}

/* A thread that runs. Return: 0, -ENOMEM. */
static int take_running(struct md_cpu_time *ct, const struct md_task *task, int file)
{
	struct thread *thread, new = {.file = file};
	uint32_t at = find_thread(ct, task->tid);

	if (!is_thread(ct, at, task->tid)) {
		if (mp_grow(ct->threads, ct->max_threads, (uint64_t)ct->nr_threads + 1))
			return -ENOMEM;
		memmove(ct->threads + at + 1, ct->threads + at,
			(ct->nr_threads - at) * sizeof(*ct->threads));
		ct->threads[at] = new;
		ct->nr_threads++;
	}
	thread = &ct->threads[at];
	add(ct, file, &thread->task, task);
	thread->task = *task;
	thread->file = file;
	thread->look = ct->look;
	return 0;
}

static int look_at_thread(struct md_cpu_time *ct, pid_t pid, pid_t tid)
{
	struct md_task task;
	int ret, file;

	if (has_begun_to_end(pid, tid))
		return 0;
	ret = md_taskstats_get(&ct->stats, tid, &task);
	if (ret)
		return ret == -ESRCH ? 0 : ret;
	file = find_file(ct, task.dev, task.ino);
	return file < 0 ? 0 : take_running(ct, &task, file);
}

/* Calls @visit with each number that @path has as a directory. */
static int each_number(struct md_cpu_time *ct, const char *path, pid_t pid,
		       int (*visit)(struct md_cpu_time *ct, pid_t pid, pid_t number))
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			ret = visit(ct, pid, atoi(entry->d_name));
	closedir(dir);
	return ret;
}

static int look_at_process(struct md_cpu_time *ct, pid_t unused, pid_t pid)
{
	struct md_task task;
	struct stat dir;
	char path[64];
	int ret = md_taskstats_get(&ct->stats, pid, &task);

	(void)unused;
	if (ret)
		return ret == -ESRCH ? 0 : ret;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	/* No file: a thread of the kernel, or the first thread ended before the others. */
	if (!task.ino && (stat(path, &dir) || dir.st_nlink <= LINKS_OF_ONE_THREAD))
		return 0;
	if (task.ino && find_file(ct, task.dev, task.ino) < 0)
		return 0;
	ret = each_number(ct, path, pid, look_at_thread);
	return ret == -ENOENT || ret == -ESRCH ? 0 : ret;
}

/* A thread that was not found, has not been told to have ended, and is not there: its message was lost. */
static int drop_lost(struct md_cpu_time *ct)
{
	struct md_task task;
	uint32_t i = 0;
	int ret;

	while (i < ct->nr_threads) {
		struct thread *thread = &ct->threads[i];

		if (thread->look == ct->look) {
			i++;
			continue;
		}
		ret = md_taskstats_get(&ct->stats, thread->task.tid, &task);
		if (ret && ret != -ESRCH)
			return ret;
		if (!ret && task.tgid == thread->task.tgid) {
			i++; /* it ends at this moment, or executes another file */
			continue;
		}
		ct->files[thread->file].sum.incomplete = true;
		forget(ct, i);
	}
	return 0;
}

static uint64_t count_live(const struct md_cpu_time *ct, int index)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; i < ct->nr_threads; i++)
		nr += ct->threads[i].file == index && ct->threads[i].look == ct->look &&
		      ct->threads[i].task.tid == ct->threads[i].task.tgid;
	return nr;
}

static int look_at_all(struct md_cpu_time *ct)
{
	int ret;

	ct->look++;
	ret = each_number(ct, "/proc", 0, look_at_process);
	if (!ret)
		ret = md_cpu_time_poll(ct);
	if (!ret)
		ret = drop_lost(ct);
	if (!ret)
		ct->looked_ns = mp_now_ns();
	return ret;
}

int md_cpu_time_read(struct md_cpu_time *ct, int index, struct md_cpu_sum *out)
{
	int ret = md_cpu_time_poll(ct);

	if (!ret && mp_now_ns() - ct->looked_ns >= LOOK_NS)
		ret = look_at_all(ct);
	if (ret)
		return ret;
	*out = ct->files[index].sum;
	out->nr_live = count_live(ct, index);
	ct->files[index].sum.incomplete = false;
	return 0;
}

int md_cpu_time_crashes(struct md_cpu_time *ct, int index, uint64_t *nr_killed)
{
	int ret = md_cpu_time_poll(ct);

	*nr_killed = ct->files[index].sum.nr_killed;
	return ret;
}

static bool has_filter(pid_t tid)
{
	char path[64], line[256];
	int mode = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "Seccomp: %d", &mode) != 1)
		;
	if (f)
		fclose(f);
	return mode;
}

bool md_cpu_time_is_filtered(const struct md_cpu_time *ct, int index)
{
	for (uint32_t i = 0; i < ct->nr_threads; i++)
		if (ct->threads[i].file == index && has_filter(ct->threads[i].task.tid))
			return true;
	return false;
}

/* ---- how old processes are ------------------------------------------------------------------- */

#define MOST_PARENTS 16 /* that came by fork() from each other */

/* Return: its age in seconds, and its parent; -1: it has ended. */
static double age_of(pid_t pid, pid_t *parent)
{
	char path[64], line[1024], *rest;
	unsigned long long start = 0;
	double age_s = -1, now_s;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return -1;
	now_s = mp_clock_s(CLOCK_BOOTTIME);
	if (fgets(line, sizeof(line), file) && (rest = strrchr(line, ')')) &&
	    sscanf(rest + 1,
		   " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%llu",
		   parent, &start) == 2)
		age_s = now_s - (double)start / (double)sysconf(_SC_CLK_TCK);
	fclose(file);
	return age_s;
}

static bool executes(const struct md_cpu_time *ct, pid_t pid, int index)
{
	uint32_t at = find_thread(ct, pid);

	return is_thread(ct, at, pid) && ct->threads[at].file == index;
}

/* The greatest age of the process and its parents that execute the file. */
static double oldest_of(const struct md_cpu_time *ct, pid_t pid, int index)
{
	double oldest_s = -1;

	for (int i = 0; i < MOST_PARENTS && executes(ct, pid, index); i++) {
		double age_s = age_of(pid, &pid);

		if (age_s > oldest_s)
			oldest_s = age_s;
	}
	return oldest_s;
}

double md_cpu_time_of_old(const struct md_cpu_time *ct, int index, double age_s)
{
	uint64_t all_ns = 0, old_ns = 0;

	for (uint32_t i = 0; i < ct->nr_threads; i++) {
		const struct thread *thread = &ct->threads[i];

		if (thread->file != index || thread->look != ct->look)
			continue;
		all_ns += thread->task.cpu_ns;
		if (oldest_of(ct, thread->task.tgid, index) >= age_s)
			old_ns += thread->task.cpu_ns;
	}
	return all_ns ? (double)old_ns / (double)all_ns : 0;
}
