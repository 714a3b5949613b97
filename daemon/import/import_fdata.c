// SPDX-License-Identifier: Apache-2.0
/*
 * import_fdata - reads fdata, the profile format of BOLT: perf2bolt, merge-fdata and
 * instrumented programs write it. Each line is one transfer or, after a line "no_lbr EVENT...",
 * one address. Called by stats_import.
 *
 *	1 main 53 1 main 38 0 1999		from main+0x53 to main+0x38, mispredicted, count
 *	0 [unknown] 0 1 cmp/1 0 0 17		from outside
 *	4 main 12 4 table/1 8 3			a memory access: skipped
 *
 * BOLT also writes fall-through transfers in the same form. The format does not name the
 * profiled file.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/import/import.h"
#include "daemon/import/import_symbols.h"
#include "libprof/base/grow.h"

struct reader {
	struct md_import *import;
	struct md_lines *lines;
	struct mp_err *err;
	struct md_symbol_index *names;
	uint32_t module;
	bool no_lbr;
	/* cache of the line before: most lines repeat its names */
	char *last[2];
	size_t last_max[2];
	bool last_found[2];
	uint64_t last_vaddr[2];
};

enum place_kind {
	PLACE_OUTSIDE, /* not in the file */
	PLACE_UNNAMED, /* the file has no such function */
	PLACE_PLT,     /* a PLT stub: no symbol gives its address */
	PLACE_KNOWN
};

struct place {
	enum place_kind kind;
	bool is_memory;
	uint64_t vaddr;
};

static int torn(struct reader *r, const char *what)
{
	return md_lines_fail(r->lines, r->err, "%s", what);
}

/* ---- fields -------------------------------------------------------------------------------- */

/*
 * Splits off the next field and unescapes it in place: names have a backslash before blanks and
 * backslashes.
 */
static char *next_field(char **pos)
{
	char *start = *pos, *in = start, *out = start;

	if (!*in)
		return NULL;
	while (*in && *in != ' ') {
		if (*in == '\\' && in[1])
			in++;
		*out++ = *in++;
	}
	*pos = *in ? in + 1 : in;
	*out = '\0';
	return *start ? start : NULL;
}

static bool get_number(const char *field, int base, uint64_t *value)
{
	char *end;

	if (!field ||
	    !(base == 16 ? isxdigit((unsigned char)*field) : isdigit((unsigned char)*field)))
		return false;
	if (base == 16 && field[1] == 'x')
		return false;
	errno = 0;
	*value = strtoull(field, &end, base);
	return !errno && !*end;
}

/* Looks a name up, with a cache of one name for each end. @which: 0 source, 1 target. */
static bool find_name(struct reader *r, int which, const char *name, uint64_t *vaddr)
{
	size_t len = strlen(name) + 1;

	if (r->last[which] && !strcmp(r->last[which], name)) {
		*vaddr = r->last_vaddr[which];
		return r->last_found[which];
	}
	if (mp_grow(r->last[which], r->last_max[which], len))
		return md_symbol_index_find(r->names, name, vaddr);
	memcpy(r->last[which], name, len);
	r->last_found[which] = md_symbol_index_find(r->names, name, vaddr);
	r->last_vaddr[which] = *vaddr;
	return r->last_found[which];
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

/*
 * Reads "1 NAME OFFSET". The first field is 0: not a symbol; 1, 2: a symbol; 3 to 5: the same
 * for memory.
 */
static int read_place(struct reader *r, int which, char **pos, struct place *place)
{
	const char *tag = next_field(pos), *name = next_field(pos), *off = next_field(pos);
	uint64_t distance, start = 0;

	if (!tag || tag[0] < '0' || tag[0] > '5' || tag[1] || !name ||
	    !get_number(off, 16, &distance))
		return torn(r, "not a place in fdata's form, 1 NAME OFFSET");
	place->is_memory = tag[0] >= '3';
	place->kind = PLACE_OUTSIDE;
	if (tag[0] == '0' || place->is_memory)
		return 0;
	if (find_name(r, which, name, &start)) {
		place->kind = __builtin_add_overflow(start, distance, &place->vaddr) ? PLACE_UNNAMED
										     : PLACE_KNOWN;
		return 0;
	}
	if (ends_with(name, "@PLT"))
		place->kind = PLACE_PLT;
	/* BOLT's name for the part of a stub after its jump */
	else if (strncmp(name, "__BOLT_PSEUDO_", 14))
		place->kind = PLACE_UNNAMED;
	return 0;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* A call through a stub: the call instruction gives the stub's address. */
static void find_stub(struct reader *r, const struct place *from, struct place *to)
{
	struct mp_insn insn;

	if (to->kind != PLACE_PLT)
		return;
	to->kind = PLACE_OUTSIDE;
	if (from->kind == PLACE_KNOWN &&
	    md_import_insn_at(&r->import->modules[r->module], from->vaddr, &insn) &&
	    (insn.kind == MP_INSN_CALL || insn.kind == MP_INSN_JUMP || insn.kind == MP_INSN_COND)) {
		to->kind = PLACE_KNOWN;
		to->vaddr = insn.target;
	}
}

static int read_transfer(struct reader *r, const struct place *from, char *pos)
{
	struct md_import_transfers *t = &r->import->transfers;
	uint64_t mispredicted, count;
	struct place to;
	int ret = read_place(r, 1, &pos, &to);

	if (ret)
		return ret;
	if (to.is_memory)
		return torn(r, "a transfer to data");
	if (!get_number(next_field(&pos), 10, &mispredicted) ||
	    !get_number(next_field(&pos), 10, &count) || *pos)
		return torn(r, "no counts behind the two places: MISPREDICTED COUNT");
	if (mispredicted > count)
		return torn(r, "more mispredicted branches than branches");
	find_stub(r, from, &to);
	if (from->kind == PLACE_KNOWN && to.kind == PLACE_KNOWN)
		return md_import_add_transfer(r->import, r->module, from->vaddr, to.vaddr, count,
					      mispredicted, r->err);
	if (from->kind == PLACE_UNNAMED || to.kind == PLACE_UNNAMED)
		return md_import_count_transfer(r->import, &t->unnamed, count, r->err);
	return md_import_count_transfer(r->import, &t->outside, count, r->err);
}

static int read_sample(struct reader *r, const struct place *at, char *pos)
{
	uint64_t count;

	if (!get_number(next_field(&pos), 10, &count) || *pos)
		return torn(r, "no count behind the place");
	if (at->kind == PLACE_KNOWN)
		return md_import_add(r->import, r->module, at->vaddr, count, r->err);
	return md_import_add_unattributed(r->import, MP_UNATTR_NO_MAPPING, count, r->err);
}

/* Reads "4 FUNCTION OFFSET 4 DATA OFFSET COUNT". */
static int read_memory(struct reader *r, char *pos)
{
	struct place at;
	uint64_t count;
	int ret = read_place(r, 1, &pos, &at);

	if (ret)
		return ret;
	if (!at.is_memory || !get_number(next_field(&pos), 10, &count) || *pos)
		return torn(r, "not a memory access in fdata's form");
	r->import->transfers.nr_skipped++;
	return 0;
}

static int read_header(struct reader *r, const char *line, bool *is_header)
{
	struct mp_session *s = &r->import->session;
	size_t len = strcspn(line, " ");

	*is_header = true;
	/* A profile of BOLT's own output; names and offsets are those of the input already. */
	if (!strcmp(line, "boltedcollection"))
		return 0;
	if (len == 6 && !strncmp(line, "no_lbr", 6)) {
		r->no_lbr = true;
		line += len + strspn(line + len, " ");
		snprintf(s->event, sizeof(s->event), "%.*s", (int)strcspn(line, ": "), line);
		return 0;
	}
	*is_header = false;
	return 0;
}

static int read_line(struct reader *r)
{
	char *pos = r->lines->line;
	struct place place;
	bool is_header;
	int ret;

	if (!*pos)
		return 0;
	ret = read_header(r, pos, &is_header);
	if (ret || is_header)
		return ret;
	ret = read_place(r, 0, &pos, &place);
	if (ret)
		return ret;
	if (place.is_memory)
		return read_memory(r, pos);
	return r->no_lbr ? read_sample(r, &place, pos) : read_transfer(r, &place, pos);
}

int md_import_fdata(struct md_import *import, struct md_lines *lines, const char *binary,
		    struct mp_err *err)
{
	struct reader r = {.import = import, .lines = lines, .err = err};
	const struct mp_elf *code;
	struct mp_elf *elf = NULL;
	int ret;

	/* Opened only for the error message. */
	ret = mp_elf_open(binary, MP_ELF_ID, &elf, err);
	mp_elf_close(elf);
	if (ret)
		return ret;
	ret = md_import_find_file(import, binary, &r.module, err);
	if (ret)
		return ret;
	code = md_import_code(&import->modules[r.module]);
	if (!code)
		return import->modules[r.module].no_memory
			       ? mp_err_code(err, ENOMEM)
			       : mp_err_set(err, EBADMSG, "%s: its code cannot be read", binary);
	r.names = md_symbol_index_new(code);
	if (!r.names)
		return mp_err_set(err, ENOMEM, "out of memory");
	strcpy(import->session.event, "branches");
	while ((ret = md_lines_next(lines, err)) > 0) {
		ret = read_line(&r);
		if (ret)
			break;
	}
	free(r.last[0]);
	free(r.last[1]);
	md_symbol_index_free(r.names);
	return ret;
}
