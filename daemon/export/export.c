// SPDX-License-Identifier: Apache-2.0
/*
 * export - questions about a module's code and counts that several formats ask; see export.h.
 */
#include "daemon/export/export.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/insn/insn.h"

uint64_t md_export_scaled(double count)
{
	double scaled = count * MD_EXPORT_SCALE;

	if (!(scaled > 0))
		return 0;
	if (scaled >= 0x1p62)
		return UINT64_C(1) << 62;
	return scaled < 1 ? 1 : (uint64_t)llround(scaled);
}

bool md_export_insn_is(const struct mp_elf *elf, uint64_t vaddr, unsigned int kinds)
{
	struct mp_insn insn;

	/* Near the end of a segment fewer than 15 bytes are left. */
	for (size_t avail = 15; avail; avail--) {
		const uint8_t *bytes = mp_elf_bytes(elf, vaddr, avail);

		if (bytes)
			return !mp_insn_decode(bytes, avail, vaddr, &insn) &&
			       (kinds & 1u << insn.kind);
	}
	return false;
}

double md_export_seen_per_count(const struct md_export_module *m)
{
	const struct mp_cfg *cfg = m->code->cfg;
	double seen = 0, counted = 0;

	if (!m->nr_edges || !m->profile->edge_transfers)
		return 0;
	for (uint32_t i = 0; i < cfg->nr_edges; i++) {
		if (cfg->edges[i].kind == MP_EDGE_FALL)
			continue;
		seen += (double)m->profile->edge_transfers[i];
		counted += m->inferred->edge[i];
	}
	return counted > 0 && seen > 0 ? seen / counted : 1;
}

/* Executions of a call. For a tail call: those of its block that do not stay in the function. */
static double call_count(const struct md_export_module *m, const struct mp_call *call)
{
	const struct mp_block *block = &m->code->cfg->blocks[call->block];
	double count = m->inferred->block[call->block];

	for (uint32_t i = 0; call->tail && i < block->nr_edges; i++)
		count -= m->inferred->edge[block->first_edge + i];
	/* Treat a remainder from rounding as zero. */
	return count > 1e-9 * m->inferred->block[call->block] ? count : 0;
}

static int compare_calls(const void *a, const void *b)
{
	const struct md_export_call *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->callee > y->callee) - (x->callee < y->callee);
}

/* The code itself gives the target of a direct call, so edges are used for indirect ones only. */
static bool is_indirect_call(const struct md_export_module *m, const struct mp_edge_count *edge,
			     struct md_export_call *out)
{
	const struct mp_cfg *cfg = m->code->cfg;

	out->at = edge->from;
	out->caller = mp_cfg_func_at(cfg, edge->from);
	out->callee = mp_cfg_func_at(cfg, edge->to);
	return out->caller != MP_NONE && out->callee != MP_NONE &&
	       cfg->funcs[out->callee].vaddr == edge->to &&
	       md_export_insn_is(cfg->elf, edge->from, 1u << MP_INSN_ICALL | 1u << MP_INSN_IJUMP);
}

int md_export_calls(const struct md_export_module *m, struct md_export_call **out, size_t *nr)
{
	const struct mp_cfg *cfg = m->code->cfg;
	struct md_export_call *calls;
	double unit = m->nr_edges ? md_export_seen_per_count(m) : 0;

	calls = malloc(((size_t)cfg->nr_calls + m->nr_edges + 1) * sizeof(*calls));
	*out = calls;
	*nr = 0;
	if (!calls)
		return -ENOMEM;
	for (uint32_t i = 0; i < cfg->nr_calls; i++) {
		const struct mp_call *call = &cfg->calls[i];
		double count = call->callee == MP_NONE ? 0 : call_count(m, call);

		if (count > 0)
			calls[(*nr)++] = (struct md_export_call){mp_call_insn(cfg, call),
								 cfg->blocks[call->block].func,
								 call->callee, count};
	}
	for (size_t i = 0; i < m->nr_edges && unit > 0; i++) {
		if (!is_indirect_call(m, &m->edges[i], &calls[*nr]))
			continue;
		calls[*nr].count = (double)m->edges[i].count / unit;
		*nr += calls[*nr].count > 0;
	}
	qsort(calls, *nr, sizeof(*calls), compare_calls);
	return 0;
}

uint64_t *md_export_func_samples(const struct md_export_module *m)
{
	uint64_t *samples = calloc((size_t)m->code->cfg->nr_funcs + 1, sizeof(*samples));

	for (size_t i = 0; samples && i < m->nr_counts; i++) {
		uint32_t f = mp_cfg_func_at(m->code->cfg, m->counts[i].vaddr);

		samples[f == MP_NONE ? m->code->cfg->nr_funcs : f] += m->counts[i].count;
	}
	return samples;
}

void md_export_count_blocks(struct md_export *e, const struct md_export_module *m)
{
	e->nr_written += m->profile->nr_samples;
	e->nr_skipped += m->profile->nr_outside;
}

bool md_export_last_insn(const struct mp_cfg *cfg, const struct mp_block *block, uint64_t *vaddr)
{
	uint64_t at = block->vaddr, end = block->vaddr + block->size;
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, at, block->size);

	if (block->term_len) {
		*vaddr = end - block->term_len;
		return true;
	}
	while (bytes && at < end) {
		struct mp_insn insn;

		if (mp_insn_decode(bytes + (at - block->vaddr), end - at, at, &insn))
			return false;
		if (at + insn.len >= end) {
			*vaddr = at;
			return true;
		}
		at += insn.len;
	}
	return false;
}
