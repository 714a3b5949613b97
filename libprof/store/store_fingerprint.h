// SPDX-License-Identifier: Apache-2.0
/*
 * store_fingerprint - keeps a fingerprint of a module's file. With it, the module's counts
 * can be carried over to the next build when the file is gone. There is at most one
 * fingerprint per module; counts are never stored here. Carried-over counts are made anew
 * for each request, so they cannot mix with a build's own.
 */
#ifndef MP_STORE_FINGERPRINT_H
#define MP_STORE_FINGERPRINT_H

#include "libprof/stale/fingerprint.h"
#include "libprof/store/store.h"

/* Limit of the size, for writing and for reading. */
#define MP_FINGERPRINT_BYTES_MAX (64u << 20)

/* Replaces an existing one. Sets *@nr_bytes, which may be NULL. Return: 0, -EFBIG, -errno. */
int mp_store_put_fingerprint(struct mp_store *store, int64_t module, int64_t now_s,
			     const struct mp_fingerprint *print, size_t *nr_bytes,
			     struct mp_err *err);
/* Return: 0, -ENOENT (there is none), -EBADMSG. Ownership: mp_fingerprint_fini(@out). */
int mp_store_read_fingerprint(struct mp_store *store, int64_t module, struct mp_fingerprint *out,
			      struct mp_err *err);
/* *@made_s: when the module's fingerprint was made; 0: there is none. */
int mp_store_fingerprint_time(struct mp_store *store, int64_t module, int64_t *made_s,
			      struct mp_err *err);

/*
 * mp_store_find_other_build - finds a module with counts and a fingerprint that is another
 * build of @path: one of the same path, else of the same file name, else of the same name
 * up to ".so". Of several, the one seen last. Return: 0, -ENOENT. Ownership:
 * free(@out->path).
 */
int mp_store_find_other_build(struct mp_store *store, const struct mp_id *id, const char *path,
			      struct mp_module *out, struct mp_err *err);

/* For mp_store_merge(): copies the fingerprint if @out has none or an older one. */
int mp_store_copy_fingerprint(struct mp_store *out, int64_t to, struct mp_store *in, int64_t from,
			      struct mp_err *err);
/* For mp_store_check(): each fingerprint must have a module and be readable. */
int mp_store_check_fingerprints(struct mp_store *store, struct mp_err *err);

#endif
