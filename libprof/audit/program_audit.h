// SPDX-License-Identifier: Apache-2.0
/*
 * program_audit - the audit of all functions of one running program: records go in, verdicts and
 * effects come out.
 *
 * The permitted error @alpha is shared out equally: each of the n functions in the file has a
 * test at @alpha / n, so the chance that any function gets a false verdict is at most @alpha
 * (Bonferroni). A verdict is final. A function without a verdict goes on drawing versions. Called by
 * the collector and by simulations; it reads no file.
 */
#ifndef MP_PROGRAM_AUDIT_H
#define MP_PROGRAM_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/audit/effect_test.h"
#include "libprof/audit/window_pairs.h"

/* The effect of one function's version B, as far as it is known. */
struct mp_audit_effect {
	uint32_t function;
	uint64_t pairs; /* that count */
	uint64_t drops[MP_NR_PAIR_DROPS];
	/*
	 * log(time of A) - log(time of B) of a round, above 0 if the new order is faster. The
	 * bounds hold at the function's share of alpha; they are infinite while there are too few
	 * pairs.
	 */
	double estimate, lowest, highest;
	enum mp_audit_verdict verdict;
	bool earlier;	     /* the verdict stood in the file before this audit */
	uint64_t decided_at; /* number of pairs then; 0: this audit did not decide */
	struct mp_point_sums points[MP_EFFECT_NR_POINTS];
	uint32_t nr_points;
};

struct mp_program_audit;

/* Return: NULL: no memory, or more than MP_AUDIT_MAX_FUNCTIONS. */
struct mp_program_audit *mp_program_audit_new(uint32_t nr_functions, double alpha);
void mp_program_audit_free(struct mp_program_audit *audit);
/* A verdict that stood in the file before: the function is not tested. */
void mp_program_audit_set_earlier(struct mp_program_audit *audit, uint32_t function,
				  enum mp_audit_verdict verdict);
/*
 * mp_program_audit_add - the next record. *@function: the function that this record decided;
 * UINT32_MAX: none. Return: 0, -ENOMEM.
 */
int mp_program_audit_add(struct mp_program_audit *audit, const struct mp_audit_record *record,
			 uint32_t *function);
/* Drops windows that wait for their pair: at the end, or when the file was replaced. */
void mp_program_audit_break(struct mp_program_audit *audit);
enum mp_audit_verdict mp_program_audit_verdict(const struct mp_program_audit *audit,
					       uint32_t function);
/*
 * mp_program_audit_effect - what is known of @function. The bounds are computed anew once a
 * sixteenth of the differences is new, or if @exact.
 */
void mp_program_audit_effect(struct mp_program_audit *audit, uint32_t function, bool exact,
			     struct mp_audit_effect *out);
uint32_t mp_program_audit_nr_functions(const struct mp_program_audit *audit);
/* Return: records that name a function which the file does not have. */
uint64_t mp_program_audit_foreign(const struct mp_program_audit *audit);

#endif
