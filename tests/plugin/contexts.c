// SPDX-License-Identifier: Apache-2.0
/*
 * contexts - a plugin for QEMU's user mode: the exact calling context tree and call graph of a
 * process, and exact stacks at drawn instructions.
 *
 * Documentation/lab/contexts.md describes the tree and the formats; scripts/bench/contexts runs the plugin
 * and reads them. Counts no forked children. Arguments, all KEY=VALUE:
 *   out=FILE      tree and graph (required)
 *   samples=FILE  stacks at drawn instructions
 *   period=N      mean distance of samples, in instructions of a thread; default: 100000
 *   seed=N        of the random distances; default: 1
 *   stack=BYTES   with each sample at a block's start, so much of the stack's memory; default: 0
 *
 * One callback runs per execution of a translation block. It reads the stack pointer from the
 * emulator's state: at a block's start all registers are there, and generated code keeps the
 * address of the state in rbp. The first calls check that.
 */
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdio_ext.h>
#include <sys/syscall.h>

#include "tests/plugin/context/stack.h"
#include "tests/plugin/qemu_plugin.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

#define NR_VCPUS    65536
#define NR_HANDLERS 256
#define REG_RSP	    4 /* of the emulator's registers */
#define SA_RESTORER 0x04000000

struct handler {
	uint64_t entry, restorer; /* guest addresses */
};

enum state {
	STATE_COUNTS,
	STATE_CHILD, /* a forked child: nothing is counted */
	STATE_ENDS   /* the results are being written: other threads wait */
};

static struct {
	pthread_mutex_t lock; /* protects places, objs, stacks, ended and files */
	struct places sites, functions;
	struct functions *objects; /* by index in objs */
	size_t nr_objects;
	struct handler handlers[NR_HANDLERS];
	size_t nr_handlers;
	struct block **known; /* pseudo blocks, see block_at() */
	uint64_t guest_base;  /* host address - guest address */
	bool has_base, maps_stale, is_checked;
	enum state state;
	uint32_t nr_threads;
	uint64_t nr_signals, nr_odd;
	struct vcpu **ended; /* threads */
	size_t nr_ended;
	const char *main_path, *out;
	FILE *samples;
	uint64_t period, seed, stack_size;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER, .maps_stale = true, .period = 100000, .seed = 1};

static struct vcpu *vcpus[NR_VCPUS];

static const struct block no_block = {.next = NO_ADDRESS, .target = NO_ADDRESS, .last = NO_ADDRESS};

/* ---- where code is ---- */

/* Finds file, link-time address and function of @b. Context: g.lock is held. */
static void block_locate(struct block *b)
{
	uint64_t host = b->start + g.guest_base;
	const struct mapping *m = g.maps_stale ? NULL : mapping_find(host);
	struct functions *f;

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
	while (g.nr_objects <= b->object->index) {
		g.objects = grow(g.objects, g.nr_objects, sizeof(*g.objects));
		g.objects[g.nr_objects++] = (struct functions){0};
	}
	f = &g.objects[b->object->index];
	if (!f->is_read)
		functions_read(f, b->object);
	b->function = (struct function *)functions_find(f, b->start - b->bias);
	b->at_start = b->function && b->function->start == b->start - b->bias;
	b->in_plt = ranges_find(&f->plt, b->start - b->bias) != NULL;
	b->last_function = (struct function *)functions_find(f, b->last - b->bias);
}

/* Return: a block without instructions at @pc, which the thread is about to execute. */
static struct block *block_at(uint64_t pc)
{
	struct block *b;
	size_t i;

	pthread_mutex_lock(&g.lock);
	if (!g.known)
		g.known = need(calloc(4096, sizeof(struct block *)));
	i = mix(pc) % 4096;
	if (!g.known[i] || g.known[i]->start != pc) {
		/* the old one stays: threads and frames may use it */
		b = need(calloc(1, sizeof(*b)));
		b->start = b->end = b->last = b->next = pc;
		b->target = NO_ADDRESS;
		block_locate(b);
		g.known[i] = b;
	}
	b = g.known[i];
	pthread_mutex_unlock(&g.lock);
	return b;
}

#include "tests/plugin/context/flow.h"
#include "tests/plugin/context/sample.h"

/* ---- while the program runs ---- */

/* A thread's first block: the function around it is the thread's first activation. */
static struct vcpu *vcpu_new(unsigned int index, struct block *b, uint64_t sp)
{
	struct vcpu *v = need(calloc(1, sizeof(*v)));
	struct block *first = b->function ? block_at(b->function->start + b->bias) : b;

	if (index >= NR_VCPUS) {
		fputs("contexts: too many threads\n", stderr);
		_exit(1);
	}
	v->prev = &no_block;
	v->sp = sp;
	v->number = __atomic_add_fetch(&g.nr_threads, 1, __ATOMIC_RELAXED);
	v->random = g.seed * 0x9e3779b97f4a7c15 + v->number;
	v->next_sample = NO_ADDRESS;
	if (g.samples) {
		v->next_sample = 0;
		sample_draw(v);
	}
	v->stack.high = sp + 4096;
	frame_push(v, NO_ADDRESS, 0, SITE_START, 0);
	frame_enter(v, block_entry(first), b->function);
	vcpus[index] = v;
	return v;
}

/* The transfers that occur often; flow_settle() knows the others. */
static void transfer_settle(struct vcpu *v, struct block *b, uint64_t sp)
{
	const struct block *prev = v->prev;
	const struct frame *f = top(v);

	if ((prev->transfer == TRANSFER_CALL || prev->transfer == TRANSFER_ICALL) &&
	    (b->start == prev->target || prev->target == NO_ADDRESS) && !v->sigreturn &&
	    guest_word(sp) == prev->end) {
		g.is_checked = true;
		call_enter(v, b, sp);
		return;
	}
	if (prev->transfer == TRANSFER_CALL && !g.is_checked && b->start == prev->target) {
		fputs("contexts: this emulator does not keep its registers as expected\n", stderr);
		_exit(1);
	}
	if (prev->transfer == TRANSFER_RET && b->start == f->ret &&
	    sp == f->slot + 8 + prev->pops && !(f->flags & FRAME_SIGNAL) && v->stack.nr > 1) {
		frame_pop(v);
		current_set(v);
		return;
	}
	if (v->pending && prev->transfer == TRANSFER_IJUMP && !v->sigreturn &&
	    !handler_find(b->start) && pending_enter(v, b, sp))
		return;
	flow_settle(v, b, sp);
}

/* Settles the transfer at the end of the last block. */
static __attribute__((noinline)) void flow_transfer(struct vcpu *v, struct block *b, uint64_t sp)
{
	uint8_t transfer = v->prev->transfer;

	if (v->prev == &no_block)
		return;
	transfer_settle(v, b, sp);
	if (transfer != TRANSFER_NONE && transfer != TRANSFER_COND && transfer != TRANSFER_JUMP)
		v->moved = false;
	else if (v->prev->loads_sp)
		v->moved = true;
}

/* Another thread writes the results. */
static __attribute__((noinline)) void thread_wait(struct vcpu *v)
{
	if (v)
		__atomic_store_n(&v->inside, 0, __ATOMIC_RELEASE);
	while (__atomic_load_n(&g.state, __ATOMIC_RELAXED) == STATE_ENDS)
		usleep(1000);
}

static inline void block_execute(unsigned int index, struct block *b, const uint64_t *regs)
{
	struct vcpu *v = vcpus[index];
	uint64_t sp = regs[REG_RSP];

	/* pairs with the barrier in results_write() */
	if (v)
		__atomic_store_n(&v->inside, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&g.state, __ATOMIC_RELAXED) != STATE_COUNTS, 0)) {
		thread_wait(v);
		return;
	}
	if (__builtin_expect(!v, 0))
		v = vcpu_new(index, b, sp);
	if (b->start != v->prev->next && (b->start != v->prev->target || sp == top(v)->slot ||
					  v->sigreturn || v->prev->transfer == TRANSFER_CALL))
		flow_transfer(v, b, sp);
	else if (__builtin_expect(v->prev->loads_sp, 0))
		v->moved = true;
	v->prev = b;
	if (!v->moved)
		v->sp = sp;
	v->nr_insns += b->nr_insns;
	v->current->self += b->nr_insns;
	if (__builtin_expect(v->next_sample < v->nr_insns, 0))
		samples_write(v, b, regs);
	__atomic_store_n(&v->inside, 0, __ATOMIC_RELEASE);
}

__attribute__((used)) static void on_block(unsigned int index, void *udata, const uint64_t *regs)
{
	block_execute(index, udata, regs);
}

/* A string instruction with a rep prefix comes back once per element, but counts once. */
__attribute__((used)) static void on_repeat(unsigned int index, void *udata, const uint64_t *regs)
{
	struct block *b = udata;
	const struct vcpu *v = vcpus[index];

	if (v && v->prev->repeats && v->prev->last == b->start && !v->sigreturn)
		return;
	block_execute(index, b, regs);
}

/* Generated code calls these. The emulator's state begins with the registers. */
void contexts_block(unsigned int index, void *udata);
void contexts_repeat(unsigned int index, void *udata);
__asm__(".text\n"
	"contexts_block:	mov %rbp, %rdx\n"
	"	jmp on_block\n"
	"contexts_repeat:	mov %rbp, %rdx\n"
	"	jmp on_repeat\n");

/* ---- while the emulator translates ---- */

/*
 * Return: whether the instruction sets rsp from memory or from a register other than rbp. An
 * instruction that adds or subtracts does not.
 */
static bool insn_loads_sp(const uint8_t *bytes, size_t size)
{
	const uint8_t *end = bytes + size;
	uint8_t rex = 0, mod, reg, rm, base;

	while (bytes < end && (*bytes == 0x66 || (*bytes & 0xf0) == 0x40))
		rex = *bytes++ & 0x4f;
	if (bytes == end)
		return false;
	if (*bytes == 0x5c || (*bytes == 0x94 && (rex & 8)))
		return !(rex & 1);
	if (end - bytes < 2)
		return false;
	mod = bytes[1] >> 6;
	reg = (bytes[1] >> 3 & 7) | (rex & 4) << 1;
	rm = (bytes[1] & 7) | (rex & 1) << 3;
	switch (*bytes) {
	case 0x89: return mod == 3 && rm == 4 && reg != 5;
	case 0x8b: return reg == 4 && !(mod == 3 && rm == 5);
	case 0x87: return reg == 4 || (mod == 3 && rm == 4);
	case 0x8d:
		base = rm;
		if ((rm & 7) == 4 && end - bytes > 2)
			base = (bytes[2] & 7) | (rex & 1) << 3;
		return reg == 4 && base != 4 && base != 5;
	default: return false;
	}
}

static void block_decode(struct block *b, const struct qemu_plugin_tb *tb)
{
	struct decoded last = {0};
	const uint8_t *bytes = NULL;
	uint64_t at = b->start;
	uint32_t i;

	for (i = 0; i < b->nr_insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		b->sizes[i] = (uint8_t)qemu_plugin_insn_size(insn);
		bytes = qemu_plugin_insn_data(insn);
		last = transfer_decode(bytes, b->sizes[i]);
		if (i == 0)
			b->starts_repeat = last.repeats;
		b->loads_sp |= insn_loads_sp(bytes, b->sizes[i]);
		b->last = at;
		at += b->sizes[i];
	}
	b->end = b->next = at;
	b->target = NO_ADDRESS;
	b->transfer = (uint8_t)last.transfer;
	b->repeats = last.repeats;
	if (last.transfer == TRANSFER_COND || last.transfer == TRANSFER_JUMP ||
	    last.transfer == TRANSFER_CALL)
		b->target = at + (uint64_t)last.displacement;
	if (last.transfer != TRANSFER_NONE && last.transfer != TRANSFER_COND)
		b->next = NO_ADDRESS;
	/* `ret N' */
	if (last.transfer == TRANSFER_RET && at - b->last >= 3 && bytes[at - b->last - 3] == 0xc2)
		memcpy(&b->pops, bytes + (at - b->last) - 2, sizeof(b->pops));
}

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);
	struct block *b;

	(void)id;
	if (!nr || g.state != STATE_COUNTS)
		return;
	/* never freed: the emulator and threads may use it until the end */
	b = need(calloc(1, sizeof(*b) + nr));
	b->start = qemu_plugin_tb_vaddr(tb);
	b->nr_insns = (uint32_t)nr;
	block_decode(b, tb);
	pthread_mutex_lock(&g.lock);
	if (!g.main_path)
		g.main_path = qemu_plugin_path_to_binary();
	if (!g.has_base) {
		g.guest_base = (uintptr_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0)) -
			       b->start;
		g.has_base = true;
		place_get(&g.sites, NULL, 0, SITE_SIGNAL, 0);
	}
	block_locate(b);
	if (b->transfer == TRANSFER_CALL || b->transfer == TRANSFER_ICALL)
		b->site = place_get(&g.sites, b->object, b->last - b->bias,
				    b->transfer == TRANSFER_CALL ? SITE_DIRECT : SITE_INDIRECT,
				    (uint8_t)(b->end - b->last));
	pthread_mutex_unlock(&g.lock);
	qemu_plugin_register_vcpu_tb_exec_cb(
		tb, b->starts_repeat ? contexts_repeat : contexts_block, PLUGIN_CB_NO_REGS, b);
}

/* ---- system calls, begin and end ---- */

static void on_thread_end(plugin_id id, unsigned int index)
{
	struct vcpu *v = index < NR_VCPUS ? vcpus[index] : NULL;

	(void)id;
	if (!v || g.state != STATE_COUNTS)
		return;
	pthread_mutex_lock(&g.lock);
	vcpus[index] = NULL;
	g.ended = grow(g.ended, g.nr_ended, sizeof(struct vcpu *));
	g.ended[g.nr_ended++] = v;
	pthread_mutex_unlock(&g.lock);
}

#include "tests/plugin/context/write.h"

/* Stops the other threads of the process, outside of the callback. */
static void threads_stop(void)
{
	unsigned int i;

	__atomic_store_n(&g.state, STATE_ENDS, __ATOMIC_RELAXED);
	/* pairs with block_execute(): a thread sees the state, or is seen inside */
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	for (i = 0; i < NR_VCPUS; i++)
		while (vcpus[i] && __atomic_load_n(&vcpus[i]->inside, __ATOMIC_ACQUIRE))
			usleep(100);
}

/* Writes the results at exit, and before the process executes another program. */
static void results_write(void)
{
	struct sum sum = {0};
	bool failed;
	FILE *out;
	size_t i;

	threads_stop();
	pthread_mutex_lock(&g.lock);
	for (i = 0; i < g.nr_ended; i++)
		sum_add(&sum, g.ended[i]);
	for (i = 0; i < NR_VCPUS; i++)
		if (vcpus[i])
			sum_add(&sum, vcpus[i]);
	sum_finish(&sum);
	out = fopen(g.out, "we");
	if (out) {
		sum_write(out, &sum);
		failed = ferror(out);
		if (fclose(out) || failed)
			out = NULL;
	}
	if (!out || (g.samples && (fflush(g.samples) || ferror(g.samples))))
		fprintf(stderr, "contexts: %s: %s\n", g.out, strerror(errno));
	pthread_mutex_unlock(&g.lock);
}

static void on_exit_program(plugin_id id, void *udata)
{
	(void)id;
	(void)udata;
	if (g.state == STATE_COUNTS)
		results_write();
}

static void handler_add(uint64_t action)
{
	struct handler h = {guest_word(action), guest_word(action + 16)};
	size_t i;

	if (h.entry < 2 || !(guest_word(action + 8) & SA_RESTORER))
		return;
	pthread_mutex_lock(&g.lock);
	for (i = 0; i < g.nr_handlers && g.handlers[i].entry != h.entry; i++)
		;
	if (i < NR_HANDLERS)
		g.handlers[i] = h;
	if (i == g.nr_handlers && i < NR_HANDLERS)
		__atomic_store_n(&g.nr_handlers, i + 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&g.lock);
}

static void on_syscall(plugin_id id, unsigned int index, int64_t nr, uint64_t a1, uint64_t a2,
		       uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
	(void)a1, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
	if (nr == SYS_rt_sigreturn && vcpus[index])
		vcpus[index]->sigreturn = true;
	else if (nr == SYS_rt_sigaction && a2)
		handler_add(a2);
	else if (nr == SYS_execve || nr == SYS_execveat)
		on_exit_program(id, NULL);
}

static void on_syscall_ret(plugin_id id, unsigned int index, int64_t nr, int64_t ret)
{
	(void)id, (void)index, (void)ret;
	/* exec failed: the program goes on */
	if ((nr == SYS_execve || nr == SYS_execveat) && g.state == STATE_ENDS)
		__atomic_store_n(&g.state, STATE_COUNTS, __ATOMIC_RELAXED);
	if (nr != SYS_mmap && nr != SYS_munmap && nr != SYS_mremap)
		return;
	pthread_mutex_lock(&g.lock);
	g.maps_stale = true;
	pthread_mutex_unlock(&g.lock);
}

static void on_fork_child(void)
{
	g.state = STATE_CHILD;
	pthread_mutex_init(&g.lock, NULL);
	if (g.samples)
		__fpurge(g.samples);
}

/* Return: false after an error message. */
static bool argument_read(char *arg)
{
	char *value = strchr(arg, '='), *end = "";

	if (!value) {
		fprintf(stderr, "contexts: %s: not KEY=VALUE\n", arg);
		return false;
	}
	*value++ = 0;
	if (!strcmp(arg, "out")) {
		g.out = need(strdup(value));
	} else if (!strcmp(arg, "samples")) {
		g.samples = fopen(value, "we");
		if (!g.samples) {
			fprintf(stderr, "contexts: %s: %s\n", value, strerror(errno));
			return false;
		}
	} else if (!strcmp(arg, "period")) {
		g.period = strtoull(value, &end, 10);
	} else if (!strcmp(arg, "seed")) {
		g.seed = strtoull(value, &end, 10);
	} else if (!strcmp(arg, "stack")) {
		g.stack_size = strtoull(value, &end, 10);
	} else {
		fprintf(stderr, "contexts: %s: unknown argument\n", arg);
		return false;
	}
	if (*end || !g.period) {
		fprintf(stderr, "contexts: %s=%s: not a number that makes sense\n", arg, value);
		return false;
	}
	return true;
}

int qemu_plugin_install(plugin_id id, const struct plugin_info *info, int argc, char **argv)
{
	int i;

	if (info->system_emulation || strcmp(info->target_name, "x86_64")) {
		fputs("contexts: only for x86-64 programs in user mode\n", stderr);
		return -1;
	}
	for (i = 0; i < argc; i++)
		if (!argument_read(argv[i]))
			return -1;
	if (!g.out) {
		fputs("contexts: out=FILE is needed\n", stderr);
		return -1;
	}
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	pthread_atfork(NULL, NULL, on_fork_child);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_vcpu_exit_cb(id, on_thread_end);
	qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_ret);
	qemu_plugin_register_atexit_cb(id, on_exit_program, NULL);
	return 0;
}
