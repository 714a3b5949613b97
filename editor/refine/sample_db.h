// SPDX-License-Identifier: Apache-2.0
/*
 * sample_db - the database of one sampled run: made before the run, read behind it. Called by
 * program_runner and compilations.
 */
#ifndef ME_SAMPLE_DB_H
#define ME_SAMPLE_DB_H

#include "libprof/store/store.h"

/* Samples per second of CPU time in sampled runs: the default rate of `morphd run`. */
#define ME_SAMPLE_DB_HZ 4000

/*
 * Adds a version to the list of outputs in the database @path, so that the collector believes its
 * map.
 */
int me_sample_db_list_output(const char *path, const struct mp_id *output,
			     const struct mp_id *original, struct mp_err *err);
/* Opens it for reading. Return: 0; -ENOTSUP: no collector began; -errno. */
int me_sample_db_open(const char *path, struct mp_store **out, struct mp_err *err);
/* Samples by address of the file @id. Return: 0, -errno. Ownership: free(*@out). */
int me_sample_db_read(struct mp_store *store, const struct mp_id *id, struct mp_ip_count **out,
		      size_t *nr, struct mp_err *err);
/* *@whole: all samples, those of other files included. */
int me_sample_db_whole(struct mp_store *store, uint64_t *whole, struct mp_err *err);
void me_sample_db_remove(const char *path);

#endif
