// SPDX-License-Identifier: Apache-2.0
/*
 * import_edges - transfers of control from another profiler; see import.h. Decides which are
 * accepted: those that the instruction at the source can make. Transfers that only fell
 * through, which some profilers list, are dropped. Transfers of an optimised file are
 * translated to its original.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/import/import.h"
#include "daemon/module/copy_transfers.h"
#include "libprof/base/grow.h"

/* Sort and add up edges each time this many have been added. */
#define SORT_AT	     65536
#define INSN_LEN_MAX 15

/* ---- the file's code ----------------------------------------------------------------------- */

const struct mp_elf *md_import_code(struct md_import_module *m)
{
	int fd, r;

	if (m->code || m->why >= 0 || m->kind != MP_MODULE_FILE)
		return m->code;
	r = mp_elf_open(m->path, MP_ELF_SYMBOLS, &m->code, NULL);
	if (r) {
		m->no_memory = r == -ENOMEM;
		m->code = NULL;
		m->why = MP_UNATTR_UNREADABLE;
		return NULL;
	}
	if (!mp_id_equal(&m->code->id, &m->elf->id)) {
		mp_elf_close(m->code);
		m->code = NULL;
		m->why = MP_UNATTR_REPLACED;
		return NULL;
	}
	fd = m->map ? open(m->path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		errno = 0;
		m->map_ends = md_copy_branch_offsets(m->code, fd, m->map);
		m->no_memory |= !m->map_ends && errno == ENOMEM;
		close(fd);
	}
	return m->code;
}

bool md_import_insn_at(struct md_import_module *m, uint64_t vaddr, struct mp_insn *insn)
{
	const struct mp_elf *code = md_import_code(m);
	const uint8_t *bytes = NULL;
	size_t avail;

	if (!code || !mp_elf_is_code(code, vaddr))
		return false;
	for (avail = INSN_LEN_MAX; avail; avail--) {
		bytes = mp_elf_bytes(code, vaddr, avail);
		if (bytes)
			break;
	}
	return bytes && !mp_insn_decode(bytes, avail, vaddr, insn);
}

enum fit {
	FIT_TAKEN,
	FIT_FELL,
	FIT_NOT
};

static enum fit fit_transfer(struct md_import_module *m, uint64_t from, uint64_t to)
{
	struct mp_insn insn;
	bool next;

	if (!md_import_insn_at(m, from, &insn))
		return FIT_NOT;
	next = to == from + insn.len;
	switch (insn.kind) {
	case MP_INSN_JUMP:
	case MP_INSN_CALL:
		if (to == insn.target)
			return FIT_TAKEN;
		break;
	case MP_INSN_COND:
	case MP_INSN_LOOP:
		/*
		 * A branch to the next instruction has one successor either way, so it is no
		 * edge.
		 */
		if (to == insn.target && !next)
			return FIT_TAKEN;
		break;
	case MP_INSN_ICALL:
		/* "To the next instruction" is the call's return, which BOLT also lists. */
		if (next)
			break;
		/* fall through */
	case MP_INSN_IJUMP:
	case MP_INSN_RET: return mp_elf_is_code(m->code, to) ? FIT_TAKEN : FIT_NOT;
	default:
		/* In callgrind an instruction with a repeat prefix jumps to itself. */
		if (to == from)
			return FIT_FELL;
	}
	return next ? FIT_FELL : FIT_NOT;
}

/* ---- gathering ----------------------------------------------------------------------------- */

static int grow(uint64_t *sum, uint64_t by, struct mp_err *err)
{
	if (__builtin_add_overflow(*sum, by, sum) || *sum > INT64_MAX)
		return mp_err_set(err, EOVERFLOW, "more than 2^63 transfers");
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct mp_edge_count *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

/* The sums cannot overflow, since the sum of all transfers did not. */
void md_import_sort_edges(struct md_import_module *m)
{
	size_t n = 0;

	if (!m->nr_edges)
		return;
	qsort(m->edges, m->nr_edges, sizeof(*m->edges), compare);
	for (size_t i = 1; i < m->nr_edges; i++) {
		if (compare(&m->edges[i], &m->edges[n])) {
			m->edges[++n] = m->edges[i];
			continue;
		}
		m->edges[n].count += m->edges[i].count;
		m->edges[n].mispredicted += m->edges[i].mispredicted;
	}
	m->nr_edges = n + 1;
}

static int append(struct md_import_module *m, const struct mp_edge_count *edge, struct mp_err *err)
{
	if (m->nr_edges == m->max_edges) {
		md_import_sort_edges(m);
		if (mp_grow(m->edges, m->max_edges, m->nr_edges ? 2 * m->nr_edges : SORT_AT))
			return mp_err_set(err, ENOMEM, "out of memory");
	}
	m->edges[m->nr_edges++] = *edge;
	return 0;
}

int md_import_count_transfer(struct md_import *import, uint64_t *why, uint64_t count,
			     struct mp_err *err)
{
	*why += count;
	return grow(&import->transfers.seen, count, err);
}

struct straight {
	struct md_import *import;
	struct md_import_module *module;
	uint64_t count;
	struct mp_err *err;
	int ret;
};

static void add_straight(void *arg, uint64_t from, uint64_t to)
{
	struct straight *s = arg;
	const struct mp_edge_count edge = {.from = from, .to = to, .count = s->count};

	if (!s->ret)
		s->ret = grow(&s->import->transfers.straight, s->count, s->err);
	if (!s->ret)
		s->ret = append(s->module, &edge, s->err);
}

int md_import_add_straight(struct md_import *import, uint32_t index, uint64_t start, uint64_t end,
			   uint64_t count, struct mp_err *err)
{
	struct md_import_module *m = &import->modules[index];
	struct straight s = {.import = import, .module = m, .count = count, .err = err};

	if (m->map && count && md_import_code(m))
		md_copy_translate_run(m->map, m->map_ends, start, end, add_straight, &s);
	return s.ret;
}

int md_import_add_transfer(struct md_import *import, uint32_t index, uint64_t from, uint64_t to,
			   uint64_t count, uint64_t mispredicted, struct mp_err *err)
{
	struct md_import_transfers *t = &import->transfers;
	struct md_import_module *m = &import->modules[index];
	struct mp_edge_count edge = {from, to, count, mispredicted};
	enum fit fit;
	int r;

	if (!count)
		return 0;
	if (m->kind != MP_MODULE_FILE || !md_import_code(m))
		return md_import_count_transfer(import, &t->outside, count, err);
	fit = fit_transfer(m, from, to);
	if (fit == FIT_NOT)
		return md_import_count_transfer(import, &t->unfit, count, err);
	if (fit == FIT_FELL) {
		r = md_import_add_straight(import, index, from, to, count, err);
		return r ? r : md_import_count_transfer(import, &t->fell, count, err);
	}
	if (m->map) {
		switch (md_copy_translate_branch(m->map, m->map_ends, &edge.from, &edge.to)) {
		case MD_COPY_TAKEN: break;
		case MD_COPY_FALLS: return md_import_count_transfer(import, &t->fell, count, err);
		default: return md_import_count_transfer(import, &t->moved, count, err);
		}
	}
	r = md_import_count_transfer(import, &t->counted, count, err);
	return r ? r : append(m, &edge, err);
}

int md_import_add_original_transfer(struct md_import *import, uint32_t index, uint64_t from,
				    uint64_t to, uint64_t count, struct mp_err *err)
{
	const struct mp_edge_count edge = {.from = from, .to = to, .count = count};
	int r = md_import_count_transfer(import, &import->transfers.counted, count, err);

	return r || !count ? r : append(&import->modules[index], &edge, err);
}

void md_import_forget_transfers(struct md_import *import)
{
	for (uint32_t i = 0; i < import->nr_modules; i++)
		import->modules[i].nr_edges = 0;
	memset(&import->transfers, 0, sizeof(import->transfers));
}
