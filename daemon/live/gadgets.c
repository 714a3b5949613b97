// SPDX-License-Identifier: Apache-2.0
/* gadgets - finds code in a process that can serve to make system calls there; see inject.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "daemon/live/inject.h"
#include "libprof/base/grow.h"

#define CHUNK (1u << 20)
/* A process may map any amount of memory as code. */
#define CODE_MAX ((uint64_t)4 << 30)

/* mov $15, %rax and mov $15, %eax, each with syscall behind: how signal handlers return. */
static const uint8_t sigreturn_long[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
static const uint8_t sigreturn_short[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};

#define RET 0xc3

/* Do the @size @bytes end at @end, within the code that begins at @code? */
static bool ends_with(const uint8_t *code, const uint8_t *end, const uint8_t *bytes, size_t size)
{
	return (size_t)(end - code) >= size && !memcmp(end - size, bytes, size);
}

/*
 * An instruction syscall ends at @end, which is @address + (@end - @code) in the process. Notes it if a return follows, and
 * if it belongs to a sigreturn.
 */
static int take_syscall(const uint8_t *code, const uint8_t *end, bool returns, uint64_t address,
			struct md_gadgets *out, size_t *room)
{
	uint64_t at = address + (uint64_t)(end - code);

	if (returns && !out->syscall)
		out->syscall = at - 2;
	if (ends_with(code, end, sigreturn_long, sizeof(sigreturn_long)))
		at -= sizeof(sigreturn_long);
	else if (ends_with(code, end, sigreturn_short, sizeof(sigreturn_short)))
		at -= sizeof(sigreturn_short);
	else
		return 0;
	return mp_push(out->sigreturns, out->nr_sigreturns, *room, at);
}

static int search(const struct md_mapping *m, pid_t pid, uint8_t *chunk, struct md_gadgets *out,
		  size_t *room)
{
	const bool library = md_mapping_is_libc(m);
	size_t before = out->nr_sigreturns;
	int r = 0;

	/* Chunks overlap, so that nothing is cut; what is found twice is harmless. */
	for (uint64_t at = m->start; !r && at < m->end; at += CHUNK - 16) {
		size_t size = m->end - at < CHUNK ? m->end - at : CHUNK;
		struct iovec here = {chunk, size}, there = {(void *)at, size};
		/* Faster than /proc/PID/mem. */
		ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
		const uint8_t *end = chunk + (n > 0 ? n : 0);

		/* The second byte of syscall is rarer in code than its first one. */
		for (const uint8_t *p = chunk; !r && p < end; p++) {
			p = memchr(p, 0x05, (size_t)(end - p));
			if (!p)
				break;
			if (p > chunk && p[-1] == 0x0f)
				r = take_syscall(chunk, p + 1,
						 library && p + 1 < end && p[1] == RET, at, out,
						 room);
		}
	}
	if (library && !out->sigreturn && out->nr_sigreturns > before)
		out->sigreturn = out->sigreturns[before];
	return r;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int md_gadgets_find(const struct md_process *process, struct md_gadgets *out, struct mp_err *err)
{
	uint8_t *chunk = malloc(CHUNK);
	uint64_t total = 0;
	size_t room = 0;
	int r = chunk ? 0 : -ENOMEM;

	*out = (struct md_gadgets){0};
	for (size_t i = 0; !r && i < process->nr_maps; i++) {
		const struct md_mapping *m = &process->maps[i];

		if (!m->exec || !m->read || !strcmp(m->path, "[vsyscall]"))
			continue;
		total += m->end - m->start;
		r = total > CODE_MAX ? -EFBIG : search(m, process->pid, chunk, out, &room);
	}
	free(chunk);
	if (r == -EFBIG)
		return mp_err_set(err, EPERM, "process %d: has more code than is searched",
				  (int)process->pid);
	if (r)
		return mp_err_code(err, -r);
	if (!out->syscall || !out->sigreturn)
		return mp_err_set(
			err, EPERM,
			"process %d: its C library has no code that can make a system call "
			"and return from a signal",
			(int)process->pid);
	qsort(out->sigreturns, out->nr_sigreturns, sizeof(*out->sigreturns), compare);
	return 0;
}
