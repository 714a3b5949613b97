// SPDX-License-Identifier: Apache-2.0
/*
 * layouts - a plugin for QEMU's user mode: misses of several layouts of one file, in one run of the original.
 *
 * Each executed instruction is fetched from where a layout puts it. The model is that of fetch.c (an
 * instruction cache of 32 KiB, a TLB of 64 pages, first thread only). Jumps that a layout adds or saves are
 * not seen. Arguments, all KEY=VALUE:
 *   out=FILE      a line for each layout: NAME I1-MISSES ITLB-MISSES PAGES
 *   object=PATH   the file; default: the main program
 *   layout=NAME:FILE  may be repeated; FILE has lines `FROM SIZE TO`, link-time addresses in C notation
 */
#include "tests/plugin/objects.h"
#include "tests/plugin/qemu_plugin.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

#define LINE_LOG2   6
#define PAGE_LOG2   12
#define NR_SETS	    64
#define NR_WAYS	    8
#define NR_PAGES    64
#define MAX_LAYOUTS 128
#define MAX_PARTS   65536 /* of a block, in all layouts */

struct piece {
	uint64_t from, size, to;
};

struct layout {
	const char *name;
	struct piece *pieces;
	size_t nr_pieces;
	uint64_t misses, tlb_misses, line, page;
	uint64_t cache[NR_SETS][NR_WAYS], tlb[NR_PAGES];
	uint64_t *pages; /* that hold executed code of the object, with repetitions */
	size_t nr_pages;
};

/* Lines that a block lies in. */
struct part {
	uint64_t first, last;
	struct layout *layout;
};

struct block {
	size_t nr;
	struct part parts[];
};

static struct {
	const char *out, *object, *main_path;
	struct layout layouts[MAX_LAYOUTS];
	size_t nr_layouts;
	struct part parts[MAX_PARTS]; /* of the block that is being translated */
	size_t nr_parts;
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

static void line_enter(struct layout *l, uint64_t line)
{
	uint64_t page = line >> (PAGE_LOG2 - LINE_LOG2);

	if (line == l->line)
		return;
	l->line = line;
	l->misses += !touch(l->cache[line % NR_SETS], NR_WAYS, line);
	if (page == l->page)
		return;
	l->page = page;
	l->tlb_misses += !touch(l->tlb, NR_PAGES, page);
}

static void block_exec(unsigned int vcpu, void *data)
{
	const struct block *block = data;

	if (vcpu)
		return;
	for (size_t i = 0; i < block->nr; i++)
		for (uint64_t line = block->parts[i].first; line <= block->parts[i].last; line++)
			line_enter(block->parts[i].layout, line);
}

static const struct piece *piece_behind(const struct layout *l, uint64_t vaddr)
{
	size_t low = 0, high = l->nr_pieces;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (l->pieces[mid].from + l->pieces[mid].size <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->nr_pieces ? &l->pieces[low] : NULL;
}

static void part_add(struct layout *l, uint64_t start, uint64_t last)
{
	if (g.nr_parts == MAX_PARTS)
		abort();
	g.parts[g.nr_parts++] = (struct part){start >> LINE_LOG2, last >> LINE_LOG2, l};
}

static void pages_add(struct layout *l, uint64_t start, uint64_t last)
{
	for (uint64_t page = start >> PAGE_LOG2; page <= last >> PAGE_LOG2; page++) {
		l->pages = grow(l->pages, l->nr_pages, sizeof(*l->pages));
		l->pages[l->nr_pages++] = page;
	}
}

/* Cuts the block where pieces of the layout begin and end. @bias: run-time minus link-time address. */
static void block_place(struct layout *l, uint64_t vaddr, uint64_t size, uint64_t bias)
{
	while (size) {
		const struct piece *p = piece_behind(l, vaddr);
		uint64_t step = size, to = vaddr;

		if (p && p->from <= vaddr) {
			to = p->to + (vaddr - p->from);
			step = p->from + p->size - vaddr;
		} else if (p) {
			step = p->from - vaddr;
		}
		if (step > size)
			step = size;
		part_add(l, to + bias, to + bias + step - 1);
		pages_add(l, to + bias, to + bias + step - 1);
		vaddr += step;
		size -= step;
	}
}

/* Return: is @host, an address of the emulator, code of the object? Sets its link-time address. */
static bool in_object(uint64_t host, uint64_t *vaddr)
{
	const struct mapping *m = mapping_find(host);

	if (!g.main_path)
		g.main_path = qemu_plugin_path_to_binary();
	if (!m) {
		mappings_read(g.main_path);
		m = mapping_find(host);
	}
	if (!m || !(g.object ? object_is(m->object, g.object) : m->object->is_main))
		return false;
	*vaddr = object_vaddr(m->object, m->offset + (host - m->start));
	return true;
}

static void block_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);
	const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
	const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, nr - 1);
	uint64_t start = qemu_plugin_tb_vaddr(tb), vaddr;
	uint64_t size = qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last) - start;
	struct block *block;
	bool inside = in_object((uint64_t)(uintptr_t)qemu_plugin_insn_haddr(first), &vaddr);

	(void)id;
	g.nr_parts = 0;
	for (size_t i = 0; i < g.nr_layouts; i++)
		if (inside)
			block_place(&g.layouts[i], vaddr, size, start - vaddr);
		else
			part_add(&g.layouts[i], start, start + size - 1);
	/* never freed: the emulator may run it until the end */
	block = malloc(sizeof(*block) + g.nr_parts * sizeof(*block->parts));
	if (!block)
		abort();
	block->nr = g.nr_parts;
	memcpy(block->parts, g.parts, g.nr_parts * sizeof(*block->parts));
	qemu_plugin_register_vcpu_tb_exec_cb(tb, block_exec, PLUGIN_CB_NO_REGS, block);
}

static int page_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static size_t pages_count(struct layout *l)
{
	size_t nr = 0;

	if (l->nr_pages)
		qsort(l->pages, l->nr_pages, sizeof(*l->pages), page_compare);
	for (size_t i = 0; i < l->nr_pages; i++)
		nr += !i || l->pages[i] != l->pages[i - 1];
	return nr;
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
	for (size_t i = 0; i < g.nr_layouts; i++)
		fprintf(out, "%s %" PRIu64 " %" PRIu64 " %zu\n", g.layouts[i].name,
			g.layouts[i].misses, g.layouts[i].tlb_misses, pages_count(&g.layouts[i]));
	fclose(out);
}

static int piece_compare(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* If two pieces overlap, the first one ends where the second one begins. */
static bool layout_read(char *argument)
{
	struct layout *l = &g.layouts[g.nr_layouts];
	char *path = strchr(argument, ':');
	struct piece p;
	FILE *in;

	if (!path || g.nr_layouts == MAX_LAYOUTS)
		return false;
	*path++ = 0;
	in = fopen(path, "re");
	if (!in) {
		perror(path);
		return false;
	}
	g.nr_layouts++;
	l->name = argument;
	while (fscanf(in, "%" SCNi64 " %" SCNi64 " %" SCNi64, &p.from, &p.size, &p.to) == 3) {
		l->pieces = grow(l->pieces, l->nr_pieces, sizeof(p));
		l->pieces[l->nr_pieces++] = p;
	}
	fclose(in);
	if (l->nr_pieces)
		qsort(l->pieces, l->nr_pieces, sizeof(p), piece_compare);
	for (size_t i = 1; i < l->nr_pieces; i++)
		if (l->pieces[i].from - l->pieces[i - 1].from < l->pieces[i - 1].size)
			l->pieces[i - 1].size = l->pieces[i].from - l->pieces[i - 1].from;
	memset(l->cache, 0xff, sizeof(l->cache));
	memset(l->tlb, 0xff, sizeof(l->tlb));
	l->line = l->page = UINT64_MAX;
	return true;
}

int qemu_plugin_install(plugin_id id, const struct plugin_info *info, int argc, char **argv)
{
	bool good = true;

	(void)info;
	for (int i = 0; i < argc && good; i++) {
		char *value = strchr(argv[i], '=');

		value = value ? strdup(value + 1) : NULL;
		if (value && !strncmp(argv[i], "out=", 4))
			g.out = value;
		else if (value && !strncmp(argv[i], "object=", 7))
			g.object = value;
		else
			good = value && !strncmp(argv[i], "layout=", 7) && layout_read(value);
	}
	if (!good || !g.out || !g.nr_layouts) {
		fputs("layouts: out=FILE and layout=NAME:FILE are needed\n", stderr);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, block_translate);
	qemu_plugin_register_atexit_cb(id, counts_write, NULL);
	return 0;
}
