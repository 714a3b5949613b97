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

bool me_unwind_has_frame(const struct mp_cfg *cfg, uint32_t block)
{
	const struct mp_fde *fde = me_fde_of_block(cfg->elf, &cfg->blocks[block], NULL);
	struct me_source source = {0};
	struct mp_cfi_rules rules;
	struct mp_cfi_row row;
	bool has = false;

	if (!fde || mp_cfi_rules_init(&rules))
		return false;
	if (!me_source_load(&source, cfg->elf, &rules, fde)) {
		uint32_t line =
			mp_cfi_line_at(&source.table, cfg->blocks[block].vaddr - source.fde.start);

		has = !mp_cfi_row_lower(&rules, &source.table.lines[line].row, ME_RED_ZONE, &row);
	}
	me_source_fini(&source);
	mp_cfi_rules_fini(&rules);
	return has;
}

bool me_unwind_has_no_frame(const struct mp_cfg *cfg, uint32_t func)
{
	const struct mp_func *f = &cfg->funcs[func];
	const struct mp_fde *fde = me_fde_of_block(cfg->elf, &cfg->blocks[f->first_block], NULL);
	struct me_source source = {0};
	struct mp_cfi_rules rules;
	bool has_none = false;

	if (!fde || f->nr_ranges != 1 || fde->start != f->vaddr || mp_cfi_rules_init(&rules))
		return false;
	if (!me_source_load(&source, cfg->elf, &rules, fde) && !source.fde.lsda &&
	    source.table.nr == 1) {
		const struct mp_cfi_rule *cfa = &rules.rules[source.table.lines[0].row.cfa];

		has_none = cfa->kind == MP_CFI_OFFSET && cfa->reg == STACK_POINTER && cfa->off == 8;
	}
	me_source_fini(&source);
	mp_cfi_rules_fini(&rules);
	return has_none;
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

static bool load_part(struct me_stack_rows *rows, const struct mp_cfg *cfg,
		      const struct mp_range *range)
{
	const struct mp_fde *fde = range->fde != MP_NONE ? &cfg->elf->fdes[range->fde] : NULL;
	struct me_source *source = &rows->sources[rows->nr];

	if (!fde || fde->start != range->start)
		return false;
	rows->nr++;
	return !me_source_load(source, cfg->elf, &rows->rules, fde) && !source->fde.lsda;
}

struct me_stack_rows *me_stack_rows_new(const struct mp_cfg *cfg, uint32_t func)
{
	const struct mp_func *f = &cfg->funcs[func];
	struct me_stack_rows *rows = calloc(1, sizeof(*rows));
	bool understood = true;

	if (!rows || mp_cfi_rules_init(&rows->rules)) {
		free(rows);
		return NULL;
	}
	rows->sources = calloc((size_t)f->nr_ranges + 1, sizeof(*rows->sources));
	for (uint32_t i = 0; i < f->nr_ranges && understood; i++)
		understood = rows->sources &&
			     load_part(rows, cfg, &cfg->ranges[f->first_range + i]);
	if (!understood || !f->nr_ranges) {
		me_stack_rows_free(rows);
		return NULL;
	}
	return rows;
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

/* Does each row of @callee have one in place of the call with row @line of @source? */
static bool compose_all(struct mp_cfi_rules *rules, const struct me_source *source, uint32_t line,
			const struct mp_cfi_table *callee, int64_t raised)
{
	struct mp_cfi_row row;

	for (uint32_t i = 0; i < callee->nr; i++)
		if (me_row_compose(rules, &source->cie, &source->table.lines[line].row,
				   &callee->lines[i].row, raised, &row))
			return false;
	return true;
}

bool me_unwind_composes(const struct mp_cfg *cfg, uint32_t block, uint64_t call, uint32_t func,
			int64_t raised)
{
	const struct mp_fde *caller = me_fde_of_block(cfg->elf, &cfg->blocks[block], NULL);
	struct me_stack_rows *callee = me_stack_rows_new(cfg, func);
	struct me_source source = {0};
	bool composes = false;

	if (callee && caller && !me_source_load(&source, cfg->elf, &callee->rules, caller) &&
	    lands_nowhere(&source, call)) {
		uint64_t off = call - source.fde.start;
		uint32_t line = mp_cfi_line_at(&source.table, off);

		composes = line == mp_cfi_line_at(&source.table, off + ME_PLACED_CALL);
		for (uint32_t i = 0; i < callee->nr && composes; i++)
			composes = compose_all(&callee->rules, &source, line,
					       &callee->sources[i].table, raised);
	}
	me_source_fini(&source);
	me_stack_rows_free(callee);
	return composes;
}
