// SPDX-License-Identifier: Apache-2.0
/*
 * train_where - in which files a command spent its time, by the samples of a store.
 *
 * Decides nothing: train does. Called by train.
 */
#include "editor/train/train_where.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/base/soname.h"
#include "libprof/store/store.h"

static int name_other(struct me_where *where, const char *path)
{
	where->path = strdup(path);
	where->name = me_soname(path);
	where->library = where->name;
	if (!where->name)
		where->name = strdup(basename(path));
	return where->path && where->name ? 0 : -ENOMEM;
}

int me_where_find(const char *db, const char *file, struct me_where *where, struct mp_err *err)
{
	struct mp_module *modules = NULL;
	const char *path = NULL;
	struct mp_store *store;
	size_t nr = 0;
	int rc;

	memset(where, 0, sizeof(*where));
	rc = mp_store_open(db, MP_STORE_READ, &store, err);
	if (rc)
		return rc;
	rc = mp_store_list_modules(store, 0, &modules, &nr, err);
	for (size_t i = 0; !rc && i < nr; i++) {
		const struct mp_module *m = &modules[i];

		if (m->kind != MP_MODULE_FILE || !m->path)
			continue;
		where->all += m->nr_samples;
		if (!strcmp(m->path, file)) {
			where->file += m->nr_samples;
		} else if (m->nr_samples > where->other && !access(m->path, R_OK)) {
			where->other = m->nr_samples;
			path = m->path;
		}
	}
	if (!rc && path && name_other(where, path))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	where->matters = !rc && where->other > where->file && where->all >= ME_WHERE_LEAST_SAMPLES;
	mp_store_free_modules(modules, nr);
	mp_store_close(store);
	return rc;
}

void me_where_fini(struct me_where *where)
{
	free(where->path);
	free(where->name);
	where->path = where->name = NULL;
}
