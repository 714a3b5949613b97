// SPDX-License-Identifier: Apache-2.0
/*
 * unwind_compose - what rows of the original say of a function's frame, and the rows of a called function's
 * instructions in place of the call. Called by unwind_run, and by evidence before anything moves.
 *
 * Such an instruction has the row that an unwinder would find in two steps: from the called function to the
 * call by its row, and from the call on by the call's row.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/base/runtime.h"
#include "editor/unwind/unwind_private.h"

enum { /* registers in unwind rows */
	STACK_POINTER = 7,
	RETURN_ADDRESS = 16,
};

/* Bytes of a return address. */
#define SLOT 8

/* Return: 1: what is asked holds, 0: it does not, or its FDE is not understood; -ENOMEM. */
static int answer(int rc, bool holds)
{
	return rc == -ENOMEM ? rc : !rc && holds;
}

int me_unwind_has_frame(const struct mp_cfg *cfg, uint32_t block)
{
	const struct mp_fde *fde = me_fde_of_block(cfg->elf, &cfg->blocks[block], NULL);
	struct me_source source = {0};
	struct mp_cfi_rules rules;
	struct mp_cfi_row row;
	const char *why;
	int rc;

	if (!fde)
		return 0;
	if (mp_cfi_rules_init(&rules))
		return -ENOMEM;
	rc = me_source_load(&source, cfg->elf, &rules, fde, &why);
	if (!rc) {
		uint32_t line =
			mp_cfi_line_at(&source.table, cfg->blocks[block].vaddr - source.fde.start);

		rc = mp_cfi_row_lower(&rules, &source.table.lines[line].row, ME_RED_ZONE, &row);
	}
	me_source_fini(&source);
	mp_cfi_rules_fini(&rules);
	return answer(rc, true);
}

int me_unwind_has_no_frame(const struct mp_cfg *cfg, uint32_t func)
{
	const struct mp_func *f = &cfg->funcs[func];
	const struct mp_fde *fde = me_fde_of_block(cfg->elf, &cfg->blocks[f->first_block], NULL);
	struct me_source source = {0};
	struct mp_cfi_rules rules;
	bool has_none = false;
	const char *why;
	int rc;

	if (!fde || f->nr_ranges != 1 || fde->start != f->vaddr)
		return 0;
	if (mp_cfi_rules_init(&rules))
		return -ENOMEM;
	rc = me_source_load(&source, cfg->elf, &rules, fde, &why);
	if (!rc && !source.fde.lsda && source.table.nr == 1) {
		const struct mp_cfi_rule *cfa = &rules.rules[source.table.lines[0].row.cfa];

		has_none = cfa->kind == MP_CFI_OFFSET && cfa->reg == STACK_POINTER && cfa->off == 8;
	}
	me_source_fini(&source);
	mp_cfi_rules_fini(&rules);
	return answer(rc, has_none);
}

/* A function has an FDE for each of its parts: its main one and, perhaps, one for cold code. */
struct me_stack_rows {
	struct me_source *sources;
	uint32_t nr;
	struct mp_cfi_rules rules;
};

/* The offset of the CFA from the stack pointer. Return: -1: the row finds it in another way. */
static int64_t offset_from_stack(const struct mp_cfi_rules *rules, const struct mp_cfi_row *row)
{
	const struct mp_cfi_rule *cfa = &rules->rules[row->cfa];

	return cfa->kind == MP_CFI_OFFSET && cfa->reg == STACK_POINTER ? cfa->off : -1;
}

/* Return: 1: the part's rows are understood, 0: they are not, -ENOMEM. */
static int load_part(struct me_stack_rows *rows, const struct mp_cfg *cfg,
		     const struct mp_range *range)
{
	const struct mp_fde *fde = range->fde != MP_NONE ? &cfg->elf->fdes[range->fde] : NULL;
	struct me_source *source = &rows->sources[rows->nr];
	const char *why;
	int rc;

	if (!fde || fde->start != range->start)
		return 0;
	rows->nr++;
	rc = me_source_load(source, cfg->elf, &rows->rules, fde, &why);
	return answer(rc, !source->fde.lsda);
}

int me_stack_rows_new(const struct mp_cfg *cfg, uint32_t func, struct me_stack_rows **out)
{
	const struct mp_func *f = &cfg->funcs[func];
	struct me_stack_rows *rows = calloc(1, sizeof(*rows));
	int understood = f->nr_ranges != 0;

	*out = NULL;
	if (!rows || mp_cfi_rules_init(&rows->rules)) {
		free(rows);
		return -ENOMEM;
	}
	rows->sources = calloc((size_t)f->nr_ranges + 1, sizeof(*rows->sources));
	if (!rows->sources)
		understood = -ENOMEM;
	for (uint32_t i = 0; i < f->nr_ranges && understood > 0; i++)
		understood = load_part(rows, cfg, &cfg->ranges[f->first_range + i]);
	if (understood > 0)
		*out = rows;
	else
		me_stack_rows_free(rows);
	return understood < 0 ? understood : 0;
}

int64_t me_stack_rows_depth(const struct me_stack_rows *rows, uint64_t vaddr)
{
	for (uint32_t i = 0; i < rows->nr; i++) {
		const struct mp_cfi_table *table = &rows->sources[i].table;
		uint64_t off = vaddr - rows->sources[i].fde.start;
		int64_t cfa;

		if (off >= rows->sources[i].fde.size)
			continue;
		cfa = offset_from_stack(&rows->rules,
					&table->lines[mp_cfi_line_at(table, off)].row);
		return cfa < SLOT ? -1 : cfa - SLOT;
	}
	return -1;
}

void me_stack_rows_free(struct me_stack_rows *rows)
{
	if (!rows)
		return;
	for (uint32_t i = 0; i < rows->nr; i++)
		me_source_fini(&rows->sources[i]);
	free(rows->sources);
	mp_cfi_rules_fini(&rows->rules);
	free(rows);
}

/* Is the register's value in the calling function the one that it has now? */
static bool is_kept(const struct mp_cfi_rule *rule)
{
	return rule->kind == MP_CFI_UNSPECIFIED || rule->kind == MP_CFI_SAME;
}

/*
 * The rule of a register whose rule is @call at the call and @row in the called function. What the calling function
 * has saved stays where it is. What only the called function has saved lies at the same distance from the call's stack
 * pointer: @frame bytes below the CFA, or -1 if that is not known.
 */
static int compose_register(struct mp_cfi_rules *rules, const struct mp_eh_cie *cie, uint16_t call,
			    uint16_t row, int64_t frame, uint16_t *out)
{
	struct mp_cfi_rule rule = rules->rules[row];

	*out = call;
	switch (rules->rules[call].kind) {
	case MP_CFI_OFFSET:
	case MP_CFI_UNDEFINED: return 0;
	case MP_CFI_UNSPECIFIED:
	case MP_CFI_SAME: break;
	default: return -EOPNOTSUPP;
	}
	if (is_kept(&rule))
		return 0;
	if (rule.kind != MP_CFI_OFFSET || frame < 0 || !cie->data_align)
		return -EOPNOTSUPP;
	rule.off -= frame;
	if (rule.off % cie->data_align)
		return -EOPNOTSUPP;
	return mp_cfi_rule_number(rules, &rule, out);
}

int me_row_compose(struct mp_cfi_rules *rules, const struct mp_eh_cie *cie,
		   const struct mp_cfi_row *call, const struct mp_cfi_row *row, int64_t raised,
		   struct mp_cfi_row *out)
{
	struct mp_cfi_rule cfa = rules->rules[call->cfa];
	int64_t depth = offset_from_stack(rules, row), frame = -1;
	const struct mp_cfi_rule *back = &rules->rules[row->regs[RETURN_ADDRESS]];

	*out = *call;
	if (cfa.kind != MP_CFI_OFFSET || depth < SLOT || row->args_size ||
	    back->kind != MP_CFI_OFFSET || back->off != -SLOT ||
	    rules->rules[call->regs[STACK_POINTER]].kind != MP_CFI_UNSPECIFIED ||
	    rules->rules[row->regs[STACK_POINTER]].kind != MP_CFI_UNSPECIFIED)
		return -EOPNOTSUPP;
	if (cfa.reg == STACK_POINTER) {
		frame = cfa.off - raised;
		cfa.off += depth - raised;
	} else if (cfa.reg >= MP_CFI_NR_REGS || !is_kept(&rules->rules[row->regs[cfa.reg]])) {
		return -EOPNOTSUPP;
	}
	for (int i = 0; i < MP_CFI_NR_REGS; i++) {
		int rc;

		if (i == RETURN_ADDRESS)
			continue;
		rc = compose_register(rules, cie, call->regs[i], row->regs[i], frame,
				      &out->regs[i]);
		if (rc)
			return rc;
	}
	return mp_cfi_rule_number(rules, &cfa, &out->cfa);
}

/* Does no landing pad belong to the instruction at @vaddr? */
static bool lands_nowhere(const struct me_source *source, uint64_t vaddr)
{
	uint32_t i;

	if (!source->fde.lsda)
		return true;
	i = me_lsda_site_at(&source->lsda, vaddr);
	return i >= source->lsda.nr_sites || source->lsda.sites[i].start > vaddr ||
	       !source->lsda.sites[i].pad;
}

/* Has each row of @callee one in place of the call with row @line of @source? Return: 1, 0, -ENOMEM. */
static int compose_all(struct mp_cfi_rules *rules, const struct me_source *source, uint32_t line,
		       const struct mp_cfi_table *callee, int64_t raised)
{
	struct mp_cfi_row row;
	int rc = 0;

	for (uint32_t i = 0; i < callee->nr && !rc; i++)
		rc = me_row_compose(rules, &source->cie, &source->table.lines[line].row,
				    &callee->lines[i].row, raised, &row);
	return answer(rc, true);
}

int me_unwind_composes(const struct mp_cfg *cfg, uint32_t block, uint64_t call, uint32_t func,
		       int64_t raised)
{
	const struct mp_fde *caller = me_fde_of_block(cfg->elf, &cfg->blocks[block], NULL);
	struct me_source source = {0};
	struct me_stack_rows *callee;
	const char *why;
	int composes = 0, rc;

	if (!caller)
		return 0;
	rc = me_stack_rows_new(cfg, func, &callee);
	if (rc || !callee)
		return rc;
	rc = me_source_load(&source, cfg->elf, &callee->rules, caller, &why);
	if (!rc && lands_nowhere(&source, call)) {
		uint64_t off = call - source.fde.start;
		uint32_t line = mp_cfi_line_at(&source.table, off);

		composes = line == mp_cfi_line_at(&source.table, off + ME_PLACED_CALL);
		for (uint32_t i = 0; i < callee->nr && composes > 0; i++)
			composes = compose_all(&callee->rules, &source, line,
					       &callee->sources[i].table, raised);
	}
	me_source_fini(&source);
	me_stack_rows_free(callee);
	return rc == -ENOMEM ? rc : composes;
}

static bool fde_holds(const struct mp_fde *fde, const struct mp_block *block)
{
	uint64_t off = block->vaddr - fde->start;

	return off < fde->size && block->size <= fde->size - off;
}

const struct mp_fde *me_fde_of_block(const struct mp_elf *elf, const struct mp_block *block,
				     const struct mp_fde *last)
{
	const struct mp_fde *fde;

	if (last && fde_holds(last, block) &&
	    (last + 1 == elf->fdes + elf->nr_fdes || last[1].start > block->vaddr))
		return last;
	fde = mp_elf_fde_before(elf, block->vaddr);
	return fde && fde_holds(fde, block) ? fde : NULL;
}
