// SPDX-License-Identifier: Apache-2.0
/*
 * export_fdata - BOLT's profile of one module: plain samples (no_lbr), or branches as perf2bolt
 * writes them, counted or inferred. Decides which edges BOLT can use: BOLT begins blocks only
 * at branch targets, Morph at more places.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/export/export.h"
#include "daemon/export/export_symbols.h"
#include "libprof/insn/insn.h"

#define NAME_MAX_BYTES 65536

struct place {
	uint32_t range; /* MP_NONE: outside of all functions */
	uint64_t offset;
};

struct fdata {
	const struct md_export_module *m;
	const struct mp_cfg *cfg;
	FILE *out;
	struct md_export_symbols names;
	double *into;	/* per block: flow along edges from its own function */
	double *called; /* per function: known calls */
	bool *begins;	/* per block: a branch leads to it, so BOLT begins a block there too */
	double scale;	/* factor for inferred counts */
	char name[2][NAME_MAX_BYTES];
};

static void fdata_fini(struct fdata *f)
{
	md_export_symbols_fini(&f->names);
	free(f->into);
	free(f->called);
	free(f->begins);
}

/* BOLT makes each PLT entry a function of its own, so its code belongs to no function here. */
static bool is_plt(const struct fdata *f, uint64_t vaddr)
{
	const struct mp_section *section = mp_elf_section_at(f->cfg->elf, vaddr);

	return section && !strncmp(section->name, ".plt", 4);
}

static struct place place_of(const struct fdata *f, uint64_t vaddr)
{
	uint32_t range = md_code_range_at(f->m->code, vaddr);

	if (range != MP_NONE && is_plt(f, vaddr))
		range = MP_NONE;
	return (struct place){range, range == MP_NONE ? 0 : vaddr - f->cfg->ranges[range].start};
}

/* Return: false: the name is too long, or would end its line. No compiler makes such names. */
static bool name_place(struct fdata *f, struct place place, char *buf)
{
	return place.range == MP_NONE ||
	       (md_export_symbols_format_bolt(&f->names, f->cfg->ranges[place.range].start, buf,
					      NAME_MAX_BYTES) < NAME_MAX_BYTES &&
		!strchr(buf, '\n'));
}

static void count_unnamed(struct fdata *f, struct md_export *e)
{
	for (uint32_t r = 0; r < f->cfg->nr_ranges; r++)
		e->nr_unnamed += !name_place(f, (struct place){.range = r}, f->name[0]);
}

static void put_place(struct fdata *f, struct place place, const char *name)
{
	if (place.range == MP_NONE)
		fputs("0 [unknown] 0 ", f->out);
	else
		fprintf(f->out, "1 %s %" PRIx64 " ", name, place.offset);
}

static void put_branch(struct fdata *f, struct place from, struct place to, uint64_t mispredicted,
		       uint64_t count)
{
	if (!count || (from.range == MP_NONE && to.range == MP_NONE) ||
	    !name_place(f, from, f->name[0]) || !name_place(f, to, f->name[1]))
		return;
	put_place(f, from, f->name[0]);
	put_place(f, to, f->name[1]);
	fprintf(f->out, "%" PRIu64 " %" PRIu64 "\n", mispredicted, count);
}

static uint64_t scaled(const struct fdata *f, double count)
{
	return md_export_scaled(count * f->scale / MD_EXPORT_SCALE);
}

/* ---- what was inferred --------------------------------------------------------------------- */

static int fdata_sum(struct fdata *f)
{
	const struct mp_cfg *cfg = f->cfg;
	const struct mp_counts *counts = f->m->inferred;

	f->into = calloc((size_t)cfg->nr_blocks + 1, sizeof(*f->into));
	f->called = calloc((size_t)cfg->nr_funcs + 1, sizeof(*f->called));
	f->begins = calloc((size_t)cfg->nr_blocks + 1, sizeof(*f->begins));
	if (!f->into || !f->called || !f->begins)
		return -ENOMEM;
	for (uint32_t i = 0; i < cfg->nr_edges; i++) {
		f->into[cfg->edges[i].to] += counts->edge[i];
		if (cfg->edges[i].kind != MP_EDGE_FALL)
			f->begins[cfg->edges[i].to] = true;
	}
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		if (cfg->blocks[b].flags &
		    (MP_BLOCK_ENTRY | MP_BLOCK_LANDING_PAD | MP_BLOCK_TABLE_TARGET))
			f->begins[b] = true;
	return 0;
}

static void put_edges(struct fdata *f, const struct mp_block *block, bool falls_only)
{
	struct place from;
	uint64_t last;

	if (!block->nr_edges || !md_export_last_insn(f->cfg, block, &last))
		return;
	from = place_of(f, last);
	for (uint32_t i = block->first_edge; i < block->first_edge + block->nr_edges; i++) {
		const struct mp_edge *edge = &f->cfg->edges[i];
		double count = f->m->inferred->edge[i];

		if (!(count > 0) || (falls_only && edge->kind != MP_EDGE_FALL) ||
		    (edge->kind == MP_EDGE_FALL && !block->term_len && !f->begins[edge->to]))
			continue;
		put_branch(f, from, place_of(f, f->cfg->blocks[edge->to].vaddr), 0,
			   scaled(f, count));
	}
}

/* Writes entries into a function whose origin is not known. */
static void put_entries(struct fdata *f, uint32_t b)
{
	const struct mp_block *block = &f->cfg->blocks[b];
	double count = f->m->inferred->block[b] - f->into[b];

	if (block->flags & MP_BLOCK_ENTRY)
		count -= f->called[block->func];
	else if (!(block->flags & MP_BLOCK_LANDING_PAD))
		return;
	if (count * f->scale >= 1)
		put_branch(f, (struct place){.range = MP_NONE}, place_of(f, block->vaddr), 0,
			   scaled(f, count));
}

static int fdata_inferred(struct fdata *f)
{
	const struct mp_cfg *cfg = f->cfg;
	struct md_export_call *calls;
	size_t nr;
	int r = md_export_calls(f->m, &calls, &nr);

	for (size_t i = 0; i < nr; i++)
		f->called[calls[i].callee] += calls[i].count;
	for (uint32_t b = 0; b < cfg->nr_blocks && !r; b++) {
		if (!(f->m->inferred->block[b] > 0))
			continue;
		put_entries(f, b);
		put_edges(f, &cfg->blocks[b], false);
	}
	for (size_t i = 0; i < nr; i++)
		put_branch(f, place_of(f, calls[i].at),
			   place_of(f, cfg->funcs[calls[i].callee].vaddr), 0,
			   scaled(f, calls[i].count));
	free(calls);
	return r;
}

/* ---- what was seen ------------------------------------------------------------------------- */

/* Writes the counted branches. Fall-through counts follow from the inferred flow. */
static void fdata_seen(struct fdata *f)
{
	const struct mp_cfg *cfg = f->cfg;

	for (size_t i = 0; i < f->m->nr_edges; i++) {
		const struct mp_edge_count *edge = &f->m->edges[i];

		/* BOLT pairs calls and returns itself. */
		if (!md_export_insn_is(cfg->elf, edge->from, 1u << MP_INSN_RET))
			put_branch(f, place_of(f, edge->from), place_of(f, edge->to),
				   edge->mispredicted, edge->count);
	}
	f->scale = md_export_seen_per_count(f->m);
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		put_edges(f, &cfg->blocks[b], true);
}

/* ---- samples alone ------------------------------------------------------------------------- */

static void fdata_samples(struct fdata *f, struct md_export *e)
{
	uint32_t range = MP_NONE;

	fputs("no_lbr samples:\n", f->out);
	for (size_t i = 0; i < f->m->nr_counts; i++) {
		struct place place = place_of(f, f->m->counts[i].vaddr);

		if (place.range == MP_NONE ||
		    (place.range != range && !name_place(f, place, f->name[0]))) {
			e->nr_skipped += f->m->counts[i].count;
			continue;
		}
		range = place.range;
		fprintf(f->out, "1 %s %" PRIx64 " %" PRIu64 "\n", f->name[0], place.offset,
			f->m->counts[i].count);
		e->nr_written += f->m->counts[i].count;
	}
}

static enum md_branches branches_of(const struct md_export *e, size_t nr_edges)
{
	if (e->branches == MD_BRANCHES_AUTO)
		return nr_edges ? MD_BRANCHES_SEEN : MD_BRANCHES_INFERRED;
	return e->branches;
}

static bool fdata_wants_counts(const struct md_export *e, size_t nr_edges)
{
	return branches_of(e, nr_edges) != MD_BRANCHES_NONE;
}

static int fdata_module(struct md_export *e, const struct md_export_module *m, struct mp_err *err)
{
	struct fdata *f = calloc(1, sizeof(*f));
	enum md_branches branches = branches_of(e, m->nr_edges);
	int r = f ? 0 : -ENOMEM;

	if (branches == MD_BRANCHES_SEEN && !m->nr_edges) {
		free(f);
		return mp_err_set(err, ENODATA, "%s: no branch was seen", m->module->path);
	}
	if (!r) {
		f->m = m;
		f->cfg = m->code->cfg;
		f->out = e->out;
		f->scale = MD_EXPORT_SCALE;
		r = md_export_symbols_init(&f->names, m->code->elf);
	}
	if (!r && branches != MD_BRANCHES_NONE)
		r = fdata_sum(f);
	if (!r && branches == MD_BRANCHES_NONE)
		fdata_samples(f, e);
	else if (!r && branches == MD_BRANCHES_INFERRED)
		r = fdata_inferred(f);
	else if (!r)
		fdata_seen(f);
	if (!r)
		count_unnamed(f, e);
	if (!r && branches != MD_BRANCHES_NONE)
		md_export_count_blocks(e, m);
	if (f)
		fdata_fini(f);
	free(f);
	return r ? mp_err_code(err, -r) : 0;
}

const struct md_export_format md_export_fdata = {
	.name = "fdata",
	.needs = MD_EXPORT_CODE | MD_EXPORT_COUNTS | MD_EXPORT_EDGES | MD_EXPORT_ONE,
	.wants_counts = fdata_wants_counts,
	.module = fdata_module,
};
