// SPDX-License-Identifier: Apache-2.0
/*
 * import_ways - reads ways of conditional branches, as measurements outside of morphd find them. Each line
 * is one branch; a branch may have several lines. Called by stats_import.
 *
 *	401136 17 3		at 0x401136, 17 samples showed the branch taken, 3 not taken
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/import/import.h"
#include "libprof/base/grow.h"

/* Reads a number and the blank behind it, or behind the last number the end. */
static bool read_number(const char **at, int base, bool last, uint64_t *value)
{
	char *end;

	if (!isxdigit((unsigned char)**at))
		return false;
	errno = 0;
	*value = strtoull(*at, &end, base);
	if (errno || end == *at || *end != (last ? '\0' : ' '))
		return false;
	*at = last ? end : end + 1;
	return true;
}

static bool read_way(const char *line, struct mp_way_count *way)
{
	return read_number(&line, 16, false, &way->vaddr) &&
	       read_number(&line, 10, false, &way->taken) &&
	       read_number(&line, 10, true, &way->fell);
}

static int compare(const void *a, const void *b)
{
	const struct mp_way_count *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

/* Sorts ways and adds up those of one branch; the sum of all was checked. */
static void sort(struct md_import_module *m)
{
	size_t n = 0;

	if (m->nr_ways)
		qsort(m->ways, m->nr_ways, sizeof(*m->ways), compare);
	for (size_t i = 0; i < m->nr_ways; i++) {
		if (n && m->ways[n - 1].vaddr == m->ways[i].vaddr) {
			m->ways[n - 1].taken += m->ways[i].taken;
			m->ways[n - 1].fell += m->ways[i].fell;
		} else {
			m->ways[n++] = m->ways[i];
		}
	}
	m->nr_ways = n;
}

static int add(struct md_import *import, struct md_import_module *m, const struct mp_way_count *way,
	       size_t *max, struct mp_err *err)
{
	struct md_import_ways *sums = &import->ways;
	struct mp_insn insn;
	uint64_t both;

	if (__builtin_add_overflow(way->taken, way->fell, &both) ||
	    __builtin_add_overflow(sums->seen, both, &sums->seen) || sums->seen > INT64_MAX)
		return mp_err_set(err, EOVERFLOW, "more than 2^63 ways");
	if (!md_import_insn_at(m, way->vaddr, &insn) || insn.kind != MP_INSN_COND) {
		sums->unfit += both;
		return 0;
	}
	sums->counted += both;
	if (mp_grow(m->ways, *max, m->nr_ways + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	m->ways[m->nr_ways++] = *way;
	return 0;
}

int md_import_ways(struct md_import *import, struct md_lines *lines, const char *binary,
		   struct mp_err *err)
{
	struct md_import_module *m;
	struct mp_elf *elf = NULL;
	size_t max = 0;
	uint32_t index;
	/* Opened only for the error message. */
	int r = mp_elf_open(binary, MP_ELF_ID, &elf, err);

	mp_elf_close(elf);
	if (!r)
		r = md_import_find_file(import, binary, &index, err);
	if (r)
		return r;
	m = &import->modules[index];
	if (m->map || m->why >= 0)
		return mp_err_set(err, EINVAL, "%s: is optimised: ways are those of its original",
				  binary);
	while ((r = md_lines_next(lines, err)) > 0) {
		struct mp_way_count way;

		if (!read_way(lines->line, &way))
			return md_lines_fail(lines, err, "not ADDRESS TAKEN FELL");
		r = add(import, m, &way, &max, err);
		if (r)
			return r;
	}
	if (r)
		return r;
	sort(m);
	if (import->ways.seen && !import->ways.counted)
		return mp_err_set(err, EBADMSG,
				  "%s: not the ways of %s: %" PRIu64
				  " ways are at no conditional branch of it",
				  lines->name, binary, import->ways.unfit);
	return 0;
}
