// SPDX-License-Identifier: Apache-2.0
/*
 * slice_private - the instructions of a file, and what is live around them. Included by slice.c and
 * slice_read.c only.
 */
#ifndef ME_SLICE_PRIVATE_H
#define ME_SLICE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/marker/effect.h"
#include "editor/marker/slice.h"

/*
 * Places whose values are wanted. @weak: perhaps as arguments or results, for which the total of a
 * marker does not count. @call: as arguments of calls of which only the ABI is known. @sure: in any
 * other way.
 */
struct me_slice_wants {
	uint64_t sure, weak, call;
};

struct me_slice_decoded {
	struct me_effect e;
	uint64_t vaddr;
	uint32_t callee;   /* of a call: function index, or MP_NONE */
	uint8_t len, kind; /* enum mp_insn_kind */
	bool outside;	   /* a call of a function that is known by the ABI alone */
	bool tls;	   /* perhaps a call that changes only rax */
	bool needed, needed_with_markers;
	bool barred;  /* verify wants it to stay */
	bool derived; /* what it sets is computed from a marker's total */
};

struct me_slice_finder {
	const struct mp_cfg *cfg;
	const struct me_markers *markers;
	struct me_slice_decoded *insns; /* of all blocks, in their order */
	uint32_t *first;		/* per block, and one more: its first instruction */
	struct me_slice_wants *live;	/* per block: at its start */
	struct me_slice_wants *behind;	/* per function: wanted behind its returns */
	uint64_t *changes;		/* per function: what it or its callees may change */
	bool preserving;     /* functions outside may keep all registers: profilers' hooks */
	uint64_t *derived;   /* per block: places that hold totals of markers at its start */
	uint64_t *pads;	     /* per function: wanted by its landing pads */
	bool *marker_live;   /* per marker */
	bool *marker_listed; /* per marker: .morph.markers names it */
	bool changed;
};

/* Are all blocks of @func known? */
bool me_slice_is_known(const struct mp_func *func);
/* Return: the known function whose entry is @target; MP_NONE: it is not known what is there. */
uint32_t me_slice_function_at(const struct mp_cfg *cfg, uint64_t target);
/* Does a jump to @target enter what is no function of this file: a stub of the linker? */
bool me_slice_is_stub(const struct mp_cfg *cfg, uint64_t target);
/* Fills @insns and @first. Return: 0, -ENOMEM. */
int me_slice_decode(struct me_slice_finder *f);
/* Return: index of the instruction that holds the byte at @vaddr, or MP_NONE. */
uint32_t me_slice_insn_at(const struct me_slice_finder *f, uint64_t vaddr);
/* The markers in [@vaddr, @vaddr + @size) are read. */
void me_slice_note_read(struct me_slice_finder *f, uint64_t vaddr, uint64_t size);
/* Notes markers to which relocations lead elsewhere than in accesses of known instructions. */
void me_slice_find_references(struct me_slice_finder *f);

#endif
