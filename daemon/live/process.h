// SPDX-License-Identifier: Apache-2.0
/*
 * process - what /proc says about a running process: its mappings, threads, and reasons to leave it alone.
 * Stops and changes nothing. Called by live.
 */
#ifndef MD_LIVE_PROCESS_H
#define MD_LIVE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "libprof/base/err.h"

struct md_mapping {
	uint64_t start, end, off, ino;
	unsigned int dev_major, dev_minor;
	bool read, write, exec, shared;
	bool begun; /* the file's first page is mapped, here or elsewhere */
	bool again; /* an earlier mapping with code is of the same file */
	char *path; /* as the kernel writes it; "" if there is none */
};

struct md_process {
	pid_t pid;
	uint64_t start_time; /* of the process, in the kernel's ticks */
	struct md_mapping *maps;
	size_t nr_maps;
	uint64_t read_bytes; /* of its files, so far: it may map anything, in any number */
};

/*
 * md_process_open - reads the mappings of @pid. Return: 0; -ESRCH: no such process, or one without
 * memory of its own; -EPERM: its first thread has ended, so that /proc/PID shows neither its mappings nor its program;
 * -errno; each with a message. Ownership: md_process_close(), also after an error.
 */
int md_process_open(pid_t pid, struct md_process *out, struct mp_err *err);
/* Reads the mappings again. Return: 0, -errno with a message. */
int md_process_read_maps(struct md_process *process, struct mp_err *err);
void md_process_close(struct md_process *process);

/* The device number of the file system that holds the mapped file. */
dev_t md_mapping_device(const struct md_mapping *mapping);
/* Do both map the same file? */
bool md_mapping_same_file(const struct md_mapping *a, const struct md_mapping *b);
/* Is it code of the C library? */
bool md_mapping_is_libc(const struct md_mapping *mapping);
/* The mapping that holds @address; NULL: there is none. */
const struct md_mapping *md_process_mapping(const struct md_process *process, uint64_t address);
/*
 * md_process_find_file - the first mapping with code of the file @st, whose path without symbolic links is @full, or
 * of one that had this path before another file got it. @st: st_ino 0: there is no such file; @full: NULL: not known.
 * Return: NULL: there is none.
 */
const struct md_mapping *md_process_find_file(const struct md_process *process,
					      const struct stat *st, const char *full);
/*
 * md_process_open_file - opens the file of @mapping, and no other that lies at its path now. Return: a
 * descriptor; -EPERM: it cannot be reached; -errno, each with a message. Ownership: close().
 */
int md_process_open_file(const struct md_process *process, const struct md_mapping *mapping,
			 struct mp_err *err);

/* md_process_start_time - of a process; 0: there is none. */
uint64_t md_process_start_time(pid_t pid);
/* Has its first thread ended, and others go on? */
bool md_process_goes_on_alone(pid_t pid);
/* Thread numbers of the process. Return: 0, -ESRCH, -ENOMEM. Ownership: free(*@out). */
int md_process_threads(pid_t pid, pid_t **out, size_t *nr);
/* The state of a thread as /proc says it: R, S, D, ...; Z: it has ended, although its number is still there. 0: there is none. */
char md_process_state(pid_t tid);
/* The value of "@key:" in /proc/PID/status, as text without spaces before it. Return: false: there is none. */
bool md_process_status(pid_t pid, const char *key, char *buf, size_t size);

/*
 * md_process_check - may the process be changed at all? Return: 0; -EPERM with the reason: it has another tracer, is
 * confined (AppArmor, SELinux), lives in another PID or user namespace, is stopped or frozen, runs 32-bit code, or a
 * shadow stack guards its return addresses; -errno with a message.
 */
int md_process_check(const struct md_process *process, struct mp_err *err);
/*
 * md_process_check_shared - does another process use the same memory, as between vfork() and exec? To be asked while
 * all threads are stopped, too. Return: 0, -EPERM with the reason.
 */
int md_process_check_shared(pid_t pid, struct mp_err *err);

#endif
