// SPDX-License-Identifier: Apache-2.0
/*
 * export_pprof - writes pprof's profile.proto, gzipped: addresses with mappings, build-ids,
 * functions, source lines and inlined frames. Decides to write link-time addresses: each
 * executable segment is one mapping, as if every file were loaded at its link-time address.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A failed allocation must not end the program. Every function that adds to a table has a @p. */
#define HASH_NONFATAL_OOM	  1
#define uthash_nonfatal_oom(item) (p->failed = true)
#include <uthash.h>

#include "daemon/export/export_calls.h"
#include "daemon/export/export_source.h"
#include "daemon/export/pprof_fields.h"
#include "daemon/export/protobuf.h"
#include "libprof/base/text.h"

#define INLINES_MAX 64
#define PAGE_MASK   UINT64_C(0xfff)

/* A string that was written already, with its number. */
struct string {
	UT_hash_handle hh;
	uint64_t id;
	char text[];
};

struct function {
	UT_hash_handle hh;
	struct {
		uint64_t name, file;
	} key;
	uint64_t id;
};

struct pprof {
	struct md_gzip *gz;
	struct string *strings;
	struct function *functions;
	struct md_pb top, inner, line; /* reused buffers */
	uint64_t nr_strings, nr_functions, nr_mappings, nr_locations;
	bool failed; /* no memory, or a write failed */
};

/* Writes @p->inner as a field of the profile. */
static void put_field(struct pprof *p, uint32_t field)
{
	md_pb_reset(&p->top);
	md_pb_message(&p->top, field, &p->inner);
	p->failed = p->failed || p->top.failed || md_gzip_write(p->gz, p->top.bytes, p->top.nr);
	md_pb_reset(&p->inner);
}

static uint64_t string_id(struct pprof *p, const char *text)
{
	size_t len = strlen(text);
	struct string *s;
	char *clean;

	HASH_FIND(hh, p->strings, text, len, s);
	if (s)
		return s->id;
	s = calloc(1, sizeof(*s) + len + 1);
	if (!s) {
		p->failed = true;
		return 0;
	}
	memcpy(s->text, text, len + 1);
	s->id = p->nr_strings++;
	HASH_ADD_KEYPTR(hh, p->strings, s->text, len, s);
	if (p->failed) {
		if (!s->hh.tbl)
			free(s);
		return 0;
	}
	/* Readers refuse what is no UTF-8. */
	clean = mp_text_escaped(text);
	md_pb_reset(&p->top);
	if (clean)
		md_pb_bytes(&p->top, PROFILE_STRING, clean, strlen(clean));
	p->failed = p->failed || !clean || p->top.failed ||
		    md_gzip_write(p->gz, p->top.bytes, p->top.nr);
	free(clean);
	return s->id;
}

static uint64_t function_id(struct pprof *p, const char *name, const char *file)
{
	struct function want = {0}, *f;

	want.key.name = string_id(p, name);
	want.key.file = string_id(p, file ? file : "");
	HASH_FIND(hh, p->functions, &want.key, sizeof(want.key), f);
	if (f)
		return f->id;
	f = malloc(sizeof(*f));
	if (!f) {
		p->failed = true;
		return 0;
	}
	*f = want;
	f->id = ++p->nr_functions;
	HASH_ADD(hh, p->functions, key, sizeof(f->key), f);
	if (p->failed) {
		if (!f->hh.tbl)
			free(f);
		return 0;
	}
	md_pb_uint(&p->inner, FUNCTION_ID, f->id);
	/* Both names are mangled, so that pprof's own demangling options apply. */
	md_pb_uint(&p->inner, FUNCTION_NAME, f->key.name);
	md_pb_uint(&p->inner, FUNCTION_SYSTEM_NAME, f->key.name);
	md_pb_uint(&p->inner, FUNCTION_FILE, f->key.file);
	put_field(p, PROFILE_FUNCTION);
	return f->id;
}

static void put_type(struct pprof *p, uint32_t field, const char *type, const char *unit)
{
	uint64_t type_id = string_id(p, type), unit_id = string_id(p, unit);

	md_pb_uint(&p->inner, VALUE_TYPE, type_id);
	md_pb_uint(&p->inner, VALUE_UNIT, unit_id);
	put_field(p, field);
}

/* ---- mappings ------------------------------------------------------------------------------ */

static void put_mapping(struct pprof *p, const struct md_export_module *m, uint64_t start,
			uint64_t limit, uint64_t offset, bool lines)
{
	char hex[2 * MP_BUILD_ID_MAX + 1];
	uint64_t file = string_id(p, m->module->path), id;

	mp_id_format_build_id(&m->module->id, hex);
	id = string_id(p, hex);
	md_pb_uint(&p->inner, MAPPING_ID, ++p->nr_mappings);
	md_pb_uint(&p->inner, MAPPING_START, start);
	md_pb_uint(&p->inner, MAPPING_LIMIT, limit);
	md_pb_uint(&p->inner, MAPPING_OFFSET, offset);
	md_pb_uint(&p->inner, MAPPING_FILE, file);
	md_pb_uint(&p->inner, MAPPING_BUILD_ID, id);
	md_pb_uint(&p->inner, MAPPING_HAS_FUNCTIONS, m->code != NULL);
	md_pb_uint(&p->inner, MAPPING_HAS_FILES, lines);
	md_pb_uint(&p->inner, MAPPING_HAS_LINES, lines);
	md_pb_uint(&p->inner, MAPPING_HAS_INLINES, lines);
	put_field(p, PROFILE_MAPPING);
}

static bool is_executable(const Elf64_Phdr *ph)
{
	return ph->p_type == PT_LOAD && (ph->p_flags & PF_X);
}

static void put_mappings(struct pprof *p, const struct md_export_module *m, bool lines)
{
	const struct mp_elf *elf = m->code ? m->code->elf : NULL;

	if (!elf) {
		put_mapping(p, m, m->nr_counts ? m->counts[0].vaddr & ~PAGE_MASK : 0,
			    m->nr_counts ? m->counts[m->nr_counts - 1].vaddr + 1 : 0, 0, false);
		return;
	}
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &elf->phdrs[i];

		if (is_executable(ph))
			put_mapping(p, m, ph->p_vaddr & ~PAGE_MASK, ph->p_vaddr + ph->p_memsz,
				    ph->p_offset & ~PAGE_MASK, lines);
	}
}

/*
 * Return: id of the mapping that holds @vaddr, else @first. @first: the id of the module's
 * first mapping.
 */
static uint64_t mapping_of(const struct md_export_module *m, uint64_t first, uint64_t vaddr)
{
	const struct mp_elf *elf = m->code ? m->code->elf : NULL;
	uint64_t id = first;

	for (uint32_t i = 0; elf && i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &elf->phdrs[i];

		if (!is_executable(ph))
			continue;
		if (vaddr - ph->p_vaddr < ph->p_memsz)
			return id;
		id++;
	}
	return first;
}

/* ---- locations ----------------------------------------------------------------------------- */

static void add_line(struct pprof *p, struct md_pb *location, const char *function,
		     const struct md_line *line)
{
	uint64_t id = function_id(p, function, line->file);

	md_pb_reset(&p->line);
	md_pb_uint(&p->line, LINE_FUNCTION, id);
	md_pb_uint(&p->line, LINE_LINE, line->line > 0 ? (uint64_t)line->line : 0);
	md_pb_message(location, LOCATION_LINE, &p->line);
}

/* Adds frames, innermost first: the innermost inlined function has the address's own line. */
static void add_frames(struct pprof *p, struct md_pb *location, const struct md_export_module *m,
		       struct md_export_source *source, uint64_t vaddr)
{
	uint32_t f = m->code ? mp_cfg_func_at(m->code->cfg, vaddr) : MP_NONE;
	struct md_inline inlines[INLINES_MAX];
	struct md_line line;
	size_t nr;
	char buf[32];

	if (f == MP_NONE)
		return;
	md_export_source_line(source, vaddr, &line);
	nr = md_export_source_inlines(source, vaddr, inlines, INLINES_MAX);
	while (nr) {
		nr--;
		add_line(p, location, inlines[nr].function, &line);
		line = inlines[nr].call;
	}
	add_line(p, location, md_export_source_name(source, f, buf), &line);
}

static void put_sample(struct pprof *p, const struct md_export *e, uint64_t location,
		       uint64_t count)
{
	const uint64_t values[2] = {count, count * e->period_ns};

	md_pb_packed(&p->inner, SAMPLE_LOCATION, &location, 1);
	md_pb_packed(&p->inner, SAMPLE_VALUE, values, e->period_ns ? 2 : 1);
	put_field(p, PROFILE_SAMPLE);
}

/* ---- the format ---------------------------------------------------------------------------- */

static void pprof_drop(struct md_export *e)
{
	struct pprof *p = e->state;
	struct string *s, *next_s;
	struct function *f, *next_f;

	if (!p)
		return;
	HASH_ITER(hh, p->strings, s, next_s) {
		HASH_DEL(p->strings, s);
		free(s);
	}
	HASH_ITER(hh, p->functions, f, next_f) {
		HASH_DEL(p->functions, f);
		free(f);
	}
	md_pb_fini(&p->top);
	md_pb_fini(&p->inner);
	md_pb_fini(&p->line);
	md_gzip_free(p->gz);
	free(p);
	e->state = NULL;
}

static int check(const struct md_export *e, const struct pprof *p, struct mp_err *err)
{
	/* The function that closes @e->out reports write errors. */
	if (!p->failed || ferror(e->out))
		return 0;
	return mp_err_set(err, ENOMEM, "out of memory");
}

static int pprof_begin(struct md_export *e, struct mp_err *err)
{
	struct pprof *p = calloc(1, sizeof(*p));

	e->state = p;
	if (!p || md_gzip_open(e->out, &p->gz))
		return mp_err_set(err, ENOMEM, "out of memory");
	string_id(p, ""); /* the first string must be empty */
	put_type(p, PROFILE_SAMPLE_TYPE, "samples", "count");
	if (e->period_ns) {
		put_type(p, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
		put_type(p, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
	}
	md_pb_reset(&p->top);
	md_pb_uint(&p->top, PROFILE_PERIOD, e->period_ns);
	if (e->since_s > 0)
		md_pb_uint(&p->top, PROFILE_TIME_NS, (uint64_t)e->since_s * 1000000000);
	p->failed = p->failed || md_gzip_write(p->gz, p->top.bytes, p->top.nr);
	return check(e, p, err);
}

static int pprof_module(struct md_export *e, const struct md_export_module *m, struct mp_err *err)
{
	struct pprof *p = e->state;
	struct md_export_source source;
	struct md_pb location = {0};
	uint64_t first = p->nr_mappings + 1;

	if (md_export_source_init(&source, m))
		p->failed = true;
	put_mappings(p, m, source.debug && md_debuginfo_has_lines(source.debug));
	for (size_t i = 0; i < m->nr_counts && !p->failed; i++) {
		uint64_t vaddr = m->counts[i].vaddr, id = ++p->nr_locations;

		/* add_frames() also writes the location's functions. */
		md_pb_reset(&location);
		md_pb_uint(&location, LOCATION_ID, id);
		md_pb_uint(&location, LOCATION_MAPPING, mapping_of(m, first, vaddr));
		md_pb_uint(&location, LOCATION_ADDRESS, vaddr);
		add_frames(p, &location, m, &source, vaddr);
		md_pb_reset(&p->top);
		md_pb_message(&p->top, PROFILE_LOCATION, &location);
		p->failed = p->failed || p->top.failed ||
			    md_gzip_write(p->gz, p->top.bytes, p->top.nr);
		put_sample(p, e, id, m->counts[i].count);
		e->nr_written += m->counts[i].count;
	}
	md_pb_fini(&location);
	md_export_source_fini(&source);
	return check(e, p, err);
}

static int pprof_end(struct md_export *e, struct mp_err *err)
{
	struct pprof *p = e->state;

	p->failed = p->failed || md_gzip_finish(p->gz);
	return check(e, p, err);
}

const struct md_export_format md_export_pprof = {
	.name = "pprof",
	.needs = MD_EXPORT_CODE | MD_EXPORT_BINARY,
	.begin = pprof_begin,
	.module = pprof_module,
	.end = pprof_end,
	.drop = pprof_drop,
	.calls = md_export_calls_pprof,
};
