// SPDX-License-Identifier: Apache-2.0
/* verify_debug_read - sections of debug information, units in them, and what their values name. */
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

struct vf_cursor vd_section_at(const struct vd_section *s, uint64_t off)
{
	return vf_cursor_at(s->data, s->size, off);
}

/* ---- values -------------------------------------------------------------------------------- */

bool vd_value_is_offset(const struct vd_unit *u, const struct vd_value *v)
{
	return v->p && v->form == (u->version >= 4 ? DW_FORM_sec_offset : DW_FORM_data4);
}

uint64_t vd_value_reference(const struct vd_unit *u, const struct vd_value *v)
{
	if (v->p && v->form == DW_FORM_ref_addr)
		return vd_value_fixed(v);
	if (!v->p || !vd_form_is_reference(v->form))
		return 0;
	return u->off + vd_value_index(v);
}

struct vd_name vd_value_name(const struct vd_unit *u, const struct vd_value *v)
{
	struct vf_cursor c;
	uint64_t index;

	switch (v->p ? v->form : 0) {
	case DW_FORM_string: return (struct vd_name){v->form, 0, (const char *)v->p};
	case DW_FORM_strp:
	case DW_FORM_line_strp: return (struct vd_name){v->form, vd_value_fixed(v), NULL};
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4: index = vd_value_index(v); break;
	default: return (struct vd_name){0};
	}
	if (index > u->file->str_offsets.size / 4 ||
	    u->str_offsets_base > u->file->str_offsets.size)
		return (struct vd_name){0};
	c = vd_section_at(&u->file->str_offsets, u->str_offsets_base + 4 * index);
	index = vf_cursor_fixed(&c, 4);
	return c.bad ? (struct vd_name){0} : (struct vd_name){DW_FORM_strp, index, NULL};
}

/* ---- units --------------------------------------------------------------------------------- */

int vd_unit_open(const struct vd_file *file, uint64_t off, struct vd_unit *out)
{
	*out = (struct vd_unit){.file = file};
	if (!vd_unit_header(file->info.data, file->info.size, off, DW_UT_compile, out))
		return -EBADMSG;
	return vd_abbrevs_read(vd_section_at(&file->abbrev, out->abbrev_off), out->version,
			       &out->abbrevs);
}

void vd_unit_close(struct vd_unit *u)
{
	vd_abbrevs_fini(&u->abbrevs);
}

bool vd_unit_read_bases(struct vd_unit *u)
{
	struct vf_cursor c = vd_unit_at(u, u->first);
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
