// SPDX-License-Identifier: Apache-2.0
/*
 * fleet_base - counts in this database that are not its own: those that another epoch sends, and
 * those that were pulled from the fleet. They are never sent. What was pulled can be taken out
 * again. Called by store_fleet and by morph-fleet pull.
 */
#ifndef MP_FLEET_BASE_H
#define MP_FLEET_BASE_H

#include "libprof/store/fleet/store_fleet.h"
#include "libprof/store/store_span.h"

enum mp_fleet_origin {
	MP_FLEET_FORK,
	MP_FLEET_PULLED
};

struct mp_series;
/* The entries that rows of @kind hold. */
const struct mp_series *mp_fleet_series(enum mp_fleet_kind kind);

/* *@total: sum of the base of the days in @span. */
int mp_fleet_base_total(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
			const struct mp_span *span, uint64_t *total, struct mp_err *err);
/*
 * Takes the base of the days in @span out of the @nr @entries of one chunk, in place.
 * Return: 0, -EBADMSG (the base has counts that the entries do not have).
 */
int mp_fleet_base_take(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
		       const struct mp_span *span, int64_t chunk, void *entries, size_t *nr,
		       struct mp_err *err);
/* Makes all counts that the database holds now part of the base. In a transaction. */
int mp_fleet_base_fork(struct mp_store *store, struct mp_err *err);

/* A profile that was pulled. Addresses ascend. */
struct mp_fleet_profile {
	struct mp_id id;
	enum mp_module_kind kind;
	const char *path;
	uint64_t text_size;
	int64_t day; /* all counts go to this day */
	bool exact_counts, exact_edges;
	struct mp_ip_count *counts;
	struct mp_edge_count *edges;
	size_t nr_counts, nr_edges;
	char why[256]; /* for the session that has the samples in its ledger */
};

/*
 * mp_fleet_put_pulled - adds @profile to the database, instead of what was pulled for the module
 * before. One transaction. Return: 0, -EBADMSG, -EOVERFLOW, -errno.
 */
int mp_fleet_put_pulled(struct mp_store *store, const struct mp_fleet_profile *profile,
			int64_t now_s, struct mp_err *err);
/* For mp_store_check(): each row has a module, and its bytes are sound. */
int mp_fleet_check(struct mp_store *store, struct mp_err *err);

#endif
