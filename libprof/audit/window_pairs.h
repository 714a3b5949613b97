// SPDX-License-Identifier: Apache-2.0
/*
 * window_pairs - puts the two windows of each pair together, or says why a pair does not count.
 *
 * The reasons are fixed before any time is looked at, and none depends on which version ran
 * first. Windows of other threads may lie between those of a pair. The records may come from
 * anybody. Called by program_audit and by simulations.
 */
#ifndef MP_WINDOW_PAIRS_H
#define MP_WINDOW_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/note/audit_file.h"

/* Why a pair does not count. */
enum mp_pair_drop {
	MP_PAIR_PREEMPTED, /* of a window: see enum mp_audit_fate */
	MP_PAIR_ABANDONED,
	MP_PAIR_SIGNALLED,
	MP_PAIR_EMPTY, /* no round, or no time */
	MP_PAIR_ALONE, /* the other window never came */
	MP_PAIR_WRONG, /* the windows contradict each other, or themselves */
	MP_NR_PAIR_DROPS
};
const char *mp_pair_drop_name(enum mp_pair_drop why);

/* A pair that counts. */
struct mp_pair {
	uint32_t function;
	uint16_t point;
	bool b_first;
	uint64_t ticks[MP_AUDIT_NR_VERSIONS], rounds[MP_AUDIT_NR_VERSIONS];
	double difference; /* log(time of a round of A) - log(time of a round of B) */
};

struct mp_window_pairs;

/* Return: NULL: no memory. */
struct mp_window_pairs *mp_window_pairs_new(uint32_t nr_functions);
void mp_window_pairs_free(struct mp_window_pairs *pairs);
/*
 * mp_window_pairs_add - the next record. Return: true: *@out is a pair that counts. Else nothing
 * is complete yet, or a pair was dropped and counted.
 */
bool mp_window_pairs_add(struct mp_window_pairs *pairs, const struct mp_audit_record *record,
			 struct mp_pair *out);
/* Drops all windows that still wait for the other one. For the end, or another file. */
void mp_window_pairs_clear(struct mp_window_pairs *pairs);
/* Return: dropped pairs of a function, by enum mp_pair_drop. */
const uint64_t *mp_window_pairs_drops(const struct mp_window_pairs *pairs, uint32_t function);
/* Return: records whose function is not one of the file's. */
uint64_t mp_window_pairs_foreign(const struct mp_window_pairs *pairs);

#endif
