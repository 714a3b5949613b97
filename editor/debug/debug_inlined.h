// SPDX-License-Identifier: Apache-2.0
/*
 * debug_inlined - the calls that became the called function's instructions in copies, and what the debug
 * information knows of the called functions. Called by debug_*.
 */
#ifndef ME_DEBUG_INLINED_H
#define ME_DEBUG_INLINED_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/place/place.h"

/* Bytes of a direct call. */
#define ME_CALL_SIZE 5

/* A block of the called function in the code that replaces a call. */
struct me_inlined_part {
	uint64_t new_vaddr, new_end;
	uint64_t old_vaddr;
};

/* The place of a call by the line table of its unit. */
struct me_call_place {
	uint64_t file, line, column;
};

struct me_inlined {
	uint64_t call;		     /* old address of the call */
	uint64_t new_vaddr, new_end; /* the code that replaces the call */
	uint32_t callee;	     /* index in @callees */
	uint32_t first_part, nr_parts;
	bool described;	   /* debug information gets an entry for it */
	uint64_t line_off; /* if described: line program of the calling function */
	struct me_call_place place;
	uint64_t scope; /* offset in .debug_info: the innermost entry that contains the call */
};

/* A row of a line program. */
struct me_callee_row {
	uint64_t address, file, line, column;
	bool is_stmt;
};

/* A name of the function: offset in another section, or the string itself. */
struct me_callee_name {
	unsigned int form; /* 0: none */
	uint32_t off;
	const char *string;
};

struct me_callee {
	uint64_t vaddr, end;
	bool found; /* it has an entry and lines */
	/* offsets in .debug_info of an entry that describes no code, and of a declaration; 0: none */
	uint64_t abstract, declaration;
	struct me_callee_name name, linkage_name; /* if there is neither */
	uint64_t line_off;			  /* of its line program */
	uint64_t dir; /* DW_AT_comp_dir of its unit: the value of a form of fixed size */
	unsigned int dir_form;
	struct me_callee_row *rows; /* ascending; owned */
	uint32_t nr_rows;
};

struct me_inlined_calls {
	struct me_inlined *calls; /* by old address, then by new address */
	uint32_t nr;
	struct me_inlined_part *parts;
	uint32_t nr_parts;
	struct me_callee *callees; /* ascending vaddr */
	uint32_t nr_callees;
};

/* me_inlined_init - the calls of @placement. Return: 0, -ENOMEM. Ownership: me_inlined_fini(@out), always. */
int me_inlined_init(struct me_inlined_calls *out, const struct mp_cfg *cfg,
		    const struct me_placement *placement);
void me_inlined_fini(struct me_inlined_calls *calls);

/* me_inlined_from - index of the first call at or behind @call; calls->nr: none. */
uint32_t me_inlined_from(const struct me_inlined_calls *calls, uint64_t call);
/* me_inlined_at - the call at @call whose code is at @new_vaddr; NULL: none. */
struct me_inlined *me_inlined_at(const struct me_inlined_calls *calls, uint64_t call,
				 uint64_t new_vaddr);
/* me_callee_at - the function at @vaddr, if it was inlined; else NULL. */
struct me_callee *me_callee_at(const struct me_inlined_calls *calls, uint64_t vaddr);

#endif
