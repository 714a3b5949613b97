// SPDX-License-Identifier: Apache-2.0
/* proc_scan - reads /proc; see proc_scan.h. */
#include "daemon/module/modfind.h"
#include "libprof/base/clock.h"
#include "libprof/elf/mappings.h"
#include "daemon/source/proc_scan.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define INITIAL_PID_NAMESPACE 0xeffffffcu /* in every kernel since 3.8 */
#define NR_LOOKS	      8		  /* most attempts for a process that keeps calling exec */

/*
 * The directory has one link per thread, and two more. stat() is about twenty times as cheap as
 * reading status, which matters for thousands of processes.
 */
static uint32_t count_threads(pid_t pid)
{
	char name[64], line[128];
	struct stat task;
	uint32_t nr = 1;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
	if (!stat(name, &task) && task.st_nlink > 2)
		return (uint32_t)task.st_nlink - 2;
	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	f = fopen(name, "re");
	if (!f)
		return nr;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Threads: %" SCNu32, &nr) == 1)
			break;
	fclose(f);
	return nr;
}

static int add_mapping(const struct mp_mapping *map, pid_t pid, uint64_t time_ns, uint32_t exec_id,
		       uint64_t program_ino, struct md_buf *out)
{
	struct morph_mmap *mmap;

	/* vsyscall lies in the kernel's half of the address space. */
	if (map->start >> 63)
		return 0;
	mmap = md_record_add_mmap(out, time_ns, pid, pid,
				  strlen(map->path) < PATH_MAX ? map->path : MD_MODFIND_TOO_LONG);
	if (!mmap)
		return -ENOMEM;
	mmap->task.exec_id = exec_id;
	mmap->start = map->start;
	mmap->len = map->end - map->start;
	mmap->off = map->off;
	mmap->dev_major = map->dev_major;
	mmap->dev_minor = map->dev_minor;
	mmap->ino = map->ino;
	if (map->ino && map->ino == program_ino)
		mmap->task.flags |= MORPH_MMAP_PROGRAM;
	return 0;
}

static int scan_once(pid_t pid, uint64_t time_ns, uint32_t exec_id, struct md_buf *out)
{
	/* Threads that start or exit after the clock is read are reported as events later. */
	uint32_t nr_threads = count_threads(pid), nr_later;
	uint64_t now_ns = mp_now_ns();
	size_t before = out->size;
	struct morph_exec *exec;
	struct stat program;
	struct mp_mappings maps;
	struct mp_mapping map;
	char name[64];
	size_t empty;
	int ret = 0;

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	if (stat(name, &program))
		program.st_ino = 0;
	if (mp_mappings_open(&maps, pid))
		return 0;
	exec = md_record_add_task(out, MORPH_REC_EXEC, sizeof(*exec), now_ns, pid, pid);
	if (!exec) {
		mp_mappings_close(&maps);
		return -ENOMEM;
	}
	exec->task.exec_id = exec_id;
	exec->task.flags = MORPH_EXEC_FOUND;
	nr_later = count_threads(pid);
	exec->nr_threads = nr_later > nr_threads ? nr_later : nr_threads;
	empty = out->size;
	while (!ret && mp_mappings_next_code(&maps, &map) > 0)
		ret = add_mapping(&map, pid, time_ns, exec_id, program.st_ino, out);
	mp_mappings_close(&maps);
	/* A kernel thread, or a process that has just exited. */
	if (out->size == empty)
		out->size = before;
	return ret;
}

int md_proc_scan_one(pid_t pid, uint64_t time_ns, const struct md_proc_ids *ids, struct md_buf *out)
{
	size_t before = out->size;
	uint32_t exec_id, now;
	int ret, i;

	if (!ids)
		return scan_once(pid, time_ns, 0, out);
	/*
	 * If the process called exec meanwhile, the mappings may be those of either program:
	 * read again.
	 */
	for (i = 0; i < NR_LOOKS; i++) {
		if (ids->get(ids->arg, pid, &exec_id))
			return 0;
		ret = scan_once(pid, time_ns, exec_id, out);
		if (ret)
			return ret;
		if (!ids->get(ids->arg, pid, &now) && now == exec_id)
			return 0;
		out->size = before;
	}
	return 0;
}

bool md_proc_is_whole(void)
{
	struct stat ns;

	return stat("/proc/self/ns/pid", &ns) || ns.st_ino == INITIAL_PID_NAMESPACE;
}

static pid_t parent_of(pid_t pid)
{
	char name[64], text[512], *end;
	size_t n;
	int parent;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	f = fopen(name, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	/* The command name may contain anything, including brackets and blanks. */
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

bool md_proc_descends_from(pid_t pid, pid_t root)
{
	int depth;

	for (depth = 0; pid > 1 && depth < 1000; depth++) {
		if (pid == root)
			return true;
		pid = parent_of(pid);
	}
	return false;
}

int md_proc_scan(pid_t root, uint64_t time_ns, const struct md_proc_ids *ids, struct md_buf *out)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int ret = 0;
	pid_t pid;

	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		pid = atoi(entry->d_name);
		if (!root || md_proc_descends_from(pid, root))
			ret = md_proc_scan_one(pid, time_ns, ids, out);
	}
	closedir(dir);
	return ret;
}
