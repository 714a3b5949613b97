// SPDX-License-Identifier: Apache-2.0
/*
 * debug_line_files - entries are copied from one table to the other. Before version 5 a name is written with its
 * directory; since then directories are copied, too. If the tables have different formats, all names are written anew.
 */
#include "editor/debug/debug_line_files.h"

#include <string.h>

#include "editor/debug/read/debug_form.h"

enum {
	LNCT_PATH = 1,
	LNCT_DIRECTORY_INDEX = 2,
};

static bool read_format(struct mp_cursor *c, struct me_line_format *f)
{
	f->bytes = c->p;
	f->nr = mp_cursor_u8(c);
	if (c->bad || f->nr > sizeof(f->forms) / sizeof(f->forms[0]))
		return false;
	for (uint8_t i = 0; i < f->nr; i++) {
		f->contents[i] = (uint32_t)mp_cursor_uleb(c);
		f->forms[i] = (uint32_t)mp_cursor_uleb(c);
	}
	f->size = (uint64_t)(c->p - f->bytes);
	return !c->bad;
}

static bool read_table5(struct mp_cursor *c, struct me_line_table *t)
{
	if (!read_format(c, &t->format))
		return false;
	t->count = c->p;
	t->nr = mp_cursor_uleb(c);
	t->entries = c->p;
	for (uint64_t i = 0; i < t->nr && !c->bad && c->p < c->end; i++)
		for (uint8_t k = 0; k < t->format.nr; k++)
			me_form_skip(c, t->format.forms[k], 5);
	t->end = c->p;
	/* Entries without bytes would be endless. */
	return !c->bad && t->nr <= (uint64_t)(t->end - t->entries);
}

/* Strings up to an empty one; behind each, @numbers LEB128 numbers. */
static bool read_table4(struct mp_cursor *c, struct me_line_table *t, int numbers)
{
	t->entries = c->p;
	for (;;) {
		const char *name;

		t->end = c->p;
		name = mp_cursor_string(c);
		if (!name)
			return false;
		if (!*name)
			return true;
		for (int i = 0; i < numbers; i++)
			mp_cursor_uleb(c);
		t->nr++;
	}
}

bool me_line_files_read(const struct me_debug_sections *file, uint64_t off,
			struct me_line_files *out)
{
	const struct me_debug_section *s = &file->line;
	struct me_line_header h;
	struct mp_cursor c;

	if (me_line_header_read(s->data, s->size, off, &h))
		return false;
	*out = (struct me_line_files){.start = h.start,
				      .end = h.code,
				      .header_length_at = (uint32_t)(h.size - h.start),
				      .version = h.version};
	c = mp_cursor_over(h.tables, h.code);
	if (out->version == 5 ? !read_table5(&c, &out->dirs) || !read_table5(&c, &out->files)
			      : !read_table4(&c, &out->dirs, 0) || !read_table4(&c, &out->files, 3))
		return false;
	out->behind = out->version == 5 ? out->files.end : out->files.end + 1;
	return true;
}

static bool same_format(const struct me_line_format *a, const struct me_line_format *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

/* Entry @index of a table of version 5, and where its value of kind @content stands. */
static bool entry5(const struct me_line_table *t, uint64_t index, uint32_t content,
		   struct mp_cursor *entry, struct mp_cursor *value, uint32_t *form)
{
	struct mp_cursor c = mp_cursor_over(t->entries, t->end);
	bool found = false;

	if (index >= t->nr)
		return false;
	for (uint64_t i = 0; i <= index; i++) {
		entry->p = c.p;
		for (uint8_t k = 0; k < t->format.nr; k++) {
			const uint8_t *p = c.p;

			me_form_skip(&c, t->format.forms[k], 5);
			if (t->format.contents[k] != content)
				continue;
			*value = mp_cursor_over(p, c.p);
			*form = t->format.forms[k];
			found = true;
		}
		entry->end = c.p;
	}
	return found && !c.bad;
}

/* A name of version 5; NULL: it has another form. */
static const char *text_of(const struct me_debug_sections *file, struct mp_cursor value,
			   uint32_t form)
{
	const struct me_debug_section *s = form == DW_FORM_strp ? &file->str : &file->line_str;
	struct mp_cursor c;

	if (form == DW_FORM_string)
		return mp_cursor_string(&value);
	if (form != DW_FORM_line_strp && form != DW_FORM_strp)
		return NULL;
	c = mp_cursor_at(s->data, s->size, mp_cursor_u32(&value));
	return mp_cursor_string(&c);
}

/* The form of @content; 0: the table has none. */
static uint32_t form_of(const struct me_line_format *f, uint32_t content)
{
	for (uint8_t i = 0; i < f->nr; i++)
		if (f->contents[i] == content)
			return f->forms[i];
	return 0;
}

static bool has_texts(const struct me_line_files *f)
{
	const uint32_t forms[] = {form_of(&f->dirs.format, LNCT_PATH),
				  form_of(&f->files.format, LNCT_PATH)};

	for (int i = 0; i < 2 && f->version == 5; i++)
		if (forms[i] != DW_FORM_string && forms[i] != DW_FORM_line_strp &&
		    forms[i] != DW_FORM_strp)
			return false;
	return true;
}

/* Do both programs describe files in the same way, which also goes for a directory before a name? */
static bool same_formats(const struct me_line_files *to, const struct me_line_files *from)
{
	uint32_t form = form_of(&to->dirs.format, LNCT_PATH);

	return from->version == 5 && same_format(&to->dirs.format, &from->dirs.format) &&
	       same_format(&to->files.format, &from->files.format) &&
	       (form == DW_FORM_string || form == DW_FORM_line_strp);
}

bool me_line_files_fit(const struct me_line_files *to, const struct me_line_files *from,
		       const char *comp_dir)
{
	return (!comp_dir || *comp_dir == '/') && has_texts(to) && has_texts(from);
}

uint64_t me_line_files_first(const struct me_line_files *to)
{
	return to->version < 5 ? to->files.nr + 1 : to->files.nr;
}

static void put_dir_name(struct me_bytes *out, const char *dir)
{
	me_bytes_put(out, dir, strlen(dir));
	me_bytes_u8(out, '/');
}

static void put_text(struct me_bytes *out, const char *text)
{
	me_bytes_put(out, text, strlen(text) + 1);
}

/* The number of the directory of a file, and where it stands in the file's entry. */
static bool dir_of(const struct me_line_files *f, uint64_t number, struct mp_cursor *entry,
		   struct mp_cursor *value, uint32_t *form, uint64_t *dir)
{
	struct mp_cursor c;

	if (!entry5(&f->files, number, LNCT_DIRECTORY_INDEX, entry, value, form))
		return false;
	c = *value;
	if (*form == DW_FORM_udata)
		*dir = mp_cursor_uleb(&c);
	else if (*form == DW_FORM_data1 || *form == DW_FORM_data2)
		*dir = mp_cursor_fixed(&c, (unsigned int)(value->end - value->p));
	else
		return false;
	return true;
}

/* Name and directory of file @number; *@dir: NULL: that of the unit. */
static bool names_of(const struct me_debug_sections *file, const struct me_line_files *f,
		     uint64_t number, const char **name, const char **dir)
{
	struct mp_cursor c = mp_cursor_over(f->files.entries, f->files.end);
	struct mp_cursor d = mp_cursor_over(f->dirs.entries, f->dirs.end), entry;
	uint64_t index = 0;
	uint32_t form;

	*name = *dir = NULL;
	if (f->version == 5) {
		if (!dir_of(f, number, &entry, &c, &form, &index) ||
		    !entry5(&f->dirs, index, LNCT_PATH, &entry, &d, &form))
			return false;
		*dir = text_of(file, d, form);
		if (!entry5(&f->files, number, LNCT_PATH, &entry, &c, &form))
			return false;
		*name = text_of(file, c, form);
		return *name && *dir;
	}
	if (!number || number > f->files.nr)
		return false;
	for (uint64_t i = 0; i < number; i++) {
		*name = mp_cursor_string(&c);
		index = mp_cursor_uleb(&c);
		mp_cursor_uleb(&c);
		mp_cursor_uleb(&c);
	}
	if (!*name || index > f->dirs.nr)
		return false;
	for (uint64_t i = 0; i < index; i++)
		*dir = mp_cursor_string(&d);
	return true;
}

/* Writes the entry of an added file, with its directory in the name. */
static bool put_file4(const struct me_debug_sections *file, const struct me_line_added *added,
		      struct me_bytes *out)
{
	const char *name, *dir;

	if (!names_of(file, added->from, added->file, &name, &dir))
		return false;
	if (*name != '/') {
		if (added->comp_dir && (!dir || *dir != '/'))
			put_dir_name(out, added->comp_dir);
		if (dir)
			put_dir_name(out, dir);
	}
	put_text(out, name);
	me_bytes_put(out, "\0\0\0", 3);
	return true;
}

static bool write4(const struct me_debug_sections *file, const struct me_line_files *to,
		   const struct me_line_added *added, uint32_t nr, struct me_bytes *out)
{
	me_bytes_put(out, to->start, (size_t)(to->files.end - to->start));
	for (uint32_t i = 0; i < nr; i++)
		if (!put_file4(file, &added[i], out))
			return false;
	me_bytes_u8(out, 0);
	return true;
}

/* Offset of the string @dir/@name in @s, where it is added unless it is the one added last. */
static bool add_name(struct me_debug_sections *file, const char *dir, const char *name,
		     uint32_t *off)
{
	struct me_debug_section *s = &file->line_str;
	size_t dir_len = strlen(dir), len = dir_len + 1 + strlen(name) + 1;
	const uint8_t *last = s->added.size < len ? NULL : s->added.data + s->added.size - len;

	if (!me_debug_section_has_room(s, len) || !me_debug_spend(file, len / 16))
		return false;
	if (!last || memcmp(last, dir, dir_len) || last[dir_len] != '/' ||
	    memcmp(last + dir_len + 1, name, len - dir_len - 1)) {
		put_dir_name(&s->added, dir);
		me_bytes_put(&s->added, name, strlen(name) + 1);
	}
	*off = (uint32_t)(s->size + s->added.size - len);
	return !s->added.failed;
}

static bool put_dir5(struct me_debug_sections *file, const struct me_line_added *added,
		     struct me_bytes *out)
{
	struct mp_cursor entry, value;
	const char *name;
	uint32_t form, off;
	uint64_t dir;

	if (!dir_of(added->from, added->file, &entry, &value, &form, &dir) ||
	    !entry5(&added->from->dirs, dir, LNCT_PATH, &entry, &value, &form))
		return false;
	name = added->comp_dir ? text_of(file, value, form) : NULL;
	if (!added->comp_dir || (name && *name == '/')) {
		me_bytes_put(out, entry.p, (size_t)(entry.end - entry.p));
		return true;
	}
	if (!name)
		return false;
	me_bytes_put(out, entry.p, (size_t)(value.p - entry.p));
	if (form == DW_FORM_string) {
		put_dir_name(out, added->comp_dir);
		me_bytes_put(out, name, strlen(name) + 1);
	} else {
		if (!add_name(file, added->comp_dir, name, &off))
			return false;
		me_bytes_u32(out, off);
	}
	me_bytes_put(out, value.end, (size_t)(entry.end - value.end));
	return true;
}

static bool put_file5(const struct me_line_added *added, uint64_t dir, struct me_bytes *out)
{
	struct mp_cursor entry, value;
	uint32_t form;
	uint64_t old;

	if (!dir_of(added->from, added->file, &entry, &value, &form, &old))
		return false;
	me_bytes_put(out, entry.p, (size_t)(value.p - entry.p));
	if (form == DW_FORM_udata)
		me_bytes_uleb(out, dir);
	else if (form == DW_FORM_data1 && dir <= UINT8_MAX)
		me_bytes_u8(out, (uint8_t)dir);
	else if (form == DW_FORM_data2 && dir <= UINT16_MAX)
		me_bytes_u16(out, (uint16_t)dir);
	else
		return false;
	me_bytes_put(out, value.end, (size_t)(entry.end - value.end));
	return true;
}

static bool write5(struct me_debug_sections *file, const struct me_line_files *to,
		   const struct me_line_added *added, uint32_t nr, struct me_bytes *out)
{
	const struct me_line_table *dirs = &to->dirs, *files = &to->files;

	me_bytes_put(out, to->start, (size_t)(dirs->count - to->start));
	me_bytes_uleb(out, dirs->nr + nr);
	me_bytes_put(out, dirs->entries, (size_t)(dirs->end - dirs->entries));
	for (uint32_t i = 0; i < nr; i++)
		if (!put_dir5(file, &added[i], out))
			return false;
	me_bytes_put(out, dirs->end, (size_t)(files->count - dirs->end));
	me_bytes_uleb(out, files->nr + nr);
	me_bytes_put(out, files->entries, (size_t)(files->end - files->entries));
	for (uint32_t i = 0; i < nr; i++)
		if (!put_file5(&added[i], dirs->nr + i, out))
			return false;
	return true;
}

/* Writes tables of texts, since the programs describe files in different ways. */
static bool write_texts(const struct me_debug_sections *file, const struct me_line_files *to,
			const struct me_line_added *added, uint32_t nr, struct me_bytes *out)
{
	static const uint8_t dirs[] = {1, LNCT_PATH, DW_FORM_string};
	static const uint8_t files[] = {2, LNCT_PATH, DW_FORM_string, LNCT_DIRECTORY_INDEX,
					DW_FORM_udata};
	struct mp_cursor entry, value;
	const char *name, *dir;
	uint32_t form;
	uint64_t index;

	me_bytes_put(out, to->start, (size_t)(to->dirs.format.bytes - to->start));
	me_bytes_put(out, dirs, sizeof(dirs));
	me_bytes_uleb(out, to->dirs.nr + nr);
	for (uint64_t i = 0; i < to->dirs.nr; i++) {
		dir = entry5(&to->dirs, i, LNCT_PATH, &entry, &value, &form)
			      ? text_of(file, value, form)
			      : NULL;
		if (!dir)
			return false;
		put_text(out, dir);
	}
	for (uint32_t i = 0; i < nr; i++) {
		if (!names_of(file, added[i].from, added[i].file, &name, &dir))
			return false;
		if (!dir)
			dir = ".";
		if (added[i].comp_dir && *dir != '/')
			put_dir_name(out, added[i].comp_dir);
		put_text(out, dir);
	}
	me_bytes_put(out, files, sizeof(files));
	me_bytes_uleb(out, to->files.nr + nr);
	for (uint64_t i = 0; i < to->files.nr; i++) {
		if (!names_of(file, to, i, &name, &dir) ||
		    !dir_of(to, i, &entry, &value, &form, &index))
			return false;
		put_text(out, name);
		me_bytes_uleb(out, index);
	}
	for (uint32_t i = 0; i < nr; i++) {
		if (!names_of(file, added[i].from, added[i].file, &name, &dir))
			return false;
		put_text(out, name);
		me_bytes_uleb(out, to->dirs.nr + i);
	}
	return true;
}

static bool write_tables(struct me_debug_sections *file, const struct me_line_files *to,
			 const struct me_line_added *added, uint32_t nr, struct me_bytes *out)
{
	if (to->version < 5)
		return write4(file, to, added, nr, out);
	for (uint32_t i = 0; i < nr; i++)
		if (!same_formats(to, added[i].from))
			return me_debug_spend(file, (to->files.nr + to->dirs.nr) * to->files.nr) &&
			       write_texts(file, to, added, nr, out);
	return write5(file, to, added, nr, out);
}

bool me_line_files_write(struct me_debug_sections *file, const struct me_line_files *to,
			 const struct me_line_added *added, uint32_t nr, struct me_bytes *out)
{
	size_t start = out->size;

	if (!write_tables(file, to, added, nr, out))
		return false;
	me_bytes_put(out, to->behind, (size_t)(to->end - to->behind));
	if (!out->failed)
		me_bytes_patch_u32(out, start + to->header_length_at,
				   (uint32_t)(out->size - start - to->header_length_at - 4));
	return true;
}
