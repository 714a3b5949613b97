// SPDX-License-Identifier: Apache-2.0
/*
 * timings - a plugin for QEMU's user mode: how many instructions each timing of an audited program
 * contains (`morph-optimize instrument --kind=audit').
 *
 * It looks at calls of the audit's runtime and at the runtime's readings of the time-stamp counter.
 * A call in which the clock is read twice has begun a timing; the thread's next call for the same
 * function ends it or looks at it. Instructions of stubs and of the runtime do not count. Arguments:
 *   out=FILE  a line KIND FUNCTION POINT NR LEAST for each timing point; KIND is `loop' for times
 *             from a timing point to itself, `leave' for those that a function's exit ended, `entry'
 *             for those from entry to exit. NR timings have LEAST instructions or more.
 *   runtime=ADDRESS size=BYTES  the main program's section .morph.start, by link-time address
 */
#include <sys/syscall.h>

#include "tests/plugin/objects.h"
#include "tests/plugin/qemu_plugin.h"
#include "tests/plugin/transfer.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

/* Entries of the runtime, and the number in a stub (editor/base/runtime.h). */
#define ENTER	      48
#define LEAVE	      64
#define POINT	      80
#define FUNCTION(n)   ((n)&0xff)
#define POINT_OF(n)   ((n) >> 8 & 3)
#define VERSION_OF(n) ((n) >> 10 & 1)
#define CALL_SIZE     5

#define MAX_THREADS   512
#define MAX_FUNCTIONS 256
#define MAX_POINTS    4

enum kind {
	KIND_ENTRY,
	KIND_LOOP,
	KIND_LEAVE,
	NR_KINDS
};

struct thread {
	uint64_t insns;	     /* of the program, outside of stubs and runtime */
	unsigned int clocks; /* readings of the clock in the last call */
	bool called;	     /* there was a call, for: */
	uint64_t entry;
	uint32_t number;
	uint64_t at; /* @insns then */
	bool times;  /* a timing runs, which began in a call for: */
	uint64_t began_entry;
	uint32_t began_number;
	uint64_t began_at;
};

struct least {
	uint64_t nr, insns;
};

/* A call of the runtime in a stub. */
struct call {
	uint64_t entry;
	uint32_t number;
};

static struct {
	struct thread threads[MAX_THREADS];
	struct least least[NR_KINDS][MAX_FUNCTIONS][MAX_POINTS];
	uint64_t runtime, runtime_size;
	const char *out, *main_path;
	bool maps_stale;
	pid_t pid;
} g = {.maps_stale = true};

static void note(enum kind kind, uint32_t number, uint64_t insns)
{
	struct least *least =
		&g.least[kind][FUNCTION(number)][kind == KIND_ENTRY ? 0 : POINT_OF(number)];

	if (!least->nr++ || insns < least->insns)
		least->insns = insns;
}

/* The call before has begun a timing if it read the clock when it came and once more. */
static void settle(struct thread *t)
{
	if (!t->called || t->clocks < 2)
		return;
	t->times = true;
	t->began_entry = t->entry;
	t->began_number = t->number;
	t->began_at = t->at;
}

/* ---- while the program runs ------------------------------------------------- */

static void on_call(unsigned int vcpu, void *data)
{
	const struct call *call = data;
	struct thread *t = &g.threads[vcpu % MAX_THREADS];
	uint64_t insns;

	settle(t);
	insns = t->insns - t->began_at;
	if (t->times && FUNCTION(call->number) == FUNCTION(t->began_number)) {
		bool loop = t->began_entry == POINT;

		if (call->entry == POINT && loop &&
		    POINT_OF(call->number) == POINT_OF(t->began_number) &&
		    VERSION_OF(call->number) == VERSION_OF(t->began_number))
			note(KIND_LOOP, t->began_number, insns);
		else if (call->entry == LEAVE)
			note(loop ? KIND_LEAVE : KIND_ENTRY, t->began_number, insns);
		t->times = false;
	}
	t->called = true;
	t->clocks = 0;
	t->entry = call->entry;
	t->number = call->number;
	t->at = t->insns;
}

static void on_clock(unsigned int vcpu, void *data)
{
	(void)data;
	g.threads[vcpu % MAX_THREADS].clocks++;
}

static void on_block(unsigned int vcpu, void *data)
{
	g.threads[vcpu % MAX_THREADS].insns += (uintptr_t)data;
}

/* Return: link-time address in the main program; 0: elsewhere. */
static uint64_t locate(uint64_t host)
{
	const struct mapping *m = g.maps_stale ? NULL : mapping_find(host);

	if (!m) {
		g.maps_stale = false;
		mappings_read(g.main_path);
		m = mapping_find(host);
	}
	if (!m || !m->object->is_main)
		return 0;
	return object_vaddr(m->object, m->offset + (host - m->start));
}

/* Is @insn, at link-time address @vaddr, a call of the runtime from a stub? The stub's number stands
 * behind it. */
static struct call *call_of(struct qemu_plugin_insn *insn, uint64_t vaddr)
{
	const uint8_t *bytes = qemu_plugin_insn_data(insn), *behind;
	size_t size = qemu_plugin_insn_size(insn);
	struct call *call;
	uint64_t entry;

	if (size != CALL_SIZE || bytes[0] != 0xe8)
		return NULL;
	entry = vaddr + size + (uint64_t)transfer_decode(bytes, size).displacement - g.runtime;
	if (entry != ENTER && entry != LEAVE && entry != POINT)
		return NULL;
	behind = (const uint8_t *)qemu_plugin_insn_haddr(insn) + size;
	call = malloc(sizeof(*call));
	if (!call)
		_exit(1);
	call->entry = entry;
	memcpy(&call->number, behind + 1, sizeof(call->number));
	return call;
}

/* Does @insn belong to a stub? *@next: so does the branch behind it. */
static bool is_stub(struct qemu_plugin_insn *insn, bool *next)
{
	static const uint8_t decl[] = {0x65, 0xff, 0x0d}, cmpb[] = {0x65, 0x80, 0x3d},
			     lea[] = {0x48, 0x8d, 0x64, 0x24, 0x80};
	const uint8_t *bytes = qemu_plugin_insn_data(insn);
	size_t size = qemu_plugin_insn_size(insn);
	bool branch = *next;

	*next = (size == 7 && !memcmp(bytes, decl, sizeof(decl))) ||
		(size == 8 && !memcmp(bytes, cmpb, sizeof(cmpb)));
	return branch || *next || (size == 5 && !memcmp(bytes, lea, sizeof(lea))) ||
	       (size == 5 && bytes[0] == 0xa9);
}

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);
	uintptr_t insns = 0;
	bool next = false;

	(void)id;
	if (!g.main_path)
		g.main_path = qemu_plugin_path_to_binary();
	for (size_t i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const uint8_t *bytes = qemu_plugin_insn_data(insn);
		uint64_t vaddr = locate((uintptr_t)qemu_plugin_insn_haddr(insn));
		struct call *call = vaddr ? call_of(insn, vaddr) : NULL;

		if (vaddr - g.runtime < g.runtime_size) {
			if (qemu_plugin_insn_size(insn) == 2 && bytes[0] == 0x0f &&
			    bytes[1] == 0x31)
				qemu_plugin_register_vcpu_insn_exec_cb(insn, on_clock,
								       PLUGIN_CB_NO_REGS, NULL);
			continue;
		}
		if (call)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_call, PLUGIN_CB_NO_REGS,
							       call);
		else if (!vaddr || !is_stub(insn, &next))
			insns++;
	}
	if (insns)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, PLUGIN_CB_NO_REGS,
						     (void *)insns);
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

static void least_write(plugin_id id, void *data)
{
	static const char *const kinds[NR_KINDS] = {"entry", "loop", "leave"};
	FILE *out;

	(void)id;
	(void)data;
	if (getpid() != g.pid)
		return;
	out = fopen(g.out, "we");
	if (!out) {
		perror(g.out);
		return;
	}
	for (int k = 0; k < NR_KINDS; k++)
		for (int f = 0; f < MAX_FUNCTIONS; f++)
			for (int p = 0; p < MAX_POINTS; p++)
				if (g.least[k][f][p].nr)
					fprintf(out, "%s %d %d %" PRIu64 " %" PRIu64 "\n", kinds[k],
						f, p, g.least[k][f][p].nr, g.least[k][f][p].insns);
	fclose(out);
}

int qemu_plugin_install(plugin_id id, const struct plugin_info *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			g.out = strdup(argv[i] + 4);
		else if (!strncmp(argv[i], "runtime=", 8))
			g.runtime = strtoull(argv[i] + 8, NULL, 0);
		else if (!strncmp(argv[i], "size=", 5))
			g.runtime_size = strtoull(argv[i] + 5, NULL, 0);
	}
	if (!g.out || !g.runtime || !g.runtime_size) {
		fputs("timings: out=FILE, runtime=ADDRESS and size=BYTES are needed\n", stderr);
		return -1;
	}
	g.pid = getpid();
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_ret);
	qemu_plugin_register_atexit_cb(id, least_write, NULL);
	return 0;
}
