// SPDX-License-Identifier: Apache-2.0
/*
 * debug_file - writes the debug file of an output: headers, notes, and the sections that are not
 * loaded, which debug and symbols rewrite for the copies. Called by emit.
 */
#include "editor/debug/debug_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/place/sections.h"
#include "editor/place/symbols.h"

#define BUILD_ID ".note.gnu.build-id"
/* Largest gap in the file that keeps a note at its offset. */
#define NEAR	   4096
#define NOTE_ALIGN 8

struct writer {
	const struct me_debug_file_input *in;
	const struct mp_cfg *cfg;
	const struct mp_elf *elf;
	struct me_sections sections;
	struct me_symbols symbols;
	struct me_debug *debug;
	struct me_output_parts *output;
	uint8_t *head;	   /* first part of the output; headers are written last */
	uint64_t kept_end; /* up to here, headers and notes have the program's offsets */
};

/* Reserve the space of the ELF header and the program headers. */
static int put_head(struct writer *w)
{
	Elf64_Ehdr out;
	size_t size;

	memcpy(&out, w->in->head, sizeof(out));
	size = sizeof(out) + out.e_phnum * sizeof(Elf64_Phdr);
	w->head = calloc(1, size);
	if (!w->head)
		return -ENOMEM;
	w->kept_end = size;
	return me_output_parts_add(w->output, w->head, size, 1, ME_OUTPUT_PARTS_FREE, NULL);
}

/* The output's own build-id, by which debuggers match both files. */
static const uint8_t *build_id_note(const struct writer *w, const struct mp_section *note)
{
	const struct mp_section *own = mp_elf_section(w->cfg->elf, BUILD_ID);

	if (!own || own->type != SHT_NOTE || own->size != note->size)
		return NULL;
	return w->in->build_id_note;
}

/*
 * Puts the note at its offset in the program, if that offset is near. Program headers, which have
 * the program's offsets, then hold for the note, too.
 */
static int put_note(struct writer *w, Elf64_Shdr *h, const uint8_t *bytes)
{
	const struct mp_section *own = mp_elf_section_at(w->cfg->elf, h->sh_addr);
	uint64_t at = w->output->size_bytes;
	bool keep = own && own->vaddr == h->sh_addr && own->off >= at && own->off - at < NEAR &&
		    w->kept_end == at;
	int rc;

	if (keep)
		w->output->size_bytes = own->off;
	rc = me_output_parts_add(w->output, bytes, h->sh_size, keep ? 1 : NOTE_ALIGN,
				 ME_OUTPUT_PARTS_BORROW, &h->sh_offset);
	if (keep)
		w->kept_end = w->output->size_bytes;
	return rc;
}

/* Loaded sections keep address and size but have no bytes, except notes, which identify the
 * file. */
static int put_loaded(struct writer *w, uint32_t i)
{
	Elf64_Shdr *h = &w->sections.shdrs[i];
	const struct mp_section *old = &w->elf->sections[w->sections.origin[i]];
	const uint8_t *bytes;

	if (!w->sections.origin[i]) {
		*h = w->in->new_sections[i - w->sections.first_new];
		h->sh_name = w->sections.shdrs[i].sh_name;
	} else if (me_displaced_has(w->in->displaced, old)) {
		h->sh_addr = me_displaced_vaddr(w->in->displaced, h->sh_addr);
	}
	if (!w->sections.origin[i] || old->type != SHT_NOTE) {
		h->sh_type = SHT_NOBITS;
		h->sh_offset = w->output->size_bytes;
		return 0;
	}
	bytes = strcmp(old->name, BUILD_ID) ? w->elf->data + old->off : build_id_note(w, old);
	if (!bytes)
		return -EPERM;
	return put_note(w, h, bytes);
}

static int put_unloaded(struct writer *w, uint32_t i)
{
	const struct me_sections *s = &w->sections;
	Elf64_Shdr *h = &w->sections.shdrs[i];
	const uint8_t *bytes = w->elf->data + h->sh_offset;
	int own = ME_OUTPUT_PARTS_BORROW, rc = me_debug_put(w->debug, i, h, w->output);

	if (rc)
		return rc < 0 ? rc : 0;
	if (i == s->symtab) {
		bytes = w->symbols.symtab;
		h->sh_size = w->symbols.symtab_size;
		h->sh_info = w->symbols.nr_locals;
		w->symbols.symtab = NULL;
		own = ME_OUTPUT_PARTS_FREE;
	} else if (i == s->strtab) {
		bytes = w->symbols.strtab;
		h->sh_size = w->symbols.strtab_size;
		w->symbols.strtab = NULL;
		own = ME_OUTPUT_PARTS_FREE;
	} else if (i == s->shstrtab) {
		bytes = (const uint8_t *)s->names;
		h->sh_size = s->names_size;
		w->sections.names = NULL;
		own = ME_OUTPUT_PARTS_FREE;
	}
	return me_output_parts_add(w->output, bytes, h->sh_size, h->sh_addralign, own,
				   &h->sh_offset);
}

static int put_sections(struct writer *w, struct mp_err *err)
{
	int rc = 0;

	/* Notes first, where tools look for a build-id. */
	for (uint32_t i = 1; !rc && i < w->sections.nr_shdrs; i++)
		if (w->sections.shdrs[i].sh_flags & SHF_ALLOC)
			rc = put_loaded(w, i);
	if (rc == -EPERM)
		return mp_err_set(err, EPERM, "%s: its build-id note has another form than %s has",
				  w->elf->path, w->cfg->elf->path);
	for (uint32_t i = 1; !rc && i < w->sections.nr_shdrs; i++) {
		Elf64_Shdr *h = &w->sections.shdrs[i];

		if (h->sh_flags & SHF_ALLOC)
			continue;
		if (h->sh_type == SHT_NOBITS)
			h->sh_offset = w->output->size_bytes;
		else
			rc = put_unloaded(w, i);
	}
	return rc ? mp_err_code(err, -rc) : 0;
}

/* Write the program's headers; each covers only those bytes that this file has. */
static void put_phdrs(struct writer *w, const Elf64_Ehdr *out)
{
	for (uint32_t i = 0; i < out->e_phnum; i++) {
		Elf64_Phdr ph;

		memcpy(&ph, w->in->head + out->e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_LOAD && ph.p_offset == 0 && ph.p_filesz >= w->kept_end) {
			ph.p_filesz = w->kept_end;
		} else if ((ph.p_type != PT_NOTE && ph.p_type != PT_PHDR &&
			    ph.p_type != PT_GNU_PROPERTY) ||
			   ph.p_offset + ph.p_filesz > w->kept_end) {
			ph.p_offset = ph.p_align > 1 ? ph.p_vaddr % ph.p_align : 0;
			ph.p_filesz = 0;
		}
		memcpy(w->head + sizeof(*out) + i * sizeof(ph), &ph, sizeof(ph));
	}
}

static int put_headers(struct writer *w)
{
	Elf64_Ehdr ehdr = w->elf->ehdr, out;
	uint32_t nr = w->sections.nr_shdrs;
	int rc = me_output_parts_add(w->output, (uint8_t *)w->sections.shdrs,
				     nr * sizeof(Elf64_Shdr), 8, ME_OUTPUT_PARTS_FREE,
				     &ehdr.e_shoff);

	w->sections.shdrs = NULL;
	if (rc)
		return rc;
	memcpy(&out, w->in->head, sizeof(out));
	ehdr.e_phoff = sizeof(ehdr);
	ehdr.e_phentsize = sizeof(Elf64_Phdr);
	ehdr.e_phnum = out.e_phnum;
	ehdr.e_shnum = (uint16_t)nr;
	ehdr.e_shstrndx = w->sections.shstrtab;
	memcpy(w->head, &ehdr, sizeof(ehdr));
	put_phdrs(w, &out);
	return 0;
}

static int build_symbols(struct writer *w, const struct me_placement *placement, struct mp_err *err)
{
	const struct me_sections *s = &w->sections;
	int rc;

	if (!s->symtab)
		return 0;
	if (!s->strtab || s->strtab == s->shstrtab)
		return mp_err_set(err, EPERM, "%s: .symtab shares its string table", w->elf->path);
	rc = me_symbols_build(w->cfg, placement, w->elf, &w->elf->sections[s->origin[s->symtab]],
			      &w->elf->sections[s->origin[s->strtab]], s->index,
			      s->first_new + ME_SECTION_TEXT, &w->symbols, err);
	if (!rc)
		me_displaced_symbols(w->in->displaced, w->symbols.symtab, w->symbols.symtab_size);
	return rc;
}

int me_debug_file_build(const struct me_debug_file_input *in, const struct mp_cfg *cfg,
			const struct me_placement *placement, struct me_output_parts *output,
			struct me_debug_report *report, struct mp_err *err)
{
	struct writer w = {.in = in, .cfg = cfg, .elf = in->elf, .output = output};
	struct mp_err why;
	int rc = me_sections_build(w.elf, in->displaced, &w.sections, &why);

	if (rc)
		mp_err_set(err, -rc, "%s: %s", w.elf->path, why.msg);
	else
		rc = me_debug_build(cfg, placement, w.elf, &w.sections, &w.debug, report, err);
	if (!rc)
		rc = build_symbols(&w, placement, err);
	if (!rc && put_head(&w))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	if (!rc)
		rc = put_sections(&w, err);
	if (!rc && put_headers(&w))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	me_debug_free(w.debug);
	me_symbols_fini(&w.symbols);
	me_sections_fini(&w.sections);
	return rc;
}
