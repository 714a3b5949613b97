// SPDX-License-Identifier: Apache-2.0
/* store_outputs - the table of outputs; see store_outputs.h. */
#include "libprof/store/store_outputs.h"

#include <errno.h>

#include "libprof/store/store_private.h"

static int bind(struct mp_store *store, enum mp_stmt which, const char *sql,
		const struct mp_output *output, sqlite3_stmt **stmt, struct mp_err *err)
{
	const struct mp_id *ids[] = {&output->id, &output->original};
	int r;

	if (output->id.build_id_len > MP_BUILD_ID_MAX ||
	    output->original.build_id_len > MP_BUILD_ID_MAX)
		return mp_err_set(err, EINVAL, "a build-id that is too long");
	r = mp_store_stmt(store, which, sql, stmt, err);
	for (int i = 0; i < 2 && !r; i++) {
		sqlite3_bind_blob(*stmt, 2 * i + 1,
				  ids[i]->build_id_len ? (const void *)ids[i]->build_id : "",
				  ids[i]->build_id_len, SQLITE_STATIC);
		sqlite3_bind_int64(*stmt, 2 * i + 2, (int64_t)ids[i]->text_hash);
	}
	if (!r)
		sqlite3_bind_int64(*stmt, 5, (int64_t)output->paths_hash);
	return r;
}

int mp_store_put_output(struct mp_store *store, const struct mp_output *output, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = bind(store, MP_STMT_OUTPUT_PUT,
		     "INSERT OR REPLACE INTO output(build_id, text_hash, original_build_id,"
		     " original_text_hash, paths_hash) VALUES(?1, ?2, ?3, ?4, ?5)",
		     output, &stmt, err);

	return r ? r : mp_store_run(store, stmt, "write", err);
}

int mp_store_has_output(struct mp_store *store, const struct mp_output *output, bool *has,
			struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = bind(store, MP_STMT_OUTPUT_FIND,
		     "SELECT 1 FROM output WHERE build_id = ?1 AND text_hash = ?2 AND"
		     " original_build_id = ?3 AND original_text_hash = ?4 AND paths_hash = ?5",
		     output, &stmt, err);

	*has = false;
	if (r)
		return r;
	r = mp_store_step(store, stmt, "read", err);
	if (r < 0)
		return r;
	*has = r > 0;
	sqlite3_reset(stmt);
	return 0;
}
