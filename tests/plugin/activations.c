// SPDX-License-Identifier: Apache-2.0
/*
 * activations - a plugin for QEMU's user mode: what single activations of functions do. Counts the
 * registers that they save in vain, and the branches that go another way for another call site.
 *
 * For scripts/bench/bench-small-rewrites. Arguments, all KEY=VALUE:
 *   out=FILE     the counts (required), see results_print()
 *   facts=FILE   what tests/tools/register_uses.c prints of the main program (required)
 *   branches=FILE  appends the counts of each branch and call site, see branches_print()
 *
 * Each thread has a stack of activations. A call begins one, and so does a jump to a function's entry out
 * of another function, which ends the one before. A return ends those down to the call that it returns
 * behind; after longjmp() the next return does. Code of other files has activations, too, but no counts.
 * Counts no forked children.
 */
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/plugin/facts.h"
#include "tests/plugin/objects.h"
#include "tests/plugin/qemu_plugin.h"
#include "tests/plugin/transfer.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

#define NO_ADDRESS UINT64_MAX
#define NR_VCPUS   4096
#define MAX_FRAMES (1u << 20)

struct block {
	uint64_t start, next, target, last, end; /* guest addresses */
	uint32_t function;			 /* 0: none of the main program's */
	uint32_t place;	 /* of its last instruction, a call or a branch; 0: neither */
	uint16_t pushes; /* registers that it pushes before it uses them */
	uint16_t uses;
	uint8_t transfer;
	bool is_entry, is_single; /* is_single: one instruction */
};

struct frame {
	uint64_t ret;  /* where it returns to */
	uint32_t site; /* place of its call */
	uint32_t function;
	uint16_t saved, used;
};

/* A branch in activations from one call site. */
struct pair {
	uint64_t key; /* place of the call, place of the branch; 0: free */
	uint64_t total, taken;
};

struct vcpu {
	const struct block *prev;
	struct frame *frames;
	uint32_t nr_frames, nr_alloc;
	struct pair *pairs;
	size_t nr_pairs, nr_slots; /* nr_slots: a power of two */
	uint64_t saves, in_vain, whole, activations, lost;
	uint64_t *in_vain_of; /* by function */
};

static struct {
	pthread_mutex_t lock; /* protects places, objs and blocks; held while translating */
	uint64_t *places;     /* guest addresses by slot */
	uint32_t *place_ids, *functions; /* by slot; by place */
	uint32_t nr_places, nr_slots;
	bool maps_stale, is_child;
	const char *main_path, *out, *branches;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER, .maps_stale = true};

static struct vcpu *vcpus[NR_VCPUS];

static const struct block no_block = {.next = NO_ADDRESS, .target = NO_ADDRESS, .last = NO_ADDRESS};

static void *need(void *memory)
{
	if (!memory) {
		fputs("activations: out of memory\n", stderr);
		_exit(1);
	}
	return memory;
}

/* ---- while the program runs ---- */

static struct pair *pair_slot(const struct vcpu *v, uint64_t key)
{
	size_t i = (key * 0x9e3779b97f4a7c15) >> 20 & (v->nr_slots - 1);

	while (v->pairs[i].key && v->pairs[i].key != key)
		i = (i + 1) & (v->nr_slots - 1);
	return &v->pairs[i];
}

static void pairs_grow(struct vcpu *v)
{
	struct pair *old = v->pairs;
	size_t nr_old = v->nr_slots;

	v->nr_slots = nr_old ? 2 * nr_old : 1 << 16;
	v->pairs = need(calloc(v->nr_slots, sizeof(*v->pairs)));
	for (size_t i = 0; i < nr_old; i++)
		if (old[i].key)
			*pair_slot(v, old[i].key) = old[i];
	free(old);
}

static void branch_count(struct vcpu *v, uint32_t site, uint32_t branch, bool taken)
{
	uint64_t key = (uint64_t)site << 32 | branch;
	struct pair *p;

	if (2 * v->nr_pairs >= v->nr_slots)
		pairs_grow(v);
	p = pair_slot(v, key);
	v->nr_pairs += !p->key;
	p->key = key;
	p->total++;
	p->taken += taken;
}

static struct frame *top(const struct vcpu *v)
{
	return &v->frames[v->nr_frames - 1];
}

static void frame_begin(struct vcpu *v, uint64_t ret, uint32_t site, uint32_t function)
{
	if (v->nr_frames == v->nr_alloc) {
		v->nr_alloc = v->nr_alloc ? 2 * v->nr_alloc : 1024;
		v->frames = need(realloc(v->frames, v->nr_alloc * sizeof(*v->frames)));
	}
	/* A program that never returns: forget all but the first. */
	if (v->nr_frames == MAX_FRAMES)
		v->nr_frames = 1;
	v->frames[v->nr_frames++] = (struct frame){.ret = ret, .site = site, .function = function};
	v->activations += function != 0;
}

/* Ends the innermost activation. */
static void frame_end(struct vcpu *v)
{
	const struct frame *f = top(v);
	unsigned int in_vain = (unsigned int)__builtin_popcount(f->saved & ~f->used & 0xffff);

	v->saves += (unsigned int)__builtin_popcount(f->saved);
	v->in_vain += in_vain;
	v->whole += f->saved & f->used ? 0 : in_vain;
	v->in_vain_of[f->function] += in_vain;
	v->nr_frames--;
}

static void returned(struct vcpu *v, uint64_t to)
{
	uint32_t i = v->nr_frames;

	while (i > 1 && v->frames[i - 1].ret != to)
		i--;
	/* The return out of a signal handler, or of a function that was never called. */
	if (i <= 1) {
		v->lost++;
		return;
	}
	while (v->nr_frames >= i)
		frame_end(v);
}

/* A jump led to @b: does it begin an activation in place of the last one? */
static void jumped(struct vcpu *v, const struct block *prev, const struct block *b)
{
	const struct frame *f = top(v);
	uint64_t ret = f->ret;
	uint32_t site = prev->function ? prev->place : f->site;

	if (!b->is_entry || b->function == prev->function || v->nr_frames < 2)
		return;
	frame_end(v);
	frame_begin(v, ret, site, b->function);
}

static void settle(struct vcpu *v, const struct block *prev, const struct block *b)
{
	bool taken = b->start == prev->target;

	/* At a page's end the emulator shows an instruction that it has not executed yet. */
	if (b->start == prev->last && !prev->is_single && !taken)
		return;
	switch (prev->transfer) {
	case TRANSFER_COND:
		if (!taken && b->start != prev->next)
			break;
		if (prev->function)
			branch_count(v, top(v)->site, prev->place, taken);
		if (taken)
			jumped(v, prev, b);
		break;
	case TRANSFER_JUMP:
		if (taken)
			jumped(v, prev, b);
		break;
	case TRANSFER_IJUMP: jumped(v, prev, b); break;
	case TRANSFER_CALL:
		if (taken)
			frame_begin(v, prev->end, prev->place, b->function);
		break;
	case TRANSFER_ICALL: frame_begin(v, prev->end, prev->place, b->function); break;
	case TRANSFER_RET: returned(v, b->start); break;
	default: break;
	}
}

static void on_block(unsigned int index, void *udata)
{
	const struct block *b = udata;
	struct vcpu *v = vcpus[index];
	struct frame *f;

	if (__builtin_expect(!v, 0)) {
		v = vcpus[index] = need(calloc(1, sizeof(*v)));
		v->prev = &no_block;
		v->in_vain_of = need(calloc(known.nr_functions + 1u, sizeof(uint64_t)));
		frame_begin(v, NO_ADDRESS, 0, b->function);
	}
	if (v->prev->transfer != TRANSFER_NONE)
		settle(v, v->prev, b);
	f = top(v);
	f->saved |= b->pushes & ~f->used;
	f->used |= b->uses;
	v->prev = b;
}

/* ---- while the emulator translates ---- */

static uint32_t place_slot(uint64_t address)
{
	uint32_t i = (uint32_t)(address * 0x9e3779b97f4a7c15 >> 32) & (g.nr_slots - 1);

	while (g.place_ids[i] && g.places[i] != address)
		i = (i + 1) & (g.nr_slots - 1);
	return i;
}

/* Return: the number of the instruction at @address, from 1 on. */
static uint32_t place_get(uint64_t address, uint32_t function)
{
	uint32_t i;

	if (2 * g.nr_places >= g.nr_slots) {
		uint64_t *places = g.places;
		uint32_t *ids = g.place_ids, nr = g.nr_slots;

		g.nr_slots = nr ? 2 * nr : 1 << 16;
		g.places = need(calloc(g.nr_slots, sizeof(*g.places)));
		g.place_ids = need(calloc(g.nr_slots, sizeof(*g.place_ids)));
		g.functions = need(realloc(g.functions, (g.nr_slots + 1) * sizeof(*g.functions)));
		for (uint32_t k = 0; k < nr; k++)
			if (ids[k]) {
				i = place_slot(places[k]);
				g.places[i] = places[k];
				g.place_ids[i] = ids[k];
			}
		free(places);
		free(ids);
	}
	i = place_slot(address);
	if (!g.place_ids[i]) {
		g.places[i] = address;
		g.place_ids[i] = ++g.nr_places;
		g.functions[g.nr_places] = function;
	}
	return g.place_ids[i];
}

/* Return: guest address - link-time address of the main program's code; NO_ADDRESS: other code. */
static uint64_t bias_find(uint64_t start, uint64_t host)
{
	const struct mapping *m = g.maps_stale ? NULL : mapping_find(host);

	if (!m) {
		g.maps_stale = false;
		mappings_read(g.main_path);
		m = mapping_find(host);
	}
	if (!m || !m->object->is_main)
		return NO_ADDRESS;
	return start - object_vaddr(m->object, m->offset + (host - m->start));
}

static void block_decode(struct block *b, const struct qemu_plugin_tb *tb, uint64_t bias)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);
	struct decoded last = {0};

	b->end = b->start;
	for (size_t i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const struct fact *fact = bias == NO_ADDRESS ? NULL : fact_find(b->end - bias);

		last = transfer_decode(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
		if (fact && fact->push)
			b->pushes |= fact->mask & ~b->uses;
		else if (fact)
			b->uses |= fact->mask;
		b->last = b->end;
		b->end += qemu_plugin_insn_size(insn);
	}
	b->next = b->end;
	b->target = NO_ADDRESS;
	b->is_single = nr == 1;
	b->transfer = (uint8_t)last.transfer;
	if (last.transfer == TRANSFER_COND || last.transfer == TRANSFER_JUMP ||
	    last.transfer == TRANSFER_CALL)
		b->target = b->end + (uint64_t)last.displacement;
}

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	struct block *b;
	uint64_t bias;

	(void)id;
	if (!qemu_plugin_tb_n_insns(tb))
		return;
	/* never freed: the emulator and threads may use it until the end */
	b = need(calloc(1, sizeof(*b)));
	b->start = qemu_plugin_tb_vaddr(tb);
	pthread_mutex_lock(&g.lock);
	if (!g.main_path)
		g.main_path = qemu_plugin_path_to_binary();
	bias = bias_find(b->start,
			 (uintptr_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0)));
	if (bias != NO_ADDRESS) {
		const struct code *code = code_find(b->start - bias);

		b->function = code ? code->function : 0;
		b->is_entry = code && code->entry == b->start - bias;
	}
	block_decode(b, tb, bias);
	if (b->transfer != TRANSFER_NONE && b->transfer != TRANSFER_RET)
		b->place = place_get(b->last, b->function);
	pthread_mutex_unlock(&g.lock);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, PLUGIN_CB_NO_REGS, b);
}

/* ---- at the end ---- */

#include "tests/plugin/activation_output.h"

static void file_write(const char *path, const char *mode, struct vcpu *sum,
		       void (*print)(FILE *, struct vcpu *))
{
	FILE *out = fopen(path, mode);
	bool failed;

	if (out) {
		print(out, sum);
		failed = ferror(out);
		if (fclose(out) || failed)
			out = NULL;
	}
	if (!out)
		fprintf(stderr, "activations: %s: %s\n", path, strerror(errno));
}

static void on_exit_program(plugin_id id, void *udata)
{
	struct vcpu *sum;

	(void)id, (void)udata;
	if (g.is_child)
		return;
	pthread_mutex_lock(&g.lock);
	sum = need(calloc(1, sizeof(*sum)));
	sum->in_vain_of = need(calloc(known.nr_functions + 1u, sizeof(uint64_t)));
	pairs_grow(sum);
	for (unsigned int i = 0; i < NR_VCPUS; i++)
		if (vcpus[i]) {
			while (vcpus[i]->nr_frames)
				frame_end(vcpus[i]);
			pairs_add(sum, vcpus[i]);
		}
	if (g.branches)
		file_write(g.branches, "ae", sum, branches_print);
	file_write(g.out, "we", sum, results_print);
	pthread_mutex_unlock(&g.lock);
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

static void on_fork_child(void)
{
	g.is_child = true;
	pthread_mutex_init(&g.lock, NULL);
}

int qemu_plugin_install(plugin_id id, const struct plugin_info *info, int argc, char **argv)
{
	bool has_facts = false;

	if (info->system_emulation || strcmp(info->target_name, "x86_64")) {
		fputs("activations: only for x86-64 programs in user mode\n", stderr);
		return -1;
	}
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4)) {
			g.out = need(strdup(argv[i] + 4));
		} else if (!strncmp(argv[i], "branches=", 9)) {
			g.branches = need(strdup(argv[i] + 9));
		} else if (!strncmp(argv[i], "facts=", 6)) {
			if (!facts_read(argv[i] + 6))
				return -1;
			has_facts = true;
		} else {
			fprintf(stderr, "activations: %s: unknown argument\n", argv[i]);
			return -1;
		}
	}
	if (!g.out || !has_facts) {
		fputs("activations: out=FILE and facts=FILE are needed\n", stderr);
		return -1;
	}
	pthread_atfork(NULL, NULL, on_fork_child);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_ret);
	qemu_plugin_register_atexit_cb(id, on_exit_program, NULL);
	return 0;
}
