// SPDX-License-Identifier: Apache-2.0
/*
 * fetch - a plugin for QEMU's user mode: models what a processor's front end has to fetch.
 *
 * A simple model for comparing layouts. Counts entries into lines of 32 and 64 bytes (by a
 * branch or by running on), misses of an instruction cache (32 KiB, 8 ways, 64-byte lines, LRU)
 * and of a TLB (64 pages, LRU). Has no prefetching and no timing. Counts the first thread only,
 * with libraries. Argument: out=FILE, a line of JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/plugin/qemu_plugin.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

#define LINE_LOG2 6
#define PAGE_LOG2 12
#define NR_SETS	  64
#define NR_WAYS	  8
#define NR_PAGES  64

struct block {
	uint64_t start, end;
	uint32_t nr_insns;
};

static struct {
	const char *out;
	uint64_t insns, redirects, lines32, lines64, misses, tlb_misses;
	uint64_t end, line, page; /* current position */
	uint64_t cache[NR_SETS][NR_WAYS], tlb[NR_PAGES];
} g;

/* Moves @tag to the front of @set. Return: whether it was there. */
static bool touch(uint64_t *set, uint32_t ways, uint64_t tag)
{
	uint32_t i = 0;
	bool hit;

	while (i < ways && set[i] != tag)
		i++;
	hit = i < ways;
	memmove(set + 1, set, (hit ? i : ways - 1) * sizeof(*set));
	set[0] = tag;
	return hit;
}

static void line_enter(uint64_t line)
{
	uint64_t page = line >> (PAGE_LOG2 - LINE_LOG2);

	if (line == g.line)
		return;
	g.line = line;
	g.misses += !touch(g.cache[line % NR_SETS], NR_WAYS, line);
	if (page == g.page)
		return;
	g.page = page;
	g.tlb_misses += !touch(g.tlb, NR_PAGES, page);
}

static void block_exec(unsigned int vcpu, void *data)
{
	const struct block *block = data;
	uint64_t from = block->start, last = block->end - 1;

	if (vcpu)
		return;
	g.insns += block->nr_insns;
	if (from != g.end) {
		g.redirects++;
		g.lines32++;
		g.lines64++;
	} else {
		from--; /* its line was entered already */
	}
	g.lines32 += (last >> 5) - (from >> 5);
	g.lines64 += (last >> 6) - (from >> 6);
	for (uint64_t line = block->start >> LINE_LOG2; line <= last >> LINE_LOG2; line++)
		line_enter(line);
	g.end = block->end;
}

static void block_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);
	const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, nr - 1);
	/* never freed: the emulator may run it until the end */
	struct block *block = malloc(sizeof(*block));

	(void)id;
	if (!block)
		abort();
	block->start = qemu_plugin_tb_vaddr(tb);
	block->end = qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last);
	block->nr_insns = (uint32_t)nr;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, block_exec, PLUGIN_CB_NO_REGS, block);
}

static void counts_write(plugin_id id, void *data)
{
	FILE *out = fopen(g.out, "w");

	(void)id;
	(void)data;
	if (!out) {
		perror(g.out);
		return;
	}
	fprintf(out,
		"{\"instructions\": %llu, \"redirects\": %llu, \"lines32\": %llu, "
		"\"lines64\": %llu, \"i1_misses\": %llu, \"itlb_misses\": %llu}\n",
		(unsigned long long)g.insns, (unsigned long long)g.redirects,
		(unsigned long long)g.lines32, (unsigned long long)g.lines64,
		(unsigned long long)g.misses, (unsigned long long)g.tlb_misses);
	fclose(out);
}

int qemu_plugin_install(plugin_id id, const struct plugin_info *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4) || !argv[0][4]) {
		fputs("fetch: out=FILE is needed\n", stderr);
		return -1;
	}
	g.out = strdup(argv[0] + 4);
	if (!g.out)
		return -1;
	memset(g.cache, 0xff, sizeof(g.cache));
	memset(g.tlb, 0xff, sizeof(g.tlb));
	g.end = g.line = g.page = UINT64_MAX;
	qemu_plugin_register_vcpu_tb_trans_cb(id, block_translate);
	qemu_plugin_register_atexit_cb(id, counts_write, NULL);
	return 0;
}
