// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_time - the CPU time of all processes that execute a file, seen from outside. The kernel's taskstats
 * tell what each thread took when it ends, and, on request, what a running one took so far; they also name
 * the file by device and inode. So a process is counted once, whether it runs for a millisecond or for a
 * month, and other files at the same path have sums of their own. Only differences of two reads mean
 * something. Called by morph-worker, in one thread.
 *
 * Needs CAP_NET_ADMIN while it is opened, and later to look at running threads; the first network and process
 * namespaces; Linux 5.19 (struct taskstats of version 12). Nothing else: not the right to trace.
 */
#ifndef MD_CPU_TIME_H
#define MD_CPU_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libprof/base/err.h"

struct md_cpu_time;

/*
 * What the processes of one file took, those that have ended and those that run. A thread counts for the file
 * that it executed when it was last seen: time before execve() goes to the new file, unless a read saw the
 * old one. Each number of a file only grows, but for nr_live.
 *
 * cpu_ns is what to compare versions by. It comes from the scheduler, for running threads as of their last tick or
 * switch. What a thread ran between that and its end is known if it never slept, and else taken to be half of what it
 * usually ran at once, at most half a tick (2 ms with 250 Hz). The kernel's own work to end a process comes later and is
 * lacking: some tenths of a millisecond.
 * User and system time are counts of timer ticks, right on average alone: on a busy machine they may be off by a
 * tenth for seconds of CPU time. They tell the shares.
 */
struct md_cpu_sum {
	uint64_t cpu_ns; /* user and system time, exact */
	uint64_t user_ns, system_ns;
	uint64_t nr_exited; /* processes that have ended since the file is watched */
	uint64_t nr_killed; /* of these: by SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE, SIGSYS */
	uint64_t nr_live;
	bool incomplete; /* since this file's last read the kernel dropped messages: do not use the difference */
};

/* Return: NULL: not possible here, and @err says why. Ends with md_cpu_time_close(). */
struct md_cpu_time *md_cpu_time_open(struct mp_err *err);
void md_cpu_time_close(struct md_cpu_time *ct);

/*
 * md_cpu_time_number - the numbers by which the kernel's accounts name the file at @path. They are those of stat(), but for
 * the device of btrfs and of an overlay of several file systems. Return: 0, -errno.
 */
int md_cpu_time_number(const char *path, dev_t *dev, ino_t *ino);
/*
 * md_cpu_time_watch - counts the processes of the file with these numbers from now on, and for those
 * that run already, all their time. Return: its index: 0, 1, ...; the same for the same file; or -ENOMEM.
 */
int md_cpu_time_watch(struct md_cpu_time *ct, dev_t dev, ino_t ino);

/*
 * md_cpu_time_poll - takes over what the kernel has told. Call it each second: the kernel drops messages when
 * some 10,000 wait. Return: 0 or -errno.
 */
int md_cpu_time_poll(struct md_cpu_time *ct);

/*
 * md_cpu_time_read - looks at all running processes, too, which takes some microseconds each. Reads within 20 ms share
 * one look. Return: 0 or -errno; *@out is then not set.
 */
int md_cpu_time_read(struct md_cpu_time *ct, int index, struct md_cpu_sum *out);
/* md_cpu_time_crashes - nr_killed, which is told when a process ends: nothing that runs is looked at. Return: 0 or -errno. */
int md_cpu_time_crashes(struct md_cpu_time *ct, int index, uint64_t *nr_killed);

/*
 * md_cpu_time_is_filtered - does a process of the file, as of the last read, run behind a filter of system calls
 * (seccomp)? It may end a version of the program that makes other calls than the original.
 */
bool md_cpu_time_is_filtered(const struct md_cpu_time *ct, int index);

/*
 * md_cpu_time_of_old - of the CPU time that the file's running processes have taken since they started, as of the last read, the
 * part of processes that began @age_s seconds ago or earlier. A process that came by fork() from another one of the
 * file is as old as that one. Return: 0 to 1; 0 if none runs.
 */
double md_cpu_time_of_old(const struct md_cpu_time *ct, int index, double age_s);

#endif
