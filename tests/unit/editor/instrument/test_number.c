// SPDX-License-Identifier: Apache-2.0
/*
 * test_number - random walks through the code of this test program and of a shell, simulating
 * the stubs, and the paths that the numbers give afterwards. Registers that are not proved free
 * hold random values.
 */
#include "tests/unit/suite.h"

#include "editor/evidence/eligible.h"
#include "editor/instrument/old_code.h"
#include "editor/instrument/number.h"
#include "editor/layout/plan_all.h"
#include "editor/evidence/free_registers.h"
#include "libprof/note/path_decode.h"

#define WALKS_PER_FUNC 3
#define MAX_STEPS      300

struct numbered {
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct me_eligible eligible;
	uint8_t *movable;
	uint8_t *arrives; /* per block: also reached from old code */
	struct me_free_registers registers;
	struct me_plan plan;
	struct me_instrumentation added;
	struct me_number_report report;
	struct mp_path_table *table;
	uint32_t *first_stub; /* per block: its first stub */
	struct stub {
		uint32_t block;
		struct me_stub what;
	} * stubs;
};

struct walk {
	const struct numbered *n;
	uint64_t state; /* of the random numbers */
	uint64_t regs[MP_NR_REGISTERS];
	uint32_t blocks[MAX_STEPS + 1]; /* [0]: MP_NONE, the outside */
	uint32_t nr;
	uint32_t nr_arrivals; /* in total */
	bool polled;	      /* a poll came before the last block */
	bool owes;	      /* the current path must be reported before it ends */
	uint32_t nr_said;     /* in total */
};

/* Decodes the table as from a file. */
static struct mp_path_table *decode_table(const struct me_instrumentation *added)
{
	struct mp_section sections[2] = {
		{.name = ""},
		{.name = MP_PATH_TABLE_SECTION, .type = 1, .size = added->table_size}};
	struct mp_elf elf = {.data = added->table,
			     .size = added->table_size,
			     .sections = sections,
			     .nr_sections = 2};
	struct mp_path_table *table;

	ck_assert_msg(mp_path_table_read(&elf, &table, &err) == 0, "%s", err.msg);
	return table;
}

static int compare_stubs(const void *a, const void *b)
{
	const struct stub *x = a, *y = b;

	return x->block < y->block ? -1 : x->block > y->block;
}

static void index_stubs(struct numbered *n)
{
	uint32_t stub = 0;

	n->stubs = calloc(n->added.nr_stubs + 1, sizeof(*n->stubs));
	n->first_stub = calloc(n->cfg->nr_blocks + 2, sizeof(*n->first_stub));
	ck_assert(n->stubs && n->first_stub);
	for (uint32_t i = 0; i < n->plan.nr_blocks; i++) {
		if (!n->plan.blocks[i].stub)
			continue;
		n->stubs[stub] = (struct stub){n->plan.blocks[i].block, n->added.stubs[stub]};
		stub++;
	}
	ck_assert_uint_eq(stub, n->added.nr_stubs);
	qsort(n->stubs, stub, sizeof(*n->stubs), compare_stubs);
	for (uint32_t b = 0, s = 0; b <= n->cfg->nr_blocks; b++) {
		while (s < stub && n->stubs[s].block < b)
			s++;
		n->first_stub[b] = s;
	}
	n->first_stub[n->cfg->nr_blocks + 1] = stub;
}

static void number(struct numbered *n, const char *file, bool polls)
{
	struct mp_cfg_options options = {.fine = true};
	struct me_number *numbering;

	*n = (struct numbered){0};
	ck_assert_int_eq(mp_elf_open(file, MP_ELF_ALL, &n->elf, &err), 0);
	ck_assert_int_eq(mp_cfg_build(n->elf, &options, &n->cfg, &err), 0);
	ck_assert_int_eq(me_eligible_functions(n->cfg, 1, &n->eligible, &err), 0);
	n->movable = calloc(n->cfg->nr_funcs + 1, 1);
	n->arrives = calloc(n->cfg->nr_blocks + 1, 1);
	ck_assert(n->movable && n->arrives);
	for (uint32_t f = 0; f < n->cfg->nr_funcs; f++) {
		n->movable[f] = n->eligible.verdict[f] == ME_ELIGIBLE;
		if (n->movable[f])
			me_old_code_find_arrivals(n->cfg, f, n->arrives);
	}
	ck_assert_int_eq(me_number_new(n->cfg, polls, n->movable, NULL, &numbering, &err), 0);
	ck_assert_int_eq(me_free_registers_find(n->cfg, n->movable, &n->registers, &err), 0);
	ck_assert_int_eq(me_plan_all(n->cfg, n->movable, NULL, &n->plan, &err), 0);
	ck_assert_msg(me_number_plan(numbering, NULL, n->movable, &n->plan, &n->added, &n->report,
				     &err) == 0,
		      "%s", err.msg);
	me_number_free(numbering);
	n->table = decode_table(&n->added);
	index_stubs(n);
}

static void done(struct numbered *n)
{
	mp_path_table_free(n->table);
	me_free_registers_fini(&n->registers);
	me_eligible_fini(&n->eligible);
	me_plan_fini(&n->plan);
	me_instrumentation_fini(&n->added);
	free(n->movable);
	free(n->arrives);
	free(n->first_stub);
	free(n->stubs);
	mp_cfg_free(n->cfg);
	mp_elf_close(n->elf);
}

static uint64_t next_random(struct walk *w)
{
	w->state ^= w->state << 13;
	w->state ^= w->state >> 7;
	w->state ^= w->state << 17;
	return w->state;
}

static void run_stub(struct walk *w, const struct me_stub *stub)
{
	if (stub->does == ME_STUB_SETS)
		w->regs[stub->reg] = (uint32_t)stub->value;
	else
		w->regs[stub->reg] = w->regs[stub->reg_from] + (uint64_t)stub->value;
	w->polled |= stub->polls;
}

static void run_stubs(struct walk *w, uint32_t from, uint32_t block, uint8_t arrivals)
{
	const struct numbered *n = w->n;

	for (uint32_t s = n->first_stub[block]; s < n->first_stub[block + 1]; s++)
		if (n->stubs[s].what.arrivals == arrivals &&
		    (arrivals != ME_STUB_EDGE || n->stubs[s].what.from == from))
			run_stub(w, &n->stubs[s].what);
}

/* Simulates a block. If it calls unknown code, the call changes every register that it may. */
static void run_block(struct walk *w, uint32_t block)
{
	const struct mp_block *b = &w->n->cfg->blocks[block];
	const uint8_t *bytes = mp_elf_bytes(w->n->elf, b->vaddr, b->size);
	struct mp_insn insn = {0};
	bool calls = false;

	for (uint32_t off = 0; bytes && off < b->size; off += insn.len) {
		ck_assert_int_eq(mp_insn_decode(bytes + off, b->size - off, 0, &insn), 0);
		calls |= insn.kind == MP_INSN_CALL || insn.kind == MP_INSN_ICALL;
	}
	for (int r = 0; r < MP_NR_REGISTERS; r++)
		if (!(w->n->registers.free[block] >> r & 1) ||
		    (calls && !(ME_CALLEE_SAVED_REGISTERS >> r & 1)))
			w->regs[r] = next_random(w);
}

/* The path that the number gives must be the end of the walk. */
static void check(struct walk *w, struct mp_path *path)
{
	const struct mp_path_table *t = w->n->table;
	uint32_t block = w->blocks[w->nr - 1], at = w->nr - 1;
	uint64_t vaddr = w->n->cfg->blocks[block].vaddr;
	uint32_t b = mp_path_table_block_at(t, vaddr);
	uint8_t reg;

	ck_assert_uint_ne(b, MP_NONE);
	ck_assert_uint_eq(t->blocks[b].vaddr, vaddr);
	reg = t->blocks[b].reg;
	ck_assert_msg(mp_path_decode(t, b, reg == MP_NO_REGISTER ? 0 : w->regs[reg], path) == 0,
		      "%#llx: no path", (unsigned long long)vaddr);
	for (uint32_t k = path->nr_edges; k-- > 0; at--) {
		const struct mp_path_edge *edge = &t->edges[path->edges[k]];
		uint32_t from = w->blocks[at - 1];

		ck_assert_uint_eq(t->blocks[edge->to].vaddr,
				  w->n->cfg->blocks[w->blocks[at]].vaddr);
		if (edge->from == MP_NONE)
			ck_assert_uint_eq(from, MP_NONE);
		else
			ck_assert_uint_eq(t->blocks[edge->from].vaddr,
					  w->n->cfg->blocks[from].vaddr);
	}
}

/* Takes a step. Return: false: there is no successor. */
static bool step(struct walk *w)
{
	const struct mp_cfg *cfg = w->n->cfg;
	uint32_t from = w->blocks[w->nr - 1], to;
	const struct mp_block *b = &cfg->blocks[from];

	if (!b->nr_edges)
		return false;
	to = cfg->edges[b->first_edge + next_random(w) % b->nr_edges].to;
	if (me_block_stays(&cfg->blocks[to]))
		return false;
	w->polled = false;
	if (w->n->arrives[to] && next_random(w) % 2) {
		w->owes = false;
		/* The block before ran in old code, so earlier blocks are unknown. */
		for (int r = 0; r < MP_NR_REGISTERS; r++)
			w->regs[r] = next_random(w);
		run_stubs(w, MP_NONE, to, ME_STUB_OUTSIDE);
		w->nr_arrivals++;
	} else {
		run_stubs(w, from, to, ME_STUB_EDGE);
	}
	run_stubs(w, from, to, ME_STUB_ALL);
	w->blocks[w->nr++] = to;
	return true;
}

/*
 * A path that the table says is reported must have been reported when it ends. @last: the walk
 * ends here.
 */
static void check_told(struct walk *w, const struct mp_path *path, bool last)
{
	const struct mp_path_table *t = w->n->table;
	const struct mp_path_block *block = &t->blocks[path->block];

	if (!path->nr_edges || (path->nr_edges == 1 && !t->edges[path->edges[0]].carries))
		ck_assert_msg(!w->owes, "%#llx: the path before it was not told",
			      (unsigned long long)block->vaddr);
	w->nr_said += w->polled && w->owes;
	w->owes = !w->polled && block->fully_reported;
	ck_assert(!last || !w->owes);
}

static uint64_t walk(struct walk *w, uint32_t entry, struct mp_path *path)
{
	uint64_t edges = 0;

	w->blocks[0] = MP_NONE;
	w->blocks[1] = entry;
	w->nr = 2;
	for (int r = 0; r < MP_NR_REGISTERS; r++)
		w->regs[r] = next_random(w);
	w->polled = w->owes = false;
	run_stubs(w, MP_NONE, entry, ME_STUB_OUTSIDE);
	run_stubs(w, MP_NONE, entry, ME_STUB_ALL);
	do {
		check(w, path);
		check_told(w, path, !w->n->cfg->blocks[w->blocks[w->nr - 1]].nr_edges);
		edges += path->nr_edges;
		run_block(w, w->blocks[w->nr - 1]);
	} while (w->nr <= MAX_STEPS && step(w));
	return edges;
}

/* Return: the totals of all walks. */
static struct walk walk_all(const char *file, bool polls)
{
	struct numbered n;
	struct mp_path path = {0};
	struct walk w = {.n = &n, .state = UINT64_C(0x9e3779b97f4a7c15)};
	uint64_t edges = 0;
	uint32_t nr = 0;

	number(&n, file, polls);
	for (uint32_t f = 0; f < n.cfg->nr_funcs; f++) {
		uint32_t entry = mp_cfg_block_starting(n.cfg, n.cfg->funcs[f].vaddr);

		if (!n.movable[f] || entry == MP_NONE)
			continue;
		nr++;
		for (int i = 0; i < WALKS_PER_FUNC; i++)
			edges += walk(&w, entry, &path);
	}
	/* Most of a program is understood, and most of that has paths. */
	ck_assert_uint_gt(nr, n.cfg->nr_funcs / 2);
	ck_assert_uint_gt(edges, 10 * nr);
	ck_assert_uint_gt(n.report.nr_told_apart, n.report.nr_merges / 2);
	mp_path_fini(&path);
	done(&n);
	return w;
}

TEST(numbers_tell_by_which_way_control_came)
{
	ck_assert_uint_eq(walk_all("/proc/self/exe", false).nr_said, 0);
}

TEST(numbers_that_are_told_are_before_the_path_ends)
{
	ck_assert_uint_gt(walk_all("/bin/bash", true).nr_said, 1000);
}

TEST(numbers_start_where_control_comes_out_of_old_code)
{
	ck_assert_uint_gt(walk_all("/bin/bash", false).nr_arrivals, 10);
}
