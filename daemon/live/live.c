// SPDX-License-Identifier: Apache-2.0
/* live - what adopt and undo share; see live.h. */
#include "daemon/live/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "daemon/live/live_private.h"
#include "libprof/base/clock.h"
#include "libprof/base/search.h"

/* How long a stop lasts on a machine of 2020: a part of its own, a part for each thread, and one for each page. */
#define STOP_NS	  300000u
#define THREAD_NS 40000u
#define PAGE_NS	  1500u

const char *md_live_state_name(enum md_live_state state)
{
	static const char *const names[] = {"in use", "partly in use", "not in use, copies mapped",
					    "not in use", "changed by somebody else"};

	return names[state];
}

int md_live_open_mem(pid_t pid, struct mp_err *err)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/mem", (int)pid);
	fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return mp_err_set(
		err, errno == ENOENT ? ESRCH : errno, "process %d: %s", (int)pid,
		errno == ENOENT ? "there is none"
		: errno == EACCES || errno == EPERM
			? "not permitted; only root, or where Yama permits its owner, may "
			  "change it"
			: strerror(errno));
}

/*
 * The process itself and whoever may change it can hold this lock, so the wait has a limit. A program that is killed leaves
 * no lock.
 */
int md_live_lock(pid_t pid, struct mp_err *err)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	uint64_t end_ns = mp_now_ns() + MD_LIVE_LIMIT_NS;
	int fd, r = 0;

	if (md_process_goes_on_alone(pid))
		return mp_err_set(err, EPERM, "process %d: its first thread has ended", (int)pid);
	fd = md_live_open_mem(pid, err);
	if (fd < 0)
		return fd;
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			r = mp_err_set(err, errno, "process %d: %s", (int)pid, strerror(errno));
		else if (mp_now_ns() >= end_ns)
			r = mp_err_set(err, EAGAIN, "process %d: another command changes it",
				       (int)pid);
		if (r) {
			close(fd);
			return r;
		}
		nanosleep(&pause, NULL);
	}
	return fd;
}

static enum md_live_state state_of(const struct md_version *v, const struct md_process *p)
{
	if (v->pages.nr[MD_PAGE_OTHER])
		return MD_LIVE_OTHER;
	if (!v->pages.nr[MD_PAGE_NEW])
		return md_version_is_mapped(v, p) ? MD_LIVE_MAPPED : MD_LIVE_NONE;
	return v->pages.nr[MD_PAGE_NEW] < v->changes.nr_pages ? MD_LIVE_PARTLY : MD_LIVE_IN_USE;
}

void md_live_look(const struct md_version *v, const struct md_process *p,
		  struct md_live_result *out)
{
	pid_t *threads = NULL;

	out->state = state_of(v, p);
	out->private_bytes = (uint64_t)v->changes.nr_pages * MD_LIVE_PAGE;
	md_process_threads(p->pid, &threads, &out->nr_threads);
	free(threads);
	out->stop_ns = STOP_NS + THREAD_NS * out->nr_threads +
		       PAGE_NS * (v->changes.nr_pages - v->pages.nr[MD_PAGE_NEW]);
}

/*
 * Writes @size bytes at the link-time address @vaddr, but none where a breakpoint stands: the kernel would end
 * the process at one that nobody has set. Return: 0, -EIO.
 */
static int write_bytes(const struct md_version *v, int mem, uint64_t vaddr, const uint8_t *bytes,
		       size_t size)
{
	const uint64_t *stands = v->breakpoints, end = vaddr + size;
	size_t i = mp_search(k, 0, v->nr_breakpoints, stands[k] < vaddr);

	for (uint64_t at = vaddr, stop; at < end; at = stop + 1, i++) {
		stop = i < v->nr_breakpoints && stands[i] < end ? stands[i] : end;
		if (stop > at && pwrite(mem, bytes + (at - vaddr), stop - at,
					(off_t)(v->bias + at)) != (ssize_t)(stop - at))
			return -EIO;
	}
	return 0;
}

/* @skip: a flag for each page that is left out; NULL: none is. */
static int write_pages(const struct md_version *v, int mem, const struct md_live_page *pages,
		       size_t nr, const uint8_t *bytes, const bool *skip)
{
	for (size_t i = 0, run; i < nr; i += run) {
		run = 1;
		if (skip && skip[i])
			continue;
		for (; i + run < nr && !(skip && skip[i + run]); run++)
			if (pages[i + run].vaddr != pages[i].vaddr + run * MD_LIVE_PAGE)
				break;
		if (write_bytes(v, mem, pages[i].vaddr, bytes + pages[i].at, run * MD_LIVE_PAGE))
			return -EIO;
	}
	return 0;
}

int md_live_write(const struct md_version *v, int mem)
{
	return write_pages(v, mem, v->changes.pages, v->changes.nr_pages, v->changes.new_bytes,
			   NULL);
}

int md_live_write_old(const struct md_version *v, int mem, const bool *skip)
{
	return write_pages(v, mem, v->changes.pages, v->changes.nr_pages, v->changes.old_bytes,
			   skip);
}

int md_live_write_copies(const struct md_version *v, int mem, const uint8_t *bytes)
{
	return write_pages(v, mem, v->copies.pages, v->copies.nr_pages, bytes, NULL);
}

void md_live_wait(unsigned int round)
{
	/* Another time each, so that a program with a beat of its own is not met at the same place. */
	uint64_t ns = 200000 + (mp_now_ns() * 2654435761u >> 7) % (1000000u * (1 + round / 4));
	const struct timespec t = {.tv_nsec = (long)(ns % 1000000000u)};

	nanosleep(&t, NULL);
}

int md_live_stop(const struct md_process *p, struct md_stop *stop, struct mp_err *err)
{
	int r = md_stop_all(p->pid, stop, err);

	if (r)
		return r;
	if (md_process_start_time(p->pid) != p->start_time)
		r = mp_err_set(err, ESRCH, "process %d: has ended; its number is another's now",
			       (int)p->pid);
	else
		r = md_process_check_shared(p->pid, err);
	/* A child between vfork() and exec: it soon is not. */
	if (r == -EPERM)
		r = -EAGAIN;
	if (r)
		md_stop_end(stop);
	return r;
}

void md_live_go_on(struct md_stop *stop, struct md_live_result *out)
{
	uint64_t before_ns = stop->stood_ns - stop->start_ns;

	out->nr_threads = stop->nr;
	out->stop_ns = md_stop_end(stop);
	out->work_ns = out->stop_ns - before_ns;
	if (out->stop_ns > out->longest_ns)
		out->longest_ns = out->stop_ns;
	out->rounds++;
}
