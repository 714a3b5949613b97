// SPDX-License-Identifier: Apache-2.0
/*
 * verify_debug_location - where variables are in code in place of calls.
 *
 * The rule: there, no location depends on a register that this code changes. That goes for lists that the original
 * lacks, and in added units for what holds throughout a scope. Lists of the original say nothing of new code.
 */
#include <dwarf.h>
#include <errno.h>

#include "editor/verify/debug/verify_debug_private.h"
#include "libprof/base/grow.h"

/* A longer expression for a value at the function's entry is not understood. */
#define ENTRY_VALUE_MAX 16

/* ---- expressions --------------------------------------------------------------------------- */

static uint64_t bit_of(uint64_t nr)
{
	return nr == 16 || nr > 32 ? VD_OTHER_REGISTERS : UINT64_C(1) << nr;
}

/*
 * Operands of each operation: digit: so many bytes; u and t: LEB128; b: a block; s: a block with its size in one byte;
 * e: the caller's register at the call of the function around. NULL: not understood.
 */
/* clang-format off */
static const char *const operands[256] = {
	[DW_OP_addr] = "8", [DW_OP_deref] = "", [DW_OP_const1u ... DW_OP_const1s] = "1",
	[DW_OP_const2u ... DW_OP_const2s] = "2", [DW_OP_const4u ... DW_OP_const4s] = "4",
	[DW_OP_const8u ... DW_OP_const8s] = "8", [DW_OP_constu ... DW_OP_consts] = "u",
	[DW_OP_dup ... DW_OP_over] = "", [DW_OP_pick] = "1", [DW_OP_swap ... DW_OP_plus] = "",
	[DW_OP_plus_uconst] = "u", [DW_OP_shl ... DW_OP_xor] = "", [DW_OP_bra] = "2",
	[DW_OP_eq ... DW_OP_ne] = "", [DW_OP_skip] = "2", [DW_OP_lit0 ... DW_OP_reg31] = "",
	[DW_OP_breg0 ... DW_OP_breg31] = "u", [DW_OP_regx ... DW_OP_fbreg] = "u",
	[DW_OP_bregx] = "uu", [DW_OP_piece] = "u", [DW_OP_deref_size ... DW_OP_xderef_size] = "1",
	[DW_OP_nop ... DW_OP_push_object_address] = "", [DW_OP_call_ref] = "4",
	[DW_OP_form_tls_address ... DW_OP_call_frame_cfa] = "", [DW_OP_bit_piece] = "uu",
	[DW_OP_implicit_value] = "b", [DW_OP_stack_value] = "", [DW_OP_implicit_pointer] = "4u",
	[DW_OP_addrx ... DW_OP_constx] = "u", [DW_OP_entry_value] = "e", [DW_OP_const_type] = "ts",
	[DW_OP_regval_type] = "ut", [DW_OP_deref_type] = "1t", [DW_OP_convert] = "t",
	[DW_OP_reinterpret] = "t", [DW_OP_GNU_push_tls_address] = "", [DW_OP_GNU_uninit] = "",
	[DW_OP_GNU_implicit_pointer] = "4u", [DW_OP_GNU_entry_value] = "e",
	[DW_OP_GNU_const_type] = "ts", [DW_OP_GNU_regval_type] = "ut",
	[DW_OP_GNU_deref_type] = "1t", [DW_OP_GNU_convert] = "t", [DW_OP_GNU_reinterpret] = "t",
	[DW_OP_GNU_addr_index ... DW_OP_GNU_const_index] = "u", [DW_OP_GNU_variable_value] = "4",
};
/* clang-format on */

/* Moves behind the operands of @op. Return: false: it is not understood. */
static bool skip_operands(uint8_t op, struct vf_cursor *c)
{
	uint64_t size;

	for (const char *o = operands[op]; o && *o; o++) {
		switch (*o) {
		case 'u':
		case 't': vf_cursor_skip_leb(c); break;
		case 'b': vf_cursor_skip(c, vf_cursor_uleb(c)); break;
		case 's': vf_cursor_skip(c, vf_cursor_fixed(c, 1)); break;
		case 'e':
			size = vf_cursor_uleb(c);
			vf_cursor_skip(c, size);
			if (size > ENTRY_VALUE_MAX)
				return false;
			break;
		default: vf_cursor_skip(c, (uint64_t)(*o - '0'));
		}
	}
	return operands[op] && !c->bad;
}

/* The registers on which an expression depends. @frame_base: those of the frame base. All: not understood. */
static uint64_t registers_of(struct vf_cursor c, uint64_t frame_base)
{
	uint64_t registers = 0;

	while (c.p < c.end && !c.bad) {
		uint8_t op = (uint8_t)vf_cursor_fixed(&c, 1);
		struct vf_cursor operands = c;

		if (op >= DW_OP_reg0 && op <= DW_OP_reg31)
			registers |= bit_of(op - DW_OP_reg0);
		else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
			registers |= bit_of(op - DW_OP_breg0);
		else if (op == DW_OP_regx || op == DW_OP_bregx || op == DW_OP_regval_type ||
			 op == DW_OP_GNU_regval_type)
			registers |= bit_of(vf_cursor_uleb(&operands));
		else if (op == DW_OP_fbreg)
			registers |= frame_base;
		else if (op == DW_OP_call_ref || op == DW_OP_implicit_pointer ||
			 op == DW_OP_GNU_implicit_pointer || op == DW_OP_GNU_variable_value)
			registers |= VD_KEPT_REGISTERS;
		if (!skip_operands(op, &c))
			return UINT64_MAX;
	}
	return c.bad ? UINT64_MAX : registers;
}

bool vd_has_one_location(const struct vd_unit *u, const struct vd_value *now, const uint8_t *expr,
			 uint64_t size)
{
	struct vd_list l = vd_list_open(u, true, vd_value_fixed(now));
	struct vd_range at;

	while (vd_list_next(&l, &at))
		if (at.anywhere || (uint64_t)(at.expr.end - at.expr.p) != size ||
		    memcmp(at.expr.p, expr, size))
			return false;
	return !l.c.bad;
}

/* ---- entries ------------------------------------------------------------------------------- */

struct scope {
	uint32_t depth; /* of the entries below */
	uint32_t first_range, nr_ranges;
	uint64_t frame_base; /* registers on which it depends */
};

struct walk {
	struct vd *vd;
	const struct vd_unit *u;
	bool added;
	uint32_t depth;
	struct scope *scopes; /* outer ones first */
	uint32_t nr_scopes, cap_scopes;
	struct vd_ranges ranges; /* of the scopes */
};

bool vd_is_call_site(const struct vd_entry *e)
{
	return e->abbrev->tag == DW_TAG_call_site || e->abbrev->tag == DW_TAG_call_site_parameter ||
	       e->abbrev->tag == DW_TAG_GNU_call_site ||
	       e->abbrev->tag == DW_TAG_GNU_call_site_parameter;
}

static uint64_t registers_of_value(const struct walk *w, const struct vd_value *v)
{
	uint64_t registers = 0, off;
	struct vd_range at;
	struct vd_list l;

	if (!v->p)
		return 0;
	if (vd_form_is_expression(v->form))
		return registers_of(vd_value_expression(v), 0);
	if (!vd_list_find(w->u, v, true, &off))
		return UINT64_MAX;
	for (l = vd_list_open(w->u, true, off); vd_list_next(&l, &at);)
		registers |= registers_of(at.expr, 0);
	return l.c.bad ? UINT64_MAX : registers;
}

static int refuse(const struct walk *w, const struct vd_entry *e)
{
	return vd_refuse(w->vd, e->off,
			 "a location depends on a register that code in place of a call changes");
}

/* Check what holds throughout the innermost scope. */
static int check_expression(const struct walk *w, const struct vd_entry *e, struct vf_cursor expr)
{
	const struct scope *s = w->nr_scopes ? &w->scopes[w->nr_scopes - 1] : NULL;
	uint64_t registers = s ? registers_of(expr, s->frame_base) : 0;

	for (uint32_t i = 0; registers && i < s->nr_ranges; i++) {
		const struct vf_range *r = &w->ranges.list[s->first_range + i];

		if (vd_any_changing(w->vd, r->start, r->end, registers))
			return refuse(w, e);
	}
	return 0;
}

/* Has the original's entry this value, too? Then the list is one of the original's, or none, if it is damaged. */
static bool is_old_value(const struct walk *w, const struct vd_value *v)
{
	const struct vd_section *o = &w->vd->o.info, *n = &w->vd->n.info;
	uint64_t off = v->p ? (uint64_t)(v->p - n->data) : UINT64_MAX;

	return !w->added && off <= o->size && v->size <= o->size - off &&
	       !memcmp(o->data + off, v->p, v->size);
}

static int check_list(const struct walk *w, const struct vd_entry *e, const struct vd_value *v)
{
	uint64_t frame_base = w->nr_scopes ? w->scopes[w->nr_scopes - 1].frame_base : 0, off;
	struct vd_range at;
	struct vd_list l;

	if (!vd_list_find(w->u, v, true, &off) ||
	    off < vd_list_section(&w->vd->o, w->u, true)->size || is_old_value(w, v))
		return 0;
	for (l = vd_list_open(w->u, true, off); vd_list_next(&l, &at);)
		if (at.anywhere || vd_any_changing(w->vd, at.start.off, at.end.off,
						   registers_of(at.expr, frame_base)))
			return refuse(w, e);
	return l.c.bad ? vd_refuse(w->vd, e->off, "its list of locations is damaged") : 0;
}

static int check_values(const struct walk *w, const struct vd_entry *e)
{
	struct vd_values v = vd_values_of(w->u, e);
	int ret = 0;

	if (vd_is_call_site(e))
		return 0;
	while (!ret && vd_values_next(&v)) {
		unsigned int name = v.attr->name, form = v.value.form;

		if ((name == DW_AT_location || name == DW_AT_frame_base) &&
		    (vd_value_is_offset(w->u, &v.value) || form == DW_FORM_loclistx))
			ret = check_list(w, e, &v.value);
		/* Variables use the frame base. */
		if (!ret && w->added && vd_form_is_expression(form) && name != DW_AT_frame_base &&
		    name != DW_AT_const_value)
			ret = check_expression(w, e, vd_value_expression(&v.value));
	}
	return ret;
}

/* Entries below @e are in its code, if it has any. */
static int open_scope(struct walk *w, const struct vd_entry *e)
{
	const struct scope *around = w->nr_scopes ? &w->scopes[w->nr_scopes - 1] : NULL;
	struct vd_value base = vd_entry_find(w->u, e, DW_AT_frame_base);
	struct scope scope = {.depth = w->depth, .frame_base = around ? around->frame_base : 0};
	int ret;

	if (e->abbrev->plain)
		return 0;
	ret = vd_entry_ranges(w->u, e, &w->vd->now);
	if (ret == -ENOMEM)
		return ret;
	if (ret || !w->vd->now.nr)
		return 0;
	if (e->abbrev->tag == DW_TAG_subprogram)
		scope.frame_base = registers_of_value(w, &base);
	scope.first_range = w->ranges.nr;
	scope.nr_ranges = w->vd->now.nr;
	for (uint32_t i = 0; i < w->vd->now.nr; i++)
		if (!vd_ranges_add(&w->ranges, w->vd->now.list[i].start, w->vd->now.list[i].end))
			return -ENOMEM;
	if (mp_grow(w->scopes, w->cap_scopes, w->nr_scopes + 1))
		return -ENOMEM;
	w->scopes[w->nr_scopes++] = scope;
	return 0;
}

static int check_entry(struct walk *w, const struct vd_entry *e)
{
	int ret;

	if (!e->abbrev) {
		w->depth -= w->depth > 0;
		while (w->nr_scopes && w->scopes[w->nr_scopes - 1].depth > w->depth)
			w->ranges.nr = w->scopes[--w->nr_scopes].first_range;
		return 0;
	}
	ret = e->abbrev->plain && !w->added ? 0 : check_values(w, e);
	if (ret || !e->abbrev->children)
		return ret;
	w->depth++;
	return open_scope(w, e);
}

int vd_check_locations(struct vd *vd, const struct vd_unit *unit, bool added)
{
	struct walk w = {.vd = vd, .u = unit, .added = added};
	struct vf_cursor c = vd_unit_at(unit, unit->first);
	struct vd_entry e;
	int ret = 0;

	while (vd->changing && !ret && c.p < c.end && vd_entry_read(unit, &c, &e))
		ret = check_entry(&w, &e);
	free(w.scopes);
	free(w.ranges.list);
	return ret;
}
