// SPDX-License-Identifier: Apache-2.0
/*
 * debug_line_inlined - the lines of called functions in place of calls. These functions may belong to other
 * units, whose line programs name other files.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/debug/debug_entry_private.h"
#include "editor/debug/debug_line.h"
#include "editor/debug/debug_line_files.h"
#include "editor/debug/debug_line_private.h"

/* More files of other programs are not added to one. */
#define FOREIGN_MAX 4096

/* ---- rows of called functions -------------------------------------------------------------- */

/* Keep the rows of @callee. Return: 0, -ENOMEM. */
static int keep_rows(const struct me_line_program *p, const struct me_line_sequence *s,
		     struct me_callee *callee)
{
	uint32_t first = me_line_covering_row(p, s, callee->vaddr), end = s->first_row + s->nr_rows;
	uint32_t nr = 0;

	if (p->rows[first].address > callee->vaddr || callee->rows)
		return 0;
	while (first + nr < end && p->rows[first + nr].address < callee->end)
		nr++;
	callee->rows = malloc((size_t)nr * sizeof(*callee->rows));
	if (!callee->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		const struct me_line_row *row = &p->rows[first + i];

		callee->rows[i] = (struct me_callee_row){row->address, row->file, row->line,
							 row->column, row->flags & ME_LINE_STMT};
	}
	callee->nr_rows = nr;
	return 0;
}

int me_line_find_callees(struct me_debug_sections *file, uint64_t off)
{
	struct me_inlined_calls *calls = &file->inlined;
	struct me_bytes unused = {0};
	struct me_line_program p = {.file = file, .out = &unused};
	int rc = me_line_program_read(&p, off);

	for (uint32_t i = 0; i < p.nr_sequences && !rc; i++)
		for (uint32_t k = 0; k < calls->nr_callees && !rc; k++) {
			struct me_callee *callee = &calls->callees[k];

			if (!me_debug_spend(file, 1))
				rc = -EPERM;
			else if (callee->found && callee->line_off == off &&
				 p.sequences[i].start <= callee->vaddr &&
				 callee->end <= p.sequences[i].end)
				rc = keep_rows(&p, &p.sequences[i], callee);
		}
	if (unused.failed)
		rc = -ENOMEM;
	me_bytes_fini(&unused);
	me_line_program_fini(&p);
	return rc;
}

/* ---- files --------------------------------------------------------------------------------- */

static uint64_t number_of(const struct me_line_program *p, const struct me_callee *callee,
			  uint64_t file)
{
	if (callee->line_off == p->off)
		return file;
	for (uint32_t i = 0; i < p->nr_foreign; i++)
		if (p->foreign[i].line_off == callee->line_off && p->foreign[i].file == file)
			return p->first_added + i;
	return 0;
}

static int add_file(struct me_line_program *p, const struct me_callee *callee, uint64_t file,
		    const char *dir)
{
	if (!me_debug_spend(p->file, 1 + p->nr_foreign))
		return -EPERM;
	if (number_of(p, callee, file))
		return 0;
	if (p->nr_foreign == FOREIGN_MAX)
		return -EPERM;
	if (!p->foreign)
		p->foreign = malloc(FOREIGN_MAX * sizeof(*p->foreign));
	if (!p->foreign)
		return -ENOMEM;
	p->foreign[p->nr_foreign++] = (struct me_line_foreign){callee->line_off, file, dir};
	return 0;
}

/* The files of the called function's lines, and of calls that the compiler inlined into it. */
static int add_foreign(struct me_line_program *p, const struct me_inlined *call)
{
	const struct me_callee *callee = &p->file->inlined.callees[call->callee];
	const char *dir = call->other_dir ? me_name_text(p->file, &callee->comp_dir) : NULL;
	int rc = 0;

	for (uint32_t i = 0; i < callee->nr_rows && !rc; i++)
		rc = add_file(p, callee, callee->rows[i].file, dir);
	for (uint32_t i = 0; i < callee->nr_scopes && !rc; i++)
		rc = add_file(p, callee, callee->scopes[i].place.file, dir);
	return rc;
}

int me_line_find_foreign(struct me_line_program *p)
{
	const struct me_inlined_calls *calls = &p->file->inlined;
	uint8_t *seen = NULL;
	int rc = 0;

	p->first_added = 1; /* so that no number is 0 */
	for (uint32_t i = 0; i < calls->nr && !rc; i++) {
		const struct me_callee *callee = &calls->callees[calls->calls[i].callee];

		if (!calls->calls[i].described || calls->calls[i].line_off != p->off ||
		    callee->line_off == p->off)
			continue;
		if (!seen)
			seen = calloc(calls->nr_callees + 1, 1);
		if (!seen)
			return -ENOMEM;
		if (!seen[calls->calls[i].callee]++)
			rc = add_foreign(p, &calls->calls[i]);
	}
	free(seen);
	return rc;
}

int me_line_put_header(struct me_line_program *p)
{
	struct me_line_files to, *from;
	struct me_line_added *added;
	bool good;

	if (!p->nr_foreign) {
		me_bytes_put(p->out, p->h.start, (size_t)(p->h.code - p->h.start));
		return 0;
	}
	from = malloc(p->nr_foreign * sizeof(*from));
	added = malloc(p->nr_foreign * sizeof(*added));
	good = from && added && me_line_files_read(p->file, p->off, &to);
	for (uint32_t i = 0; good && i < p->nr_foreign; i++) {
		good = me_line_files_read(p->file, p->foreign[i].line_off, &from[i]) &&
		       me_debug_spend(p->file, from[i].files.nr + from[i].dirs.nr);
		added[i] = (struct me_line_added){&from[i], p->foreign[i].file,
						  p->foreign[i].comp_dir};
	}
	if (good) {
		p->first_added = me_line_files_first(&to);
		good = me_line_files_write(p->file, &to, added, p->nr_foreign, p->out);
	}
	free(from);
	free(added);
	return good ? 0 : -EPERM;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* The rows of one block of the called function. */
static int put_part(struct me_line_program *p, const struct me_callee *callee,
		    const struct me_inlined_part *part, struct me_line_row *now)
{
	uint32_t i = 0;
	uint64_t begin = part->old_vaddr;

	while (i + 1 < callee->nr_rows && callee->rows[i + 1].address <= part->old_vaddr)
		i++;
	/* Several rows may stand at the function's entry, before its endbr64 if there is one. */
	if (callee->rows[i].address == callee->vaddr)
		begin = callee->vaddr;
	while (i && callee->rows[i].address >= begin &&
	       callee->rows[i - 1].address == callee->rows[i].address)
		i--;
	for (; i < callee->nr_rows; i++) {
		const struct me_callee_row *from = &callee->rows[i];
		bool inside = from->address >= begin;
		uint64_t address =
			part->new_vaddr +
			(from->address > part->old_vaddr ? from->address - part->old_vaddr : 0);
		struct me_line_row row = {
			.address = address,
			.file = number_of(p, callee, from->file),
			.line = from->line,
			.column = from->column,
			.isa = now->isa,
			.flags = inside && from->is_stmt ? ME_LINE_STMT : 0,
		};

		if (!me_debug_spend(p->file, 1))
			return -EPERM;
		if (address >= part->new_end)
			break;
		me_line_put_row(p, now, &row);
	}
	return 0;
}

int me_line_put_inlined(struct me_line_program *p, struct me_inlined *call, bool apart,
			const struct me_line_row *around, uint64_t end, struct me_line_row *now)
{
	struct me_inlined_calls *calls = &p->file->inlined;
	const struct me_callee *callee = &calls->callees[call->callee];
	struct me_line_row row = *around;

	for (uint32_t i = 0; i < callee->nr_scopes; i++)
		calls->files[call->first_file + i] =
			number_of(p, callee, callee->scopes[i].place.file);
	call->place = (struct me_call_place){around->file, around->line, around->column};
	for (uint32_t i = apart ? call->nr_near : 0; i < (apart ? call->nr_parts : call->nr_near);
	     i++) {
		int rc = put_part(p, callee, &calls->parts[call->first_part + i], now);

		if (rc)
			return rc;
	}
	row.address = apart ? call->apart_end : call->new_end;
	row.flags = 0;
	row.discriminator = 0;
	if (row.address < end)
		me_line_put_row(p, now, &row);
	return 0;
}
