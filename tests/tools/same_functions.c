// SPDX-License-Identifier: Apache-2.0
/*
 * same_functions - says how much code is there more than once. For scripts/bench/bench-small-rewrites.
 *
 *	same-functions FILE EDGES
 *
 * EDGES: exact counts of FILE (tests/plugin/branches.c, edges=). Two functions are the same if they have
 * the same instructions, their branches lead to the same places in them, and their calls and addresses
 * lead to the same functions (or to such that are the same) and data. Entries of their jump tables lead to
 * the same blocks. Functions with exception tables, and those that are not understood, are left out. A
 * function may be folded into one that is the same if nothing takes its address. Prints lines `NAME COUNT`:
 *  functions, bytes	all
 *  fold-functions, fold-bytes	those that may be folded
 *  run-bytes		bytes of instructions that were executed
 *  fold-run-bytes	such bytes that folding saves: in functions whose twin was executed as well
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/cfg/cfg.h"
#include "tests/support/counted_tool.h"

#define MAX_ROUNDS 20

struct function {
	uint64_t hash[2];
	uint32_t func, same; /* @same: the first function of the same kind */
	bool left_out;
};

struct totals {
	uint64_t functions, bytes, fold_functions, fold_bytes, run_bytes, fold_run_bytes;
};

static void hash_add(uint64_t hash[2], uint64_t word)
{
	hash[0] = (hash[0] ^ word) * 0x9e3779b97f4a7c15;
	hash[0] ^= hash[0] >> 29;
	hash[1] = (hash[1] + word) * 0xd6e8feb86659fd93;
	hash[1] ^= hash[1] >> 32;
}

/* A number for the place to which an instruction of @func leads. Functions that are the same have one number. */
static uint64_t target_word(const struct mp_cfg *cfg, const struct function *functions,
			    uint32_t func, uint64_t target)
{
	const struct mp_func *f = &cfg->funcs[func];
	uint32_t block = mp_cfg_block_starting(cfg, target), callee;

	if (target == f->vaddr)
		return 1;
	if (block != MP_NONE && cfg->blocks[block].func == func)
		return 2 + (uint64_t)(block - f->first_block) * 4;
	callee = mp_cfg_func_at(cfg, target);
	if (callee != MP_NONE && cfg->funcs[callee].vaddr == target)
		return 3 + (uint64_t)functions[callee].same * 4;
	for (uint32_t t = 0; t < cfg->nr_tables && !mp_elf_is_code(cfg->elf, target); t++)
		if (cfg->tables[t].vaddr == target && cfg->tables[t].func == func)
			return 4;
	return target << 3;
}

/* Return: false: the bytes cannot be decoded. */
static bool hash_block(const struct mp_cfg *cfg, const struct function *functions, uint32_t func,
		       const struct mp_block *block, uint64_t hash[2])
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	struct mp_insn insn;

	for (uint32_t off = 0; off < block->size; off += insn.len) {
		if (!bytes ||
		    mp_insn_decode(bytes + off, block->size - off, block->vaddr + off, &insn))
			return false;
		hash_add(hash, insn.len);
		for (uint32_t k = 0; k < insn.len; k++)
			if (k < insn.disp_off || k >= (uint32_t)insn.disp_off + insn.disp_size)
				hash_add(hash, bytes[off + k]);
		if (insn.disp_size)
			hash_add(hash, target_word(cfg, functions, func, insn.target));
	}
	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		hash_add(hash, (uint64_t)(cfg->edges[e].to - cfg->funcs[func].first_block) << 2 |
				       cfg->edges[e].kind);
	return true;
}

static bool has_exceptions(const struct mp_cfg *cfg, const struct mp_func *f)
{
	for (uint32_t r = f->first_range; r < f->first_range + f->nr_ranges; r++)
		if (cfg->ranges[r].fde == MP_NONE || cfg->elf->fdes[cfg->ranges[r].fde].lsda)
			return true;
	return false;
}

static void hash_function(const struct mp_cfg *cfg, const struct function *functions,
			  struct function *out, uint32_t func)
{
	const struct mp_func *f = &cfg->funcs[func];

	out->hash[0] = f->nr_insns;
	out->hash[1] = f->nr_blocks;
	out->func = func;
	out->left_out = f->problem || !f->nr_blocks || has_exceptions(cfg, f) ||
			f->flags & (MP_FUNC_IFUNC | MP_FUNC_LABELS | MP_FUNC_GET_PC);
	for (uint32_t b = f->first_block; !out->left_out && b < f->first_block + f->nr_blocks; b++)
		if (!(cfg->blocks[b].flags & MP_BLOCK_PADDING))
			out->left_out =
				!hash_block(cfg, functions, func, &cfg->blocks[b], out->hash);
	/* Nothing else has this hash. */
	if (out->left_out)
		out->hash[0] = func, out->hash[1] = 0;
}

static int hash_compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	for (int i = 0; i < 2; i++)
		if (x->hash[i] != y->hash[i])
			return x->hash[i] < y->hash[i] ? -1 : 1;
	return (x->func > y->func) - (x->func < y->func);
}

static bool is_same(const struct function *a, const struct function *b)
{
	return a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1] && !a->left_out && !b->left_out;
}

/* Finds functions that are the same. @sorted: afterwards in groups. Return: whether more are. */
static bool find_same(const struct mp_cfg *cfg, struct function *functions, struct function *sorted)
{
	uint32_t nr = cfg->nr_funcs;
	bool changed = false;

	for (uint32_t f = 0; f < nr; f++)
		hash_function(cfg, functions, &sorted[f], f);
	qsort(sorted, nr, sizeof(*sorted), hash_compare);
	for (uint32_t i = 0, first = 0; i < nr; i++) {
		struct function *f = &functions[sorted[i].func];

		if (!is_same(&sorted[first], &sorted[i]))
			first = i;
		changed |= f->same != sorted[first].func;
		f->same = sorted[first].func;
	}
	return changed;
}

static uint64_t run_bytes(const struct mp_cfg *cfg, const struct exact_counts *counts,
			  const struct mp_func *f)
{
	uint64_t nr = 0;

	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		/* All instructions of a block are executed or none, except where a run ends early. */
		if (!(block->flags & MP_BLOCK_PADDING) && exact_counts_at(counts, block->vaddr))
			nr += block->size;
	}
	return nr;
}

/* Adds the functions of one kind: @group, @nr. */
static void add_group(const struct mp_cfg *cfg, const struct exact_counts *counts,
		      const struct function *group, uint32_t nr, struct totals *t)
{
	const unsigned int taken = MP_FUNC_ADDRESS_TAKEN | MP_FUNC_EXPORTED | MP_FUNC_POINTED;
	uint64_t largest = 0, sum = 0, folds_sum = 0;
	uint32_t folds = 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct mp_func *f = &cfg->funcs[group[i].func];
		uint64_t run = run_bytes(cfg, counts, f);

		t->functions++;
		t->bytes += f->size;
		t->run_bytes += run;
		sum += run;
		largest = run > largest ? run : largest;
		if (!(f->flags & taken)) {
			folds++;
			folds_sum += run;
		}
	}
	if (nr < 2)
		return;
	/* One of them stays. */
	folds -= folds == nr;
	t->fold_functions += folds;
	t->fold_bytes += folds * cfg->funcs[group->func].size;
	t->fold_run_bytes += folds_sum < sum - largest ? folds_sum : sum - largest;
}

static int analyse(const struct mp_cfg *cfg, const struct exact_counts *counts, struct mp_err *err)
{
	struct function *functions = calloc((size_t)cfg->nr_funcs + 1, sizeof(*functions));
	struct function *sorted = calloc((size_t)cfg->nr_funcs + 1, sizeof(*sorted));
	struct totals t = {0};

	if (!functions || !sorted) {
		free(functions);
		free(sorted);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		functions[f].same = f;
	for (int round = 0; round < MAX_ROUNDS && find_same(cfg, functions, sorted); round++)
		;
	for (uint32_t i = 0, end; i < cfg->nr_funcs; i = end) {
		for (end = i + 1; end < cfg->nr_funcs && is_same(&sorted[i], &sorted[end]); end++)
			;
		add_group(cfg, counts, &sorted[i], end - i, &t);
	}
	printf("functions %" PRIu64 "\nbytes %" PRIu64 "\nfold-functions %" PRIu64
	       "\nfold-bytes %" PRIu64 "\nrun-bytes %" PRIu64 "\nfold-run-bytes %" PRIu64 "\n",
	       t.functions, t.bytes, t.fold_functions, t.fold_bytes, t.run_bytes, t.fold_run_bytes);
	free(functions);
	free(sorted);
	return 0;
}

static int build_and_analyse(const struct mp_elf *elf, const struct exact_counts *counts,
			     struct mp_err *err)
{
	const struct mp_cfg_options options = {0};
	struct mp_cfg *cfg = NULL;
	int rc = mp_cfg_build(elf, &options, &cfg, err);

	if (!rc)
		rc = analyse(cfg, counts, err);
	mp_cfg_free(cfg);
	return rc;
}

int main(int argc, char **argv)
{
	return counted_tool(argc, argv, "same-functions", MP_ELF_ALL, build_and_analyse);
}
