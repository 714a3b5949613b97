// SPDX-License-Identifier: Apache-2.0
/*
 * export - small questions that several formats ask of a module's code and counts.
 */
#include "daemon/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/insn.h"

uint64_t md_export_scaled(double count)
{
	double scaled = count * MD_EXPORT_SCALE;

	if (!(scaled > 0))
		return 0;
	if (scaled >= 0x1p62)
		return UINT64_C(1) << 62;
	return scaled < 1 ? 1 : (uint64_t)llround(scaled);
}

const char *md_export_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

double md_export_call_count(const struct mp_cfg *cfg, const struct mp_counts *counts,
			    const struct mp_call *call)
{
	const struct mp_block *block = &cfg->blocks[call->block];
	double count = counts->block[call->block];

	for (uint32_t i = 0; call->tail && i < block->nr_edges; i++)
		count -= counts->edge[block->first_edge + i];
	/* What rounding leaves of a difference is none. */
	return count > 1e-9 * counts->block[call->block] ? count : 0;
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
