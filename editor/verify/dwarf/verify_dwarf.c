// SPDX-License-Identifier: Apache-2.0
/* verify_dwarf - numbers, forms, abbreviations, units and entries. */
#include "editor/verify/dwarf/verify_dwarf.h"
#include "libprof/base/grow.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

/* ---- numbers ------------------------------------------------------------------------------- */

uint64_t vf_cursor_long_uleb(struct vf_cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte = (uint8_t)vf_cursor_fixed(c, 1);

		if (c->bad || (shift == 63 && byte & 0x7e))
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		c->bad |= c->terse && shift && !byte;
		return v;
	}
	c->bad = true;
	return 0;
}

int64_t vf_cursor_sleb(struct vf_cursor *c)
{
	uint64_t v = 0;
	uint8_t sign = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte = (uint8_t)vf_cursor_fixed(c, 1);

		if (c->bad)
			return 0;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80) {
			sign = byte & 0x40;
			continue;
		}
		c->bad |= c->terse && shift && byte == (sign ? 0x7f : 0);
		if (shift < 57 && byte & 0x40)
			v |= ~UINT64_C(0) << (shift + 7);
		return (int64_t)v;
	}
	c->bad = true;
	return 0;
}

void vf_cursor_skip_leb(struct vf_cursor *c)
{
	while (!c->bad && vf_cursor_fixed(c, 1) & 0x80)
		;
}

unsigned int vf_pointer_size(uint8_t enc)
{
	switch (enc & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8: return 8;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4: return 4;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2: return 2;
	default: return 0;
	}
}

uint64_t vf_cursor_encoded(struct vf_cursor *c, uint8_t enc)
{
	uint64_t at = c->vaddr, v;

	switch (enc & 0x0f) {
	case DW_EH_PE_sdata4: v = (uint64_t)(int64_t)(int32_t)vf_cursor_fixed(c, 4); break;
	case DW_EH_PE_sdata2: v = (uint64_t)(int64_t)(int16_t)vf_cursor_fixed(c, 2); break;
	case DW_EH_PE_uleb128: v = vf_cursor_uleb(c); break;
	case DW_EH_PE_sleb128: v = (uint64_t)vf_cursor_sleb(c); break;
	default: v = vf_cursor_fixed(c, vf_pointer_size(enc)); c->bad |= !vf_pointer_size(enc);
	}
	if ((enc & 0xf0) != DW_EH_PE_absptr && (enc & 0xf0) != DW_EH_PE_pcrel)
		c->bad = true;
	if (v && (enc & 0x70) == DW_EH_PE_pcrel)
		v += at;
	return c->bad ? 0 : v;
}

/* ---- forms --------------------------------------------------------------------------------- */

#define BYTES(n) ((n) + 2)
#define VARIES	 1

/* Bytes of a value; -1: they vary; -2: not known. */
static int form_size(unsigned int form, unsigned int version)
{
	static const uint8_t sizes[] = {
		[DW_FORM_flag_present] = BYTES(0), [DW_FORM_implicit_const] = BYTES(0),
		[DW_FORM_data1] = BYTES(1),	   [DW_FORM_ref1] = BYTES(1),
		[DW_FORM_flag] = BYTES(1),	   [DW_FORM_strx1] = BYTES(1),
		[DW_FORM_addrx1] = BYTES(1),	   [DW_FORM_data2] = BYTES(2),
		[DW_FORM_ref2] = BYTES(2),	   [DW_FORM_strx2] = BYTES(2),
		[DW_FORM_addrx2] = BYTES(2),	   [DW_FORM_strx3] = BYTES(3),
		[DW_FORM_addrx3] = BYTES(3),	   [DW_FORM_data4] = BYTES(4),
		[DW_FORM_ref4] = BYTES(4),	   [DW_FORM_strp] = BYTES(4),
		[DW_FORM_sec_offset] = BYTES(4),   [DW_FORM_line_strp] = BYTES(4),
		[DW_FORM_strp_sup] = BYTES(4),	   [DW_FORM_ref_sup4] = BYTES(4),
		[DW_FORM_strx4] = BYTES(4),	   [DW_FORM_addrx4] = BYTES(4),
		[DW_FORM_addr] = BYTES(8),	   [DW_FORM_data8] = BYTES(8),
		[DW_FORM_ref8] = BYTES(8),	   [DW_FORM_ref_sig8] = BYTES(8),
		[DW_FORM_ref_sup8] = BYTES(8),	   [DW_FORM_data16] = BYTES(16),
		[DW_FORM_string] = VARIES,	   [DW_FORM_block] = VARIES,
		[DW_FORM_block1] = VARIES,	   [DW_FORM_block2] = VARIES,
		[DW_FORM_block4] = VARIES,	   [DW_FORM_exprloc] = VARIES,
		[DW_FORM_sdata] = VARIES,	   [DW_FORM_udata] = VARIES,
		[DW_FORM_ref_udata] = VARIES,	   [DW_FORM_strx] = VARIES,
		[DW_FORM_addrx] = VARIES,	   [DW_FORM_loclistx] = VARIES,
		[DW_FORM_rnglistx] = VARIES};

	switch (form) {
	case DW_FORM_ref_addr: return version <= 2 ? 8 : 4;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt: return 4;
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index: return -1;
	default: return (form < sizeof(sizes) ? sizes[form] : 0) - BYTES(0);
	}
}

void vd_skip_form(struct vf_cursor *c, unsigned int form, unsigned int version)
{
	int size = form_size(form, version);

	if (size >= 0) {
		vf_cursor_skip(c, (uint64_t)size);
		return;
	}
	switch (form) {
	case DW_FORM_string:
		while (!c->bad && vf_cursor_fixed(c, 1))
			;
		break;
	case DW_FORM_block1: vf_cursor_skip(c, vf_cursor_fixed(c, 1)); break;
	case DW_FORM_block2: vf_cursor_skip(c, vf_cursor_fixed(c, 2)); break;
	case DW_FORM_block4: vf_cursor_skip(c, vf_cursor_fixed(c, 4)); break;
	case DW_FORM_block:
	case DW_FORM_exprloc: vf_cursor_skip(c, vf_cursor_uleb(c)); break;
	default: c->bad |= size == -BYTES(0); vf_cursor_skip_leb(c);
	}
}

bool vd_form_is_address(unsigned int form)
{
	return form == DW_FORM_addr || form == DW_FORM_addrx ||
	       (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4);
}

bool vd_form_is_reference(unsigned int form)
{
	return form == DW_FORM_ref1 || form == DW_FORM_ref2 || form == DW_FORM_ref4 ||
	       form == DW_FORM_ref8 || form == DW_FORM_ref_udata;
}

bool vd_form_is_expression(unsigned int form)
{
	return form == DW_FORM_exprloc || form == DW_FORM_block || form == DW_FORM_block1 ||
	       form == DW_FORM_block2 || form == DW_FORM_block4;
}

/* ---- abbreviations ------------------------------------------------------------------------- */

static bool may_change(unsigned int name)
{
	switch (name) {
	case DW_AT_low_pc:
	case DW_AT_high_pc:
	case DW_AT_ranges:
	case DW_AT_entry_pc:
	case DW_AT_location:
	case DW_AT_frame_base:
	case DW_AT_GNU_locviews:
	case DW_AT_stmt_list:
	case DW_AT_rnglists_base:
	case DW_AT_loclists_base: return true;
	default: return false;
	}
}

static int read_attrs(struct vd_abbrevs *t, struct vd_abbrev *a, struct vf_cursor *c,
		      unsigned int version, struct vd_work *work)
{
	a->first_attr = t->nr_attrs;
	a->plain = true;
	for (;;) {
		uint64_t name = vf_cursor_uleb(c), form = vf_cursor_uleb(c);
		int64_t value = 0;
		int size;

		if (c->bad || name > UINT16_MAX || form > UINT16_MAX || !vd_spend(work, 1))
			return -EBADMSG;
		if (!name && !form)
			break;
		if (form == DW_FORM_implicit_const)
			value = vf_cursor_sleb(c);
		if (mp_grow(t->attrs, t->cap_attrs, t->nr_attrs + 1))
			return -ENOMEM;
		t->attrs[t->nr_attrs++] = (struct vd_attr){(uint16_t)name, (uint16_t)form, value};
		a->plain &= !may_change((unsigned int)name);
		size = form_size((unsigned int)form, version);
		a->size = size < 0 || a->size < 0 || a->size > UINT16_MAX ? -1 : a->size + size;
	}
	a->nr_attrs = t->nr_attrs - a->first_attr;
	return 0;
}

static int by_code(const void *a, const void *b)
{
	const struct vd_abbrev *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

int vd_abbrevs_read(struct vf_cursor c, unsigned int version, struct vd_work *work,
		    struct vd_abbrevs *t)
{
	t->nr = t->nr_attrs = 0;
	for (;;) {
		struct vd_abbrev a = {.code = vf_cursor_uleb(&c)};
		uint64_t tag;
		int ret;

		if (c.bad)
			return -EBADMSG;
		if (!a.code)
			break;
		tag = vf_cursor_uleb(&c);
		a.children = vf_cursor_fixed(&c, 1);
		if (tag > UINT16_MAX)
			return -EBADMSG;
		a.tag = (uint16_t)tag;
		ret = read_attrs(t, &a, &c, version, work);
		if (ret)
			return ret;
		if (mp_grow(t->list, t->cap, t->nr + 1))
			return -ENOMEM;
		t->list[t->nr++] = a;
	}
	if (t->nr)
		qsort(t->list, t->nr, sizeof(*t->list), by_code);
	for (uint32_t i = 1; i < t->nr; i++)
		if (t->list[i].code == t->list[i - 1].code)
			return -EBADMSG;
	return t->nr ? 0 : -EBADMSG;
}

void vd_abbrevs_fini(struct vd_abbrevs *t)
{
	free(t->list);
	free(t->attrs);
	*t = (struct vd_abbrevs){0};
}

static struct vd_abbrev *find_abbrev(const struct vd_abbrevs *t, uint64_t code)
{
	const struct vd_abbrev key = {.code = code};

	/* Compilers number abbreviations from 1. */
	if (code <= t->nr && t->list[code - 1].code == code)
		return &t->list[code - 1];
	return bsearch(&key, t->list, t->nr, sizeof(key), by_code);
}

/* ---- units and entries --------------------------------------------------------------------- */

bool vd_unit_header(const uint8_t *data, uint64_t size, uint64_t off, unsigned int type,
		    struct vd_unit *u)
{
	struct vf_cursor c = vf_cursor_at(data, size, off);
	uint64_t length = vf_cursor_fixed(&c, 4), address_size = 0;

	u->data = data;
	u->off = off;
	u->type = type;
	if (c.bad || length >= 0xfffffff0 || length > (uint64_t)(c.end - c.p))
		return false;
	c.end = c.p + length;
	u->end = off + 4 + length;
	u->version = (unsigned int)vf_cursor_fixed(&c, 2);
	if (u->version < 2 || u->version > 5)
		return false;
	if (u->version == 5) {
		u->type = (unsigned int)vf_cursor_fixed(&c, 1);
		address_size = vf_cursor_fixed(&c, 1);
	}
	u->abbrev_field = (uint64_t)(c.p - data);
	u->abbrev_off = vf_cursor_fixed(&c, 4);
	if (u->version < 5)
		address_size = vf_cursor_fixed(&c, 1);
	if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
		vf_cursor_skip(&c, 8);
	if (u->type == DW_UT_type || u->type == DW_UT_split_type)
		vf_cursor_skip(&c, 12);
	u->first = (uint64_t)(c.p - data);
	return !c.bad && address_size == 8;
}

struct vf_cursor vd_unit_at(const struct vd_unit *u, uint64_t off)
{
	struct vf_cursor c = vf_cursor_over(u->data + off, u->data + u->end);

	c.bad = off > u->end;
	return c;
}

bool vd_entry_read(const struct vd_unit *u, struct vf_cursor *c, struct vd_entry *e)
{
	uint64_t code;

	*e = (struct vd_entry){.off = (uint64_t)(c->p - u->data)};
	code = vf_cursor_uleb(c);
	e->values = e->end = c->p;
	if (!code)
		return vd_spend(u->work, 1) && !c->bad;
	e->abbrev = c->bad ? NULL : find_abbrev(&u->abbrevs, code);
	if (!e->abbrev)
		return false;
	if (e->abbrev->size >= 0)
		vf_cursor_skip(c, (uint64_t)e->abbrev->size);
	else
		for (uint32_t i = 0; i < e->abbrev->nr_attrs; i++)
			vd_skip_form(c, vd_attr(u, e->abbrev, i)->form, u->version);
	e->end = c->p;
	return vd_spend(u->work, 1u + e->abbrev->nr_attrs + (uint64_t)(e->end - e->values)) &&
	       !c->bad;
}

struct vd_values vd_values_of(const struct vd_unit *u, const struct vd_entry *e)
{
	return (struct vd_values){
		.u = u, .abbrev = e->abbrev, .c = vf_cursor_over(e->values, e->end)};
}

bool vd_values_next(struct vd_values *w)
{
	const uint8_t *p = w->c.p;

	if (w->next == w->abbrev->nr_attrs)
		return false;
	w->attr = vd_attr(w->u, w->abbrev, w->next++);
	vd_skip_form(&w->c, w->attr->form, w->u->version);
	w->value = (struct vd_value){p, (uint64_t)(w->c.p - p), w->attr->form, w->attr->value};
	return vd_spend(w->u->work, 1 + w->value.size);
}

struct vd_value vd_entry_find(const struct vd_unit *u, const struct vd_entry *e, unsigned int name)
{
	struct vd_values w = vd_values_of(u, e);
	struct vd_value found = {0};

	while (e->abbrev && vd_values_next(&w))
		if (w.attr->name == name)
			found = w.value;
	return found;
}

/* ---- values -------------------------------------------------------------------------------- */

static struct vf_cursor value_cursor(const struct vd_value *v)
{
	return vf_cursor_over(v->p, v->p ? v->p + v->size : NULL);
}

uint64_t vd_value_fixed(const struct vd_value *v)
{
	struct vf_cursor c = value_cursor(v);

	return v->p && v->size <= 8 ? vf_cursor_fixed(&c, (unsigned int)v->size) : 0;
}

uint64_t vd_value_index(const struct vd_value *v)
{
	struct vf_cursor c = value_cursor(v);

	switch (v->form) {
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_rnglistx:
	case DW_FORM_loclistx: return vf_cursor_uleb(&c);
	default: return vd_value_fixed(v);
	}
}

uint64_t vd_value_number(const struct vd_value *v)
{
	struct vf_cursor c = value_cursor(v);

	switch (v->p ? v->form : 0) {
	case DW_FORM_sdata: return (uint64_t)vf_cursor_sleb(&c);
	case DW_FORM_implicit_const: return (uint64_t)v->constant;
	case DW_FORM_udata:
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8: return vd_value_index(v);
	default: return 0;
	}
}

struct vf_cursor vd_value_expression(const struct vd_value *v)
{
	struct vf_cursor c = value_cursor(v);

	switch (v->form) {
	case DW_FORM_block1: vf_cursor_skip(&c, 1); break;
	case DW_FORM_block2: vf_cursor_skip(&c, 2); break;
	case DW_FORM_block4: vf_cursor_skip(&c, 4); break;
	default: vf_cursor_uleb(&c); break;
	}
	return c;
}
