// SPDX-License-Identifier: Apache-2.0
/* store_trials - the table of trials; see store_trials.h. */
#include "libprof/store/audits/store_trials.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/store_private.h"

static bool sound_number(double x)
{
	return isfinite(x) && x >= 0;
}

static bool sound(const struct mp_trial *trial)
{
	return trial->original.build_id_len <= MP_BUILD_ID_MAX && sound_number(trial->ratio) &&
	       sound_number(trial->lowest) && sound_number(trial->highest) && trial->when_s >= 0;
}

static bool short_text(const char *text)
{
	return text && strlen(text) <= MP_TRIAL_TEXT_MAX;
}

int mp_store_add_trial(struct mp_store *store, const struct mp_trial *trial, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r;

	if (!sound(trial) || !short_text(trial->machine) || !short_text(trial->adjustments) ||
	    !short_text(trial->functions) || !short_text(trial->verdict))
		return mp_err_set(err, EINVAL, "a trial that cannot be kept");
	r = mp_store_stmt(store, MP_STMT_TRIAL_ADD,
			  "INSERT INTO trial(build_id, text_hash, machine, functions, adjustments,"
			  " verdict, runs, ratio, lowest, highest, when_s)"
			  " VALUES(?1, ?2, ?3, ?11, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
			  &stmt, err);
	if (r)
		return r;
	sqlite3_bind_blob(
		stmt, 1, trial->original.build_id_len ? (const void *)trial->original.build_id : "",
		trial->original.build_id_len, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, (int64_t)trial->original.text_hash);
	sqlite3_bind_text(stmt, 3, trial->machine, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 4, trial->adjustments, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 5, trial->verdict, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 6, trial->nr_runs);
	sqlite3_bind_double(stmt, 7, trial->ratio);
	sqlite3_bind_double(stmt, 8, trial->lowest);
	sqlite3_bind_double(stmt, 9, trial->highest);
	sqlite3_bind_int64(stmt, 10, trial->when_s);
	sqlite3_bind_text(stmt, 11, trial->functions, -1, SQLITE_STATIC);
	return mp_store_run(store, stmt, "write", err);
}

static char *text_of(sqlite3_stmt *stmt, int column)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	return text && strlen(text) <= MP_TRIAL_TEXT_MAX ? strdup(text) : NULL;
}

static int read_row(struct mp_store *store, sqlite3_stmt *stmt, struct mp_trial *trial,
		    struct mp_err *err)
{
	int len = sqlite3_column_bytes(stmt, 1);
	int64_t runs = sqlite3_column_int64(stmt, 6);

	*trial = (struct mp_trial){
		.original.text_hash = (uint64_t)sqlite3_column_int64(stmt, 2),
		.machine = text_of(stmt, 3),
		.functions = text_of(stmt, 11),
		.adjustments = text_of(stmt, 4),
		.verdict = text_of(stmt, 5),
		.nr_runs = (uint32_t)runs,
		.ratio = sqlite3_column_double(stmt, 7),
		.lowest = sqlite3_column_double(stmt, 8),
		.highest = sqlite3_column_double(stmt, 9),
		.when_s = sqlite3_column_int64(stmt, 10),
	};
	if (len <= MP_BUILD_ID_MAX) {
		trial->original.build_id_len = (uint8_t)len;
		if (len)
			memcpy(trial->original.build_id, sqlite3_column_blob(stmt, 1), (size_t)len);
	}
	if (len > MP_BUILD_ID_MAX || runs < 0 || runs > UINT32_MAX || !trial->machine ||
	    !trial->functions || !trial->adjustments || !trial->verdict || !sound(trial))
		return mp_store_damaged(store, "a trial that no program wrote", err);
	return 0;
}

static bool wanted(const struct mp_trial *trial, const struct mp_id *original, const char *machine)
{
	return (!original || mp_id_equal(&trial->original, original)) &&
	       (!machine || !strcmp(trial->machine, machine));
}

static void fini(struct mp_trial *trial)
{
	free(trial->machine);
	free(trial->functions);
	free(trial->adjustments);
	free(trial->verdict);
}

int mp_store_list_trials(struct mp_store *store, const struct mp_id *original, const char *machine,
			 struct mp_trial **out, size_t *nr, struct mp_err *err)
{
	struct mp_trial *list = NULL;
	int64_t last = INT64_MIN;
	size_t n = 0, max = 0;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_TRIAL_LIST,
			      "SELECT key, build_id, text_hash, machine, adjustments, verdict,"
			      " runs, ratio, lowest, highest, when_s, functions FROM trial"
			      " ORDER BY key",
			      &stmt, err);

	*out = NULL;
	*nr = 0;
	if (r)
		return r;
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		r = mp_store_grow(list, max, n + 1, err);
		if (r)
			break;
		r = read_row(store, stmt, &list[n], err);
		/* Check the order: a damaged tree could otherwise loop for ever. */
		if (!r && sqlite3_column_int64(stmt, 0) <= last)
			r = mp_store_damaged(store, "trials out of order", err);
		last = sqlite3_column_int64(stmt, 0);
		if (!r && wanted(&list[n], original, machine)) {
			n++;
			continue;
		}
		fini(&list[n]);
		if (r)
			break;
	}
	sqlite3_reset(stmt);
	if (r) {
		mp_store_free_trials(list, n);
		return r;
	}
	*out = list;
	*nr = n;
	return 0;
}

void mp_store_free_trials(struct mp_trial *trials, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		fini(&trials[i]);
	free(trials);
}

static bool same(const struct mp_trial *a, const struct mp_trial *b)
{
	return wanted(a, &b->original, b->machine) && !strcmp(a->adjustments, b->adjustments) &&
	       !strcmp(a->verdict, b->verdict) && a->when_s == b->when_s &&
	       a->nr_runs == b->nr_runs && fabs(a->ratio - b->ratio) <= 1e-12;
}

int mp_store_merge_trials(struct mp_store *out, struct mp_store *in, struct mp_err *err)
{
	struct mp_trial *have = NULL, *more = NULL;
	size_t nr_have = 0, nr_more = 0;
	int r = mp_store_list_trials(out, NULL, NULL, &have, &nr_have, err);

	if (!r)
		r = mp_store_list_trials(in, NULL, NULL, &more, &nr_more, err);
	for (size_t i = 0; i < nr_more && !r; i++) {
		size_t k = 0;

		while (k < nr_have && !same(&have[k], &more[i]))
			k++;
		if (k == nr_have)
			r = mp_store_add_trial(out, &more[i], err);
	}
	mp_store_free_trials(have, nr_have);
	mp_store_free_trials(more, nr_more);
	return r;
}

int mp_store_check_trials(struct mp_store *store, struct mp_err *err)
{
	struct mp_trial *trials = NULL;
	size_t nr = 0;
	int r = mp_store_list_trials(store, NULL, NULL, &trials, &nr, err);

	mp_store_free_trials(trials, nr);
	return r;
}
