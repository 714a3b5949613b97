// SPDX-License-Identifier: Apache-2.0
/*
 * debug_clone - copies entries value by value. References lead to the copies where these are in the added unit, else
 * to the old unit. All are offsets in .debug_info, of 4 bytes, and are filled in at the end.
 */
#include "editor/debug/debug_clone.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/debug/debug_entry_private.h"
#include "editor/debug/debug_form.h"
#include "editor/debug/debug_ranges.h"

/* How a copied entry differs from the old one. */
enum {
	CHANGED = 1, /* a list in place of its range */
	CHILDREN = 2,
	NR_VARIANTS = 4,
};

struct copied {
	uint64_t old_off, off; /* offsets in .debug_info */
};

struct reference {
	size_t at; /* in the bytes of the unit */
	uint64_t to;
};

struct cloner {
	struct me_unit *u;
	struct me_bytes out, abbrevs; /* the added unit; its abbreviations */
	uint64_t base;		      /* offset of the added unit */
	uint32_t *codes;	      /* per old abbreviation and variant; 0: none yet */
	uint64_t next_code, call_code;
	uint64_t *callees; /* per callee: offset of its entry; 0: none yet */
	struct copied *copied;
	uint32_t nr_copied, cap_copied;
	struct reference *references;
	uint32_t nr_references, cap_references;
	struct open_entry {
		uint64_t old_off;
		bool has_calls;
	} * open; /* the entries around the place */
	uint32_t nr_open, cap_open;
};

static bool grow(void *array, uint32_t nr, uint32_t *cap, size_t size)
{
	void **v = array, *grown;

	if (nr < *cap)
		return true;
	grown = realloc(*v, (*cap ? 2 * (size_t)*cap : 64) * size);
	if (!grown)
		return false;
	*v = grown;
	*cap = *cap ? 2 * *cap : 64;
	return true;
}

/* ---- abbreviations ------------------------------------------------------------------------- */

static void put_attr(struct me_bytes *out, unsigned int name, unsigned int form)
{
	me_bytes_uleb(out, name);
	me_bytes_uleb(out, form);
}

static void put_list_attr(const struct cloner *c, struct me_bytes *out)
{
	put_attr(out, DW_AT_ranges, c->u->version >= 4 ? DW_FORM_sec_offset : DW_FORM_data4);
}

/* Declares entries like those of @a, with the forms that the added unit uses. */
static void declare(struct cloner *c, const struct me_abbrev *a, unsigned int variant,
		    uint64_t code)
{
	struct me_cursor d = {a->bytes, a->end, false};
	struct me_bytes *out = &c->abbrevs;

	me_cursor_uleb(&d);
	me_bytes_uleb(out, code);
	me_bytes_uleb(out, me_cursor_uleb(&d));
	me_cursor_u8(&d);
	me_bytes_u8(out, a->children || variant & CHILDREN);
	for (uint32_t i = 0; i < a->nr_attrs; i++) {
		const uint8_t *start = d.p;
		unsigned int name = (unsigned int)me_cursor_uleb(&d);
		unsigned int form = (unsigned int)me_cursor_uleb(&d);

		if (form == DW_FORM_implicit_const)
			me_cursor_sleb(&d);
		if (name == DW_AT_sibling || (variant & CHANGED && i == a->low))
			continue;
		if (variant & CHANGED && i == a->high)
			put_list_attr(c, out);
		else if (me_form_is_reference(form))
			put_attr(out, name, DW_FORM_ref_addr);
		else
			me_bytes_put(out, start, (size_t)(d.p - start));
	}
	me_bytes_u16(out, 0);
}

static uint64_t code_of(struct cloner *c, const struct me_abbrev *a, unsigned int variant)
{
	size_t index = (size_t)(a - c->u->file->abbrevs.abbrevs) * NR_VARIANTS + variant;

	if (!c->codes[index]) {
		c->codes[index] = (uint32_t)c->next_code;
		declare(c, a, variant, c->next_code++);
	}
	return c->codes[index];
}

/* The entries of inlined calls. */
static void declare_calls(struct cloner *c)
{
	struct me_bytes *out = &c->abbrevs;

	c->call_code = c->next_code++;
	me_bytes_uleb(out, c->call_code);
	me_bytes_uleb(out, DW_TAG_inlined_subroutine);
	me_bytes_u8(out, DW_CHILDREN_no);
	put_attr(out, DW_AT_abstract_origin, DW_FORM_ref_addr);
	put_attr(out, DW_AT_low_pc, DW_FORM_addr);
	put_attr(out, DW_AT_high_pc, DW_FORM_addr);
	put_attr(out, DW_AT_call_file, DW_FORM_udata);
	put_attr(out, DW_AT_call_line, DW_FORM_udata);
	put_attr(out, DW_AT_call_column, DW_FORM_udata);
	me_bytes_u16(out, 0);
}

/* ---- entries ------------------------------------------------------------------------------- */

static uint64_t offset_of(const struct cloner *c, const uint8_t *p)
{
	return (uint64_t)(p - c->u->file->info.data);
}

static int put_reference(struct cloner *c, uint64_t to)
{
	if (!grow(&c->references, c->nr_references, &c->cap_references, sizeof(*c->references)))
		return -ENOMEM;
	c->references[c->nr_references++] = (struct reference){c->out.size, to};
	me_bytes_u32(&c->out, 0);
	return 0;
}

/* Copies the values of @e out of the changed unit, where lists are those with the copies already. */
static int put_values(struct cloner *c, const struct me_entry *e, unsigned int variant)
{
	const struct me_unit *u = c->u;
	const struct me_abbrev *a = e->abbrev;
	struct me_cursor v = {e->start + e->code_size, u->file->info.data + u->end, false};

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

			if (put_reference(c, me_value_reference(u, &value)))
				return -ENOMEM;
		} else {
			me_bytes_put(&c->out, me_unit_field(u, p), size);
		}
	}
	return v.bad ? -EBADMSG : 0;
}

static int put_entry(struct cloner *c, const struct me_entry *e, bool children)
{
	unsigned int variant = (me_entry_is_changed(c->u, e) ? CHANGED : 0) |
			       (children && !e->abbrev->children ? CHILDREN : 0);

	if (!grow(&c->copied, c->nr_copied, &c->cap_copied, sizeof(*c->copied)))
		return -ENOMEM;
	c->copied[c->nr_copied++] = (struct copied){offset_of(c, e->start), c->base + c->out.size};
	me_bytes_uleb(&c->out, code_of(c, e->abbrev, variant));
	return put_values(c, e, variant);
}

/* The entries of the calls whose innermost scope is the entry at @scope. */
static int put_calls(struct cloner *c, uint64_t scope, const struct me_ranges *code)
{
	const struct me_inlined_calls *calls = &c->u->file->inlined;

	for (uint32_t r = 0; r < code->nr; r++)
		for (uint32_t i = me_inlined_from(calls, code->ranges[r].lo);
		     i < calls->nr && calls->calls[i].call < code->ranges[r].hi; i++) {
			const struct me_inlined *call = &calls->calls[i];

			if (!me_debug_spend(c->u->file, 1))
				return -EPERM;
			if (!call->described || call->scope != scope)
				continue;
			me_bytes_uleb(&c->out, c->call_code);
			if (put_reference(c, c->callees[call->callee]))
				return -ENOMEM;
			me_bytes_u64(&c->out, call->new_vaddr);
			me_bytes_u64(&c->out, call->new_end);
			me_bytes_uleb(&c->out, call->place.file);
			me_bytes_uleb(&c->out, call->place.line);
			me_bytes_uleb(&c->out, call->place.column);
			c->u->file->nr_described++;
		}
	return 0;
}

/* ---- functions ----------------------------------------------------------------------------- */

static bool is_scope(const struct me_entry *e)
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
static int claim_calls(struct cloner *c, const struct me_entry *e)
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
			if (file->old.ranges[r].hi - call->call < ME_CALL_SIZE)
				continue;
			call->scope = offset_of(c, e->start);
		}
	return 0;
}

static int find_scopes(struct cloner *c, const struct me_moved_function *f)
{
	const uint8_t *data = c->u->file->info.data;
	struct me_cursor in = {data + f->start, data + f->end, false};

	while (in.p < in.end) {
		struct me_entry e;
		int rc = me_entry_read(c->u, &in, &e);

		if (!rc && e.abbrev && is_scope(&e))
			rc = claim_calls(c, &e);
		if (rc)
			return rc;
	}
	return 0;
}

/* Is the entry the innermost scope of any call? */
static bool has_calls(const struct cloner *c, const struct me_entry *e,
		      const struct me_ranges *code)
{
	const struct me_inlined_calls *calls = &c->u->file->inlined;

	if (!is_scope(e))
		return false;

	for (uint32_t r = 0; r < code->nr; r++)
		for (uint32_t i = me_inlined_from(calls, code->ranges[r].lo);
		     i < calls->nr && calls->calls[i].call < code->ranges[r].hi; i++)
			if (me_debug_spend(c->u->file, 1) && calls->calls[i].described &&
			    calls->calls[i].scope == offset_of(c, e->start))
				return true;
	return false;
}

static int clone_entry(struct cloner *c, const struct me_entry *e, const struct me_ranges *code)
{
	bool calls = has_calls(c, e, code), childless = !e->abbrev->children;
	int rc = put_entry(c, e, calls);

	if (rc)
		return rc;
	if (!childless) {
		if (!grow(&c->open, c->nr_open, &c->cap_open, sizeof(*c->open)))
			return -ENOMEM;
		c->open[c->nr_open++] = (struct open_entry){offset_of(c, e->start), calls};
		return 0;
	}
	if (!calls)
		return 0;
	rc = put_calls(c, offset_of(c, e->start), code);
	me_bytes_u8(&c->out, 0);
	return rc;
}

/* The end of a list of entries. Inlined calls are last among those of their scope. */
static int close_entry(struct cloner *c, const struct me_ranges *code)
{
	int rc = 0;

	if (!c->nr_open)
		return -EBADMSG;
	c->nr_open--;
	if (c->open[c->nr_open].has_calls)
		rc = put_calls(c, c->open[c->nr_open].old_off, code);
	me_bytes_u8(&c->out, 0);
	return rc;
}

static int clone_function(struct cloner *c, const struct me_moved_function *f)
{
	const uint8_t *data = c->u->file->info.data;
	struct me_cursor in = {data + f->start, data + f->end, false};
	struct me_ranges code = {0};
	struct me_entry e;
	int rc = find_scopes(c, f);

	while (!rc && in.p < in.end) {
		rc = me_entry_read(c->u, &in, &e);
		if (rc)
			break;
		if (offset_of(c, e.start) == f->start)
			rc = me_entry_read_ranges(c->u, &e, &code);
		me_ranges_join(&code, 0);
		if (!rc)
			rc = e.abbrev ? clone_entry(c, &e, &code) : close_entry(c, &code);
	}
	me_ranges_fini(&code);
	return rc;
}

/* The function lies in the same namespaces as before. */
static int clone_within(struct cloner *c, const struct me_moved_function *f)
{
	const uint8_t *data = c->u->file->info.data;
	int rc = 0;

	for (uint8_t i = 0; i < f->nr_parents && !rc; i++) {
		struct me_cursor in = {data + f->parents[i], data + c->u->end, false};
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

static void put_name(struct cloner *c, const struct me_callee_name *name)
{
	if (name->form == DW_FORM_string)
		me_bytes_put(&c->out, name->string, strlen(name->string) + 1);
	else if (name->form)
		me_bytes_u32(&c->out, name->off);
}

/*
 * Writes an entry for a function that was inlined. Readers take names, code and variables from the entry that
 * another one leads to, so this entry must not lead to that of the function's code.
 */
static int put_callee(struct cloner *c, const struct me_callee *callee)
{
	struct me_bytes *out = &c->abbrevs;
	int rc = 0;

	me_bytes_uleb(&c->out, c->next_code);
	me_bytes_uleb(out, c->next_code++);
	me_bytes_uleb(out, DW_TAG_subprogram);
	me_bytes_u8(out, DW_CHILDREN_no);
	if (callee->declaration) {
		put_attr(out, DW_AT_specification, DW_FORM_ref_addr);
		rc = put_reference(c, callee->declaration);
	} else {
		put_attr(out, DW_AT_name, callee->name.form);
		put_name(c, &callee->name);
		if (callee->linkage_name.form)
			put_attr(out,
				 c->u->version >= 4 ? DW_AT_linkage_name : DW_AT_MIPS_linkage_name,
				 callee->linkage_name.form);
		put_name(c, &callee->linkage_name);
	}
	put_attr(out, DW_AT_inline, DW_FORM_data1);
	me_bytes_u16(out, 0);
	me_bytes_u8(&c->out, DW_INL_inlined);
	return rc;
}

/* The compiler may have written an entry without code for a function that it inlined itself. */
static int put_callees(struct cloner *c)
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

/* Declares what the entries use that both units have at the same place. */
static int declare_prefix(struct cloner *c, const struct me_entry *own)
{
	struct me_unit *u = c->u;
	const uint8_t *data = u->file->info.data;
	struct me_cursor in = {own->start, data + u->prefix_end, false};
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

static int put_head(struct cloner *c, const struct me_entry *own)
{
	struct me_unit *u = c->u;
	uint64_t field = (uint64_t)(me_entry_list_field(own) - (u->file->info.data + u->off));
	uint32_t off;
	int rc;

	me_bytes_put(&c->out, u->bytes, u->prefix_end - u->off);
	u->file->new.nr = 0;
	for (uint32_t i = 0; i < u->taken.nr; i++)
		me_ranges_add(&u->file->new, u->taken.ranges[i].lo, u->taken.ranges[i].hi);
	rc = me_ranges_write(u, &off);
	if (rc || c->out.failed)
		return rc ? rc : -ENOMEM;
	me_bytes_patch_u32(&c->out, field, off);
	return 0;
}

static int by_old_off(const void *a, const void *b)
{
	const struct copied *x = a, *y = b;

	return x->old_off < y->old_off ? -1 : x->old_off > y->old_off;
}

static void fill_references(struct cloner *c)
{
	qsort(c->copied, c->nr_copied, sizeof(*c->copied), by_old_off);
	for (uint32_t i = 0; i < c->nr_references; i++) {
		struct copied key = {.old_off = c->references[i].to}, *found = NULL;

		if (c->nr_copied)
			found = bsearch(&key, c->copied, c->nr_copied, sizeof(key), by_old_off);
		me_bytes_patch_u32(&c->out, c->references[i].at,
				   (uint32_t)(found ? found->off : key.old_off));
	}
}

static int write_unit(struct cloner *c, const struct me_entry *own)
{
	struct me_unit *u = c->u;
	int rc = declare_prefix(c, own);

	declare_calls(c);
	if (!rc)
		rc = put_head(c, own);
	if (!rc)
		rc = put_callees(c);
	for (uint32_t i = 0; i < u->nr_functions && !rc; i++)
		rc = clone_within(c, &u->functions[i]);
	me_bytes_u8(&c->out, 0);
	me_bytes_u8(&c->abbrevs, 0);
	if (!rc && (c->out.failed || c->abbrevs.failed))
		rc = -ENOMEM;
	return rc;
}

/* The old entries have no code now. */
static int empty_old(struct me_unit *u)
{
	uint32_t off;
	int rc;

	u->file->new.nr = 0;
	rc = me_ranges_write(u, &off);
	for (uint32_t i = 0; i < u->nr_functions && !rc; i++)
		memcpy(u->bytes + (u->functions[i].list_at - u->off), &off, sizeof(off));
	return rc;
}

static int remember(struct me_unit *u, uint64_t off)
{
	struct me_debug_sections *file = u->file;
	uint32_t nr = file->nr_added;
	struct me_added_unit *grown = file->added;

	if ((nr & (nr - 1)) == 0) /* 0, 1, 2, 4, 8, ... */
		grown = realloc(grown, (nr ? 2 * (size_t)nr : 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	file->added = grown;
	file->added[file->nr_added++] = (struct me_added_unit){u->off, off, u->taken};
	u->taken = (struct me_ranges){0};
	return 0;
}

/* Append the unit and its abbreviations. */
static int append(struct cloner *c)
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
	return info->added.failed || abbrev->added.failed ? -ENOMEM : remember(c->u, c->base);
}

int me_functions_move(struct me_unit *unit, const struct me_entry *own)
{
	struct me_debug_sections *file = unit->file;
	struct cloner c = {.u = unit,
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
		rc = append(&c);
	me_bytes_fini(&c.out);
	me_bytes_fini(&c.abbrevs);
	free(c.codes);
	free(c.callees);
	free(c.copied);
	free(c.references);
	free(c.open);
	return rc;
}
