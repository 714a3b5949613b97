// SPDX-License-Identifier: Apache-2.0
/*
 * debug_clone - copies entries value by value. References lead to the copies where these are in the added unit, else
 * to the old unit. All are offsets in .debug_info, of 4 bytes, and are filled in at the end.
 */
#include "editor/debug/debug_clone.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/debug/debug_clone_private.h"
#include "editor/debug/debug_entry_private.h"
#include "editor/debug/debug_function.h"
#include "editor/debug/debug_loc.h"
#include "editor/debug/debug_ranges.h"

/* How a copied entry differs from the old one. */
enum {
	CHANGED = 1, /* a list in place of its range */
	CHILDREN = 2,
	DIVIDED = 4, /* a list in place of its location */
	NR_VARIANTS = 8,
};

/* ---- abbreviations ------------------------------------------------------------------------- */

/* Declares entries like those of @a, with the forms that the added unit uses. */
static void declare(struct me_cloner *c, const struct me_abbrev *a, unsigned int variant,
		    uint64_t code)
{
	struct mp_cursor d = mp_cursor_over(a->bytes, a->end);
	struct me_bytes *out = &c->abbrevs;

	mp_cursor_uleb(&d);
	me_bytes_uleb(out, code);
	me_bytes_uleb(out, mp_cursor_uleb(&d));
	mp_cursor_u8(&d);
	me_bytes_u8(out, a->children || variant & CHILDREN);
	for (uint32_t i = 0; i < a->nr_attrs; i++) {
		const uint8_t *start = d.p;
		unsigned int name = (unsigned int)mp_cursor_uleb(&d);
		unsigned int form = (unsigned int)mp_cursor_uleb(&d);

		if (form == DW_FORM_implicit_const)
			mp_cursor_sleb(&d);
		if (name == DW_AT_sibling || (variant & CHANGED && i == a->low))
			continue;
		if (variant & CHANGED && i == a->high)
			me_clone_put_list_attr(c, out, DW_AT_ranges);
		else if (variant & DIVIDED && name == DW_AT_location)
			me_clone_put_list_attr(c, out, DW_AT_location);
		else if (me_form_is_reference(form))
			me_clone_put_attr(out, name, DW_FORM_ref_addr);
		else
			me_bytes_put(out, start, (size_t)(d.p - start));
	}
	me_bytes_u16(out, 0);
}

/*
 * The code of an earlier declaration that is the one at @start of the abbreviations, but for its code. Without
 * DW_AT_sibling, several are the same. Return: 0: there is none.
 */
static uint64_t find_same(struct me_cloner *c, size_t start, uint64_t code)
{
	size_t skip = me_uleb_size(code), size = c->abbrevs.size - start - skip;
	const uint8_t *body = c->abbrevs.data + start + skip;

	for (uint32_t i = 0; i < c->nr_declared && me_debug_spend(c->u->file, 1); i++)
		if (c->declared[i].size == size &&
		    !memcmp(c->abbrevs.data + c->declared[i].at, body, size))
			return c->declared[i].code;
	if (!mp_grow(c->declared, c->cap_declared, c->nr_declared + 1))
		c->declared[c->nr_declared++] = (struct me_declared){start + skip, size, code};
	return 0;
}

static uint64_t code_of(struct me_cloner *c, const struct me_abbrev *a, unsigned int variant)
{
	size_t index = (size_t)(a - c->u->file->abbrevs.abbrevs) * NR_VARIANTS + variant;
	size_t start = c->abbrevs.size;
	uint64_t same;

	if (c->codes[index])
		return c->codes[index];
	declare(c, a, variant, c->next_code);
	same = c->abbrevs.failed ? 0 : find_same(c, start, c->next_code);
	if (same)
		c->abbrevs.size = start;
	c->codes[index] = (uint32_t)(same ? same : c->next_code++);
	return c->codes[index];
}

/* ---- entries ------------------------------------------------------------------------------- */

/* Writes that a variable has no location. Its views, if any, would be before the list. */
static int put_no_location(struct me_cloner *c, unsigned int form)
{
	int rc = 0;

	if (form == DW_FORM_exprloc || form == DW_FORM_block1) {
		me_bytes_u8(&c->out, 0);
		return 0;
	}
	if (!c->no_locations)
		rc = me_loc_empty(c->u, &c->no_locations);
	me_bytes_u32(&c->out, c->no_locations);
	return rc;
}

/* Copies the values of @e out of the changed unit, where lists are those with the copies already. */
static int put_values(struct me_cloner *c, const struct me_entry *e, unsigned int variant)
{
	const struct me_unit *u = c->u;
	const struct me_abbrev *a = e->abbrev;
	struct mp_cursor v = mp_cursor_over(e->start + e->code_size, u->file->info.data + u->end);
	bool lost = me_location_is_lost(u, &e->location);

	for (uint32_t i = 0; i < a->nr_attrs; i++) {
		const struct me_abbrev_attr *attr = &u->file->abbrevs.attrs[a->first_attr + i];
		const uint8_t *p = v.p;
		uint64_t size;

		me_form_skip(&v, attr->form, u->version);
		size = (uint64_t)(v.p - p);
		if (attr->name == DW_AT_sibling || (variant & CHANGED && i == a->low))
			continue;
		if (variant & CHANGED && i == a->high) {
			me_bytes_put(&c->out, me_unit_field(u, me_entry_list_field(e)), 4);
		} else if (me_form_is_reference(attr->form)) {
			const struct me_value value = {p, size, attr->form};

			if (me_clone_put_reference(c, me_value_reference(u, &value)))
				return -ENOMEM;
		} else if (variant & DIVIDED && attr->name == DW_AT_location) {
			me_bytes_u32(&c->out, c->locations);
		} else if (lost &&
			   (attr->name == DW_AT_location || attr->name == DW_AT_GNU_locviews)) {
			int rc = put_no_location(c, attr->form);

			if (rc)
				return rc;
		} else {
			me_bytes_put(&c->out, me_unit_field(u, p), size);
		}
	}
	return v.bad ? -EBADMSG : 0;
}

static int put_entry(struct me_cloner *c, const struct me_entry *e, bool children)
{
	unsigned int variant = (me_entry_is_changed(c->u, e) ? CHANGED : 0) |
			       (children && !e->abbrev->children ? CHILDREN : 0);
	int rc = me_clone_divide_location(c, e);

	if (rc < 0)
		return rc;
	if (rc)
		variant |= DIVIDED;
	if (mp_grow(c->copied, c->cap_copied, c->nr_copied + 1))
		return -ENOMEM;
	c->copied[c->nr_copied++] =
		(struct me_copied_entry){me_clone_offset(c, e->start), c->base + c->out.size};
	me_bytes_uleb(&c->out, code_of(c, e->abbrev, variant));
	return put_values(c, e, variant);
}

/* ---- functions ----------------------------------------------------------------------------- */

static int find_scopes(struct me_cloner *c, const struct me_moved_function *f)
{
	const uint8_t *data = c->u->file->info.data;
	struct mp_cursor in = mp_cursor_over(data + f->start, data + f->end);

	while (in.p < in.end) {
		struct me_entry e;
		int rc = me_entry_read(c->u, &in, &e);

		if (!rc && e.abbrev && me_clone_is_scope(&e))
			rc = me_clone_claim_calls(c, &e);
		if (rc)
			return rc;
	}
	return 0;
}

/* The added unit needs the entry's numbered list of ranges. */
static void note_list(struct me_unit *u, const struct me_entry *e)
{
	struct mp_cursor c = me_value_cursor(&e->ranges);
	uint64_t nr = e->ranges.p && e->ranges.form == DW_FORM_rnglistx ? mp_cursor_uleb(&c)
									: UINT64_MAX;

	if (nr < u->nr_lists)
		u->lists[nr] |= ME_LIST_ADDED;
}

static int clone_entry(struct me_cloner *c, const struct me_entry *e, const struct me_ranges *code)
{
	bool calls = me_clone_has_calls(c, e, code), childless = !e->abbrev->children;
	int rc = put_entry(c, e, calls);

	note_list(c->u, e);
	if (rc)
		return rc;
	if (!childless) {
		if (mp_grow(c->open, c->cap_open, c->nr_open + 1))
			return -ENOMEM;
		c->open[c->nr_open++] = (struct open_entry){me_clone_offset(c, e->start), calls,
							    me_clone_is_scope(e)};
		return 0;
	}
	if (!calls)
		return 0;
	rc = me_clone_put_calls(c, me_clone_offset(c, e->start), code);
	me_bytes_u8(&c->out, 0);
	return rc;
}

/* The end of a list of entries. Inlined calls are last among those of their scope. */
static int close_entry(struct me_cloner *c, const struct me_ranges *code)
{
	int rc = 0;

	if (!c->nr_open)
		return -EBADMSG;
	c->nr_open--;
	if (c->open[c->nr_open].has_calls)
		rc = me_clone_put_calls(c, c->open[c->nr_open].old_off, code);
	me_bytes_u8(&c->out, 0);
	return rc;
}

static int clone_function(struct me_cloner *c, const struct me_moved_function *f)
{
	const uint8_t *data = c->u->file->info.data;
	struct mp_cursor in = mp_cursor_over(data + f->start, data + f->end);
	struct me_ranges code = {0};
	struct me_entry e;
	int rc = find_scopes(c, f);

	while (!rc && in.p < in.end) {
		rc = me_entry_read(c->u, &in, &e);
		if (rc)
			break;
		if (me_clone_offset(c, e.start) == f->start)
			rc = me_entry_read_ranges(c->u, &e, &code);
		me_ranges_join(&code, 0);
		if (!rc)
			rc = e.abbrev ? clone_entry(c, &e, &code) : close_entry(c, &code);
	}
	me_ranges_fini(&code);
	return rc;
}

/* The function lies in the same namespaces as before. */
static int clone_within(struct me_cloner *c, const struct me_moved_function *f)
{
	const uint8_t *data = c->u->file->info.data;
	int rc = 0;

	for (uint8_t i = 0; i < f->nr_parents && !rc; i++) {
		struct mp_cursor in = mp_cursor_over(data + f->parents[i], data + c->u->end);
		struct me_entry e;

		rc = me_entry_read(c->u, &in, &e);
		if (!rc)
			rc = put_entry(c, &e, true);
		/* References to the namespace lead to the old unit. */
		if (!rc)
			c->nr_copied--;
	}
	if (!rc)
		rc = clone_function(c, f);
	for (uint8_t i = 0; i < f->nr_parents; i++)
		me_bytes_u8(&c->out, 0);
	return rc;
}

/* ---- the unit ------------------------------------------------------------------------------ */

/* Declares what the entries use that both units have at the same place. */
static int declare_prefix(struct me_cloner *c, const struct me_entry *own)
{
	struct me_unit *u = c->u;
	const uint8_t *data = u->file->info.data;
	struct mp_cursor in = mp_cursor_over(own->start, data + u->prefix_end);
	struct me_entry e;
	int rc = me_entry_read(u, &in, &e);
	uint64_t last = 0;

	me_abbrev_write(&u->file->abbrevs, own->abbrev, u->version, &c->abbrevs);
	while (!rc && in.p < in.end) {
		rc = me_entry_read(u, &in, &e);
		if (rc || e.abbrev == own->abbrev)
			return rc ? rc : -EPERM;
		/* Base types of one kind stand together. */
		if (e.abbrev->code == last ||
		    c->codes[(e.abbrev - u->file->abbrevs.abbrevs) * NR_VARIANTS])
			continue;
		last = e.abbrev->code;
		c->codes[(e.abbrev - u->file->abbrevs.abbrevs) * NR_VARIANTS] = (uint32_t)last;
		me_abbrev_write(&u->file->abbrevs, e.abbrev, u->version, &c->abbrevs);
	}
	return rc;
}

/* Return: the offset in the added unit of the value at @p. The added unit begins as the old one does. */
static size_t place_of(const struct me_cloner *c, const uint8_t *p)
{
	return (size_t)(p - (c->u->file->info.data + c->u->off));
}

static int put_head(struct me_cloner *c, const struct me_entry *own)
{
	struct me_unit *u = c->u;
	uint32_t off;
	int rc;

	me_bytes_put(&c->out, u->bytes, u->prefix_end - u->off);
	if (!c->out.failed)
		me_bytes_patch_u32(&c->out, place_of(c, own->stmt_list.p), u->added_line);
	if (own->ranges.p && own->ranges.form == DW_FORM_rnglistx)
		return c->out.failed ? -ENOMEM : 0;
	u->file->new.nr = 0;
	for (uint32_t i = 0; i < u->taken.nr; i++)
		me_ranges_add(&u->file->new, u->taken.ranges[i].lo, u->taken.ranges[i].hi);
	rc = me_ranges_write(u, &off);
	if (rc || c->out.failed)
		return rc ? rc : -ENOMEM;
	me_bytes_patch_u32(&c->out, place_of(c, me_entry_list_field(own)), off);
	return 0;
}

/* Numbered lists of the added unit are in a table of its own. */
static int put_lists(struct me_cloner *c, const struct me_entry *own)
{
	uint32_t base;
	int rc;

	if (!c->u->rnglists.nr_offsets || !own->rnglists_base.p)
		return 0;
	rc = me_ranges_added(c->u, &base);
	if (!rc)
		me_bytes_patch_u32(&c->out, place_of(c, own->rnglists_base.p), base);
	return rc;
}

static int by_old_off(const void *a, const void *b)
{
	const struct me_copied_entry *x = a, *y = b;

	return x->old_off < y->old_off ? -1 : x->old_off > y->old_off;
}

static void fill_references(struct me_cloner *c)
{
	qsort(c->copied, c->nr_copied, sizeof(*c->copied), by_old_off);
	for (uint32_t i = 0; i < c->nr_references; i++) {
		struct me_copied_entry key = {.old_off = c->references[i].to}, *found = NULL;

		if (c->nr_copied)
			found = bsearch(&key, c->copied, c->nr_copied, sizeof(key), by_old_off);
		me_bytes_patch_u32(&c->out, c->references[i].at,
				   (uint32_t)(found ? found->off : key.old_off));
	}
}

static int write_unit(struct me_cloner *c, const struct me_entry *own)
{
	struct me_unit *u = c->u;
	int rc = declare_prefix(c, own);

	if (!rc)
		rc = put_head(c, own);
	if (!rc)
		rc = me_clone_put_callees(c);
	for (uint32_t i = 0; i < u->nr_functions && !rc; i++)
		rc = clone_within(c, &u->functions[i]);
	me_bytes_u8(&c->out, 0);
	me_bytes_u8(&c->abbrevs, 0);
	if (!rc && (c->out.failed || c->abbrevs.failed))
		rc = -ENOMEM;
	return rc;
}

/*
 * The old entries have no code now, nor have those below: binutils searches a unit without code for all addresses, and
 * takes what any entry says.
 */
static int empty_function(struct me_unit *u, const struct me_moved_function *f, uint32_t list)
{
	const uint8_t *data = u->file->info.data;
	struct mp_cursor c = mp_cursor_over(data + f->start, data + f->end);

	while (c.p < c.end) {
		struct me_entry e;
		int rc = me_entry_read(u, &c, &e);

		if (rc)
			return rc;
		if (e.abbrev && (me_value_is_offset(u, &e.ranges) || me_entry_is_changed(u, &e)))
			memcpy(me_unit_field(u, me_entry_list_field(&e)), &list, sizeof(list));
	}
	return 0;
}

static int empty_old(struct me_unit *u)
{
	uint32_t off;
	int rc;

	u->file->new.nr = 0;
	rc = me_ranges_write(u, &off);
	for (uint32_t i = 0; i < u->nr_functions && !rc; i++)
		rc = empty_function(u, &u->functions[i], off);
	return rc;
}

static int remember(struct me_unit *u, uint64_t off, uint64_t size)
{
	struct me_debug_sections *file = u->file;

	if (mp_grow(file->added, file->cap_added, file->nr_added + 1))
		return -ENOMEM;
	file->added[file->nr_added++] = (struct me_added_unit){u->off, off, size, u->taken};
	u->taken = (struct me_ranges){0};
	return 0;
}

/* Append the unit and its abbreviations. */
static int append(struct me_cloner *c)
{
	struct me_debug_section *info = &c->u->file->info, *abbrev = &c->u->file->abbrev;
	uint64_t abbrev_off = abbrev->size + abbrev->added.size;

	if (!me_debug_section_has_room(info, c->out.size) ||
	    !me_debug_section_has_room(abbrev, c->abbrevs.size) ||
	    !me_debug_spend(c->u->file, c->abbrevs.size / 16))
		return -EPERM;
	fill_references(c);
	me_bytes_patch_u32(&c->out, 0, (uint32_t)c->out.size - 4);
	me_bytes_patch_u32(&c->out, c->u->abbrev_field, (uint32_t)abbrev_off);
	me_bytes_put(&info->added, c->out.data, c->out.size);
	me_bytes_put(&abbrev->added, c->abbrevs.data, c->abbrevs.size);
	return info->added.failed || abbrev->added.failed ? -ENOMEM
							  : remember(c->u, c->base, c->out.size);
}

int me_functions_move(struct me_unit *unit, const struct me_entry *own)
{
	struct me_debug_sections *file = unit->file;
	struct me_cloner c = {.u = unit,
			      .base = file->info.size + file->info.added.size,
			      .next_code = me_abbrevs_free_code(&file->abbrevs)};
	int rc;

	if (!unit->nr_functions)
		return 0;
	c.codes = calloc((size_t)file->abbrevs.nr * NR_VARIANTS, sizeof(*c.codes));
	c.callees = calloc((size_t)file->inlined.nr_callees + 1, sizeof(*c.callees));
	rc = c.codes && c.callees ? write_unit(&c, own) : -ENOMEM;
	if (!rc)
		rc = empty_old(unit);
	if (!rc)
		rc = put_lists(&c, own);
	if (!rc)
		rc = append(&c);
	me_bytes_fini(&c.out);
	me_bytes_fini(&c.abbrevs);
	free(c.codes);
	free(c.callees);
	free(c.copied);
	free(c.references);
	free(c.open);
	free(c.declared);
	return rc;
}
