// SPDX-License-Identifier: Apache-2.0
/*
 * verify_debug_added - a unit of the output that the original lacks.
 *
 * The rule: it begins like a unit of the original, up to that unit's base types. Behind them are entries that stand
 * for called functions, and then copies of those functions of that unit that have no code now, in their order and in
 * their namespaces. verify_debug_copy says what a copy may have more.
 */
#include <dwarf.h>
#include <errno.h>

#include "editor/verify/debug/verify_debug_private.h"
#include "libprof/base/grow.h"

/* Functions in more namespaces do not move. */
#define PARENTS_MAX 4

static int damaged(const struct vd_added *x)
{
	return vd_refuse(x->vd, (uint64_t)(x->c.p - x->vd->n.info.data),
			 "an added unit is damaged");
}

/* ---- the beginning ------------------------------------------------------------------------- */

static bool same_declaration(const struct vd_unit *a, const struct vd_abbrev *x,
			     const struct vd_unit *b, const struct vd_abbrev *y)
{
	if (x->tag != y->tag || x->children != y->children || x->nr_attrs != y->nr_attrs)
		return false;
	for (uint32_t i = 0; i < x->nr_attrs; i++)
		if (!vd_same_attr(vd_attr(a, x, i), vd_attr(b, y, i)))
			return false;
	return true;
}

/* Where the added unit's own lists and lines are. */
static bool is_own(unsigned int name)
{
	return name == DW_AT_ranges || name == DW_AT_rnglists_base || name == DW_AT_stmt_list;
}

/* Is @e the entry @old of the output's old unit, at the same place, but for lists and lines? */
static bool same_entry(const struct vd_added *x, const struct vd_entry *old,
		       const struct vd_entry *e)
{
	struct vd_values a, b;

	if (!old->abbrev || !e->abbrev || old->off - x->n.off != e->off - x->unit.off ||
	    old->abbrev->code != e->abbrev->code ||
	    !same_declaration(&x->n, old->abbrev, &x->unit, e->abbrev))
		return false;
	a = vd_values_of(&x->n, old);
	b = vd_values_of(&x->unit, e);
	while (vd_values_next(&a) && vd_values_next(&b))
		if (a.value.size != b.value.size ||
		    (!is_own(b.attr->name) && memcmp(a.value.p, b.value.p, a.value.size)))
			return false;
	return true;
}

/* Does the added unit begin like the unit x->n? */
static bool begins_like(struct vd_added *x)
{
	const uint8_t *data = x->vd->n.info.data;
	const struct vd_unit *u = &x->unit;
	uint64_t from = 4, to = u->abbrev_field - u->off;
	struct vf_cursor c = vd_unit_at(&x->n, x->n.first);
	struct vd_entry old, e;

	x->c = vd_unit_at(u, u->first);
	return x->n.version == u->version && x->n.type == u->type &&
	       x->n.first - x->n.off == u->first - u->off &&
	       !memcmp(data + x->n.off + from, data + u->off + from, to - from) &&
	       vd_entry_read(&x->n, &c, &old) && vd_entry_read(u, &x->c, &e) &&
	       same_entry(x, &old, &e);
}

static int open_pair(struct vd_added *x, uint64_t off)
{
	int ret = vd_unit_open(x->vd, &x->vd->n, off, &x->n);

	if (!ret && begins_like(x)) {
		ret = vd_unit_open(x->vd, &x->vd->o, off, &x->o);
		if (!ret && vd_unit_read_bases(&x->o) && vd_unit_read_bases(&x->n) &&
		    vd_unit_read_bases(&x->unit) && x->unit.line_off >= x->vd->o.line.size &&
		    vd_line_is_program(x->vd, &x->vd->n, x->unit.line_off)) {
			x->n.base = x->unit.base = x->o.base;
			return ret;
		}
		vd_unit_close(&x->o);
	}
	vd_unit_close(&x->n);
	return ret == -ENOMEM ? ret : -ENOENT;
}

/* Find the unit that the functions come from. Added units have the order of the old ones. */
static int find_old(struct vd_added *x)
{
	struct vd *vd = x->vd;
	int ret = -ENOENT;

	while (ret == -ENOENT && vd->next_unit < vd->o.info.size) {
		uint64_t off = vd->next_unit, next = vd_next_unit(&vd->o.info, off);

		if (!next)
			break;
		if (memcmp(vd->o.info.data + off, vd->n.info.data + off, next - off))
			ret = open_pair(x, off);
		vd->next_unit = next;
	}
	return ret == -ENOENT
		       ? vd_refuse(vd, x->unit.off, "an added unit is like no unit of the original")
		       : ret;
}

/* Base types have the same offsets in both units. Return: false: they do not. */
static bool skip_base_types(struct vd_added *x)
{
	struct vf_cursor c = vd_unit_at(&x->n, x->n.first);
	struct vd_entry old, e;

	if (!vd_entry_read(&x->n, &c, &old))
		return false;
	while (c.p < c.end && vd_entry_read(&x->n, &c, &old) && old.abbrev &&
	       old.abbrev->tag == DW_TAG_base_type && !old.abbrev->children)
		if (!vd_entry_read(&x->unit, &x->c, &e) || !same_entry(x, &old, &e))
			return false;
	return true;
}

/* ---- entries that stand for called functions ----------------------------------------------- */

static bool is_origin(const struct vd_unit *u, const struct vd_entry *e)
{
	struct vd_value inlined = vd_entry_find(u, e, DW_AT_inline);
	struct vd_value name = vd_entry_find(u, e, DW_AT_name);
	struct vd_value linkage = vd_entry_find(u, e, DW_AT_linkage_name);
	struct vd_value declaration = vd_entry_find(u, e, DW_AT_specification);

	if (!linkage.p)
		linkage = vd_entry_find(u, e, DW_AT_MIPS_linkage_name);
	return e->abbrev && e->abbrev->tag == DW_TAG_subprogram && !e->abbrev->children &&
	       inlined.p && inlined.size == 1 && *inlined.p == DW_INL_inlined &&
	       e->abbrev->nr_attrs == 1u + !!name.p + !!linkage.p + !!declaration.p &&
	       !name.p == !!declaration.p;
}

static int read_origins(struct vd_added *x)
{
	for (;;) {
		struct vf_cursor before = x->c;
		struct vd_origin *origin;
		struct vd_value v;
		struct vd_entry e;

		if (!vd_entry_read(&x->unit, &x->c, &e))
			return damaged(x);
		if (!is_origin(&x->unit, &e)) {
			x->c = before;
			return 0;
		}
		if (mp_grow(x->origins, x->cap_origins, x->nr_origins + 1))
			return -ENOMEM;
		origin = &x->origins[x->nr_origins++];
		origin->off = e.off;
		v = vd_entry_find(&x->unit, &e, DW_AT_specification);
		origin->declaration = vd_value_reference(&x->unit, &v);
		v = vd_entry_find(&x->unit, &e, DW_AT_name);
		origin->name = vd_value_name(&x->unit, &v);
		v = vd_entry_find(&x->unit, &e, DW_AT_linkage_name);
		if (!v.p)
			v = vd_entry_find(&x->unit, &e, DW_AT_MIPS_linkage_name);
		origin->linkage_name = vd_value_name(&x->unit, &v);
	}
}

/* ---- functions ----------------------------------------------------------------------------- */

/* Has the function at @e code in the original, and none in the output's old unit? */
static int has_moved(struct vd_added *x, const struct vd_entry *e, bool *moved)
{
	struct vf_cursor c = vd_unit_at(&x->n, e->off);
	struct vd_entry now;
	int ret = vd_entry_ranges(&x->o, e, &x->vd->was);

	*moved = false;
	if (ret || !x->vd->was.nr)
		return ret == -ENOMEM ? ret : 0;
	if (!vd_entry_read(&x->n, &c, &now))
		return damaged(x);
	ret = vd_entry_ranges(&x->n, &now, &x->vd->now);
	*moved = !ret && !x->vd->now.nr;
	return ret == -ENOMEM ? ret : 0;
}

/* Check the copy of the function at @off, with the namespaces around it. */
static int check_within(struct vd_added *x, uint64_t off, const struct vd_entry *parents,
			uint32_t nr)
{
	struct vd_entry e;
	int ret = 0;

	for (uint32_t i = 0; i < nr && !ret; i++) {
		if (!vd_entry_read(&x->unit, &x->c, &e))
			return damaged(x);
		ret = vd_check_copy(x, &parents[i], &e);
	}
	if (!ret)
		ret = vd_check_function(x, off);
	for (uint32_t i = 0; i < nr && !ret; i++)
		if (!vd_entry_read(&x->unit, &x->c, &e) || e.abbrev)
			ret = damaged(x);
	x->vd->nr_moved++;
	return ret;
}

/* Walk over the old unit, and check the copies of all functions that moved. */
static int check_functions(struct vd_added *x)
{
	struct vf_cursor c = vd_unit_at(&x->o, x->o.first);
	struct vd_entry parents[PARENTS_MAX], e;
	uint32_t depth = 0, nr_parents = 0;
	bool moved;

	do {
		int ret;

		if (!vd_entry_read(&x->o, &c, &e))
			return damaged(x);
		if (!e.abbrev) {
			depth--;
			if (nr_parents >= depth)
				nr_parents = depth ? depth - 1 : 0;
			continue;
		}
		if (e.abbrev->tag == DW_TAG_subprogram && depth == 1 + nr_parents) {
			ret = has_moved(x, &e, &moved);
			if (!ret && moved)
				ret = check_within(x, e.off, parents, nr_parents);
			if (ret)
				return ret;
		}
		if (e.abbrev->children && e.abbrev->tag == DW_TAG_namespace &&
		    depth == 1 + nr_parents && nr_parents < PARENTS_MAX)
			parents[nr_parents++] = e;
		depth += e.abbrev->children;
	} while (depth && c.p < c.end);
	return 0;
}

/* ---- the unit ------------------------------------------------------------------------------ */

static int by_old(const void *a, const void *b)
{
	const struct vd_pair *x = a, *y = b;

	return x->old < y->old ? -1 : x->old > y->old;
}

/* References lead where they led, or to the copy. */
static int check_references(struct vd_added *x)
{
	if (x->nr_copied)
		qsort(x->copied, x->nr_copied, sizeof(*x->copied), by_old);
	for (uint32_t i = 0; i < x->nr_references; i++) {
		const struct vd_pair *r = &x->references[i];
		const struct vd_pair *copy =
			x->nr_copied ? bsearch(r, x->copied, x->nr_copied, sizeof(*r), by_old)
				     : NULL;

		if (r->now != (copy ? copy->now : r->old))
			return vd_refuse(x->vd, r->now, "a reference leads to another entry");
	}
	return 0;
}

/* The unit has the code of its functions, and no other. */
static int check_code(struct vd_added *x)
{
	struct vf_cursor c = vd_unit_at(&x->unit, x->unit.first);
	struct vd_ranges *own = &x->vd->now;
	struct vd_entry e;
	int ret = vd_entry_read(&x->unit, &c, &e) ? vd_entry_ranges(&x->unit, &e, own) : -EBADMSG;

	if (ret == -ENOMEM)
		return ret;
	vd_ranges_join(own);
	vd_ranges_join(&x->code);
	if (ret || own->nr != x->code.nr ||
	    (own->nr && memcmp(own->list, x->code.list, own->nr * sizeof(*own->list))))
		return vd_refuse(x->vd, x->unit.off,
				 "an added unit has other code than its functions");
	return 0;
}

static int check_unit(struct vd_added *x)
{
	struct vd_entry e;
	int ret = find_old(x);

	if (ret)
		return ret;
	if (!skip_base_types(x))
		return damaged(x);
	ret = read_origins(x);
	if (!ret)
		ret = check_functions(x);
	if (!ret && (!vd_entry_read(&x->unit, &x->c, &e) || e.abbrev || x->c.p != x->c.end))
		ret = damaged(x);
	if (!ret)
		ret = check_code(x);
	if (!ret)
		ret = check_references(x);
	if (!ret)
		ret = vd_check_locations(x->vd, &x->unit, true);
	return ret ? ret : vd_check_calls(x);
}

int vd_check_added(struct vd *vd, uint64_t off, uint64_t *next)
{
	struct vd_added x = {.vd = vd};
	int ret = vd_unit_open(vd, &vd->n, off, &x.unit);

	if (ret == -EBADMSG ||
	    (!ret && (x.unit.type != DW_UT_compile || x.unit.abbrev_off < vd->o.abbrev.size)))
		ret = vd_refuse(vd, off, "an added unit cannot be read");
	if (!ret)
		ret = check_unit(&x);
	*next = x.unit.end;
	vd_unit_close(&x.unit);
	vd_unit_close(&x.o);
	vd_unit_close(&x.n);
	free(x.copied);
	free(x.references);
	free(x.calls);
	free(x.origins);
	free(x.code.list);
	free(x.function.list);
	return ret;
}
