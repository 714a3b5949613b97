// SPDX-License-Identifier: Apache-2.0
/*
 * contexts_store - makes a database of exact stacks, as morphd would from perfect walks.
 *
 *  contexts_store [--contexts | --flush=SAMPLES] DB <LINES
 *  contexts_store --sizes DB...
 *
 * --contexts: stacks only, without counts of addresses. --flush: the trees of so many samples each are added one
 * after the other, as by flushes, and the CPU time of that is printed.
 *
 * --sizes: measures the trees that databases have (tests/support/tree_sizes.h).
 *
 * `scripts/bench/contexts graph` writes the lines:
 *  module PATH			a file; modules count from 0, and the first is the program
 *  sample TID MODULE VADDR CALLER...	a sample, with its callers from the innermost to the outermost
 * A caller is KIND:MODULE:VADDR:SLOT in hexadecimal; KIND is c (VADDR is a return address) or a (the
 * instruction that a signal interrupted). MODULE is a number, or -1 for code without a file. Which
 * activations are certainly new is found as morphd finds it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/source/last_stacks.h"
#include "libprof/context/context_tree.h"
#include "libprof/elf/elf.h"
#include "libprof/store/contexts/store_contexts.h"
#include "tests/support/rows_compare.h"
#include "tests/support/tree_sizes.h"

#define MAX_MODULES 512
#define MAX_FRAMES  100000
#define WHEN_S	    1700000000

struct module {
	struct mp_elf *elf;
	struct mp_rows rows;
	void *bytes;
	uint64_t *vaddrs; /* of its samples */
	size_t nr, max;
};

struct making {
	struct module modules[MAX_MODULES];
	size_t nr_modules;
	struct mp_context_tree *trees; /* the last one is being made */
	size_t nr_trees;
	struct md_last_stacks *last;
	uint64_t nr_samples, nr_elsewhere, flush;
	bool contexts_only;
	struct mp_context_step steps[MAX_FRAMES + 1];
	uint64_t slots[MAX_FRAMES], ips[MAX_FRAMES];
};

static int die(const char *what)
{
	fprintf(stderr, "contexts-store: %s\n", what);
	return 1;
}

static int add_module(struct making *m, const char *path)
{
	struct module *module = &m->modules[m->nr_modules];
	struct mp_err err = {0};
	size_t size;

	if (m->nr_modules++ == MAX_MODULES)
		return die("too many modules");
	if (mp_elf_open(path, MP_ELF_FDES, &module->elf, &err))
		return die(err.msg);
	if (rows_of_elf(module->elf, &module->bytes, &size, &module->rows, NULL))
		module->rows.nr_rows = 0;
	return 0;
}

static struct mp_context_key key_of(const struct making *m, long module, uint64_t vaddr,
				    enum mp_context_kind kind)
{
	if (module < 0 || (size_t)module >= m->nr_modules)
		return (struct mp_context_key){0, MP_CONTEXT_UNMAPPED, kind};
	return (struct mp_context_key){mp_context_module_of(&m->modules[module].elf->id), vaddr,
				       kind};
}

static int add_ip(struct making *m, long index, uint64_t vaddr)
{
	struct module *module;

	if (index < 0 || (size_t)index >= m->nr_modules || m->contexts_only) {
		m->nr_elsewhere++;
		return 0;
	}
	module = &m->modules[index];
	if (module->nr == module->max) {
		module->max = 2 * module->max + 1024;
		module->vaddrs = reallocarray(module->vaddrs, module->max, sizeof(uint64_t));
		if (!module->vaddrs)
			return die("out of memory");
	}
	module->vaddrs[module->nr++] = vaddr;
	return 0;
}

/* As daemon/context/contexts.c does it. */
static uint64_t function_start(const struct making *m, long index, uint64_t vaddr)
{
	const struct mp_rows *rows = &m->modules[index].rows;
	uint64_t start;

	if (!rows->nr_rows)
		return vaddr;
	if (mp_rows_find(rows, vaddr)->cfa == MP_ROW_PLT)
		return vaddr & ~UINT64_C(15);
	return mp_rows_entry(rows, vaddr, &start) ? start : vaddr;
}

static int add_to_tree(struct making *m, const struct mp_context_step *steps, size_t nr)
{
	struct mp_context_tree *bigger;

	if (!m->nr_trees || (m->flush && m->nr_samples % m->flush == 0)) {
		bigger = reallocarray(m->trees, m->nr_trees + 1, sizeof(*bigger));
		if (!bigger || mp_context_tree_init(&bigger[m->nr_trees]))
			return die("out of memory");
		m->trees = bigger;
		m->nr_trees++;
	}
	m->nr_samples++;
	return mp_context_add(&m->trees[m->nr_trees - 1], steps, nr, 1, 100000)
		       ? die("a stack cannot be added")
		       : 0;
}

static int add_sample(struct making *m, char *line)
{
	char *at, kind;
	uint32_t tid = (uint32_t)strtoul(line, &at, 10);
	long module = strtol(at, &at, 10);
	uint64_t vaddr = strtoull(at, &at, 16);
	size_t nr = 0, nr_old, nr_new = 0, from = MAX_FRAMES;
	struct md_stack stack = {m->slots, m->ips, 0, true};

	m->steps[from].key = key_of(m, module, module >= 0 ? function_start(m, module, vaddr) : 0,
				    MP_CONTEXT_FUNCTION);
	for (; sscanf(at, " %c:", &kind) == 1 && (kind == 'c' || kind == 'a'); nr++) {
		long caller = strtol(strchr(at, ':') + 1, &at, 16);
		uint64_t ip = strtoull(at + 1, &at, 16);

		if (!from)
			return die("a stack has too many frames");
		m->slots[nr] = strtoull(at + 1, &at, 16);
		m->ips[nr] = ((uint64_t)(caller + 1) << 48) ^ ip;
		m->steps[--from].key =
			key_of(m, caller, ip, kind == 'c' ? MP_CONTEXT_CALL : MP_CONTEXT_AT);
	}
	stack.nr = nr;
	if (md_last_stacks_compare(m->last, tid, &stack, &nr_old) && nr_old < nr)
		nr_new = nr - nr_old;
	m->steps[MAX_FRAMES].is_new = nr_new;
	for (size_t i = 0; i < nr; i++)
		m->steps[MAX_FRAMES - 1 - i].is_new = i + 1 < nr_new;
	return add_to_tree(m, m->steps + from, nr + 1) ? 1 : add_ip(m, module, vaddr);
}

static int compare_vaddrs(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int store_module(struct mp_store *store, const struct module *module, int64_t *key,
			struct mp_err *err)
{
	struct mp_ip_count *counts = calloc(module->nr + 1, sizeof(*counts));
	size_t nr = 0;
	int r = counts ? 0 : -ENOMEM;

	if (module->nr)
		qsort(module->vaddrs, module->nr, sizeof(uint64_t), compare_vaddrs);
	for (size_t i = 0; !r && i < module->nr; i++) {
		if (!nr || counts[nr - 1].vaddr != module->vaddrs[i])
			counts[nr++].vaddr = module->vaddrs[i];
		counts[nr - 1].count++;
	}
	if (!r)
		r = mp_store_put_module(store, &module->elf->id, MP_MODULE_FILE, module->elf->path,
					mp_elf_text_size(module->elf), WHEN_S, key, err);
	if (!r && nr)
		r = mp_store_add_ip_counts(store, *key, WHEN_S, counts, nr, err);
	free(counts);
	return r;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Adds the trees. Each but the first one begins a transaction of its own; the last one stays open. */
static int store_trees(const struct making *m, struct mp_store *store, int64_t program,
		       struct mp_err *err)
{
	double began = now_ms(), last = began;

	for (size_t i = 0; i < m->nr_trees; i++) {
		last = now_ms();
		if (i && (mp_store_commit(store, err) || mp_store_begin(store, err)))
			return -1;
		if (mp_store_add_contexts(store, MP_CONTEXTS, program, WHEN_S, &m->trees[i], err))
			return -1;
	}
	if (m->flush)
		printf("%zu flushes: %.2f ms each, the last one %.2f ms, %.2f us a sample\n",
		       m->nr_trees, (now_ms() - began) / (double)m->nr_trees, now_ms() - last,
		       1e3 * (now_ms() - began) / (double)m->nr_samples);
	return 0;
}

static int store_all(struct making *m, const char *path)
{
	struct mp_session session = {
		.start_s = WHEN_S, .last_s = WHEN_S, .collector = "exact", .event = "instructions"};
	struct mp_ledger ledger = {.contexts = m->nr_samples};
	struct mp_store *store;
	struct mp_err err = {0};
	int64_t program = 0, key;

	ledger.emitted = m->nr_samples;
	ledger.unattributed[MP_UNATTR_ANONYMOUS] = m->nr_elsewhere;
	ledger.attributed = m->nr_samples - m->nr_elsewhere;
	if (mp_store_open(path, MP_STORE_WRITE, &store, &err))
		return die(err.msg);
	if (mp_store_begin(store, &err) || mp_store_start_session(store, &session, &err))
		return die(err.msg);
	for (size_t i = 0; i < m->nr_modules; i++) {
		if (store_module(store, &m->modules[i], &key, &err))
			return die(err.msg);
		program = i ? program : key;
	}
	if (store_trees(m, store, program, &err) ||
	    mp_store_add_ledger(store, session.key, WHEN_S, &ledger, &err) ||
	    mp_store_commit(store, &err))
		return die(err.msg);
	mp_store_close(store);
	return 0;
}

int main(int argc, char **argv)
{
	static struct making m;
	char *line = NULL;
	size_t size = 0;
	int r = 0;

	if (argc > 2 && !strcmp(argv[1], "--sizes")) {
		for (int i = 2; i < argc; i++)
			tree_sizes_print(argv[i]);
		return 0;
	}
	m.contexts_only = argc == 3 && !strcmp(argv[1], "--contexts");
	m.flush = argc == 3 && !strncmp(argv[1], "--flush=", 8) ? strtoul(argv[1] + 8, NULL, 10)
								: 0;
	if (argc != 2 + (m.contexts_only || m.flush))
		return fputs("usage: contexts-store [--contexts | --flush=SAMPLES] DB <LINES\n",
			     stderr),
		       2;
	m.last = md_last_stacks_new();
	if (!m.last)
		return die("out of memory");
	while (!r && getline(&line, &size, stdin) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "module ", 7))
			r = add_module(&m, line + 7);
		else if (!strncmp(line, "sample ", 7))
			r = add_sample(&m, line + 7);
		else
			r = die("a line is neither a module nor a sample");
	}
	if (!r)
		r = store_all(&m, argv[argc - 1]);
	free(line);
	for (size_t i = 0; i < m.nr_modules; i++) {
		free(m.modules[i].vaddrs);
		free(m.modules[i].bytes);
		mp_elf_close(m.modules[i].elf);
	}
	for (size_t i = 0; i < m.nr_trees; i++)
		mp_context_tree_fini(&m.trees[i]);
	free(m.trees);
	md_last_stacks_free(m.last);
	return r;
}
