// SPDX-License-Identifier: Apache-2.0
/*
 * store_merge - adds one database to another; see store_merge.h. Decides which sessions are
 * the same. It reads @in by the ordinary functions, so that their checks find any damage.
 * Called by morph-stats merge.
 */
#include "libprof/store/whole/store_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libprof/store/contexts/store_contexts.h"
#include "libprof/store/audits/store_audits.h"
#include "libprof/store/store_copies.h"
#include "libprof/store/store_fingerprint.h"
#include "libprof/store/store_paths.h"
#include "libprof/store/store_private.h"
#include "libprof/store/store_process.h"
#include "libprof/store/store_span.h"
#include "libprof/store/audits/store_trials.h"
#include "libprof/store/store_ways.h"

/* ---- sessions ------------------------------------------------------------------------------ */

/* True if @a may be an earlier state of @b. */
static bool is_earlier(const struct mp_session *a, const struct mp_session *b)
{
	const struct mp_ledger *x = &a->ledger, *y = &b->ledger;
	bool within = a->last_s <= b->last_s && x->emitted <= y->emitted &&
		      x->attributed <= y->attributed;

	for (int i = 0; i < MP_NR_UNATTR; i++)
		within &= x->unattributed[i] <= y->unattributed[i];
	for (int i = 0; i < MP_NR_LOST; i++)
		within &= x->lost[i] <= y->lost[i];
	for (int i = 0; i < MP_NR_PATH_FATES; i++)
		within &= x->paths[i] <= y->paths[i];
	return within && x->contexts <= y->contexts && x->calls <= y->calls;
}

/*
 * An empty session can be added twice without harm. An import is not empty: it may hold
 * transfers alone.
 */
static bool is_empty(const struct mp_session *s)
{
	return !s->ledger.emitted && strcmp(s->collector, "import") != 0;
}

static bool is_same(const struct mp_session *a, const struct mp_session *b)
{
	if (is_empty(a) || is_empty(b))
		return false;
	return a->start_s == b->start_s && a->rate_hz == b->rate_hz &&
	       !strcmp(a->collector, b->collector) && !strcmp(a->why, b->why) &&
	       !strcmp(a->event, b->event) && (is_earlier(a, b) || is_earlier(b, a));
}

static int refuse(struct mp_store *in, const struct mp_session *session, struct mp_err *err)
{
	time_t t = (time_t)session->start_s;
	char when[32] = "?";
	struct tm tm;

	if (localtime_r(&t, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	return mp_err_set(err, EEXIST, "%s: its session of %s (%s) was added before", in->path,
			  when, session->collector);
}

static int check_sessions(struct mp_store *out, struct mp_store *in,
			  const struct mp_session *sessions, size_t nr, struct mp_err *err)
{
	struct mp_session *have = NULL;
	size_t nr_have = 0;
	int r = mp_store_list_sessions(out, &have, &nr_have, err);

	for (size_t i = 0; i < nr && !r; i++)
		for (size_t k = 0; k < nr_have && !r; k++)
			if (is_same(&sessions[i], &have[k]))
				r = refuse(in, &sessions[i], err);
	free(have);
	return r;
}

/* Totals according to the ledgers. */
struct promised {
	uint64_t samples, paths, contexts, calls;
};

static int merge_sessions(struct mp_store *out, struct mp_store *in, bool again,
			  struct mp_merge_stats *stats, struct promised *promised,
			  struct mp_err *err)
{
	struct mp_session *sessions = NULL;
	size_t nr = 0;
	int r = mp_store_list_sessions(in, &sessions, &nr, err);

	if (!r && !again)
		r = check_sessions(out, in, sessions, nr, err);
	/* Oldest first, in the order in which they came. */
	for (size_t i = nr; i-- > 0 && !r;) {
		struct mp_session session = sessions[i];

		r = mp_store_start_session(out, &session, err);
		if (!r)
			r = mp_store_add_ledger(out, session.key, session.last_s, &session.ledger,
						err);
		promised->samples += session.ledger.attributed;
		promised->paths += session.ledger.paths[MP_PATH_DECODED];
		promised->contexts += session.ledger.contexts;
		promised->calls += session.ledger.calls;
	}
	free(sessions);
	stats->nr_sessions += nr;
	return r;
}

/* ---- modules ------------------------------------------------------------------------------- */

/* Finds or adds the module in @out; the path that was seen last is kept. */
static int put_module(struct mp_store *out, const struct mp_module *module, int64_t *key,
		      struct mp_err *err)
{
	struct mp_module have = {0};
	const char *path = module->path;
	uint64_t text_size = module->text_size;
	int r = mp_store_find_module(out, &module->id, &have, NULL);

	if (r && r != -ENOENT)
		return mp_store_find_module(out, &module->id, &have, err);
	if (!r && have.last_s > module->last_s)
		path = have.path;
	/* 0: only the name is known; the file was never seen. */
	if (!r && have.text_size && (!text_size || have.last_s > module->last_s))
		text_size = have.text_size;
	r = mp_store_put_module(out, &module->id, module->kind, path, text_size, module->first_s,
				key, err);
	if (!r)
		r = mp_store_put_module(out, &module->id, module->kind, path, text_size,
					module->last_s, key, err);
	free(have.path);
	return r;
}

static int check_days(struct mp_store *in, const struct mp_span *span, struct mp_err *err)
{
	if (span->first_day < 0 || span->last_day > INT64_MAX / MP_SECONDS_PER_DAY)
		return mp_store_damaged(in, "impossible days", err);
	return 0;
}

static int merge_counts(struct mp_store *out, int64_t to, struct mp_store *in, int64_t from,
			struct mp_merge_stats *stats, struct mp_err *err)
{
	struct mp_span *spans = NULL;
	size_t nr_spans = 0;
	int r = mp_store_list_ip_count_spans(in, from, &spans, &nr_spans, err);

	for (size_t i = 0; i < nr_spans && !r; i++) {
		struct mp_ip_count *counts = NULL;
		size_t nr = 0;

		r = check_days(in, &spans[i], err);
		if (r)
			break;
		r = mp_store_read_ip_count_span(in, from, &spans[i], &counts, &nr, err);
		if (!r)
			r = mp_store_add_ip_count_span(out, to, &spans[i], counts, nr, err);
		for (size_t k = 0; k < nr && !r; k++)
			stats->nr_samples += counts[k].count;
		free(counts);
	}
	free(spans);
	return r;
}

static int merge_edges(struct mp_store *out, int64_t to, struct mp_store *in, int64_t from,
		       struct mp_merge_stats *stats, struct mp_err *err)
{
	struct mp_span *spans = NULL;
	size_t nr_spans = 0;
	int r = mp_store_list_edge_spans(in, from, &spans, &nr_spans, err);

	for (size_t i = 0; i < nr_spans && !r; i++) {
		struct mp_edge_count *edges = NULL;
		size_t nr = 0;

		r = check_days(in, &spans[i], err);
		if (r)
			break;
		r = mp_store_read_edge_span(in, from, &spans[i], &edges, &nr, err);
		if (!r)
			r = mp_store_add_edge_span(out, to, &spans[i], edges, nr, err);
		for (size_t k = 0; k < nr && !r; k++)
			stats->nr_transfers += edges[k].count;
		free(edges);
	}
	free(spans);
	return r;
}

static int merge_paths(struct mp_store *out, int64_t to, struct mp_store *in, int64_t from,
		       struct mp_merge_stats *stats, struct mp_err *err)
{
	struct mp_span *spans = NULL;
	size_t nr_spans = 0;
	int r = mp_store_list_path_spans(in, from, &spans, &nr_spans, err);

	for (size_t i = 0; i < nr_spans && !r; i++) {
		struct mp_path_count *paths = NULL;
		size_t nr = 0;

		r = check_days(in, &spans[i], err);
		if (!r)
			r = mp_store_read_path_span(in, from, &spans[i], &paths, &nr, err);
		if (!r)
			r = mp_store_add_path_span(out, to, &spans[i], paths, nr, err);
		for (size_t k = 0; k < nr && !r; k++)
			stats->nr_paths += paths[k].count;
		free(paths);
	}
	free(spans);
	return r;
}

static int merge_activity(struct mp_store *out, int64_t to, int64_t from,
			  const struct mp_activity_span *spans, size_t nr, struct mp_err *err)
{
	int r = 0;

	for (size_t i = 0; i < nr && !r; i++)
		if (spans[i].module == from)
			r = mp_store_add_activity_span(out, to, &spans[i].span, &spans[i].activity,
						       err);
	return r;
}

/* Activity without a module would be lost silently. */
static int check_activity(struct mp_store *in, const struct mp_activity_span *spans, size_t nr,
			  const struct mp_module *modules, size_t nr_modules, struct mp_err *err)
{
	for (size_t i = 0; i < nr; i++) {
		size_t k = 0;

		if (i && spans[i].module == spans[i - 1].module)
			continue;
		while (k < nr_modules && modules[k].key != spans[i].module)
			k++;
		if (k == nr_modules)
			return mp_store_damaged(in, "activity without a module", err);
	}
	return 0;
}

/* The outputs' samples, after all modules are in @out. */
static int merge_copies(struct mp_store *out, struct mp_store *in, const struct mp_module *modules,
			size_t nr, struct mp_err *err)
{
	struct mp_copied *copied = NULL;
	size_t nr_copied = 0;
	int r = mp_store_list_copied(in, &copied, &nr_copied, err);

	for (size_t i = 0; i < nr_copied && !r; i++) {
		const struct mp_module *output = NULL, *original = NULL;
		int64_t to = 0, to_original = 0;

		for (size_t k = 0; k < nr; k++) {
			if (modules[k].key == copied[i].output)
				output = &modules[k];
			if (modules[k].key == copied[i].original)
				original = &modules[k];
		}
		if (!output || !original)
			r = mp_store_damaged(in, "an output without an original", err);
		if (!r)
			r = put_module(out, output, &to, err);
		if (!r)
			r = put_module(out, original, &to_original, err);
		if (!r)
			r = mp_store_merge_copies(out, to, to_original, in, output->key, err);
	}
	free(copied);
	return r;
}

static int check_promises(struct mp_store *in, const struct mp_merge_stats *stats,
			  const struct promised *promised, struct mp_err *err)
{
	if (stats->nr_samples != promised->samples)
		return mp_store_damaged(in, "samples that its ledgers do not contain", err);
	if (stats->nr_paths != promised->paths)
		return mp_store_damaged(in, "paths that its ledgers do not contain", err);
	if (stats->nr_contexts != promised->contexts)
		return mp_store_damaged(in, "calling contexts that its ledgers do not contain",
					err);
	if (stats->nr_calls != promised->calls)
		return mp_store_damaged(in, "sampled calls that its ledgers do not contain", err);
	return 0;
}

int mp_store_merge(struct mp_store *out, struct mp_store *in, bool again,
		   struct mp_merge_stats *stats, struct mp_err *err)
{
	struct mp_activity_span *activity = NULL;
	struct mp_module *modules = NULL;
	size_t nr_modules = 0, nr_activity = 0;
	struct promised promised = {0};
	int r;

	memset(stats, 0, sizeof(*stats));
	if (sqlite3_get_autocommit(out->db) || sqlite3_get_autocommit(in->db))
		return mp_err_set(err, EINVAL, "%s: merged outside of a transaction", in->path);
	r = mp_store_list_modules(in, 0, &modules, &nr_modules, err);
	if (!r)
		r = mp_store_list_activity_spans(in, &activity, &nr_activity, err);
	if (!r)
		r = check_activity(in, activity, nr_activity, modules, nr_modules, err);
	if (!r)
		r = merge_sessions(out, in, again, stats, &promised, err);
	for (size_t i = 0; i < nr_modules && !r; i++) {
		int64_t to = 0;

		r = put_module(out, &modules[i], &to, err);
		if (!r)
			r = merge_counts(out, to, in, modules[i].key, stats, err);
		if (!r)
			r = merge_edges(out, to, in, modules[i].key, stats, err);
		if (!r)
			r = merge_paths(out, to, in, modules[i].key, stats, err);
		if (!r)
			r = mp_store_merge_ways(out, to, in, modules[i].key, &stats->nr_ways, err);
		if (!r)
			r = merge_activity(out, to, modules[i].key, activity, nr_activity, err);
		if (!r)
			r = mp_store_merge_contexts(out, MP_CONTEXTS, to, in, modules[i].key,
						    &stats->nr_contexts, err);
		if (!r)
			r = mp_store_merge_contexts(out, MP_CALLS, to, in, modules[i].key,
						    &stats->nr_calls, err);
		if (!r)
			r = mp_store_copy_fingerprint(out, to, in, modules[i].key, err);
		stats->nr_modules += modules[i].nr_samples || modules[i].nr_transfers;
	}
	if (!r)
		r = merge_copies(out, in, modules, nr_modules, err);
	if (!r)
		r = mp_store_merge_processes(out, in, err);
	if (!r)
		r = mp_store_merge_trials(out, in, err);
	if (!r)
		r = mp_store_merge_audits(out, in, err);
	if (!r)
		r = check_promises(in, stats, &promised, err);
	mp_store_free_modules(modules, nr_modules);
	free(activity);
	return r;
}
