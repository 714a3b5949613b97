// SPDX-License-Identifier: Apache-2.0
/*
 * meter_choose - adds the best counter, again and again, and judges by other windows; see
 * meter_choose.h.
 */
#include "libprof/trial/meter_choose.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/trial/fit.h"
#include "libprof/trial/meter_private.h"

/* Of the candidates that promise most by the residual, so many are fitted. */
#define NR_FITTED 16
/* One more counter must make the deviation on other windows this much smaller, as a factor. */
#define MUST_FALL 0.98
/*
 * A prediction that is wrong by more than this factor counts as wrong by it: a work of 0 has no
 * logarithm.
 */
#define WRONG_MAX 100.0
/* Steps of the search. A step that replaces a counter adds none. */
#define NR_STEPS 12
/* A candidate of which less than this part is left beside the chosen ones says what they say. */
#define DEPENDS 1e-6
/* The windows are cut into so many stretches, if there are as many. */
#define NR_STRETCHES 32

_Static_assert(MP_FIT_MAX >= MP_METER_MAX, "a fit has room for a meter");

/* Which windows: those of one parity of their number, or all. */
enum rows {
	EVEN,
	ODD,
	ALL
};

/* Rates of the candidates: a row for each window. */
struct table {
	size_t nr_rows;
	uint32_t nr;
	float *rates;
};

/* Counters and weights. */
struct choice {
	size_t nr;
	uint32_t at[MP_METER_MAX]; /* columns of the table */
	double weight[MP_METER_MAX];
};

/* What the greedy search knows while it goes on. */
struct search {
	const struct table *table;
	enum rows rows;
	double *residual; /* of each row: 1 - work / time */
	double *bases;	  /* of each chosen column: what it says beside the others */
	size_t nr_bases;
	/*
	 * of each candidate: its square, the square of what is left of it beside the chosen ones,
	 * and a product
	 */
	double *squares, *left, *product;
};

static const float *row_of(const struct table *t, size_t row)
{
	return t->rates + row * t->nr;
}

static size_t first_row(enum rows rows)
{
	return rows == ODD;
}

static size_t step_of(enum rows rows)
{
	return rows == ALL ? 1 : 2;
}

/* Each candidate's product with @vector, which has an element for each row of the table. */
static void multiply(const struct search *s, const double *vector, double *out)
{
	const struct table *t = s->table;

	memset(out, 0, t->nr * sizeof(*out));
	for (size_t r = first_row(s->rows); r < t->nr_rows; r += step_of(s->rows)) {
		const float *row = row_of(t, r);

		for (uint32_t i = 0; i < t->nr; i++)
			out[i] += vector[r] * row[i];
	}
}

static double predicted(const struct table *t, const struct choice *c, size_t row)
{
	double sum = 0;

	for (size_t k = 0; k < c->nr; k++)
		sum += c->weight[k] * row_of(t, row)[c->at[k]];
	return sum;
}

/*
 * Fits the weights of @c. Return: by how much the sum of squares is lower than without any counter.
 */
static double fit_choice(const struct search *s, struct choice *c)
{
	struct mp_fit fit = {.nr = c->nr};

	for (size_t r = first_row(s->rows); r < s->table->nr_rows; r += step_of(s->rows)) {
		const float *row = row_of(s->table, r);

		for (size_t k = 0; k < c->nr; k++) {
			fit.target[k] += row[c->at[k]];
			for (size_t l = 0; l <= k; l++)
				fit.gram[k][l] += (double)row[c->at[k]] * row[c->at[l]];
		}
	}
	for (size_t k = 0; k < c->nr; k++)
		for (size_t l = 0; l < k; l++)
			fit.gram[l][k] = fit.gram[k][l];
	return mp_fit(&fit, c->weight);
}

static void drop_zeros(struct choice *c)
{
	size_t nr = 0;

	for (size_t k = 0; k < c->nr; k++)
		if (c->weight[k] > 0) {
			c->at[nr] = c->at[k];
			c->weight[nr++] = c->weight[k];
		}
	c->nr = nr;
}

/*
 * Candidates in the order of how much they promise, best first. Return: how many, NR_FITTED at
 * most.
 */
static size_t most_promising(const struct search *s, uint32_t *out)
{
	double scores[NR_FITTED];
	size_t nr = 0;

	for (uint32_t i = 0; i < s->table->nr; i++) {
		double product = s->product[i], score;
		size_t place;

		if (product <= 0 || s->left[i] <= DEPENDS * s->squares[i])
			continue;
		score = product * product / s->left[i];
		if (nr == NR_FITTED && score <= scores[nr - 1])
			continue;
		place = nr < NR_FITTED ? nr++ : nr - 1;
		for (; place > 0 && scores[place - 1] < score; place--) {
			scores[place] = scores[place - 1];
			out[place] = out[place - 1];
		}
		scores[place] = score;
		out[place] = i;
	}
	return nr;
}

/* Takes out of each candidate what the column @at says, beside the columns chosen before. */
static void add_to_basis(struct search *s, uint32_t at)
{
	size_t nr = s->table->nr_rows, first = first_row(s->rows), step = step_of(s->rows);
	double *basis = s->bases + s->nr_bases * nr, square = 0;

	for (size_t r = first; r < nr; r += step)
		basis[r] = row_of(s->table, r)[at];
	for (size_t b = 0; b < s->nr_bases; b++) {
		const double *other = s->bases + b * nr;
		double product = 0;

		for (size_t r = first; r < nr; r += step)
			product += basis[r] * other[r];
		for (size_t r = first; r < nr; r += step)
			basis[r] -= product * other[r];
	}
	for (size_t r = first; r < nr; r += step)
		square += basis[r] * basis[r];
	if (!(square > 0))
		return;
	for (size_t r = first; r < nr; r += step)
		basis[r] /= sqrt(square);
	multiply(s, basis, s->product);
	for (uint32_t i = 0; i < s->table->nr; i++)
		s->left[i] -= s->product[i] * s->product[i];
	s->nr_bases++;
}

/* Adds to @c the counter that lowers the sum of squares most. Return: false: none does. */
static bool add_best(struct search *s, struct choice *c, double *gain)
{
	uint32_t promising[NR_FITTED];
	struct choice best = *c;
	double most = *gain;
	size_t nr;

	for (size_t r = first_row(s->rows); r < s->table->nr_rows; r += step_of(s->rows))
		s->residual[r] = 1 - predicted(s->table, c, r);
	multiply(s, s->residual, s->product);
	nr = most_promising(s, promising);
	for (size_t i = 0; i < nr; i++) {
		struct choice with = *c;
		double gains;

		with.at[with.nr++] = promising[i];
		gains = fit_choice(s, &with);
		if (gains > most) {
			most = gains;
			best = with;
		}
	}
	if (most <= *gain)
		return false;
	add_to_basis(s, best.at[best.nr - 1]);
	*c = best;
	*gain = most;
	/* A counter that the new one replaces makes room for another. */
	drop_zeros(c);
	return true;
}

static int begin_search(struct search *s, const struct table *t, enum rows rows)
{
	*s = (struct search){
		.table = t,
		.rows = rows,
		.residual = calloc(t->nr_rows, sizeof(double)),
		.bases = calloc(t->nr_rows * NR_STEPS, sizeof(double)),
		.squares = calloc(t->nr, sizeof(double)),
		.left = calloc(t->nr, sizeof(double)),
		.product = calloc(t->nr, sizeof(double)),
	};
	if (!s->residual || !s->bases || !s->squares || !s->left || !s->product)
		return -ENOMEM;
	for (size_t r = first_row(rows); r < t->nr_rows; r += step_of(rows))
		for (uint32_t i = 0; i < t->nr; i++)
			s->squares[i] += (double)row_of(t, r)[i] * row_of(t, r)[i];
	memcpy(s->left, s->squares, t->nr * sizeof(double));
	return 0;
}

static void end_search(struct search *s)
{
	free(s->residual);
	free(s->bases);
	free(s->squares);
	free(s->left);
	free(s->product);
}

/*
 * The best choices after each of @nr_steps steps, from the first on. If no counter helps any more,
 * the last choice is repeated. Return: 0, -ENOMEM.
 */
static int find_choices(const struct table *t, enum rows rows, size_t nr_steps, struct choice *out)
{
	struct choice now = {0};
	struct search s;
	double gain = 0;
	int rc = begin_search(&s, t, rows);

	for (size_t step = 0; !rc && step < nr_steps; step++) {
		if (now.nr < MP_METER_MAX)
			add_best(&s, &now, &gain);
		out[step] = now;
	}
	end_search(&s);
	return rc;
}

/* Variance of log(CPU time / work) over the windows of @rows. */
static double variance_of(const struct table *t, enum rows rows, const struct choice *c)
{
	double sum = 0, squares = 0, nr = 0;

	for (size_t r = first_row(rows); r < t->nr_rows; r += step_of(rows)) {
		double wrong = -log(fmin(fmax(predicted(t, c, r), 1 / WRONG_MAX), WRONG_MAX));

		sum += wrong;
		squares += wrong * wrong;
		nr++;
	}
	return fmax(0, (squares - sum * sum / nr) / (nr - 1));
}

/*
 * How many steps predict best, and how well, on windows that they were not chosen with. Return: 0,
 * -ENOMEM.
 */
static int judge_steps(const struct table *t, size_t *steps, double *deviation)
{
	struct choice even[NR_STEPS], odd[NR_STEPS];
	int rc = find_choices(t, EVEN, NR_STEPS, even);

	if (!rc)
		rc = find_choices(t, ODD, NR_STEPS, odd);
	*deviation = INFINITY;
	for (size_t step = 0; !rc && step < NR_STEPS; step++) {
		double now = sqrt(
			(variance_of(t, ODD, &even[step]) + variance_of(t, EVEN, &odd[step])) / 2);

		if (now < MUST_FALL * *deviation) {
			*deviation = now;
			*steps = step + 1;
		}
	}
	return rc;
}

static double deviation_of_times(const struct mp_meter_windows *m)
{
	double sum = 0, squares = 0, nr = (double)m->nr_rows;

	for (size_t r = 0; r < m->nr_rows; r++) {
		sum += log(m->cpu_s[r]);
		squares += log(m->cpu_s[r]) * log(m->cpu_s[r]);
	}
	return sqrt(fmax(0, (squares - sum * sum / nr) / (nr - 1)));
}

static int find_candidates(const struct mp_meter_windows *m, const uint64_t *usable,
			   struct mp_meter_columns *columns)
{
	int rc = mp_meter_columns_good(m, usable, 1, columns);

	if (!rc)
		rc = mp_meter_columns_differ(m, columns);
	return rc ? rc : mp_meter_columns_few(m, columns);
}

/*
 * A process often runs in several windows that follow each other, and what it teaches of one is true of the next. So
 * stretches of windows, not single ones, get the even and the odd rows in turns. Return: the window of row @row.
 */
static size_t window_of(size_t row, size_t nr_rows)
{
	size_t stretch = nr_rows < NR_STRETCHES ? 1 : nr_rows / NR_STRETCHES;
	size_t pair = row / 2, last = nr_rows / (2 * stretch) * (2 * stretch);

	return row >= last ? row
			   : pair / stretch * 2 * stretch + row % 2 * stretch + pair % stretch;
}

static int make_table(const struct mp_meter_windows *m, const struct mp_meter_columns *columns,
		      struct table *t)
{
	*t = (struct table){.nr_rows = m->nr_rows, .nr = columns->nr};
	t->rates = calloc(t->nr_rows * t->nr, sizeof(*t->rates));
	if (!t->rates)
		return -ENOMEM;
	for (size_t r = 0; r < t->nr_rows; r++)
		for (uint32_t i = 0; i < t->nr; i++)
			t->rates[r * t->nr + i] =
				m->rates[window_of(r, t->nr_rows) * m->nr_counters + columns->at[i]];
	return 0;
}

static void tell(const struct mp_meter_windows *m, const struct mp_meter_columns *columns,
		 const struct choice *c, struct mp_meter *out)
{
	out->nr = c->nr;
	for (size_t k = 0; k < c->nr; k++) {
		uint32_t at = columns->at[c->at[k]];

		out->index[k] = m->counters[at];
		out->weight[k] = c->weight[k];
		out->rate += (double)m->totals[at] / m->total_s;
	}
	out->usable = out->nr && out->deviation <= MP_METER_DEVIATION_MAX;
}

static int choose_from(const struct mp_meter_windows *m, const struct mp_meter_columns *columns,
		       struct mp_meter *out)
{
	struct choice choices[NR_STEPS];
	size_t steps = 1;
	struct table t;
	int rc = make_table(m, columns, &t);

	if (!rc)
		rc = judge_steps(&t, &steps, &out->deviation);
	if (!rc)
		rc = find_choices(&t, ALL, steps, choices);
	if (!rc)
		tell(m, columns, &choices[steps - 1], out);
	free(t.rates);
	return rc;
}

int mp_meter_choose(const struct mp_meter_windows *m, const uint64_t *usable, struct mp_meter *out)
{
	struct mp_meter_columns columns;
	int rc;

	*out = (struct mp_meter){.deviation = INFINITY, .nr_windows = m->nr_windows};
	if (m->nr_rows < MP_METER_LEAST_WINDOWS)
		return -EAGAIN;
	out->deviation_without = deviation_of_times(m);
	rc = find_candidates(m, usable, &columns);
	out->nr_candidates = columns.nr;
	if (!rc && columns.nr)
		rc = choose_from(m, &columns, out);
	free(columns.at);
	return rc;
}

double mp_meter_work(const struct mp_meter *meter, const uint64_t *counts)
{
	double work = 0;

	for (size_t k = 0; k < meter->nr; k++)
		work += meter->weight[k] * (double)counts[k];
	return work;
}
