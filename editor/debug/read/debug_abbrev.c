// SPDX-License-Identifier: Apache-2.0
/* debug_abbrev - reads a table, chooses new codes, and writes a unit's own table. */
#include "editor/debug/read/debug_abbrev.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/debug/read/debug_form.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

/* Attributes in the vendors' range that no known vendor uses: filler behind a list's offset, and in
 * place of view numbers. A reader may object to an attribute that an entry has twice. */
#define FILLER_ATTR	  0x2d4d
#define NO_LOCVIEWS_ATTR  0x2d4e
#define NO_ENTRYVIEW_ATTR 0x2d4f

enum {
	OFFSET_SIZE = 4,
	MOST_ATTRS = 256 /* of one entry: values without bytes would cost nothing but time */
};

static bool is_of_interest(unsigned int name)
{
	switch (name) {
	case DW_AT_low_pc:
	case DW_AT_high_pc:
	case DW_AT_ranges:
	case DW_AT_entry_pc:
	case DW_AT_location:
	case DW_AT_frame_base:
	case DW_AT_stmt_list: return true;
	default: return false;
	}
}

static int read_attrs(struct me_abbrevs *t, struct me_abbrev *a, struct mp_cursor *c,
		      unsigned int version)
{
	a->first_attr = t->nr_attrs;
	a->low = a->high = ME_NO_ATTR;
	a->plain = true;
	for (;;) {
		uint64_t name = mp_cursor_uleb(c), form = mp_cursor_uleb(c);
		uint32_t i = t->nr_attrs - a->first_attr;
		int size;

		if (c->bad || name > UINT16_MAX || form > UINT16_MAX)
			return -EBADMSG;
		if (!name && !form)
			break;
		if (i == MOST_ATTRS)
			return -EBADMSG;
		if (form == DW_FORM_implicit_const)
			mp_cursor_sleb(c);
		if (mp_grow(t->attrs, t->cap_attrs, t->nr_attrs + 1))
			return -ENOMEM;
		t->attrs[t->nr_attrs++] = (struct me_abbrev_attr){(uint16_t)name, (uint16_t)form};
		if (name == DW_AT_low_pc)
			a->low = i;
		if (name == DW_AT_high_pc)
			a->high = i;
		a->plain &= !is_of_interest((unsigned int)name);
		size = me_form_size((unsigned int)form, version);
		if (size < 0 || a->size < 0 || a->size > UINT16_MAX)
			a->size = ME_FORM_VARIES;
		else
			a->size += size;
	}
	a->nr_attrs = t->nr_attrs - a->first_attr;
	return 0;
}

static int by_code(const void *a, const void *b)
{
	const struct me_abbrev *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

static int read_all(struct me_abbrevs *t, struct mp_cursor *c, unsigned int version)
{
	for (;;) {
		struct me_abbrev a = {.bytes = c->p};
		uint64_t tag;
		int rc;

		a.code = mp_cursor_uleb(c);
		if (c->bad)
			return -EBADMSG;
		if (!a.code)
			break;
		tag = mp_cursor_uleb(c);
		a.children = mp_cursor_u8(c);
		if (tag > UINT16_MAX)
			return -EBADMSG;
		a.tag = (uint16_t)tag;
		rc = read_attrs(t, &a, c, version);
		if (rc)
			return rc;
		a.end = c->p;
		if (mp_grow(t->abbrevs, t->cap, t->nr + 1))
			return -ENOMEM;
		t->abbrevs[t->nr++] = a;
	}
	if (!t->nr)
		return -EBADMSG;
	qsort(t->abbrevs, t->nr, sizeof(*t->abbrevs), by_code);
	for (uint32_t i = 1; i < t->nr; i++)
		if (t->abbrevs[i].code == t->abbrevs[i - 1].code)
			return -EBADMSG;
	return 0;
}

int me_abbrevs_read(const uint8_t *data, uint64_t size, uint64_t off, unsigned int version,
		    struct me_abbrevs *out)
{
	struct mp_cursor c = mp_cursor_at(data, size, off);
	int rc;

	*out = (struct me_abbrevs){.off = off};
	rc = read_all(out, &c, version);
	if (rc)
		me_abbrevs_fini(out);
	return rc;
}

void me_abbrevs_fini(struct me_abbrevs *table)
{
	free(table->abbrevs);
	free(table->attrs);
	*table = (struct me_abbrevs){0};
}

struct me_abbrev *me_abbrevs_find(struct me_abbrevs *table, uint64_t code)
{
	uint32_t i;

	/* Compilers number abbreviations from 1. */
	if (code && code <= table->nr && table->abbrevs[code - 1].code == code)
		return &table->abbrevs[code - 1];
	i = mp_search(k, 0, table->nr, table->abbrevs[k].code < code);
	return i < table->nr && table->abbrevs[i].code == code ? &table->abbrevs[i] : NULL;
}

struct mp_cursor me_abbrev_constant(const struct me_abbrev *abbrev, uint32_t i)
{
	struct mp_cursor c = {.p = abbrev->bytes, .end = abbrev->end};

	mp_cursor_uleb(&c);
	mp_cursor_uleb(&c);
	mp_cursor_u8(&c);
	for (uint32_t k = 0; k <= i; k++) {
		const uint8_t *p;

		mp_cursor_uleb(&c);
		if (mp_cursor_uleb(&c) != DW_FORM_implicit_const)
			continue;
		p = c.p;
		mp_cursor_sleb(&c);
		if (k == i)
			return (struct mp_cursor){.p = p, .end = c.p, .bad = c.bad};
	}
	return (struct mp_cursor){.bad = true};
}

static bool has_attr(const struct me_abbrevs *t, const struct me_abbrev *a, unsigned int name)
{
	for (uint32_t i = 0; i < a->nr_attrs; i++)
		if (t->attrs[a->first_attr + i].name == name)
			return true;
	return false;
}

static unsigned int form_of(const struct me_abbrevs *t, const struct me_abbrev *a, uint32_t attr)
{
	return t->attrs[a->first_attr + attr].form;
}

/* Least size of a value of @form, in bytes. */
static int least_size(unsigned int form, unsigned int version)
{
	int size = me_form_size(form, version);

	return size >= 0 ? size : 1;
}

static bool is_pc_form(unsigned int form)
{
	switch (form) {
	case DW_FORM_addr:
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4: return true;
	default: return false;
	}
}

static bool is_end_form(unsigned int form)
{
	switch (form) {
	case DW_FORM_addr:
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata: return true;
	default: return is_pc_form(form);
	}
}

static bool high_takes_offset(const struct me_abbrevs *t, const struct me_abbrev *a,
			      unsigned int version)
{
	return me_form_size(form_of(t, a, a->high), version) >= OFFSET_SIZE;
}

/* Has the entry one DW_AT_low_pc and one DW_AT_high_pc, in usual forms, and no DW_AT_ranges? */
static bool is_one_range(const struct me_abbrevs *t, const struct me_abbrev *a)
{
	uint32_t nr = 0;

	if (a->low == ME_NO_ATTR || a->high == ME_NO_ATTR || has_attr(t, a, DW_AT_ranges))
		return false;
	for (uint32_t i = 0; i < a->nr_attrs; i++) {
		unsigned int name = t->attrs[a->first_attr + i].name;

		nr += name == DW_AT_low_pc || name == DW_AT_high_pc;
	}
	return nr == 2 && is_pc_form(form_of(t, a, a->low)) && is_end_form(form_of(t, a, a->high));
}

static enum me_abbrev_change choose_change(const struct me_abbrevs *t, const struct me_abbrev *a,
					   unsigned int version)
{
	unsigned int low, high;

	if (!is_one_range(t, a))
		return ME_ABBREV_NONE;
	low = form_of(t, a, a->low);
	high = form_of(t, a, a->high);
	if (a->tag == DW_TAG_subprogram && low == DW_FORM_addr && version >= 3 &&
	    !has_attr(t, a, DW_AT_entry_pc) && high_takes_offset(t, a, version))
		return ME_ABBREV_ENTRY_PC;
	if ((a->low + 1 == a->high || a->high + 1 == a->low) &&
	    least_size(low, version) + least_size(high, version) > OFFSET_SIZE)
		return ME_ABBREV_BOTH;
	return ME_ABBREV_NONE;
}

void me_abbrevs_begin(struct me_abbrevs *table, unsigned int version)
{
	for (uint32_t i = 0; i < table->nr; i++) {
		struct me_abbrev *a = &table->abbrevs[i];

		a->change = choose_change(table, a, version);
		a->used = a->touched = false;
		a->new_code = 0;
	}
}

/*
 * Does any entry but the unit's own use a list? Not for units before version 4, whose forms do not
 * tell offsets of lists from other numbers.
 */
static bool has_lists(const struct me_abbrevs *t, const struct me_abbrev *own)
{
	for (uint32_t i = 0; i < t->nr; i++) {
		const struct me_abbrev *a = &t->abbrevs[i];

		for (uint32_t k = 0; a->used && a != own && k < a->nr_attrs; k++) {
			unsigned int form = form_of(t, a, k);

			if (form == DW_FORM_sec_offset || form == DW_FORM_loclistx ||
			    form == DW_FORM_rnglistx)
				return true;
		}
	}
	return false;
}

void me_abbrev_choose_own(const struct me_abbrevs *table, struct me_abbrev *abbrev,
			  unsigned int version)
{
	if (is_one_range(table, abbrev) && high_takes_offset(table, abbrev, version))
		abbrev->change = ME_ABBREV_HIGH_ONLY;
	else if (version < 4 || has_lists(table, abbrev))
		abbrev->change = ME_ABBREV_NONE;
}

/*
 * Bytes of @code in the table. An entry could write @code with more bytes (padded LEB128), but no
 * producer does.
 */
static unsigned int code_length(uint64_t code)
{
	return me_uleb_size(code);
}

void me_abbrevs_choose(struct me_abbrevs *table)
{
	uint64_t next[3] = {0, 1, 1 << 7}; /* by length: codes to try next */

	for (uint32_t i = 0; i < table->nr; i++) {
		struct me_abbrev *a = &table->abbrevs[i];
		unsigned int length = code_length(a->code);

		if (!a->touched || a->change == ME_ABBREV_HIGH_ONLY || length > 2)
			continue;
		while (next[length] < UINT64_C(1) << 7 * length &&
		       me_abbrevs_find(table, next[length]))
			next[length]++;
		if (next[length] < UINT64_C(1) << 7 * length)
			a->new_code = next[length]++;
	}
}

static void put_ranges_attr(struct me_bytes *out, unsigned int version)
{
	me_bytes_uleb(out, DW_AT_ranges);
	me_bytes_uleb(out, version >= 4 ? DW_FORM_sec_offset : DW_FORM_data4);
}

static void put_filler_attr(struct me_bytes *out)
{
	me_bytes_uleb(out, FILLER_ATTR);
	me_bytes_uleb(out, DW_FORM_block1);
}

/* Write the replacement of attribute @i. Return: false if the attribute stays. */
static bool put_changed(const struct me_abbrevs *t, const struct me_abbrev *a, uint32_t i,
			unsigned int version, struct me_bytes *out)
{
	if (i != a->low && i != a->high)
		return false;
	if (a->change == ME_ABBREV_BOTH) {
		if (i == (a->low < a->high ? a->low : a->high)) {
			put_ranges_attr(out, version);
			put_filler_attr(out);
		}
		return true;
	}
	if (i == a->high) {
		put_ranges_attr(out, version);
		if (me_form_size(form_of(t, a, i), version) > OFFSET_SIZE)
			put_filler_attr(out);
		return true;
	}
	if (a->change != ME_ABBREV_ENTRY_PC)
		return false;
	me_bytes_uleb(out, DW_AT_entry_pc);
	me_bytes_uleb(out, DW_FORM_addr);
	return true;
}

void me_abbrev_declare(const struct me_abbrevs *t, const struct me_abbrev *a, unsigned int version,
		       uint64_t code, bool listed, bool no_views, struct me_bytes *out)
{
	struct mp_cursor c = {.p = a->bytes, .end = a->end};

	mp_cursor_uleb(&c);
	me_bytes_uleb(out, code);
	me_bytes_uleb(out, mp_cursor_uleb(&c));
	me_bytes_u8(out, mp_cursor_u8(&c));
	for (uint32_t i = 0; i < a->nr_attrs; i++) {
		const uint8_t *start = c.p, *form;
		uint64_t name = mp_cursor_uleb(&c);

		form = c.p;
		if (mp_cursor_uleb(&c) == DW_FORM_implicit_const)
			mp_cursor_sleb(&c);
		if (listed && put_changed(t, a, i, version, out))
			continue;
		if (no_views && name == DW_AT_GNU_locviews) {
			me_bytes_uleb(out, NO_LOCVIEWS_ATTR);
			me_bytes_uleb(out, DW_FORM_data4);
		} else if (no_views && name == DW_AT_GNU_entry_view) {
			me_bytes_uleb(out, NO_ENTRYVIEW_ATTR);
			me_bytes_put(out, form, (size_t)(c.p - form));
		} else {
			me_bytes_put(out, start, (size_t)(c.p - start));
		}
	}
	me_bytes_u16(out, 0);
}

/* As entries with a list have it. */
static void write_changed(const struct me_abbrevs *t, const struct me_abbrev *a,
			  unsigned int version, struct me_bytes *out)
{
	me_abbrev_declare(t, a, version, a->new_code ? a->new_code : a->code, true, false, out);
}

void me_abbrevs_write(const struct me_abbrevs *table, unsigned int version, struct me_bytes *out)
{
	for (uint32_t i = 0; i < table->nr; i++) {
		const struct me_abbrev *a = &table->abbrevs[i];

		if (!a->used)
			continue;
		if (!a->touched || a->new_code)
			me_bytes_put(out, a->bytes, (size_t)(a->end - a->bytes));
		if (a->touched)
			write_changed(table, a, version, out);
	}
	me_bytes_u8(out, 0);
}

void me_abbrev_write(const struct me_abbrevs *table, const struct me_abbrev *abbrev,
		     unsigned int version, struct me_bytes *out)
{
	if (abbrev->touched)
		write_changed(table, abbrev, version, out);
	else
		me_bytes_put(out, abbrev->bytes, (size_t)(abbrev->end - abbrev->bytes));
}

uint64_t me_abbrevs_free_code(const struct me_abbrevs *table)
{
	uint64_t code = table->abbrevs[table->nr - 1].code;

	for (uint32_t i = 0; i < table->nr; i++)
		if (table->abbrevs[i].new_code > code)
			code = table->abbrevs[i].new_code;
	return code + 1;
}

void me_abbrev_fill(uint8_t *field, uint64_t size, uint32_t off)
{
	memcpy(field, &off, OFFSET_SIZE);
	if (size > OFFSET_SIZE) {
		field[OFFSET_SIZE] = (uint8_t)(size - OFFSET_SIZE - 1);
		memset(field + OFFSET_SIZE + 1, 0, size - OFFSET_SIZE - 1);
	}
}
