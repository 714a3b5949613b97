// SPDX-License-Identifier: Apache-2.0
/* stack - reads the words of a stopped process; see stack.h. */
#include "daemon/live/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#define CHUNK_WORDS 8192u
/* Bytes from a stack pointer to the end of its stack. */
#define STACK_MAX ((uint64_t)64 << 20)
/* Bytes of all stacks. */
#define STACKS_MAX ((uint64_t)1 << 30)
/* Bytes of addresses that the process may write to, whether there is memory or not. */
#define SPAN_MAX ((uint64_t)256 << 30)
/* Bytes of addresses that it may not write to; much of that is only reserved. */
#define PROTECTED_SPAN_MAX ((uint64_t)16 << 30)
/* A signal's frame: words from the return address of its handler to the interrupted stack pointer. */
#define FRAME_SP 21
/* From the word with the segment registers, which the kernel writes to each such frame, back to the stack pointer. */
#define SEGMENTS_SP 3
#define SEGMENTS    UINT64_C(0x002b000000000033) /* cs, gs, fs, ss */
/* Stacks of one thread: its own, one for signals, and what these interrupted. */
#define NR_STACKS 16

struct search {
	const struct md_stop *stop;
	const struct md_process *process;
	const struct md_gadgets *gadgets;
	const struct md_stack_query *query;
	uint64_t starts[NR_STACKS],
		ends[NR_STACKS]; /* of the current thread, searched or to be searched */
	size_t nr;
	uint64_t own_data; /* of the current thread */
	uint64_t total;	   /* bytes of all threads' stacks so far */
	uint64_t words[CHUNK_WORDS];
};

static bool is_wanted(const struct md_stack_query *q, uint64_t word)
{
	return q->wanted(q->arg, word);
}

/* Reads as many words at @address as there are, at most @nr. Return: their number. */
static size_t read_words(pid_t pid, uint64_t address, uint64_t *words, size_t nr)
{
	struct iovec here = {words, nr * 8}, there = {(void *)address, nr * 8};
	ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

	return n < 0 ? 0 : (size_t)n / 8;
}

/*
 * The end of the stack at @sp in the mapping @m. The kernel cuts a mapping in two where a page of it is locked, say, or has got
 * other rights. A stack with which a thread began ends with the thread's own data; other memory may follow at once.
 * Nothing tells where another one ends, such as a coroutine's above that data: if it would be too large, it is its mapping alone.
 */
static uint64_t stack_end(const struct search *s, const struct md_mapping *m, uint64_t sp)
{
	const struct md_mapping *last = s->process->maps + s->process->nr_maps - 1;
	const uint64_t alone = m->end;
	uint64_t end = m->end;

	while (s->own_data - sp >= end - sp && m < last && m[1].start == end && m[1].read &&
	       m[1].write && m[1].shared == m->shared)
		end = (++m)->end;
	if (s->own_data < sp && end - sp > STACK_MAX && strcmp(m->path, "[stack]") != 0)
		return alone;
	return end;
}

/* Adds the stack at @sp. Return: 0, -EFBIG. */
static int add_stack(struct search *s, uint64_t sp)
{
	const struct md_mapping *m = md_process_mapping(s->process, sp);
	uint64_t start = sp & ~(uint64_t)7, end;

	for (size_t i = 0; i < s->nr; i++)
		if (start >= s->starts[i] && start < s->ends[i])
			return 0;
	if (!m || !m->read || s->nr == NR_STACKS)
		return -EFBIG;
	end = stack_end(s, m, sp);
	if (end - start > STACK_MAX || end - start > STACKS_MAX - s->total)
		return -EFBIG;
	s->total += end - start;
	s->starts[s->nr] = start;
	s->ends[s->nr++] = end;
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Is @word the place to which a signal handler returns, or one that only the kernel writes to a signal's frame? The place
 * may be the program's own. Then the frame has the interrupted stack pointer.
 */
static int follow_signal(struct search *s, uint64_t at, uint64_t word)
{
	const struct md_gadgets *g = s->gadgets;
	uint64_t sp_at = at + 8 * FRAME_SP, sp;

	if (word == SEGMENTS)
		sp_at = at - 8 * SEGMENTS_SP;
	else if (word < g->sigreturns[0] || word > g->sigreturns[g->nr_sigreturns - 1] ||
		 !bsearch(&word, g->sigreturns, g->nr_sigreturns, sizeof(word), compare))
		return 0;
	if (read_words(s->stop->pid, sp_at, &sp, 1) != 1 || !sp)
		return 0;
	/* A stale frame may hold anything; one in use has a stack that is mapped. */
	return md_process_mapping(s->process, sp) ? add_stack(s, sp) : 0;
}

static int search_stack(struct search *s, size_t i, uint64_t *found)
{
	uint64_t at = s->starts[i], end = s->ends[i];

	while (at < end) {
		size_t want = (end - at) / 8 < CHUNK_WORDS ? (end - at) / 8 : CHUNK_WORDS;
		size_t nr = read_words(s->stop->pid, at, s->words, want);

		if (!nr)
			return -EIO;
		for (size_t w = 0; w < nr; w++) {
			uint64_t word = s->words[w];

			if (is_wanted(s->query, word)) {
				*found = word;
				return 1;
			}
			if (follow_signal(s, at + 8 * w, word))
				return -EFBIG;
		}
		at += 8 * nr;
	}
	return 0;
}

static int search_thread(struct search *s, const struct md_thread *t, uint64_t *found)
{
	const uint64_t regs[] = {t->regs.rip, t->regs.rax, t->regs.rbx, t->regs.rcx,
				 t->regs.rdx, t->regs.rsi, t->regs.rdi, t->regs.rbp,
				 t->regs.r8,  t->regs.r9,  t->regs.r10, t->regs.r11,
				 t->regs.r12, t->regs.r13, t->regs.r14, t->regs.r15};
	int r;

	/* The kernel's own, such as a worker of io_uring: it never runs the process's code, and has no stack there. */
	if (!t->regs.rip && !t->regs.rsp)
		return 0;
	for (size_t i = 0; i < sizeof(regs) / sizeof(*regs); i++)
		if (is_wanted(s->query, regs[i])) {
			*found = regs[i];
			return 1;
		}
	s->nr = 0;
	s->own_data = t->regs.fs_base;
	r = add_stack(s, t->regs.rsp);
	for (size_t i = 0; !r && i < s->nr; i++)
		r = search_stack(s, i, found);
	return r;
}

int md_stacks_search(const struct md_stop *stop, const struct md_process *process,
		     const struct md_gadgets *gadgets, const struct md_stack_query *query,
		     uint64_t *found, pid_t *tid, struct mp_err *err)
{
	static struct search s; /* large */
	int r = 0;

	s = (struct search){.stop = stop, .process = process, .gadgets = gadgets, .query = query};
	for (size_t i = 0; i < stop->nr && !r; i++) {
		r = search_thread(&s, &stop->threads[i], found);
		*tid = stop->threads[i].tid;
	}
	if (r < 0)
		return mp_err_set(
			err, -r, "process %d: the stack of thread %d cannot be searched: %s",
			(int)stop->pid, (int)*tid,
			r == -EFBIG ? "it is too large, or no stack" : "it cannot be read");
	return r;
}

/* ---- all memory --------------------------------------------------------------------------------- */

/* The number by which glibc hides addresses in this thread, in the word 6 behind the thread pointer. */
static uint64_t guard_of(pid_t pid, const struct md_thread *t)
{
	uint64_t guard = 0;

	read_words(pid, t->regs.fs_base + 0x30, &guard, 1);
	return guard;
}

static bool is_wanted_hidden(const struct md_stack_query *q, uint64_t word, uint64_t guard)
{
	return is_wanted(q, word) || is_wanted(q, (word >> 17 | word << 47) ^ guard);
}

struct memory {
	pid_t pid;
	int pagemap; /* /proc/PID/pagemap: a word for each page */
	const struct md_stack_query *query;
	uint64_t guard, limit, total, span;
	uint64_t pages[512], words[512 * 512];
};

/* In a word of the page map. */
#define IN_MEMORY (UINT64_C(1) << 63)
#define SWAPPED	  (UINT64_C(1) << 62)
#define IN_A_FILE (UINT64_C(1) << 61) /* or shared memory */

/* Was the page written to by the process, if it has rights to do so no longer? */
static bool is_there(const struct md_mapping *map, uint64_t page)
{
	return (page & (IN_MEMORY | SWAPPED)) && (map->write || !(page & IN_A_FILE));
}

/* Searches @nr pages of @map from @start on, at most 512. Return: as md_memory_search(). */
static int search_pages(struct memory *m, const struct md_mapping *map, uint64_t start, size_t nr,
			uint64_t *found)
{
	size_t run;

	if (pread(m->pagemap, m->pages, nr * 8, (off_t)(start / 4096 * 8)) != (ssize_t)(nr * 8))
		return -EIO;
	for (size_t i = 0; i < nr; i += run) {
		for (run = 0; i + run < nr && is_there(map, m->pages[i + run]); run++)
			;
		if (!run) {
			run = 1;
			continue;
		}
		if (!map->read)
			return -EACCES;
		m->total += run * 4096;
		if (m->total > m->limit)
			return -EFBIG;
		if (read_words(m->pid, start + i * 4096, m->words, run * 512) != run * 512)
			return -EIO;
		for (size_t w = 0; w < run * 512; w++)
			if (is_wanted_hidden(m->query, m->words[w], m->guard)) {
				*found = m->words[w];
				return 1;
			}
	}
	return 0;
}

/*
 * May the process keep its data there? Code of a file that is not to be written has only what was written as code, also by us;
 * the kernel's own mappings cannot be written at all.
 */
static bool is_searched(const struct md_stack_query *q, const struct md_mapping *map)
{
	for (size_t i = 0; i < sizeof(q->skip) / sizeof(*q->skip); i++)
		if (q->skip[i] && map->start == q->skip[i])
			return false;
	return map->write ||
	       !(map->shared || (map->exec && map->path[0] == '/') || !strncmp(map->path, "[v", 2));
}

static int search_mapping(struct memory *m, const struct md_mapping *map, uint64_t *found)
{
	int r = 0;

	m->span += map->end - map->start;
	if (m->span > (map->write ? SPAN_MAX : PROTECTED_SPAN_MAX))
		return -EFBIG;
	for (uint64_t at = map->start; !r && at < map->end; at += 512 * 4096) {
		size_t nr = (map->end - at) / 4096;

		r = search_pages(m, map, at, nr < 512 ? nr : 512, found);
	}
	return r;
}

int md_memory_search(const struct md_stop *stop, const struct md_process *process, uint64_t limit,
		     const struct md_stack_query *query, uint64_t *found, struct mp_err *err)
{
	static struct memory m; /* large */
	char name[64];
	int r = 0;

	m.pid = stop->pid;
	m.query = query;
	m.guard = guard_of(stop->pid, &stop->threads[0]);
	m.limit = limit;
	m.total = 0;
	snprintf(name, sizeof(name), "/proc/%d/pagemap", (int)stop->pid);
	m.pagemap = open(name, O_RDONLY | O_CLOEXEC);
	if (m.pagemap < 0)
		r = -errno;
	/* First the mappings that the process may write to: if these are too many bytes already, the others need no look. */
	for (int pass = 0; pass < 2; pass++) {
		m.span = 0;
		for (size_t i = 0; !r && i < process->nr_maps; i++)
			if (process->maps[i].write != pass && is_searched(query, &process->maps[i]))
				r = search_mapping(&m, &process->maps[i], found);
	}
	if (m.pagemap >= 0)
		close(m.pagemap);
	if (r < 0)
		mp_err_set(err, -r, "process %d: its memory %s", (int)stop->pid,
			   r == -EFBIG ? "is larger than --search permits" : "cannot be read");
	return r;
}
