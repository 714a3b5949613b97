// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug - debug information follows the code of an object. Finds the sections, calls the
 * steps, and translates relocations. Called by object.
 *
 * Anything that is not understood refuses the object: lines and variables are right, or the object
 * stays as it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/grow.h"
#include "editor/object/debug/object_debug_private.h"
#include "libprof/base/search.h"

int me_odebug_refuse(const struct me_odebug *d, const char *why)
{
	return mp_err_set(d->err, EPERM, "its debug information %s", why);
}

int me_odebug_no_memory(const struct me_odebug *d)
{
	return mp_err_set(d->err, ENOMEM, "out of memory");
}

bool me_object_is_debug(const struct mp_relobj_section *s)
{
	return !(s->header.sh_flags & SHF_ALLOC) && s->header.sh_type == SHT_PROGBITS &&
	       !strncmp(s->name, ".debug_", 7);
}

/* ---- relocations ------------------------------------------------------------------------------ */

const Elf64_Rela *me_odebug_reloc_at(const struct me_odebug *d, uint32_t section, uint64_t off)
{
	const struct mp_relobj_section *s = me_odebug_section(d, section);
	uint32_t r = mp_relobj_reloc_at(s, off);

	return r < s->nr_relocs && s->relocs[r].r_offset == off ? &s->relocs[r] : NULL;
}

uint32_t me_odebug_nr_relocs(const struct me_odebug *d, uint32_t section, uint64_t from,
			     uint64_t to)
{
	const struct mp_relobj_section *s = me_odebug_section(d, section);

	return mp_relobj_reloc_at(s, to) - mp_relobj_reloc_at(s, from);
}

struct me_addr me_odebug_field(const struct me_odebug *d, uint32_t section, uint64_t off,
			       unsigned int size)
{
	const struct mp_relobj_section *s = me_odebug_section(d, section);
	const Elf64_Rela *r = me_odebug_reloc_at(d, section, off);
	struct me_addr addr = {0, 0};

	if (r) {
		const Elf64_Sym *symbol = &d->o->in->symbols[ELF64_R_SYM(r->r_info)];

		addr.off = symbol->st_value + (uint64_t)r->r_addend;
		if (symbol->st_shndx < d->o->in->nr_sections)
			addr.section = symbol->st_shndx;
	} else if (off + size <= s->header.sh_size) {
		memcpy(&addr.off, s->data + off, size);
	}
	return addr;
}

bool me_odebug_moves(const struct me_odebug *d, struct me_addr addr)
{
	uint32_t code = addr.section ? d->o->code_of[addr.section] : ME_NONE;

	return code != ME_NONE && !d->o->codes[code].closed;
}

void me_odebug_put_reloc(struct me_bytes *relocs, uint64_t off, uint32_t symbol, uint32_t type,
			 uint64_t addend)
{
	const Elf64_Rela r = {off, ELF64_R_INFO((uint64_t)symbol, type), (int64_t)addend};

	me_bytes_put(relocs, &r, sizeof(r));
}

/* An address in an expression: of a function, or of a place in one. */
static int translate_code(struct me_odebug *d, Elf64_Rela *r)
{
	uint32_t index = ELF64_R_SYM(r->r_info), out, off;
	const Elf64_Sym *symbol = &d->o->in->symbols[index];
	struct me_addr addr = {symbol->st_shndx, symbol->st_value + (uint64_t)r->r_addend};

	if (ELF64_ST_TYPE(symbol->st_info) != STT_SECTION && !r->r_addend) {
		r->r_info = ELF64_R_INFO((uint64_t)me_object_symbol(d->o, index),
					 ELF64_R_TYPE(r->r_info));
		return 0;
	}
	if (ELF64_R_TYPE(r->r_info) != R_X86_64_64 ||
	    !me_odebug_place(d, addr, ME_OUSE_START, &out, &off))
		return me_odebug_refuse(d, "names code that is not there");
	r->r_info = ELF64_R_INFO((uint64_t)d->o->outs[out].symbol, R_X86_64_64);
	r->r_addend = off;
	return 0;
}

/* An offset in another section of debug information. */
static int translate_offset(struct me_odebug *d, const struct me_oshifts *shifts, Elf64_Rela *r)
{
	uint32_t index = ELF64_R_SYM(r->r_info);
	uint64_t value = d->o->in->symbols[index].st_value, new;

	if (ELF64_R_TYPE(r->r_info) != R_X86_64_32 ||
	    !me_odebug_shifted(shifts, value + (uint64_t)r->r_addend, &new))
		return me_odebug_refuse(d, "refers to a table that is not there");
	r->r_info = ELF64_R_INFO((uint64_t)me_object_symbol(d->o, index), ELF64_R_TYPE(r->r_info));
	r->r_addend = (int64_t)(new - value);
	return 0;
}

static int translate(struct me_odebug *d, Elf64_Rela *r, bool in_expr)
{
	uint32_t index = ELF64_R_SYM(r->r_info), type = ELF64_R_TYPE(r->r_info);
	uint32_t section = d->o->in->symbols[index].st_shndx;
	struct me_addr addr = {section < d->o->in->nr_sections ? section : 0, 0};

	if (me_odebug_moves(d, addr))
		return in_expr ? translate_code(d, r)
			       : me_odebug_refuse(d, "refers to code in an unknown way");
	if (addr.section && addr.section == d->line)
		return translate_offset(d, &d->lines, r);
	if (addr.section && addr.section == d->abbrev)
		return translate_offset(d, &d->tables, r);
	for (int i = 0; addr.section && i < ME_OLISTS_NR; i++)
		if (addr.section == d->lists[i].section)
			return me_odebug_refuse(d, "refers to a list in an unknown way");
	if (addr.section && addr.section == d->aranges)
		return me_odebug_refuse(d, "refers to .debug_aranges");
	r->r_info = ELF64_R_INFO((uint64_t)me_object_symbol(d->o, index), type);
	return 0;
}

int me_odebug_put_relocs(struct me_odebug *d, uint32_t section, uint64_t from, uint64_t to,
			 int64_t by, bool in_expr, struct me_bytes *relocs)
{
	const struct mp_relobj_section *s = me_odebug_section(d, section);
	int rc = 0;

	for (uint32_t i = mp_relobj_reloc_at(s, from);
	     !rc && i < s->nr_relocs && s->relocs[i].r_offset < to; i++) {
		Elf64_Rela r = s->relocs[i];

		rc = translate(d, &r, in_expr);
		r.r_offset += (uint64_t)by;
		me_bytes_put(relocs, &r, sizeof(r));
	}
	return rc;
}

/* ---- what moved in a section ----------------------------------------------------------------- */

bool me_odebug_add_shift(struct me_oshifts *shifts, uint64_t old, uint64_t new)
{
	if (!me_grow(&shifts->list, &shifts->cap, (uint64_t)shifts->nr + 1, sizeof(*shifts->list)))
		return false;
	shifts->list[shifts->nr++] = (struct me_oshift){old, new};
	return true;
}

bool me_odebug_shifted(const struct me_oshifts *shifts, uint64_t old, uint64_t *new)
{
	uint32_t low = mp_search(i, 0, shifts->nr, shifts->list[i].old < old);

	if (low == shifts->nr || shifts->list[low].old != old)
		return false;
	*new = shifts->list[low].new;
	return true;
}

/* ---- sections --------------------------------------------------------------------------------- */

static int find_section(struct me_odebug *d, const char *name, uint32_t *section)
{
	const struct mp_relobj *in = d->o->in;

	*section = 0;
	for (uint32_t i = 1; i < in->nr_sections; i++) {
		if (strcmp(in->sections[i].name, name) || !me_object_is_debug(&in->sections[i]))
			continue;
		if (*section)
			return me_odebug_refuse(d, "has a section twice");
		*section = i;
	}
	return 0;
}

static int check_sections(struct me_odebug *d)
{
	const struct mp_relobj *in = d->o->in;

	for (uint32_t i = 1; i < in->nr_sections; i++) {
		const struct mp_relobj_section *s = &in->sections[i];
		size_t len = strlen(s->name);

		if (s->header.sh_flags & SHF_COMPRESSED)
			return me_odebug_refuse(
				d, "is compressed (objcopy --decompress-debug-sections)");
		if (!strcmp(s->name, ".debug_frame") && s->nr_relocs)
			return me_odebug_refuse(d, "has unwind information of its own");
		if (len > 4 && !strcmp(s->name + len - 4, ".dwo"))
			return me_odebug_refuse(d, "is split (-gsplit-dwarf)");
	}
	return 0;
}

static int find_sections(struct me_odebug *d)
{
	static const char *const names[ME_OLISTS_NR] = {".debug_ranges", ".debug_loc",
							".debug_rnglists", ".debug_loclists"};
	int rc = check_sections(d);

	if (!rc)
		rc = find_section(d, ".debug_line", &d->line);
	if (!rc)
		rc = find_section(d, ".debug_abbrev", &d->abbrev);
	if (!rc)
		rc = find_section(d, ".debug_addr", &d->addr);
	if (!rc)
		rc = find_section(d, ".debug_aranges", &d->aranges);
	for (int i = 0; !rc && i < ME_OLISTS_NR; i++)
		rc = find_section(d, names[i], &d->lists[i].section);
	for (uint32_t i = 1; i < d->o->nr_locals; i++)
		for (int k = 0; k < ME_OLISTS_NR; k++)
			if (ELF64_ST_TYPE(d->o->in->symbols[i].st_info) == STT_SECTION &&
			    d->lists[k].section &&
			    d->o->in->symbols[i].st_shndx == d->lists[k].section)
				d->lists[k].symbol = i;
	for (int k = 0; k < 2; k++) {
		struct me_olists *lists = &d->lists[k ? ME_OLISTS_RNGLISTS : ME_OLISTS_RANGES];

		if (!lists->symbol)
			lists->symbol = d->o->lists[k].symbol;
	}
	return rc;
}

/* All relocations of sections that are not written anew lead to what they led to. */
static int put_rest(struct me_odebug *d)
{
	const struct me_object *o = d->o;
	int rc = 0;

	for (uint32_t i = 1; !rc && i < o->in->nr_sections; i++) {
		const struct mp_relobj_section *s = &o->in->sections[i];

		if (!me_object_is_debug(s) || o->debug[i].written)
			continue;
		me_bytes_put(&o->debug[i].bytes, s->data, s->data ? s->header.sh_size : 0);
		o->debug[i].written = true;
		rc = me_odebug_put_relocs(d, i, 0, s->header.sh_size, 0, false,
					  &o->debug[i].relocs);
	}
	return rc;
}

/* Lists go to their sections, old or added. */
static void put_lists(struct me_odebug *d)
{
	for (int k = 0; k < ME_OLISTS_NR; k++) {
		struct me_olists *lists = &d->lists[k];
		struct me_odebug_section *to = &d->o->debug[lists->section];

		if (k == ME_OLISTS_RANGES && !lists->section)
			to = &d->o->lists[0].made;
		if (k == ME_OLISTS_RNGLISTS && !lists->section)
			to = &d->o->lists[1].made;
		if (to == &d->o->debug[0])
			continue;
		*to = (struct me_odebug_section){lists->bytes, lists->relocs, true};
		lists->bytes = lists->relocs = (struct me_bytes){0};
	}
}

static int run(struct me_odebug *d)
{
	int rc = find_sections(d);

	if (!rc)
		rc = me_odebug_code(d);
	if (!rc)
		rc = me_odebug_lines(d);
	if (!rc)
		rc = me_odebug_units(d);
	if (!rc)
		rc = me_odebug_find_split(d);
	if (!rc)
		rc = me_odebug_put_abbrevs(d);
	if (!rc)
		rc = me_odebug_entries(d);
	if (!rc)
		put_lists(d);
	if (!rc)
		rc = me_odebug_addrs(d);
	if (!rc)
		rc = me_odebug_aranges(d);
	return rc ? rc : put_rest(d);
}

static void fini(struct me_odebug *d)
{
	for (uint32_t i = 0; i < d->nr_abbrevs; i++)
		me_abbrevs_fini(&d->abbrevs[i].abbrevs);
	for (int k = 0; k < ME_OLISTS_NR; k++) {
		me_bytes_fini(&d->lists[k].bytes);
		me_bytes_fini(&d->lists[k].relocs);
	}
	free(d->abbrevs);
	free(d->units);
	free(d->uses);
	free(d->lines.list);
	free(d->tables.list);
	free(d->first_owned);
	free(d->owned);
	free(d->reached);
	free(d->now.list);
	free(d->more.list);
}

int me_object_debug(struct me_object *o, struct mp_err *err)
{
	struct me_odebug d = {.o = o, .err = err};
	bool any = false;
	int rc;

	for (uint32_t i = 1; i < o->in->nr_sections; i++)
		any |= me_object_is_debug(&o->in->sections[i]);
	if (!any)
		return 0;
	o->debug = calloc(o->in->nr_sections, sizeof(*o->debug));
	rc = o->debug ? run(&d) : me_odebug_no_memory(&d);
	for (uint32_t i = 0; !rc && i < o->in->nr_sections; i++)
		if (o->debug[i].bytes.failed || o->debug[i].relocs.failed)
			rc = me_odebug_no_memory(&d);
	fini(&d);
	return rc;
}
