// SPDX-License-Identifier: Apache-2.0
/*
 * paths - a plugin for QEMU's user mode: exact counts of each path in a table of path numbers.
 *
 * The original program runs, and its path follows from the blocks that it executes. So no code that
 * writes or reads path numbers is trusted. scripts/bench/path-accuracy runs it with a table printed by
 * tests/tools/paths. Counts the first thread only, and no children. Arguments:
 *   out=FILE     lines BLOCK NUMBER COUNT: COUNT paths ended after that block with NUMBER
 *   table=FILE   lines `b VADDR NEXT FLAGS' (1: a path starts, 2: ends with a call, 4: entered
 *                from outside with VALUE, which follows) and `e FROM TO CARRIES VALUE', by index
 *   object=PATH  the file to count; default: the main program
 */
#include <sys/syscall.h>

#include "tests/plugin/objects.h"
#include "tests/plugin/qemu_plugin.h"
#include "tests/plugin/transfer.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

#define STARTS	  1
#define CALLS	  2
#define ENTERED	  4
#define MAX_DEPTH 65536

struct block {
	uint64_t vaddr, next; /* start of the block, and start of what follows */
	uint64_t entered;     /* number of a path that enters from outside */
	size_t first_edge, nr_edges;
	unsigned int flags;
	bool repeats; /* begins with a string instruction, which comes back for each element */
};

struct edge {
	uint32_t from, to;
	bool carries;
	uint64_t value;
};

/* A function that was entered and, as far as blocks show, not left. */
struct frame {
	uint32_t block;
	uint64_t number;
};

struct count {
	uint64_t number, count;
	uint32_t block; /* index + 1; 0: a free slot */
};

static struct {
	struct block *blocks;
	struct edge *edges;
	size_t nr_blocks, nr_edges;
	struct frame frames[MAX_DEPTH];
	size_t depth;
	struct count *counts;
	size_t nr_counts, room;
	const char *out, *object, *main_path;
	bool maps_stale;
	pid_t pid;
} g = {.maps_stale = true};

static void *need(void *memory)
{
	if (!memory) {
		fputs("paths: out of memory\n", stderr);
		_exit(1);
	}
	return memory;
}

/* ---- counts ----------------------------------------------------------------- */

static struct count *count_slot(uint32_t block, uint64_t number)
{
	size_t i = ((number + 1) * 0x9e3779b97f4a7c15 ^ (uint64_t)block * 0xff51afd7ed558ccd) >> 17;

	for (i &= g.room - 1; g.counts[i].block; i = (i + 1) & (g.room - 1))
		if (g.counts[i].block == block + 1 && g.counts[i].number == number)
			break;
	return &g.counts[i];
}

static void counts_grow(void)
{
	struct count *old = g.counts;
	size_t room = g.room;

	g.room = room ? 2 * room : 65536;
	g.counts = need(calloc(g.room, sizeof(*g.counts)));
	for (size_t i = 0; i < room; i++)
		if (old[i].block)
			*count_slot(old[i].block - 1, old[i].number) = old[i];
	free(old);
}

/* Counts the path of @frame, which ends. */
static void path_end(const struct frame *frame)
{
	struct count *count;

	if (2 * g.nr_counts >= g.room)
		counts_grow();
	count = count_slot(frame->block, frame->number);
	if (!count->block) {
		*count = (struct count){frame->number, 0, frame->block + 1};
		g.nr_counts++;
	}
	count->count++;
}

/* ---- while the program runs ------------------------------------------------- */

static const struct edge *edge_find(uint32_t from, uint32_t to)
{
	const struct block *block = &g.blocks[from];

	for (size_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (g.edges[e].to == to)
			return &g.edges[e];
	return NULL;
}

static void frames_pop(size_t depth)
{
	while (g.depth > depth)
		path_end(&g.frames[--g.depth]);
}

/*
 * Return: the edge by which control may go to @block, from the block of @frame or after the
 * call there.
 */
static const struct edge *frame_leads(const struct frame *frame, bool top, uint32_t block)
{
	const struct block *at = &g.blocks[frame->block];

	if (!(at->flags & CALLS))
		return top ? edge_find(frame->block, block) : NULL;
	return at->next == g.blocks[block].vaddr ? edge_find(frame->block, block) : NULL;
}

static void frame_go(struct frame *frame, const struct edge *edge)
{
	if (edge->carries) {
		frame->number += edge->value;
	} else {
		path_end(frame);
		frame->number = g.blocks[edge->to].flags & STARTS ? 0 : edge->value;
	}
	frame->block = edge->to;
}

static void frame_push(uint32_t block)
{
	/* A function whose last block does not call has been left. */
	if (g.depth && !(g.blocks[g.frames[g.depth - 1].block].flags & CALLS))
		frames_pop(g.depth - 1);
	/*
	 * The stack is full: drop all frames. Their functions will be entered again when
	 * control returns.
	 */
	if (g.depth == MAX_DEPTH)
		frames_pop(0);
	g.frames[g.depth++] =
		(struct frame){block, g.blocks[block].flags & STARTS ? 0 : g.blocks[block].entered};
}

static void on_block(unsigned int vcpu, void *udata)
{
	uint32_t block = (uint32_t)(uintptr_t)udata;
	bool entered = g.blocks[block].flags & ENTERED;
	const struct edge *edge;

	if (vcpu)
		return;
	if (g.blocks[block].repeats && g.depth && g.frames[g.depth - 1].block == block)
		return;
	/*
	 * An entry is rarely a return target, so look only at the top frame. Else find the
	 * caller that control returned to.
	 */
	for (size_t i = g.depth; i--;) {
		edge = frame_leads(&g.frames[i], i + 1 == g.depth, block);
		if (edge) {
			frames_pop(i + 1);
			frame_go(&g.frames[i], edge);
			return;
		}
		if (entered)
			break;
	}
	frame_push(block);
}

/* ---- while the emulator translates ------------------------------------------ */

static uint32_t block_find(uint64_t vaddr)
{
	size_t low = 0, high = g.nr_blocks;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (g.blocks[mid].vaddr < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < g.nr_blocks && g.blocks[low].vaddr == vaddr ? (uint32_t)low : UINT32_MAX;
}

/* Finds the link-time address of the code at @host. Return: false: it is not in the wanted file. */
static bool locate(uint64_t host, uint64_t *vaddr)
{
	const struct mapping *m = g.maps_stale ? NULL : mapping_find(host);

	if (!m) {
		g.maps_stale = false;
		mappings_read(g.main_path);
		m = mapping_find(host);
	}
	if (!m || !(g.object ? object_is(m->object, g.object) : m->object->is_main))
		return false;
	*vaddr = object_vaddr(m->object, m->offset + (host - m->start));
	return true;
}

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);
	uint64_t vaddr;

	(void)id;
	if (!g.main_path)
		g.main_path = qemu_plugin_path_to_binary();
	if (!nr ||
	    !locate((uintptr_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0)), &vaddr))
		return;
	for (size_t i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		size_t size = qemu_plugin_insn_size(insn);
		uint32_t block = block_find(vaddr);

		vaddr += size;
		if (block == UINT32_MAX)
			continue;
		g.blocks[block].repeats =
			transfer_decode(qemu_plugin_insn_data(insn), size).repeats;
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_block, PLUGIN_CB_NO_REGS,
						       (void *)(uintptr_t)block);
	}
}

/* A new mapping may replace another one. */
static void on_syscall_ret(plugin_id id, unsigned int vcpu, int64_t nr, int64_t ret)
{
	(void)id;
	(void)vcpu;
	(void)ret;
	if (nr == SYS_mmap || nr == SYS_munmap || nr == SYS_mprotect)
		g.maps_stale = true;
}

/* ---- begin and end ---------------------------------------------------------- */

static bool table_read(const char *path)
{
	FILE *in = fopen(path, "re");
	char line[128];

	if (!in) {
		fprintf(stderr, "paths: %s: %s\n", path, strerror(errno));
		return false;
	}
	while (fgets(line, sizeof(line), in)) {
		struct block block = {0};
		struct edge edge = {0};
		unsigned int carries;

		if (sscanf(line, "b %" SCNx64 " %" SCNx64 " %u %" SCNu64, &block.vaddr, &block.next,
			   &block.flags, &block.entered) == 4) {
			g.blocks = grow(g.blocks, g.nr_blocks, sizeof(block));
			g.blocks[g.nr_blocks++] = block;
		} else if (sscanf(line, "e %u %u %u %" SCNu64, &edge.from, &edge.to, &carries,
				  &edge.value) == 4 &&
			   edge.from < g.nr_blocks && edge.to < g.nr_blocks) {
			struct block *from = &g.blocks[edge.from];

			edge.carries = carries;
			if (!from->nr_edges++)
				from->first_edge = g.nr_edges;
			g.edges = grow(g.edges, g.nr_edges, sizeof(edge));
			g.edges[g.nr_edges++] = edge;
		} else {
			fprintf(stderr, "paths: %s: cannot read: %s", path, line);
			fclose(in);
			return false;
		}
	}
	fclose(in);
	return g.nr_blocks > 0;
}

static void counts_write(plugin_id id, void *data)
{
	FILE *out;

	(void)id;
	(void)data;
	if (getpid() != g.pid)
		return;
	frames_pop(0);
	out = fopen(g.out, "we");
	if (!out) {
		perror(g.out);
		return;
	}
	for (size_t i = 0; i < g.room; i++)
		if (g.counts[i].block)
			fprintf(out, "%u %" PRIu64 " %" PRIu64 "\n", g.counts[i].block - 1,
				g.counts[i].number, g.counts[i].count);
	fclose(out);
}

int qemu_plugin_install(plugin_id id, const struct plugin_info *info, int argc, char **argv)
{
	bool read = false;

	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			g.out = need(strdup(argv[i] + 4));
		else if (!strncmp(argv[i], "object=", 7))
			g.object = need(strdup(argv[i] + 7));
		else if (!strncmp(argv[i], "table=", 6))
			read = table_read(argv[i] + 6);
	}
	if (!g.out || !read) {
		fputs("paths: out=FILE and table=FILE are needed\n", stderr);
		return -1;
	}
	g.pid = getpid();
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_ret);
	qemu_plugin_register_atexit_cb(id, counts_write, NULL);
	return 0;
}
