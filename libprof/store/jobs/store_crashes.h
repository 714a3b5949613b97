// SPDX-License-Identifier: Apache-2.0
/*
 * store_crashes - programs that a signal of a fault ended, as exit records told the collector. The manager
 * compares them before and after it put a version in place. They belong to one machine, and
 * mp_store_merge() does not copy them.
 */
#ifndef MP_STORE_CRASHES_H
#define MP_STORE_CRASHES_H

#include "libprof/store/store.h"

#define MP_CRASHES_KEPT_S (30 * MP_SECONDS_PER_DAY)

/* Adds a crash of @module, an original, and forgets old ones. Return: 0, -errno. */
int mp_store_add_crash(struct mp_store *store, int64_t module, int64_t when_s, int signal,
		       struct mp_err *err);
/* Crashes of @module since @since_s. Return: 0, -errno. */
int mp_store_count_crashes(struct mp_store *store, int64_t module, int64_t since_s, uint64_t *nr,
			   struct mp_err *err);

#endif
