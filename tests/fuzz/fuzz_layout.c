// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_layout - any counts as the profile of a good program: the inferred counts are finite,
 * and any layout by them is written and verifies.
 *
 * A profile may come from anybody and contain impossible counts. The input: a byte for the
 * program, three for options, then items of six bytes: an address or a transfer, and its count.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/emit/emit.h"
#include "editor/layout/layout.h"
#include "editor/verify/verify.h"
#include "libprof/infer/counts.h"
#include "tests/support/rewrite.h"

#define NR_PROGRAMS 4
#define MAX_ITEMS   4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct program {
	struct rewrite_bytes bytes;
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	uint8_t *movable;
	uint64_t start, size; /* of its code */
};

static struct program programs[NR_PROGRAMS];

static bool prepare(struct program *p, const char *command)
{
	const struct mp_section *text;
	struct mp_err err;

	if (!rewrite_compile(command, &p->bytes) ||
	    mp_elf_open_memory("program", p->bytes.data, p->bytes.size, MP_ELF_ALL, &p->elf,
			       &err) ||
	    mp_cfg_build(p->elf, NULL, &p->cfg, &err))
		return false;
	text = mp_elf_section(p->elf, ".text");
	p->movable = rewrite_movable(p->cfg);
	if (!text || !p->movable)
		return false;
	p->start = text->vaddr;
	p->size = text->size;
	return p->size;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const commands[NR_PROGRAMS] = {
		"gcc -O2 -w -Wl,--emit-relocs tests/data/switches.c",
		"gcc -O2 -w -s tests/data/switches.c",
		"g++ -O2 -s tests/data/exceptions.cc",
		"gcc -O2 -w -no-pie -fno-pie -Wl,--emit-relocs tests/data/control.c",
	};

	(void)argc;
	(void)argv;
	for (int i = 0; i < NR_PROGRAMS; i++)
		if (!prepare(&programs[i], commands[i])) {
			programs[i].size = 0;
			fprintf(stderr, "fuzz_layout: does not work: %s\n", commands[i]);
		}
	return 0;
}

/* ---- the profile
 * ------------------------------------------------------------------------------ */

static struct mp_ip_count ips[MAX_ITEMS];
static struct mp_edge_count edges[MAX_ITEMS];
static size_t nr_ips, nr_edges;

static int compare_ips(const void *a, const void *b)
{
	const struct mp_ip_count *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int compare_edges(const void *a, const void *b)
{
	const struct mp_edge_count *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* Like the store: ascending, without duplicates. */
static void sort(void)
{
	size_t nr = 0;

	qsort(ips, nr_ips, sizeof(ips[0]), compare_ips);
	for (size_t i = 0; i < nr_ips; i++)
		if (!nr || ips[nr - 1].vaddr != ips[i].vaddr)
			ips[nr++] = ips[i];
	nr_ips = nr;
	nr = 0;
	qsort(edges, nr_edges, sizeof(edges[0]), compare_edges);
	for (size_t i = 0; i < nr_edges; i++)
		if (!nr || compare_edges(&edges[nr - 1], &edges[i]))
			edges[nr++] = edges[i];
	nr_edges = nr;
}

/* {u16 from, u16 to, u16: 5 bits of shift, 10 of count, 1 for the kind} */
static void take_items(const struct program *p, const uint8_t *data, size_t size)
{
	nr_ips = nr_edges = 0;
	for (; size >= 6; data += 6, size -= 6) {
		uint64_t from = p->start + (uint64_t)(data[0] | data[1] << 8) % (p->size + 16);
		uint64_t to = p->start + (uint64_t)(data[2] | data[3] << 8) % (p->size + 16);
		unsigned int what = (unsigned int)(data[4] | data[5] << 8);
		uint64_t count = (uint64_t)((what >> 1 & 0x3ff) + 1) << 2 * (what >> 11);

		if (!count)
			count = 1;
		if (what & 1 && nr_edges < MAX_ITEMS)
			edges[nr_edges++] = (struct mp_edge_count){from, to, count, count / 3};
		else if (!(what & 1) && nr_ips < MAX_ITEMS)
			ips[nr_ips++] = (struct mp_ip_count){from, count};
	}
	sort();
}

/* ---- the way of morph-optimize
 * ---------------------------------------------------------------- */

static void check_counts(const struct mp_cfg *cfg, const struct mp_counts *counts)
{
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		if (!isfinite(counts->block[b]) || counts->block[b] < 0)
			abort();
	for (uint32_t e = 0; e < cfg->nr_edges; e++)
		if (!isfinite(counts->edge[e]) || counts->edge[e] < 0)
			abort();
}

static void write_and_verify(const struct program *p, struct me_plan *plan)
{
	struct me_emitted emitted;
	struct rewrite_bytes out;
	struct mp_elf *elf;
	struct mp_err err;

	if (rewrite_emit(p->cfg, plan, &emitted, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	out = rewrite_flatten(&emitted.output);
	me_emitted_fini(&emitted);
	if (!out.data)
		return;
	if (mp_elf_open_memory("output", out.data, out.size, MP_ELF_ALL, &elf, &err) ||
	    me_verify(p->elf, elf, NULL, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	mp_elf_close(elf);
	free(out.data);
}

/* Turns transfers into paths over any edges and into any blocks. */
static void take_paths(const struct mp_cfg *cfg, struct mp_path_evidence *out)
{
	if (mp_path_evidence_build(cfg, NULL, 0, out, NULL))
		abort();
	for (size_t i = 0; i < nr_edges && cfg->nr_edges; i++) {
		out->edge[edges[i].from % cfg->nr_edges] += edges[i].count;
		if (edges[i].to % 5 == 0)
			out->outside[edges[i].to % cfg->nr_blocks] += edges[i].count;
	}
	nr_edges = 0;
}

static void optimise(const struct program *p, const uint8_t options[3])
{
	struct mp_path_evidence paths = {0};
	struct mp_counts_options inference = {
		.estimator = options[0] & 1    ? MP_ESTIMATE_SCALED
			     : options[0] & 16 ? MP_ESTIMATE_PATHS
					       : MP_ESTIMATE_POISSON,
		.layout_prior = options[0] & 2,
		.call_graph = options[0] & 4,
		.nr_threads = 1,
	};
	struct me_layout_options layout = {
		.block_order = options[1] % ME_NR_ORDERS,
		.function_order = options[2] % MP_NR_ORDERS,
		.no_tails = options[1] & 0x40,
		.line_log2 = options[2] & 0x80 ? 6 : 0,
		/* Rarely, because such a file has megabytes. */
		.huge_pages = (options[2] & 0x70) == 0x50,
		.nr_threads = 1,
	};
	struct mp_profile *profile = NULL;
	struct me_prediction prediction;
	struct mp_counts counts = {0};
	struct me_plan plan = {0};
	struct mp_err err;

	if (inference.estimator == MP_ESTIMATE_PATHS) {
		take_paths(p->cfg, &paths);
		inference.paths = &paths;
	}
	if (mp_profile_build(p->cfg, ips, nr_ips, &profile, &err) ||
	    (nr_edges && mp_profile_add_edges(profile, p->cfg, edges, nr_edges, &err)))
		abort();
	profile->exact = options[0] & 8;
	if (mp_counts_build(p->cfg, profile, &inference, &counts, NULL, &err))
		abort();
	check_counts(p->cfg, &counts);
	mp_path_evidence_fini(&paths);
	if (me_layout_build(p->cfg, &counts, p->movable, &layout, &plan, &err) ||
	    me_layout_predict(p->cfg, &counts, &plan, NULL, &prediction, &err))
		abort();
	if (!isfinite(prediction.ratio))
		abort();
	plan.page_log2 = layout.huge_pages ? 21 : 0;
	if (plan.nr_blocks)
		write_and_verify(p, &plan);
	me_plan_fini(&plan);
	mp_counts_fini(&counts);
	mp_profile_free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct program *p;

	if (size < 4)
		return 0;
	p = &programs[data[0] % NR_PROGRAMS];
	if (!p->size)
		return 0;
	take_items(p, data + 4, size - 4);
	optimise(p, data + 1);
	return 0;
}
