// SPDX-License-Identifier: Apache-2.0
/*
 * debug_line_files - the tables of directories and files in the header of a line program: reads them, and
 * writes a header with files of other programs added. Called by debug_line.
 */
#ifndef ME_DEBUG_LINE_FILES_H
#define ME_DEBUG_LINE_FILES_H

#include "editor/debug/debug_unit.h"

/* The formats of one table's entries, since version 5. */
struct me_line_format {
	const uint8_t *bytes; /* its description: pairs of LEB128 numbers */
	uint64_t size;
	uint32_t forms[8], contents[8];
	uint8_t nr;
};

struct me_line_table {
	const uint8_t *entries, *end;
	struct me_line_format format; /* version 5 */
	const uint8_t *count;	      /* version 5: where the number of entries stands */
	uint64_t nr;
};

struct me_line_files {
	const uint8_t *start, *end; /* header: from the program's length up to its opcodes */
	const uint8_t *behind;	    /* the tables */
	uint32_t header_length_at;  /* offset from @start */
	unsigned int version;
	struct me_line_table dirs, files;
};

/* me_line_files_read - read the tables of the program at @off. Return: false: not understood. */
bool me_line_files_read(const struct me_debug_sections *file, uint64_t off,
			struct me_line_files *out);
/*
 * me_line_files_fit - can files of @from be named in @to? @comp_dir: the directory in which the unit of @from was
 * compiled; NULL: that of the unit of @to.
 */
bool me_line_files_fit(const struct me_line_files *to, const struct me_line_files *from,
		       const char *comp_dir);
/* me_line_files_first - the number of the first added file. */
uint64_t me_line_files_first(const struct me_line_files *to);

struct me_line_added {
	const struct me_line_files *from;
	uint64_t file;	      /* number there */
	const char *comp_dir; /* names may be relative to it; NULL: to that of the program written */
};

/*
 * me_line_files_write - the header with @nr files added. The length of the program stays. Names of directories may be
 * added to @file->line_str. Return: false: a file is not there, or has no name that fits.
 */
bool me_line_files_write(struct me_debug_sections *file, const struct me_line_files *to,
			 const struct me_line_added *added, uint32_t nr, struct me_bytes *out);

#endif
