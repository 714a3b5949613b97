// SPDX-License-Identifier: Apache-2.0
/* store_drop - forgets modules whose files are gone. Called by morph-worker. */
#ifndef MP_STORE_DROP_H
#define MP_STORE_DROP_H

#include "libprof/store/store.h"

/*
 * mp_store_drop_module - removes a module with all that is kept of it: counts, edges, paths, copies,
 * activity and fingerprint. Its samples leave the ledgers, too, those of the oldest sessions first:
 * which session took a sample is not kept. Trials and audits, which name the module by its id, stay.
 * Return: 0; -ENOENT: no such module; -EBUSY: another module is an output that was made of it;
 * -EBADMSG: the ledgers do not have its samples; -errno. Nothing is removed after an error.
 */
int mp_store_drop_module(struct mp_store *store, int64_t module, struct mp_err *err);
/*
 * Takes @nr samples out of the line @line of the ledgers, for instance "contexts", the oldest session
 * first. Return: 0, -EBADMSG, -errno.
 */
int mp_store_take_line(struct mp_store *store, int64_t nr, const char *line, struct mp_err *err);

#endif
