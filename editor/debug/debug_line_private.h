// SPDX-License-Identifier: Apache-2.0
/*
 * debug_line_private - a line program that is read and written. Only debug_line.c, debug_line_parts.c
 * and debug_line_inlined.c include this header.
 */
#ifndef ME_DEBUG_LINE_PRIVATE_H
#define ME_DEBUG_LINE_PRIVATE_H

#include "editor/debug/debug_unit.h"

enum me_line_flags {
	ME_LINE_STMT = 1 << 0,
	ME_LINE_BLOCK = 1 << 1,
	ME_LINE_PROLOGUE_END = 1 << 2,
	ME_LINE_EPILOGUE_BEGIN = 1 << 3,
};

/* A row without its address. */
struct me_line_state {
	uint64_t file, line, column, isa, discriminator;
	uint32_t flags;
};

struct me_line_row {
	uint64_t address;
	struct me_line_state state;
};

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
	const uint8_t *data, *end; /* the whole unit */
	const uint8_t *code;	   /* its opcodes */
	bool default_stmt;
	int8_t line_base;
	uint8_t line_range, opcode_base;
	const uint8_t *lengths; /* number of operands of each standard opcode */
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

/* Make room for one more element. The array holds @nr of at most *@cap elements of @size bytes. */
bool me_line_grow(void **array, uint32_t nr, uint32_t *cap, size_t size);
/* The first row of @s at @address; if there is none, the last row before it. */
uint32_t me_line_covering_row(const struct me_line_program *p, const struct me_line_sequence *s,
			      uint64_t address);
/* Read the program at @off into @p: rows and sequences of moved code. Return: 0, -ENOMEM, -EBADMSG, -EPERM. */
int me_line_program_read(struct me_line_program *p, uint64_t off);
void me_line_program_fini(struct me_line_program *p);
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
