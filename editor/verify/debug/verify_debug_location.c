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

/* A longer expression for a value at the function's entry is not understood. */
#define ENTRY_VALUE_MAX 16

/* ---- expressions --------------------------------------------------------------------------- */

bool vd_form_is_expression(unsigned int form)
{
	return form == DW_FORM_exprloc || form == DW_FORM_block || form == DW_FORM_block1 ||
	       form == DW_FORM_block2 || form == DW_FORM_block4;
}

struct vd_cursor vd_value_expression(const struct vd_value *v)
{
	struct vd_cursor c = {v->p, v->p + v->size, false};

	switch (v->form) {
	case DW_FORM_block1: vd_skip(&c, 1); break;
	case DW_FORM_block2: vd_skip(&c, 2); break;
	case DW_FORM_block4: vd_skip(&c, 4); break;
	default: vd_uleb(&c); break;
	}
	return c;
}

static uint64_t bit_of(uint64_t nr)
{
	return nr == 16 || nr > 32 ? VD_OTHER_REGISTERS : UINT64_C(1) << nr;
}

static void skip_uleb(struct vd_cursor *c)
{
	while (!c->bad && vd_fixed(c, 1) & 0x80)
		;
}

/* Moves behind the operands of @op. Return: false: it is not understood. */
static bool skip_operands(uint8_t op, struct vd_cursor *c)
{
	uint64_t size;

	if (op == DW_OP_addr || op == DW_OP_const8u || op == DW_OP_const8s) {
		vd_skip(c, 8);
	} else if (op == DW_OP_const4u || op == DW_OP_const4s || op == DW_OP_call_ref ||
		   op == DW_OP_GNU_variable_value) {
		vd_skip(c, 4);
	} else if (op == DW_OP_const2u || op == DW_OP_const2s || op == DW_OP_bra ||
		   op == DW_OP_skip) {
		vd_skip(c, 2);
	} else if (op == DW_OP_const1u || op == DW_OP_const1s || op == DW_OP_pick ||
		   op == DW_OP_deref_size || op == DW_OP_xderef_size) {
		vd_skip(c, 1);
	} else if ((op >= DW_OP_breg0 && op <= DW_OP_breg31) || op == DW_OP_constu ||
		   op == DW_OP_consts || op == DW_OP_plus_uconst) {
		skip_uleb(c);
	} else if (op < DW_OP_addr || op > DW_OP_xor) {
		switch (op) {
		case DW_OP_deref_type:
		case DW_OP_GNU_deref_type:
			vd_skip(c, 1);
			skip_uleb(c);
			break;
		case DW_OP_bregx:
		case DW_OP_bit_piece:
		case DW_OP_regval_type:
		case DW_OP_GNU_regval_type:
			skip_uleb(c);
			skip_uleb(c);
			break;
		case DW_OP_regx:
		case DW_OP_fbreg:
		case DW_OP_piece:
		case DW_OP_addrx:
		case DW_OP_constx:
		case DW_OP_GNU_addr_index:
		case DW_OP_GNU_const_index:
		case DW_OP_convert:
		case DW_OP_GNU_convert:
		case DW_OP_reinterpret:
		case DW_OP_GNU_reinterpret: skip_uleb(c); break;
		case DW_OP_implicit_value: vd_skip(c, vd_uleb(c)); break;
		case DW_OP_implicit_pointer:
		case DW_OP_GNU_implicit_pointer:
			vd_skip(c, 4);
			skip_uleb(c);
			break;
		/* The caller's register at the call of the function around. */
		case DW_OP_entry_value:
		case DW_OP_GNU_entry_value:
			size = vd_uleb(c);
			vd_skip(c, size);
			return size <= ENTRY_VALUE_MAX;
		case DW_OP_const_type:
		case DW_OP_GNU_const_type:
			skip_uleb(c);
			vd_skip(c, vd_fixed(c, 1));
			break;
		case DW_OP_push_object_address:
		case DW_OP_form_tls_address:
		case DW_OP_GNU_push_tls_address:
		case DW_OP_call_frame_cfa:
		case DW_OP_nop:
		case DW_OP_stack_value:
		case DW_OP_GNU_uninit: break;
		default: return op >= DW_OP_eq && op <= DW_OP_reg31;
		}
	}
	return !c->bad;
}

/* The registers on which an expression depends. @frame_base: those of the frame base. All: not understood. */
static uint64_t registers_of(struct vd_cursor c, uint64_t frame_base)
{
	uint64_t registers = 0;

	while (c.p < c.end && !c.bad) {
		uint8_t op = (uint8_t)vd_fixed(&c, 1);
		struct vd_cursor operands = c;

		if (op >= DW_OP_reg0 && op <= DW_OP_reg31)
			registers |= bit_of(op - DW_OP_reg0);
		else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
			registers |= bit_of(op - DW_OP_breg0);
		else if (op == DW_OP_regx || op == DW_OP_bregx || op == DW_OP_regval_type ||
			 op == DW_OP_GNU_regval_type)
			registers |= bit_of(vd_uleb(&operands));
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

/* ---- lists --------------------------------------------------------------------------------- */

/* One entry of a list. */
struct place {
	uint64_t start, end; /* not @bounded: none */
	bool bounded, last;
	struct vd_cursor expr; /* p is NULL: a base address */
};

struct list {
	const struct vd_unit *u;
	struct vd_cursor c;
	uint64_t base;
};

static uint64_t indexed(struct list *l)
{
	const uint8_t *p = l->c.p;
	struct vd_value v;
	uint64_t address = 0;

	skip_uleb(&l->c);
	v = (struct vd_value){p, (uint64_t)(l->c.p - p), DW_FORM_addrx, 0};
	if (!l->c.bad && !vd_address(l->u, &v, &address))
		l->c.bad = true;
	return address;
}

static void next_pair(struct list *l, struct place *at)
{
	at->start = vd_fixed(&l->c, 8);
	at->end = vd_fixed(&l->c, 8);
	at->last = !at->start && !at->end;
	if (at->last)
		return;
	if (at->start == UINT64_MAX) {
		l->base = at->end;
		return;
	}
	at->start += l->base;
	at->end += l->base;
	at->bounded = true;
	at->expr = l->c;
	vd_skip(&at->expr, 2);
	vd_skip(&l->c, vd_fixed(&l->c, 2));
	at->expr.end = l->c.p;
}

static void next_place(struct list *l, struct place *at)
{
	struct vd_cursor *c = &l->c;

	at->bounded = true;
	switch (vd_fixed(c, 1)) {
	case DW_LLE_end_of_list: at->last = true; return;
	case DW_LLE_base_addressx:
		l->base = indexed(l);
		at->bounded = false;
		return;
	case DW_LLE_base_address:
		l->base = vd_fixed(c, 8);
		at->bounded = false;
		return;
	case DW_LLE_startx_endx:
		at->start = indexed(l);
		at->end = indexed(l);
		break;
	case DW_LLE_startx_length:
		at->start = indexed(l);
		at->end = at->start + vd_uleb(c);
		break;
	case DW_LLE_offset_pair:
		at->start = l->base + vd_uleb(c);
		at->end = l->base + vd_uleb(c);
		break;
	case DW_LLE_default_location: at->bounded = false; break;
	case DW_LLE_start_end:
		at->start = vd_fixed(c, 8);
		at->end = vd_fixed(c, 8);
		break;
	case DW_LLE_start_length:
		at->start = vd_fixed(c, 8);
		at->end = at->start + vd_uleb(c);
		break;
	default: c->bad = true; return;
	}
	at->expr = *c;
	vd_uleb(&at->expr);
	vd_skip(c, vd_uleb(c));
	at->expr.end = c->p;
}

/* Return: false: the list has no further entry, or is damaged. */
static bool next(struct list *l, struct place *at)
{
	*at = (struct place){0};
	if (l->u->version >= 5)
		next_place(l, at);
	else
		next_pair(l, at);
	return !l->c.bad && !at->last;
}

static const struct vd_section *section_of(const struct vd_file *f, const struct vd_unit *u)
{
	return u->version >= 5 ? &f->loclists : &f->loc;
}

/* Finds the list that @v names. Return: false: there is none. */
static bool find_list(const struct vd_unit *u, const struct vd_value *v, uint64_t *off)
{
	const struct vd_section *s = section_of(u->file, u);
	struct vd_cursor c = {v->p, v->p ? v->p + v->size : NULL, false};
	uint64_t nr;

	*off = vd_value_fixed(v);
	if (vd_value_is_offset(u, v))
		return true;
	if (v->form != DW_FORM_loclistx || u->loclists_base > s->size || u->loclists_base < 4)
		return false;
	nr = vd_uleb(&c);
	c = vd_cursor_at(s, u->loclists_base - 4);
	if (nr >= vd_fixed(&c, 4))
		return false;
	vd_skip(&c, 4 * nr);
	*off = u->loclists_base + vd_fixed(&c, 4);
	return !c.bad;
}

static struct list open_list(const struct vd_unit *u, uint64_t off)
{
	return (struct list){u, vd_cursor_at(section_of(u->file, u), off), u->base};
}

bool vd_has_one_location(const struct vd_unit *u, const struct vd_value *now, const uint8_t *expr,
			 uint64_t size)
{
	struct list l = open_list(u, vd_value_fixed(now));
	struct place at;

	while (next(&l, &at))
		if (at.expr.p && (!at.bounded || (uint64_t)(at.expr.end - at.expr.p) != size ||
				  memcmp(at.expr.p, expr, size)))
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
	struct place at;
	struct list l;

	if (!v->p)
		return 0;
	if (vd_form_is_expression(v->form))
		return registers_of(vd_value_expression(v), 0);
	if (!find_list(w->u, v, &off))
		return UINT64_MAX;
	for (l = open_list(w->u, off); next(&l, &at);)
		if (at.expr.p)
			registers |= registers_of(at.expr, 0);
	return l.c.bad ? UINT64_MAX : registers;
}

static int refuse(const struct walk *w, const struct vd_entry *e)
{
	return vd_refuse(w->vd, e->off,
			 "a location depends on a register that code in place of a call changes");
}

/* Check what holds throughout the innermost scope. */
static int check_expression(const struct walk *w, const struct vd_entry *e, struct vd_cursor expr)
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
	struct place at;
	struct list l;

	if (!find_list(w->u, v, &off) || off < section_of(&w->vd->o, w->u)->size ||
	    is_old_value(w, v))
		return 0;
	for (l = open_list(w->u, off); next(&l, &at);) {
		if (!at.expr.p)
			continue;
		if (!at.bounded ||
		    vd_any_changing(w->vd, at.start, at.end, registers_of(at.expr, frame_base)))
			return refuse(w, e);
	}
	return l.c.bad ? vd_refuse(w->vd, e->off, "its list of locations is damaged") : 0;
}

static int check_values(const struct walk *w, const struct vd_entry *e)
{
	struct vd_cursor c = {e->values, e->end, false};
	int ret = 0;

	if (vd_is_call_site(e))
		return 0;
	for (uint32_t i = 0; i < e->abbrev->nr_attrs && !ret; i++) {
		const struct vd_attr *attr = vd_attr(w->u, e->abbrev, i);
		struct vd_value v = {c.p, 0, attr->form, attr->value};

		vd_skip_form(&c, attr->form, w->u->version);
		v.size = (uint64_t)(c.p - v.p);
		if (attr->name == DW_AT_location || attr->name == DW_AT_frame_base) {
			if (vd_value_is_offset(w->u, &v) || v.form == DW_FORM_loclistx)
				ret = check_list(w, e, &v);
		}
		/* Variables use the frame base. */
		if (!ret && w->added && vd_form_is_expression(v.form) &&
		    attr->name != DW_AT_frame_base && attr->name != DW_AT_const_value)
			ret = check_expression(w, e, vd_value_expression(&v));
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
	if (!vd_grow(&w->scopes, w->nr_scopes, &w->cap_scopes, sizeof(*w->scopes)))
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
	struct vd_cursor c = vd_unit_at(unit, unit->first);
	struct vd_entry e;
	int ret = 0;

	while (vd->changing && !ret && c.p < c.end && vd_entry_read(unit, &c, &e))
		ret = check_entry(&w, &e);
	free(w.scopes);
	free(w.ranges.list);
	return ret;
}
