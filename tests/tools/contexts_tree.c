// SPDX-License-Identifier: Apache-2.0
/*
 * contexts_tree - makes morphd's calling context tree of a run whose exact tree is known.
 *
 *  contexts_tree [--ages] [--perf=BYTES] [--depth=FRAMES] [--every=N [--from=K]] [--store=BYTES] DIR
 *
 * Reads what `scripts/bench/contexts run --singlestep --stack=BYTES` left in DIR. Each sample is
 * walked from its registers and its copy of the stack, compared with the thread's last stack, and
 * given to morphd's attribution as the records SAMPLES and STACK. A sample stands for 1 us.
 * --perf: the walk sees at most BYTES of the stack, and nothing below rsp, as with perf.
 * --depth: most callers of a walk; 127, as in the kernel module. --every: one sample in N of a
 * thread, from its sample K on (0: the first). --store: the trees are added up as by flushes of 1,000 samples a
 * second every 10 s, or earlier where morphd flushes earlier, and folded to BYTES, as in the store.
 * Prints one item in a line:
 *  sample LINE THREAD COUNT CALLERS AGED OLD STOP
 *  node NUMBER PARENT KIND OBJECT ADDRESS SELF TOTAL NEW	OBJECT: as in DIR/contexts; -: none
 *  tree SAMPLES
 * and with --ages, whose nodes are those of a tree without a limit. Of a sample's nodes, OLD outermost ones
 * look old; TAKEN are taken as old without the exact number of calls of each site, COUNTED with it:
 *  age LINE NODES AGED COMPLETE OLD TAKEN COUNTED NODE...
 *  entries NODE TOTAL NEW LEAST ESTIMATE MOST
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "daemon/attribute/attribute.h"
#include "daemon/source/last_stacks.h"
#include "libprof/context/context_age.h"
#include "libprof/context/context_codec.h"
#include "libprof/store/contexts/store_contexts.h"
#include "libprof/unwind/walk.h"
#include "tests/support/exact_stacks.h"

#define TGID	    0x7ffffff0 /* no process */
#define PERIOD_NS   1000
#define DEPTH_MAX   8000
#define THREADS_MAX 1024
#define INTERVAL    10000 /* samples in a flush's interval */
#define PAGE	    UINT64_C(4096)

struct run {
	struct exact_stacks *stacks;
	const struct exact_object *objects;
	size_t nr_objects;
	uint32_t *modules; /* index in modcache by object */
	struct md_attribute at;
	struct md_last_stacks *last;
	struct md_buf buf;
	size_t perf, store, nr_unflushed;
	struct mp_context_tree stored;
	uint32_t depth, every, from, seen[THREADS_MAX];
	struct exact_sample sample;
	uint64_t ips[DEPTH_MAX], slots[DEPTH_MAX];
	/* All samples again, in a tree without a limit, for --ages. */
	bool ages;
	struct mp_context_tree whole;
	struct taken *samples;
	size_t nr_samples;
	struct calls *calls;
	size_t nr_calls;
};

/* A sample in the whole tree. */
struct taken {
	uint64_t line;
	uint32_t *path; /* nodes from the outermost to the function */
	size_t nr, nr_old;
	bool is_aged, is_complete;
};

/* Exact number of calls that return to an address. */
struct calls {
	uint64_t module, vaddr, nr;
};

static const uint8_t dwarf_number[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

static void need(bool made)
{
	if (!made) {
		fputs("contexts-tree: no memory\n", stderr);
		exit(1);
	}
}

/* Gives all records in the buffer to morphd's attribution. */
static void feed(struct run *r)
{
	struct morph_record *record;
	size_t pos = 0;

	while (!md_record_next(r->buf.data, r->buf.size, &pos, &record))
		need(!md_attribute_record(&r->at, record));
	r->buf.size = 0;
}

/* ---- the program's address space ------------------------------------------------------------ */

static void map_segment(struct run *r, size_t object, const Elf64_Phdr *p, bool is_program)
{
	const struct exact_object *o = &r->objects[object];
	struct md_file *file = NULL;
	struct morph_mmap *mmap;
	struct stat st;

	if (stat(o->path, &st))
		return;
	mmap = md_record_add_mmap(&r->buf, 1, TGID, 1, o->path);
	need(mmap);
	mmap->start = o->bias + (p->p_vaddr & ~(PAGE - 1));
	mmap->len = p->p_filesz + (p->p_vaddr & (PAGE - 1));
	mmap->off = p->p_offset & ~(PAGE - 1);
	mmap->dev_major = major(st.st_dev);
	mmap->dev_minor = minor(st.st_dev);
	mmap->ino = st.st_ino;
	mmap->task.flags = is_program ? MORPH_MMAP_PROGRAM : 0;
	mmap->task.exec_id = 1;
	need(!md_modcache_resolve(r->at.modcache, mmap, 0, &file));
	mmap->module = file->number;
	r->modules[object] = file->module;
	feed(r);
}

static void map_objects(struct run *r)
{
	struct morph_exec *exec;
	bool is_program = true;

	exec = md_record_add_task(&r->buf, MORPH_REC_EXEC, sizeof(*exec), 1, TGID, 1);
	need(exec);
	exec->nr_threads = 1;
	exec->task.exec_id = 1;
	feed(r);
	for (size_t i = 0; i < r->nr_objects; i++) {
		const struct mp_elf *elf = r->objects[i].elf;

		for (uint32_t k = 0; elf && k < elf->nr_phdrs; k++)
			if (elf->phdrs[k].p_type == PT_LOAD && elf->phdrs[k].p_flags & PF_X)
				map_segment(r, i, &elf->phdrs[k], is_program);
		is_program = is_program && !elf;
	}
}

/* ---- samples -------------------------------------------------------------------------------- */

static enum mp_walk_code find(void *arg, uint64_t ip, const struct mp_rows **rows, uint64_t *vaddr)
{
	struct run *r = arg;
	const struct exact_map *map = exact_stacks_map(r->stacks, ip);
	const struct md_module *module;

	if (!map)
		return MP_WALK_NOTHING;
	module = md_modcache_module(r->at.modcache, r->modules[map->object]);
	if (!module || !module->rows.nr_rows)
		return MP_WALK_BARE;
	*vaddr = ip - r->objects[map->object].bias;
	if (!mp_elf_is_code(r->objects[map->object].elf, *vaddr))
		return MP_WALK_NOTHING;
	*rows = &module->rows;
	return MP_WALK_ROWS;
}

static bool read_word(void *arg, uint64_t address, uint64_t *word)
{
	struct run *r = arg;

	if (r->perf && (address < r->sample.regs[7] || address - r->sample.regs[7] > r->perf - 8))
		return false;
	return exact_sample_word(&r->sample, address, word);
}

/* Adds the path that morphd took to the tree without a limit. */
static void add_whole(struct run *r, bool is_aged, bool is_complete)
{
	size_t nr, i;
	const struct mp_context_step *from = md_contexts_last_path(r->at.contexts, &nr);
	struct mp_context_step *steps = calloc(nr, sizeof(*steps));
	struct taken *sample;
	uint32_t node = 0;

	r->samples = reallocarray(r->samples, r->nr_samples + 1, sizeof(*r->samples));
	need(steps && r->samples);
	memcpy(steps, from, nr * sizeof(*steps));
	need(!mp_context_add(&r->whole, steps, nr, 1, PERIOD_NS));
	sample = &r->samples[r->nr_samples++];
	*sample = (struct taken){.line = r->sample.number,
				 .path = calloc(nr, sizeof(*sample->path)),
				 .nr = nr,
				 .is_aged = is_aged,
				 .is_complete = is_complete};
	need(sample->path);
	for (i = 0; i < nr; i++) {
		need(!mp_context_child(&r->whole, node, &steps[i].key, &node));
		sample->path[i] = node;
	}
	while (sample->nr_old < nr && !steps[sample->nr_old].is_new)
		sample->nr_old++;
	free(steps);
}

/* Adds the trees to what the store has, as a flush does, folds that to the store's bytes, and reads it. */
static void flush(struct run *r)
{
	struct mp_context_tree tree;
	uint32_t program;
	uint8_t *bytes;
	size_t size;

	for (size_t t = 0; t < md_contexts_nr_programs(r->at.contexts); t++) {
		need(!md_contexts_tree(r->at.contexts, t, r->at.modcache, &program, NULL, &tree));
		need(!mp_context_add_tree(&r->stored, 0, &tree, NULL, NULL));
		mp_context_tree_fini(&tree);
	}
	md_contexts_clear(r->at.contexts);
	need(!mp_context_pack_within(&r->stored, r->store, MP_CONTEXTS_NODES_MAX, &bytes, &size));
	mp_context_tree_fini(&r->stored);
	need(!mp_context_decode(bytes, size, &r->stored, NULL));
	free(bytes);
	r->nr_unflushed = 0;
}

static void flush_if_due(struct run *r)
{
	if (++r->nr_unflushed >= INTERVAL || (md_contexts_is_nearly_full(r->at.contexts) &&
					      r->nr_unflushed >= INTERVAL / MD_CONTEXTS_FLUSHES))
		flush(r);
}

static void add_sample(struct run *r)
{
	const struct mp_walk_ops ops = {
		.find = find, .read = read_word, .arg = r, .slots = r->slots};
	const struct exact_sample *s = &r->sample;
	struct mp_walk_start start = {.ip = s->pc};
	struct mp_walk_result result;
	struct morph_samples *samples;
	struct morph_stack *stack;
	struct md_stack compared = {.slots = r->slots, .ips = r->ips};
	size_t nr_old = 0;
	bool is_aged;

	for (int i = 0; i < 16; i++)
		start.regs[i] = s->regs[dwarf_number[i]];
	mp_walk(&ops, &start, r->ips, r->depth, &result);
	compared.nr = result.nr;
	compared.is_complete = result.stop == MP_WALK_BOTTOM;
	is_aged = md_last_stacks_compare(r->last, s->thread, &compared, &nr_old);
	samples = md_record_add_task(&r->buf, MORPH_REC_SAMPLES, sizeof(*samples) + 8, 2, TGID,
				     s->thread);
	need(samples);
	samples->task.exec_id = 1;
	samples->ips[0] = s->pc;
	stack = md_record_add_task(&r->buf, MORPH_REC_STACK, sizeof(*stack) + result.nr * 8, 2,
				   TGID, s->thread);
	need(stack);
	stack->task.exec_id = 1;
	stack->task.flags = (uint32_t)result.stop;
	if (is_aged)
		stack->task.flags |= MORPH_STACK_AGED | (uint32_t)nr_old << MORPH_STACK_OLD_SHIFT;
	memcpy(stack->ips, r->ips, result.nr * 8);
	feed(r);
	if (r->ages)
		add_whole(r, is_aged, result.stop == MP_WALK_BOTTOM);
	if (r->store)
		flush_if_due(r);
	printf("sample %" PRIu64 " %" PRIu32 " %" PRIu64 " %zu %d %zu %s\n", s->number, s->thread,
	       s->count, result.nr, is_aged, nr_old, mp_walk_stop_name(result.stop));
}

/* ---- the tree ------------------------------------------------------------------------------- */

static void print_object(const struct run *r, uint64_t module)
{
	for (size_t i = 0; module && i < r->nr_objects; i++) {
		const struct md_module *m = md_modcache_module(r->at.modcache, r->modules[i]);

		if (m && mp_context_module_of(&m->id) == module) {
			printf("%zu", i);
			return;
		}
	}
	putchar('-');
}

static void print_tree(const struct run *r, const struct mp_context_tree *tree)
{
	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		const struct mp_context_node *n = &tree->nodes[i];

		printf("node %" PRIu32 " %" PRIu32 " %d ", i, n->parent, n->kind);
		print_object(r, tree->modules[n->module]);
		printf(" %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", n->vaddr, n->self,
		       n->total, n->nr_new);
	}
	printf("tree %" PRIu64 "\n", tree->nodes[0].total);
}

static int print_trees(struct run *r)
{
	struct mp_context_tree tree;
	uint32_t program;

	if (r->store) {
		flush(r);
		print_tree(r, &r->stored);
		return 0;
	}
	for (size_t t = 0; t < md_contexts_nr_programs(r->at.contexts); t++) {
		if (md_contexts_tree(r->at.contexts, t, r->at.modcache, &program, NULL, &tree))
			return 1;
		print_tree(r, &tree);
		mp_context_tree_fini(&tree);
	}
	return 0;
}

/* ---- ages ----------------------------------------------------------------------------------- */

static uint64_t function_of(void *arg, const struct mp_context_key *key)
{
	const struct run *r = arg;
	const struct md_module *m = md_modcache_module(r->at.modcache, (uint32_t)key->module);
	uint64_t start;

	return m && m->rows.nr_rows && mp_rows_entry(&m->rows, key->vaddr - 1, &start) ? start : 0;
}

static int compare_calls(const void *a, const void *b)
{
	const struct calls *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static double calls_of(void *arg, const struct mp_context_key *key)
{
	const struct run *r = arg;
	struct calls wanted = {key->module, key->vaddr, 0}, *found;

	found = bsearch(&wanted, r->calls, r->nr_calls, sizeof(wanted), compare_calls);
	return found ? (double)found->nr : 0;
}

/* Reads the exact number of calls of each site. */
static void read_calls(struct run *r, const char *dir)
{
	uint64_t vaddr, size, count;
	char path[4096], *line = NULL;
	size_t room = 0, site, object, *of = NULL, nr_of = 0;
	FILE *in;

	snprintf(path, sizeof(path), "%s/contexts", dir);
	in = fopen(path, "re");
	need(in);
	while (getline(&line, &room, in) > 0) {
		if (sscanf(line, "site %zu %zu %" SCNx64 " %" SCNu64, &site, &object, &vaddr,
			   &size) == 4 &&
		    object < r->nr_objects && site < 1u << 24) {
			if (site >= nr_of) {
				of = reallocarray(of, 2 * (site + 1), sizeof(*of));
				need(of);
				memset(of + nr_of, 0, (2 * (site + 1) - nr_of) * sizeof(*of));
				nr_of = 2 * (site + 1);
			}
			r->calls = reallocarray(r->calls, r->nr_calls + 1, sizeof(*r->calls));
			need(r->calls);
			r->calls[r->nr_calls++] =
				(struct calls){r->modules[object], vaddr + size, 0};
			of[site] = r->nr_calls;
		} else if (sscanf(line, "edge %zu %*u %" SCNu64, &site, &count) == 2 &&
			   site < nr_of && of[site]) {
			r->calls[of[site] - 1].nr += count;
		}
	}
	fclose(in);
	free(line);
	free(of);
	qsort(r->calls, r->nr_calls, sizeof(*r->calls), compare_calls);
}

/* For each sample, how many activations are taken as old, without and with exact counts of calls. */
#define LEAST_CHANCE 1e-9

static double log_of(double chance)
{
	return log(fmax(chance, LEAST_CHANCE));
}

/*
 * Of a sample's activations that look old, at the nodes @path[0] to @path[nr - 1], outermost first: how many to
 * take as old. The callers of an old activation are old, too. If the activation number c is the outermost that is new, those before it did not end, it did, and it and
 * all behind it only look the same. The number is the median over all c.
 */
static size_t take_old(const struct mp_context_rate *rates, const uint32_t *path, size_t nr)
{
	double same = 0, lasted = 0, most = 0, sum = 0, cum = 0, chance;
	size_t c;

	/* Twice: first the largest chance and so the scale, then the sum; last the median. */
	for (int turn = 0; turn < 3; turn++) {
		lasted = same = 0;
		for (c = 0; c < nr; c++)
			same += log_of(rates[path[c]].same);
		for (c = 0; c <= nr; c++) {
			chance = lasted + same + (c < nr ? log_of(rates[path[c]].ends) : 0);
			if (!turn)
				most = c ? fmax(most, chance) : chance;
			else if (turn == 1)
				sum += exp(chance - most);
			else if ((cum += exp(chance - most)) > sum / 2)
				return c;
			if (c < nr) {
				lasted += log_of(1 - rates[path[c]].ends);
				same -= log_of(rates[path[c]].same);
			}
		}
	}
	return nr;
}

static void print_ages(struct run *r, const char *dir)
{
	struct mp_context_facts facts = {.function = function_of, .arg = r};
	struct mp_context_rate *rates[2];
	struct mp_context_entries *entries;

	read_calls(r, dir);
	need(!mp_context_rates(&r->whole, &facts, &rates[0]));
	need(!mp_context_entries(&r->whole, rates[0], &entries));
	facts.calls = calls_of;
	need(!mp_context_rates(&r->whole, &facts, &rates[1]));
	for (size_t i = 0; i < r->nr_samples; i++) {
		const struct taken *s = &r->samples[i];

		printf("age %" PRIu64 " %zu %d %d %zu %zu %zu", s->line, s->nr, s->is_aged,
		       s->is_complete, s->nr_old, take_old(rates[0], s->path, s->nr_old),
		       take_old(rates[1], s->path, s->nr_old));
		for (size_t k = 0; k < s->nr; k++)
			printf(" %" PRIu32, s->path[k]);
		printf("\n");
		free(s->path);
	}
	for (uint32_t i = 1; i < r->whole.nr_nodes; i++)
		printf("entries %" PRIu32 " %" PRIu64 " %" PRIu64 " %.2f %.2f %.2f\n", i,
		       r->whole.nodes[i].total, r->whole.nodes[i].nr_new, entries[i].least,
		       entries[i].estimate, entries[i].most);
	free(r->samples);
	free(r->calls);
	free(rates[0]);
	free(rates[1]);
	free(entries);
}

static int make_tree(struct run *r, const char *dir)
{
	int ret = exact_stacks_open(dir, &r->stacks);

	if (ret) {
		fprintf(stderr, "contexts-tree: %s: %s\n", dir, strerror(-ret));
		return 1;
	}
	r->objects = exact_stacks_objects(r->stacks, &r->nr_objects);
	r->modules = calloc(r->nr_objects, sizeof(*r->modules));
	r->last = md_last_stacks_new();
	need(r->modules && r->last && !md_attribute_init(&r->at) &&
	     !mp_context_tree_init(&r->whole) && !mp_context_tree_init(&r->stored));
	md_modcache_want_rows(r->at.modcache);
	md_contexts_set_period(r->at.contexts, PERIOD_NS);
	map_objects(r);
	while (exact_stacks_next(r->stacks, &r->sample))
		if (r->seen[r->sample.thread % THREADS_MAX]++ % r->every == r->from)
			add_sample(r);
	if (r->ages)
		print_ages(r, dir);
	ret = print_trees(r);
	mp_context_tree_fini(&r->whole);
	mp_context_tree_fini(&r->stored);
	md_attribute_fini(&r->at);
	md_last_stacks_free(r->last);
	md_buf_fini(&r->buf);
	free(r->modules);
	exact_stacks_close(r->stacks);
	return ret;
}

int main(int argc, char **argv)
{
	static struct run r = {.depth = 127, .every = 1};
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--ages"))
			r.ages = true;
		else if (sscanf(argv[i], "--perf=%zu", &r.perf) != 1 &&
			 sscanf(argv[i], "--store=%zu", &r.store) != 1 &&
			 sscanf(argv[i], "--depth=%" SCNu32, &r.depth) != 1 &&
			 sscanf(argv[i], "--every=%" SCNu32, &r.every) != 1 &&
			 sscanf(argv[i], "--from=%" SCNu32, &r.from) != 1)
			break;
	}
	if (i + 1 != argc || !r.depth || r.depth > DEPTH_MAX || r.from >= r.every ||
	    (r.perf && r.perf < 8) || (r.store && r.store < 1024)) {
		fputs("usage: contexts-tree [--ages] [--perf=BYTES] [--depth=FRAMES] [--every=N [--from=K]] "
		      "[--store=BYTES] "
		      "DIR\n",
		      stderr);
		return 2;
	}
	return make_tree(&r, argv[i]);
}
