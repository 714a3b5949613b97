// SPDX-License-Identifier: Apache-2.0
/* object_debug_line_private - line programs that are read and written. Only object_debug_line*.c include this header. */
#ifndef ME_OBJECT_DEBUG_LINE_PRIVATE_H
#define ME_OBJECT_DEBUG_LINE_PRIVATE_H

#include "editor/object/debug/object_debug_private.h"

/* A sequence of code that may move. */
struct me_osequence {
	uint32_t section, program;
	uint32_t first_row, nr_rows;
	uint64_t start, end;
};

struct me_oprogram {
	uint64_t off, code, end; /* in .debug_line; @code: of the opcodes */
	struct me_line_header h;
	/* Opcodes of the output: sequences of code that does not move, then those of code that does.
	 * Relocations count from the first opcode. */
	struct me_bytes bytes, relocs;
};

struct me_olines {
	struct me_odebug *d;
	struct me_oprogram *programs;
	uint32_t nr_programs, cap_programs;
	struct me_osequence *sequences; /* by section and start, once all are read */
	uint32_t nr_sequences, cap_sequences;
	struct me_line_row *rows;
	uint32_t nr_rows, cap_rows;
};

/* Writes sequences for all code that moves. Without memory, the bytes of a program are marked as failed. */
void me_olines_put(struct me_olines *lines);

#endif
