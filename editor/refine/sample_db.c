// SPDX-License-Identifier: Apache-2.0
/* sample_db - the database of one sampled run; see sample_db.h. */
#include "editor/refine/sample_db.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libprof/store/store_outputs.h"

int me_sample_db_list_output(const char *path, const struct mp_id *output,
			     const struct mp_id *original, struct mp_err *err)
{
	struct mp_output entry = {.id = *output, .original = *original};
	struct mp_store *store;
	int rc = mp_store_open(path, MP_STORE_WRITE, &store, err);

	if (rc)
		return rc;
	rc = mp_store_put_output(store, &entry, err);
	mp_store_close(store);
	return rc;
}

/* Did a collector begin at all? */
static int check_session(struct mp_store *store, struct mp_err *err)
{
	struct mp_session *sessions = NULL;
	size_t nr = 0;
	int rc = mp_store_list_sessions(store, &sessions, &nr, err);

	free(sessions);
	if (!rc && !nr)
		rc = mp_err_set(err, ENOTSUP, "morphd run cannot sample here");
	return rc;
}

int me_sample_db_open(const char *path, struct mp_store **out, struct mp_err *err)
{
	int rc = mp_store_open(path, MP_STORE_READ, out, err);

	if (rc)
		return rc == -ENOENT ? -ENOTSUP : rc;
	rc = check_session(*out, err);
	if (rc)
		mp_store_close(*out);
	return rc;
}

int me_sample_db_read(struct mp_store *store, const struct mp_id *id, struct mp_ip_count **out,
		      size_t *nr, struct mp_err *err)
{
	struct mp_module module = {.path = NULL};
	int rc = mp_store_find_module(store, id, &module, err);

	*out = NULL;
	*nr = 0;
	if (rc == -ENOENT)
		return 0; /* no sample of this file */
	if (!rc)
		rc = mp_store_read_ip_counts(store, module.key, 0, out, nr, err);
	free(module.path);
	return rc;
}

int me_sample_db_whole(struct mp_store *store, uint64_t *whole, struct mp_err *err)
{
	struct mp_module *modules = NULL;
	size_t nr = 0;
	int rc = mp_store_list_modules(store, 0, &modules, &nr, err);

	*whole = 0;
	for (size_t i = 0; i < nr && !rc; i++)
		*whole += modules[i].nr_samples;
	mp_store_free_modules(modules, nr);
	return rc;
}

void me_sample_db_remove(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char file[PATH_MAX + 8];

		snprintf(file, sizeof(file), "%s%s", path, suffixes[i]);
		unlink(file);
	}
}
