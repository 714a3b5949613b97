// SPDX-License-Identifier: Apache-2.0
/*
 * sections - builds the new section header table and its names. emit fills in addresses of
 * moved code and file offsets.
 */
#include "editor/place/sections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"

/* me_sections_append() is called at most for range lists of two kinds, counters, a debug
 * link, and the mark of outputs for running processes. */
#define MAX_APPENDED 8

/* Limit for sections that are not loaded: their offsets change. */
#define MAX_ALIGN 65536

static const struct {
	const char *name;
	uint32_t type;
	uint64_t flags, align;
} new_sections[ME_NR_NEW_SECTIONS] = {
	[ME_SECTION_TEXT] = {".morph.text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 64},
	[ME_SECTION_LSDA] = {".gcc_except_table.morph", SHT_PROGBITS, SHF_ALLOC, 8},
	[ME_SECTION_EH_FRAME] = {".eh_frame", SHT_PROGBITS, SHF_ALLOC, 8},
	[ME_SECTION_EH_FRAME_HDR] = {".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 8},
	[ME_SECTION_MAP] = {MP_MAP_SECTION, SHT_NOTE, SHF_ALLOC, 4},
};

static const char *renamed(const char *name)
{
	if (!strcmp(name, ".eh_frame"))
		return ".morph.eh_frame_old";
	if (!strcmp(name, ".eh_frame_hdr"))
		return ".morph.eh_frame_hdr_old";
	return name;
}

/* The relocations of --emit-relocs describe the original's layout; no loader uses them. */
static bool is_dropped(const struct mp_section *s)
{
	return s->type == SHT_RELA && !(s->flags & SHF_ALLOC);
}

static uint32_t add_name(struct me_sections *out, const char *name)
{
	size_t at = out->names_size, len = strlen(name) + 1;

	memcpy(out->names + at, name, len);
	out->names_size += len;
	return (uint32_t)at;
}

static void add_new_sections(struct me_sections *out)
{
	out->first_new = (uint16_t)out->nr_shdrs;
	for (uint32_t n = 0; n < ME_NR_NEW_SECTIONS; n++)
		out->shdrs[out->nr_shdrs++] = (Elf64_Shdr){
			.sh_name = add_name(out, new_sections[n].name),
			.sh_type = new_sections[n].type,
			.sh_flags = new_sections[n].flags,
			.sh_addralign = new_sections[n].align,
		};
}

static void add_kept(struct me_sections *out, const struct mp_section *s, uint32_t old)
{
	out->index[old] = (uint16_t)out->nr_shdrs;
	out->origin[out->nr_shdrs] = old;
	out->shdrs[out->nr_shdrs++] = (Elf64_Shdr){
		.sh_name = old ? add_name(out, renamed(s->name)) : 0,
		.sh_type = s->type,
		.sh_flags = s->flags,
		.sh_addr = s->vaddr,
		.sh_offset = s->off,
		.sh_size = s->size,
		.sh_link = s->link,
		.sh_info = s->info,
		.sh_addralign = s->align,
		.sh_entsize = s->entsize,
	};
}

static int remap_links(const struct mp_elf *elf, struct me_sections *out, struct mp_err *err)
{
	for (uint32_t i = 1; i < out->nr_shdrs; i++) {
		Elf64_Shdr *s = &out->shdrs[i];
		bool info_is_section = s->sh_flags & SHF_INFO_LINK || s->sh_type == SHT_RELA;

		if (out->origin[i] == 0)
			continue;
		if (s->sh_link >= elf->nr_sections ||
		    (info_is_section && s->sh_info >= elf->nr_sections))
			return mp_err_set(err, EPERM, "section %s links to no section",
					  elf->sections[out->origin[i]].name);
		s->sh_link = out->index[s->sh_link];
		if (info_is_section)
			s->sh_info = out->index[s->sh_info];
		if (s->sh_type == SHT_SYMTAB) {
			out->symtab = (uint16_t)i;
			out->strtab = (uint16_t)s->sh_link;
		}
	}
	return 0;
}

/* In the order of addresses, on which patchelf relies: sections moved to the new segment come
 * last. */
static void add_all(const struct mp_elf *elf, const struct me_displaced *moved, uint32_t last_alloc,
		    struct me_sections *out)
{
	for (uint32_t i = 0; i < elf->nr_sections; i++) {
		const struct mp_section *s = &elf->sections[i];

		if (i == 0 || (!is_dropped(s) && !me_displaced_has(moved, s)))
			add_kept(out, s, i);
		if (i != last_alloc)
			continue;
		add_new_sections(out);
		for (uint32_t k = 1; k < elf->nr_sections; k++)
			if (me_displaced_has(moved, &elf->sections[k]))
				add_kept(out, &elf->sections[k], k);
	}
}

int me_sections_build(const struct mp_elf *elf, const struct me_displaced *moved,
		      struct me_sections *out, struct mp_err *err)
{
	uint32_t last_alloc = 0;
	size_t names = 1;

	*out = (struct me_sections){0};
	if (elf->nr_sections == 0)
		return mp_err_set(err, EPERM, "has no section headers");
	if (elf->ehdr.e_shstrndx >= elf->nr_sections)
		return mp_err_set(err, EPERM, "has no names of sections");
	if (elf->nr_sections + ME_NR_NEW_SECTIONS + MAX_APPENDED >= SHN_LORESERVE)
		return mp_err_set(err, EPERM, "has too many sections");
	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		if (elf->sections[i].type == SHT_SYMTAB_SHNDX || elf->sections[i].type == SHT_GROUP)
			return mp_err_set(err, EPERM, "section %s: type not supported",
					  elf->sections[i].name);
		if (elf->sections[i].flags & SHF_ALLOC)
			last_alloc = i;
		else if (elf->sections[i].align > MAX_ALIGN)
			return mp_err_set(err, EPERM, "section %s: alignment not supported",
					  elf->sections[i].name);
		names += strlen(elf->sections[i].name) + sizeof(".morph._old");
	}
	for (uint32_t n = 0; n < ME_NR_NEW_SECTIONS; n++)
		names += strlen(new_sections[n].name) + 1;
	out->shdrs = calloc(elf->nr_sections + ME_NR_NEW_SECTIONS, sizeof(*out->shdrs));
	out->index = calloc(elf->nr_sections, sizeof(*out->index));
	out->origin = calloc(elf->nr_sections + ME_NR_NEW_SECTIONS, sizeof(*out->origin));
	out->names = calloc(names, 1);
	if (!out->shdrs || !out->index || !out->origin || !out->names) {
		me_sections_fini(out);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	out->names_size = 1;
	add_all(elf, moved, last_alloc, out);
	out->shstrtab = out->index[elf->ehdr.e_shstrndx];
	return remap_links(elf, out, err);
}

int me_sections_append(struct me_sections *sections, const char *name, uint32_t type,
		       uint32_t *index)
{
	uint32_t nr = sections->nr_shdrs;

	if (mp_resize(sections->shdrs, nr + 1) || mp_resize(sections->origin, nr + 1) ||
	    mp_resize(sections->names, sections->names_size + strlen(name) + 1))
		return -ENOMEM;
	sections->origin[nr] = 0;
	sections->shdrs[nr] = (Elf64_Shdr){
		.sh_name = add_name(sections, name), .sh_type = type, .sh_addralign = 1};
	*index = sections->nr_shdrs++;
	return 0;
}

void me_sections_fini(struct me_sections *sections)
{
	free(sections->shdrs);
	free(sections->index);
	free(sections->origin);
	free(sections->names);
	*sections = (struct me_sections){0};
}
