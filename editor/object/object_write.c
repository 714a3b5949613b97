// SPDX-License-Identifier: Apache-2.0
/*
 * object_write - the output file. Old sections keep their indexes; added ones follow. Section
 * groups get those that were parts of their members.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/object_private.h"
#include "libprof/base/grow.h"

struct section {
	Elf64_Shdr header;
	const uint8_t *data; /* NULL: none in the file */
	struct me_bytes own; /* @data of sections that were made here */
};

struct writer {
	struct me_object *o;
	struct section *sections;
	uint32_t nr, cap;
	struct me_bytes own_names; /* section names, if they have a table of their own */
	struct me_bytes *names;
};

static void set_data(struct section *s, const struct me_bytes *bytes)
{
	s->data = bytes->data;
	s->header.sh_size = bytes->size;
}

static struct section *add_section(struct writer *w, const char *name, uint32_t type)
{
	struct section *s;

	if (mp_grow(w->sections, w->cap, w->nr + 1))
		return NULL;
	s = &w->sections[w->nr++];
	*s = (struct section){.header = {.sh_name = (uint32_t)w->names->size,
					 .sh_type = type,
					 .sh_addralign = 1}};
	me_bytes_put(w->names, name, strlen(name) + 1);
	return s;
}

/* The group that holds the old section @member; 0: none. */
static uint32_t group_of(const struct mp_relobj *in, uint32_t member)
{
	for (uint32_t i = 1; i < in->nr_sections; i++) {
		const struct mp_relobj_section *s = &in->sections[i];

		for (uint64_t k = 4; s->header.sh_type == SHT_GROUP && k + 4 <= s->header.sh_size;
		     k += 4) {
			uint32_t index;

			memcpy(&index, s->data + k, sizeof(index));
			if (index == member)
				return i;
		}
	}
	return 0;
}

static void add_to_group(struct writer *w, uint32_t old, uint32_t index)
{
	const struct mp_relobj *in = w->o->in;
	uint32_t group = in->sections[old].header.sh_flags & SHF_GROUP ? group_of(in, old) : 0;
	struct section *s = &w->sections[group];

	if (!group)
		return;
	if (!s->own.size)
		me_bytes_put(&s->own, in->sections[group].data, in->sections[group].header.sh_size);
	me_bytes_u32(&s->own, index);
	set_data(s, &s->own);
	w->sections[index].header.sh_flags |= SHF_GROUP;
}

/* A section of relocations for section @index of the output. */
static int add_relocs(struct writer *w, uint32_t index, const char *name,
		      const struct me_bytes *relocs, struct mp_err *err)
{
	struct section *s;
	char *full;

	if (!relocs->size)
		return 0;
	if (asprintf(&full, ".rela%s", name) < 0)
		return mp_err_set(err, ENOMEM, "out of memory");
	s = add_section(w, full, SHT_RELA);
	free(full);
	if (!s)
		return mp_err_set(err, ENOMEM, "out of memory");
	s->header.sh_flags = SHF_INFO_LINK;
	s->header.sh_link = w->o->in->symtab;
	s->header.sh_info = index;
	s->header.sh_entsize = sizeof(Elf64_Rela);
	s->header.sh_addralign = 8;
	set_data(s, relocs);
	return 0;
}

/* ---- old sections ------------------------------------------------------------------------ */

static int64_t bias_in_code(const struct me_object *o, uint32_t code, uint64_t off)
{
	while (o->codes[code].at[off] == ME_NONE && off)
		off--;
	return (int64_t)me_oinsn_end(&o->insns[o->codes[code].at[off]]);
}

/* The relocations of data, and of code that stays. */
static int translate_section(struct writer *w, uint32_t index, struct mp_err *err)
{
	const struct me_object *o = w->o;
	const struct mp_relobj_section *s = &o->in->sections[index];
	struct section *to = &w->sections[s->relocs_section];
	int rc = 0;

	for (uint32_t r = 0; !rc && r < s->nr_relocs; r++) {
		int64_t bias = o->code_of[index] == ME_NONE
				       ? 0
				       : bias_in_code(o, o->code_of[index], s->relocs[r].r_offset) -
						 (int64_t)s->relocs[r].r_offset;
		Elf64_Rela moved;

		rc = me_object_translate(o, index, &s->relocs[r], bias, &moved, err);
		me_bytes_put(&to->own, &moved, sizeof(moved));
	}
	set_data(to, &to->own);
	return rc ? rc : to->own.failed ? mp_err_set(err, ENOMEM, "out of memory") : 0;
}

/* Appends the added bytes and relocations to those of a section of data. */
static int add_extra(struct writer *w, uint32_t index, struct mp_err *err)
{
	const struct mp_relobj_section *s = &w->o->in->sections[index];
	const struct me_extra *extra = &w->o->extras[index];
	struct section *to = &w->sections[index];

	if (!extra->bytes.size)
		return 0;
	me_bytes_put(&to->own, s->data, s->header.sh_size);
	me_bytes_align(&to->own, 4);
	me_bytes_put(&to->own, extra->bytes.data, extra->bytes.size);
	set_data(to, &to->own);
	to->header.sh_addralign = s->header.sh_addralign < 4 ? 4 : s->header.sh_addralign;
	if (to->own.failed)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (!extra->relocs.size)
		return 0;
	if (!s->relocs_section) {
		uint32_t before = w->nr;
		int rc = add_relocs(w, index, s->name, &extra->relocs, err);

		if (!rc)
			add_to_group(w, index, before);
		return rc;
	}
	to = &w->sections[s->relocs_section];
	me_bytes_put(&to->own, extra->relocs.data, extra->relocs.size);
	set_data(to, &to->own);
	return to->own.failed ? mp_err_set(err, ENOMEM, "out of memory") : 0;
}

static int put_extras(struct writer *w, struct mp_err *err)
{
	int rc = 0;

	for (uint32_t i = 1; !rc && i < w->o->in->nr_sections; i++)
		rc = add_extra(w, i, err);
	return rc;
}

/* Symbol numbers in .llvm_addrsig. */
static void number_addrsig(struct writer *w, uint32_t index)
{
	const struct mp_relobj_section *s = &w->o->in->sections[index];
	struct section *to = &w->sections[index];

	for (uint64_t i = 0, value = 0, shift = 0; i < s->header.sh_size; i++) {
		if (shift < 64)
			value |= (uint64_t)(s->data[i] & 0x7f) << shift;
		shift += 7;
		if (s->data[i] & 0x80)
			continue;
		me_bytes_uleb(&to->own, me_object_symbol(w->o, (uint32_t)value));
		value = shift = 0;
	}
	set_data(to, &to->own);
}

static int copy_sections(struct writer *w, struct mp_err *err)
{
	const struct mp_relobj *in = w->o->in;
	int rc = 0;

	for (uint32_t i = 0; i < in->nr_sections; i++) {
		struct section *s = &w->sections[i];

		s->header = in->sections[i].header;
		s->data = in->sections[i].data;
		if (s->header.sh_type == SHT_GROUP)
			s->header.sh_info = me_object_symbol(w->o, s->header.sh_info);
		if (s->header.sh_type == SHT_LLVM_ADDRSIG)
			number_addrsig(w, i);
	}
	for (uint32_t i = 1; !rc && i < in->nr_sections; i++) {
		uint32_t code = w->o->code_of[i];

		if (w->o->debug && w->o->debug[i].written)
			continue;
		if (in->sections[i].relocs_section && i != w->o->eh_frame &&
		    (code == ME_NONE || w->o->codes[code].closed))
			rc = translate_section(w, i, err);
	}
	set_data(&w->sections[w->o->eh_frame], &w->o->frame);
	set_data(&w->sections[in->sections[w->o->eh_frame].relocs_section], &w->o->frame_relocs);
	set_data(&w->sections[in->symtab], &w->o->symbols);
	w->sections[in->symtab].header.sh_info = w->o->nr_locals + w->o->nr_inserted;
	return rc;
}

/* ---- sections of ranges that the original lacks -------------------------------------------- */

static const char *const list_names[] = {".debug_ranges", ".debug_rnglists"};

static int put_lists(struct writer *w, struct mp_err *err)
{
	for (int i = 0; i < 2; i++) {
		struct section *s;

		if (!w->o->lists[i].section)
			continue;
		s = add_section(w, list_names[i], SHT_PROGBITS);
		if (!s)
			return mp_err_set(err, ENOMEM, "out of memory");
		set_data(s, &w->o->lists[i].made.bytes);
	}
	return 0;
}

/* ---- code ---------------------------------------------------------------------------------- */

static int put_outs(struct writer *w, struct mp_err *err)
{
	struct me_object *o = w->o;

	for (uint32_t i = 0; i < o->nr_outs; i++) {
		struct me_out *out = &o->outs[i];
		struct section *s = &w->sections[out->section];

		if (out->closed)
			continue;
		if (out->added) {
			s = add_section(w, out->name, SHT_PROGBITS);
			if (!s)
				return mp_err_set(err, ENOMEM, "out of memory");
			s->header.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
			add_to_group(w, out->old, out->section);
			s = &w->sections[out->section];
		} else if (out->name) {
			s->header.sh_name = (uint32_t)w->names->size;
			me_bytes_put(w->names, out->name, strlen(out->name) + 1);
		}
		s->header.sh_addralign = out->align;
		set_data(s, &out->bytes);
	}
	return 0;
}

static int put_out_relocs(struct writer *w, struct mp_err *err)
{
	const struct mp_relobj *in = w->o->in;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < w->o->nr_outs; i++) {
		const struct me_out *out = &w->o->outs[i];
		uint32_t old = out->added || out->closed ? 0
							 : in->sections[out->old].relocs_section;
		const char *name = out->name ? out->name : in->sections[out->old].name;
		uint32_t before = w->nr;

		if (out->closed)
			continue;
		if (!old) {
			rc = add_relocs(w, out->section, name, &out->relocs, err);
			if (!rc && w->nr > before)
				add_to_group(w, out->old, before);
			continue;
		}
		set_data(&w->sections[old], &out->relocs);
		if (!out->name)
			continue;
		w->sections[old].header.sh_name = (uint32_t)w->names->size;
		me_bytes_put(w->names, ".rela", 5);
		me_bytes_put(w->names, name, strlen(name) + 1);
	}
	return rc;
}

static int put_calls(struct writer *w, struct mp_err *err)
{
	static const char name[] = ".llvm.call-graph-profile";
	struct section *s;

	if (!w->o->calls.size)
		return 0;
	s = add_section(w, name, SHT_LLVM_CALL_GRAPH_PROFILE);
	if (!s)
		return mp_err_set(err, ENOMEM, "out of memory");
	s->header.sh_flags = SHF_EXCLUDE;
	s->header.sh_link = w->o->in->symtab;
	s->header.sh_entsize = 8;
	set_data(s, &w->o->calls);
	return add_relocs(w, w->nr - 1, name, &w->o->call_relocs, err);
}

/* ---- debug information ------------------------------------------------------------------- */

static int put_debug(struct writer *w, struct mp_err *err)
{
	const struct mp_relobj *in = w->o->in;
	int rc = 0;

	for (uint32_t i = 1; !rc && w->o->debug && i < in->nr_sections; i++) {
		const struct me_odebug_section *made = &w->o->debug[i];
		uint32_t relocs = in->sections[i].relocs_section;

		if (!made->written)
			continue;
		set_data(&w->sections[i], &made->bytes);
		if (relocs)
			set_data(&w->sections[relocs], &made->relocs);
		else
			rc = add_relocs(w, i, in->sections[i].name, &made->relocs, err);
	}
	for (int i = 0; !rc && i < 2; i++)
		if (w->o->lists[i].section)
			rc = add_relocs(w, w->o->lists[i].section, list_names[i],
					&w->o->lists[i].made.relocs, err);
	return rc;
}

/* ---- the file ---------------------------------------------------------------------------- */

static void put_file(struct writer *w, struct me_bytes *file)
{
	Elf64_Ehdr header = w->o->in->header;

	me_bytes_put(file, &header, sizeof(header));
	for (uint32_t i = 1; i < w->nr; i++) {
		struct section *s = &w->sections[i];
		uint64_t align = s->header.sh_addralign;

		if (align > 1 && align <= 4096)
			me_bytes_align(file, align);
		s->header.sh_offset = file->size;
		if (s->data && s->header.sh_type != SHT_NOBITS)
			me_bytes_put(file, s->data, s->header.sh_size);
	}
	me_bytes_align(file, 8);
	header.e_shoff = file->size;
	header.e_shnum = (uint16_t)w->nr;
	for (uint32_t i = 0; i < w->nr; i++)
		me_bytes_put(file, &w->sections[i].header, sizeof(Elf64_Shdr));
	if (!file->failed)
		memcpy(file->data, &header, sizeof(header));
}

int me_object_write(struct me_object *o, struct me_bytes *file, struct mp_err *err)
{
	const struct mp_relobj *in = o->in;
	struct writer w = {.o = o, .nr = in->nr_sections};
	uint32_t strings = in->sections[in->symtab].header.sh_link, names = in->header.e_shstrndx;
	int rc = 0;

	w.names = names == strings ? &o->names : &w.own_names;
	if (names != strings)
		me_bytes_put(w.names, in->sections[names].data, in->sections[names].header.sh_size);
	if (mp_grow(w.sections, w.cap, in->nr_sections)) {
		me_bytes_fini(&w.own_names);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	memset(w.sections, 0, in->nr_sections * sizeof(*w.sections));
	rc = copy_sections(&w, err);
	if (!rc)
		rc = put_outs(&w, err);
	if (!rc)
		rc = put_lists(&w, err);
	if (!rc)
		rc = put_out_relocs(&w, err);
	if (!rc)
		rc = put_extras(&w, err);
	if (!rc)
		rc = put_debug(&w, err);
	if (!rc)
		rc = put_calls(&w, err);
	if (!rc) {
		set_data(&w.sections[names], w.names);
		set_data(&w.sections[strings], &o->names);
		put_file(&w, file);
	}
	if (!rc && (file->failed || w.names->failed))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < w.nr; i++)
		me_bytes_fini(&w.sections[i].own);
	free(w.sections);
	me_bytes_fini(&w.own_names);
	return rc;
}
