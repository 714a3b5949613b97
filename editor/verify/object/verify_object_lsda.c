// SPDX-License-Identifier: Apache-2.0
/*
 * verify_object_lsda - exception tables: at each pair of instructions, both tables must lead to a
 * pair of landing pads with the same actions. Tables of an unusual form are not compared; then
 * their function must be whole.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/object/verify_object_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

#define LONGEST_CHAIN 256

static bool read_base(const struct vo_side *side, const struct vo_fde *fde, struct vf_cursor *c,
		      uint32_t at, struct vo_table *table)
{
	const struct mp_relobj_section *s = &side->obj->sections[table->section];
	uint8_t enc = (uint8_t)vf_cursor_fixed(c, 1);
	uint32_t r = mp_relobj_reloc_at(s, at + 1);
	struct vo_ref ref;

	table->base = fde->start;
	if (enc == DW_EH_PE_omit)
		return true;
	if (enc != (DW_EH_PE_pcrel | DW_EH_PE_sdata4) || r >= s->nr_relocs ||
	    s->relocs[r].r_offset != at + 1u || ELF64_R_TYPE(s->relocs[r].r_info) != R_X86_64_PC32)
		return false;
	vf_cursor_skip(c, 4);
	ref = vo_ref_of(side, &s->relocs[r], 0);
	table->base = ref.place; /* may be one byte before a section: 32 bits wrap */
	return ref.code;
}

static bool read_rows(struct vo_side *side, struct vf_cursor *c, const uint8_t *end,
		      struct vo_table *table)
{
	while (c->p < end) {
		struct vo_row row = {0};

		row.start = vf_cursor_uleb(c);
		row.end = row.start + vf_cursor_uleb(c);
		row.pad = vf_cursor_uleb(c);
		row.action = vf_cursor_uleb(c);
		if (c->bad || c->p > end || row.end < row.start || row.end > UINT32_MAX ||
		    row.pad > UINT32_MAX || row.action > UINT32_MAX ||
		    (table->nr && row.start < table->rows[table->nr - 1].end))
			return false;
		if (mp_grow(table->rows, table->cap, table->nr + 1)) {
			side->no_memory = true;
			return false;
		}
		table->rows[table->nr++] = row;
	}
	return true;
}

static bool read_table(struct vo_side *side, const struct vo_fde *fde, struct vo_table *table)
{
	const Elf64_Rela *r = &side->obj->sections[side->eh_frame].relocs[fde->lsda - 1];
	const Elf64_Sym *symbol = &side->obj->symbols[ELF64_R_SYM(r->r_info)];
	uint64_t at = symbol->st_value + (uint64_t)r->r_addend, size;
	const struct mp_relobj_section *s;
	struct vf_cursor c = {0};

	if (!symbol->st_shndx || symbol->st_shndx >= side->obj->nr_sections ||
	    ELF64_ST_BIND(symbol->st_info) != STB_LOCAL)
		return false;
	table->section = symbol->st_shndx;
	s = &side->obj->sections[table->section];
	if (!s->data || at >= s->header.sh_size || mp_relobj_is_code(s))
		return false;
	c.p = s->data + at;
	c.end = s->data + s->header.sh_size;
	if (!read_base(side, fde, &c, (uint32_t)at, table))
		return false;
	table->type_enc = (uint8_t)vf_cursor_fixed(&c, 1);
	if (table->type_enc != DW_EH_PE_omit) {
		size = vf_cursor_uleb(&c);
		if (c.bad || size > (uint64_t)(c.end - c.p) ||
		    ((table->type_enc & 0x0f) != DW_EH_PE_udata4 &&
		     (table->type_enc & 0x0f) != DW_EH_PE_sdata4))
			return false;
		table->types_end = (uint64_t)(c.p + size - s->data);
	}
	if (vf_cursor_fixed(&c, 1) != DW_EH_PE_uleb128)
		return false;
	size = vf_cursor_uleb(&c);
	if (c.bad || size > (uint64_t)(c.end - c.p) || !read_rows(side, &c, c.p + size, table))
		return false;
	table->actions = (uint64_t)(c.p - s->data);
	/* Only the base is relocated. */
	return !vo_relocated(s, at, at + 1) &&
	       !vo_relocated(s, at + (s->data[at] == DW_EH_PE_omit ? 1 : 5), table->actions);
}

/* C's routine is none: LLVM's skips the base. */
static bool is_usual(const char *name)
{
	name += strncmp(name, "DW.ref.", 7) ? 0 : 7;
	return !strcmp(name, "__gxx_personality_v0");
}

static bool usual_personality(const struct vo_side *side, const struct vo_fde *fde)
{
	const struct mp_relobj_section *s = &side->obj->sections[side->eh_frame];
	uint32_t r = mp_relobj_reloc_at(s, fde->cie_off), size;

	memcpy(&size, s->data + fde->cie_off, sizeof(size));
	return r < s->nr_relocs && s->relocs[r].r_offset < fde->cie_off + 4 + (uint64_t)size &&
	       is_usual(mp_relobj_symbol_name(side->obj, ELF64_R_SYM(s->relocs[r].r_info)));
}

bool vo_table_known(struct vo_side *side, struct vo_fde *fde)
{
	if (!fde->table_read) {
		fde->table_read = true;
		fde->table_known = usual_personality(side, fde) &&
				   read_table(side, fde, &fde->table);
	}
	return fde->table_known;
}

/* The row that covers all of the instruction; NULL: none covers it. */
static const struct vo_row *row_of(const struct vo_table *table, uint64_t off, uint64_t len,
				   bool *bad)
{
	uint32_t first = mp_search(i, 0, table->nr, table->rows[i].end <= off);
	const struct vo_row *row = first < table->nr ? &table->rows[first] : NULL;

	if (!row || row->start >= off + len)
		return NULL;
	*bad |= row->start > off || row->end < off + len;
	return row;
}

static bool same_type(const struct vo *vo, const struct vo_table *a, const struct vo_table *b,
		      uint64_t filter)
{
	const struct mp_relobj_section *s = &vo->old.obj->sections[a->section];
	const struct mp_relobj_section *t = &vo->new.obj->sections[b->section];
	uint64_t x = a->types_end - 4 * filter, y = b->types_end - 4 * filter;
	uint32_t i, k;

	if (a->type_enc != b->type_enc || 4 * filter > a->types_end || 4 * filter > b->types_end ||
	    x + 4 > s->header.sh_size || y + 4 > t->header.sh_size)
		return false;
	i = mp_relobj_reloc_at(s, x);
	k = mp_relobj_reloc_at(t, y);
	if (i < s->nr_relocs && s->relocs[i].r_offset < x + 4)
		return k < t->nr_relocs && t->relocs[k].r_offset == y &&
		       s->relocs[i].r_offset == x &&
		       vo_same_symbol(vo, &s->relocs[i], &t->relocs[k]);
	return !vo_relocated(s, x, x + 4) && !vo_relocated(t, y, y + 4) &&
	       !memcmp(s->data + x, t->data + y, 4);
}

/* Reads the record of an action. Return: false: damaged, or an exception specification. */
static bool read_action(const struct vo_side *side, const struct vo_table *table, uint64_t *at,
			int64_t *filter, bool *last)
{
	const struct mp_relobj_section *s = &side->obj->sections[table->section];
	struct vf_cursor c = {.end = s->data + s->header.sh_size};
	const uint8_t *from;
	uint64_t was;
	int64_t next;

	if (*at >= s->header.sh_size)
		return false;
	c.p = s->data + *at;
	*filter = vf_cursor_sleb(&c);
	from = c.p;
	next = vf_cursor_sleb(&c);
	*last = !next;
	was = *at;
	*at = (uint64_t)(from - s->data) + (uint64_t)next;
	return !c.bad && *filter >= 0 && !vo_relocated(s, was, (uint64_t)(c.p - s->data));
}

static bool same_actions(const struct vo *vo, const struct vo_table *a, uint64_t x,
			 const struct vo_table *b, uint64_t y)
{
	if (!x || !y)
		return x == y;
	x += a->actions - 1;
	y += b->actions - 1;
	for (int i = 0; i < LONGEST_CHAIN; i++) {
		int64_t f, g;
		bool last, also;

		if (!read_action(&vo->old, a, &x, &f, &last) ||
		    !read_action(&vo->new, b, &y, &g, &also) || f != g || last != also ||
		    (f && !same_type(vo, a, b, (uint64_t)f)))
			return false;
		if (last)
			return true;
	}
	return false;
}

bool vo_same_table(const struct vo *vo, const struct vo_fde *old, const struct vo_fde *new)
{
	const Elf64_Rela *a = &vo->old.obj->sections[vo->old.eh_frame].relocs[old->lsda - 1];
	const Elf64_Rela *b = &vo->new.obj->sections[vo->new.eh_frame].relocs[new->lsda - 1];

	return vo_same_symbol(vo, a, b);
}

int vo_tables_same(struct vo *vo, struct vo_place old, struct vo_place new, uint32_t len)
{
	struct vo_fde *a = vo_frame_at(&vo->old, old), *b = vo_frame_at(&vo->new, new);
	const struct vo_row *x, *y;
	bool bad = false;

	if (!a || !a->lsda || vo_whole(vo, a))
		return 0;
	if (!vo_table_known(&vo->new, b))
		return vo_refuse(vo, &vo->new, new.section, new.off,
				 "has an exception table that is not understood");
	x = row_of(&a->table, old.off - a->start.off, len, &bad);
	y = row_of(&b->table, new.off - b->start.off, len, &bad);
	bad |= !x != !y || (x && !x->pad != !y->pad);
	/* An action of the old table is itself, also if it is an exception specification. */
	if (!bad && x && !(x->action == y->action && vo_same_table(vo, a, b)))
		bad = !same_actions(vo, &a->table, x->action, &b->table, y->action);
	if (bad)
		return vo_refuse(vo, &vo->old, old.section, old.off,
				 "catches other exceptions in the new object");
	if (!x || !x->pad)
		return 0;
	return vo_expect(
		vo, (struct vo_place){a->table.base.section, a->table.base.off + (uint32_t)x->pad},
		(struct vo_place){b->table.base.section, b->table.base.off + (uint32_t)y->pad},
		false);
}
