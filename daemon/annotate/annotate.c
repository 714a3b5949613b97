// SPDX-License-Identifier: Apache-2.0
/*
 * annotate - collects what is known of each instruction of one function; see annotate.h.
 * Decides which instruction a sample belongs to, and which instructions are hot.
 */
#include "daemon/annotate/annotate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/demangle.h"
#include "daemon/code/disasm.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/infer/counts.h"
#include "libprof/infer/foreseen.h"
#include "libprof/insn/insn.h"

#define INLINES_MAX 64
/*
 * An instruction with at least this share of its function's samples is hot, and so is the
 * instruction with the most samples.
 */
#define HOT_SHARE 0.1

/* ---- counts -------------------------------------------------------------------------------- */

/* The first count at or above @vaddr. */
static size_t first_at(const struct mp_ip_count *counts, size_t nr, uint64_t vaddr)
{
	return mp_search(i, 0, nr, counts[i].vaddr < vaddr);
}

uint64_t md_sample_table_at(const struct mp_ip_count *counts, size_t nr, uint64_t vaddr)
{
	size_t i = first_at(counts, nr, vaddr);

	return i < nr && counts[i].vaddr == vaddr ? counts[i].count : 0;
}

uint64_t md_sample_table_in(const struct mp_ip_count *counts, size_t nr, uint64_t start,
			    uint64_t size)
{
	uint64_t sum = 0;

	for (size_t i = first_at(counts, nr, start); i < nr && counts[i].vaddr - start < size; i++)
		sum += counts[i].count;
	return sum;
}

const struct mp_map_piece *md_map_piece(const struct mp_map *map, uint64_t vaddr)
{
	uint32_t low = mp_search(i, 0, map->nr_pieces, map->pieces[i].new_vaddr <= vaddr);

	if (!low || vaddr - map->pieces[low - 1].new_vaddr >= map->pieces[low - 1].new_size)
		return NULL;
	return &map->pieces[low - 1];
}

uint64_t md_sample_table_mapped(const struct mp_map *map, const struct mp_ip_count *counts,
				size_t nr, uint64_t start, uint64_t size)
{
	uint64_t at = start, sum = 0;

	while (at - start < size) {
		const struct mp_map_piece *piece = md_map_piece(map, at);

		if (!piece) {
			sum += md_sample_table_at(counts, nr, at++);
			continue;
		}
		sum += md_sample_table_in(counts, nr, piece->old_vaddr, piece->old_size);
		at = piece->new_vaddr + piece->new_size;
	}
	return sum;
}

/* ---- instructions -------------------------------------------------------------------------- */

struct builder {
	const struct md_ann_request *request;
	struct md_annotation *a;
	struct md_disasm *disasm;
};

static int compare_vaddr(const void *a, const void *b)
{
	const struct mp_ip_count *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int take_target(struct builder *b, struct md_ann_insn *out, const struct mp_insn *insn)
{
	const struct mp_cfg *cfg = b->request->code->cfg;
	bool branch = insn->kind == MP_INSN_COND || insn->kind == MP_INSN_JUMP ||
		      insn->kind == MP_INSN_CALL || insn->kind == MP_INSN_LOOP;
	uint32_t block;

	if (!branch && !insn->rip_relative)
		return 0;
	out->target = insn->target;
	block = branch && insn->kind != MP_INSN_CALL ? mp_cfg_block_starting(cfg, insn->target)
						     : MP_NONE;
	if (block != MP_NONE && &cfg->funcs[cfg->blocks[block].func] == b->a->func) {
		out->target_block = b->a->index_of[block - b->a->func->first_block];
		return 0;
	}
	out->target_name = md_names_format(b->request->names, insn->target);
	return 0;
}

static int take_lines(struct builder *b, struct md_ann_insn *out)
{
	struct md_annotation *a = b->a;
	size_t n;

	if (!b->request->debug)
		return 0;
	if (md_debuginfo_line(b->request->debug, out->vaddr, &out->line))
		a->has_lines = true;
	if (a->max_inlines - a->nr_inlines < INLINES_MAX) {
		size_t more = 2 * a->max_inlines + INLINES_MAX;
		void *bigger = realloc(a->inlines, more * sizeof(*a->inlines));

		if (!bigger)
			return -ENOMEM;
		a->inlines = bigger;
		a->max_inlines = more;
	}
	n = md_debuginfo_inlines(b->request->debug, out->vaddr, a->inlines + a->nr_inlines,
				 INLINES_MAX);
	out->first_inline = (uint32_t)a->nr_inlines;
	out->nr_inlines = (uint32_t)n;
	a->nr_inlines += n;
	return 0;
}

/* Sets @out->original and counts the samples of the instruction. */
static void take_samples(struct builder *b, struct md_ann_insn *out, bool behind_branch)
{
	const struct md_ann_request *r = b->request;
	const struct mp_map_piece *piece;

	out->original = out->vaddr;
	piece = r->map ? md_map_piece(r->map, out->vaddr) : NULL;
	if (piece) {
		uint64_t off = out->vaddr - piece->new_vaddr;

		/*
		 * Up to the branch that ends the block, instructions keep their lengths, so
		 * @off holds in both files.
		 */
		out->added = off >= piece->old_size || behind_branch;
		out->original = piece->old_vaddr + (out->added ? 0 : off);
	}
	if (out->added)
		return;
	/* A sample inside an instruction belongs to that instruction. */
	out->samples = r->map ? md_sample_table_at(r->counts, r->nr_counts, out->original)
			      : md_sample_table_in(r->counts, r->nr_counts, out->vaddr, out->len);
}

static bool is_branch(const struct mp_insn *insn)
{
	return insn->kind == MP_INSN_COND || insn->kind == MP_INSN_JUMP ||
	       insn->kind == MP_INSN_IJUMP || insn->kind == MP_INSN_RET;
}

static int add_insn(struct builder *b, const uint8_t *bytes, size_t avail, uint64_t vaddr,
		    bool *behind_branch)
{
	struct md_annotation *a = b->a;
	struct md_ann_insn *out;
	struct mp_insn insn;
	uint32_t block;
	int r = 0;

	if (mp_grow(a->insns, a->max_insns, a->nr_insns + 1))
		return -ENOMEM;
	out = &a->insns[a->nr_insns];
	memset(out, 0, sizeof(*out));
	out->vaddr = vaddr;
	out->target_block = out->block = MP_NONE;
	out->text = md_disasm_text(b->disasm, bytes, avail, vaddr, &out->len);
	if (!out->text)
		return -ENOMEM;
	a->nr_insns++;
	block = mp_cfg_block_at(b->request->code->cfg, vaddr);
	if (block != MP_NONE && block - a->func->first_block < a->func->nr_blocks)
		out->block = a->index_of[block - a->func->first_block];
	if (b->request->map && md_map_piece(b->request->map, vaddr) &&
	    md_map_piece(b->request->map, vaddr)->new_vaddr == vaddr)
		*behind_branch = false;
	take_samples(b, out, *behind_branch);
	if (!mp_insn_decode(bytes, avail, vaddr, &insn)) {
		*behind_branch |= is_branch(&insn);
		r = take_target(b, out, &insn);
	}
	return r ? r : take_lines(b, out);
}

static int add_range(struct builder *b, const struct mp_range *range)
{
	const struct mp_cfg *cfg = b->request->code->cfg;
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, range->start, range->size);
	bool behind_branch = false;

	for (uint64_t at = 0; bytes && at < range->size;) {
		uint64_t avail = range->size - at, vaddr = range->start + at;
		int r;

		/*
		 * Stop decoding where the next block begins, even if the bytes look like a
		 * longer instruction.
		 */
		for (uint64_t k = 1; k < 15 && k < avail; k++)
			if (mp_cfg_block_starting(cfg, vaddr + k) != MP_NONE)
				avail = k;
		r = add_insn(b, bytes + at, avail, vaddr, &behind_branch);
		if (r)
			return r;
		at += b->a->insns[b->a->nr_insns - 1].len;
	}
	return 0;
}

/* ---- blocks -------------------------------------------------------------------------------- */

/*
 * Adds up the function's samples. Several copies of an instruction share its samples: count
 * them once.
 */
static int sum_samples(struct md_annotation *a)
{
	struct mp_ip_count *seen = malloc((a->nr_insns + 1) * sizeof(*seen));
	size_t nr = 0;

	if (!seen)
		return -ENOMEM;
	for (size_t i = 0; i < a->nr_insns; i++)
		if (a->insns[i].samples)
			seen[nr++] =
				(struct mp_ip_count){a->insns[i].original, a->insns[i].samples};
	if (nr)
		qsort(seen, nr, sizeof(*seen), compare_vaddr);
	for (size_t i = 0; i < nr; i++)
		if (!i || seen[i].vaddr != seen[i - 1].vaddr)
			a->samples += seen[i].count;
	free(seen);
	return 0;
}

static void mark_hot(struct md_annotation *a)
{
	uint64_t most = 0;

	for (size_t i = 0; i < a->nr_insns; i++)
		if (a->insns[i].samples > most)
			most = a->insns[i].samples;
	for (size_t i = 0; most && i < a->nr_insns; i++)
		a->insns[i].hot = a->insns[i].samples == most ||
				  (double)a->insns[i].samples >= HOT_SHARE * (double)a->samples;
}

/* Puts the blocks in the order of display, range by range. */
static int order_blocks(struct md_annotation *a)
{
	const struct mp_cfg *cfg = a->code->cfg;
	const struct mp_func *func = a->func;
	uint32_t n = 0;

	a->nr_blocks = func->nr_blocks;
	a->blocks = calloc(a->nr_blocks + 1, sizeof(*a->blocks));
	a->index_of = calloc(a->nr_blocks + 1, sizeof(*a->index_of));
	if (!a->blocks || !a->index_of)
		return -ENOMEM;
	for (uint32_t r = 0; r < func->nr_ranges; r++) {
		const struct mp_range *range = &cfg->ranges[func->first_range + r];

		for (uint32_t i = 0; i < a->nr_blocks; i++) {
			const struct mp_block *block = &cfg->blocks[func->first_block + i];

			if (block->vaddr - range->start >= range->size || n == a->nr_blocks)
				continue;
			a->index_of[i] = n;
			a->blocks[n++] = (struct md_ann_block){
				.block = block, .first_insn = MP_NONE, .count = -1, .taken = -1};
		}
	}
	a->nr_blocks = n;
	return 0;
}

static void fill_blocks(struct md_annotation *a)
{
	for (size_t i = 0; i < a->nr_insns; i++) {
		struct md_ann_block *block;

		if (a->insns[i].block == MP_NONE)
			continue;
		block = &a->blocks[a->insns[i].block];
		if (block->first_insn == MP_NONE)
			block->first_insn = (uint32_t)i;
		block->nr_insns++;
		block->samples += a->insns[i].samples;
	}
	for (uint32_t i = 0; i < a->nr_blocks; i++)
		a->blocks[i].weight =
			mp_profile_weight(a->blocks[i].samples, a->blocks[i].nr_insns);
}

/*
 * Infers block and branch counts from the samples. Does nothing for an optimised file: its
 * samples are stored for the original's CFG.
 */
static int infer(struct builder *b, struct mp_err *err)
{
	const struct mp_cfg *cfg = b->request->code->cfg;
	struct md_annotation *a = b->a;
	struct mp_profile *profile;
	struct mp_counts counts;
	int r;

	if (a->map || (!a->samples && !b->request->nr_edges) || !a->nr_blocks)
		return 0;
	r = mp_profile_build(cfg, b->request->counts, b->request->nr_counts, &profile, err);
	if (r)
		return r;
	profile->exact = b->request->exact;
	if (b->request->nr_edges)
		r = mp_profile_add_edges(profile, cfg, b->request->edges, b->request->nr_edges,
					 err);
	if (!r && b->request->nr_ways)
		r = mp_foreseen_add(cfg, b->request->ways, b->request->nr_ways, profile, err);
	if (!r)
		r = mp_counts_build(cfg, profile, NULL, &counts, NULL, err);
	mp_profile_free(profile);
	if (r)
		return r;
	for (uint32_t i = 0; i < a->nr_blocks; i++) {
		struct md_ann_block *out = &a->blocks[i];
		double taken = 0, sum = 0;

		out->count = counts.block[out->block - cfg->blocks];
		for (uint32_t e = out->block->first_edge;
		     e < out->block->first_edge + out->block->nr_edges; e++) {
			sum += counts.edge[e];
			if (cfg->edges[e].kind == MP_EDGE_TAKEN)
				taken += counts.edge[e];
		}
		if (out->block->term == MP_TERM_COND && out->block->nr_edges == 2 && sum > 0)
			out->taken = taken / sum;
	}
	a->counted = true;
	mp_counts_fini(&counts);
	return 0;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int take_name(struct builder *b)
{
	struct md_annotation *a = b->a;
	const struct md_name *name = md_names_at(b->request->names, a->func->vaddr);
	char buf[32];

	a->symbol = a->func->name[0] ? a->func->name : NULL;
	if (!a->symbol && name && name->function && name->vaddr == a->func->vaddr)
		a->symbol = name->name;
	/* If several names share one address, show the one that the user typed. */
	if (b->request->name && b->request->vaddr == a->func->vaddr)
		a->name = strdup(b->request->name);
	else if (a->symbol)
		a->name = md_demangle(a->symbol);
	if (!a->name)
		a->name = strdup(a->symbol ? a->symbol : md_code_function_name(a->func, buf));
	return a->name ? 0 : -ENOMEM;
}

int md_annotate(const struct md_ann_request *request, struct md_annotation *out, struct mp_err *err)
{
	const struct mp_cfg *cfg = request->code->cfg;
	struct builder b = {.request = request, .a = out};
	uint32_t f = mp_cfg_func_at(cfg, request->vaddr);
	int r;

	memset(out, 0, sizeof(*out));
	if (f == MP_NONE)
		return mp_err_set(err, ENOENT, "%s: no function at 0x%" PRIx64, cfg->elf->path,
				  request->vaddr);
	out->code = request->code;
	out->func = &cfg->funcs[f];
	out->map = request->map;
	r = md_disasm_new(request->intel, &b.disasm);
	if (!r)
		r = take_name(&b);
	if (!r)
		r = order_blocks(out);
	for (uint32_t i = 0; i < out->func->nr_ranges && !r; i++)
		r = add_range(&b, &cfg->ranges[out->func->first_range + i]);
	if (!r)
		r = sum_samples(out);
	if (r) {
		mp_err_code(err, -r);
	} else {
		fill_blocks(out);
		mark_hot(out);
		r = infer(&b, err);
	}
	md_disasm_free(b.disasm);
	if (r)
		md_annotation_fini(out);
	return r;
}

void md_annotation_fini(struct md_annotation *a)
{
	for (size_t i = 0; i < a->nr_insns; i++) {
		free(a->insns[i].text);
		free(a->insns[i].target_name);
	}
	free(a->insns);
	free(a->blocks);
	free(a->index_of);
	free(a->inlines);
	free(a->name);
	memset(a, 0, sizeof(*a));
}
