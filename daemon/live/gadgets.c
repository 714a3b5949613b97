// SPDX-License-Identifier: Apache-2.0
/* gadgets - finds code in a process that can serve to make system calls there; see inject.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/live/inject.h"
#include "libprof/base/grow.h"

#define CHUNK (1u << 20)
/* A process may map any amount of memory as code. */
#define CODE_MAX ((uint64_t)4 << 30)

/* mov $15, %rax and mov $15, %eax, each with syscall behind: how signal handlers return. */
static const uint8_t sigreturn_long[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
static const uint8_t sigreturn_short[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
static const uint8_t syscall_ret[] = {0x0f, 0x05, 0xc3};

static int add_sigreturn(struct md_gadgets *out, size_t *room, uint64_t at)
{
	if (mp_grow(out->sigreturns, *room, out->nr_sigreturns + 1))
		return -ENOMEM;
	out->sigreturns[out->nr_sigreturns++] = at;
	return 0;
}

/* Calls add_sigreturn() for each @size bytes in [code, code + nr) that equal @bytes. */
static int find_all(struct md_gadgets *out, size_t *room, const uint8_t *code, size_t nr,
		    uint64_t address, const uint8_t *bytes, size_t size)
{
	const uint8_t *at = code;
	int r = 0;

	while (!r && (at = memmem(at, nr - (size_t)(at - code), bytes, size))) {
		r = add_sigreturn(out, room, address + (uint64_t)(at - code));
		at++;
	}
	return r;
}

static int search(const struct md_mapping *m, int mem, uint8_t *chunk, struct md_gadgets *out,
		  size_t *room)
{
	const bool library = md_mapping_is_libc(m);
	size_t before = out->nr_sigreturns;
	int r = 0;

	/* Chunks overlap, so that nothing is cut; what is found twice is harmless. */
	for (uint64_t at = m->start; !r && at < m->end; at += CHUNK - 16) {
		size_t size = m->end - at < CHUNK ? m->end - at : CHUNK;
		ssize_t n = pread(mem, chunk, size, (off_t)at);
		const uint8_t *found;

		if (n < 16)
			continue;
		found = out->syscall || !library
				? NULL
				: memmem(chunk, (size_t)n, syscall_ret, sizeof(syscall_ret));
		if (found)
			out->syscall = at + (uint64_t)(found - chunk);
		r = find_all(out, room, chunk, (size_t)n, at, sigreturn_long,
			     sizeof(sigreturn_long));
		if (!r)
			r = find_all(out, room, chunk, (size_t)n, at, sigreturn_short,
				     sizeof(sigreturn_short));
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

int md_gadgets_find(const struct md_process *process, int mem, struct md_gadgets *out,
		    struct mp_err *err)
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
		r = total > CODE_MAX ? -EFBIG : search(m, mem, chunk, out, &room);
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
