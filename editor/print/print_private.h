// SPDX-License-Identifier: Apache-2.0
/* print_private - what the parts of print share. Only print*.c include this header. */
#ifndef ME_PRINT_PRIVATE_H
#define ME_PRINT_PRIVATE_H

#include "editor/print/print.h"

/* Positions of functions and blocks in the plan, so that no look-up scans the plan. */
struct me_print_index {
	uint32_t (*first)[ME_NR_ZONES]; /* per function: its first block of a zone, or MP_NONE */
	uint32_t *copy;			/* per block: its copy that is no clone, or MP_NONE */
};

/* Each prints one function as text. */
void me_print_cfg(FILE *out, const struct me_print *data, uint32_t func);
void me_print_counts(FILE *out, const struct me_print *data, uint32_t func);
void me_print_plan(FILE *out, const struct me_print *data, const struct me_print_index *index,
		   uint32_t func);
void me_print_place(FILE *out, const struct me_print *data, const struct me_print_index *index,
		    uint32_t func);
/* me_print_dot - prints one function as a graph. @index->copy is NULL while there is no plan. */
void me_print_dot(FILE *out, enum me_print_what what, const struct me_print *data,
		  const struct me_print_index *index, uint32_t func);

/* "function NAME at ADDRESS: N blocks", and more words by the caller. */
void me_print_head(FILE *out, const struct me_print *data, uint32_t func);
const char *me_print_term(const struct mp_block *block);
const char *me_print_kind(const struct mp_edge *edge);
/* "entry, landing pad", ...; nothing where no flag is set. */
void me_print_flags(FILE *out, const struct mp_block *block);
const char *me_print_why(const struct me_plan_block *planned);
const char *me_print_zone(uint8_t zone);

#endif
