// SPDX-License-Identifier: Apache-2.0
/* place - joins what is taken in all processes, and looks for gaps; see place.h. */
#include "daemon/live/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/live/version.h"
#include "libprof/base/grow.h"

/* From the first byte of a program's code to the last one of its copies, so that each reaches each. */
#define REACH_MAX ((uint64_t)(2048 - 64) << 20)
/* A heap may grow so far before it meets the copies, and so may a stack, downwards. */
#define GROWS ((uint64_t)512 << 20)
#define MIB   ((uint64_t)1 << 20)
#define ALIGN ((uint64_t)1 << 16)

/* Sizes of free ranges: the first that there is. The size of the copies is known only once they are written. */
static const uint64_t sizes[] = {256 * MIB, 64 * MIB, 16 * MIB, 4 * MIB};
/*
 * The same for versions of a whole file, as multiples of its code: copies, unwind rows, map and counters of all of
 * mariadbd take 1.9 times its code.
 */
static const uint64_t multiples[] = {4, 3};

/* ---- what is taken ------------------------------------------------------------------------------ */

int md_place_add_maps(struct md_place *place, const struct md_process *p, uint64_t bias)
{
	for (size_t i = 0; i < p->nr_maps; i++) {
		const struct md_mapping *m = &p->maps[i];
		uint64_t start = m->start, end = m->end;

		if (!strcmp(m->path, "[heap]"))
			end += GROWS;
		if (!strcmp(m->path, "[stack]"))
			start = start > GROWS ? start - GROWS : 0;
		if (end <= bias)
			continue;
		if (mp_grow(place->taken, place->room, place->nr_taken + 1))
			return -ENOMEM;
		place->taken[place->nr_taken++] =
			(struct md_taken){start > bias ? start - bias : 0, end - bias};
	}
	return 0;
}

static int add_file(struct md_place *place, const struct md_process *p, const struct md_mapping *m,
		    const struct mp_elf *elf, struct mp_err *err)
{
	uint64_t bias, low = UINT64_MAX, high = 0, code = 0;

	if (!md_version_bias(elf, m, &bias))
		return mp_err_set(err, EPERM, "%s: is not mapped as a program", m->path);
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &elf->phdrs[i];

		if (ph->p_type != PT_LOAD)
			continue;
		low = ph->p_vaddr < low ? ph->p_vaddr : low;
		high = ph->p_vaddr + ph->p_memsz > high ? ph->p_vaddr + ph->p_memsz : high;
		code += ph->p_flags & PF_X ? ph->p_memsz : 0;
		if (ph->p_align > place->align && !(ph->p_align & (ph->p_align - 1)))
			place->align = ph->p_align;
	}
	/* Processes may run several builds. */
	if (!place->nr_taken || low < place->low)
		place->low = low;
	if (high > place->high)
		place->high = high;
	if (code > place->code_size)
		place->code_size = code;
	return md_place_add_maps(place, p, bias) ? mp_err_code(err, ENOMEM) : 0;
}

/* Return: 0; -ENOENT: the process does not have it; -EPERM; each with a message. */
static int find_file(const struct md_process *p, const char *path, const struct md_mapping **out,
		     struct mp_err *err)
{
	char exe[64], *full;
	struct stat st;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)p->pid);
	if (stat(path ? path : exe, &st)) {
		mp_err_set(err, errno, "%s: %s", path ? path : exe, strerror(errno));
		return -EPERM;
	}
	full = path ? realpath(path, NULL) : NULL;
	*out = md_process_find_file(p, &st, full);
	free(full);
	return *out ? 0
		    : mp_err_set(err, ENOENT, "process %d: does not run %s", (int)p->pid,
				 path ? path : "its program any more");
}

int md_place_add(struct md_place *place, const struct md_process *p, const char *path,
		 struct mp_err *err)
{
	const struct md_mapping *m;
	struct mp_elf *elf = NULL;
	int fd, r = find_file(p, path, &m, err);

	if (r)
		return r;
	fd = md_process_open_file(p, m, err);
	if (fd < 0)
		return fd;
	r = mp_elf_open_fd(m->path, fd, MP_ELF_ID, &elf, err);
	close(fd);
	if (!r)
		r = add_file(place, p, m, elf, err);
	mp_elf_close(elf);
	return r;
}

void md_place_fini(struct md_place *place)
{
	free(place->taken);
	*place = (struct md_place){0};
}

/* ---- what is free ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct md_taken *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* The highest gap, which leaves the most room to heaps: they grow upwards from behind the program. */
uint64_t md_place_find(struct md_place *place, uint64_t size)
{
	uint64_t limit = place->low + REACH_MAX, from = place->high, best = 0;

	qsort(place->taken, place->nr_taken, sizeof(*place->taken), compare);
	for (size_t i = 0; i <= place->nr_taken && from < limit; i++) {
		const struct md_taken *t = i < place->nr_taken ? &place->taken[i] : NULL;
		uint64_t end = t && t->start < limit ? t->start : limit, start;

		if (end > from && end - from >= size) {
			start = (end - size) & -ALIGN;
			if (start >= from)
				best = start;
		}
		if (t && t->end > from)
			from = t->end;
	}
	return best;
}

int md_place_choose(struct md_place *place, size_t nr, bool whole, uint64_t *out,
		    struct mp_err *err)
{
	const size_t nr_tries = whole ? sizeof(multiples) / sizeof(*multiples)
				      : sizeof(sizes) / sizeof(*sizes);
	/* The editor aligns the segment as the file's own are. */
	const uint64_t align = place->align > ALIGN ? place->align : ALIGN;
	uint64_t size = 0, at = 0;

	for (size_t i = 0; !at && i < nr_tries && align < REACH_MAX; i++) {
		size = whole ? place->code_size * multiples[i] + MIB : sizes[i];
		size = (size + align - 1) & -align;
		at = md_place_find(place, nr * size + (align - ALIGN));
	}
	at = (at + align - 1) & -align;
	if (!at)
		return mp_err_set(err, ENOSPC, "no free place within reach of the program");
	for (size_t i = 0; i < nr; i++)
		out[i] = at + i * size;
	return 0;
}
