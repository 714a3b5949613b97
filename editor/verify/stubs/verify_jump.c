// SPDX-License-Identifier: Apache-2.0
/*
 * verify_jump - finds the targets of an indirect jump that reads a table, by the instructions
 * before it. Says which calls never return. Called by verify_graph.
 *
 * If the table's address was set in a way that is not understood, the jump may use any table
 * that the function names.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/stubs/verify_block.h"
#include "editor/verify/stubs/verify_jump.h"
#include "editor/verify/stubs/verify_table_bases.h"
#include "libprof/base/grow.h"

/* Number of instructions read, the jump included. */
#define WINDOW 16

struct window {
	const struct vf *vf;
	const struct vf_fde *fde;
	struct vf_step step[WINDOW]; /* the last one is the jump */
	unsigned int nr;
};

static uint64_t previous(const struct vf *vf, uint64_t at, uint64_t start)
{
	for (uint64_t k = at; k-- > start && at - k <= 15;)
		if (vf_bits_get(&vf->old.grid, k))
			return k;
	return UINT64_MAX;
}

/* Read the instructions that control runs through before the jump, across starts of blocks,
 * back to an instruction that does not fall through. */
static bool read_window(struct window *w, uint64_t jump)
{
	struct vf_step back[WINDOW];
	unsigned int nr = 0;

	for (uint64_t at = jump; nr < WINDOW && at != UINT64_MAX;
	     at = previous(w->vf, at, w->fde->start)) {
		if (!vf_decode_step(w->vf, w->fde, at, &back[nr]))
			break;
		if (nr && back[nr].z.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
			break;
		if (nr && (back[nr].z.meta.category == ZYDIS_CATEGORY_CALL ||
			   back[nr].z.meta.category == ZYDIS_CATEGORY_RET))
			break;
		nr++;
		/* Stop: control also arrives here from elsewhere, with other values in
		 * registers. */
		if (vf_bits_get(&w->vf->old.target, at))
			break;
	}
	for (unsigned int i = 0; i < nr; i++)
		w->step[i] = back[nr - 1 - i];
	w->nr = nr;
	return nr;
}

static ZydisRegister whole(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

/* The last step before step @i that sets @reg, or -1. */
static int setter(const struct window *w, int i, ZydisRegister reg)
{
	while (--i >= 0) {
		const struct vf_step *s = &w->step[i];

		for (uint8_t k = 0; k < s->z.operand_count; k++)
			if (s->op[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    s->op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
			    whole(s->op[k].reg.value) == reg)
				return i;
	}
	return -1;
}

struct table {
	uint64_t start;	    /* 0: not known */
	ZydisRegister base; /* register that holds @start if it is not known */
	uint8_t size;	    /* 8: addresses; 4: offsets from @start */
	bool found;
};

/* Find the table that @reg points to before step @i, or the register that holds it. */
static void find_start(const struct window *w, int i, ZydisRegister reg, struct table *t)
{
	const struct vf_step *s;

	t->base = reg;
	i = setter(w, i, reg);
	if (i < 0)
		return;
	s = &w->step[i];
	t->base = ZYDIS_REGISTER_NONE;
	if (s->z.mnemonic == ZYDIS_MNEMONIC_LEA && s->op[1].mem.base == ZYDIS_REGISTER_RIP)
		t->start = s->at + s->z.length + (uint64_t)s->op[1].mem.disp.value;
	else if (s->z.mnemonic == ZYDIS_MNEMONIC_MOV &&
		 s->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		t->start = (uint64_t)s->op[1].imm.value.s;
}

/* The table if the memory operand of step @i is an entry of 8 bytes. */
static struct table of_addresses(const struct window *w, int i, const ZydisDecodedOperand *op)
{
	struct table t = {.size = 8};

	if (op->mem.index == ZYDIS_REGISTER_NONE || op->mem.scale != 8)
		return t;
	t.found = true;
	if (op->mem.base == ZYDIS_REGISTER_NONE)
		t.start = (uint64_t)op->mem.disp.value;
	else if (!op->mem.disp.value)
		find_start(w, i, op->mem.base, &t);
	return t;
}

/* Step @i jumps to @reg: find the table that its value was read from. */
static struct table read_by(const struct window *w, int i, ZydisRegister reg)
{
	struct table t = {0};
	bool added = false;

	for (int n = 0; n < WINDOW; n++) {
		const struct vf_step *s;

		i = setter(w, i, reg);
		if (i < 0)
			return t;
		s = &w->step[i];
		switch (s->z.mnemonic) {
		case ZYDIS_MNEMONIC_ADD: {
			ZydisRegister other;
			int k;

			if (added || s->op[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
				return t;
			added = true;
			other = whole(s->op[1].reg.value);
			k = setter(w, i, other);
			/* Follow the addend that was loaded. */
			if (k >= 0 && w->step[k].z.mnemonic == ZYDIS_MNEMONIC_MOVSXD &&
			    w->step[k].op[1].type == ZYDIS_OPERAND_TYPE_MEMORY)
				reg = other;
			break;
		}
		case ZYDIS_MNEMONIC_MOVSXD:
			if (!added || s->op[1].type != ZYDIS_OPERAND_TYPE_MEMORY ||
			    s->op[1].mem.scale != 4 || s->op[1].mem.disp.value)
				return t;
			t = (struct table){.size = 4, .found = true};
			find_start(w, i, s->op[1].mem.base, &t);
			return t;
		case ZYDIS_MNEMONIC_MOV:
			if (s->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
				reg = whole(s->op[1].reg.value);
				break;
			}
			if (added || s->op[1].type != ZYDIS_OPERAND_TYPE_MEMORY ||
			    s->op[0].size != 64)
				return t;
			return of_addresses(w, i, &s->op[1]);
		default: return t;
		}
	}
	return t;
}

/* ---- entries ------------------------------------------------------------------------------- */

/*
 * Many jumps may share one long table, and each has a list of its targets: their number must not grow with the square of
 * the file's size. Twice what the analysis allows.
 */
#define TARGETS_PER_BYTE 8
#define TARGETS_LEAST	 (1u << 24)

static int add_target(const struct vf *vf, uint32_t block)
{
	struct vf_graph *g = vf->stubs.graph;

	if (g->nr_targets >= TARGETS_PER_BYTE * (uint64_t)vf->o->size + TARGETS_LEAST)
		return vf_refuse(vf, 0, "indirect jumps have too many targets to follow");
	if (mp_grow(g->targets, g->cap_targets, (uint64_t)g->nr_targets + 1))
		return -ENOMEM;
	g->targets[g->nr_targets++] = block;
	return 0;
}

static bool read_entry(const struct vf *vf, uint64_t at, const struct table *t, uint64_t *label)
{
	const uint8_t *p = mp_elf_bytes(vf->o, at, t->size);
	int32_t off;

	if (!p || vf_is_text(vf, at))
		return false;
	if (t->size == 8) {
		const struct mp_reloc *rel = mp_elf_dyn_reloc_at(vf->o, at);

		memcpy(label, p, 8);
		if (rel)
			*label = rel->sym_value + (uint64_t)rel->addend;
		return true;
	}
	memcpy(&off, p, 4);
	*label = t->start + (uint64_t)(int64_t)off;
	return true;
}

/* Add the table's entries, up to the next address that an operand names, while they lead into
 * the function or a part of one. */
static int add_table(const struct vf *vf, uint32_t fde, const struct table *t, uint32_t *nr)
{
	struct vf_graph *g = vf->stubs.graph;
	uint64_t end = vf_bits_next(&vf->old.data_ref, t->start + 1, vf->old.image_end), label;

	for (uint64_t at = t->start; at + t->size <= end && read_entry(vf, at, t, &label);
	     at += t->size) {
		uint32_t to = vf_is_text(vf, label) ? vf_block_at(vf, label) : VF_NONE;
		int ret;

		if (to == VF_NONE ||
		    (g->blocks[to].fde != fde && (g->blocks[to].fde == VF_NONE ||
						  g->flags[g->blocks[to].fde] & VF_FUNC_CALLED)))
			break;
		ret = add_target(vf, to);
		if (ret)
			return ret;
		(*nr)++;
	}
	return 0;
}

/* Add every table that the function's operands name. */
static int add_all_tables(const struct vf *vf, uint32_t index, struct table t, uint32_t *nr)
{
	const struct vf_fde *fde = &vf->old.eh.fdes[index];
	uint64_t end = fde->start + fde->size;
	int ret = 0;

	for (uint64_t at = fde->start; !ret && at < end;
	     at = vf_bits_next(&vf->old.grid, at + 1, end)) {
		const uint8_t *p = mp_elf_bytes(vf->o, at, end - at);
		struct vf_insn insn;

		if (!p || !vf_decode(p, end - at, at, &insn))
			continue;
		if (insn.lea && insn.disp_off)
			t.start = insn.target;
		else if (vf->o->ehdr.e_type == ET_EXEC && insn.imm_size >= 4)
			t.start = (uint64_t)insn.imm;
		else
			continue;
		if (t.start >= vf->old.image_start && t.start < vf->old.image_end)
			ret = add_table(vf, index, &t, nr);
	}
	return ret;
}

/* ---- jumps --------------------------------------------------------------------------------- */

static struct table table_of(const struct vf *vf, const struct vf_block *block)
{
	struct window w = {.vf = vf, .fde = &vf->old.eh.fdes[block->fde]};
	const struct vf_step *jump;

	if (!read_window(&w, vf->old.text_start + block->last))
		return (struct table){0};
	jump = &w.step[w.nr - 1];
	return jump->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY
		       ? of_addresses(&w, (int)w.nr - 1, &jump->op[0])
		       : read_by(&w, (int)w.nr - 1, jump->op[0].reg.value);
}

/* Set the targets of the jump at the end of block @i by these tables. @any: by every table that
 * the function names. */
static int set_tables(const struct vf *vf, uint32_t i, struct table t, const struct vf_bases *bases,
		      bool any)
{
	struct vf_graph *g = vf->stubs.graph;
	struct vf_block *block = &g->blocks[i];
	uint32_t first = g->nr_targets, nr = 0;
	int ret = any ? add_all_tables(vf, block->fde, t, &nr) : 0;

	for (uint32_t k = 0; !ret && k < bases->nr; k++) {
		t.start = bases->start[k];
		if (t.start >= vf->old.image_start && t.start < vf->old.image_end)
			ret = add_table(vf, block->fde, &t, &nr);
	}
	if (!ret && nr)
		ret = add_target(vf, VF_NONE);
	if (ret)
		return ret;
	block->kind = nr ? VF_END_TABLE : VF_END_IJMP;
	block->to = nr ? first : VF_NONE;
	return 0;
}

/* Resolve jumps whose table's address is set right before them. */
static int find_adjacent_tables(const struct vf *vf, uint32_t *nr_pending)
{
	struct vf_graph *g = vf->stubs.graph;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < g->nr_blocks; i++) {
		struct vf_block *block = &g->blocks[i];
		struct vf_bases bases = {.nr = 1};
		struct table t;

		if (block->kind != VF_END_IJMP || block->filled_by_loader || block->fde == VF_NONE)
			continue;
		t = table_of(vf, block);
		if (!t.found)
			continue;
		block->pending = !t.start;
		*nr_pending += block->pending;
		bases.start[0] = t.start;
		if (!block->pending)
			ret = set_tables(vf, i, t, &bases, false);
	}
	return ret;
}

static uint32_t nr_targets_of(const struct vf_graph *g, const struct vf_block *b)
{
	uint32_t nr = 0;

	while (b->kind == VF_END_TABLE && g->targets[b->to + nr] != VF_NONE)
		nr++;
	return nr;
}

/*
 * One round over the other jumps. A jump that is not resolved yet adds no predecessors. @last:
 * all are resolved, and are looked at again. *@found: a jump got other targets.
 */
static int find_distant_tables(const struct vf *vf, bool last, bool *found)
{
	struct vf_graph *g = vf->stubs.graph;
	struct vf_predecessors predecessors = {.fde = VF_NONE};
	int ret = 0;

	*found = false;
	for (uint32_t i = 0; !ret && i < g->nr_blocks; i++) {
		struct vf_block *block = &g->blocks[i];
		uint32_t nr = nr_targets_of(g, block);
		struct vf_bases bases;
		struct table t;

		if (!block->pending || last != (block->kind == VF_END_TABLE))
			continue;
		t = table_of(vf, block);
		ret = vf_find_table_bases(vf, &predecessors, i, t.base, &bases);
		if (ret || (!last && (bases.unknown || !bases.nr)))
			continue;
		ret = set_tables(vf, i, t, &bases, bases.unknown || !bases.nr);
		*found |= nr_targets_of(g, block) != nr;
	}
	vf_predecessors_fini(&predecessors);
	return ret;
}

/* Let jumps that are not resolved, or @all, lead to every table that their function names. */
static int assume_all_tables(const struct vf *vf, bool all)
{
	struct vf_graph *g = vf->stubs.graph;
	const struct vf_bases none = {0};
	int ret = 0;

	for (uint32_t i = 0; !ret && i < g->nr_blocks; i++) {
		struct vf_block *block = &g->blocks[i];

		if (!block->pending || (!all && block->kind == VF_END_TABLE))
			continue;
		block->pending = false;
		ret = set_tables(vf, i, table_of(vf, block), &none, true);
	}
	return ret;
}

/* Limit on rounds until nothing changes. */
#define MAX_ROUNDS 8

int vf_graph_find_tables(const struct vf *vf)
{
	uint32_t nr_pending = 0;
	bool found = true;
	int ret = find_adjacent_tables(vf, &nr_pending);

	if (ret || !nr_pending)
		return ret;
	while (!ret && found)
		ret = find_distant_tables(vf, false, &found);
	if (!ret)
		ret = assume_all_tables(vf, false);
	/* Jumps resolved later may add paths to those resolved before. */
	found = true;
	for (int n = 0; !ret && found && n < MAX_ROUNDS; n++)
		ret = find_distant_tables(vf, true, &found);
	return !ret && found ? assume_all_tables(vf, true) : ret;
}

/* ---- calls that do not return --------------------------------------------------------------- */

bool vf_is_noreturn_name(const char *name)
{
	static const char *const names[] = {
		"_Exit",
		"_Unwind_Resume",
		"_ZSt9terminatev",
		"__assert",
		"__assert_fail",
		"__assert_perror_fail",
		"__chk_fail",
		"__cxa_bad_cast",
		"__cxa_bad_typeid",
		"__cxa_call_unexpected",
		"__cxa_deleted_virtual",
		"__cxa_pure_virtual",
		"__cxa_rethrow",
		"__cxa_throw",
		"__cxa_throw_bad_array_new_length",
		"__fortify_fail",
		"__libc_start_main",
		"__longjmp_chk",
		"__stack_chk_fail",
		"_exit",
		"_longjmp",
		"abort",
		"exit",
		"longjmp",
		"pthread_exit",
		"quick_exit",
		"siglongjmp",
		"thrd_exit",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	/* std::__throw_bad_alloc() and the like. */
	if (strncmp(name, "_ZSt", 4))
		return false;
	name += 4;
	return !strncmp(name + strspn(name, "0123456789"), "__throw_", 8);
}

bool vf_is_noreturn_slot(const struct vf *vf, uint64_t vaddr)
{
	const struct mp_reloc *rel = mp_elf_dyn_reloc_at(vf->o, vaddr);
	const struct vf_graph *g = vf->stubs.graph;

	return rel && (rel->type == R_X86_64_JUMP_SLOT || rel->type == R_X86_64_GLOB_DAT) &&
	       rel->sym < vf->o->nr_symbols - g->first_dynamic &&
	       vf->o->symbols[g->first_dynamic + rel->sym].name &&
	       vf_is_noreturn_name(vf->o->symbols[g->first_dynamic + rel->sym].name);
}
