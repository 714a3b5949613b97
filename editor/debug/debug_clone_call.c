// SPDX-License-Identifier: Apache-2.0
/*
 * debug_clone_call - the entries of calls in an added unit: the called functions, the code in place of calls, and what
 * the compiler had inlined into this code.
 */
#include <errno.h>

#include "editor/debug/debug_clone_private.h"
#include "editor/debug/debug_entry_private.h"
#include "editor/debug/debug_function.h"
#include "editor/debug/debug_loc.h"
#include "editor/debug/debug_ranges.h"
#include "editor/rewrite/leaf.h"

/* ---- called functions ---------------------------------------------------------------------- */

static void put_name(struct me_cloner *c, const struct me_callee_name *name)
{
	if (name->form == DW_FORM_string)
		me_bytes_put(&c->out, name->string, strlen(name->string) + 1);
	else if (name->form)
		me_bytes_u32(&c->out, name->off);
}

/* The kind of a name, below 4. */
static unsigned int kind_of(const struct me_callee_name *name)
{
	switch (name->form) {
	case DW_FORM_string: return 1;
	case DW_FORM_strp: return 2;
	case DW_FORM_line_strp: return 3;
	default: return 0;
	}
}

static uint64_t code_of_callee(struct me_cloner *c, const struct me_callee *callee)
{
	struct me_bytes *out = &c->abbrevs;
	unsigned int kind = callee->declaration
				    ? 0
				    : 4 * kind_of(&callee->name) + kind_of(&callee->linkage_name);

	if (c->callee_codes[kind])
		return c->callee_codes[kind];
	c->callee_codes[kind] = c->next_code++;
	me_bytes_uleb(out, c->callee_codes[kind]);
	me_bytes_uleb(out, DW_TAG_subprogram);
	me_bytes_u8(out, DW_CHILDREN_no);
	if (callee->declaration) {
		me_clone_put_attr(out, DW_AT_specification, DW_FORM_ref_addr);
	} else {
		me_clone_put_attr(out, DW_AT_name, callee->name.form);
		if (callee->linkage_name.form)
			me_clone_put_attr(out,
					  c->u->version >= 4 ? DW_AT_linkage_name
							     : DW_AT_MIPS_linkage_name,
					  callee->linkage_name.form);
	}
	me_clone_put_attr(out, DW_AT_inline, DW_FORM_data1);
	me_bytes_u16(out, 0);
	return c->callee_codes[kind];
}

/*
 * Writes an entry for a function that was inlined. Readers take names, code and variables from the entry that
 * another one leads to, so this entry must not lead to that of the function's code.
 */
static int put_callee(struct me_cloner *c, const struct me_callee *callee)
{
	int rc = 0;

	me_bytes_uleb(&c->out, code_of_callee(c, callee));
	if (callee->declaration) {
		rc = me_clone_put_reference(c, callee->declaration);
	} else {
		put_name(c, &callee->name);
		put_name(c, &callee->linkage_name);
	}
	me_bytes_u8(&c->out, DW_INL_inlined);
	return rc;
}

/* The compiler may have written an entry without code for a function that it inlined itself. */
int me_clone_put_callees(struct me_cloner *c)
{
	const struct me_inlined_calls *calls = &c->u->file->inlined;
	int rc = 0;

	for (uint32_t r = 0; r < c->u->taken.nr && !rc; r++)
		for (uint32_t i = me_inlined_from(calls, c->u->taken.ranges[r].lo);
		     i < calls->nr && calls->calls[i].call < c->u->taken.ranges[r].hi && !rc; i++) {
			uint32_t k = calls->calls[i].callee;
			const struct me_callee *callee = &calls->callees[k];

			if (!calls->calls[i].described || c->callees[k])
				continue;
			c->callees[k] = callee->abstract ? callee->abstract : c->base + c->out.size;
			if (!callee->abstract)
				rc = put_callee(c, callee);
		}
	return rc;
}

/* ---- scopes -------------------------------------------------------------------------------- */

bool me_clone_is_scope(const struct me_entry *e)
{
	switch (e->abbrev->tag) {
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_try_block:
	case DW_TAG_catch_block: return e->ranges.p || (e->low.p && e->high.p);
	default: return false;
	}
}

/* Notes that the entry contains calls. An entry further in comes later, and wins. */
int me_clone_claim_calls(struct me_cloner *c, const struct me_entry *e)
{
	struct me_debug_sections *file = c->u->file;
	int rc = me_entry_read_ranges(c->u, e, &file->old);

	if (rc == -ENOMEM)
		return rc;
	for (uint32_t r = 0; r < file->old.nr && !rc; r++)
		for (uint32_t i = me_inlined_from(&file->inlined, file->old.ranges[r].lo);
		     i < file->inlined.nr && file->inlined.calls[i].call < file->old.ranges[r].hi;
		     i++) {
			struct me_inlined *call = &file->inlined.calls[i];

			if (!me_debug_spend(file, 1))
				return -EPERM;
			/* A scope that ends in the middle of the call has not the code in its place. */
			if (file->old.ranges[r].hi - call->call < ME_LEAF_CALL_SIZE)
				continue;
			call->scope = me_clone_offset(c, e->start);
		}
	return 0;
}

/* Is the entry the innermost scope of any call? */
bool me_clone_has_calls(const struct me_cloner *c, const struct me_entry *e,
			const struct me_ranges *code)
{
	const struct me_inlined_calls *calls = &c->u->file->inlined;

	if (!me_clone_is_scope(e))
		return false;

	for (uint32_t r = 0; r < code->nr; r++)
		for (uint32_t i = me_inlined_from(calls, code->ranges[r].lo);
		     i < calls->nr && calls->calls[i].call < code->ranges[r].hi; i++)
			if (me_debug_spend(c->u->file, 1) && calls->calls[i].described &&
			    !calls->calls[i].written &&
			    calls->calls[i].scope == me_clone_offset(c, e->start))
				return true;
	return false;
}

/* ---- locations ----------------------------------------------------------------------------- */

/* Read the old ranges of the innermost scope around into file->old. */
static int read_scope(struct me_cloner *c)
{
	struct me_unit *u = c->u;
	uint32_t i = c->nr_open;
	struct mp_cursor in;
	struct me_entry scope;
	int rc;

	u->file->old.nr = 0;
	while (i && !c->open[i - 1].is_scope)
		i--;
	if (!i)
		return 0;
	in = mp_cursor_over(u->file->info.data + c->open[i - 1].old_off,
			    u->file->info.data + u->end);
	rc = me_entry_read(u, &in, &scope);
	return rc ? rc : me_entry_read_ranges(u, &scope, &u->file->old);
}

int me_clone_divide_location(struct me_cloner *c, const struct me_entry *e)
{
	struct me_debug_sections *file = c->u->file;
	struct mp_cursor expr;
	uint64_t registers;
	int rc;

	if (!e->location.p || me_entry_is_call_site(e) ||
	    !me_form_is_expression(e->location.form) || me_location_is_lost(c->u, &e->location))
		return 0;
	registers = me_value_registers(c->u, &e->location, c->u->frame_base);
	if (!registers)
		return 0;
	rc = read_scope(c);
	if (rc)
		return rc;
	file->new.nr = file->changing.nr = 0;
	for (uint32_t i = 0; i < file->old.nr; i++) {
		struct me_range r = file->old.ranges[i];

		me_ranges_add(&file->new, r.lo, r.hi);
		me_moves_map(file->moves, r.lo, r.hi, &file->new);
		me_inlined_changing(&file->inlined, r, registers, &file->changing);
	}
	if (!file->changing.nr && !file->changing.failed)
		return 0;
	if (!me_debug_spend(file, file->new.nr + file->changing.nr))
		return -EPERM;
	me_ranges_join(&file->new, 0);
	me_ranges_subtract(&file->new, &file->changing);
	if (file->new.failed || file->changing.failed)
		return -ENOMEM;
	expr = me_value_expression(&e->location);
	rc = me_loc_write(c->u, &file->new, expr.p, (uint64_t)(expr.end - expr.p), &c->locations);
	return rc ? rc : 1;
}

/* ---- entries ------------------------------------------------------------------------------- */

static uint64_t code_of_call(struct me_cloner *c, unsigned int variant)
{
	struct me_bytes *out = &c->abbrevs;

	if (c->call_codes[variant])
		return c->call_codes[variant];
	c->call_codes[variant] = c->next_code++;
	me_bytes_uleb(out, c->call_codes[variant]);
	me_bytes_uleb(out, DW_TAG_inlined_subroutine);
	me_bytes_u8(out, variant & ME_CLONE_PARENT ? DW_CHILDREN_yes : DW_CHILDREN_no);
	me_clone_put_attr(out, DW_AT_abstract_origin, DW_FORM_ref_addr);
	if (variant & ME_CLONE_LISTED) {
		me_clone_put_list_attr(c, out, DW_AT_ranges);
	} else {
		me_clone_put_attr(out, DW_AT_low_pc, DW_FORM_addr);
		me_clone_put_attr(out, DW_AT_high_pc, DW_FORM_addr);
	}
	me_clone_put_attr(out, DW_AT_call_file, DW_FORM_udata);
	me_clone_put_attr(out, DW_AT_call_line, DW_FORM_udata);
	me_clone_put_attr(out, DW_AT_call_column, DW_FORM_udata);
	me_bytes_u16(out, 0);
	return c->call_codes[variant];
}

/* The entry of code at file->new that was inlined at @place. */
static int put_inlined(struct me_cloner *c, uint64_t origin, const struct me_call_place *place,
		       bool parent)
{
	const struct me_ranges *code = &c->u->file->new;
	unsigned int variant = (parent ? ME_CLONE_PARENT : 0) |
			       (code->nr > 1 ? ME_CLONE_LISTED : 0);
	uint32_t off;
	int rc = 0;

	if (code->failed)
		return -ENOMEM;
	me_bytes_uleb(&c->out, code_of_call(c, variant));
	if (me_clone_put_reference(c, origin))
		return -ENOMEM;
	if (variant & ME_CLONE_LISTED) {
		rc = me_ranges_write(c->u, &off);
		me_bytes_u32(&c->out, rc ? 0 : off);
	} else {
		me_bytes_u64(&c->out, code->ranges[0].lo);
		me_bytes_u64(&c->out, code->ranges[0].hi);
	}
	me_bytes_uleb(&c->out, place->file);
	me_bytes_uleb(&c->out, place->line);
	me_bytes_uleb(&c->out, place->column);
	return rc;
}

/* Set file->new to the code of the called function's scope in place of @call. */
static void map_scope(struct me_cloner *c, const struct me_inlined *call,
		      const struct me_callee *callee, const struct me_callee_scope *scope)
{
	struct me_debug_sections *file = c->u->file;

	file->new.nr = 0;
	for (uint32_t i = 0; i < scope->nr_ranges; i++)
		me_inlined_map(&file->inlined, call, callee->ranges.ranges[scope->first_range + i],
			       &file->new);
	me_ranges_join(&file->new, 0);
}

/* The entries of code that the compiler inlined into the called function: @kept of its scopes. */
static int put_scopes(struct me_cloner *c, const struct me_inlined *call, const uint32_t *kept,
		      uint32_t nr)
{
	const struct me_callee *callee = &c->u->file->inlined.callees[call->callee];
	uint32_t open[ME_CALLEE_SCOPES_MAX], nr_open = 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct me_callee_scope *scope = &callee->scopes[kept[i]];
		bool parent = i + 1 < nr && callee->scopes[kept[i + 1]].depth > scope->depth;
		struct me_call_place place = scope->place;
		int rc;

		for (; nr_open && open[nr_open - 1] >= scope->depth; nr_open--)
			me_bytes_u8(&c->out, 0);
		place.file = c->u->file->inlined.files[call->first_file + kept[i]];
		map_scope(c, call, callee, scope);
		rc = put_inlined(c, scope->origin, &place, parent);
		if (rc)
			return rc;
		if (parent)
			open[nr_open++] = scope->depth;
	}
	/* The last one ends the entries below the call. */
	for (nr_open++; nr_open; nr_open--)
		me_bytes_u8(&c->out, 0);
	return 0;
}

static int put_call(struct me_cloner *c, struct me_inlined *call)
{
	struct me_debug_sections *file = c->u->file;
	const struct me_callee *callee = &file->inlined.callees[call->callee];
	uint32_t kept[ME_CALLEE_SCOPES_MAX], nr = 0;
	int rc;

	for (uint32_t i = 0; i < callee->nr_scopes; i++) {
		map_scope(c, call, callee, &callee->scopes[i]);
		if (file->new.nr)
			kept[nr++] = i;
	}
	if (!me_debug_spend(file, (uint64_t)callee->ranges.nr * call->nr_parts))
		return -EPERM;
	file->new.nr = 0;
	/* The entry's first range begins where the function does. */
	me_ranges_add(&file->new, call->new_vaddr, call->new_end);
	me_ranges_add(&file->new, call->apart, call->apart_end);
	rc = put_inlined(c, c->callees[call->callee], &call->place, nr);
	if (!rc && nr)
		rc = put_scopes(c, call, kept, nr);
	call->written = true;
	file->nr_described++;
	return rc;
}

/* The entries of the calls whose innermost scope is the entry at @scope. */
int me_clone_put_calls(struct me_cloner *c, uint64_t scope, const struct me_ranges *code)
{
	const struct me_inlined_calls *calls = &c->u->file->inlined;
	int rc;

	for (uint32_t r = 0; r < code->nr; r++)
		for (uint32_t i = me_inlined_from(calls, code->ranges[r].lo);
		     i < calls->nr && calls->calls[i].call < code->ranges[r].hi; i++) {
			struct me_inlined *call = &calls->calls[i];

			if (!me_debug_spend(c->u->file, 1))
				return -EPERM;
			if (!call->described || call->written || call->scope != scope)
				continue;
			rc = put_call(c, call);
			if (rc)
				return rc;
		}
	return 0;
}
