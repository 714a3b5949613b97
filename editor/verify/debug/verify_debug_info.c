// SPDX-License-Identifier: Apache-2.0
/*
 * verify_debug_info - compares .debug_info of both files. Called by verify_rest.
 *
 * The rule: a unit has its old bytes, or the same entries at the same places, with the same values. Only these may
 * differ: where lists of ranges, locations and lines are, which then are in added bytes of their section; a range
 * that became a list; an address of entry, which then is that of the copy. Behind the last unit come added ones.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>

#include "editor/verify/debug/verify_debug_info.h"
#include "editor/verify/debug/verify_debug_private.h"

struct unit_pair {
	struct vd *vd;
	struct vd_unit o, n;
};

/* ---- values -------------------------------------------------------------------------------- */

/* The section that attribute @name leads to; NULL: its value may not change. */
static const struct vd_section *section_of(const struct vd_file *f, unsigned int version,
					   unsigned int name)
{
	switch (name) {
	case DW_AT_ranges: return version >= 5 ? &f->rnglists : &f->ranges;
	case DW_AT_location:
	case DW_AT_frame_base:
	case DW_AT_GNU_locviews: return version >= 5 ? &f->loclists : &f->loc;
	case DW_AT_stmt_list: return &f->line;
	case DW_AT_rnglists_base: return &f->rnglists;
	case DW_AT_loclists_base: return &f->loclists;
	default: return NULL;
	}
}

/* Is @v an offset of added bytes? */
static bool is_added(const struct unit_pair *x, unsigned int name, const struct vd_value *v)
{
	const struct vd_section *old = section_of(&x->vd->o, x->o.version, name);
	const struct vd_section *now = section_of(&x->vd->n, x->o.version, name);
	uint64_t off = vd_value_fixed(v);

	return old && vd_value_is_offset(&x->o, v) && off >= old->size && off <= now->size;
}

/* May the value @was of attribute @name be @now? Both have the same form and size. */
static bool may_be(const struct unit_pair *x, unsigned int name, const struct vd_value *was,
		   const struct vd_value *now)
{
	if (!memcmp(was->p, now->p, was->size) || is_added(x, name, now))
		return true;
	return name == DW_AT_entry_pc && now->form == DW_FORM_addr &&
	       vd_original(x->vd, vd_value_fixed(now)) == vd_value_fixed(was);
}

/* ---- entries ------------------------------------------------------------------------------- */

/* Zeros behind their number. */
static bool is_filler(const struct vd_value *v)
{
	for (uint64_t i = 1; i < v->size; i++)
		if (v->p[i])
			return false;
	return v->form == DW_FORM_block1;
}

/* Go on to the next attribute that does not say which code the entry describes. */
static bool step_over_code(struct vd_values *w, bool over_entry)
{
	while (vd_values_next(w))
		switch (w->attr->name) {
		case DW_AT_low_pc:
		case DW_AT_high_pc:
		case DW_AT_ranges: break;
		case VD_FILLER:
			if (!is_filler(&w->value))
				return true;
			break;
		case DW_AT_entry_pc:
			if (over_entry)
				break;
			return true;
		default: return true;
		}
	return false;
}

static uint64_t place(const struct vd_values *w)
{
	return (uint64_t)(w->value.p - w->u->data);
}

/* The values have the same forms. */
static bool same_values(const struct unit_pair *x, const struct vd_entry *a,
			const struct vd_entry *b)
{
	struct vd_values v = vd_values_of(&x->o, a), w = vd_values_of(&x->n, b);

	if (a->abbrev->plain)
		return !memcmp(a->values, b->values, (size_t)(a->end - a->values));
	while (vd_values_next(&v) && vd_values_next(&w))
		if (v.value.size != w.value.size || !may_be(x, v.attr->name, &v.value, &w.value))
			return false;
	return true;
}

/* Is the range of @a a list in @b, all else being the same? */
static bool is_list_now(const struct unit_pair *x, const struct vd_entry *a,
			const struct vd_entry *b)
{
	struct vd_values v = vd_values_of(&x->o, a), w = vd_values_of(&x->n, b);
	struct vd_value low = vd_entry_find(&x->o, a, DW_AT_low_pc);
	struct vd_value high = vd_entry_find(&x->o, a, DW_AT_high_pc);
	struct vd_value list = vd_entry_find(&x->n, b, DW_AT_ranges);
	struct vd_value kept = vd_entry_find(&x->n, b, DW_AT_low_pc);
	struct vd_value entry = vd_entry_find(&x->n, b, DW_AT_entry_pc);
	bool has_entry = vd_entry_find(&x->o, a, DW_AT_entry_pc).p;

	for (;;) {
		bool more = step_over_code(&v, !has_entry);

		if (more != step_over_code(&w, !has_entry))
			return false;
		if (!more)
			break;
		if (!vd_same_attr(v.attr, w.attr) || place(&v) != place(&w) ||
		    v.value.size != w.value.size || !may_be(x, v.attr->name, &v.value, &w.value))
			return false;
	}
	if (kept.p && (kept.size != low.size || memcmp(kept.p, low.p, low.size)))
		return false;
	if (entry.p && !has_entry &&
	    (entry.form != DW_FORM_addr || low.size != entry.size ||
	     memcmp(entry.p, low.p, low.size)))
		return false;
	return low.p && high.p && !vd_entry_find(&x->o, a, DW_AT_ranges).p &&
	       !vd_entry_find(&x->n, b, DW_AT_high_pc).p && is_added(x, DW_AT_ranges, &list);
}

static bool same_declaration(const struct unit_pair *x, struct vd_abbrev *a,
			     const struct vd_abbrev *b)
{
	if (a->last == b)
		return a->same;
	a->last = b;
	a->same = a->nr_attrs == b->nr_attrs;
	for (uint32_t i = 0; a->same && i < a->nr_attrs; i++)
		a->same = vd_same_attr(vd_attr(&x->o, a, i), vd_attr(&x->n, b, i));
	return a->same;
}

/* Counts functions that have no code now. */
static int note_lost(struct unit_pair *x, const struct vd_entry *a, const struct vd_entry *b)
{
	struct vd *vd = x->vd;
	int ret = vd_entry_ranges(&x->o, a, &vd->was);

	/* What was damaged before may stay so. */
	if (ret == -EBADMSG || (!ret && !vd->was.nr))
		return 0;
	if (!ret)
		ret = vd_entry_ranges(&x->n, b, &vd->now);
	if (ret)
		return ret == -ENOMEM ? ret
				      : vd_refuse(vd, a->off, "its list of ranges is damaged");
	vd->nr_lost += !vd->now.nr;
	return 0;
}

static bool has_range(const struct vd *vd, const struct vd_ranges *ranges, const struct vf_range *r)
{
	for (uint32_t i = 0; i < ranges->nr && vd_spend(vd->work, 1); i++)
		if (ranges->list[i].start == r->start && ranges->list[i].end == r->end)
			return true;
	return false;
}

/*
 * Code in place of calls that changes registers which calls keep is code of added units only: entries here may find
 * variables in these registers.
 */
static int check_kept(struct unit_pair *x, const struct vd_entry *a, const struct vd_entry *b)
{
	struct vd *vd = x->vd;
	int ret = vd_entry_ranges(&x->n, b, &vd->now);

	if (!ret)
		ret = vd_entry_ranges(&x->o, a, &vd->was);
	for (uint32_t i = 0; i < vd->now.nr && !ret; i++) {
		const struct vf_range *r = &vd->now.list[i];

		if (vd_any_changing(vd, r->start, r->end, VD_KEPT_REGISTERS) &&
		    !has_range(vd, &vd->was, r))
			return vd_refuse(vd, a->off,
					 "an old entry describes code in place of a call that "
					 "changes registers which calls keep");
	}
	return ret == -ENOMEM ? ret : 0;
}

static int check_entry(struct unit_pair *x, const struct vd_entry *a, const struct vd_entry *b)
{
	int ret = 0;
	bool same = a->end - x->vd->o.info.data == b->end - x->vd->n.info.data &&
		    a->values - x->vd->o.info.data == b->values - x->vd->n.info.data &&
		    !a->abbrev == !b->abbrev;

	if (same && a->abbrev)
		same = a->abbrev->tag == b->abbrev->tag &&
		       a->abbrev->children == b->abbrev->children &&
		       (same_declaration(x, a->abbrev, b->abbrev) ? same_values(x, a, b)
								  : is_list_now(x, a, b));
	if (!same)
		return vd_refuse(x->vd, a->off,
				 "an entry changed beyond the code that it describes");
	if (!a->abbrev || a->abbrev->plain)
		return 0;
	if (x->vd->changing)
		ret = check_kept(x, a, b);
	return !ret && a->abbrev->tag == DW_TAG_subprogram ? note_lost(x, a, b) : ret;
}

/* ---- units --------------------------------------------------------------------------------- */

static int check_entries(struct unit_pair *x)
{
	struct vf_cursor c = vd_unit_at(&x->o, x->o.first), d = vd_unit_at(&x->n, x->n.first);

	while (c.p < c.end) {
		uint64_t off = (uint64_t)(c.p - x->vd->o.info.data);
		struct vd_entry a, b;
		int ret;

		if (!vd_entry_read(&x->o, &c, &a) || !vd_entry_read(&x->n, &d, &b))
			return vd_refuse(x->vd, off, "an entry of a changed unit cannot be read");
		ret = check_entry(x, &a, &b);
		if (ret)
			return ret;
	}
	return 0;
}

static int check_pair(struct unit_pair *x)
{
	const uint8_t *o = x->vd->o.info.data, *n = x->vd->n.info.data;
	uint64_t off = x->o.off, behind = x->o.abbrev_field + 4;
	int ret;

	if (x->n.end != x->o.end || x->n.first != x->o.first ||
	    x->n.abbrev_field != x->o.abbrev_field ||
	    memcmp(o + off, n + off, x->o.abbrev_field - off) ||
	    memcmp(o + behind, n + behind, x->o.first - behind) ||
	    (x->n.abbrev_off != x->o.abbrev_off && x->n.abbrev_off < x->vd->o.abbrev.size))
		return vd_refuse(x->vd, off, "the header of a unit changed");
	if (!vd_unit_read_bases(&x->o) || !vd_unit_read_bases(&x->n))
		return vd_refuse(x->vd, off, "the own entry of a changed unit cannot be read");
	/* Lists are relative to the old address, which may have become a list. */
	x->n.base = x->o.base;
	ret = check_entries(x);
	return ret ? ret : vd_check_locations(x->vd, &x->n, false);
}

static int check_unit(struct vd *vd, uint64_t off)
{
	struct unit_pair x = {.vd = vd};
	int ret = vd_unit_open(vd, &vd->o, off, &x.o);

	if (!ret)
		ret = vd_unit_open(vd, &vd->n, off, &x.n);
	if (!ret)
		ret = check_pair(&x);
	else if (ret == -EBADMSG)
		ret = vd_refuse(vd, off, "a changed unit cannot be read");
	vd_unit_close(&x.o);
	vd_unit_close(&x.n);
	return ret;
}

static int check_old(struct vd *vd)
{
	const uint8_t *o = vd->o.info.data, *n = vd->n.info.data;
	uint64_t size = vd->o.info.size, next;
	int ret = 0;

	for (uint64_t off = 0; off < size && !ret; off = next) {
		next = vd_next_unit(&vd->o.info, off);
		if (!next)
			return memcmp(o + off, n + off, size - off)
				       ? vd_refuse(vd, off, "a damaged unit changed")
				       : 0;
		if (memcmp(o + off, n + off, next - off))
			ret = check_unit(vd, off);
	}
	return ret;
}

static int check_new(struct vd *vd)
{
	uint64_t off = vd->o.info.size;
	int ret = 0;

	if (off < vd->n.info.size) {
		vd->described = calloc((size_t)vd->code->map->nr_pieces + 1, 1);
		ret = vd->described ? vd_find_callees(vd) : -ENOMEM;
	}
	while (!ret && off < vd->n.info.size)
		ret = vd_check_added(vd, off, &off);
	if (!ret && vd->nr_lost != vd->nr_moved)
		ret = vd_refuse(vd, off,
				"functions have no code in their units, nor in added ones");
	return ret;
}

static int check_info(struct vd *vd)
{
	struct vd_work work = vd_work_for(0);
	int ret = vd_file_open(vd->vf->o, &vd->o);

	vd->work = &work;
	if (!ret)
		ret = vd_file_open(vd->vf->n, &vd->n);
	work = vd_work_for(vd->o.size + vd->n.size);
	if (ret == -EPERM)
		return vd_refuse(vd, 0, "a section of debug information cannot be read");
	if (!ret && vd->o.info.size > vd->n.info.size)
		return vd_refuse(vd, 0, "it is cut off");
	if (!ret)
		ret = vd_find_changing(vd);
	if (!ret)
		ret = check_old(vd);
	if (!ret)
		ret = check_new(vd);
	/* What cannot be read may stay so only if that is not for want of time. */
	return ret || work.left ? ret : vd_refuse(vd, 0, VD_TOO_LONG);
}

/* The bytes of .debug_info as they are in the file; NULL: there are none. */
static const uint8_t *raw_info(const struct mp_elf *elf, uint64_t *size)
{
	const struct mp_section *s = mp_elf_section(elf, ".debug_info");

	if (!s || s->type != SHT_PROGBITS || s->flags & SHF_ALLOC || s->off > elf->size ||
	    s->size > elf->size - s->off)
		return NULL;
	*size = s->size;
	return elf->data + s->off;
}

int vf_check_debug_info(const struct vf *vf)
{
	struct vd vd = {.vf = vf, .code = vf->code ? vf->code : vf};
	uint64_t old_size, size;
	const uint8_t *old = raw_info(vf->o, &old_size), *now = raw_info(vf->n, &size);
	int ret;

	if (!old || !now || (size == old_size && !memcmp(old, now, size)))
		return 0;
	ret = check_info(&vd);
	vd_file_close(&vd.o);
	vd_file_close(&vd.n);
	free(vd.callees);
	free(vd.scopes);
	free(vd.scope_ranges.list);
	free(vd.described);
	free(vd.changing);
	free(vd.was.list);
	free(vd.now.list);
	return ret;
}
