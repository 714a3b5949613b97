// SPDX-License-Identifier: Apache-2.0
/*
 * verify_debug_call - the entry of a call that the called function's code replaces.
 *
 * The rule: it describes exactly this code, in one range or two, once, in the function whose original has the call. It
 * leads to an entry
 * without code that the function's own entry leads to, or that has the same names or the same declaration. File, line
 * and column are those of a row that holds for the call in the original's line program.
 */
#include <dwarf.h>
#include <errno.h>

#include "editor/verify/debug/verify_debug_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

/* ---- the called functions ------------------------------------------------------------------ */

static int by_vaddr(const void *a, const void *b)
{
	const struct vd_callee *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* Index of the first one at or behind @vaddr. */
static uint32_t first_callee(const struct vd *vd, uint64_t vaddr)
{
	return mp_search(i, 0, vd->nr_callees, vd->callees[i].vaddr < vaddr);
}

static int collect_addresses(struct vd *vd)
{
	const struct mp_map *map = vd->code->map;
	struct vf_inlined_code code;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < map->nr_pieces; i++) {
		if (!vf_inlined_code_at(vd->code, i, &code))
			continue;
		if (mp_grow(vd->callees, vd->cap_callees, vd->nr_callees + 1))
			return -ENOMEM;
		vd->callees[vd->nr_callees++] = (struct vd_callee){.vaddr = code.callee};
	}
	if (vd->nr_callees)
		qsort(vd->callees, vd->nr_callees, sizeof(*vd->callees), by_vaddr);
	for (uint32_t i = 0; i < vd->nr_callees; i++)
		if (!nr || vd->callees[i].vaddr != vd->callees[nr - 1].vaddr)
			vd->callees[nr++] = vd->callees[i];
	vd->nr_callees = nr;
	return 0;
}

static bool any_callee(const struct vd *vd, const struct vd_ranges *ranges)
{
	for (uint32_t i = 0; i < ranges->nr; i++) {
		uint32_t k = first_callee(vd, ranges->list[i].start);

		if (k < vd->nr_callees && vd->callees[k].vaddr < ranges->list[i].end)
			return true;
	}
	return false;
}

/* The first entry that has the function's code counts. Return: is it this one? */
static bool note_callee(struct vd_callee *callee, const struct vd_unit *u, const struct vd_entry *e)
{
	struct vd_value origin = vd_entry_find(u, e, DW_AT_abstract_origin);
	struct vd_value declaration = vd_entry_find(u, e, DW_AT_specification);
	struct vd_value name = vd_entry_find(u, e, DW_AT_name);
	struct vd_value linkage = vd_entry_find(u, e, DW_AT_linkage_name);

	if (callee->abstract || callee->declaration || callee->name.form)
		return false;
	if (!linkage.p)
		linkage = vd_entry_find(u, e, DW_AT_MIPS_linkage_name);
	callee->abstract = vd_value_reference(u, &origin);
	callee->declaration = vd_value_reference(u, &declaration);
	callee->name = vd_value_name(u, &name);
	callee->linkage_name = vd_value_name(u, &linkage);
	callee->line_off = u->line_off;
	return true;
}

/* The place in a unit's entries, and the function that replaces calls whose entry is around. */
struct walk {
	struct vd *vd;
	const struct vd_unit *u;
	uint32_t depth;
	struct vd_callee *callee; /* NULL: none */
	uint32_t callee_depth;
	uint32_t scopes[VD_SCOPES_MAX]; /* depths of the scopes around */
	uint32_t nr_scopes;
};

static int note_function(struct walk *w, const struct vd_entry *e)
{
	struct vd *vd = w->vd;
	int ret;

	if (e->abbrev->tag != DW_TAG_subprogram || e->abbrev->plain)
		return 0;
	ret = vd_entry_ranges(w->u, e, &vd->was);
	for (uint32_t i = 0; i < vd->was.nr && !ret; i++) {
		uint32_t k = first_callee(vd, vd->was.list[i].start);

		if (k == vd->nr_callees || vd->callees[k].vaddr != vd->was.list[i].start ||
		    !note_callee(&vd->callees[k], w->u, e) || !e->abbrev->children)
			continue;
		w->callee = &vd->callees[k];
		w->callee->first_scope = vd->nr_scopes;
		w->callee_depth = w->depth;
		w->nr_scopes = 0;
	}
	return ret == -ENOMEM ? ret : 0;
}

static uint64_t number(const struct walk *w, const struct vd_entry *e, unsigned int name)
{
	struct vd_value v = vd_entry_find(w->u, e, name);

	return vd_value_number(&v);
}

static int note_scope(struct walk *w, const struct vd_entry *e)
{
	struct vd_value origin = vd_entry_find(w->u, e, DW_AT_abstract_origin);
	struct vd *vd = w->vd;
	struct vd_scope scope = {.depth = w->nr_scopes, .first_range = vd->scope_ranges.nr};
	int ret;

	if (e->abbrev->tag != DW_TAG_inlined_subroutine || w->callee->nr_scopes == VD_SCOPES_MAX)
		return 0;
	scope.origin = vd_value_reference(w->u, &origin);
	ret = vd_entry_ranges(w->u, e, &vd->was);
	if (ret || !scope.origin || !vd->was.nr)
		return ret == -ENOMEM ? ret : 0;
	scope.file = number(w, e, DW_AT_call_file);
	scope.line = number(w, e, DW_AT_call_line);
	scope.column = number(w, e, DW_AT_call_column);
	for (uint32_t i = 0; i < vd->was.nr; i++)
		if (!vd_ranges_add(&vd->scope_ranges, vd->was.list[i].start, vd->was.list[i].end))
			return -ENOMEM;
	scope.nr_ranges = vd->scope_ranges.nr - scope.first_range;
	if (mp_grow(vd->scopes, vd->cap_scopes, vd->nr_scopes + 1))
		return -ENOMEM;
	vd->scopes[vd->nr_scopes++] = scope;
	w->callee->nr_scopes++;
	if (e->abbrev->children)
		w->scopes[w->nr_scopes++] = w->depth;
	return 0;
}

static int read_functions(struct vd *vd, struct vd_unit *u)
{
	struct vf_cursor c = vd_unit_at(u, u->first);
	struct walk w = {.vd = vd, .u = u};
	struct vd_entry e;
	int ret = 0;

	while (!ret && c.p < c.end && vd_entry_read(u, &c, &e)) {
		if (e.abbrev) {
			ret = w.callee ? note_scope(&w, &e) : note_function(&w, &e);
			w.depth += e.abbrev->children;
			continue;
		}
		w.depth -= w.depth > 0;
		if (w.callee && w.depth <= w.callee_depth)
			w.callee = NULL;
		if (w.nr_scopes && w.depth <= w.scopes[w.nr_scopes - 1])
			w.nr_scopes--;
	}
	return ret;
}

static int read_unit(struct vd *vd, uint64_t off)
{
	struct vd_unit u;
	struct vf_cursor c;
	struct vd_entry own;
	int ret = vd_unit_open(vd, &vd->o, off, &u);

	if (!ret && vd_unit_read_bases(&u) && u.line_off != UINT64_MAX) {
		c = vd_unit_at(&u, u.first);
		if (vd_entry_read(&u, &c, &own) && own.abbrev)
			ret = vd_entry_ranges(&u, &own, &vd->was);
		if (!ret && any_callee(vd, &vd->was))
			ret = read_functions(vd, &u);
	}
	vd_unit_close(&u);
	/* A damaged unit knows no function. */
	return ret == -EBADMSG ? 0 : ret;
}

int vd_find_callees(struct vd *vd)
{
	int ret = collect_addresses(vd);

	for (uint64_t off = 0, next; !ret && off < vd->o.info.size; off = next) {
		next = vd_next_unit(&vd->o.info, off);
		if (!next)
			break;
		ret = read_unit(vd, off);
	}
	return ret;
}

/* ---- entries of calls ---------------------------------------------------------------------- */

static bool has_attrs(const struct vd_unit *u, const struct vd_abbrev *a, const uint16_t (*want)[2],
		      uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		if (a->nr_attrs != nr || vd_attr(u, a, i)->name != want[i][0] ||
		    vd_attr(u, a, i)->form != want[i][1])
			return false;
	return true;
}

/* Has an entry of an inlined call these attributes, and one range? */
static bool has_range(const struct vd_unit *u, const struct vd_abbrev *a)
{
	static const uint16_t attrs[][2] = {
		{DW_AT_abstract_origin, DW_FORM_ref_addr},
		{DW_AT_low_pc, DW_FORM_addr},
		{DW_AT_high_pc, DW_FORM_addr},
		{DW_AT_call_file, DW_FORM_udata},
		{DW_AT_call_line, DW_FORM_udata},
		{DW_AT_call_column, DW_FORM_udata},
	};

	return a->tag == DW_TAG_inlined_subroutine &&
	       has_attrs(u, a, attrs, sizeof(attrs) / sizeof(attrs[0]));
}

static bool has_list(const struct vd_unit *u, const struct vd_abbrev *a)
{
	const uint16_t attrs[][2] = {
		{DW_AT_abstract_origin, DW_FORM_ref_addr},
		{DW_AT_ranges, u->version >= 4 ? DW_FORM_sec_offset : DW_FORM_data4},
		{DW_AT_call_file, DW_FORM_udata},
		{DW_AT_call_line, DW_FORM_udata},
		{DW_AT_call_column, DW_FORM_udata},
	};

	return a->tag == DW_TAG_inlined_subroutine &&
	       has_attrs(u, a, attrs, sizeof(attrs) / sizeof(attrs[0]));
}

/* Read the entry @e, of either kind, but its ranges. */
static bool read_entry(const struct vd_unit *u, const struct vd_entry *e, struct vd_call *call)
{
	struct vf_cursor c = vf_cursor_over(e->values, e->end);

	*call = (struct vd_call){.off = e->off};
	if (!has_range(u, e->abbrev) && !has_list(u, e->abbrev))
		return false;
	call->origin = vf_cursor_fixed(&c, 4);
	vf_cursor_skip(&c, has_list(u, e->abbrev) ? 4 : 16);
	call->file = vf_cursor_uleb(&c);
	call->line = vf_cursor_uleb(&c);
	call->column = vf_cursor_uleb(&c);
	return !c.bad;
}

/* Is [@start, @end) within the code of @call? */
static bool is_within(const struct vd_call *call, uint64_t start, uint64_t end)
{
	return (start >= call->low && end <= call->high) ||
	       (start >= call->apart && end <= call->apart_end);
}

/* Is all code at vd->now that of @scope, in place of @call? */
static bool is_code_of(const struct vd *vd, const struct vd_call *call,
		       const struct vd_scope *scope)
{
	const struct vd_ranges was = {.list = vd->scope_ranges.list + scope->first_range,
				      .nr = scope->nr_ranges};

	for (uint32_t i = 0; i < vd->now.nr; i++) {
		const struct vf_range *r = &vd->now.list[i];

		if (!is_within(call, r->start, r->end) ||
		    !vd_ranges_hold(vd, &was, mp_map_original(vd->code->map, r->start)))
			return false;
	}
	return vd->now.nr;
}

/*
 * Check @e, the entry of code that the compiler inlined into the called function. *@next: the function's scope that
 * may come first; moves behind the one of @e.
 */
static int check_scope(struct vd_added *x, const struct vd_entry *e, const struct vd_call *call,
		       uint32_t depth, uint32_t *next)
{
	struct vd *vd = x->vd;
	const struct vd_callee *callee = &vd->callees[first_callee(vd, call->callee)];
	struct vd_call inner;
	int ret = 0;

	if (read_entry(&x->unit, e, &inner))
		ret = vd_entry_ranges(&x->unit, e, &vd->now);
	else
		vd->now.nr = 0;
	if (ret == -ENOMEM)
		return ret;
	for (; !ret && *next < callee->nr_scopes; (*next)++) {
		const struct vd_scope *scope = &vd->scopes[callee->first_scope + *next];

		if (scope->depth != depth || scope->line != inner.line ||
		    scope->column != inner.column ||
		    (callee->line_off == x->o.line_off && scope->file != inner.file) ||
		    !is_code_of(vd, call, scope))
			continue;
		(*next)++;
		return vd_add_reference(x, scope->origin, inner.origin);
	}
	return vd_refuse(vd, e->off, "an added entry is none of the called function's");
}

/* Read the entries below that of @call. */
static int read_scopes(struct vd_added *x, const struct vd_call *call)
{
	uint32_t depth = 0, next = 0;

	for (;;) {
		struct vd_entry e;
		int ret;

		if (!vd_entry_read(&x->unit, &x->c, &e))
			return vd_refuse(x->vd, call->off,
					 "an added unit is damaged behind this entry");
		if (!e.abbrev) {
			if (!depth--)
				return 0;
			continue;
		}
		ret = check_scope(x, &e, call, depth, &next);
		if (ret)
			return ret;
		depth += e.abbrev->children;
	}
}

/* Is all of the code from @at to @end one jump? */
static bool is_jump(const struct vf *vf, uint64_t at, uint64_t end)
{
	const uint8_t *b = at < end ? mp_elf_bytes(vf->n, at, end - at) : NULL;
	struct vf_insn insn;

	return b && vf_decode(b, end - at, at, &insn) && insn.kind == VF_JMP &&
	       insn.len == end - at;
}

/*
 * Finds the code that the entry covers: without the jump to what is behind the call, if there is one.
 * Code of another replaced call before it may be empty.
 */
static bool find_code(const struct vd *vd, const struct vd_call *call, struct vf_inlined_code *code)
{
	const struct vf *vf = vd->code;

	for (uint32_t i = vf_first_piece(vf, call->low);
	     i < vf->map->nr_pieces && vf->map->pieces[i].new_vaddr == call->low &&
	     vd_spend(vd->work, 1);
	     i++)
		if (vf_inlined_code_at(vf, i, code) &&
		    (code->end == call->high || is_jump(vf, call->high, code->end)))
			return true;
	return false;
}

/* Set @call->apart to the parts of @code that lie apart. Return: false: they are not in one piece. */
static bool find_apart(const struct vd *vd, const struct vf_inlined_code *code,
		       struct vd_call *call)
{
	const struct vf *vf = vd->code;
	uint64_t size = 0;

	call->apart = UINT64_MAX;
	call->apart_end = 0;
	for (uint32_t i = code->piece; i; i = vf->index.inlined[i].next) {
		const struct mp_map_piece *p = &vf->map->pieces[i];

		if (!vf_lies_apart(vf, p))
			continue;
		if (p->new_vaddr < call->apart)
			call->apart = p->new_vaddr;
		if (p->new_vaddr + p->new_size > call->apart_end)
			call->apart_end = p->new_vaddr + p->new_size;
		size += p->new_size;
	}
	return !size || call->apart_end - call->apart == size;
}

/* Find the code that the entry @e covers. Return: 0, -ENOMEM, -EBADMSG: it is not that of a replaced call. */
static int cover(struct vd_added *x, const struct vd_entry *e, struct vd_call *call,
		 struct vf_inlined_code *code)
{
	const struct vd_ranges *ranges = &x->vd->now;
	int ret = vd_entry_ranges(&x->unit, e, &x->vd->now);

	if (ret || !ranges->nr)
		return ret ? ret : -EBADMSG;
	call->low = ranges->list[0].start;
	call->high = ranges->list[0].end;
	if (!find_code(x->vd, call, code) || !find_apart(x->vd, code, call))
		return -EBADMSG;
	if (call->apart_end <= call->apart)
		return ranges->nr == 1 ? 0 : -EBADMSG;
	return ranges->nr == 2 && ranges->list[1].start == call->apart &&
			       ranges->list[1].end == call->apart_end
		       ? 0
		       : -EBADMSG;
}

int vd_read_call(struct vd_added *x, const struct vd_entry *e)
{
	struct vd *vd = x->vd;
	struct vf_inlined_code code;
	struct vd_call call;
	uint32_t k;
	int ret;

	if (!read_entry(&x->unit, e, &call))
		return vd_refuse(vd, e->off, "an added entry is not that of a replaced call");
	ret = cover(x, e, &call, &code);
	if (ret)
		return ret == -ENOMEM ? ret
				      : vd_refuse(vd, e->off,
						  "an added entry does not cover the code of a "
						  "replaced call");
	if (vd->described[code.piece])
		return vd_refuse(vd, e->off, "a replaced call has two entries");
	vd->described[code.piece] = 1;
	if (!vd_ranges_hold(vd, &x->function, code.call))
		return vd_refuse(vd, e->off, "a replaced call is in another function");
	k = first_callee(vd, code.callee);
	if (k == vd->nr_callees || vd->callees[k].vaddr != code.callee)
		return vd_refuse(vd, e->off, "the called function has no entry");
	call.call = code.call;
	call.callee = code.callee;
	if (mp_grow(x->calls, x->cap_calls, x->nr_calls + 1))
		return -ENOMEM;
	x->calls[x->nr_calls++] = call;
	return e->abbrev->children ? read_scopes(x, &call) : 0;
}

static bool same_name(const struct vd_name *a, const struct vd_name *b)
{
	return a->form == b->form && a->off == b->off &&
	       (a->form != DW_FORM_string || !strcmp(a->text, b->text));
}

/* Does the call lead to an entry of the called function? */
static bool leads_to(const struct vd_added *x, const struct vd_call *call)
{
	uint32_t k = first_callee(x->vd, call->callee);
	const struct vd_callee *callee = &x->vd->callees[k];

	if (k == x->vd->nr_callees || callee->vaddr != call->callee)
		return false;
	for (uint32_t i = 0; i < x->nr_origins && vd_spend(x->vd->work, 1); i++) {
		const struct vd_origin *o = &x->origins[i];

		if (o->off != call->origin)
			continue;
		if (o->declaration)
			return o->declaration == callee->declaration;
		return callee->name.form && same_name(&o->name, &callee->name) &&
		       same_name(&o->linkage_name, &callee->linkage_name);
	}
	if (!callee->abstract)
		return false;
	for (uint32_t i = 0; i < x->nr_copied && vd_spend(x->vd->work, 1); i++)
		if (x->copied[i].now == call->origin)
			return x->copied[i].old == callee->abstract;
	return callee->abstract == call->origin;
}

static int by_call(const void *a, const void *b)
{
	const struct vd_call *x = a, *y = b;

	return x->call < y->call ? -1 : x->call > y->call;
}

int vd_check_calls(struct vd_added *x)
{
	int ret = 0;

	for (uint32_t i = 0; i < x->nr_calls; i++)
		if (!leads_to(x, &x->calls[i]))
			return vd_refuse(x->vd, x->calls[i].off,
					 "a replaced call leads to another function's entry");
	if (x->nr_calls)
		qsort(x->calls, x->nr_calls, sizeof(*x->calls), by_call);
	if (x->o.line_off != UINT64_MAX)
		ret = vd_line_compare(x->vd, x->o.line_off, x->calls, x->nr_calls);
	if (ret)
		return ret == -ENOMEM ? ret
				      : vd_refuse(x->vd, x->o.off,
						  "the lines of replaced calls cannot be read");
	for (uint32_t i = 0; i < x->nr_calls; i++) {
		const struct vd_call *call = &x->calls[i];

		if (call->seen ? !call->good : call->file | call->line | call->column)
			return vd_refuse(x->vd, call->off,
					 "a replaced call has another place in the source");
	}
	return 0;
}
