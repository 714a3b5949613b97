// SPDX-License-Identifier: Apache-2.0
/* meter_windows - rows of rates within a bound of memory; see meter_windows.h. */
#include "libprof/trial/meter_windows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/trial/meter_private.h"

/*
 * 128 MB of rates. A million counters have room for 32 windows before the first of them are
 * forgotten.
 */
#define MAX_CELLS (UINT64_C(32) << 20)
#define MAX_ROWS  1024
#define GROW_ROWS 16
/* The windows so far are a part of those that come: counters near the limits stay. */
#define EARLY_SLACK 3.0

struct mp_meter_windows *mp_meter_new(uint32_t nr_counters)
{
	struct mp_meter_windows *m;

	if (!nr_counters || nr_counters > MP_METER_MAX_COUNTERS)
		return NULL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->counters = calloc(nr_counters, sizeof(*m->counters));
	m->totals = calloc(nr_counters, sizeof(*m->totals));
	m->misses = calloc(nr_counters, sizeof(*m->misses));
	m->begun = calloc(nr_counters, sizeof(*m->begun));
	m->nr_counters = m->nr_begun = nr_counters;
	m->every = 1;
	if (!m->counters || !m->totals || !m->misses || !m->begun) {
		mp_meter_free(m);
		return NULL;
	}
	for (uint32_t i = 0; i < nr_counters; i++)
		m->counters[i] = i;
	return m;
}

void mp_meter_free(struct mp_meter_windows *m)
{
	if (!m)
		return;
	free(m->counters);
	free(m->totals);
	free(m->misses);
	free(m->begun);
	free(m->rates);
	free(m->cpu_s);
	free(m);
}

static const float *row_of(const struct mp_meter_windows *m, size_t row)
{
	return m->rates + row * m->nr_counters;
}

int mp_meter_columns_good(const struct mp_meter_windows *m, const uint64_t *usable, double slack,
			  struct mp_meter_columns *out)
{
	*out = (struct mp_meter_columns){.at = calloc(m->nr_counters, sizeof(*out->at))};
	if (!out->at)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nr_counters; i++) {
		uint32_t counter = m->counters[i];
		double rate = (double)m->totals[i] / m->total_s;

		if (rate >= MP_METER_RATE_MIN / slack && rate <= MP_METER_RATE_MAX * slack &&
		    MP_METER_SELDOM * (double)m->misses[i] <= slack * m->nr_windows &&
		    (!usable || (usable[counter / 64] >> counter % 64 & 1)))
			out->at[out->nr++] = i;
	}
	return 0;
}

struct keyed {
	uint64_t key;
	uint32_t at;
};

static int compare_keys(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static int compare_places(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static struct keyed *keyed_columns(const struct mp_meter_columns *columns)
{
	struct keyed *keyed = calloc(columns->nr ? columns->nr : 1, sizeof(*keyed));

	for (uint32_t i = 0; keyed && i < columns->nr; i++)
		keyed[i].at = columns->at[i];
	return keyed;
}

int mp_meter_columns_differ(const struct mp_meter_windows *m, struct mp_meter_columns *columns)
{
	struct keyed *keyed = keyed_columns(columns);
	uint32_t nr = 0;

	if (!keyed)
		return -ENOMEM;
	for (size_t r = 0; r < m->nr_rows; r++)
		for (uint32_t i = 0; i < columns->nr; i++) {
			uint32_t bits;

			memcpy(&bits, &row_of(m, r)[keyed[i].at], sizeof(bits));
			keyed[i].key = (keyed[i].key ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
			keyed[i].key ^= keyed[i].key >> 29;
		}
	qsort(keyed, columns->nr, sizeof(*keyed), compare_keys);
	for (uint32_t i = 0; i < columns->nr; i++)
		if (!i || keyed[i].key != keyed[i - 1].key)
			columns->at[nr++] = keyed[i].at;
	columns->nr = nr;
	qsort(columns->at, nr, sizeof(*columns->at), compare_places);
	free(keyed);
	return 0;
}

/*
 * The order of squares is that of the spreads. They are above 0, and so their bits ascend with
 * them.
 */
static uint64_t spread_key(double sum, double squares)
{
	double spread = sum > 0 ? squares / (sum * sum) : 0;
	uint64_t key;

	memcpy(&key, &spread, sizeof(key));
	return key;
}

int mp_meter_columns_few(const struct mp_meter_windows *m, struct mp_meter_columns *columns)
{
	const uint64_t half = MP_METER_CANDIDATES / 2;
	struct keyed *keyed;

	if (columns->nr <= MP_METER_CANDIDATES)
		return 0;
	keyed = keyed_columns(columns);
	if (!keyed)
		return -ENOMEM;
	for (uint32_t i = 0; i < columns->nr; i++) {
		double sum = 0, squares = 0;

		for (size_t r = 0; r < m->nr_rows; r++) {
			double rate = row_of(m, r)[keyed[i].at];

			sum += rate;
			squares += rate * rate;
		}
		keyed[i].key = spread_key(sum, squares);
	}
	qsort(keyed, columns->nr, sizeof(*keyed), compare_keys);
	for (uint64_t i = 0; i < MP_METER_CANDIDATES; i++) {
		uint64_t at = i < half ? i : half + (i - half) * (columns->nr - half) / half;

		columns->at[i] = keyed[at].at;
	}
	columns->nr = MP_METER_CANDIDATES;
	qsort(columns->at, columns->nr, sizeof(*columns->at), compare_places);
	free(keyed);
	return 0;
}

/*
 * Forgets all counters but those of @columns. Each row moves to the front of where it was, or
 * before.
 */
static void keep_columns(struct mp_meter_windows *m, const struct mp_meter_columns *columns)
{
	for (size_t r = 0; r < m->nr_rows; r++)
		for (uint32_t i = 0; i < columns->nr; i++)
			m->rates[r * columns->nr + i] = row_of(m, r)[columns->at[i]];
	for (uint32_t i = 0; i < columns->nr; i++) {
		m->counters[i] = m->counters[columns->at[i]];
		m->totals[i] = m->totals[columns->at[i]];
		m->misses[i] = m->misses[columns->at[i]];
	}
	m->nr_counters = columns->nr;
}

static int forget_counters(struct mp_meter_windows *m)
{
	struct mp_meter_columns columns;
	int rc = mp_meter_columns_good(m, NULL, EARLY_SLACK, &columns);

	if (!rc)
		rc = mp_meter_columns_differ(m, &columns);
	if (!rc)
		rc = mp_meter_columns_few(m, &columns);
	/* Without any, the rows stay as they are: it is known that there is no meter. */
	if (!rc)
		keep_columns(m, &columns);
	free(columns.at);
	return rc;
}

static void forget_rows(struct mp_meter_windows *m)
{
	size_t nr = (m->nr_rows + 1) / 2;

	for (size_t r = 1; r < nr; r++) {
		memcpy(m->rates + r * m->nr_counters, row_of(m, 2 * r),
		       m->nr_counters * sizeof(*m->rates));
		m->cpu_s[r] = m->cpu_s[2 * r];
	}
	m->nr_rows = nr;
	m->every *= 2;
}

/* Room for one more row. Return: 0, -ENOMEM. */
static int make_room(struct mp_meter_windows *m)
{
	uint64_t rows = m->nr_rows + GROW_ROWS;

	if (m->nr_rows < m->max_rows)
		return 0;
	while (rows * m->nr_counters > MAX_CELLS && rows > m->nr_rows + 1)
		rows--;
	if (mp_resize(m->cpu_s, rows) || mp_resize(m->rates, rows * m->nr_counters))
		return -ENOMEM;
	m->max_rows = rows;
	return 0;
}

static int add_row(struct mp_meter_windows *m, double cpu_s, const uint64_t *deltas)
{
	uint64_t rows = m->nr_rows + 1;
	float *row;
	int rc = 0;

	if (rows * m->nr_counters > MAX_CELLS)
		rc = forget_counters(m);
	if (!rc)
		rc = make_room(m);
	if (rc)
		return rc;
	row = m->rates + m->nr_rows * m->nr_counters;
	for (uint32_t i = 0; i < m->nr_counters; i++)
		row[i] = (float)((double)deltas[m->counters[i]] / cpu_s);
	m->cpu_s[m->nr_rows++] = cpu_s;
	return 0;
}

static int add_whole(struct mp_meter_windows *m, double cpu_s, const uint64_t *deltas)
{
	int rc = 0;

	if (m->nr_rows == MAX_ROWS)
		forget_rows(m);
	if (m->nr_windows % m->every == 0)
		rc = add_row(m, cpu_s, deltas);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < m->nr_counters; i++) {
		uint64_t delta = deltas[m->counters[i]];

		m->totals[i] += delta;
		m->misses[i] += !delta;
	}
	m->nr_windows++;
	m->total_s += cpu_s;
	return 0;
}

int mp_meter_add_window(struct mp_meter_windows *m, double cpu_s, const uint64_t *deltas)
{
	int rc;

	if (!(cpu_s >= 0) || !isfinite(cpu_s))
		return -EINVAL;
	if (!(m->begun_s > 0) && cpu_s >= MP_METER_WINDOW_S)
		return add_whole(m, cpu_s, deltas);
	for (uint32_t i = 0; i < m->nr_counters; i++)
		m->begun[m->counters[i]] += deltas[m->counters[i]];
	m->begun_s += cpu_s;
	if (m->begun_s < MP_METER_WINDOW_S)
		return 0;
	rc = add_whole(m, m->begun_s, m->begun);
	memset(m->begun, 0, m->nr_begun * sizeof(*m->begun));
	m->begun_s = 0;
	return rc;
}
