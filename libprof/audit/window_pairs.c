// SPDX-License-Identifier: Apache-2.0
/*
 * window_pairs - first windows wait in a table of fixed size for the second ones; see
 * window_pairs.h. The table is large enough for thousands of threads; the oldest window of a full
 * set makes room.
 */
#include "libprof/audit/window_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NR_SETS 4096
#define NR_WAYS 4

/* A first window; all zero: free. */
struct first {
	uint64_t pair, ticks, rounds;
	uint64_t age; /* from 1 */
	uint32_t thread, function;
	uint16_t point;
	uint8_t version;
};

struct mp_window_pairs {
	uint32_t nr_functions;
	uint64_t age, nr_foreign;
	uint64_t drops[MP_AUDIT_MAX_FUNCTIONS][MP_NR_PAIR_DROPS];
	struct first sets[NR_SETS][NR_WAYS];
};

const char *mp_pair_drop_name(enum mp_pair_drop why)
{
	static const char *const names[MP_NR_PAIR_DROPS] = {
		[MP_PAIR_PREEMPTED] = "preempted", [MP_PAIR_ABANDONED] = "abandoned",
		[MP_PAIR_SIGNALLED] = "signalled", [MP_PAIR_EMPTY] = "empty",
		[MP_PAIR_ALONE] = "alone",	   [MP_PAIR_WRONG] = "wrong",
	};

	return why < MP_NR_PAIR_DROPS ? names[why] : "unknown";
}

struct mp_window_pairs *mp_window_pairs_new(uint32_t nr_functions)
{
	struct mp_window_pairs *pairs = NULL;

	if (nr_functions <= MP_AUDIT_MAX_FUNCTIONS)
		pairs = calloc(1, sizeof(*pairs));
	if (pairs)
		pairs->nr_functions = nr_functions;
	return pairs;
}

void mp_window_pairs_free(struct mp_window_pairs *pairs)
{
	free(pairs);
}

const uint64_t *mp_window_pairs_drops(const struct mp_window_pairs *pairs, uint32_t function)
{
	return pairs->drops[function];
}

uint64_t mp_window_pairs_foreign(const struct mp_window_pairs *pairs)
{
	return pairs->nr_foreign;
}

static void drop(struct mp_window_pairs *pairs, uint32_t function, enum mp_pair_drop why)
{
	pairs->drops[function][why]++;
}

static struct first *set_of(struct mp_window_pairs *pairs, uint64_t pair)
{
	return pairs->sets[(pair * 0x9e3779b97f4a7c15u) >> 52];
}

_Static_assert(NR_SETS == 1 << 12, "the 12 upper bits of the hash");

/* Takes the first window of @pair out of the table. Return: true if there was one. */
static bool take(struct mp_window_pairs *pairs, uint64_t pair, struct first *out)
{
	struct first *set = set_of(pairs, pair);

	for (int i = 0; i < NR_WAYS; i++)
		if (set[i].age && set[i].pair == pair) {
			*out = set[i];
			set[i].age = 0;
			return true;
		}
	return false;
}

static void keep(struct mp_window_pairs *pairs, const struct mp_audit_record *r)
{
	struct first *set = set_of(pairs, r->pair), *oldest = &set[0];

	for (int i = 1; i < NR_WAYS; i++)
		if (set[i].age < oldest->age)
			oldest = &set[i];
	if (oldest->age)
		drop(pairs, oldest->function, MP_PAIR_ALONE);
	*oldest = (struct first){.pair = r->pair,
				 .ticks = r->ticks,
				 .rounds = r->rounds,
				 .age = ++pairs->age,
				 .thread = r->thread,
				 .function = r->function,
				 .point = r->point,
				 .version = r->version};
}

static const enum mp_pair_drop drop_of_fate[MP_AUDIT_NR_FATES] = {
	[MP_AUDIT_PREEMPTED] = MP_PAIR_PREEMPTED,
	[MP_AUDIT_ABANDONED] = MP_PAIR_ABANDONED,
	[MP_AUDIT_SIGNALLED] = MP_PAIR_SIGNALLED,
};

/* Return: MP_NR_PAIR_DROPS if nothing speaks against the pair. */
static enum mp_pair_drop judge(const struct first *a, const struct mp_audit_record *b)
{
	if (a->function != b->function || a->thread != b->thread || a->point != b->point ||
	    a->version == b->version)
		return MP_PAIR_WRONG;
	if (b->fate != MP_AUDIT_TIMED)
		return drop_of_fate[b->fate];
	if (!a->ticks || !a->rounds || !b->ticks || !b->rounds)
		return MP_PAIR_EMPTY;
	return MP_NR_PAIR_DROPS;
}

static double log_round(uint64_t ticks, uint64_t rounds)
{
	return log((double)ticks) - log((double)rounds);
}

bool mp_window_pairs_add(struct mp_window_pairs *pairs, const struct mp_audit_record *r,
			 struct mp_pair *out)
{
	struct first first;
	enum mp_pair_drop why;
	uint8_t version;

	if (r->function >= pairs->nr_functions) {
		pairs->nr_foreign++;
		return false;
	}
	if (r->version >= MP_AUDIT_NR_VERSIONS || r->fate >= MP_AUDIT_NR_FATES || r->second > 1) {
		drop(pairs, r->function, MP_PAIR_WRONG);
		return false;
	}
	if (!r->second) {
		if (take(pairs, r->pair, &first))
			drop(pairs, first.function, MP_PAIR_WRONG);
		/* If a pair's first window is not timed, the program times no second one. */
		if (r->fate != MP_AUDIT_TIMED)
			drop(pairs, r->function, drop_of_fate[r->fate]);
		else
			keep(pairs, r);
		return false;
	}
	if (!take(pairs, r->pair, &first)) {
		drop(pairs, r->function, MP_PAIR_ALONE);
		return false;
	}
	why = judge(&first, r);
	if (why != MP_NR_PAIR_DROPS) {
		drop(pairs, r->function, why);
		return false;
	}
	version = first.version;
	*out = (struct mp_pair){
		.function = r->function, .point = r->point, .b_first = version == MP_AUDIT_B};
	out->ticks[version] = first.ticks;
	out->rounds[version] = first.rounds;
	out->ticks[!version] = r->ticks;
	out->rounds[!version] = r->rounds;
	out->difference = log_round(out->ticks[MP_AUDIT_A], out->rounds[MP_AUDIT_A]) -
			  log_round(out->ticks[MP_AUDIT_B], out->rounds[MP_AUDIT_B]);
	return true;
}

void mp_window_pairs_clear(struct mp_window_pairs *pairs)
{
	for (int s = 0; s < NR_SETS; s++)
		for (int i = 0; i < NR_WAYS; i++) {
			if (pairs->sets[s][i].age)
				drop(pairs, pairs->sets[s][i].function, MP_PAIR_ALONE);
			pairs->sets[s][i].age = 0;
		}
}
