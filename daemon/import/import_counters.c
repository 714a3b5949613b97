// SPDX-License-Identifier: Apache-2.0
/*
 * import_counters - turns the counters of an instrumented file into counts of its original: for
 * each instruction and each known transfer. Called by stats_import.
 *
 * The instrumented file contains the original's code in copies:
 *
 *	original		copy
 *	A: mov; cmp; jcc C	mov; cmp | incq counter | jncc B	the middle piece was added
 *
 * Instructions have the same offsets in both, up to the branch that ends the block.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/import/import.h"
#include "libprof/base/infile.h"
#include "libprof/base/search.h"
#include "libprof/note/counts_file.h"
#include "libprof/note/edge_solve.h"

#define INSN_LEN_MAX 15

struct reader {
	struct md_import *import;
	struct mp_err *err;
	uint32_t module;
	const struct mp_map *map;
	const struct mp_elf *code;
	struct mp_edge_table *table;
	uint32_t *pieces; /* pieces with an original, sorted by its address */
	uint32_t nr_pieces;
	uint32_t *falls_to; /* per block: the block that it falls through to, or MP_NONE */
	struct mp_edge_counts counts;
};

/* ---- copies ----------------------------------------------------------------------------------- */

static int compare_pieces(const void *a, const void *b, void *ctx)
{
	const struct mp_map_piece *pieces = ctx;
	uint64_t x = pieces[*(const uint32_t *)a].old_vaddr;
	uint64_t y = pieces[*(const uint32_t *)b].old_vaddr;

	return (x > y) - (x < y);
}

static int sort_pieces(struct reader *r)
{
	r->pieces = malloc(((size_t)r->map->nr_pieces + 1) * sizeof(*r->pieces));
	if (!r->pieces)
		return mp_err_set(r->err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < r->map->nr_pieces; i++)
		if (r->map->pieces[i].old_size)
			r->pieces[r->nr_pieces++] = i;
	qsort_r(r->pieces, r->nr_pieces, sizeof(*r->pieces), compare_pieces, r->map->pieces);
	return 0;
}

/* Decodes the copy of the original's instruction at @vaddr; @insn->vaddr is the copy's address. */
static bool decode_copy(const struct reader *r, uint64_t vaddr, struct mp_insn *insn)
{
	const struct mp_map_piece *piece;
	const uint8_t *bytes;
	uint64_t off, left;
	uint32_t lo =
		mp_search(i, 0, r->nr_pieces, r->map->pieces[r->pieces[i]].old_vaddr <= vaddr);

	if (!lo)
		return false;
	piece = &r->map->pieces[r->pieces[lo - 1]];
	off = vaddr - piece->old_vaddr;
	if (off >= piece->old_size || off >= piece->new_size)
		return false;
	left = piece->new_size - off;
	left = left < INSN_LEN_MAX ? left : INSN_LEN_MAX;
	bytes = mp_elf_bytes(r->code, piece->new_vaddr + off, left);
	return bytes && !mp_insn_decode(bytes, left, piece->new_vaddr + off, insn);
}

/* ---- blocks ----------------------------------------------------------------------------------- */

static int add_transfer(const struct reader *r, uint64_t from, uint64_t to, uint64_t count)
{
	return md_import_add_original_transfer(r->import, r->module, from, to, count, r->err);
}

/* Adds the counts of a block's instructions and calls, except for the branch at its end. */
static int add_block(const struct reader *r, const struct mp_counted_block *block, uint64_t count)
{
	uint64_t off = 0;
	int ret = 0;

	while (off < block->term_off && !ret) {
		uint64_t vaddr = block->vaddr + off;
		struct mp_insn insn;

		if (!decode_copy(r, vaddr, &insn))
			return md_import_add_unattributed(r->import, MP_UNATTR_NO_MAPPING, count,
							  r->err);
		ret = md_import_add_original(r->import, r->module, vaddr, count, r->err);
		if (!ret && insn.kind == MP_INSN_CALL)
			ret = add_transfer(r, vaddr, mp_map_original(r->map, insn.target), count);
		off += insn.len;
	}
	if (!ret && block->term_off < block->size)
		ret = md_import_add_original(r->import, r->module, block->vaddr + block->term_off,
					     count, r->err);
	return ret;
}

/* Finds where the branch of block @b leaves its function. Return: false: not known. */
static bool find_outside(const struct reader *r, uint32_t b, uint64_t *to)
{
	const struct mp_counted_block *block = &r->table->blocks[b];
	struct mp_insn insn;

	if (!decode_copy(r, block->vaddr + block->term_off, &insn))
		return false;
	*to = mp_map_original(r->map, insn.target);
	if (insn.kind == MP_INSN_JUMP)
		return true;
	/*
	 * The copy's condition may be inverted, so that the branch leads to the original's
	 * fall-through.
	 */
	return insn.kind == MP_INSN_COND && r->falls_to[b] != MP_NONE &&
	       *to != r->table->blocks[r->falls_to[b]].vaddr;
}

static int add_edge(const struct reader *r, const struct mp_counted_edge *edge, uint64_t count)
{
	const struct mp_counted_block *block;
	uint64_t to;

	if (!count || edge->from == MP_NONE || edge->kind == MP_EDGE_FALL)
		return 0;
	block = &r->table->blocks[edge->from];
	if (block->term_off == block->size)
		return 0;
	if (edge->to != MP_NONE)
		to = r->table->blocks[edge->to].vaddr;
	else if (!find_outside(r, edge->from, &to))
		return 0; /* for instance a return, whose target is not counted */
	return add_transfer(r, block->vaddr + block->term_off, to, count);
}

static int add_all(struct reader *r)
{
	const struct mp_edge_table *table = r->table;
	int ret = 0;

	r->falls_to = malloc(((size_t)table->nr_blocks + 1) * sizeof(*r->falls_to));
	if (!r->falls_to)
		return mp_err_set(r->err, ENOMEM, "out of memory");
	memset(r->falls_to, 0xff, table->nr_blocks * sizeof(*r->falls_to));
	for (uint32_t e = 0; e < table->nr_edges; e++)
		if (table->edges[e].kind == MP_EDGE_FALL)
			r->falls_to[table->edges[e].from] = table->edges[e].to;
	for (uint32_t b = 0; b < table->nr_blocks && !ret; b++)
		if (r->counts.block[b])
			ret = add_block(r, &table->blocks[b], r->counts.block[b]);
	for (uint32_t e = 0; e < table->nr_edges && !ret; e++)
		ret = add_edge(r, &table->edges[e], r->counts.edge[e]);
	return ret;
}

/* ---- files ------------------------------------------------------------------------------------ */

static int open_binary(struct reader *r, const char *binary)
{
	struct md_import_module *m;
	struct mp_elf *elf = NULL;
	int ret;

	/* Opened only for the error message. */
	ret = mp_elf_open(binary, MP_ELF_ID, &elf, r->err);
	mp_elf_close(elf);
	if (!ret)
		ret = md_import_find_file(r->import, binary, &r->module, r->err);
	if (ret)
		return ret;
	m = &r->import->modules[r->module];
	r->code = md_import_code(m);
	r->map = m->map;
	if (!r->code)
		return m->no_memory
			       ? mp_err_code(r->err, ENOMEM)
			       : mp_err_set(r->err, EBADMSG, "%s: its code cannot be read", binary);
	ret = mp_edge_table_read(r->code, &r->table, r->err);
	if (!ret && !r->map)
		ret = mp_err_set(r->err, EBADMSG, "%s: instrumented, but carries no map", binary);
	return ret ? ret : sort_pieces(r);
}

static int read_counters(const struct reader *r, const char *const *paths, size_t nr,
			 uint64_t *counters)
{
	int ret = 0;

	for (size_t i = 0; i < nr && !ret; i++) {
		bool from_stdin = !strcmp(paths[i], "-");
		int fd = from_stdin ? STDIN_FILENO : mp_infile_open(paths[i], r->err);

		if (fd < 0)
			return fd;
		ret = mp_counts_file_add(from_stdin ? "standard input" : paths[i], fd,
					 r->table->hash, counters, r->table->nr_counters, r->err);
		if (!from_stdin)
			close(fd);
	}
	return ret;
}

int md_import_counters(struct md_import *import, const char *const *paths, size_t nr,
		       const char *binary, struct mp_err *err)
{
	struct reader r = {.import = import, .err = err};
	uint64_t *counters = NULL;
	int ret = open_binary(&r, binary);

	if (ret)
		goto out;
	strcpy(import->session.event, "counters");
	counters = calloc((size_t)r.table->nr_counters + 1, sizeof(*counters));
	ret = counters ? read_counters(&r, paths, nr, counters)
		       : mp_err_set(err, ENOMEM, "out of memory");
	if (!ret)
		ret = mp_edge_solve(r.table, counters, &r.counts, err);
	if (!ret) {
		import->modules[r.module].exact = true;
		import->nr_counted_funcs = r.table->nr_funcs;
		import->discrepancy = r.counts.discrepancy;
		ret = add_all(&r);
	}
out:
	free(counters);
	free(r.pieces);
	free(r.falls_to);
	mp_edge_counts_fini(&r.counts);
	mp_edge_table_free(r.table);
	return ret;
}
