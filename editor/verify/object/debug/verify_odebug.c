// SPDX-License-Identifier: Apache-2.0
/*
 * verify_odebug - does the debug information of both objects say the same of their code? Sections,
 * fields and their relocations; .debug_aranges. Called by verify_object.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/object/debug/verify_odebug_private.h"

bool vo_is_debug(const struct mp_relobj_section *s)
{
	return s->header.sh_type == SHT_PROGBITS && !(s->header.sh_flags & SHF_ALLOC) &&
	       !strncmp(s->name, ".debug_", 7);
}

int od_refuse(struct od *od, const struct od_side *side, uint32_t section, uint64_t off,
	      const char *why)
{
	return vo_refuse(od->vo, side->side, section, off, why);
}

/* ---- bytes ------------------------------------------------------------------------------------ */

struct od_cursor od_cursor_at(const struct od_side *side, uint32_t section, uint64_t off)
{
	const struct mp_relobj_section *s = &side->side->obj->sections[section];
	uint64_t size = s->data ? s->header.sh_size : 0;

	return (struct od_cursor){s, off, size, off > size};
}

uint64_t od_fixed(struct od_cursor *c, unsigned int size)
{
	uint64_t v = 0;

	if (c->bad || size > 8 || size > c->end - c->at) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->s->data + c->at, size);
	c->at += size;
	return v;
}

void od_skip(struct od_cursor *c, uint64_t size)
{
	if (c->bad || size > c->end - c->at)
		c->bad = true;
	else
		c->at += size;
}

/* Reads a number of any length. *@shift: bits that it has; *@last: its last byte. */
static uint64_t leb(struct od_cursor *c, unsigned int *shift, uint64_t *last)
{
	uint64_t v = 0;

	*shift = 0;
	do {
		*last = od_fixed(c, 1);
		if (*shift < 64)
			v |= (*last & 0x7f) << *shift;
		*shift += 7;
	} while (*last & 0x80);
	return v;
}

uint64_t od_uleb(struct od_cursor *c)
{
	unsigned int shift;
	uint64_t last;

	return leb(c, &shift, &last);
}

int64_t od_sleb(struct od_cursor *c)
{
	unsigned int shift;
	uint64_t last, v = leb(c, &shift, &last);

	if (shift < 64 && (last & 0x40))
		v |= ~UINT64_C(0) << shift;
	return (int64_t)v;
}

const Elf64_Rela *od_reloc(const struct od_side *side, uint32_t section, uint64_t off)
{
	const struct mp_relobj_section *s = &side->side->obj->sections[section];
	uint32_t i = mp_relobj_reloc_at(s, off);

	return i < s->nr_relocs && s->relocs[i].r_offset == off ? &s->relocs[i] : NULL;
}

struct od_addr od_field(const struct od_side *side, uint32_t section, uint64_t off,
			unsigned int size)
{
	const Elf64_Rela *r = od_reloc(side, section, off);
	struct od_cursor c = od_cursor_at(side, section, off);
	const Elf64_Sym *symbol;

	if (!r)
		return (struct od_addr){0, od_fixed(&c, size)};
	symbol = &side->side->obj->symbols[ELF64_R_SYM(r->r_info)];
	return (struct od_addr){symbol->st_shndx < side->side->obj->nr_sections ? symbol->st_shndx
										: 0,
				symbol->st_value + (uint64_t)r->r_addend};
}

/* ---- fields that must be the same ------------------------------------------------------------ */

static bool same_program(const struct od *od, uint64_t old, uint64_t new)
{
	for (uint32_t i = 0; i < od->old.nr_programs; i++)
		if (od->old.programs[i] == old)
			return od->new.programs[i] == new;
	return false;
}

static bool same_reloc(struct od *od, const Elf64_Rela *x, const Elf64_Rela *y)
{
	const struct mp_relobj *obj = od->vo->old.obj;
	const Elf64_Sym *a = &obj->symbols[ELF64_R_SYM(x->r_info)];
	const Elf64_Sym *b = &od->vo->new.obj->symbols[ELF64_R_SYM(y->r_info)];
	struct vo_ref old, new;

	if (od->old.line && a->st_shndx == od->old.line)
		return b->st_shndx == od->new.line &&ELF64_R_TYPE(x->r_info) ==
			       ELF64_R_TYPE(y->r_info) &&
		       same_program(od, a->st_value + (uint64_t)x->r_addend,
				    b->st_value + (uint64_t)y->r_addend);
	if (vo_same_symbol(od->vo, x, y))
		return true;
	old = vo_ref_of(&od->vo->old, x, 0);
	new = vo_ref_of(&od->vo->new, y, 0);
	return old.code && new.code &&ELF64_R_TYPE(x->r_info) ==
				   R_X86_64_64 &&ELF64_R_TYPE(y->r_info) ==
				   R_X86_64_64 &&od_is_pair(od, old.place, new.place, false);
}

bool od_same_bytes(struct od *od, struct vo_place old, struct vo_place new, uint64_t size)
{
	const struct mp_relobj_section *a = &od->vo->old.obj->sections[old.section];
	const struct mp_relobj_section *b = &od->vo->new.obj->sections[new.section];
	uint32_t i = mp_relobj_reloc_at(a, old.off), k = mp_relobj_reloc_at(b, new.off);

	if (!size)
		return true;
	if (!a->data || !b->data || size > a->header.sh_size || size > b->header.sh_size ||
	    old.off > a->header.sh_size - size || new.off > b->header.sh_size - size ||
	    memcmp(a->data + old.off, b->data + new.off, size))
		return false;
	for (;; i++, k++) {
		bool x = i < a->nr_relocs && a->relocs[i].r_offset < old.off + size;
		bool y = k < b->nr_relocs && b->relocs[k].r_offset < new.off + size;

		if (!x || !y)
			return x == y;
		if (a->relocs[i].r_offset - old.off != b->relocs[k].r_offset - new.off ||
		    !same_reloc(od, &a->relocs[i], &b->relocs[k]))
			return false;
	}
}

/* ---- .debug_aranges --------------------------------------------------------------------------- */

/* The next unit's table; *@unit: the field with its offset. */
static bool read_aranges(struct od_side *side, struct od_cursor *c, uint64_t *unit,
			 struct od_list *out)
{
	uint64_t size = od_fixed(c, 4), end = c->at + size;
	bool good = od_fixed(c, 2) == 2;

	out->nr = 0;
	*unit = c->at;
	od_skip(c, 4);
	good &= od_fixed(c, 2) == 8 && size >= 12 && end <= c->end && end >= c->at;
	od_skip(c, -c->at & 15);
	while (good && !c->bad && c->at + 16 <= end) {
		struct od_addr start = od_field(side, side->aranges, c->at, 8);
		struct od_range range = {.section = start.section, .start = start.off};

		od_skip(c, 8);
		range.end = range.start + od_fixed(c, 8);
		if (range.section && !od_add_range(out, &range))
			return false;
	}
	c->at = end;
	return good && !c->bad;
}

static int compare_aranges(struct od *od)
{
	struct od_cursor a = od_cursor_at(&od->old, od->old.aranges, 0);
	struct od_cursor b = od_cursor_at(&od->new, od->new.aranges, 0);

	while (a.at < a.end && b.at < b.end) {
		struct vo_place x = {od->old.aranges, 0}, y = {od->new.aranges, 0};
		uint64_t old, new;

		if (!read_aranges(&od->old, &a, &old, &od->was) ||
		    !read_aranges(&od->new, &b, &new, &od->now))
			return od_refuse(od, &od->new, y.section, 0, "has a damaged table");
		x.off = (uint32_t)old;
		y.off = (uint32_t) new;
		if (!od_same_bytes(od, x, y, 6) || !od_same_lists(od, &od->was, &od->now))
			return od_refuse(od, &od->new, y.section, y.off, "has other ranges");
	}
	return a.at < a.end || b.at < b.end
		       ? od_refuse(od, &od->new, od->new.aranges, 0, "has other tables")
		       : 0;
}

/* ---- sections --------------------------------------------------------------------------------- */

static int find_sections(struct od *od, struct od_side *side)
{
	static const char *const names[] = {".debug_line",     ".debug_abbrev",	  ".debug_addr",
					    ".debug_ranges",   ".debug_rnglists", ".debug_loc",
					    ".debug_loclists", ".debug_aranges"};
	uint32_t *const to[] = {&side->line,	 &side->abbrev, &side->addr,	 &side->ranges,
				&side->rnglists, &side->loc,	&side->loclists, &side->aranges};
	const struct mp_relobj *obj = side->side->obj;

	for (uint32_t i = 1; i < obj->nr_sections; i++) {
		if (!vo_is_debug(&obj->sections[i]))
			continue;
		if (i >= od->vo->old.obj->nr_sections &&
		    strcmp(obj->sections[i].name, ".debug_ranges") &&
		    strcmp(obj->sections[i].name, ".debug_rnglists"))
			return od_refuse(od, side, i, 0, "is an unexpected section");
		for (int k = 0; k < 8; k++) {
			if (strcmp(obj->sections[i].name, names[k]))
				continue;
			if (*to[k])
				return od_refuse(od, side, i, 0, "is there twice");
			*to[k] = i;
		}
	}
	return 0;
}

/* Addresses with numbers: those of code are compared where entries name them. */
static int compare_addrs(struct od *od)
{
	uint32_t section = od->old.addr;
	const struct mp_relobj_section *a = &od->vo->old.obj->sections[section];
	const struct mp_relobj_section *b = &od->vo->new.obj->sections[section];
	bool same = a->header.sh_size == b->header.sh_size && a->nr_relocs == b->nr_relocs &&
		    (!a->data || !memcmp(a->data, b->data, a->header.sh_size));

	for (uint32_t i = 0; same && i < a->nr_relocs; i++) {
		struct od_addr x = od_field(&od->old, section, a->relocs[i].r_offset, 8);
		struct od_addr y = od_field(&od->new, section, b->relocs[i].r_offset, 8);

		same = a->relocs[i].r_offset == b->relocs[i].r_offset &&
		       (vo_same_symbol(od->vo, &a->relocs[i], &b->relocs[i]) ||
			(x.section && mp_relobj_is_code(&od->vo->old.obj->sections[x.section]) &&
			 y.section && mp_relobj_is_code(&od->vo->new.obj->sections[y.section])));
	}
	return same ? 0 : od_refuse(od, &od->new, section, 0, "has other addresses");
}

static int compare_section(struct od *od, uint32_t i)
{
	const struct mp_relobj_section *a = &od->vo->old.obj->sections[i];
	const struct mp_relobj_section *b = &od->vo->new.obj->sections[i];
	const struct od_side *s = &od->old;

	if (!strcmp(a->name, ".debug_info") || !strcmp(a->name, ".debug_types"))
		return a->header.sh_size == b->header.sh_size
			       ? od_entries(od, i)
			       : od_refuse(od, &od->new, i, 0, "has another size");
	if (i == s->aranges)
		return compare_aranges(od);
	if (i == s->addr)
		return compare_addrs(od);
	/* Read from the entries that refer to them; lines are compared already. */
	if (i == s->line || i == s->abbrev || i == s->ranges || i == s->rnglists || i == s->loc ||
	    i == s->loclists)
		return 0;
	return a->header.sh_size == b->header.sh_size &&
			       od_same_bytes(od, (struct vo_place){i, 0}, (struct vo_place){i, 0},
					     a->data ? a->header.sh_size : 0)
		       ? 0
		       : od_refuse(od, &od->new, i, 0, "has other bytes");
}

static void side_fini(struct od_side *side)
{
	free(side->rows);
	free(side->programs);
	free(side->unit.abbrevs);
	free(side->unit.attrs);
}

int vo_debug(struct vo *vo)
{
	struct od od = {.vo = vo, .old = {.side = &vo->old}, .new = {.side = &vo->new}};
	const struct mp_relobj *obj = vo->old.obj;
	bool any = false;
	int rc;

	for (uint32_t i = 1; i < vo->new.obj->nr_sections; i++)
		any |= vo_is_debug(&vo->new.obj->sections[i]);
	if (!any)
		return 0;
	rc = find_sections(&od, &od.old);
	if (!rc)
		rc = find_sections(&od, &od.new);
	if (!rc)
		rc = od_pairs(&od);
	od.looks_max = OD_LOOKS * (od.nr_pairs + (uint64_t)vo->old.obj->size + vo->new.obj->size);
	if (!rc)
		rc = od_lines(&od);
	for (uint32_t i = 1; !rc && i < obj->nr_sections; i++)
		if (vo_is_debug(&obj->sections[i]))
			rc = compare_section(&od, i);
	side_fini(&od.old);
	side_fini(&od.new);
	free(od.by_old);
	free(od.by_new);
	free(od.was.list);
	free(od.now.list);
	free(od.code_was.list);
	free(od.code_now.list);
	return rc;
}
