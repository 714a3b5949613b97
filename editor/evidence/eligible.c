// SPDX-License-Identifier: Apache-2.0
/*
 * eligible - the rules by which files and functions are refused. layout decides what is
 * worth moving, patch where a patch may lie.
 */
#include "editor/evidence/eligible.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "editor/evidence/enclosing.h"
#include "editor/evidence/ranges.h"
#include "editor/unwind/unwind.h"
#include "libprof/base/parallel.h"

static bool dynamic_has_textrel(const struct mp_elf *elf)
{
	const struct mp_section *dynamic = mp_elf_section(elf, ".dynamic");
	const uint8_t *bytes;
	Elf64_Dyn dyn;

	if (!dynamic || dynamic->type != SHT_DYNAMIC)
		return false;
	bytes = mp_elf_bytes(elf, dynamic->vaddr, dynamic->size);
	if (!bytes)
		return false;
	for (uint64_t off = 0; off + sizeof(dyn) <= dynamic->size; off += sizeof(dyn)) {
		memcpy(&dyn, bytes + off, sizeof(dyn));
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == DT_TEXTREL)
			return true;
		if (dyn.d_tag == DT_FLAGS && dyn.d_un.d_val & DF_TEXTREL)
			return true;
	}
	return false;
}

/*
 * Runtimes that find their frames by tables of their own, with distances of return addresses from a
 * function's beginning, and the section by which their programs are known.
 */
static const struct {
	const char *section, *what;
} runtimes[] = {
	{".gopclntab", "a Go program"},
	{".note.go.buildid", "a Go program"},
	{"__managedcode", "a native program of .NET"},
	{".svm_heap", "a native image of GraalVM"},
	{".llvm_stackmaps", "a program with stack maps of LLVM"},
	{".llvm_faultmaps", "a program with fault maps of LLVM"},
};

static int refuse_runtimes(const struct mp_elf *elf, struct mp_err *err)
{
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (mp_elf_section(elf, runtimes[i].section))
			return mp_err_set(err, EPERM,
					  "%s: its runtime keeps code addresses in "
					  "tables of its own",
					  runtimes[i].what);
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (elf->symbols[i].name && !strncmp(elf->symbols[i].name, "_kDart", 6))
			return mp_err_set(err, EPERM,
					  "a Dart program: its runtime keeps code addresses "
					  "in tables of its own");
	return 0;
}

int me_eligible_file(const struct mp_elf *elf, struct mp_err *err)
{
	if (mp_elf_section(elf, MP_MAP_SECTION))
		return mp_err_set(err, EPERM,
				  "already optimised: optimise the original instead; the "
				  "samples were counted for it");
	if (refuse_runtimes(elf, err))
		return -EPERM;
	if (dynamic_has_textrel(elf))
		return mp_err_set(err, EPERM, "has text relocations (DT_TEXTREL)");
	if (elf->nr_fdes == 0)
		return mp_err_set(
			err, EPERM,
			"has no unwind information in .eh_frame%s, which tells where functions "
			"begin and end",
			mp_elf_section(elf, ".debug_frame") || mp_elf_section(elf, ".zdebug_frame")
				? ", only in .debug_frame"
				: "");
	/* Some unwinders find such an FDE, others do not. */
	if (elf->odd_fde)
		return mp_err_set(err, EPERM,
				  "has unwind information, at 0x%" PRIx64
				  ", to which its search table does not lead",
				  elf->odd_fde);
	return me_ranges_file(elf, err);
}

/*
 * Direct branches must be plain: 2 or 5 bytes for jmp, 2 or 6 for jcc. A prefix (bnd,
 * say) makes them longer; a newly encoded branch would lose it.
 */
static bool branch_form_plain(const struct mp_block *block)
{
	switch (block->term) {
	case MP_TERM_COND: return block->term_len == 2 || block->term_len == 6;
	case MP_TERM_JUMP:
	case MP_TERM_TAIL: return block->term_len == 2 || block->term_len == 5;
	default: return true;
	}
}

/*
 * True for an int3 in the middle of code. It stops for a debugger; without one, a
 * handler may continue after it. An int3 that control cannot reach is padding.
 */
static bool stops_for_debugger(const struct mp_cfg *cfg, uint32_t b, uint32_t first)
{
	const struct mp_block *block = &cfg->blocks[b], *before = b > first ? block - 1 : NULL;
	const uint8_t *last = mp_elf_bytes(cfg->elf, block->vaddr + block->size - 1, 1);

	if (block->term != MP_TERM_TRAP || block->term_len != 1 || !last || *last != 0xcc)
		return false;
	return block->size > 1 || mp_cfg_is_target(cfg, block->vaddr) ||
	       (before && (before->term == MP_TERM_COND || before->term == MP_TERM_FALL));
}

/* Return: enum me_refusal, -ENOMEM. */
static int judge(const struct mp_cfg *cfg, uint32_t index, const char **detail)
{
	const struct mp_func *func = &cfg->funcs[index];
	int rc;

	if (func->problem != MP_PROBLEM_NONE) {
		*detail = mp_problem_name(func->problem);
		return ME_REFUSED_PROBLEM;
	}
	if (func->nr_blocks == 0) {
		*detail = "no code";
		return ME_REFUSED_PROBLEM;
	}
	if (func->flags & MP_FUNC_SYSCALL) {
		*detail = "makes system calls itself";
		return ME_REFUSED_SYSCALL;
	}
	if (func->flags & MP_FUNC_GET_PC) {
		*detail = "reads its own address";
		return ME_REFUSED_GET_PC;
	}
	if (func->flags & MP_FUNC_IFUNC) {
		*detail = "ifunc resolver";
		return ME_REFUSED_IFUNC;
	}
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		if (!branch_form_plain(&cfg->blocks[b])) {
			*detail = "branch with an unusual prefix";
			return ME_REFUSED_BRANCH_FORM;
		}
		if (stops_for_debugger(cfg, b, func->first_block)) {
			*detail = "contains a breakpoint (int3)";
			return ME_REFUSED_STOP;
		}
	}
	rc = me_unwind_check(cfg, index, detail);
	return rc == -EPERM ? ME_REFUSED_UNWIND : rc;
}

static void refuse(struct me_eligible *out, uint32_t func, enum me_refusal why, const char *detail)
{
	if (func == MP_NONE || out->verdict[func] != ME_ELIGIBLE)
		return;
	out->verdict[func] = (uint8_t)why;
	out->detail[func] = detail;
}

struct marking {
	const struct mp_cfg *cfg;
	struct me_eligible *out;
};

static void refuse_place(void *ctx, uint64_t vaddr)
{
	const struct marking *m = ctx;

	refuse(m->out, mp_cfg_func_at(m->cfg, vaddr), ME_REFUSED_PROBE,
	       "holds a probe or a patchable entry");
}

static void refuse_asked(void *ctx, uint32_t func)
{
	const struct marking *m = ctx;

	refuse(m->out, func, ME_REFUSED_ASKED, "the program may look for it in its stack");
}

/* Code that others know by its place. */
static void refuse_known(const struct mp_cfg *cfg, struct me_eligible *out)
{
	struct marking m = {cfg, out};

	me_ranges_places(cfg, refuse_place, &m);
	me_enclosing_functions(cfg, refuse_asked, &m);
	/* A block with a static probe stays while its function moves, unless it is the entry. */
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		if (cfg->blocks[b].flags & MP_BLOCK_PROBE &&
		    cfg->blocks[b].flags & (MP_BLOCK_ENTRY | MP_BLOCK_BEHIND_ENTRY))
			refuse_place(&m, cfg->blocks[b].vaddr);
	for (uint32_t r = 0; r < cfg->nr_ranges; r++) {
		const struct mp_section *sec = mp_elf_section_at(cfg->elf, cfg->ranges[r].start);

		if (sec && me_ranges_section(sec))
			refuse(out, cfg->ranges[r].func, ME_REFUSED_RANGE,
			       "lies in a section that programs know by its bounds");
	}
}

struct judging {
	const struct mp_cfg *cfg;
	struct me_eligible *out;
};

static int some_judge(void *ctx, unsigned int worker, uint32_t first, uint32_t end,
		      struct mp_err *err)
{
	const struct judging *j = ctx;

	(void)worker;
	for (uint32_t f = first; f < end; f++) {
		int verdict = judge(j->cfg, f, &j->out->detail[f]);

		if (verdict < 0)
			return mp_err_code(err, -verdict);
		j->out->verdict[f] = (uint8_t)verdict;
	}
	return 0;
}

/* Functions in one unit of parallel work. */
#define GRAIN 64

int me_eligible_functions(const struct mp_cfg *cfg, unsigned int nr_threads,
			  struct me_eligible *out, struct mp_err *err)
{
	struct judging judging = {cfg, out};
	int rc;

	out->nr_funcs = cfg->nr_funcs;
	out->nr_eligible = 0;
	out->verdict = calloc(cfg->nr_funcs + 1, sizeof(*out->verdict));
	out->detail = calloc(cfg->nr_funcs + 1, sizeof(*out->detail));
	if (!out->verdict || !out->detail) {
		me_eligible_fini(out);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	rc = mp_parallel_for(nr_threads,
			     &(struct mp_parallel){.nr_items = cfg->nr_funcs,
						   .grain = GRAIN,
						   .run = some_judge,
						   .ctx = &judging},
			     err);
	if (rc) {
		me_eligible_fini(out);
		return rc;
	}
	refuse_known(cfg, out);
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		out->nr_eligible += out->verdict[f] == ME_ELIGIBLE;
	return 0;
}

void me_eligible_fini(struct me_eligible *eligible)
{
	free(eligible->verdict);
	free(eligible->detail);
	eligible->verdict = NULL;
	eligible->detail = NULL;
}
