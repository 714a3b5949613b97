// SPDX-License-Identifier: Apache-2.0
/*
 * debug_inlined - the calls that became the called function's instructions in copies, and what the debug
 * information knows of the called functions. Called by debug_*.
 */
#ifndef ME_DEBUG_INLINED_H
#define ME_DEBUG_INLINED_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/debug/debug_moves.h"
#include "editor/place/place.h"

/* A block of the called function in the code that replaces a call. */
struct me_inlined_part {
	uint64_t new_vaddr, new_end;
	uint64_t old_vaddr, old_end;
	uint32_t size; /* of its first instructions, which have their old lengths */
};

/* The place of a call by the line table of its unit. */
struct me_call_place {
	uint64_t file, line, column;
};

struct me_inlined {
	uint64_t call; /* old address of the call */
	uint64_t start; /* what is in place of the call; before @new_vaddr, it only stands for the call */
	uint64_t new_vaddr, new_end;		/* the function's code in place of the call */
	uint64_t apart, apart_end;		/* the rest of that code; empty: there is none */
	uint32_t callee;			/* index in @callees */
	uint32_t first_part, nr_parts, nr_near; /* parts from @nr_near on lie apart */
	bool described;				/* debug information gets an entry for it */
	bool written; /* and has it; another function may claim the same code, if it is damaged */
	uint64_t line_off; /* if described: line program of the calling function */
	bool other_dir;	   /* the called function's unit was compiled in another directory */
	struct me_call_place place;
	uint32_t first_file; /* index in @files: one for each scope of the called function */
	uint64_t scope;	     /* offset in .debug_info: the innermost entry that contains the call */
};

/* A row of a line program. */
struct me_callee_row {
	uint64_t address, file, line, column;
	bool is_stmt;
};

/* Code that the compiler inlined into such a function. */
struct me_callee_scope {
	uint64_t origin; /* offset in .debug_info of the entry that it leads to */
	struct me_call_place place;
	uint32_t depth; /* number of such scopes around it */
	uint32_t first_range, nr_ranges;
};

/* Further scopes of one function are not described. */
#define ME_CALLEE_SCOPES_MAX 64

/* A name of the function: offset in another section, or the string itself. */
struct me_callee_name {
	unsigned int form; /* 0: none */
	uint32_t off;
	const char *string;
};

struct me_callee {
	uint64_t vaddr, end;
	bool found;	  /* it has an entry and lines */
	uint64_t changed; /* registers, as me_leaf_changed() says */
	/* offsets in .debug_info of an entry that describes no code, and of a declaration; 0: none */
	uint64_t abstract, declaration;
	struct me_callee_name name, linkage_name; /* if there is neither */
	uint64_t line_off;			  /* of its line program */
	struct me_callee_name comp_dir;		  /* of its unit */
	struct me_callee_row *rows;		  /* ascending; owned */
	uint32_t nr_rows;
	struct me_callee_scope *scopes; /* outer ones first; owned */
	uint32_t nr_scopes;
	struct me_ranges ranges; /* of the scopes */
};

struct me_inlined_calls {
	struct me_inlined *calls; /* by old address, then by new address */
	uint32_t nr;
	struct me_inlined_part *parts;
	uint32_t nr_parts;
	struct me_callee *callees; /* ascending vaddr */
	uint32_t nr_callees;
	uint64_t *files; /* of scopes, by the numbers of the calling functions' line programs */
	/* Code that changes registers which calls keep. Only an added unit can describe it. Joined. */
	struct me_ranges saving;
};

/* me_inlined_init - the calls of @placement. Return: 0, -ENOMEM. Ownership: me_inlined_fini(@out), always. */
int me_inlined_init(struct me_inlined_calls *out, const struct mp_cfg *cfg,
		    const struct me_placement *placement);
void me_inlined_fini(struct me_inlined_calls *calls);

/* me_inlined_map - add to @out where the range of the called function's code is in the code of @call. */
void me_inlined_map(const struct me_inlined_calls *calls, const struct me_inlined *call,
		    struct me_range range, struct me_ranges *out);
/* me_inlined_changing - add to @out all code in place of calls in @range that changes one of @registers. */
void me_inlined_changing(const struct me_inlined_calls *calls, struct me_range range,
			 uint64_t registers, struct me_ranges *out);
/* me_inlined_make_files - make room for the files of all calls' scopes. Return: 0, -ENOMEM. */
int me_inlined_make_files(struct me_inlined_calls *calls);
/* me_inlined_from - index of the first call at or behind @call; calls->nr: none. */
uint32_t me_inlined_from(const struct me_inlined_calls *calls, uint64_t call);
/* me_inlined_at - the call at @call that code at @at replaces, in place of the call or apart; NULL: none. */
struct me_inlined *me_inlined_at(const struct me_inlined_calls *calls, uint64_t call, uint64_t at);
/* me_callee_at - the function at @vaddr, if it was inlined; else NULL. */
struct me_callee *me_callee_at(const struct me_inlined_calls *calls, uint64_t vaddr);

#endif
