// SPDX-License-Identifier: Apache-2.0
/*
 * debug_header - headers of units, and of line programs, whose opcodes it executes (DWARF 5, section 6.2). Called by the
 * makers of debug information of programs and of objects.
 */
#ifndef ME_DEBUG_HEADER_H
#define ME_DEBUG_HEADER_H

#include "libprof/base/dwarf_cursor.h"

struct me_unit_header {
	uint64_t first, end;   /* offsets in the section; @first: of the first entry */
	uint64_t abbrev_off;   /* in .debug_abbrev */
	uint64_t abbrev_field; /* where that stands, in the section */
	unsigned int version, type;
};

/*
 * me_unit_header_read - the header at @off of a section, which holds units of @type unless they say their type.
 * Return: 0; -EBADMSG damaged; -EPERM not understood. @out->end: 0 if the length is damaged.
 */
int me_unit_header_read(const uint8_t *data, uint64_t size, uint64_t off, unsigned int type,
			struct me_unit_header *out);

enum me_line_flags {
	ME_LINE_STMT = 1 << 0,
	ME_LINE_BLOCK = 1 << 1,
	ME_LINE_PROLOGUE_END = 1 << 2,
	ME_LINE_EPILOGUE_BEGIN = 1 << 3,
};

struct me_line_row {
	uint64_t address; /* of an object: the offset in its section */
	uint64_t file, line, column, isa, discriminator;
	uint32_t flags;
};

struct me_line_header {
	const uint8_t *start, *end; /* the whole program */
	const uint8_t *size;	    /* the field with the header's size */
	const uint8_t *tables;	    /* of directories and files */
	const uint8_t *code;	    /* the opcodes */
	unsigned int version;
	bool default_stmt;
	int8_t line_base;
	uint8_t line_range, opcode_base;
	const uint8_t *lengths; /* number of operands of each standard opcode */
};

/* A line program that is executed. */
struct me_line_reader {
	const struct me_line_header *h;
	struct mp_cursor c;
	struct me_line_row row;
	const uint8_t *address; /* of ME_LINE_ADDRESS: the field */
	bool rest;		/* the extended opcode has bytes that say nothing */
};

enum me_line_event {
	ME_LINE_NOTHING,
	ME_LINE_ROW,	 /* a row is appended: then call me_line_next_row() */
	ME_LINE_ADDRESS, /* the address is set */
	ME_LINE_END,	 /* the sequence ends: then call me_line_reset() */
	ME_LINE_FILE,	 /* a file is defined */
};

/*
 * me_line_header_read - the header of the program at @off. Return: 0; -EBADMSG damaged; -EPERM not understood: opcodes
 * without their usual operands, or instructions that are no x86 ones.
 */
int me_line_header_read(const uint8_t *data, uint64_t size, uint64_t off,
			struct me_line_header *out);
/* me_line_open - a reader at the first opcode. */
struct me_line_reader me_line_open(const struct me_line_header *h);
/* me_line_first_row - the registers before the first row of a sequence. */
struct me_line_row me_line_first_row(const struct me_line_header *h, uint64_t address);
void me_line_reset(struct me_line_reader *r);
void me_line_next_row(struct me_line_reader *r);
/* me_line_step - execute one opcode. Return: 0; -EBADMSG damaged; -EPERM not understood. */
int me_line_step(struct me_line_reader *r, enum me_line_event *event);

#endif
