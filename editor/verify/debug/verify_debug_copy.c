// SPDX-License-Identifier: Apache-2.0
/*
 * verify_debug_copy - compares a function in an added unit with the original's, entry by entry. A copy has all values
 * that the old entry has in the output, but DW_AT_sibling. References lead where they led, or to copies.
 */
#include <dwarf.h>
#include <errno.h>

#include "editor/verify/debug/verify_debug_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

/* Walks over the values of an entry of the original and of its copy. */
struct values {
	struct vd_added *x;
	struct vd_values copy;
	bool listed;  /* the copy has a list in place of the range */
	bool lost;    /* the copy says that the variable has no location */
	bool divided; /* the copy has a list in place of the location */
};

/* Has the variable no location, nor views of one? */
static bool has_no_location(const struct vd_unit *u, const struct vd_entry *e)
{
	static const uint8_t zeros[16];
	struct vd_value v = vd_entry_find(u, e, DW_AT_location);
	struct vd_value views = vd_entry_find(u, e, DW_AT_GNU_locviews);
	const struct vd_section *s = u->version >= 5 ? &u->file->loclists : &u->file->loc;
	uint64_t size = u->version >= 5 ? 1 : sizeof(zeros), off;

	if (v.p && (v.form == DW_FORM_exprloc || v.form == DW_FORM_block1))
		return v.size == 1 && !*v.p && !views.p;
	if (!vd_value_is_offset(u, &v))
		return false;
	off = vd_value_fixed(&v);
	return off <= s->size && size <= s->size - off && !memcmp(s->data + off, zeros, size) &&
	       (!views.p || vd_value_fixed(&views) == off);
}

static bool is_list(const struct vd_added *x, const struct vd_attr *attr, const struct vd_value *v)
{
	return attr->name == DW_AT_ranges && vd_value_is_offset(&x->unit, v);
}

/* Is @now a list of places at which the location @was of the whole scope holds? */
static bool is_divided(const struct values *w, const struct vd_value *was,
		       const struct vd_value *now)
{
	struct vf_cursor expr = vd_value_expression(was);

	return !expr.bad &&
	       vd_has_one_location(&w->x->unit, now, expr.p, (uint64_t)(expr.end - expr.p));
}

/* Check the value @v of attribute @attr of the original's entry. Return: 0, -ENOMEM, -EBADMSG. */
static int check_value(struct values *w, const struct vd_attr *attr, const struct vd_value *v)
{
	struct vd_added *x = w->x;
	const struct vd_attr *copied;
	const struct vd_value *c = &w->copy.value;
	const uint8_t *in_output;

	if (attr->name == DW_AT_sibling || (w->listed && attr->name == DW_AT_low_pc))
		return 0;
	if (!vd_values_next(&w->copy))
		return -EBADMSG;
	copied = w->copy.attr;
	if (w->listed && attr->name == DW_AT_high_pc)
		return is_list(x, copied, c) ? 0 : -EBADMSG;
	if (copied->name != attr->name)
		return -EBADMSG;
	if (vd_form_is_reference(attr->form))
		return copied->form == DW_FORM_ref_addr
			       ? vd_add_reference(x, vd_value_reference(&x->o, v),
						  vd_value_fixed(c))
			       : -EBADMSG;
	if (w->divided && attr->name == DW_AT_location)
		return is_divided(w, v, c) ? 0 : -EBADMSG;
	if (copied->form != attr->form || copied->value != attr->value ||
	    (c->size != v->size && !(w->lost && attr->name == DW_AT_location)))
		return -EBADMSG;
	/* The output's old entry has an empty list now. check_code() looks at the copy's. */
	if (is_list(x, attr, v))
		return 0;
	if (w->lost && (attr->name == DW_AT_location || attr->name == DW_AT_GNU_locviews))
		return 0;
	in_output = x->n.data + (v->p - x->o.data);
	return memcmp(c->p, in_output, c->size) ? -EBADMSG : 0;
}

static int check_values(struct vd_added *x, const struct vd_entry *was, const struct vd_entry *e)
{
	struct values w = {.x = x, .copy = vd_values_of(&x->unit, e)};
	struct vd_values old = vd_values_of(&x->o, was);
	struct vd_value location, old_location;
	int ret = 0;

	w.listed = vd_entry_find(&x->o, was, DW_AT_low_pc).p &&
		   vd_entry_find(&x->o, was, DW_AT_high_pc).p &&
		   !vd_entry_find(&x->unit, e, DW_AT_low_pc).p;
	location = vd_entry_find(&x->unit, e, DW_AT_location);
	old_location = vd_entry_find(&x->o, was, DW_AT_location);
	w.divided = !vd_is_call_site(e) && old_location.p &&
		    vd_form_is_expression(old_location.form) &&
		    vd_value_is_offset(&x->unit, &location);
	w.lost = !w.divided && has_no_location(&x->unit, e);
	while (!ret && vd_values_next(&old))
		ret = check_value(&w, old.attr, &old.value);
	return ret || w.copy.next == e->abbrev->nr_attrs ? ret : -EBADMSG;
}

int vd_check_copy(struct vd_added *x, const struct vd_entry *was, const struct vd_entry *e)
{
	int ret = -EBADMSG;

	if (e->abbrev && e->abbrev->tag == was->abbrev->tag &&
	    e->abbrev->children >= was->abbrev->children)
		ret = check_values(x, was, e);
	return ret == -EBADMSG
		       ? vd_refuse(x->vd, e->off, "an added entry is no copy of its old one")
		       : ret;
}

/* ---- functions ----------------------------------------------------------------------------- */

/* Read replaced calls up to the end of the list of entries, whose first one is @e. */
static int check_calls(struct vd_added *x, struct vd_entry *e)
{
	int ret = 0;

	while (!ret && e->abbrev) {
		ret = vd_read_call(x, e);
		if (!ret && !vd_entry_read(&x->unit, &x->c, e))
			ret = vd_refuse(x->vd, e->off,
					"an added unit is damaged behind this entry");
	}
	return ret;
}

static int by_end(const void *key, const void *range)
{
	const uint64_t *vaddr = key;
	const struct vf_range *r = range;

	return *vaddr < r->start ? -1 : *vaddr >= r->end;
}

/* Do the ranges, which are joined, have all copies of the code in @range? */
static bool has_copies(const struct vd *vd, const struct vd_ranges *ranges,
		       const struct vf_range *range)
{
	const struct vf *code = vd->code;
	const struct mp_map_piece *pieces = code->map->pieces;

	for (uint32_t i = mp_search(k, 0, code->index.nr_by_old,
				    pieces[code->index.by_old[k]].old_vaddr < range->start);
	     i < code->index.nr_by_old && pieces[code->index.by_old[i]].old_vaddr < range->end; i++)
		for (uint32_t p = code->index.by_old[i]; p != VF_NONE; p = code->index.next_copy[p])
			if (!vd_spend(vd->work, 1) ||
			    (pieces[p].new_size &&
			     !bsearch(&pieces[p].new_vaddr, ranges->list, ranges->nr,
				      sizeof(*ranges->list), by_end)))
				return false;
	return true;
}

static int copy_ranges(struct vd_ranges *to, const struct vd_ranges *from)
{
	for (uint32_t i = 0; i < from->nr; i++)
		if (!vd_ranges_add(to, from->list[i].start, from->list[i].end))
			return -ENOMEM;
	return 0;
}

/* Does the copied entry describe all code of the old one, and nothing else? Its old code: vd->was. */
static int check_code(struct vd_added *x, const struct vd_entry *e)
{
	struct vd *vd = x->vd;
	int ret = vd_entry_ranges(&x->unit, e, &vd->now);
	bool good = !ret && !vd->now.nr == !vd->was.nr;

	if (ret == -ENOMEM)
		return ret;
	for (uint32_t i = 0; i < vd->now.nr && good; i++)
		good = vd_ranges_hold(vd, &vd->was, vd_original(vd, vd->now.list[i].start));
	vd_ranges_join(&vd->now);
	for (uint32_t i = 0; i < vd->was.nr && good; i++)
		good = has_copies(vd, &vd->now, &vd->was.list[i]) &&
		       vd_ranges_hold(vd, &vd->now, vd->was.list[i].start) &&
		       vd_ranges_hold(vd, &vd->now, vd->was.list[i].end - 1);
	return good ? 0 : vd_refuse(vd, e->off, "a copied entry describes other code");
}

static int check_one(struct vd_added *x, const struct vd_entry *was, struct vd_entry *e)
{
	int ret = vd_check_copy(x, was, e);

	if (ret)
		return ret;
	if (mp_grow(x->copied, x->cap_copied, x->nr_copied + 1))
		return -ENOMEM;
	x->copied[x->nr_copied++] = (struct vd_pair){was->off, e->off};
	if (!was->abbrev->plain) {
		ret = vd_entry_ranges(&x->o, was, &x->vd->was);
		/* What was damaged before may stay so. */
		if (!ret)
			ret = check_code(x, e);
		else if (ret == -EBADMSG)
			ret = 0;
	}
	if (ret)
		return ret;
	if (was->abbrev->children || !e->abbrev->children)
		return 0;
	/* All entries below are new. */
	if (!vd_entry_read(&x->unit, &x->c, e))
		return vd_refuse(x->vd, e->off, "an added unit is damaged behind this entry");
	return check_calls(x, e);
}

int vd_check_function(struct vd_added *x, uint64_t off)
{
	struct vf_cursor old = vd_unit_at(&x->o, off);
	uint32_t depth = 0;
	int ret = 0;

	do {
		struct vd_entry was, e;

		if (!vd_entry_read(&x->o, &old, &was) || !vd_entry_read(&x->unit, &x->c, &e))
			return vd_refuse(x->vd, off, "the copy of this function cannot be read");
		if (was.off == off) {
			ret = vd_entry_ranges(&x->o, &was, &x->function);
			if (!ret && e.abbrev)
				ret = vd_entry_ranges(&x->unit, &e, &x->vd->now);
			if (!ret)
				ret = copy_ranges(&x->code, &x->vd->now);
			if (ret)
				return ret == -ENOMEM
					       ? ret
					       : vd_refuse(x->vd, off, "its ranges are damaged");
		}
		if (!was.abbrev) {
			depth--;
			ret = check_calls(x, &e);
			continue;
		}
		depth += was.abbrev->children;
		ret = check_one(x, &was, &e);
	} while (depth && !ret);
	return ret;
}
