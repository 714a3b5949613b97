// SPDX-License-Identifier: Apache-2.0
/*
 * export_autofdo - the text format that create_llvm_prof and create_gcov read with
 * --profiler=text. It lists executed ranges, sampled addresses and taken branches, each list
 * after its length.
 *
 * Addresses are relative to the file's first PT_LOAD, as those programs expect.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/export/export.h"

struct autofdo {
	FILE *out; /* NULL: count only */
	uint64_t base;
	const struct md_export_module *m;
	const struct mp_cfg *cfg;
	struct md_export_call *calls;
	size_t nr_calls;
};

static uint64_t first_load(const struct mp_elf *elf)
{
	for (uint32_t i = 0; i < elf->nr_phdrs; i++)
		if (elf->phdrs[i].p_type == PT_LOAD)
			return elf->phdrs[i].p_vaddr;
	return 0;
}

/* The format ends a range at the address of its last instruction. */
static uint64_t put_ranges(const struct autofdo *a)
{
	uint64_t nr = 0, last;

	for (uint32_t b = 0; b < a->cfg->nr_blocks; b++) {
		const struct mp_block *block = &a->cfg->blocks[b];
		double count = a->m->inferred->block[b];

		if (!(count > 0) || !md_export_last_insn(a->cfg, block, &last))
			continue;
		nr++;
		if (a->out)
			fprintf(a->out, "%" PRIx64 "-%" PRIx64 ":%" PRIu64 "\n",
				block->vaddr - a->base, last - a->base, md_export_scaled(count));
	}
	return nr;
}

static uint64_t put_branch(const struct autofdo *a, uint64_t from, uint64_t to, double count)
{
	if (!(count > 0))
		return 0;
	if (a->out)
		fprintf(a->out, "%" PRIx64 "->%" PRIx64 ":%" PRIu64 "\n", from - a->base,
			to - a->base, md_export_scaled(count));
	return 1;
}

static uint64_t put_branches(const struct autofdo *a)
{
	const struct mp_cfg *cfg = a->cfg;
	const struct mp_counts *counts = a->m->inferred;
	uint64_t nr = 0, last;

	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (!(counts->block[b] > 0) || !md_export_last_insn(cfg, block, &last))
			continue;
		for (uint32_t i = block->first_edge; i < block->first_edge + block->nr_edges; i++)
			if (cfg->edges[i].kind != MP_EDGE_FALL)
				nr += put_branch(a, last, cfg->blocks[cfg->edges[i].to].vaddr,
						 counts->edge[i]);
	}
	for (size_t i = 0; i < a->nr_calls; i++)
		nr += put_branch(a, a->calls[i].at, cfg->funcs[a->calls[i].callee].vaddr,
				 a->calls[i].count);
	return nr;
}

static int autofdo_module(struct md_export *e, const struct md_export_module *m, struct mp_err *err)
{
	struct autofdo a = {.m = m, .cfg = m->code->cfg, .base = first_load(m->code->elf)};

	if (md_export_calls(m, &a.calls, &a.nr_calls))
		return mp_err_set(err, ENOMEM, "out of memory");
	fprintf(e->out, "%" PRIu64 "\n", put_ranges(&a));
	a.out = e->out;
	put_ranges(&a);
	fprintf(e->out, "%zu\n", m->nr_counts);
	for (size_t i = 0; i < m->nr_counts; i++)
		fprintf(e->out, "%" PRIx64 ":%" PRIu64 "\n", m->counts[i].vaddr - a.base,
			m->counts[i].count);
	a.out = NULL;
	fprintf(e->out, "%" PRIu64 "\n", put_branches(&a));
	a.out = e->out;
	put_branches(&a);
	free(a.calls);
	md_export_count_blocks(e, m);
	return 0;
}

const struct md_export_format md_export_autofdo = {
	.name = "autofdo",
	.needs = MD_EXPORT_CODE | MD_EXPORT_COUNTS | MD_EXPORT_EDGES | MD_EXPORT_ONE,
	.module = autofdo_module,
};
