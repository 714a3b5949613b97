// SPDX-License-Identifier: Apache-2.0
/* verify_object - sections, symbols and data of two objects; the walk compares their code. */
#include "editor/verify/object/verify_object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/object/verify_object_private.h"

/* ---- sections --------------------------------------------------------------------------------- */

/* Return: true for a section whose contents another comparison covers: of symbols, relocations, code or rows. */
static bool compared_elsewhere(const struct vo_side *side, uint32_t i)
{
	const struct mp_relobj_section *s = &side->obj->sections[i];

	return s->header.sh_type == SHT_RELA || s->header.sh_type == SHT_SYMTAB ||
	       s->header.sh_type == SHT_STRTAB || s->header.sh_type == SHT_GROUP ||
	       s->header.sh_type == VO_SHT_ADDRSIG || i == side->eh_frame || mp_relobj_is_code(s) ||
	       vo_is_debug(s);
}

static bool same_header(const struct mp_relobj_section *a, const struct mp_relobj_section *b)
{
	return a->header.sh_type == b->header.sh_type && a->header.sh_flags == b->header.sh_flags &&
	       a->header.sh_entsize == b->header.sh_entsize &&
	       a->header.sh_link == b->header.sh_link;
}

/* A program's size grows with its code's alignment: that may be a page's, or the largest one of the original. */
static uint64_t largest_alignment(const struct mp_relobj *old)
{
	uint64_t most = 4096;

	for (uint32_t i = 1; i < old->nr_sections; i++)
		if (mp_relobj_is_code(&old->sections[i]) &&
		    old->sections[i].header.sh_addralign > most)
			most = old->sections[i].header.sh_addralign;
	return most;
}

/* Only code may begin elsewhere: data of several objects may be one array. @most: of code. */
static bool same_alignment(const struct mp_relobj_section *a, const struct mp_relobj_section *b,
			   bool grows, uint64_t most)
{
	uint64_t least = a->header.sh_addralign;

	if (mp_relobj_is_code(a))
		return least <= b->header.sh_addralign && b->header.sh_addralign <= most;
	return b->header.sh_addralign == (grows && least < 4 ? 4 : least);
}

/* Relocations of data: at the same places, to the same things. @grows: exception tables follow. */
static int compare_relocs(struct vo *vo, uint32_t index, bool grows)
{
	const struct mp_relobj_section *a = &vo->old.obj->sections[index];
	const struct mp_relobj_section *b = &vo->new.obj->sections[index];
	int rc = 0;

	if (a->nr_relocs != b->nr_relocs &&
	    !(grows && mp_relobj_reloc_at(b, a->header.sh_size) == a->nr_relocs))
		return vo_refuse(vo, &vo->new, index, 0, "has other relocations");
	for (uint32_t i = 0; !rc && i < a->nr_relocs; i++) {
		const Elf64_Rela *x = &a->relocs[i], *y = &b->relocs[i];
		struct vo_ref old, new;
		int64_t distance = 0;
		uint32_t type = ELF64_R_TYPE(x->r_info);
		bool entry = type == R_X86_64_PC32 &&
			     vo_table_distance(&vo->old, index, x, &distance);

		old = vo_ref_of(&vo->old, x, -distance);
		new = vo_ref_of(&vo->new, y, -distance);
		if (x->r_offset != y->r_offset || type != ELF64_R_TYPE(y->r_info) ||
		    old.code != new.code)
			return vo_refuse(vo, &vo->new, index, y->r_offset,
					 "has another relocation");
		if (vo_same_symbol(vo, x, y))
			continue;
		if (!old.code || ((type == R_X86_64_PC32 || type == R_X86_64_PLT32) && !entry))
			return vo_refuse(vo, &vo->old, index, x->r_offset,
					 "refers to something else in the new object");
		vo->count.nr_references++;
		rc = vo_expect(vo, old.place, new.place, type != R_X86_64_PC32);
	}
	return rc;
}

/* The symbols whose addresses programs compare: linkers may make functions that are not there one. */
static int compare_addrsig(struct vo *vo, uint32_t index)
{
	const struct mp_relobj_section *a = &vo->old.obj->sections[index];
	const struct mp_relobj_section *b = &vo->new.obj->sections[index];
	struct vf_cursor x = {.p = a->data, .end = a->data + (a->data ? a->header.sh_size : 0)};
	struct vf_cursor y = {.p = b->data, .end = b->data + (b->data ? b->header.sh_size : 0)};
	bool same = true;

	while (same && x.p < x.end && y.p < y.end) {
		uint64_t old = vf_cursor_uleb(&x), new = vf_cursor_uleb(&y);

		same = !x.bad && !y.bad && old < vo->old.obj->nr_symbols &&
		       vo->counterpart[old] == new;
	}
	return same && x.p == x.end && y.p == y.end
		       ? 0
		       : vo_refuse(vo, &vo->new, index, 0, "names other symbols");
}

static int compare_sections(struct vo *vo)
{
	const struct mp_relobj *old = vo->old.obj, *new = vo->new.obj;
	const uint64_t most = largest_alignment(old);
	int rc = 0;

	if (new->nr_sections < old->nr_sections || old->symtab != new->symtab ||
	    vo->old.eh_frame != vo->new.eh_frame || vo->old.ends != vo->new.ends)
		return vo_refuse(vo, &vo->new, 0, 0, "sections are missing");
	for (uint32_t i = 1; !rc && i < old->nr_sections; i++) {
		const struct mp_relobj_section *a = &old->sections[i], *b = &new->sections[i];
		bool grows;

		grows = b->header.sh_size > a->header.sh_size && vo_has_tables(&vo->old, i);
		if (!same_header(a, b) || !same_alignment(a, b, grows, most) ||
		    (!mp_relobj_is_code(a) && a->header.sh_type != SHT_RELA &&
		     strcmp(a->name, b->name)))
			return vo_refuse(vo, &vo->new, i, 0, "is another section");
		/* Tools that number symbols anew take the link away, and linkers ignore such a table. */
		if (a->header.sh_type == VO_SHT_ADDRSIG && a->header.sh_link == old->symtab)
			rc = compare_addrsig(vo, i);
		if (rc || compared_elsewhere(&vo->old, i))
			continue;
		if ((a->header.sh_size != b->header.sh_size && !grows) ||
		    (a->data && memcmp(a->data, b->data, a->header.sh_size)))
			return vo_refuse(vo, &vo->new, i, 0, "has other bytes");
		rc = compare_relocs(vo, i, grows);
	}
	for (uint32_t i = old->nr_sections; !rc && i < new->nr_sections; i++) {
		const struct mp_relobj_section *s = &new->sections[i];

		if (s->header.sh_addralign > most ||
		    (!mp_relobj_is_code(s) && !vo_is_debug(s) && s->header.sh_type != SHT_RELA &&
		     s->header.sh_type != VO_SHT_CALL_GRAPH_PROFILE))
			rc = vo_refuse(vo, &vo->new, i, 0, "is an unexpected section");
	}
	return rc;
}

/* Which group each section is in. Groups keep their members, and may get more. */
static int read_groups(struct vo *vo, struct vo_side *side)
{
	const struct mp_relobj *obj = side->obj;

	side->group = calloc(obj->nr_sections, sizeof(*side->group));
	if (!side->group)
		return -ENOMEM;
	for (uint32_t i = 1; i < obj->nr_sections; i++) {
		const struct mp_relobj_section *s = &obj->sections[i];

		for (uint64_t k = 4; s->header.sh_type == SHT_GROUP && k + 4 <= s->header.sh_size;
		     k += 4) {
			uint32_t member;

			memcpy(&member, s->data + k, sizeof(member));
			if (member >= obj->nr_sections || side->group[member] ||
			    !(obj->sections[member].header.sh_flags & SHF_GROUP))
				return vo_refuse(vo, side, i, k, "is a bad group");
			side->group[member] = i;
		}
	}
	for (uint32_t i = 1; i < obj->nr_sections; i++)
		if (!(obj->sections[i].header.sh_flags & SHF_GROUP) != !side->group[i])
			return vo_refuse(vo, side, i, 0, "is in no group");
	return 0;
}

static int compare_groups(struct vo *vo)
{
	const struct mp_relobj *old = vo->old.obj, *new = vo->new.obj;

	for (uint32_t i = 1; i < old->nr_sections; i++) {
		const struct mp_relobj_section *a = &old->sections[i], *b = &new->sections[i];

		if (a->header.sh_type != SHT_GROUP)
			continue;
		if (b->header.sh_size < a->header.sh_size ||
		    memcmp(a->data, b->data, a->header.sh_size) ||
		    a->header.sh_info >= old->nr_symbols || b->header.sh_info >= new->nr_symbols ||
		    strcmp(mp_relobj_symbol_name(old, a->header.sh_info),
			   mp_relobj_symbol_name(new, b->header.sh_info)))
			return vo_refuse(vo, &vo->new, i, 0, "is another group");
	}
	return 0;
}

/* ---- symbols ---------------------------------------------------------------------------------- */

static bool same_kind(const struct vo *vo, uint32_t i, uint32_t k)
{
	const Elf64_Sym *a = &vo->old.obj->symbols[i], *b = &vo->new.obj->symbols[k];

	return a->st_info == b->st_info && a->st_other == b->st_other &&
	       (ELF64_ST_TYPE(a->st_info) == STT_SECTION
			? a->st_shndx == b->st_shndx
			: !strcmp(mp_relobj_symbol_name(vo->old.obj, i),
				  mp_relobj_symbol_name(vo->new.obj, k)));
}

static int compare_symbol(struct vo *vo, uint32_t i, uint32_t k)
{
	const Elf64_Sym *a = &vo->old.obj->symbols[i], *b = &vo->new.obj->symbols[k];

	if (ELF64_ST_TYPE(a->st_info) == STT_SECTION)
		return 0;
	if (mp_relobj_in_code(vo->old.obj, i) && mp_relobj_in_code(vo->new.obj, k))
		return vo_expect(vo, (struct vo_place){a->st_shndx, (uint32_t)a->st_value},
				 (struct vo_place){b->st_shndx, (uint32_t)b->st_value}, true);
	if (a->st_shndx != b->st_shndx || a->st_value != b->st_value || a->st_size != b->st_size)
		return mp_err_set(vo->err, EPERM, "symbol %s is another one in the new object",
				  mp_relobj_symbol_name(vo->old.obj, i));
	return 0;
}

/* New local symbols may stand between the old ones; the global ones are the same. */
static int compare_symbols(struct vo *vo)
{
	const struct mp_relobj *old = vo->old.obj, *new = vo->new.obj;
	uint32_t a = old->sections[old->symtab].header.sh_info, k = 0;
	uint32_t b = new->sections[new->symtab].header.sh_info;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < a; i++, k++) {
		while (k < b && !same_kind(vo, i, k))
			k++;
		if (k >= b)
			return mp_err_set(vo->err, EPERM, "symbol %s is missing",
					  mp_relobj_symbol_name(old, i));
		vo->counterpart[i] = k;
		rc = compare_symbol(vo, i, k);
	}
	if (!rc && old->nr_symbols - a != new->nr_symbols - b)
		rc = mp_err_set(vo->err, EPERM, "there are other global symbols");
	for (uint32_t i = a; !rc && i < old->nr_symbols; i++) {
		if (!same_kind(vo, i, i - a + b))
			return mp_err_set(vo->err, EPERM, "symbol %s is missing",
					  mp_relobj_symbol_name(old, i));
		vo->counterpart[i] = i - a + b;
		rc = compare_symbol(vo, i, i - a + b);
	}
	return rc;
}

static int add_ends(struct vo *vo)
{
	const struct mp_relobj *obj = vo->old.obj;
	int rc = 0;

	for (uint32_t i = 1; !rc && i < obj->nr_symbols; i++) {
		const Elf64_Sym *symbol = &obj->symbols[i];
		uint64_t end = symbol->st_value + symbol->st_size;

		if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && mp_relobj_in_code(obj, i) &&
		    symbol->st_size && end <= UINT32_MAX)
			rc = vo_add_end(vo, (struct vo_place){symbol->st_shndx, (uint32_t)end});
	}
	return rc;
}

/* ---- all of it -------------------------------------------------------------------------------- */

static uint64_t code_size(const struct vo_side *side, uint32_t section)
{
	const struct mp_relobj_section *s = &side->obj->sections[section];

	return mp_relobj_is_code(s) ? s->header.sh_size : 0;
}

static int (*const comparisons[])(struct vo *) = {vo_scan,	    add_ends,	  compare_symbols,
						  compare_sections, vo_unchanged, compare_groups,
						  vo_walk,	    vo_debug};

static int compare(struct vo *vo)
{
	const Elf64_Ehdr *a = &vo->old.obj->header, *b = &vo->new.obj->header;
	int rc = vo_relocs_apart(vo, &vo->old);

	if (memcmp(a->e_ident, b->e_ident, EI_NIDENT) || a->e_version != b->e_version ||
	    a->e_flags != b->e_flags)
		return mp_err_set(vo->err, EPERM, "the ELF header is another one");
	for (uint32_t i = 1; i < vo->old.obj->nr_sections; i++)
		vo->code_size += code_size(&vo->old, i);
	for (uint32_t i = 1; i < vo->new.obj->nr_sections; i++)
		vo->code_size += code_size(&vo->new, i);
	vo->counterpart = calloc(vo->old.obj->nr_symbols, sizeof(*vo->counterpart));
	if (!vo->counterpart)
		return -ENOMEM;
	if (!rc)
		rc = vo_relocs_apart(vo, &vo->new);
	if (!rc)
		rc = vo_frame_read(vo, &vo->old);
	if (!rc)
		rc = vo_frame_read(vo, &vo->new);
	if (!rc)
		rc = read_groups(vo, &vo->old);
	if (!rc)
		rc = read_groups(vo, &vo->new);
	for (size_t i = 0; !rc && i < sizeof(comparisons) / sizeof(comparisons[0]); i++)
		rc = comparisons[i](vo);
	return rc;
}

static void side_fini(struct vo_side *side)
{
	vo_frame_fini(side);
	free(side->group);
	free(side->bases);
}

int me_verify_object(const uint8_t *old, size_t old_size, const uint8_t *new, size_t new_size,
		     struct me_verify_object_report *report, struct mp_err *err)
{
	struct mp_relobj *a = NULL, *b = NULL;
	struct vo vo = {.err = err};
	int rc = mp_relobj_open(old, old_size, &a, err);

	if (!rc)
		rc = mp_relobj_open(new, new_size, &b, err);
	if (!rc) {
		vo.old.obj = a;
		vo.new.obj = b;
		rc = compare(&vo);
		if (vo.old.no_memory || vo.new.no_memory)
			rc = -ENOMEM;
		if (rc == -ENOMEM)
			mp_err_set(err, ENOMEM, "out of memory");
	}
	if (!rc && report) {
		report->nr_objects++;
		report->nr_insns += vo.count.nr_insns;
		report->nr_references += vo.count.nr_references;
		report->nr_rows += vo.count.nr_rows;
	}
	side_fini(&vo.old);
	side_fini(&vo.new);
	free(vo.seen.slots);
	free(vo.values.slots);
	free(vo.origins.slots);
	free(vo.ends.slots);
	free(vo.counterpart);
	free(vo.unchanged);
	free(vo.todo);
	free(vo.compared);
	mp_relobj_free(a);
	mp_relobj_free(b);
	return rc;
}
