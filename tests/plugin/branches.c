// SPDX-License-Identifier: Apache-2.0
/*
 * branches - a plugin for QEMU's user mode: exact counts of instructions and transfers, per
 * file.
 *
 * Decides what is counted; scripts/bench/branches runs it and prints tables. Stops the program with
 * status 99 when execution enters a patch other than at its start. Arguments, all KEY=VALUE:
 *   out=FILE     the counts, as JSON (required)
 *   edges=FILE   counts per run of instructions and per (from, to), see edges_write()
 *   callgrind=FILE  the same in callgrind's format, see callgrind_write()
 *   object=PATH  the file for these two; default: the main program
 *   patches=FILE moved=FILE  ranges of link-time addresses, see objects.h
 *   children=on  forked children write out.PID and edges.PID; otherwise they are not counted
 *
 * One callback runs per execution of a translation block. A block has at most one transfer, at
 * its end; the next block shows where it went. Other counts are computed at the end. Each
 * thread has its own counters.
 */
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/plugin/objects.h"
#include "tests/plugin/qemu_plugin.h"
#include "tests/plugin/transfer.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

#define STATUS_IN_PATCH 99
#define NO_ADDRESS	UINT64_MAX
#define CHUNK_BITS	12
#define CHUNK_SIZE	(1u << CHUNK_BITS)
#define NR_CHUNKS	8192 /* 33 million blocks */
#define NR_VCPUS	65536
#define NR_PENDING	32

struct block {
	uint64_t start;	 /* guest addresses */
	uint64_t next;	 /* address after the last instruction; NO_ADDRESS: any */
	uint64_t target; /* of a direct transfer; NO_ADDRESS: none */
	uint64_t last;	 /* the last instruction */
	uint64_t end;
	uint64_t hash; /* of the bytes, since code may be replaced at the same address */
	uint64_t bias; /* guest address - link-time address */
	const struct object *object;
	struct block *hash_next;
	const struct range *patch; /* an instruction starts inside it */
	uint64_t bad;		   /* that instruction, link-time */
	uint32_t id, nr_insns;
	bool moved, repeats, starts_repeat, was_cut;
	uint8_t transfer;
	uint8_t sizes[]; /* of the instructions */
};

struct cell {
	uint64_t runs, taken;
};

struct edge {
	uint32_t from, to; /* block ids; 0: a free slot */
	uint64_t count;
};

struct edge_table {
	struct edge *v;
	size_t nr, nr_alloc; /* nr_alloc: a power of two */
};

/* A thread of the emulated process. Only that thread writes here while it lives. */
struct vcpu {
	const struct block *prev;
	struct cell *prev_cell;
	struct cell *chunks[NR_CHUNKS];
	const struct block *pending[NR_PENDING]; /* interrupted by signal handlers */
	unsigned int nr_pending;
	bool sigreturn;
	struct edge_table edges;
	/*
	 * Executions that left a block before its end: from = block, to = instructions done.
	 * This is common for an instruction that crosses a page: the emulator ends the block
	 * before it, but shows its first bytes as the block's last instruction. Faults and
	 * restarts of the emulator are rare.
	 */
	struct edge_table cuts;
};

static struct {
	pthread_mutex_t lock;  /* protects blocks, objs and dead; held while translating */
	struct block **blocks; /* by id; there is no block 0 */
	size_t nr_blocks;
	struct block **table; /* by start address */
	size_t nr_table;
	struct vcpu dead; /* sum over exited threads */
	uint64_t nr_lost_pending;
	bool maps_stale;
	const char *main_path, *out, *edges, *callgrind, *edges_object;
	bool children, is_child;
	pid_t pid;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER, .maps_stale = true};

static struct vcpu *vcpus[NR_VCPUS];

static const struct block no_block = {.next = NO_ADDRESS, .target = NO_ADDRESS, .last = NO_ADDRESS};

static void *need(void *memory)
{
	if (!memory) {
		fputs("branches: out of memory\n", stderr);
		_exit(1);
	}
	return memory;
}

/* ---- while the program runs ---- */

static struct cell *cell_get(struct vcpu *v, uint32_t id)
{
	struct cell **chunk = &v->chunks[id >> CHUNK_BITS];

	if (__builtin_expect(!*chunk, 0))
		*chunk = need(calloc(CHUNK_SIZE, sizeof(struct cell)));
	return &(*chunk)[id & (CHUNK_SIZE - 1)];
}

static struct vcpu *vcpu_new(unsigned int index)
{
	if (index >= NR_VCPUS) {
		fputs("branches: too many threads\n", stderr);
		_exit(1);
	}
	vcpus[index] = need(calloc(1, sizeof(struct vcpu)));
	vcpus[index]->prev = &no_block;
	return vcpus[index];
}

static struct edge *edge_slot(const struct edge_table *t, uint32_t from, uint32_t to)
{
	size_t i = (((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15) >> 20;

	for (i &= t->nr_alloc - 1; t->v[i].from; i = (i + 1) & (t->nr_alloc - 1))
		if (t->v[i].from == from && t->v[i].to == to)
			break;
	return &t->v[i];
}

static uint64_t edge_find(const struct edge_table *t, uint32_t from, uint32_t to)
{
	return t->nr_alloc ? edge_slot(t, from, to)->count : 0;
}

static void edge_add(struct edge_table *t, uint32_t from, uint32_t to, uint64_t count)
{
	struct edge *e;

	if (2 * t->nr >= t->nr_alloc) {
		struct edge_table old = *t;
		size_t i;

		t->nr_alloc = old.nr_alloc ? 2 * old.nr_alloc : 1024;
		t->v = need(calloc(t->nr_alloc, sizeof(*t->v)));
		for (i = 0; i < old.nr_alloc; i++)
			if (old.v[i].from)
				*edge_slot(t, old.v[i].from, old.v[i].to) = old.v[i];
		free(old.v);
	}
	e = edge_slot(t, from, to);
	if (!e->from) {
		*e = (struct edge){from, to, 0};
		t->nr++;
	}
	e->count += count;
}

/* Return: true if control may reach @addr from @b without a signal or fault. */
static bool block_resumes_at(const struct block *b, uint64_t addr)
{
	return addr == b->next || addr == b->target || (addr >= b->start && addr < b->end);
}

static void cut_add(struct vcpu *v, const struct block *b, uint64_t addr)
{
	uint32_t nr_done = 0;
	uint64_t at = b->start;

	while (at < addr && nr_done < b->nr_insns)
		at += b->sizes[nr_done++];
	edge_add(&v->cuts, b->id, nr_done, 1);
}

/*
 * The previous block did not simply fall through. A direct transfer went to its target. After
 * an indirect one, any address may follow. Otherwise a signal handler runs (the block's end is
 * settled when the handler returns), or the block resumes at a faulting instruction.
 */
static __attribute__((noinline)) void flow_settle(struct vcpu *v, const struct block *b)
{
	const struct block *prev = v->prev;

	if (v->sigreturn) {
		v->sigreturn = false;
		if (!v->nr_pending || !block_resumes_at(v->pending[v->nr_pending - 1], b->start))
			return;
		prev = v->pending[--v->nr_pending];
		v->prev_cell = cell_get(v, prev->id);
		if (b->start == prev->next)
			return;
	}
	if (b->start == prev->last && b->start != prev->target && prev->nr_insns > 1) {
		cut_add(v, prev, b->start);
	} else if (prev->next == NO_ADDRESS && prev->target == NO_ADDRESS) {
		if (prev != &no_block && (g.edges || g.callgrind))
			edge_add(&v->edges, prev->id, b->id, 1);
	} else if (b->start == prev->target) {
		v->prev_cell->taken++;
	} else if (b->start >= prev->start && b->start < prev->end) {
		cut_add(v, prev, b->start);
	} else {
		if (v->nr_pending == NR_PENDING) {
			memmove(v->pending, v->pending + 1,
				sizeof(v->pending) - sizeof(v->pending[0]));
			v->nr_pending--;
			__atomic_add_fetch(&g.nr_lost_pending, 1, __ATOMIC_RELAXED);
		}
		v->pending[v->nr_pending++] = prev;
	}
}

static void on_block(unsigned int index, void *udata)
{
	const struct block *b = udata;
	struct vcpu *v = vcpus[index];

	if (__builtin_expect(!v, 0))
		v = vcpu_new(index);
	if (b->start == v->prev->target && !v->sigreturn && b->start != v->prev->next)
		v->prev_cell->taken++;
	else if (b->start != v->prev->next)
		flow_settle(v, b);
	v->prev = b;
	v->prev_cell = cell_get(v, b->id);
	v->prev_cell->runs++;
}

/* A string instruction with a rep prefix comes back once per element, but counts once. */
static void on_repeat(unsigned int index, void *udata)
{
	const struct block *b = udata;
	struct vcpu *v = vcpus[index];

	if (v && v->prev->repeats && v->prev->last == b->start && !v->sigreturn)
		return;
	on_block(index, udata);
}

static void on_patch(unsigned int index, void *udata)
{
	const struct block *b = udata;

	(void)index;
	fprintf(stderr,
		"branches: %s: execution starts at %#" PRIx64 ", inside the patch at %#" PRIx64
		" of %" PRIu64 " bytes\n",
		b->object->path, b->bad, b->patch->start, b->patch->size);
	_exit(STATUS_IN_PATCH);
}

/* ---- while the emulator translates ---- */

static uint64_t bytes_hash(uint64_t hash, const uint8_t *bytes, size_t size)
{
	while (size--)
		hash = (hash ^ *bytes++) * 0x100000001b3;
	return hash;
}

/* Finds file and link-time address of the block at host address @host. */
static void block_locate(struct block *b, uint64_t host)
{
	const struct mapping *m = g.maps_stale ? NULL : mapping_find(host);

	if (!m) {
		g.maps_stale = false;
		mappings_read(g.main_path);
		m = mapping_find(host);
	}
	if (m) {
		b->object = m->object;
		b->bias = b->start - object_vaddr(m->object, m->offset + (host - m->start));
	} else {
		b->object = object_get("[anonymous]", 0, 0, NULL);
	}
	b->moved = ranges_find(&b->object->moved, b->start - b->bias) != NULL;
}

static void block_decode(struct block *b, const struct qemu_plugin_tb *tb)
{
	struct decoded last = {0};
	uint64_t at = b->start;
	uint32_t i;

	for (i = 0; i < b->nr_insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const struct range *patch = ranges_find(&b->object->patches, at - b->bias);

		if (patch && at - b->bias != patch->start && !b->patch) {
			b->patch = patch;
			b->bad = at - b->bias;
		}
		last = transfer_decode(qemu_plugin_insn_data(insn), b->sizes[i]);
		if (i == 0)
			b->starts_repeat = last.repeats;
		b->last = at;
		at += b->sizes[i];
	}
	b->end = at;
	b->next = at;
	b->target = NO_ADDRESS;
	b->transfer = (uint8_t)last.transfer;
	b->repeats = last.repeats;
	switch (last.transfer) {
	case TRANSFER_NONE: break;
	case TRANSFER_COND: b->target = at + (uint64_t)last.displacement; break;
	case TRANSFER_JUMP:
	case TRANSFER_CALL:
		b->target = at + (uint64_t)last.displacement;
		b->next = NO_ADDRESS;
		break;
	default: b->next = NO_ADDRESS;
	}
}

static size_t block_slot(uint64_t start)
{
	return (start * 0x9e3779b97f4a7c15 >> 16) & (g.nr_table - 1);
}

static void table_grow(void)
{
	size_t i;

	free(g.table);
	g.nr_table = g.nr_table ? 2 * g.nr_table : 65536;
	g.table = need(calloc(g.nr_table, sizeof(*g.table)));
	for (i = 1; i < g.nr_blocks; i++) {
		struct block **slot = &g.table[block_slot(g.blocks[i]->start)];

		g.blocks[i]->hash_next = *slot;
		*slot = g.blocks[i];
	}
}

static void block_register(struct block *b)
{
	if (!g.nr_blocks) {
		g.blocks = grow(g.blocks, 0, sizeof(*g.blocks));
		g.blocks[g.nr_blocks++] = NULL;
	}
	if (g.nr_blocks >= (size_t)NR_CHUNKS * CHUNK_SIZE) {
		fputs("branches: too much code\n", stderr);
		_exit(1);
	}
	b->id = (uint32_t)g.nr_blocks;
	g.blocks = grow(g.blocks, g.nr_blocks, sizeof(*g.blocks));
	g.blocks[g.nr_blocks++] = b;
	if (g.nr_blocks >= g.nr_table) {
		table_grow();
	} else {
		b->hash_next = g.table[block_slot(b->start)];
		g.table[block_slot(b->start)] = b;
	}
}

/* The emulator translates code again after it flushed its cache: find the same block. */
static struct block *block_known(const struct block *b)
{
	struct block *k = g.nr_table ? g.table[block_slot(b->start)] : NULL;

	while (k && (k->start != b->start || k->hash != b->hash || k->nr_insns != b->nr_insns ||
		     k->object != b->object || k->bias != b->bias))
		k = k->hash_next;
	return k;
}

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb), i;
	struct block *b, *known;
	plugin_exec_fn fn = on_block;

	(void)id;
	if (!nr)
		return;
	b = need(calloc(1, sizeof(*b) + nr));
	b->start = qemu_plugin_tb_vaddr(tb);
	b->nr_insns = (uint32_t)nr;
	b->hash = 0xcbf29ce484222325;
	for (i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		b->sizes[i] = (uint8_t)qemu_plugin_insn_size(insn);
		b->hash = bytes_hash(b->hash, qemu_plugin_insn_data(insn), b->sizes[i]);
	}
	pthread_mutex_lock(&g.lock);
	if (!g.main_path)
		g.main_path = qemu_plugin_path_to_binary();
	block_locate(b, (uintptr_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0)));
	known = block_known(b);
	if (known) {
		free(b);
		b = known;
	} else {
		block_decode(b, tb);
		block_register(b);
	}
	pthread_mutex_unlock(&g.lock);
	if (b->patch)
		fn = on_patch;
	else if (b->starts_repeat)
		fn = on_repeat;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, fn, PLUGIN_CB_NO_REGS, b);
}

/* ---- at the end ---- */

static void edges_fold(struct edge_table *to, const struct edge_table *from)
{
	size_t i;

	for (i = 0; i < from->nr_alloc; i++)
		if (from->v[i].from)
			edge_add(to, from->v[i].from, from->v[i].to, from->v[i].count);
}

static void vcpu_fold(struct vcpu *to, const struct vcpu *from)
{
	uint32_t chunk, i;

	for (chunk = 0; chunk < NR_CHUNKS; chunk++) {
		if (!from->chunks[chunk])
			continue;
		for (i = 0; i < CHUNK_SIZE; i++) {
			const struct cell *cell = &from->chunks[chunk][i];
			struct cell *sum;

			if (!cell->runs && !cell->taken)
				continue;
			sum = cell_get(to, chunk << CHUNK_BITS | i);
			sum->runs += cell->runs;
			sum->taken += cell->taken;
		}
	}
	edges_fold(&to->edges, &from->edges);
	edges_fold(&to->cuts, &from->cuts);
	to->nr_pending += from->nr_pending;
}

static void vcpu_free(struct vcpu *v)
{
	uint32_t chunk;

	for (chunk = 0; chunk < NR_CHUNKS; chunk++)
		free(v->chunks[chunk]);
	free(v->edges.v);
	free(v->cuts.v);
	free(v);
}

static void on_thread_end(plugin_id id, unsigned int index)
{
	struct vcpu *v = index < NR_VCPUS ? vcpus[index] : NULL;

	(void)id;
	if (!v)
		return;
	pthread_mutex_lock(&g.lock);
	vcpu_fold(&g.dead, v);
	vcpus[index] = NULL;
	pthread_mutex_unlock(&g.lock);
	vcpu_free(v);
}

#include "tests/plugin/output.h"

/* Writes the counts at exit, and before the process executes another program. */
static void results_write(void)
{
	struct vcpu *sum = need(calloc(1, sizeof(*sum)));
	unsigned int i;

	pthread_mutex_lock(&g.lock);
	vcpu_fold(sum, &g.dead);
	for (i = 0; i < NR_VCPUS; i++)
		if (vcpus[i])
			vcpu_fold(sum, vcpus[i]);
	if (g.nr_blocks)
		output_write(sum);
	pthread_mutex_unlock(&g.lock);
	vcpu_free(sum);
}

static void on_exit_program(plugin_id id, void *udata)
{
	(void)id;
	(void)udata;
	if (!g.is_child || g.children)
		results_write();
}

static void on_syscall(plugin_id id, unsigned int index, int64_t nr, uint64_t a1, uint64_t a2,
		       uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
	(void)id, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
	if (nr == SYS_rt_sigreturn && vcpus[index])
		vcpus[index]->sigreturn = true;
	else if (nr == SYS_execve || nr == SYS_execveat)
		on_exit_program(id, NULL);
}

static void on_syscall_ret(plugin_id id, unsigned int index, int64_t nr, int64_t ret)
{
	(void)id, (void)index, (void)ret;
	if (nr != SYS_mmap && nr != SYS_munmap && nr != SYS_mremap)
		return;
	pthread_mutex_lock(&g.lock);
	g.maps_stale = true;
	pthread_mutex_unlock(&g.lock);
}

/*
 * A forked child starts with its parent's counts: reset them. Only the forking thread exists in
 * the child.
 */
static void on_fork_child(void)
{
	unsigned int i;

	pthread_mutex_init(&g.lock, NULL);
	g.is_child = true;
	g.pid = getpid();
	g.nr_lost_pending = 0;
	memset(&g.dead, 0, sizeof(g.dead));
	for (i = 0; i < NR_VCPUS; i++) {
		const struct block *prev = vcpus[i] ? vcpus[i]->prev : NULL;

		if (!prev)
			continue;
		vcpu_new(i)->prev = prev;
		vcpus[i]->prev_cell = cell_get(vcpus[i], prev->id);
	}
}

int qemu_plugin_install(plugin_id id, const struct plugin_info *info, int argc, char **argv)
{
	int i;

	if (info->system_emulation || strcmp(info->target_name, "x86_64")) {
		fputs("branches: only for x86-64 programs in user mode\n", stderr);
		return -1;
	}
	for (i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value) {
			fprintf(stderr, "branches: %s: not KEY=VALUE\n", argv[i]);
			return -1;
		}
		*value++ = 0;
		if (!strcmp(argv[i], "out")) {
			g.out = need(strdup(value));
		} else if (!strcmp(argv[i], "edges")) {
			g.edges = need(strdup(value));
		} else if (!strcmp(argv[i], "callgrind")) {
			g.callgrind = need(strdup(value));
		} else if (!strcmp(argv[i], "object")) {
			g.edges_object = need(strdup(value));
		} else if (!strcmp(argv[i], "children")) {
			g.children = !strcmp(value, "on");
		} else if (!strcmp(argv[i], "patches") || !strcmp(argv[i], "moved")) {
			if (!wishes_read(value, argv[i][0] == 'p'))
				return -1;
		} else {
			fprintf(stderr, "branches: %s: unknown argument\n", argv[i]);
			return -1;
		}
	}
	if (!g.out) {
		fputs("branches: out=FILE is needed\n", stderr);
		return -1;
	}
	g.pid = getpid();
	pthread_atfork(NULL, NULL, on_fork_child);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_vcpu_exit_cb(id, on_thread_end);
	qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_ret);
	qemu_plugin_register_atexit_cb(id, on_exit_program, NULL);
	return 0;
}
