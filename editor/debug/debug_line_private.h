// SPDX-License-Identifier: Apache-2.0
/*
 * debug_line_private - a line program that is read and written. Only debug_line*.c include this header.
 */
#ifndef ME_DEBUG_LINE_PRIVATE_H
#define ME_DEBUG_LINE_PRIVATE_H

#include "libprof/base/grow.h"
#include "editor/debug/debug_unit.h"

struct me_line_sequence {
	uint32_t first_row, nr_rows;
	uint64_t start, end;
	bool split; /* an added unit has some of this code */
};

/* In place of a copy's number: old code. */
#define ME_LINE_OLD UINT32_MAX

/* A copy of code that one sequence describes, or old code of a sequence that is split. */
struct me_line_part {
	uint64_t start, end; /* addresses in the output */
	uint32_t move, sequence;
	bool taken; /* an added unit has this code */
};

struct me_line_program {
	struct me_debug_sections *file;
	struct me_line_header h;
	struct me_line_row *rows;
	uint32_t nr_rows, cap_rows;
	struct me_line_sequence *sequences;
	uint32_t nr_sequences, cap_sequences;
	struct me_line_part *parts;
	uint32_t nr_parts, cap_parts;
	struct me_bytes *out;
	bool out_stmt;		       /* register is_stmt of a reader of @out */
	uint64_t off;		       /* in .debug_line */
	const struct me_ranges *taken; /* code of an added unit; NULL: there is none */
	size_t sequence_at;	       /* in @out: where the current sequence began */
	/* files of inlined functions that other programs name: the numbers from @first_added on */
	struct me_line_foreign {
		uint64_t line_off, file;
		const char *comp_dir; /* of the other unit; NULL: the same directory */
	} * foreign;
	uint32_t nr_foreign;
	uint64_t first_added;
};

/* ---- debug_line_rows.c ---- */
/* The first row of @s at @address; if there is none, the last row before it. */
uint32_t me_line_covering_row(const struct me_line_program *p, const struct me_line_sequence *s,
			      uint64_t address);
/* Write opcodes that append row @want; @now: the row before. */
void me_line_put_row(struct me_line_program *p, struct me_line_row *now,
		     const struct me_line_row *want);

/* ---- debug_line_parts.c ---- */
/* Find the code whose rows are written. Return: 0, -ENOMEM, -EPERM. */
int me_line_find_parts(struct me_line_program *p);
/* Write the rows of this code: that of the added unit (@taken), or all other. Return: 0, -EPERM. */
int me_line_put_sequences(struct me_line_program *p, bool taken);

/* ---- debug_line_inlined.c ---- */
/* Find the files that the inlined functions of @p need from other programs. Return: 0, -ENOMEM, -EPERM. */
int me_line_find_foreign(struct me_line_program *p);
/* Write the header of @p to @p->out, with these files. Return: 0, -EPERM. */
int me_line_put_header(struct me_line_program *p);
/*
 * Write the rows of @call's code in place of the call, or of that @apart: those of the called function. @around: the row
 * of the call, for the code behind, up to @end. Notes where the call stands. Return: 0, -EPERM.
 */
int me_line_put_inlined(struct me_line_program *p, struct me_inlined *call, bool apart,
			const struct me_line_row *around, uint64_t end, struct me_line_row *now);

#endif
