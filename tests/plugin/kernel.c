// SPDX-License-Identifier: Apache-2.0
/*
 * kernel - a plugin for QEMU's system mode: counts what the guest's kernel executes, per
 * interrupt and per operation: instructions, and distinct 64-byte lines of code and of data.
 *
 * Does not interpret the counts: a program in the guest opens and closes windows with marks
 * (mark.h), and the reader of the output knows their names. One CPU only. Arguments, all
 * KEY=VALUE:
 *   out=FILE      per window its interrupts and operations, see window_write() (required)
 *   profile=FILE  per window and class how often each kernel instruction ran
 *
 * Each instruction has its own callback, because an instruction that faults or accesses a
 * device ends its translation block early. Before MARK_ARM, which makes the emulator translate
 * everything again, only marks are looked for, so that booting is fast.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/plugin/mark.h"
#include "tests/plugin/qemu_plugin.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

#define LINE_LOG2    6
#define SET_SIZE     (1u << 21) /* lines of one operation: a power of two, never full */
#define NR_WATCHES   32
#define NR_CLASSES   64		/* all sets of MARK_CLASS_* */
#define CLASS_OTHERS NR_CLASSES /* in the profile: outside interrupts */

/* Distinct lines since the last clear, which starts a new generation. */
struct line_set {
	struct {
		uint64_t line;
		uint32_t generation;
	} v[SET_SIZE];
	uint32_t generation, nr;
	uint64_t last;
};

/* A unit of counting: an interrupt or an operation. */
struct scope {
	uint64_t kernel, user; /* instructions */
	uint64_t added;	       /* instructions in the watched module and its callees */
	uint32_t classes, nr_calls;
	bool in_module;
	struct line_set code, data;
};

struct insn {
	uint64_t vaddr;
	struct insn *next; /* list of all */
	uint32_t size, watch, watch_generation;
	bool is_iret, is_call, is_ret, repeats;
	uint32_t *nr; /* per class, NR_CLASSES + 1; NULL: never ran in a window with a profile */
};

struct watch {
	uint64_t start, end;
	uint32_t bit;
};

static struct {
	FILE *out, *profile;
	plugin_id id;
	bool armed;
	uint32_t window, depth; /* 0: none; depth: nested interrupts */
	uint64_t kernel, user;
	bool in_op;
	struct scope op, irq;
	struct watch watches[NR_WATCHES], watch; /* @watch: range that is being announced */
	uint32_t nr_watches, watch_generation;
	struct insn *insns, *last;
	struct insn **trace; /* instructions of the interrupt, if there is a profile */
	size_t nr_trace, nr_trace_alloc;
} g;

static void *alloc(void *old, size_t size)
{
	void *p = realloc(old, size);

	if (!p) {
		fputs("kernel: out of memory\n", stderr);
		abort();
	}
	return p;
}

static void set_clear(struct line_set *set)
{
	set->generation++;
	set->nr = 0;
	set->last = UINT64_MAX;
}

static void set_add(struct line_set *set, uint64_t vaddr, uint32_t size)
{
	uint64_t line = vaddr >> LINE_LOG2, last = (vaddr + size - 1) >> LINE_LOG2;

	for (; line <= last; line++) {
		uint32_t i = (uint32_t)(line ^ line >> 21) % SET_SIZE;

		if (line == set->last)
			continue;
		set->last = line;
		while (set->v[i].generation == set->generation && set->v[i].line != line)
			i = (i + 1) % SET_SIZE;
		if (set->v[i].generation == set->generation)
			continue;
		if (++set->nr == SET_SIZE) {
			fputs("kernel: an operation of too many lines\n", stderr);
			abort();
		}
		set->v[i].line = line;
		set->v[i].generation = set->generation;
	}
}

static void scope_clear(struct scope *scope)
{
	scope->kernel = scope->user = scope->added = 0;
	scope->classes = scope->nr_calls = 0;
	scope->in_module = false;
	set_clear(&scope->code);
	set_clear(&scope->data);
}

static void insn_profile(struct insn *insn, uint32_t class)
{
	if (!insn->nr) {
		insn->nr = alloc(NULL, (NR_CLASSES + 1) * sizeof(*insn->nr));
		memset(insn->nr, 0, (NR_CLASSES + 1) * sizeof(*insn->nr));
	}
	insn->nr[class]++;
}

static void irq_end(void)
{
	struct scope *irq = &g.irq;

	fprintf(g.out, "irq %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu32 "\n",
		irq->classes, irq->kernel, irq->added, irq->code.nr, irq->data.nr);
	for (size_t i = 0; i < g.nr_trace; i++)
		insn_profile(g.trace[i], irq->classes % NR_CLASSES);
	g.nr_trace = 0;
	g.depth = 0;
}

static void op_end(void)
{
	struct scope *op = &g.op;

	if (!g.window)
		return;
	if (g.in_op)
		fprintf(g.out, "op %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu32 "\n",
			op->kernel, op->user, op->added, op->code.nr, op->data.nr);
	scope_clear(op);
	g.in_op = true;
}

/*
 * Return: bits of the watches that contain the instruction. Watches change rarely, between
 * windows.
 */
static uint32_t insn_watch(struct insn *insn)
{
	if (insn->watch_generation != g.watch_generation) {
		insn->watch_generation = g.watch_generation;
		insn->watch = 0;
		for (uint32_t i = 0; i < g.nr_watches; i++)
			if (insn->vaddr >= g.watches[i].start && insn->vaddr < g.watches[i].end)
				insn->watch |= 1u << g.watches[i].bit;
	}
	return insn->watch;
}

/* Tracks whether @scope is in the module or its callees, by counting calls and returns. */
static void module_follow(struct scope *scope, const struct insn *insn, bool is_module)
{
	if (!scope->in_module && !is_module)
		return;
	scope->in_module = true;
	scope->added++;
	if (insn->is_call)
		scope->nr_calls++;
	else if (insn->is_ret && scope->nr_calls-- == 0)
		scope->nr_calls = 0, scope->in_module = false;
}

static void kernel_exec(unsigned int vcpu, void *data)
{
	struct insn *insn = data;
	struct scope *scope;
	uint32_t watch;

	(void)vcpu;
	if (!g.window)
		return;
	/* the emulator runs a string instruction once per element */
	if (insn->repeats && insn == g.last)
		return;
	g.last = insn;
	watch = insn_watch(insn);
	if (watch & 1u << MARK_BIT_ENTRY) {
		if (!g.depth++)
			scope_clear(&g.irq);
	} else if ((watch & 1u << MARK_BIT_FAULT) && g.depth) {
		g.depth++;
	}
	scope = g.depth ? &g.irq : &g.op;
	g.kernel++;
	scope->kernel++;
	scope->classes |= watch & (NR_CLASSES - 1);
	set_add(&scope->code, insn->vaddr, insn->size);
	module_follow(scope, insn, watch & 1u << MARK_BIT_SAMPLE);
	if (g.profile && g.depth) {
		if (g.nr_trace == g.nr_trace_alloc) {
			g.nr_trace_alloc = g.nr_trace_alloc ? 2 * g.nr_trace_alloc : 4096;
			g.trace = alloc(g.trace, g.nr_trace_alloc * sizeof(struct insn *));
		}
		g.trace[g.nr_trace++] = insn;
	} else if (g.profile) {
		insn_profile(insn, CLASS_OTHERS);
	}
	if (insn->is_iret && g.depth && --g.depth == 0)
		irq_end();
}

static void kernel_access(unsigned int vcpu, plugin_mem_info info, uint64_t vaddr, void *data)
{
	(void)vcpu;
	(void)data;
	if (g.window)
		set_add(g.depth ? &g.irq.data : &g.op.data, vaddr,
			1u << qemu_plugin_mem_size_shift(info));
}

/* User code runs: an interrupt that switched tasks may have ended without its own iret. */
static void user_exec(unsigned int vcpu, void *data)
{
	(void)vcpu;
	if (!g.window)
		return;
	if (g.depth)
		irq_end();
	g.user += (uintptr_t)data;
	g.op.user += (uintptr_t)data;
}

/*
 * Writes a window: `window N`, a line per interrupt and per operation in their order, `end`:
 *   irq CLASSES KERNEL ADDED CODE DATA  CLASSES: a sum of 1 << MARK_BIT_*; KERNEL: instructions,
 *                                       ADDED: of these in the module and below it; CODE, DATA:
 *                                       distinct lines
 *   op KERNEL USER ADDED CODE DATA      likewise, from one MARK_OP to the next, less interrupts
 *   end KERNEL USER                     everything in the window
 * In the profile: `insn N CLASSES ADDRESS COUNT`, with CLASSES 64 outside interrupts.
 */
static void window_write(uint32_t window)
{
	if (g.window) {
		fprintf(g.out, "end %" PRIu64 " %" PRIu64 "\n", g.kernel, g.user);
		for (struct insn *insn = g.insns; insn; insn = insn->next)
			for (uint32_t i = 0; insn->nr && i <= NR_CLASSES; i++)
				if (insn->nr[i]) {
					fprintf(g.profile,
						"insn %" PRIu32 " %" PRIu32 " %#" PRIx64 " %" PRIu32
						"\n",
						g.window, i, insn->vaddr, insn->nr[i]);
					insn->nr[i] = 0;
				}
	}
	if (window)
		fprintf(g.out, "window %" PRIu32 "\n", window);
	fflush(g.out);
	scope_clear(&g.op);
	scope_clear(&g.irq);
	g.window = window;
	g.depth = 0;
	g.kernel = g.user = g.nr_trace = 0;
	g.last = NULL;
	g.in_op = false;
}

static void start(plugin_id id);

static void mark_exec(unsigned int vcpu, void *data)
{
	uint32_t mark = (uint32_t)(uintptr_t)data, value = mark & 0xff;

	(void)vcpu;
	switch (mark & 0xff00) {
	case MARK_ARM & 0xff00:
		g.armed = value;
		qemu_plugin_reset(g.id, start);
		break;
	case MARK_WINDOW & 0xff00: window_write(value); break;
	case MARK_OP & 0xff00: op_end(); break;
	case MARK_WATCH & 0xff00:
		if (value == MARK_FORGET) {
			g.nr_watches = 0;
		} else if (g.nr_watches < NR_WATCHES) {
			g.watch.bit = value;
			g.watches[g.nr_watches++] = g.watch;
		} else {
			fputs("kernel: too many watches\n", stderr);
			abort();
		}
		g.watch_generation++;
		break;
	}
}

/* A mark's operand has the lower half of a kernel address. */
static void start_exec(unsigned int vcpu, void *data)
{
	(void)vcpu;
	g.watch.start = 0xffffffff00000000ULL | (uint32_t)(uintptr_t)data;
}

static void end_exec(unsigned int vcpu, void *data)
{
	(void)vcpu;
	g.watch.end = 0xffffffff00000000ULL | (uint32_t)(uintptr_t)data;
}

static void mark_translate(struct qemu_plugin_insn *insn)
{
	const unsigned char *bytes = qemu_plugin_insn_data(insn);
	plugin_exec_fn fn = NULL;
	uint32_t value;

	if (qemu_plugin_insn_size(insn) != MARK_SIZE || bytes[0] != 0x0f || bytes[1] != 0x1f)
		return;
	memcpy(&value, bytes + 3, sizeof(value));
	switch (bytes[2]) {
	case MARK_MODRM: fn = (value & 0xffff0000) == MARK_MAGIC ? mark_exec : NULL; break;
	case MARK_MODRM_START: fn = start_exec; break;
	case MARK_MODRM_END: fn = end_exec; break;
	}
	if (fn)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, fn, PLUGIN_CB_NO_REGS,
						       (void *)(uintptr_t)value);
}

/* Return: true for a string instruction with a repeat prefix. */
static bool insn_repeats(const unsigned char *bytes, uint32_t size)
{
	bool repeats = false;
	uint32_t i;

	for (i = 0; i + 1 < size; i++)
		repeats |= bytes[i] == 0xf2 || bytes[i] == 0xf3;
	return repeats && size <= 4 &&
	       ((bytes[i] >= 0xa4 && bytes[i] <= 0xa7) || (bytes[i] >= 0xaa && bytes[i] <= 0xaf) ||
		(bytes[i] >= 0x6c && bytes[i] <= 0x6f));
}

/* Detects the transfers that occur in the kernel. */
static void insn_decode(struct insn *insn, const unsigned char *bytes)
{
	uint32_t i = 0;

	insn->is_iret = insn->size == 2 && bytes[0] == 0x48 && bytes[1] == 0xcf;
	insn->repeats = insn_repeats(bytes, insn->size);
	while (i + 1 < insn->size && (bytes[i] == 0xf3 || bytes[i] == 0x2e || bytes[i] == 0x3e ||
				      (bytes[i] & 0xf0) == 0x40))
		i++;
	insn->is_call = bytes[i] == 0xe8 ||
			(bytes[i] == 0xff && i + 1 < insn->size && (bytes[i + 1] & 0x38) == 0x10);
	insn->is_ret = bytes[i] == 0xc3 || bytes[i] == 0xc2;
}

static void kernel_translate(struct qemu_plugin_insn *from)
{
	/* never freed: the emulator may run it until the end */
	struct insn *insn = alloc(NULL, sizeof(*insn));
	const unsigned char *bytes = qemu_plugin_insn_data(from);

	memset(insn, 0, sizeof(*insn));
	insn->vaddr = qemu_plugin_insn_vaddr(from);
	insn->size = (uint32_t)qemu_plugin_insn_size(from);
	insn_decode(insn, bytes);
	insn->watch_generation = g.watch_generation - 1;
	insn->next = g.insns;
	g.insns = insn;
	qemu_plugin_register_vcpu_insn_exec_cb(from, kernel_exec, PLUGIN_CB_NO_REGS, insn);
	qemu_plugin_register_vcpu_mem_cb(from, kernel_access, PLUGIN_CB_NO_REGS, PLUGIN_MEM_RW,
					 NULL);
}

static void block_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb), i;
	bool is_kernel = qemu_plugin_tb_vaddr(tb) >> 63;

	(void)id;
	if (!is_kernel && g.armed)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, user_exec, PLUGIN_CB_NO_REGS,
						     (void *)(uintptr_t)nr);
	for (i = 0; i < nr; i++) {
		if (!is_kernel)
			mark_translate(qemu_plugin_tb_get_insn(tb, i));
		else if (g.armed)
			kernel_translate(qemu_plugin_tb_get_insn(tb, i));
	}
}

static void all_end(plugin_id id, void *data)
{
	(void)id;
	(void)data;
	window_write(0);
	if (fclose(g.out) || (g.profile && fclose(g.profile)))
		perror("kernel");
}

static void start(plugin_id id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, block_translate);
	qemu_plugin_register_atexit_cb(id, all_end, NULL);
}

int qemu_plugin_install(plugin_id id, const struct plugin_info *info, int argc, char **argv)
{
	const char *out = NULL, *profile = NULL;
	int i;

	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out = argv[i] + 4;
		else if (!strncmp(argv[i], "profile=", 8))
			profile = argv[i] + 8;
		else
			out = NULL, i = argc;
	}
	if (!out || !info->system_emulation) {
		fputs("kernel: out=FILE [profile=FILE], and a whole system to emulate\n", stderr);
		return -1;
	}
	g.out = fopen(out, "we");
	g.profile = profile ? fopen(profile, "we") : NULL;
	if (!g.out || (profile && !g.profile)) {
		perror("kernel");
		return -1;
	}
	g.id = id;
	g.watch_generation = 1;
	start(id);
	return 0;
}
