// SPDX-License-Identifier: Apache-2.0
/* test_cfg_cut - a finished CFG whose blocks are cut further is as if it had been built so. */
#include "libprof/cfg/cfg.h"

#include "tests/support/compile.h"
#include "tests/unit/suite.h"

static const char *const programs[] = {"tests/data/control.c", "tests/data/switches.c",
				       "tests/data/cold.c"};
#define NR_PROGRAMS (sizeof(programs) / sizeof(programs[0]))

struct file {
	char path[256];
	struct mp_elf *elf;
	struct mp_cfg *cut, *built; /* cut afterwards; built with these cuts */
	uint32_t *first;	    /* of mp_cfg_cut() */
	uint32_t nr_old;
};

/* Every third instruction inside a block. */
static uint64_t *choose_cuts(const struct mp_cfg *cfg, uint32_t *nr)
{
	uint64_t *cuts = calloc(cfg->elf->size, sizeof(*cuts));

	ck_assert_ptr_nonnull(cuts);
	*nr = 0;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
		struct mp_insn insn;
		uint32_t n = 0;

		for (uint32_t off = 0; off < block->size; off += insn.len) {
			ck_assert_int_eq(mp_insn_decode(bytes + off, block->size - off,
							block->vaddr + off, &insn),
					 0);
			if (off && n++ % 3 == 0)
				cuts[(*nr)++] = block->vaddr + off;
		}
	}
	return cuts;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Functions without a problem, which alone have blocks, so that all bytes decode. */
static bool wanted(void *ctx, const struct mp_func *func)
{
	(void)ctx;
	return func->problem == MP_PROBLEM_NONE;
}

static struct file *build(const char *program)
{
	struct file *f = calloc(1, sizeof(*f));
	struct mp_cfg_options options = {.want = wanted};
	uint32_t nr;
	AUTO_FREE uint64_t *cuts = NULL;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(compile_run("gcc", "-O2 -Wl,--emit-relocs", program, f->path), 0);
	ck_assert_int_eq(mp_elf_open(f->path, MP_ELF_ALL, &f->elf, &err), 0);
	ck_assert_int_eq(mp_cfg_build(f->elf, &options, &f->cut, &err), 0);
	cuts = choose_cuts(f->cut, &nr);
	ck_assert_uint_gt(nr, 10);
	qsort(cuts, nr, sizeof(*cuts), by_address);
	options.cuts = cuts;
	options.nr_cuts = nr;
	ck_assert_int_eq(mp_cfg_build(f->elf, &options, &f->built, &err), 0);
	f->nr_old = f->cut->nr_blocks;
	ck_assert_int_eq(mp_cfg_cut(f->cut, cuts, nr, &f->first, &err), 0);
	ck_assert_uint_eq(f->cut->nr_blocks, f->nr_old + nr);
	ck_assert_uint_eq(f->first[f->nr_old], f->cut->nr_blocks);
	return f;
}

static void done(struct file *f)
{
	unlink(f->path);
	free(f->first);
	mp_cfg_free(f->cut);
	mp_cfg_free(f->built);
	mp_elf_close(f->elf);
	free(f);
}

/* Is there an edge of this kind from @block to @to? */
static bool has_edge(const struct mp_cfg *cfg, uint32_t block, uint32_t to, uint32_t kind)
{
	const struct mp_block *b = &cfg->blocks[block];

	for (uint32_t e = b->first_edge; e < b->first_edge + b->nr_edges; e++)
		if (cfg->edges[e].from == block && cfg->edges[e].to == to &&
		    cfg->edges[e].kind == kind)
			return true;
	return false;
}

TEST_EACH(cfg_cut_gives_the_blocks_of_a_cfg_built_with_the_cuts, NR_PROGRAMS)
{
	struct file *f = build(programs[_i]);
	uint32_t nr_cut = 0;

	ck_assert_uint_eq(f->cut->nr_blocks, f->built->nr_blocks);
	ck_assert_uint_eq(f->cut->nr_edges, f->built->nr_edges);
	for (uint32_t b = 0; b < f->cut->nr_blocks; b++) {
		const struct mp_block *x = &f->cut->blocks[b], *y = &f->built->blocks[b];

		ck_assert_uint_eq(x->vaddr, y->vaddr);
		ck_assert_uint_eq(x->size, y->size);
		ck_assert_uint_eq(x->nr_insns, y->nr_insns);
		ck_assert_uint_eq(x->func, y->func);
		ck_assert_uint_eq(x->term, y->term);
		ck_assert_uint_eq(x->term_len, y->term_len);
		ck_assert_uint_eq(mp_block_target(x), mp_block_target(y));
		ck_assert_uint_eq(x->nr_edges, y->nr_edges);
		for (uint32_t e = x->first_edge; e < x->first_edge + x->nr_edges; e++)
			ck_assert(
				has_edge(f->built, b, f->cut->edges[e].to, f->cut->edges[e].kind));
		nr_cut += (x->flags & MP_BLOCK_CUT) != 0;
	}
	ck_assert_uint_eq(nr_cut, f->cut->nr_blocks - f->nr_old);
	done(f);
}

TEST_EACH(cfg_cut_leads_all_other_indexes_to_the_new_blocks, NR_PROGRAMS)
{
	struct file *f = build(programs[_i]);
	const struct mp_cfg *x = f->cut, *y = f->built;

	for (uint32_t i = 0; i < x->nr_funcs; i++) {
		ck_assert_uint_eq(x->funcs[i].nr_blocks, y->funcs[i].nr_blocks);
		if (x->funcs[i].nr_blocks)
			ck_assert_uint_eq(x->funcs[i].first_block, y->funcs[i].first_block);
	}
	ck_assert_uint_eq(x->nr_calls, y->nr_calls);
	for (uint32_t i = 0; i < x->nr_calls; i++) {
		ck_assert_uint_eq(x->calls[i].offset, y->calls[i].offset);
		ck_assert_uint_eq(mp_call_insn(x, &x->calls[i]), mp_call_insn(y, &y->calls[i]));
		ck_assert_uint_eq(mp_call_target(x, &x->calls[i]), mp_call_target(y, &y->calls[i]));
		ck_assert_uint_eq(x->calls[i].block, y->calls[i].block);
	}
	ck_assert_uint_eq(x->nr_tables, y->nr_tables);
	for (uint32_t i = 0; i < x->nr_tables; i++)
		ck_assert_uint_eq(x->tables[i].block, y->tables[i].block);
	for (uint32_t b = 0; b < x->nr_blocks; b++)
		for (uint32_t k = 0; k < x->blocks[b].size; k++) {
			uint64_t vaddr = x->blocks[b].vaddr + k;

			ck_assert_uint_eq(mp_cfg_block_at(x, vaddr), b);
			ck_assert_uint_eq(mp_cfg_block_starting(x, vaddr), k ? MP_NONE : b);
		}
	done(f);
}

/* A view has the blocks and calls that mp_cfg_cut() gives; what it was made of keeps its own. */
TEST_EACH(cfg_view_leaves_its_cfg_alone, NR_PROGRAMS)
{
	struct file *f = build(programs[_i]);
	struct mp_cfg_view view;
	struct mp_cfg *whole;
	uint64_t *cuts;
	uint32_t nr;

	ck_assert_int_eq(
		mp_cfg_build(f->elf, &(struct mp_cfg_options){.want = wanted}, &whole, &err), 0);
	cuts = choose_cuts(whole, &nr);
	qsort(cuts, nr, sizeof(*cuts), by_address);
	ck_assert_int_eq(mp_cfg_view_cut(whole, cuts, nr, &view, &err), 0);
	ck_assert_uint_eq(view.cfg.nr_blocks, f->cut->nr_blocks);
	ck_assert_mem_eq(view.cfg.blocks, f->cut->blocks,
			 view.cfg.nr_blocks * sizeof(*view.cfg.blocks));
	ck_assert_uint_eq(view.cfg.nr_edges, f->cut->nr_edges);
	ck_assert_mem_eq(view.cfg.edges, f->cut->edges,
			 view.cfg.nr_edges * sizeof(*view.cfg.edges));
	ck_assert_mem_eq(view.cfg.calls, f->cut->calls,
			 view.cfg.nr_calls * sizeof(*view.cfg.calls));
	ck_assert_mem_eq(view.first, f->first, (f->nr_old + 1) * sizeof(*view.first));
	ck_assert_uint_eq(whole->nr_blocks, f->nr_old);
	for (uint32_t b = 0; b < whole->nr_blocks; b++)
		ck_assert_uint_eq(mp_cfg_block_starting(whole, whole->blocks[b].vaddr), b);
	mp_cfg_view_fini(&view);
	mp_cfg_free(whole);
	free(cuts);
	done(f);
}
