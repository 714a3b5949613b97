// SPDX-License-Identifier: Apache-2.0
/* verify_debug_read - the encodings of DWARF 2 to 5, with offsets of 4 bytes and addresses of 8. */
#include <dwarf.h>
#include <errno.h>
#include <zlib.h>

#include "editor/verify/debug/verify_debug_private.h"

/* zlib cannot inflate to more than this many times the size. */
#define INFLATION_MAX 1032

/* ---- sections ------------------------------------------------------------------------------ */

static int inflate_section(const uint8_t *data, uint64_t size, struct vd_section *out)
{
	Elf64_Chdr header;
	uLongf inflated;

	if (size < sizeof(header))
		return -EPERM;
	memcpy(&header, data, sizeof(header));
	if (header.ch_type != ELFCOMPRESS_ZLIB ||
	    header.ch_size > (size - sizeof(header)) * INFLATION_MAX + 64)
		return -EPERM;
	out->inflated = malloc(header.ch_size + 1);
	if (!out->inflated)
		return -ENOMEM;
	inflated = header.ch_size;
	if (uncompress(out->inflated, &inflated, data + sizeof(header), size - sizeof(header)) !=
		    Z_OK ||
	    inflated != header.ch_size)
		return -EPERM;
	out->data = out->inflated;
	out->size = inflated;
	return 0;
}

static int open_section(const struct mp_elf *elf, const char *name, struct vd_section *out)
{
	const struct mp_section *s = mp_elf_section(elf, name);

	*out = (struct vd_section){0};
	if (!s || s->type != SHT_PROGBITS || s->flags & SHF_ALLOC)
		return 0;
	if (s->off > elf->size || s->size > elf->size - s->off)
		return -EPERM;
	out->data = elf->data + s->off;
	out->size = s->size;
	return s->flags & SHF_COMPRESSED ? inflate_section(out->data, s->size, out) : 0;
}

int vd_file_open(const struct mp_elf *elf, struct vd_file *f)
{
	const struct {
		const char *name;
		struct vd_section *section;
	} all[] = {
		{".debug_info", &f->info},
		{".debug_abbrev", &f->abbrev},
		{".debug_line", &f->line},
		{".debug_ranges", &f->ranges},
		{".debug_rnglists", &f->rnglists},
		{".debug_loc", &f->loc},
		{".debug_loclists", &f->loclists},
		{".debug_addr", &f->addr},
		{".debug_str_offsets", &f->str_offsets},
	};
	int ret = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !ret; i++)
		ret = open_section(elf, all[i].name, all[i].section);
	return ret;
}

void vd_file_close(struct vd_file *f)
{
	free(f->info.inflated);
	free(f->abbrev.inflated);
	free(f->line.inflated);
	free(f->ranges.inflated);
	free(f->rnglists.inflated);
	free(f->loc.inflated);
	free(f->loclists.inflated);
	free(f->addr.inflated);
	free(f->str_offsets.inflated);
}

/* ---- numbers ------------------------------------------------------------------------------- */

struct vd_cursor vd_cursor_at(const struct vd_section *s, uint64_t off)
{
	struct vd_cursor c = {s->data, s->data, off > s->size || !s->data};

	if (!c.bad) {
		c.p = s->data + off;
		c.end = s->data + s->size;
	}
	return c;
}

void vd_skip(struct vd_cursor *c, uint64_t size)
{
	if (c->bad || size > (uint64_t)(c->end - c->p))
		c->bad = true;
	else
		c->p += size;
}

uint64_t vd_fixed(struct vd_cursor *c, unsigned int size)
{
	const uint8_t *p = c->p;
	uint64_t v = 0;

	vd_skip(c, size);
	if (!c->bad)
		memcpy(&v, p, size);
	return v;
}

uint64_t vd_uleb(struct vd_cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte = (uint8_t)vd_fixed(c, 1);

		if (c->bad || (shift == 63 && byte & 0x7e))
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

int64_t vd_sleb(struct vd_cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte = (uint8_t)vd_fixed(c, 1);

		if (c->bad)
			return 0;
		v |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (byte & 0x80)
			continue;
		if (shift < 57 && byte & 0x40)
			v |= ~UINT64_C(0) << (shift + 7);
		return (int64_t)v;
	}
	c->bad = true;
	return 0;
}

/* ---- values -------------------------------------------------------------------------------- */

/* Bytes of a value; -1: they vary; -2: not known. */
static int form_size(unsigned int form, unsigned int version)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const: return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1: return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2: return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3: return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt: return 4;
	case DW_FORM_addr:
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8: return 8;
	case DW_FORM_data16: return 16;
	case DW_FORM_ref_addr: return version <= 2 ? 8 : 4;
	case DW_FORM_string:
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
	case DW_FORM_exprloc:
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index: return -1;
	default: return -2;
	}
}

void vd_skip_form(struct vd_cursor *c, unsigned int form, unsigned int version)
{
	int size = form_size(form, version);

	if (size >= 0) {
		vd_skip(c, (uint64_t)size);
		return;
	}
	switch (form) {
	case DW_FORM_string:
		while (!c->bad && vd_fixed(c, 1))
			;
		break;
	case DW_FORM_block1: vd_skip(c, vd_fixed(c, 1)); break;
	case DW_FORM_block2: vd_skip(c, vd_fixed(c, 2)); break;
	case DW_FORM_block4: vd_skip(c, vd_fixed(c, 4)); break;
	case DW_FORM_block:
	case DW_FORM_exprloc: vd_skip(c, vd_uleb(c)); break;
	default:
		if (size == -2)
			c->bad = true;
		while (!c->bad && vd_fixed(c, 1) & 0x80)
			;
		break;
	}
}

uint64_t vd_value_fixed(const struct vd_value *v)
{
	struct vd_cursor c = {v->p, v->p ? v->p + v->size : NULL, false};

	return v->p && v->size <= 8 ? vd_fixed(&c, (unsigned int)v->size) : 0;
}

uint64_t vd_value_number(const struct vd_value *v)
{
	struct vd_cursor c = {v->p, v->p ? v->p + v->size : NULL, false};

	switch (v->p ? v->form : 0) {
	case DW_FORM_udata: return vd_uleb(&c);
	case DW_FORM_sdata: return (uint64_t)vd_sleb(&c);
	case DW_FORM_implicit_const: return (uint64_t)v->constant;
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8: return vd_value_fixed(v);
	default: return 0;
	}
}

bool vd_value_is_offset(const struct vd_unit *u, const struct vd_value *v)
{
	return v->p && v->form == (u->version >= 4 ? DW_FORM_sec_offset : DW_FORM_data4);
}

bool vd_form_is_reference(unsigned int form)
{
	return form == DW_FORM_ref1 || form == DW_FORM_ref2 || form == DW_FORM_ref4 ||
	       form == DW_FORM_ref8 || form == DW_FORM_ref_udata;
}

uint64_t vd_value_reference(const struct vd_unit *u, const struct vd_value *v)
{
	struct vd_cursor c = {v->p, v->p ? v->p + v->size : NULL, false};

	if (v->p && v->form == DW_FORM_ref_addr)
		return vd_value_fixed(v);
	if (!v->p || !vd_form_is_reference(v->form))
		return 0;
	return u->off + (v->form == DW_FORM_ref_udata ? vd_uleb(&c) : vd_value_fixed(v));
}

struct vd_name vd_value_name(const struct vd_unit *u, const struct vd_value *v)
{
	struct vd_cursor c = {v->p, v->p ? v->p + v->size : NULL, false};
	uint64_t index;

	switch (v->p ? v->form : 0) {
	case DW_FORM_string: return (struct vd_name){v->form, 0, (const char *)v->p};
	case DW_FORM_strp:
	case DW_FORM_line_strp: return (struct vd_name){v->form, vd_value_fixed(v), NULL};
	case DW_FORM_strx: index = vd_uleb(&c); break;
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4: index = vd_value_fixed(v); break;
	default: return (struct vd_name){0};
	}
	if (index > u->file->str_offsets.size / 4 ||
	    u->str_offsets_base > u->file->str_offsets.size)
		return (struct vd_name){0};
	c = vd_cursor_at(&u->file->str_offsets, u->str_offsets_base + 4 * index);
	index = vd_fixed(&c, 4);
	return c.bad ? (struct vd_name){0} : (struct vd_name){DW_FORM_strp, index, NULL};
}

/* ---- abbreviations ------------------------------------------------------------------------- */

bool vd_grow(void *array, uint32_t nr, uint32_t *cap, size_t size)
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

static int read_attrs(struct vd_abbrevs *t, uint32_t *cap, struct vd_abbrev *a, struct vd_cursor *c,
		      unsigned int version)
{
	a->first_attr = t->nr_attrs;
	a->plain = true;
	for (;;) {
		uint64_t name = vd_uleb(c), form = vd_uleb(c);
		int64_t value = 0;
		int size;

		if (c->bad || name > UINT16_MAX || form > UINT16_MAX)
			return -EBADMSG;
		if (!name && !form)
			break;
		if (form == DW_FORM_implicit_const)
			value = vd_sleb(c);
		if (!vd_grow(&t->attrs, t->nr_attrs, cap, sizeof(*t->attrs)))
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

static int read_abbrevs(struct vd_unit *u)
{
	struct vd_cursor c = vd_cursor_at(&u->file->abbrev, u->abbrev_off);
	struct vd_abbrevs *t = &u->abbrevs;
	uint32_t cap = 0, attr_cap = 0;

	for (;;) {
		struct vd_abbrev a = {.code = vd_uleb(&c)};
		uint64_t tag;
		int ret;

		if (c.bad)
			return -EBADMSG;
		if (!a.code)
			break;
		tag = vd_uleb(&c);
		a.children = vd_fixed(&c, 1);
		if (tag > UINT16_MAX)
			return -EBADMSG;
		a.tag = (uint16_t)tag;
		ret = read_attrs(t, &attr_cap, &a, &c, u->version);
		if (ret)
			return ret;
		if (!vd_grow(&t->list, t->nr, &cap, sizeof(*t->list)))
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

static struct vd_abbrev *find_abbrev(const struct vd_abbrevs *t, uint64_t code)
{
	const struct vd_abbrev key = {.code = code};

	if (code <= t->nr && t->list[code - 1].code == code)
		return &t->list[code - 1];
	return bsearch(&key, t->list, t->nr, sizeof(key), by_code);
}

/* ---- units and entries --------------------------------------------------------------------- */

bool vd_unit_header(const struct vd_file *file, uint64_t off, struct vd_unit *u)
{
	struct vd_cursor c = vd_cursor_at(&file->info, off);
	uint64_t length = vd_fixed(&c, 4), address_size = 0;

	*u = (struct vd_unit){.file = file, .off = off, .type = DW_UT_compile};
	if (c.bad || length >= 0xfffffff0 || length > (uint64_t)(c.end - c.p))
		return false;
	c.end = c.p + length;
	u->end = off + 4 + length;
	u->version = (unsigned int)vd_fixed(&c, 2);
	if (u->version < 2 || u->version > 5)
		return false;
	if (u->version == 5) {
		u->type = (unsigned int)vd_fixed(&c, 1);
		address_size = vd_fixed(&c, 1);
	}
	u->abbrev_field = (uint64_t)(c.p - file->info.data);
	u->abbrev_off = vd_fixed(&c, 4);
	if (u->version < 5)
		address_size = vd_fixed(&c, 1);
	if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
		vd_skip(&c, 8);
	if (u->type == DW_UT_type || u->type == DW_UT_split_type)
		vd_skip(&c, 12);
	u->first = (uint64_t)(c.p - file->info.data);
	return !c.bad && address_size == 8;
}

int vd_unit_open(const struct vd_file *file, uint64_t off, struct vd_unit *out)
{
	if (!vd_unit_header(file, off, out))
		return -EBADMSG;
	return read_abbrevs(out);
}

void vd_unit_close(struct vd_unit *u)
{
	free(u->abbrevs.list);
	free(u->abbrevs.attrs);
	u->abbrevs = (struct vd_abbrevs){0};
}

struct vd_cursor vd_unit_at(const struct vd_unit *u, uint64_t off)
{
	const uint8_t *data = u->file->info.data;

	return (struct vd_cursor){data + off, data + u->end, off > u->end};
}

bool vd_entry_read(const struct vd_unit *u, struct vd_cursor *c, struct vd_entry *e)
{
	uint64_t code;

	*e = (struct vd_entry){.off = (uint64_t)(c->p - u->file->info.data)};
	code = vd_uleb(c);
	e->values = e->end = c->p;
	if (c->bad || !code)
		return !c->bad;
	e->abbrev = find_abbrev(&u->abbrevs, code);
	if (!e->abbrev)
		return false;
	if (e->abbrev->size >= 0)
		vd_skip(c, (uint64_t)e->abbrev->size);
	else
		for (uint32_t i = 0; i < e->abbrev->nr_attrs; i++)
			vd_skip_form(c, vd_attr(u, e->abbrev, i)->form, u->version);
	e->end = c->p;
	return !c->bad;
}

struct vd_value vd_entry_find(const struct vd_unit *u, const struct vd_entry *e, unsigned int name)
{
	struct vd_cursor c = {e->values, e->end, false};
	struct vd_value found = {0};

	for (uint32_t i = 0; e->abbrev && i < e->abbrev->nr_attrs; i++) {
		const struct vd_attr *a = vd_attr(u, e->abbrev, i);
		const uint8_t *p = c.p;

		vd_skip_form(&c, a->form, u->version);
		if (a->name == name)
			found = (struct vd_value){p, (uint64_t)(c.p - p), a->form, a->value};
	}
	return found;
}

bool vd_unit_read_bases(struct vd_unit *u)
{
	struct vd_cursor c = vd_unit_at(u, u->first);
	struct vd_value low, v;
	struct vd_entry own;

	if (!vd_entry_read(u, &c, &own) || !own.abbrev)
		return false;
	v = vd_entry_find(u, &own, DW_AT_addr_base);
	u->addr_base = v.p ? vd_value_fixed(&v) : UINT64_MAX;
	v = vd_entry_find(u, &own, DW_AT_rnglists_base);
	u->rnglists_base = v.p ? vd_value_fixed(&v) : UINT64_MAX;
	v = vd_entry_find(u, &own, DW_AT_loclists_base);
	u->loclists_base = v.p ? vd_value_fixed(&v) : UINT64_MAX;
	v = vd_entry_find(u, &own, DW_AT_str_offsets_base);
	/* A table begins behind a header of 8 bytes. */
	u->str_offsets_base = v.p ? vd_value_fixed(&v) : 8;
	v = vd_entry_find(u, &own, DW_AT_stmt_list);
	u->line_off = vd_value_is_offset(u, &v) ? vd_value_fixed(&v) : UINT64_MAX;
	low = vd_entry_find(u, &own, DW_AT_low_pc);
	return !low.p || vd_address(u, &low, &u->base);
}
