// SPDX-License-Identifier: Apache-2.0
/*
 * chain - eliminates states and substitutes back; see chain.h.
 *
 * Eliminating s extends each step i -> s by the steps that lead on from s: i -> j for each
 * s -> j. The chain keeps the steps of s at that time, in and out, among the states that
 * remain. A step from s to itself only delays; it is left out, and the other steps divide
 * its share.
 */
#include "libprof/infer/chain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"

#define NONE UINT32_MAX

struct step {
	uint32_t to;
	double share;
};

/* A state's steps out, and the states with steps into it. */
struct state {
	struct step *out;
	uint32_t *in;
	uint32_t nr_out, max_out;
	uint32_t nr_in, max_in;
};

/* Eliminated @state: steps[first .. first + nr_out) lead out; the next @nr_in steps lead in. */
struct elimination {
	uint32_t state;
	uint32_t nr_out, nr_in;
	uint64_t first;
	double moves; /* 1 - the share of steps to the state itself */
};

struct mp_chain {
	uint32_t nr_states;
	struct elimination *order;
	struct step *steps;
	uint64_t nr_steps, room;
};

/*
 * States by the approximate number of steps that eliminating them would make: doubly linked
 * lists. The last list has all states with more steps: their order matters little.
 */
#define NR_BUCKETS 1024
#define ROOM	   64 /* steps in the first block of memory, which grows */

struct work {
	struct state *states;
	double *leave;
	uint32_t *where; /* per state: its index in the current row, + 1; 0: not in the row */
	uint32_t *next, *prev, *bucket;
	uint32_t head[NR_BUCKETS];
	uint64_t nr_done, max_steps;
};

static int out_add(struct state *state, uint32_t to, double share)
{
	return mp_push(state->out, state->nr_out, state->max_out, (struct step){to, share});
}

static int in_add(struct state *state, uint32_t from)
{
	return mp_push(state->in, state->nr_in, state->max_in, from);
}

static uint32_t bucket_of(const struct state *state)
{
	uint64_t product = (uint64_t)state->nr_in * state->nr_out;

	return product < NR_BUCKETS ? (uint32_t)product : NR_BUCKETS - 1;
}

static void bucket_add(struct work *w, uint32_t s)
{
	uint32_t b = bucket_of(&w->states[s]);

	w->bucket[s] = b;
	w->prev[s] = NONE;
	w->next[s] = w->head[b];
	if (w->next[s] != NONE)
		w->prev[w->next[s]] = s;
	w->head[b] = s;
}

static void bucket_remove(struct work *w, uint32_t s)
{
	if (w->prev[s] == NONE)
		w->head[w->bucket[s]] = w->next[s];
	else
		w->next[w->prev[s]] = w->next[s];
	if (w->next[s] != NONE)
		w->prev[w->next[s]] = w->prev[s];
}

static uint32_t bucket_first(struct work *w)
{
	for (uint32_t b = 0; b < NR_BUCKETS; b++)
		if (w->head[b] != NONE)
			return w->head[b];
	return NONE;
}

/* Adds @nr steps from @from, each times @factor. Steps to @from itself are left out. */
static int row_add(struct work *w, uint32_t from, const struct step *steps, uint32_t nr,
		   double factor)
{
	struct state *state = &w->states[from];
	int ret = 0;

	for (uint32_t i = 0; i < state->nr_out; i++)
		w->where[state->out[i].to] = i + 1;
	for (uint32_t i = 0; i < nr && !ret; i++) {
		uint32_t to = steps[i].to;

		if (to == from)
			continue;
		if (w->where[to]) {
			state->out[w->where[to] - 1].share += factor * steps[i].share;
			continue;
		}
		ret = out_add(state, to, factor * steps[i].share);
		if (!ret) {
			w->where[to] = state->nr_out;
			ret = in_add(&w->states[to], from);
		}
	}
	for (uint32_t i = 0; i < state->nr_out; i++)
		w->where[state->out[i].to] = 0;
	w->nr_done += state->nr_out + nr;
	return ret;
}

static int keep(struct mp_chain *chain, uint32_t to, double share)
{
	return mp_push(chain->steps, chain->nr_steps, chain->room, (struct step){to, share});
}

/* Removes the step from @from's row. Return: its share. */
static double out_take(struct state *from, uint32_t to)
{
	for (uint32_t i = 0; i < from->nr_out; i++)
		if (from->out[i].to == to) {
			double share = from->out[i].share;

			from->out[i] = from->out[--from->nr_out];
			return share;
		}
	return 0;
}

static void in_take(struct state *to, uint32_t from)
{
	for (uint32_t i = 0; i < to->nr_in; i++)
		if (to->in[i] == from) {
			to->in[i] = to->in[--to->nr_in];
			return;
		}
}

static int eliminate(struct mp_chain *chain, struct work *w, uint32_t s, struct elimination *e)
{
	struct state *state = &w->states[s];
	int ret = 0;

	*e = (struct elimination){.state = s,
				  .first = chain->nr_steps,
				  .nr_out = state->nr_out,
				  .nr_in = state->nr_in,
				  .moves = w->leave[s]};
	for (uint32_t i = 0; i < state->nr_out && !ret; i++) {
		e->moves += state->out[i].share;
		in_take(&w->states[state->out[i].to], s);
		ret = keep(chain, state->out[i].to, state->out[i].share);
	}
	if (!(e->moves > 0))
		return -EDOM;
	for (uint32_t i = 0; i < state->nr_in && !ret; i++) {
		uint32_t from = state->in[i];
		double share = out_take(&w->states[from], s);

		w->leave[from] += share * w->leave[s] / e->moves;
		ret = keep(chain, from, share);
		if (!ret)
			ret = row_add(w, from, state->out, state->nr_out, share / e->moves);
	}
	for (uint32_t i = 0; i < state->nr_out && !ret; i++) {
		bucket_remove(w, state->out[i].to);
		bucket_add(w, state->out[i].to);
	}
	for (uint32_t i = 0; i < state->nr_in && !ret; i++) {
		bucket_remove(w, state->in[i]);
		bucket_add(w, state->in[i]);
	}
	return ret ? ret : w->nr_done > w->max_steps ? -E2BIG : 0;
}

static int work_init(struct work *w, uint32_t nr, const double *leave)
{
	size_t n = (size_t)nr + 1;

	w->states = calloc(n, sizeof(*w->states));
	w->leave = calloc(n, sizeof(*w->leave));
	w->where = calloc(n, sizeof(*w->where));
	w->next = calloc(n, sizeof(*w->next));
	w->prev = calloc(n, sizeof(*w->prev));
	w->bucket = calloc(n, sizeof(*w->bucket));
	if (!w->states || !w->leave || !w->where || !w->next || !w->prev || !w->bucket)
		return -ENOMEM;
	for (uint32_t b = 0; b < NR_BUCKETS; b++)
		w->head[b] = NONE;
	if (nr)
		memcpy(w->leave, leave, nr * sizeof(*leave));
	return 0;
}

static void work_fini(struct work *w, uint32_t nr)
{
	for (uint32_t s = 0; w->states && s < nr; s++) {
		free(w->states[s].out);
		free(w->states[s].in);
	}
	free(w->states);
	free(w->leave);
	free(w->where);
	free(w->next);
	free(w->prev);
	free(w->bucket);
}

static int check(uint32_t nr_states, const struct mp_chain_step *steps, uint32_t nr_steps,
		 const double *leave)
{
	for (uint32_t i = 0; i < nr_steps; i++)
		if (steps[i].from >= nr_states || steps[i].to >= nr_states ||
		    !(steps[i].share > 0) || !isfinite(steps[i].share))
			return -EINVAL;
	for (uint32_t s = 0; s < nr_states; s++)
		if (!(leave[s] >= 0) || !isfinite(leave[s]))
			return -EINVAL;
	return 0;
}

static int reduce(struct mp_chain *chain, struct work *w, const struct mp_chain_step *steps,
		  uint32_t nr_steps)
{
	int ret = 0;

	for (uint32_t i = 0; i < nr_steps && !ret; i++) {
		struct step step = {steps[i].to, steps[i].share};

		ret = row_add(w, steps[i].from, &step, 1, 1);
	}
	for (uint32_t s = 0; s < chain->nr_states && !ret; s++)
		bucket_add(w, s);
	w->nr_done = 0;
	for (uint32_t i = 0; i < chain->nr_states && !ret; i++) {
		uint32_t s = bucket_first(w);

		bucket_remove(w, s);
		ret = eliminate(chain, w, s, &chain->order[i]);
	}
	return ret;
}

int mp_chain_new(uint32_t nr_states, const struct mp_chain_step *steps, uint32_t nr_steps,
		 const double *leave, uint64_t max_steps, struct mp_chain **out, struct mp_err *err)
{
	struct work w = {.max_steps = max_steps};
	struct mp_chain *chain = calloc(1, sizeof(*chain));
	int ret = check(nr_states, steps, nr_steps, leave);

	*out = NULL;
	if (chain) {
		chain->nr_states = nr_states;
		chain->order = calloc((size_t)nr_states + 1, sizeof(*chain->order));
		chain->steps = malloc(ROOM * sizeof(*chain->steps));
		chain->room = ROOM;
	}
	if (!ret && (!chain || !chain->order || !chain->steps))
		ret = -ENOMEM;
	if (!ret)
		ret = work_init(&w, nr_states, leave);
	if (!ret)
		ret = reduce(chain, &w, steps, nr_steps);
	work_fini(&w, nr_states);
	if (!ret) {
		*out = chain;
		return 0;
	}
	mp_chain_free(chain);
	return mp_err_set(err, -ret, "chain: %s",
			  ret == -EINVAL  ? "no sensible number"
			  : ret == -EDOM  ? "it never ends"
			  : ret == -E2BIG ? "too dense"
					  : "out of memory");
}

void mp_chain_free(struct mp_chain *chain)
{
	if (!chain)
		return;
	free(chain->order);
	free(chain->steps);
	free(chain);
}

void mp_chain_visits(const struct mp_chain *chain, const double *start, double *visits)
{
	if (visits != start && chain->nr_states)
		memcpy(visits, start, chain->nr_states * sizeof(*visits));
	/* Starts in an eliminated state count as starts in the states that its steps lead to. */
	for (uint32_t i = 0; i < chain->nr_states; i++) {
		const struct elimination *e = &chain->order[i];
		const struct step *out = &chain->steps[e->first];
		double share = visits[e->state] / e->moves;

		for (uint32_t k = 0; k < e->nr_out && share > 0; k++)
			visits[out[k].to] += share * out[k].share;
	}
	for (uint32_t i = chain->nr_states; i--;) {
		const struct elimination *e = &chain->order[i];
		const struct step *in = &chain->steps[e->first + e->nr_out];
		double sum = visits[e->state];

		for (uint32_t k = 0; k < e->nr_in; k++)
			sum += visits[in[k].to] * in[k].share;
		visits[e->state] = sum / e->moves;
	}
}

void mp_chain_worth(const struct mp_chain *chain, const double *gain, double *worth)
{
	if (worth != gain && chain->nr_states)
		memcpy(worth, gain, chain->nr_states * sizeof(*worth));
	for (uint32_t i = 0; i < chain->nr_states; i++) {
		const struct elimination *e = &chain->order[i];
		const struct step *in = &chain->steps[e->first + e->nr_out];
		double each = worth[e->state] / e->moves;

		for (uint32_t k = 0; k < e->nr_in; k++)
			worth[in[k].to] += in[k].share * each;
	}
	for (uint32_t i = chain->nr_states; i--;) {
		const struct elimination *e = &chain->order[i];
		const struct step *out = &chain->steps[e->first];
		double sum = worth[e->state];

		for (uint32_t k = 0; k < e->nr_out; k++)
			sum += out[k].share * worth[out[k].to];
		worth[e->state] = sum / e->moves;
	}
}
