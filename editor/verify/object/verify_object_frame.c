// SPDX-License-Identifier: Apache-2.0
/* verify_object_frame - unwind information of the two objects, and the comparison of rows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/object/verify_object_private.h"
#include "editor/verify/read/verify_eh.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

#define ENCODING 0x1b /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */

static bool read_letters(struct vf_cursor *c, const char *letters, struct vf_cie *cie)
{
	uint64_t len = vf_cursor_uleb(c);
	const uint8_t *p = vf_cursor_skip(c, len);

	if (!p)
		return false;
	cie->has_aug = true;
	for (const char *l = letters + 1; *l; l++) {
		if (*l == 'S')
			continue;
		if (p >= c->p)
			return false;
		if (*l == 'R')
			cie->fde_enc = *p++;
		else if (*l == 'L')
			cie->lsda_enc = *p++;
		else if (*l == 'P')
			p += 1 + ((*p & 0x0f) == 0x0c || !(*p & 0x0f) ? 8 : 4);
		else
			return false;
	}
	return p == c->p;
}

static int add_cie(struct vo *vo, struct vo_side *side, struct vf_cursor c, uint64_t at)
{
	struct vf_cie *cie;
	const char *letters;

	if (mp_grow(side->eh.cies, side->eh.max_cies, side->eh.nr_cies + 1))
		return -ENOMEM;
	cie = &side->eh.cies[side->eh.nr_cies++];
	*cie = (struct vf_cie){.vaddr = at};
	cie->version = (uint8_t)vf_cursor_fixed(&c, 1);
	letters = (const char *)c.p;
	while (!c.bad && vf_cursor_fixed(&c, 1))
		;
	cie->code_align = vf_cursor_uleb(&c);
	cie->data_align = vf_cursor_sleb(&c);
	cie->ra = (uint32_t)(cie->version == 1 ? vf_cursor_fixed(&c, 1) : vf_cursor_uleb(&c));
	if (c.bad || (cie->version != 1 && cie->version != 3) || *letters != 'z' ||
	    !read_letters(&c, letters, cie) || cie->fde_enc != ENCODING)
		return vo_refuse(vo, side, side->eh_frame, at, "a CIE is not understood");
	cie->insns = c.p;
	cie->insns_len = (uint32_t)(c.end - c.p);
	return 0;
}

/* Return: the number of the CIE at this offset, or that of all CIEs. */
static uint32_t cie_at(const struct vo_side *side, uint64_t off)
{
	uint32_t low = mp_search(i, 0, side->eh.nr_cies, side->eh.cies[i].vaddr < off);

	return low < side->eh.nr_cies && side->eh.cies[low].vaddr == off ? low : side->eh.nr_cies;
}

static int add_fde(struct vo *vo, struct vo_side *side, struct vf_cursor c, uint64_t at,
		   uint64_t cie_off)
{
	const struct mp_relobj_section *s = &side->obj->sections[side->eh_frame];
	uint32_t r = mp_relobj_reloc_at(s, at), symbol, cie = cie_at(side, cie_off);
	struct vo_fde *fde;
	uint64_t start, len, end;

	if (cie == side->eh.nr_cies || r >= s->nr_relocs || s->relocs[r].r_offset != at + 8 ||
	    ELF64_R_TYPE(s->relocs[r].r_info) != R_X86_64_PC32)
		return vo_refuse(vo, side, side->eh_frame, at, "an FDE is not understood");
	symbol = ELF64_R_SYM(s->relocs[r].r_info);
	start = side->obj->symbols[symbol].st_value + (uint64_t)s->relocs[r].r_addend;
	if (mp_grow(side->fdes, side->cap_fdes, side->nr_fdes + 1))
		return -ENOMEM;
	fde = &side->fdes[side->nr_fdes];
	*fde = (struct vo_fde){.start = {side->obj->symbols[symbol].st_shndx, (uint32_t)start},
			       .cie_off = (uint32_t)cie_off};
	vf_cursor_skip(&c, 4);
	fde->size = (uint32_t)vf_cursor_fixed(&c, 4);
	len = vf_cursor_uleb(&c);
	end = at + (uint64_t)(c.end - c.p) + 17;
	if (!c.bad && r + 1 < s->nr_relocs && s->relocs[r + 1].r_offset < end) {
		fde->lsda = s->relocs[r + 1].r_offset == at + 17 && len == 4 ? r + 2 : UINT32_MAX;
		fde->lsda_type = ELF64_R_TYPE(s->relocs[r + 1].r_info);
	}
	/* No other bytes are relocated, and without a relocation there is no table. */
	for (uint64_t i = 0; !c.bad && !fde->lsda && i < len && i < (uint64_t)(c.end - c.p); i++)
		c.bad = c.p[i];
	vf_cursor_skip(&c, len);
	if (c.bad || !mp_relobj_in_code(side->obj, symbol) ||
	    ELF64_ST_BIND(side->obj->symbols[symbol].st_info) != STB_LOCAL ||
	    start + fde->size > side->obj->sections[fde->start.section].header.sh_size ||
	    fde->lsda == UINT32_MAX ||
	    (fde->lsda && r + 2 < s->nr_relocs && s->relocs[r + 2].r_offset < end))
		return vo_refuse(vo, side, side->eh_frame, at, "an FDE is not understood");
	fde->fde = (struct vf_fde){
		.size = fde->size, .insns = c.p, .insns_len = (uint32_t)(c.end - c.p), .cie = cie};
	side->nr_fdes++;
	return 0;
}

static int compare_fdes(const void *a, const void *b)
{
	const struct vo_fde *x = a, *y = b;

	if (x->start.section != y->start.section)
		return x->start.section < y->start.section ? -1 : 1;
	return (x->start.off > y->start.off) - (x->start.off < y->start.off);
}

static int read_entries(struct vo *vo, struct vo_side *side)
{
	const struct mp_relobj_section *s = &side->obj->sections[side->eh_frame];
	uint64_t at = 0;
	int rc = 0;

	while (!rc && at + 4 <= s->header.sh_size) {
		struct vf_cursor c = {.p = s->data + at, .end = s->data + s->header.sh_size};
		uint64_t size = vf_cursor_fixed(&c, 4), id;

		if (!size && s->header.sh_size - at == 4) { /* the end of the linked section */
			side->ends = true;
			break;
		}
		if (size < 4 || size > s->header.sh_size - at - 4)
			return vo_refuse(vo, side, side->eh_frame, at, "an entry is cut");
		c.end = c.p + size;
		id = vf_cursor_fixed(&c, 4);
		rc = id ? add_fde(vo, side, c, at, at + 4 - id) : add_cie(vo, side, c, at);
		at += 4 + size;
	}
	return rc;
}

int vo_frame_read(struct vo *vo, struct vo_side *side)
{
	int rc;

	side->eh_frame = mp_relobj_section(side->obj, ".eh_frame");
	if (!side->eh_frame)
		return 0;
	if (!side->obj->sections[side->eh_frame].data)
		return vo_refuse(vo, side, side->eh_frame, 0, "has no bytes");
	rc = read_entries(vo, side);
	if (rc)
		return rc;
	if (side->nr_fdes)
		qsort(side->fdes, side->nr_fdes, sizeof(*side->fdes), compare_fdes);
	for (uint32_t i = 1; i < side->nr_fdes; i++) {
		const struct vo_fde *a = &side->fdes[i - 1], *b = &side->fdes[i];

		if (a->start.section == b->start.section && b->start.off - a->start.off < a->size)
			return vo_refuse(vo, side, b->start.section, b->start.off,
					 "two FDEs cover this code");
	}
	return 0;
}

void vo_frame_fini(struct vo_side *side)
{
	for (uint32_t i = 0; i < side->nr_fdes; i++) {
		free(side->fdes[i].rows.row);
		free(side->fdes[i].table.rows);
	}
	free(side->fdes);
	free(side->eh.cies);
}

bool vo_has_tables(const struct vo_side *side, uint32_t section)
{
	for (uint32_t i = 0; i < side->nr_fdes; i++) {
		const Elf64_Rela *r;

		if (!side->fdes[i].lsda)
			continue;
		r = &side->obj->sections[side->eh_frame].relocs[side->fdes[i].lsda - 1];
		if (side->obj->symbols[ELF64_R_SYM(r->r_info)].st_shndx == section)
			return true;
	}
	return false;
}

struct vo_fde *vo_frame_at(const struct vo_side *side, struct vo_place place)
{
	const struct vo_fde *fde = side->fdes;
	uint32_t low = mp_search(i, 0, side->nr_fdes,
				 fde[i].start.section < place.section ||
					 (fde[i].start.section == place.section &&
					  fde[i].start.off <= place.off));

	if (!low || side->fdes[low - 1].start.section != place.section ||
	    place.off - side->fdes[low - 1].start.off >= side->fdes[low - 1].size)
		return NULL;
	return &side->fdes[low - 1];
}

/* Programs of the new object have the form that all unwinders read alike; others are marked. */
static int build_rows(struct vo *vo, struct vo_side *side, struct vo_fde *fde)
{
	struct vf_fde trimmed = fde->fde;
	int rc = -EBADMSG;

	if (side == &vo->new) {
		trimmed.insns_len = vf_program_size(trimmed.insns, trimmed.insns_len);
		side->eh.strict = true;
		rc = vf_rows_build(&side->eh, &trimmed, &fde->rows);
		side->eh.strict = false;
	}
	if (rc != -EBADMSG)
		return rc;
	fde->loose = true;
	return vf_rows_build(&side->eh, &fde->fde, &fde->rows);
}

static bool same_program(const struct vo_fde *a, const struct vo_fde *b)
{
	uint32_t size = vf_program_size(a->fde.insns, a->fde.insns_len);

	return a->size == b->size && size == vf_program_size(b->fde.insns, b->fde.insns_len) &&
	       !memcmp(a->fde.insns, b->fde.insns, size);
}

static int row_at(struct vo *vo, struct vo_side *side, struct vo_place place,
		  const struct vf_row **row)
{
	struct vo_fde *fde = vo_frame_at(side, place);
	int rc;

	*row = NULL;
	if (!fde)
		return 0;
	if (!fde->built) {
		rc = build_rows(vo, side, fde);
		if (rc == -ENOMEM)
			return rc;
		if (rc)
			return vo_refuse(vo, side, place.section, place.off,
					 "unwind information is not understood");
		fde->built = true;
	}
	*row = vf_rows_at(&fde->rows, place.off - fde->start.off);
	return *row ? 0
		    : vo_refuse(vo, side, place.section, place.off,
				"unwind information has no row");
}

int vo_rows_same(struct vo *vo, struct vo_place old, struct vo_place new, bool *same)
{
	const struct vf_row *a, *b;
	const struct vo_fde *x, *y;
	int rc = row_at(vo, &vo->old, old, &a);

	if (!rc)
		rc = row_at(vo, &vo->new, new, &b);
	if (rc)
		return rc;
	vo->count.nr_rows++;
	*same = a && b ? vf_row_equal(a, b) && !vf_row_reads_pc(a) : a == b;
	if (!a || !b)
		return 0;
	x = vo_frame_at(&vo->old, old);
	y = vo_frame_at(&vo->new, new);
	*same &= (!x->rows.ambiguous && !y->loose) || same_program(x, y);
	return 0;
}

bool vo_cies_same(struct vo *vo, const struct vo_fde *old, const struct vo_fde *new)
{
	const struct mp_relobj_section *a = &vo->old.obj->sections[vo->old.eh_frame];
	const struct mp_relobj_section *b = &vo->new.obj->sections[vo->new.eh_frame];
	uint32_t size, other, i = mp_relobj_reloc_at(a, old->cie_off),
			      k = mp_relobj_reloc_at(b, new->cie_off);

	memcpy(&size, a->data + old->cie_off, sizeof(size));
	memcpy(&other, b->data + new->cie_off, sizeof(other));
	if (size != other || memcmp(a->data + old->cie_off, b->data + new->cie_off, size + 4))
		return false;
	for (; i < a->nr_relocs && a->relocs[i].r_offset < old->cie_off + size + 4; i++, k++)
		if (k >= b->nr_relocs ||
		    a->relocs[i].r_offset - old->cie_off != b->relocs[k].r_offset - new->cie_off ||
		    !vo_same_symbol(vo, &a->relocs[i], &b->relocs[k]))
			return false;
	return true;
}
