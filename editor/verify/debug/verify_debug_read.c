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

/* Each section of a file has its name at the same place. */
static const char *const names[] = {".debug_info",     ".debug_abbrev",	  ".debug_line",
				    ".debug_ranges",   ".debug_rnglists", ".debug_loc",
				    ".debug_loclists", ".debug_addr",	  ".debug_str_offsets"};

#define NR_SECTIONS (sizeof(names) / sizeof(names[0]))
_Static_assert(offsetof(struct vd_file, size) == NR_SECTIONS * sizeof(struct vd_section), "names");

int vd_file_open(const struct mp_elf *elf, struct vd_file *f)
{
	int ret = 0;

	for (size_t i = 0; i < NR_SECTIONS && !ret; i++) {
		ret = open_section(elf, names[i], &f->all[i]);
		f->size += f->all[i].size;
	}
	return ret;
}

void vd_file_close(struct vd_file *f)
{
	for (size_t i = 0; i < NR_SECTIONS; i++)
		free(f->all[i].inflated);
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

int vd_unit_open(const struct vd *vd, const struct vd_file *file, uint64_t off, struct vd_unit *out)
{
	*out = (struct vd_unit){.work = vd->work, .file = file};
	if (!vd_unit_header(file->info.data, file->info.size, off, DW_UT_compile, out))
		return -EBADMSG;
	return vd_abbrevs_read(vd_section_at(&file->abbrev, out->abbrev_off), out->version,
			       vd->work, &out->abbrevs);
}

void vd_unit_close(struct vd_unit *u)
{
	vd_abbrevs_fini(&u->abbrevs);
}

uint64_t vd_next_unit(const struct vd_section *info, uint64_t off)
{
	struct vf_cursor c = vd_section_at(info, off);
	uint64_t length = vf_cursor_fixed(&c, 4);

	if (length == UINT32_MAX)
		length = vf_cursor_fixed(&c, 8);
	else if (length >= 0xfffffff0)
		return 0;
	return c.bad || length > (uint64_t)(c.end - c.p) ? 0
							 : (uint64_t)(c.p - info->data) + length;
}

uint64_t vd_original(const struct vd *vd, uint64_t now)
{
	const struct vf *vf = vd->code;
	struct vf_inlined_code code;

	if (vf_inlined_code(vf, now, &code))
		return code.call;
	for (uint32_t i = vf_first_piece(vf, now);
	     i < vf->map->nr_pieces && vf->map->pieces[i].new_vaddr == now && vd_spend(vd->work, 1);
	     i++)
		if (vf_lies_apart(vf, &vf->map->pieces[i]) &&
		    vf_inlined_code_at(vf, vf->index.inlined[i].behind, &code))
			return code.call;
	return mp_map_original(vf->map, now);
}
