// SPDX-License-Identifier: Apache-2.0
/*
 * emit_private - one output while it is built: its state, and what emit.c and
 * emit_sections.c share. Only these two files include this header.
 */
#ifndef ME_EMIT_PRIVATE_H
#define ME_EMIT_PRIVATE_H

#include <stdint.h>

#include "editor/emit/answers.h"
#include "editor/emit/emit.h"
#include "editor/emit/start.h"
#include "editor/place/sections.h"
#include "editor/place/segment.h"
#include "editor/place/version_tables.h"
#include "editor/unwind/unwind.h"

struct me_emitter {
	const struct mp_cfg *cfg;
	const struct mp_elf *elf;
	struct me_segment segment;
	struct me_placement placement;
	struct me_sections sections;
	struct me_unwind unwind;
	struct me_debug *debug;
	uint8_t *link; /* new contents of .gnu_debuglink; NULL: unchanged */
	size_t link_size;
	uint32_t link_section;
	uint8_t *note;
	size_t note_size;
	uint64_t unwind_vaddr, note_vaddr;
	const struct me_plan *plan;
	const struct me_instrumentation *added;
	struct me_start start; /* start, runtime_vaddr: only in an instrumented output */
	uint64_t runtime_vaddr;
	struct me_answers answers;
	struct me_version_tables version_tables; /* of audited functions */
	const uint8_t *table; /* what the stubs mean: that of @added, or @audit_table */
	uint8_t *audit_table;
	size_t table_size;
	uint32_t table_section;
	uint8_t *old_part;    /* private copy of [0, segment.old_end) */
	uint8_t *new_segment; /* the new segment */
	size_t new_segment_size;
	struct me_emitted *out;
};

/* ---- loaded bytes (emit.c) ---- */

/* Return: the build-id; NULL if the file has none. */
uint8_t *me_emitter_build_id(const struct me_emitter *e, uint32_t *len);

/* ---- sections (emit_sections.c) ---- */

/* Write the section headers of the new segment. */
void me_emitter_place_sections(struct me_emitter *e);
/* Update the section headers of displaced bytes. */
void me_emitter_move_sections(struct me_emitter *e);
/* Build the sections that are not loaded, and put the file together. */
int me_emitter_build_rest(struct me_emitter *e, const struct mp_elf *debug, const char *name,
			  struct mp_err *err);

#endif
