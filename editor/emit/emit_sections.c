// SPDX-License-Identifier: Apache-2.0
/*
 * emit_sections - the section headers and symbols of an output, and the sections that are
 * not loaded.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/debug/debug_file.h"
#include "editor/debug/debuglink.h"
#include "editor/emit/emit_private.h"
#include "editor/place/symbols.h"

void me_emitter_place_sections(struct me_emitter *e)
{
	Elf64_Shdr *s = &e->sections.shdrs[e->sections.first_new];
	uint64_t lsda = e->unwind_vaddr + e->unwind.lsda_off;

	s[ME_SECTION_TEXT].sh_addr = e->placement.base;
	s[ME_SECTION_TEXT].sh_size = e->placement.text_end - e->placement.base;
	s[ME_SECTION_LSDA].sh_addr = lsda;
	s[ME_SECTION_LSDA].sh_size = e->unwind.lsda_size;
	s[ME_SECTION_EH_FRAME].sh_addr = e->unwind_vaddr + e->unwind.eh_frame_off;
	s[ME_SECTION_EH_FRAME].sh_size = e->unwind.eh_frame_size;
	s[ME_SECTION_EH_FRAME_HDR].sh_addr = e->unwind_vaddr + e->unwind.hdr_off;
	s[ME_SECTION_EH_FRAME_HDR].sh_size = e->unwind.hdr_size;
	s[ME_SECTION_MAP].sh_addr = e->note_vaddr;
	s[ME_SECTION_MAP].sh_size = e->note_size;
	for (uint32_t n = 0; n < ME_NR_NEW_SECTIONS; n++)
		s[n].sh_offset = s[n].sh_addr - e->segment.vaddr + e->segment.off;
}

void me_emitter_move_sections(struct me_emitter *e)
{
	const struct me_displaced *d = &e->segment.displaced;

	for (uint32_t i = 1; i < e->sections.nr_shdrs; i++) {
		Elf64_Shdr *h = &e->sections.shdrs[i];

		if (!e->sections.origin[i] ||
		    !me_displaced_has(d, &e->elf->sections[e->sections.origin[i]]))
			continue;
		h->sh_addr = me_displaced_vaddr(d, h->sh_addr);
		h->sh_offset = h->sh_addr - e->segment.vaddr + e->segment.off;
	}
}

/* Add a section for the table of what the stubs count or set. */
static int add_table(struct me_emitter *e, struct mp_err *err)
{
	if (me_sections_append(&e->sections, e->added->table_name, SHT_PROGBITS, &e->table_section))
		return mp_err_set(err, ENOMEM, "out of memory");
	return 0;
}

/* Add the sections of a counting output: the runtime and the counters. */
static int add_counting(struct me_emitter *e, struct mp_err *err)
{
	struct me_sections *s = &e->sections;
	uint32_t runtime, counters;

	if (me_sections_append(s, ".morph.runtime", SHT_PROGBITS, &runtime) ||
	    me_sections_append(s, ".morph.counters", SHT_NOBITS, &counters))
		return mp_err_set(err, ENOMEM, "out of memory");
	s->shdrs[runtime].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	s->shdrs[runtime].sh_addr = e->runtime_vaddr;
	s->shdrs[runtime].sh_offset = e->runtime_vaddr - e->segment.vaddr + e->segment.off;
	s->shdrs[runtime].sh_size = me_start_size();
	s->shdrs[runtime].sh_addralign = 16;
	s->shdrs[counters].sh_flags = SHF_ALLOC | SHF_WRITE;
	s->shdrs[counters].sh_addr = e->segment.zeros;
	s->shdrs[counters].sh_offset = e->segment.old_end;
	s->shdrs[counters].sh_size = e->segment.zeros_size;
	s->shdrs[counters].sh_addralign = 0x1000;
	return 0;
}

/* Add the section of the code that answers, with its table. */
static int add_answers(struct me_emitter *e, struct mp_err *err)
{
	uint32_t i;

	if (!e->answers.size)
		return 0;
	if (me_sections_append(&e->sections, ".morph.enclosing", SHT_PROGBITS, &i))
		return mp_err_set(err, ENOMEM, "out of memory");
	e->sections.shdrs[i].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	e->sections.shdrs[i].sh_addr = e->answers.vaddr;
	e->sections.shdrs[i].sh_offset = e->answers.vaddr - e->segment.vaddr + e->segment.off;
	e->sections.shdrs[i].sh_size = e->answers.size;
	e->sections.shdrs[i].sh_addralign = 16;
	return 0;
}

/* Add the section of tables that version A of audited functions has for itself. */
static int add_version_tables(struct me_emitter *e, struct mp_err *err)
{
	const struct me_version_tables *tables = &e->version_tables;
	uint32_t i;

	if (!tables->size)
		return 0;
	if (me_sections_append(&e->sections, ".morph.tables", SHT_PROGBITS, &i))
		return mp_err_set(err, ENOMEM, "out of memory");
	e->sections.shdrs[i].sh_flags = SHF_ALLOC;
	e->sections.shdrs[i].sh_addr = tables->vaddr;
	e->sections.shdrs[i].sh_offset = tables->vaddr - e->segment.vaddr + e->segment.off;
	e->sections.shdrs[i].sh_size = tables->size;
	e->sections.shdrs[i].sh_addralign = 8;
	return 0;
}

/* Add the mark of an output that may be put into a running process: a section without bytes. */
static int add_live_mark(struct me_emitter *e, struct mp_err *err)
{
	uint32_t i;

	if (e->plan->live_at && me_sections_append(&e->sections, MP_LIVE_SECTION, SHT_PROGBITS, &i))
		return mp_err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int name_by_build_id(const struct me_emitter *e, char *name, struct mp_err *err)
{
	struct mp_id id = {0};
	char text[2 * MP_BUILD_ID_MAX + 1];
	uint32_t len = 0;
	const uint8_t *desc = me_emitter_build_id(e, &len);

	if (!desc || len < 2 || len > MP_BUILD_ID_MAX)
		return mp_err_set(err, EPERM, "has no build-id, which would name its debug file");
	memcpy(id.build_id, desc, len);
	id.build_id_len = (uint8_t)len;
	mp_id_format_build_id(&id, text);
	sprintf(name, "%s.debug", text + 2);
	return 0;
}

/* The output's bytes of a section of the original. NULL: they are in neither part. */
static uint8_t *section_bytes(const struct me_emitter *e, const struct mp_section *s)
{
	const struct me_displaced *d = &e->segment.displaced;

	if (me_displaced_holds(d, s->off, s->size))
		return e->new_segment + (d->new_vaddr - e->segment.vaddr) + (s->off - d->off);
	if (s->off > e->segment.old_end || s->size > e->segment.old_end - s->off)
		return NULL;
	return e->old_part + s->off;
}

/* Build the debug file and the link to it. */
static int build_debug_file(struct me_emitter *e, const struct mp_elf *debug, const char *name,
			    struct mp_err *err)
{
	const struct mp_section *note = mp_elf_section(e->elf, ".note.gnu.build-id");
	const struct me_debug_file_input in = {
		.elf = debug,
		.head = e->old_part,
		.build_id_note = note ? section_bytes(e, note) : NULL,
		.new_sections = &e->sections.shdrs[e->sections.first_new],
		.displaced = &e->segment.displaced,
	};
	const struct mp_section *old = mp_elf_section(e->elf, ME_DEBUGLINK_SECTION);
	struct me_output_parts *output = &e->out->debug_output;
	char own_name[2 * MP_BUILD_ID_MAX + sizeof(".debug")];
	int rc = name ? 0 : name_by_build_id(e, own_name, err);

	if (!rc)
		rc = me_debug_file_build(&in, e->cfg, &e->placement, output, &e->out->debug, err);
	if (rc)
		return rc;
	e->link = me_debuglink_make(name ? name : own_name, me_debuglink_crc_parts(output),
				    &e->link_size);
	if (old)
		e->link_section = e->sections.index[old - e->elf->sections];
	else if (me_sections_append(&e->sections, ME_DEBUGLINK_SECTION, SHT_PROGBITS,
				    &e->link_section))
		e->link_section = 0;
	else
		e->sections.shdrs[e->link_section].sh_addralign = 4;
	return e->link && e->link_section ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

/* Append the sections that are not loaded; .symtab, .strtab and .shstrtab are new. */
static int add_unloaded(struct me_emitter *e, struct me_symbols *symbols, struct mp_err *err)
{
	struct me_sections *s = &e->sections;
	int rc = 0;

	for (uint32_t i = 1; rc >= 0 && i < s->nr_shdrs; i++) {
		Elf64_Shdr *h = &s->shdrs[i];
		const uint8_t *bytes = e->elf->data + h->sh_offset;
		int own = 0;

		if (h->sh_flags & SHF_ALLOC || h->sh_type == SHT_NOBITS)
			continue;
		if (e->table_section && i == e->table_section) {
			h->sh_size = e->table_size;
			rc = me_output_parts_add(&e->out->output, e->table, h->sh_size, 1,
						 e->audit_table ? ME_OUTPUT_PARTS_FREE : 0,
						 &h->sh_offset);
			e->audit_table = NULL;
			continue;
		}
		if (e->link && i == e->link_section) {
			h->sh_size = e->link_size;
			rc = me_output_parts_add(&e->out->output, e->link, h->sh_size,
						 h->sh_addralign, ME_OUTPUT_PARTS_FREE,
						 &h->sh_offset);
			e->link = NULL;
			continue;
		}
		rc = me_debug_put(e->debug, i, h, &e->out->output);
		if (rc || s->origin[i] == 0)
			continue;
		if (i == s->symtab) {
			bytes = symbols->symtab;
			h->sh_size = symbols->symtab_size;
			h->sh_info = symbols->nr_locals;
			symbols->symtab = NULL;
			own = 1;
		} else if (i == s->strtab) {
			bytes = symbols->strtab;
			h->sh_size = symbols->strtab_size;
			symbols->strtab = NULL;
			own = 1;
		} else if (i == s->shstrtab) {
			bytes = (const uint8_t *)s->names;
			h->sh_size = s->names_size;
			s->names = NULL;
			own = 1;
		}
		rc = me_output_parts_add(&e->out->output, bytes, h->sh_size, h->sh_addralign, own,
					 &h->sh_offset);
	}
	return rc < 0 ? mp_err_code(err, -rc) : 0;
}

static int build_symbols(struct me_emitter *e, struct me_symbols *symbols, struct mp_err *err)
{
	const struct me_sections *s = &e->sections;
	int rc;

	*symbols = (struct me_symbols){0};
	if (!s->symtab)
		return 0;
	if (s->strtab == 0 || s->strtab == s->shstrtab)
		return mp_err_set(err, EPERM, ".symtab shares its string table");
	rc = me_symbols_build(e->cfg, &e->placement, e->elf,
			      &e->elf->sections[s->origin[s->symtab]],
			      &e->elf->sections[s->origin[s->strtab]], s->index,
			      s->first_new + ME_SECTION_TEXT, symbols, err);
	if (!rc)
		me_displaced_symbols(&e->segment.displaced, symbols->symtab, symbols->symtab_size);
	return rc;
}

static int assemble(struct me_emitter *e, struct mp_err *err)
{
	struct me_output_parts *output = &e->out->output;
	struct me_symbols symbols;
	uint8_t *old_part = e->old_part, *new_segment = e->new_segment;
	Elf64_Ehdr ehdr;
	int rc;

	e->old_part = e->new_segment = NULL;
	memcpy(&ehdr, old_part, sizeof(ehdr));
	rc = me_output_parts_add(output, old_part, e->segment.old_end, 1, ME_OUTPUT_PARTS_UNMAP,
				 NULL);
	if (rc) {
		free(new_segment);
		return mp_err_code(err, -rc);
	}
	output->size_bytes = e->segment.off;
	rc = me_output_parts_add(output, new_segment, e->new_segment_size, 1, 1, NULL);
	if (rc)
		return mp_err_code(err, -rc);
	rc = build_symbols(e, &symbols, err);
	if (!rc)
		rc = add_unloaded(e, &symbols, err);
	me_symbols_fini(&symbols);
	if (rc)
		return rc;
	rc = me_output_parts_add(output, (uint8_t *)e->sections.shdrs,
				 e->sections.nr_shdrs * sizeof(Elf64_Shdr), 8, 1, &ehdr.e_shoff);
	e->sections.shdrs = NULL;
	if (rc)
		return mp_err_code(err, -rc);
	ehdr.e_shnum = (uint16_t)e->sections.nr_shdrs;
	ehdr.e_shstrndx = e->sections.shstrtab;
	memcpy(old_part, &ehdr, sizeof(ehdr));
	return 0;
}

int me_emitter_build_rest(struct me_emitter *e, const struct mp_elf *debug, const char *name,
			  struct mp_err *err)
{
	int rc = debug ? build_debug_file(e, debug, name, err)
		       : me_debug_build(e->cfg, &e->placement, e->elf, &e->sections, &e->debug,
					&e->out->debug, err);

	if (!rc && e->added->nr_counters)
		rc = add_counting(e, err);
	if (!rc)
		rc = add_version_tables(e, err);
	if (!rc)
		rc = add_answers(e, err);
	if (!rc && e->table)
		rc = add_table(e, err);
	if (!rc)
		rc = add_live_mark(e, err);
	return rc ? rc : assemble(e, err);
}

uint8_t *me_emitter_build_id(const struct me_emitter *e, uint32_t *len)
{
	const struct mp_section *note = mp_elf_section(e->elf, ".note.gnu.build-id");
	uint8_t *bytes = note ? section_bytes(e, note) : NULL;
	Elf64_Nhdr nhdr;
	uint64_t room;

	if (!bytes || note->type != SHT_NOTE || note->size < sizeof(nhdr) + 4)
		return NULL;
	memcpy(&nhdr, bytes, sizeof(nhdr));
	room = note->size - sizeof(nhdr) - 4;
	if (nhdr.n_type != NT_GNU_BUILD_ID || nhdr.n_namesz != 4 || nhdr.n_descsz > room)
		return NULL;
	*len = nhdr.n_descsz;
	return bytes + sizeof(nhdr) + 4;
}
